//! Pods that say where other pods must or should be.

use super::super::objects::{self, Post};
use serde_json::{Value, json};

/// Selects the pods that wait.
pub(super) const SELECTOR: &str = "bench-waits=true";

/// What the pods of one measurement say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Nothing of other pods.
    Plain,
    /// No two on one node.
    AntiAffinity,
    /// All in one zone.
    Affinity,
    /// In all zones alike.
    Spread,
    /// Together on nodes, where that is possible.
    Preferred,
    /// A part of the pods of each kind.
    Mixed,
}

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

impl Shape {
    pub(super) const ALL: [Self; 6] = [
        Self::Plain,
        Self::AntiAffinity,
        Self::Affinity,
        Self::Spread,
        Self::Preferred,
        Self::Mixed,
    ];

    /// What follows `pods` in a sentence.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "without rules",
            Self::AntiAffinity => "with required anti-affinity by node",
            Self::Affinity => "with required affinity by zone",
            Self::Spread => "spread over zones",
            Self::Preferred => "with preferred affinity by node",
            Self::Mixed => "of all these kinds",
        }
    }

    /// The kind of a pod of this number.
    fn kind(self, number: usize) -> Self {
        match self {
            Self::Mixed => Self::ALL[number % (Self::ALL.len() - 1)],
            one => one,
        }
    }

    /// A pod of the shape that waits for a scheduler of this name.
    pub(super) fn pod(self, name: &str, number: usize, scheduler: &str) -> Post {
        let kind = self.kind(number);
        let mut post = objects::plain_pod(name, 1);
        let app = format!("{kind:?}").to_lowercase();
        post.body["metadata"]["labels"] = json!({"bench-waits": "true", "app": app});
        let spec = &mut post.body["spec"];
        spec["schedulerName"] = json!(scheduler);
        let alike = json!({"matchLabels": {"app": app}});
        let term = |key: &str| json!({"labelSelector": alike, "topologyKey": key});
        let required = |key: &str| -> Value {
            json!({"requiredDuringSchedulingIgnoredDuringExecution": [term(key)]})
        };
        match kind {
            Self::Plain | Self::Mixed => {}
            Self::AntiAffinity => spec["affinity"] = json!({"podAntiAffinity": required(HOSTNAME)}),
            Self::Affinity => spec["affinity"] = json!({"podAffinity": required(ZONE)}),
            Self::Preferred => {
                let weighed = json!([{"weight": 1, "podAffinityTerm": term(HOSTNAME)}]);
                spec["affinity"] = json!({"podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": weighed,
                }});
            }
            Self::Spread => {
                spec["topologySpreadConstraints"] = json!([{
                    "maxSkew": 1,
                    "topologyKey": ZONE,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": alike,
                }]);
            }
        }
        post
    }
}
