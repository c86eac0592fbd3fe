//! Existing pods, as the controllers that own them see them.

use super::Sourced;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The label by which a Deployment tells the pods of its ReplicaSets apart.
pub(super) const TEMPLATE_HASH: &str = "pod-template-hash";
/// The label, and in older clusters the annotation, with the index of a pod of an Indexed Job.
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// How far a pod has come, as controllers count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    Running,
    /// The pod is being deleted.
    Leaving,
    Succeeded,
    Failed,
}

impl State {
    pub(super) fn is_active(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

/// A pod that has an owner.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) state: State,
    /// The entry of `metadata.ownerReferences` whose owner controls the pod.
    pub(super) owner: Value,
    /// The completion index of a pod of an Indexed Job.
    pub(super) index: Option<i64>,
    /// The hash of the template of a pod of a Deployment.
    pub(super) template_hash: Option<String>,
}

/// Namespace, kind and name of an owner.
type Key = (String, String, String);

/// The pods of each owner.
#[derive(Debug, Default)]
pub(super) struct Members(BTreeMap<Key, Vec<Member>>);

impl Members {
    /// The pods of an owner, without those of an earlier owner of this name.
    pub(super) fn of<'a>(&'a self, owner: &super::Owner<'_>) -> Vec<&'a Member> {
        let identity = &owner.identity;
        let key = [&identity.namespace, &identity.kind, &identity.name];
        let [namespace, kind, name] = key.map(ToString::to_string);
        // A pod of a Deployment names the ReplicaSet, whose UID says nothing of the Deployment.
        let is_its_own = |member: &&Member| {
            let theirs = member.owner.get("uid").and_then(Value::as_str);
            let same_kind = member.owner["kind"] == *kind;
            match (owner.uid(), theirs) {
                (Some(uid), Some(theirs)) if same_kind => uid == theirs,
                _ => true,
            }
        };
        let found = self.0.get(&(namespace, kind.clone(), name));
        found.into_iter().flatten().filter(is_its_own).collect()
    }

    /// Adds a pod, if it has an owner.
    pub(super) fn add(&mut self, pod: &Value) {
        let Some((namespace, member)) = member(pod) else {
            return;
        };
        let owner = |field: &str| member.owner[field].as_str().unwrap_or_default().to_owned();
        let (kind, name) = (owner("kind"), owner("name"));
        if let Some(hash) = &member.template_hash
            && kind == "ReplicaSet"
            && let Some(deployment) = name.strip_suffix(&format!("-{hash}"))
        {
            let key = (namespace.clone(), "Deployment".into(), deployment.into());
            self.0.entry(key).or_default().push(member.clone());
        }
        self.0
            .entry((namespace, kind, name))
            .or_default()
            .push(member);
    }
}

/// The pods of all owners, and the names that pods have, by namespace.
pub(super) fn of(objects: &[Sourced]) -> (Members, BTreeSet<(String, String)>) {
    let mut members = Members::default();
    let mut names = BTreeSet::new();
    for (_, object) in objects {
        if object["kind"] == "Pod" && object["apiVersion"] == "v1" {
            members.add(object);
            let text = |path: &str| object.pointer(path).and_then(Value::as_str);
            let text = |path: &str| text(path).unwrap_or_default().to_owned();
            names.insert((text("/metadata/namespace"), text("/metadata/name")));
        }
    }
    (members, names)
}

fn member(pod: &Value) -> Option<(String, Member)> {
    let meta = pod.get("metadata")?;
    let text = |field: &str| meta.get(field).and_then(Value::as_str).map(str::to_owned);
    let owners = meta.get("ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    let state = match phase {
        Some("Succeeded") => State::Succeeded,
        Some("Failed") => State::Failed,
        _ if !meta["deletionTimestamp"].is_null() => State::Leaving,
        Some("Running") => State::Running,
        _ => State::Pending,
    };
    let pair = |field: &str, key: &str| meta.get(field)?.get(key)?.as_str();
    let index = pair("labels", COMPLETION_INDEX).or_else(|| pair("annotations", COMPLETION_INDEX));
    let member = Member {
        name: text("name")?,
        state,
        owner: owner.clone(),
        index: index.and_then(|index| index.parse().ok()),
        template_hash: pair("labels", TEMPLATE_HASH).map(str::to_owned),
    };
    Some((text("namespace").unwrap_or_default(), member))
}
