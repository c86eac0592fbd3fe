//! The kind Queue.

#![expect(
    unreachable_pub,
    reason = "KubeSchema repeats the types inside a function"
)]

use super::schema::{self, NAME, NAME_MESSAGE, QUALIFIED};
use super::{Duration, Placement};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a queue is given and whom it takes.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, KubeSchema, Serialize, Deserialize)]
#[kube(
    group = "gpu-batch.io",
    version = "v1alpha1",
    kind = "Queue",
    plural = "queues",
    shortname = "gq",
    category = "gpu-batch",
    status = "QueueStatus",
    derive = "PartialEq",
    doc = "A Queue divides the cluster among teams. Queues form a tree; only leaf queues take \
           PodGroups.",
    label("app.kubernetes.io/name", "gpu-batch"),
    selectable = ".spec.parent",
    printcolumn(name = "Parent", type_ = "string", json_path = ".spec.parent"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Closed",
        type_ = "boolean",
        json_path = ".spec.closed",
        description = "Whether it admits nothing new; that of a queue above it counts too"
    ),
    printcolumn(
        name = "Dominant share",
        type_ = "string",
        json_path = ".status.dominantShare",
        description = "The largest of its shares of what the cluster has of a resource"
    ),
    printcolumn(
        name = "GPUs",
        type_ = "string",
        json_path = r".status.allocated.nvidia\.com/gpu",
        description = "nvidia.com/gpu that its PodGroups hold"
    ),
    printcolumn(
        name = "GPU quota",
        type_ = "string",
        json_path = ".spec.resources[?(@.name==\"nvidia.com/gpu\")].quota",
        description = "Guaranteed nvidia.com/gpu, by the first entry that has it"
    ),
    printcolumn(name = "Pending", type_ = "integer", json_path = ".status.podGroups.pending"),
    printcolumn(name = "Running", type_ = "integer", json_path = ".status.podGroups.running"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why it is Ready or not"
    ),
    printcolumn(name = "Priority", type_ = "integer", priority = 1, json_path = ".spec.priority"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = (
        "self.metadata.name.size() <= 63",
        "the name of a Queue has at most 63 characters, because labels refer to it",
    ),
    validation = Rule::new("!has(self.spec.parent) || self.spec.parent != self.metadata.name")
        .message("a Queue cannot be its own parent")
        .field_path(".spec.parent")
)]
#[serde(rename_all = "camelCase")]
pub struct QueueSpec {
    /// The queue above this one. Omitted: a child of the implicit root. Any depth is possible; only
    /// leaf queues take PodGroups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    #[x_kube(validation = (NAME, NAME_MESSAGE))]
    pub parent: Option<String>,

    /// Between siblings, over quota; higher first, strictly.
    #[serde(default)]
    #[schemars(range(min = -1_000_000_000, max = 1_000_000_000))]
    pub priority: i32,

    /// One entry for each resource, or for each GPU model of it. A resource is divided among
    /// siblings if one of them has an entry for it; a sibling without one then has quota 0, no
    /// limit and weight 1. nvidia.com/gpu is always divided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned(), "product".to_owned()]))]
    pub resources: Vec<QueueResource>,

    /// How long a gang of this queue runs before a higher-priority gang of the queue may evict it.
    /// Omitted: the parent's; 0 if no queue above says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_min_runtime: Option<Duration>,

    /// How long a gang of this queue runs before another queue may reclaim it. Omitted: the
    /// parent's; 0 if no queue above says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_min_runtime: Option<Duration>,

    /// How nodes are chosen for gangs that do not say: binpack, spread, best-fit or fragmentation,
    /// or one of them for GPU and one for CPU work, as in {gpu: binpack, cpu: spread}. Omitted: the
    /// parent's, else the configuration's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,

    /// Which namespaces may submit, here and in all queues below. Omitted: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::optional_label_selector")]
    pub namespace_selector: Option<LabelSelector>,

    /// true: admits nothing new, here and in all queues below; running work goes on.
    #[serde(default)]
    pub closed: bool,
}

