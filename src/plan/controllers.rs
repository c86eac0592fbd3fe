//! The pods that the controllers of a cluster would make of the Jobs, Deployments, ReplicaSets and
//! StatefulSets of files, and the claims of pods.
//!
//! Each controller acts once: pods that exist count, and missing pods are made. Nothing here is
//! about scheduling. Names end with a number where a cluster has random letters, so that equal
//! files give equal names.

mod claims;
mod job;
mod members;
mod replicas;

use super::source::{Gathered, Source, Sourced, some_of};
use crate::kube::convert::{Identity, RefusedDocument, refused, unknown_keys_of_owner};
use gpu_batch_policies::facts::Problem;
use members::Members;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// How many pods one owner may get; Kubernetes allows this many of an Indexed Job.
const PODS_MAX: usize = 100_000;

type Result<T> = std::result::Result<T, RefusedDocument>;

/// Owners of pods, in the order in which they make them: first the owners whose pods must have
/// certain names; ReplicaSets before the Deployments, which look for their pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Controller {
    StatefulSet,
    Job,
    ReplicaSet,
    Deployment,
}

impl Controller {
    fn of(value: &Value) -> Option<Self> {
        let field = |name: &str| value.get(name).and_then(Value::as_str);
        match (field("apiVersion")?, field("kind")?) {
            ("batch/v1", "Job") => Some(Self::Job),
            ("apps/v1", "StatefulSet") => Some(Self::StatefulSet),
            ("apps/v1", "ReplicaSet") => Some(Self::ReplicaSet),
            ("apps/v1", "Deployment") => Some(Self::Deployment),
            _ => None,
        }
    }
}

/// An object that makes pods.
struct Owner<'a> {
    identity: Identity,
    object: &'a Value,
    /// `spec.template`.
    template: &'a Value,
}

impl Owner<'_> {
    /// The entry for this owner in `metadata.ownerReferences` of its pods.
    fn reference(&self) -> Value {
        let mut reference = json!({
            "apiVersion": self.object["apiVersion"],
            "kind": self.object["kind"],
            "name": *self.identity.name,
            "controller": true,
            "blockOwnerDeletion": true,
        });
        if let Some(uid) = self.uid() {
            reference["uid"] = uid.into();
        }
        reference
    }

    /// The UID of the owner; only an object that was read from a cluster has one.
    fn uid(&self) -> Option<&str> {
        self.object.pointer("/metadata/uid")?.as_str()
    }

    /// Refuses the owner for a field that no API server would have let in.
    fn refused(&self, field: &str, message: impl Into<String>) -> RefusedDocument {
        refused(self.object, field, message)
    }

    /// A count in the owner's spec, checked as by the API server.
    fn count(&self, field: &str, value: Option<i64>, default: i64) -> Result<i64> {
        let count = value.unwrap_or(default);
        if (0..=i64::from(i32::MAX)).contains(&count) {
            return Ok(count);
        }
        let message = format!("must be between 0 and {}, not {count}", i32::MAX);
        Err(self.refused(field, message))
    }

    /// Refuses the owner if a field has a word that the API server would not let in.
    fn check_word(&self, field: &str, word: Option<&str>, allowed: &[&str]) -> Result<()> {
        match word {
            Some(word) if !allowed.contains(&word) => {
                let message = format!("must be {}, not {word}", allowed.join(" or "));
                Err(self.refused(field, message))
            }
            _ => Ok(()),
        }
    }

    /// How many pods are made if `missing` are missing.
    fn to_make(&self, missing: i64, field: &str) -> Result<usize> {
        match usize::try_from(missing) {
            Ok(missing) if missing > PODS_MAX => {
                let message =
                    format!("asks for {missing} more pods; at most {PODS_MAX} are planned");
                Err(self.refused(field, message))
            }
            missing => Ok(missing.unwrap_or(0)),
        }
    }

    /// Refuses the owner if its kind does not allow the restart policy of its pods.
    fn check_restarts(&self, allowed: &[&str]) -> Result<()> {
        let policy = self.template.pointer("/spec/restartPolicy");
        let policy = policy.and_then(Value::as_str).unwrap_or("Always");
        if allowed.contains(&policy) {
            return Ok(());
        }
        let message = format!(
            "must be {} in a {}, not {policy}",
            allowed.join(" or "),
            self.identity.kind
        );
        Err(self.refused("spec.template.spec.restartPolicy", message))
    }
}

/// The pods that an owner makes.
#[derive(Default)]
struct Made {
    /// The entry for the owner in `metadata.ownerReferences` of the pods.
    owner: Value,
    pods: Vec<Birth>,
    /// What the user should know, in a sentence.
    note: Option<String>,
}

/// The fields of a pod that do not come from the template.
#[derive(Default)]
struct Birth {
    name: String,
    labels: Vec<(&'static str, String)>,
    annotations: Vec<(&'static str, String)>,
    volumes: Vec<Value>,
    /// The claims that are made with the pod.
    claims: Vec<Value>,
}

/// The names in a namespace that pods have.
struct Names<'a> {
    namespace: &'a str,
    taken: &'a mut BTreeSet<(String, String)>,
}

impl Names<'_> {
    /// Takes a name; `false` if a pod has this name already.
    fn take(&mut self, name: &str) -> bool {
        self.taken
            .insert((self.namespace.to_owned(), name.to_owned()))
    }

