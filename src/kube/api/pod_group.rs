//! The kind PodGroup: a gang.

#![expect(
    unreachable_pub,
    reason = "KubeSchema repeats the types inside a function"
)]

use super::schema::{LABEL, LABEL_MESSAGE, NAME, NAME_MESSAGE};
use super::{Duration, Placement, Runtime, SignedDuration};
use gpu_batch_policies::status::MemberCounts;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What a gang is and what it needs.
#[derive(Debug, Clone, Default, PartialEq, CustomResource, KubeSchema, Serialize, Deserialize)]
#[kube(
    group = "gpu-batch.io",
    version = "v1alpha1",
    kind = "PodGroup",
    plural = "podgroups",
    shortname = "gpg",
    category = "gpu-batch",
    namespaced,
    status = "PodGroupStatus",
    derive = "PartialEq",
    doc = "A PodGroup is a gang: pods that start together or not at all. Pods join it by the label \
           gpu-batch.io/pod-group.",
    label("app.kubernetes.io/name", "gpu-batch"),
    selectable = ".spec.queue",
    printcolumn(name = "Queue", type_ = "string", json_path = ".spec.queue"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Min",
        type_ = "integer",
        json_path = ".status.members.expected",
        description = "Pods that start together"
    ),
    printcolumn(name = "Bound", type_ = "integer", json_path = ".status.members.bound"),
    printcolumn(name = "Running", type_ = "integer", json_path = ".status.members.running"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.reason",
        description = "Why it waits"
    ),
    printcolumn(
        name = "Estimated start",
        type_ = "string",
        json_path = ".status.estimatedStart",
        description = "When it is promised to start at the latest"
    ),
    printcolumn(name = "Message", type_ = "string", priority = 1, json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = (
        "self.metadata.name.size() <= 63",
        "the name of a PodGroup has at most 63 characters, because labels refer to it",
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "has(self.queue) == has(oldSelf.queue) \
         && (!has(self.queue) || self.queue == oldSelf.queue)"
    )
    .message("is immutable: create another PodGroup to change the queue")
    .field_path(".queue"),
    validation = Rule::new(
        "!has(self.minMember) || !has(self.subGroups) || self.subGroups.size() == 0"
    )
    .message("must be absent with subGroups, where every leaf has a minMember of its own")
    .field_path(".minMember"),
    validation = Rule::new(
        "!has(self.minSubGroups) || (has(self.subGroups) \
         && self.subGroups.filter(g, g.parent == '').size() >= self.minSubGroups)"
    )
    .message("must not be more than there are subGroups without a parent")
    .field_path(".minSubGroups")
)]
pub struct PodGroupSpec {
    /// The Queue. Immutable. Omitted: default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    #[x_kube(validation = (NAME, NAME_MESSAGE))]
    pub queue: Option<String>,

    /// This many pods start together or none does; pods above it are elastic. Default 1; absent
    /// with subGroups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_member: Option<i64>,

    /// The PriorityClass inside the queue. Omitted: the lowest of its pods' priorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = (NAME, NAME_MESSAGE))]
    pub priority_class_name: Option<String>,

    /// false: only ever within quota, and never evicted. Independent of priority. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub preemptible: Option<bool>,

    /// A tree of roles or slices; then every pod names a leaf by the label gpu-batch.io/subgroup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["name".to_owned()]),
        validation = (
            "self.all(g, g.parent == '' || self.exists(p, p.name == g.parent))",
            "every parent must be the name of another subGroup",
        ),
        validation = (
            "self.size() == 0 || self.exists(g, g.parent == '')",
            "at least one subGroup must have no parent",
        ),
        validation = (
            "self.all(g, !has(g.minMember) || !self.exists(c, c.parent == g.name))",
            "minMember is only for subGroups without children",
        ),
        validation = (
            "self.all(g, !has(g.minSubGroups) \
             || self.filter(c, c.parent == g.name).size() >= g.minSubGroups)",
            "minSubGroups of a subGroup must not be more than its direct children",
        )
    )]
    pub sub_groups: Vec<SubGroup>,

    /// How many of the subGroups without a parent start together. Omitted: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub min_sub_groups: Option<i64>,

    /// Where the gang must or should be. Omitted: the finest level of the Topology default is
    /// preferred, if that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyConstraint>,

    /// How nodes are chosen: binpack, spread, best-fit or fragmentation, or one of them for GPU and
    /// one for CPU work, as in {gpu: binpack, cpu: spread}. With spread members are kept near only
    /// as far as topology says so, and spread there. Omitted: the queue's, else the
    /// configuration's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,

    /// How long it will run, for backfill and start estimates: longer than 0s, at most 876000h (a
    /// hundred years). A smaller activeDeadlineSeconds of its pods counts instead. Omitted:
    /// activeDeadlineSeconds, else learned from earlier runs of the same owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_runtime: Option<Runtime>,

    /// Pending this long before it may move or evict others, so that autoscalers go first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption_delay: Option<Duration>,

    /// A running gang below its minimum for this long is evicted whole; negative: never. Omitted:
    /// the configuration's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness_grace_period: Option<SignedDuration>,
}

