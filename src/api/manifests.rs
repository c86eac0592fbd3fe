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
    unwrap_descriptions(&mut value);
    Ok(serde_saphyr::to_string(&value)?)
}

/// Descriptions come from doc comments, whose line breaks mean nothing to `kubectl explain`.
fn unwrap_descriptions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(description)) = fields.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            fields.values_mut().for_each(unwrap_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(unwrap_descriptions),
        _ => {}
    }
}
