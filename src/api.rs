//! The custom resources: Queue, PodGroup, Topology.
//!
//! The types carry the schema, so that the manifests in `deploy/crds`, the rules that the API
//! server enforces and what the scheduler decodes cannot drift apart. They decode whatever a
//! version of the schema, older or newer, may have let in: text stays text until it is converted to
//! facts, because one object that does not decode would stop the whole list.

mod duration;
mod manifests;
mod placement;
mod pod_group;
mod queue;
mod schema;
mod topology;

pub use duration::{
    Duration, InvalidDuration, MAX_HOURS, Runtime, SignedDuration, format_duration_ms,
    parse_duration_ms, parse_runtime_ms, parse_signed_duration_ms,
};
pub use manifests::{crds, manifest};
pub use placement::{InvalidPlacement, PLACEMENT_NAMES, Placement, parse_placement};
pub use pod_group::{
    Members, PodGroup, PodGroupSpec, PodGroupStatus, SubGroup, TopologyConstraint,
};
pub use queue::{PodGroupCounts, Queue, QueueResource, QueueSpec, QueueStatus};
pub use topology::{Topology, TopologyLevel, TopologySpec};

/// The API group of every custom resource.
pub const GROUP: &str = "gpu-batch.io";
/// The version of every custom resource.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of every custom resource.
pub const API_VERSION: &str = "gpu-batch.io/v1alpha1";
