//! The kind Topology.

#![expect(
    unreachable_pub,
    reason = "KubeSchema repeats the types inside a function"
)]

use super::schema::{LABEL, LABEL_MESSAGE, QUALIFIED};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// How far nodes are from each other.
#[expect(
    clippy::duplicated_attributes,
    reason = "every printed column has a type of its own"
)]
#[derive(Debug, Clone, Default, PartialEq, CustomResource, KubeSchema, Serialize, Deserialize)]
#[kube(
    group = "gpu-batch.io",
    version = "v1alpha1",
    kind = "Topology",
    plural = "topologies",
    category = "gpu-batch",
    derive = "PartialEq",
    doc = "A Topology names the levels of the network by node labels. Gangs ask for domains of a \
           level.",
    label("app.kubernetes.io/name", "gpu-batch"),
    printcolumn(
        name = "Farthest",
        type_ = "string",
        json_path = ".spec.levels[0].name"
    ),
    printcolumn(
        name = "Finest",
        type_ = "string",
        json_path = ".spec.levels[-1:].name",
        description = "Below it there is always node"
    ),
    printcolumn(
        name = "Levels",
        type_ = "string",
        priority = 1,
        json_path = ".spec.levels"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpec {
    /// Farthest first; a node's domain is the whole path from the top. A node without a level's
    /// label is a domain of its own at that level. The level node (label kubernetes.io/hostname)
    /// always exists below the last one.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["name".to_owned()]),
        validation = (
            "self.all(a, self.exists_one(b, b.nodeLabel == a.nodeLabel))",
            "every level must have a nodeLabel of its own",
        )
    )]
    pub levels: Vec<TopologyLevel>,
}

/// One level of a Topology.
#[derive(Debug, Clone, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyLevel {
    /// The level's name, as gangs write it.
    #[schemars(length(max = 63))]
    #[x_kube(
        validation = (LABEL, LABEL_MESSAGE),
        validation = ("self != 'node'", "the level node always exists and cannot be named again")
    )]
    pub name: String,

    /// The node label whose values are the level's domains.
    #[schemars(length(max = 317))]
    #[x_kube(
        validation = (QUALIFIED, "must be the key of a node label"),
        validation = (
            "self != 'kubernetes.io/hostname'",
            "kubernetes.io/hostname is the label of the level node, which always exists",
        )
    )]
    pub node_label: String,
}
