//! The custom resources: Queue, PodGroup, Topology.
//!
//! The types carry the schema, so that the manifests in `deploy/crds`, the rules that the API
//! server enforces and what the scheduler decodes cannot drift apart. They decode whatever a
//! version of the schema, older or newer, may have let in: text stays text until it is converted to
//! facts, because one object that does not decode would stop the whole list.

mod duration;
mod placement;
mod pod_group;
mod queue;
mod schema;
mod topology;

pub(crate) use duration::{
    Duration, InvalidDuration, Runtime, SignedDuration, parse_duration_ms, parse_runtime_ms,
    parse_signed_duration_ms,
};
pub(crate) use placement::{PLACEMENT_NAMES, Placement, parse_placement};
pub(crate) use pod_group::Members;
pub use pod_group::{PodGroup, PodGroupSpec, PodGroupStatus, SubGroup, TopologyConstraint};
pub(crate) use queue::PodGroupCounts;
pub use queue::{LearnedRuntimes, Queue, QueueResource, QueueSpec, QueueStatus};
pub use topology::{Topology, TopologyLevel, TopologySpec};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

/// The API group of every custom resource.
pub(crate) const GROUP: &str = "gpu-batch.io";
/// The version of every custom resource.
pub(crate) const VERSION: &str = "v1alpha1";
/// `apiVersion` of every custom resource.
pub(crate) const API_VERSION: &str = "gpu-batch.io/v1alpha1";

/// The definitions of all custom resources.
#[must_use]
pub fn crds() -> [CustomResourceDefinition; 3] {
    [Queue::crd(), PodGroup::crd(), Topology::crd()]
}

/// One definition as YAML.
///
/// # Errors
/// The serializer's error; no definition causes one.
pub fn manifest(crd: &CustomResourceDefinition) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(crd)?;
    tidy(&mut value);
    Ok(serde_saphyr::to_string(&value)?)
}

/// Makes spaces of the line breaks in descriptions, which come from doc comments: `kubectl explain`
/// breaks lines itself. And leaves out what the API server drops as a default, which would make
/// every later apply look like a change.
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
