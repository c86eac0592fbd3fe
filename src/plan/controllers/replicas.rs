//! The controllers of ReplicaSets, Deployments and StatefulSets.

use super::members::{Member, State, TEMPLATE_HASH};
use super::{Birth, Made, Names, Owner, Result, claims};
use crate::kube::convert::part_of;
use crate::kube::objects::{LabelSelector, null_is_default};
use serde::Deserialize;
use serde_json::{Value, json};

/// What the three kinds have in common, and what only one of them has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Manifest {
    #[serde(deserialize_with = "null_is_default")]
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    replicas: Option<i64>,
    selector: Option<LabelSelector>,
    /// A field of Deployments alone.
    paused: Option<bool>,
    /// A field of StatefulSets alone.
    pod_management_policy: Option<String>,
    #[serde(deserialize_with = "null_is_default")]
    ordinals: Ordinals,
    volume_claim_templates: Option<Vec<Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ordinals {
    start: Option<i64>,
}

/// The missing pods of a ReplicaSet.
pub(super) fn of_replica_set(
    owner: &Owner<'_>,
    members: &[&Member],
    names: &mut Names<'_>,
) -> Result<Made> {
    let manifest: Manifest = part_of(owner.object)?;
    let missing = manifest.missing(owner, members)?;
    Ok(Made {
        owner: owner.reference(),
        pods: numbered(names, &owner.identity.name, missing, None),
        note: None,
    })
}

/// The missing pods of a Deployment. The name of its ReplicaSet follows from the pods that exist;
/// if there are none, a name is made up. Pods of an older template count: no update is played.
pub(super) fn of_deployment(
    owner: &Owner<'_>,
    members: &[&Member],
    names: &mut Names<'_>,
) -> Result<Made> {
    let manifest: Manifest = part_of(owner.object)?;
    if manifest.spec.paused == Some(true) && members.is_empty() {
        let note = format!("{} is paused, so no pods are made of it", owner.identity);
        return Ok(Made {
            note: Some(note),
            ..Made::default()
        });
    }
    let missing = manifest.missing(owner, members)?;
    let sibling = members.iter().max_by_key(|member| &member.name);
    let of_sibling = sibling.and_then(|member| {
        let hash = member.template_hash.clone()?;
        Some((hash, member.owner.clone()))
    });
    let (hash, reference) = of_sibling.unwrap_or_else(|| new_replica_set(owner));
    let base = format!("{}-{hash}", owner.identity.name);
    Ok(Made {
        owner: reference,
        pods: numbered(names, &base, missing, Some(&hash)),
        note: None,
    })
}

/// The missing pods of a StatefulSet; where it starts them one by one, only the next of them.
pub(super) fn of_stateful_set(
    owner: &Owner<'_>,
    members: &[&Member],
    names: &mut Names<'_>,
) -> Result<Made> {
    let manifest: Manifest = part_of(owner.object)?;
    let spec = &manifest.spec;
    let missing = manifest.missing(owner, members)?;
    let start = owner.count("spec.ordinals.start", spec.ordinals.start, 0)?;
    let policy = spec.pod_management_policy.as_deref();
    let policies = ["OrderedReady", "Parallel"];
    owner.check_word("spec.podManagementPolicy", policy, &policies)?;
    let together = policy == Some("Parallel");
    let set = &*owner.identity.name;
    let mut pods = Vec::new();
    for ordinal in start..start + spec.replicas.unwrap_or(1) {
        if pods.len() == missing {
            break;
        }
        let name = format!("{set}-{ordinal}");
        let there = members.iter().find(|member| member.name == name);
        // Where the pod of another owner has the name, the controller waits for that pod to go.
        if there.is_none() && names.take(&name) {
            pods.push(manifest.stateful_pod(&owner.identity.namespace, name, ordinal));
        }
        if !together && there.is_none_or(|member| member.state != State::Running) {
            break;
        }
    }
    let left = missing - pods.len();
    let note = format!(
        "{} starts its pods one by one, each when the one before it is ready; not made yet: {left}. \
         With podManagementPolicy: Parallel they start together",
        owner.identity
    );
    Ok(Made {
        owner: owner.reference(),
        pods,
        note: (!together && left > 0).then_some(note),
    })
}

impl Manifest {
    /// How many pods are missing.
    fn missing(&self, owner: &Owner<'_>, members: &[&Member]) -> Result<usize> {
        const FIELD: &str = "spec.replicas";
        let replicas = owner.count(FIELD, self.spec.replicas, 1)?;
        let active = members.iter().filter(|member| member.state.is_active());
        let active = i64::try_from(active.count()).unwrap_or(i64::MAX);
        let missing = owner.to_make(replicas - active, FIELD)?;
        if missing > 0 && !owner.template.is_null() {
            owner.check_restarts(&["Always"])?;
            self.check_selector(owner)?;
        }
        Ok(missing)
    }

    fn check_selector(&self, owner: &Owner<'_>) -> Result<()> {
        const FIELD: &str = "spec.selector";
        let Some(selector) = &self.spec.selector else {
            return Err(owner.refused(FIELD, "is missing"));
        };
        let labels = owner.template.pointer("/metadata/labels");
        let label = |key: &str| labels?.get(key)?.as_str();
        let mut wanted = selector.match_labels.iter();
        match wanted.find(|(key, value)| label(key) != Some(&***value)) {
            None => Ok(()),
            Some((key, value)) => {
                let message = format!("wants the label {key}={value}, which spec.template lacks");
                Err(owner.refused(FIELD, message))
            }
        }
    }

    fn stateful_pod(&self, namespace: &str, name: String, ordinal: i64) -> Birth {
        let templates = self.spec.volume_claim_templates.iter().flatten();
        let claims =
            templates.filter_map(|template| claims::of_stateful_pod(template, namespace, &name));
        let (claims, volumes) = claims.unzip();
        Birth {
            labels: vec![
                ("statefulset.kubernetes.io/pod-name", name.clone()),
                ("apps.kubernetes.io/pod-index", ordinal.to_string()),
            ],
            volumes,
            claims,
            name,
            ..Birth::default()
        }
    }
}

fn numbered(names: &mut Names<'_>, base: &str, count: usize, hash: Option<&str>) -> Vec<Birth> {
    let pod = |name| Birth {
        name,
        labels: hash
            .map(|hash| (TEMPLATE_HASH, hash.to_owned()))
            .into_iter()
            .collect(),
        ..Birth::default()
    };
    names
        .take_numbered(base, count)
        .into_iter()
        .map(pod)
        .collect()
}

/// The hash and the reference of a ReplicaSet that a Deployment would make. The hash follows from
/// the template, as in a cluster, but is not the one that a cluster would make.
fn new_replica_set(owner: &Owner<'_>) -> (String, Value) {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    const LENGTH: usize = 10;
    // 64-bit FNV-1a.
    let text = owner.template.to_string();
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let letters = std::iter::repeat_with(|| {
        let letter = LETTERS[usize::try_from(hash % 27).unwrap_or(0)];
        hash /= 27;
        char::from(letter)
    });
    let hash: String = letters.take(LENGTH).collect();
    let reference = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": format!("{}-{hash}", owner.identity.name),
        "controller": true,
        "blockOwnerDeletion": true,
    });
    (hash, reference)
}