/// One role or slice of a PodGroup.
#[derive(Debug, Clone, Default, PartialEq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.parent != self.name")
        .message("a subGroup cannot be its own parent")
        .field_path(".parent")
)]
pub struct SubGroup {
    /// The name, unique in the PodGroup; pods name a leaf by the label gpu-batch.io/subgroup.
    #[schemars(length(max = 63))]
    #[x_kube(validation = (LABEL, LABEL_MESSAGE))]
    pub name: String,

    /// The subGroup above this one. Empty: child of the root.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub parent: String,

    /// Of a leaf: this many pods start together. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_member: Option<i64>,

    /// Of an inner node: this many direct children start together. Default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub min_sub_groups: Option<i64>,

    /// Where the subGroup must or should be, inside the domain of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyConstraint>,
}

/// Where a gang or a sub-group must or should be.
#[derive(Debug, Clone, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyConstraint {
    /// A Topology object. Omitted: default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = (NAME, NAME_MESSAGE))]
    pub name: Option<String>,

    /// The whole (sub)group inside one domain of this level, or it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    #[x_kube(validation = (LABEL, LABEL_MESSAGE))]
    pub required: Option<String>,

    /// As near as this level if possible, wider if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    #[x_kube(validation = (LABEL, LABEL_MESSAGE))]
    pub preferred: Option<String>,
}

/// What has become of a gang.
#[derive(Debug, Clone, Default, PartialEq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupStatus {
    /// metadata.generation of the spec that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Pending, Binding (requests in flight), Running (minimum met), Succeeded (all ended, none
    /// failed) or Failed (all ended, one failed); derived, never latched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,

    /// How many members it has, by what has become of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<Members>,

    /// PodGroupScheduled: True or False, with reason and message. Stale, once its minimum was met:
    /// True while it lacks members that it has lost, else False.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,

    /// Why it waits; absent once the minimum is met. One of WaitingForMembers, PodGroupNotFound,
    /// SubGroupNotFound, ConflictingGroups, QueueNotFound, QueueNotLeaf, QueueClosed,
    /// NamespaceNotAllowed, OverLimit, NonPreemptibleOverQuota, TopologyNotFound, DoesNotFit,
    /// NotFoundWithinBound, WaitingForTurn, WaitingForEviction, WaitingForKubeScheduler, Reserved,
    /// PreemptionDelay, InvalidSpec, Unsupported, WaitingForVolumes, SchedulingGated, MembersLost
    /// and BindingFailed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,

    /// A sentence about the reason, or about the phase where there is no reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// Whether the gang's minimum is within its queue's quota, so that no other queue can reclaim
    /// it; omitted while the gang holds nothing. Its surplus is never protected before the minima
    /// of other gangs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<bool>,

    /// When it will start at the latest, if all runs as expected: it has a reservation for that
    /// time. Omitted otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_start: Option<Time>,

    /// The schedulerName of the gpu-batch that wrote this. Another one leaves it alone while it has
    /// no pods here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
}

/// How many members a gang has, by what has become of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Members {
    /// The minimum.
    #[serde(default)]
    pub expected: i64,
    /// Pods that exist.
    #[serde(default)]
    pub created: i64,
    /// Pods with a node that have not ended.
    #[serde(default)]
    pub bound: i64,
    /// Pods that run.
    #[serde(default)]
    pub running: i64,
    /// Pods that ended well.
    #[serde(default)]
    pub succeeded: i64,
    /// Pods that ended badly.
    #[serde(default)]
    pub failed: i64,
}

impl From<MemberCounts> for Members {
    fn from(members: MemberCounts) -> Self {
        Self {
            expected: members.expected.into(),
            created: members.created.into(),
            bound: members.bound.into(),
            running: members.running.into(),
            succeeded: members.succeeded.into(),
            failed: members.failed.into(),
        }
    }
}
