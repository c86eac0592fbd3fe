//! The claims that the controllers of a cluster make for pods: a StatefulSet from its templates,
//! and those of ephemeral volumes.

use super::super::source::{Gathered, Sourced, some_of};
use crate::kube::convert::Identity;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A claim for a pod of a StatefulSet, and the volume that is this claim.
pub(super) fn of_stateful_pod(
    template: &Value,
    namespace: &str,
    pod: &str,
) -> Option<(Value, Value)> {
    let volume = template.pointer("/metadata/name")?.as_str()?;
    let name = format!("{volume}-{pod}");
    let claim = claim(template, namespace, &name);
    let source = json!({"claimName": name});
    let volume = json!({"name": volume, "persistentVolumeClaim": source});
    Some((claim, volume))
}

/// Adds the claims that pods lack: those that were made with pods, and those of ephemeral volumes.
/// Returns a note for the user.
pub(super) fn add_missing(gathered: &mut Gathered, made: Vec<Sourced>) -> Option<String> {
    let objects = gathered.objects.iter();
    let ephemeral = objects.flat_map(|(source, object)| {
        let claims = of_ephemeral_volumes(object).into_iter();
        claims.map(|claim| (source.clone(), claim))
    });
    let made: Vec<Sourced> = made.into_iter().chain(ephemeral).collect();
    let objects = gathered.objects.iter();
    let mut there: BTreeSet<Identity> = objects.filter_map(|it| Identity::of(&it.1)).collect();
    let mut names = Vec::new();
    for (source, claim) in made {
        let Some(identity) = Identity::of(&claim) else {
            continue;
        };
        let name = format!("{}/{}", identity.namespace, identity.name);
        if there.insert(identity) {
            names.push(name);
            gathered.objects.push((source, claim));
        }
    }
    let named = some_of(&names);
    (!names.is_empty()).then(|| format!("made the missing claims: {named}"))
}

/// The claims that are made for the ephemeral volumes of a pod.
fn of_ephemeral_volumes(object: &Value) -> Vec<Value> {
    let meta = &object["metadata"];
    let (Some(name), Some(namespace)) = (meta["name"].as_str(), meta["namespace"].as_str()) else {
        return Vec::new();
    };
    if object["apiVersion"] != "v1" || object["kind"] != "Pod" {
        return Vec::new();
    }
    let mut owner = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "controller": true});
    if meta["uid"].is_string() {
        owner["uid"] = meta["uid"].clone();
    }
    let volumes = object.pointer("/spec/volumes").and_then(Value::as_array);
    let claims = volumes.into_iter().flatten().filter_map(|volume| {
        let template = volume.pointer("/ephemeral/volumeClaimTemplate")?;
        let name = format!("{name}-{}", volume["name"].as_str()?);
        let mut claim = claim(template, namespace, &name);
        claim["metadata"]["ownerReferences"] = json!([owner]);
        Some(claim)
    });
    claims.collect()
}

/// A claim as its template says.
fn claim(template: &Value, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
        },
        "spec": template["spec"],
    })
}
