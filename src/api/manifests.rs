//! The definitions as the YAML that `deploy/crds` holds.

use super::{PodGroup, Queue, Topology};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

/// The definitions of all custom resources.
#[must_use]
pub fn crds() -> [CustomResourceDefinition; 3] {
    [Queue::crd(), PodGroup::crd(), Topology::crd()]
}

/// One definition as YAML.
///
/// # Errors
/// The serializer's, which a definition does not meet.
pub fn manifest(crd: &CustomResourceDefinition) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(crd)?;
    tidy(&mut value);
    Ok(serde_saphyr::to_string(&value)?)
}

/// Descriptions come from doc comments, whose line breaks mean nothing to `kubectl explain`. And
/// what the API server drops as a default would make every later apply look like a change.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(description)) = fields.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            if fields.get("nullable") == Some(&Value::Bool(false)) {
                fields.remove("nullable");
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