    /// Takes a name that no pod has: `name`, with `-x` added as long as it is taken.
    fn take_like(&mut self, name: String) -> String {
        let mut free = name;
        while !self.take(&free) {
            free.push_str("-x");
        }
        free
    }

    /// Takes the next free names of `BASE-0`, `BASE-1` and so on.
    fn take_numbered(&mut self, base: &str, count: usize) -> Vec<String> {
        let names = (0_u64..).map(|number| format!("{base}-{number}"));
        names.filter(|name| self.take(name)).take(count).collect()
    }
}

/// Adds the missing pods and claims, and takes out the owners, whose kinds the scheduler does not
/// know. Returns notes for the user.
pub(super) fn make_pods(gathered: &mut Gathered) -> Vec<String> {
    let mut notes = Vec::new();
    let (mut made, mut made_claims) = (Vec::new(), Vec::new());
    let (mut members, mut taken) = members::of(&gathered.objects);
    let mut owners: Vec<(Controller, Identity, &Sourced)> = gathered
        .objects
        .iter()
        .filter_map(|sourced| {
            let controller = Controller::of(&sourced.1)?;
            Some((controller, Identity::of(&sourced.1)?, sourced))
        })
        .collect();
    owners.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    let mut counts = Vec::new();
    let mut refusals = Vec::new();
    for (controller, identity, (source, object)) in owners {
        let owner = Owner {
            template: object.pointer("/spec/template").unwrap_or(&Value::Null),
            identity,
            object,
        };
        notes.extend(unknown_keys(source, &owner));
        let names = &mut Names {
            namespace: &owner.identity.namespace,
            taken: &mut taken,
        };
        match made_by(controller, &owner, &members, names) {
            Ok(of_owner) => {
                notes.extend(of_owner.note);
                let count = of_owner.pods.len();
                if count > 0 && owner.template.is_null() {
                    let identity = &owner.identity;
                    notes.push(format!("{identity} has no spec.template to make pods of"));
                    continue;
                }
                if count > 0 {
                    counts.push(format!("{count} of {}", owner.identity));
                }
                for mut birth in of_owner.pods {
                    let claims = std::mem::take(&mut birth.claims).into_iter();
                    made_claims.extend(claims.map(|claim| (source.clone(), claim)));
                    let pod = pod(&owner, &of_owner.owner, birth);
                    members.add(&pod);
                    made.push((source.clone(), pod));
                }
            }
            Err(refusal) => refusals.push((source.clone(), refusal)),
        }
    }
    gathered.refused.extend(refusals);
    gathered.objects.retain(|(_, object)| {
        !matches!(Controller::of(object), Some(controller) if controller != Controller::Job)
    });
    gathered.objects.extend(made);
    if !counts.is_empty() {
        let counts = some_of(&counts);
        notes.push(format!("made the missing pods: {counts}"));
    }
    notes.extend(claims::add_missing(gathered, made_claims));
    notes
}

/// A note for each key of ours on an owner that means nothing there. What the Deployment of a
/// ReplicaSet has written on it is told of the Deployment.
fn unknown_keys(source: &Source, owner: &Owner<'_>) -> Vec<String> {
    let owners = owner.object.pointer("/metadata/ownerReferences");
    if owners.is_some_and(|owners| !owners.is_null()) {
        return Vec::new();
    }
    let identity = &owner.identity;
    let unknown = unknown_keys_of_owner(owner.object).into_iter();
    unknown
        .map(|Problem { field, message }| format!("{source}: {identity}: {field}: {message}"))
        .collect()
}

fn made_by(
    controller: Controller,
    owner: &Owner<'_>,
    members: &Members,
    names: &mut Names<'_>,
) -> Result<Made> {
    let members = members.of(owner);
    match controller {
        Controller::Job => job::pods(owner, &members, names),
        Controller::StatefulSet => replicas::of_stateful_set(owner, &members, names),
        Controller::ReplicaSet => replicas::of_replica_set(owner, &members, names),
        Controller::Deployment => replicas::of_deployment(owner, &members, names),
    }
}

fn pod(owner: &Owner<'_>, reference: &Value, birth: Birth) -> Value {
    let of_template = |field: &str| {
        let pairs = owner.template.pointer(field).and_then(Value::as_object);
        pairs.cloned().unwrap_or_default()
    };
    let with = |mut pairs: Map<String, Value>, more: Vec<(&str, String)>| {
        let more = more.into_iter();
        pairs.extend(more.map(|(key, value)| (key.to_owned(), value.into())));
        pairs
    };
    let mut spec = owner.template.get("spec").cloned().unwrap_or_default();
    if !birth.volumes.is_empty()
        && let Some(spec) = spec.as_object_mut()
    {
        let volumes = spec.entry("volumes").or_insert(Value::Null);
        let mut all = volumes.as_array().cloned().unwrap_or_default();
        all.extend(birth.volumes);
        *volumes = all.into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": birth.name,
            "namespace": *owner.identity.namespace,
            "labels": with(of_template("/metadata/labels"), birth.labels),
            "annotations": with(of_template("/metadata/annotations"), birth.annotations),
            "ownerReferences": [reference],
        },
        "spec": spec,
    })
}

#[cfg(test)]
mod tests;