/// One entry of a queue: a resource, or one GPU model of it.
#[derive(Debug, Clone, PartialEq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "!has(self.limit) || !isQuantity(string(self.limit)) || !isQuantity(string(self.quota)) \
         || quantity(string(self.limit)).compareTo(quantity(string(self.quota))) >= 0"
    )
    .message("must not be below quota")
    .field_path(".limit"),
    validation = Rule::new("self.product == '' || self.name == 'nvidia.com/gpu'")
        .message("only nvidia.com/gpu is counted by model: leave product out for other resources")
        .field_path(".product"),
    validation = Rule::new(
        "!self.name.contains('/') || self.name == 'nvidia.com/gpu' \
         || !isQuantity(string(self.quota)) \
         || quantity(string(self.quota)).isInteger()"
    )
    .message("must be a whole number below 2^55, because such a resource cannot be divided")
    .field_path(".quota"),
    validation = Rule::new(
        "!self.name.contains('/') || self.name == 'nvidia.com/gpu' || !has(self.limit) \
         || !isQuantity(string(self.limit)) || quantity(string(self.limit)).isInteger()"
    )
    .message("must be a whole number below 2^55, because such a resource cannot be divided")
    .field_path(".limit"),
    validation = Rule::new(
        "self.name != 'nvidia.com/gpu' || !isQuantity(string(self.quota)) \
         || quantity(string(self.quota)).isLessThan(quantity('36028797018964'))"
    )
    .message("must be less than 36028797018964 cards, which are counted in thousandths")
    .field_path(".quota"),
    validation = Rule::new(
        "self.name != 'nvidia.com/gpu' || !has(self.limit) || !isQuantity(string(self.limit)) \
         || quantity(string(self.limit)).isLessThan(quantity('36028797018964'))"
    )
    .message("must be less than 36028797018964 cards, which are counted in thousandths")
    .field_path(".limit")
)]
pub struct QueueResource {
    /// cpu, memory, nvidia.com/gpu, or any other resource name.
    #[schemars(length(max = 317))]
    #[x_kube(validation = (
        QUALIFIED,
        "must be the name of a resource such as cpu, memory or nvidia.com/gpu",
    ))]
    pub name: String,

    /// A GPU model, such as NVIDIA-H100-80GB-HBM3; this entry then counts only GPUs of this model.
    /// It is the node label nvidia.com/gpu.product without -SHARED and -MIG-... at its end. Empty:
    /// all models. Only nvidia.com/gpu is counted by model.
    #[serde(default)]
    #[schemars(length(max = 63))]
    #[x_kube(
        validation = (
            "self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",
            "must be a value of the node label nvidia.com/gpu.product",
        ),
        validation = (
            "!self.matches('-SHARED$|-MIG-[0-9]')",
            "must be the model of the whole GPU, without -SHARED and -MIG-...",
        )
    )]
    pub product: String,

    /// Guaranteed: obtainable by reclaim unless quotas are over-committed. Of nvidia.com/gpu also
    /// in thousandths of a card, such as 500m.
    #[serde(default = "zero")]
    #[schemars(schema_with = "schema::amount")]
    pub quota: Quantity,

    /// Never exceeded. Omitted: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::optional_amount")]
    pub limit: Option<Quantity>,

    /// Share of what is over quota. 0: only what no other queue wants, and first to be reclaimed.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 65535))]
    pub weight: i64,
}

fn zero() -> Quantity {
    Quantity("0".to_owned())
}

fn one() -> i64 {
    1
}

/// What a queue holds and waits for; observed at most every second.
#[derive(Debug, Clone, Default, PartialEq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// metadata.generation of the spec that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Ready is False with a reason: ParentNotFound, ParentNotReady, Cycle, InvalidResources or
    /// InvalidSpec. Where it is True, its message names what no node has of spec.resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,

    /// What its gangs hold, by resource and by resource@product.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::amounts")]
    pub allocated: BTreeMap<String, Quantity>,

    /// What its gangs hold and ask for, by resource and by resource@product.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::amounts")]
    pub requested: BTreeMap<String, Quantity>,

    /// What fairness would give the queue now, by resource and by resource@product.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::amounts")]
    pub fair_share: BTreeMap<String, Quantity>,

    /// The largest of the queue's shares of what the cluster has of a resource, such as 0.42.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dominant_share: Option<String>,

    /// What the queue has used on average, the past counting ever less; with useHalfLife in the
    /// configuration. The scheduler reads it at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past_use: Option<PastUse>,

    /// How long gangs of the queue have run that ended well; with reservations. Gangs that do not
    /// say how long they run are expected to run as long. The scheduler reads it at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtimes: Option<LearnedRuntimes>,

    /// How many gangs of the queue, and of all queues below it, wait and run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_groups: Option<PodGroupCounts>,

    /// The schedulerName of the gpu-batch that wrote this. Another one leaves it alone while it has
    /// no gangs here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
}

/// What a queue has used on average.
#[derive(Debug, Clone, Default, PartialEq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastUse {
    /// Up to when it is counted, as in 2026-11-21T10:00:00Z.
    #[serde(default)]
    pub until: String,
    /// What was held, by resource and by resource@product; what was held one half-life ago counts
    /// half as much as what is held now.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::amounts")]
    pub average: BTreeMap<String, Quantity>,
}

/// How long gangs of a queue have run, the newest run last.
#[derive(Debug, Clone, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LearnedRuntimes {
    /// The last gangs of the queue, in seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub seconds: Vec<i64>,
    /// The last gangs of each owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub owners: Vec<OwnerRuntimes>,
}

/// How long the gangs of one owner have run, the newest run last.
#[derive(Debug, Clone, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerRuntimes {
    /// The name of its gangs without the end that is counted or generated, as in
    /// vision/job/nightly.
    pub owner: String,
    /// The last gangs, in seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub seconds: Vec<i64>,
}

/// How many gangs wait and how many run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupCounts {
    /// Gangs that wait.
    #[serde(default)]
    pub pending: i64,
    /// Gangs whose minimum is met.
    #[serde(default)]
    pub running: i64,
}
