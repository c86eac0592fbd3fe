//! Explanations as they are written in JSON; [`draw`](fn@draw) makes text of them for people.
//!
//! The running scheduler serves the JSON and `gpu-batch explain` draws it, so page and table agree.

mod draw;
mod eviction;
mod from_engine;
mod start;

pub use draw::draw;
pub use eviction::{EvictedView, EvictionView, PlaceView, TakersView};
pub use start::{EndView, StartView};

use crate::kube::api::Members;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a gang waits, what is missing, and what would let it start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationView {
    /// `NS/NAME` of a PodGroup; `NS/KIND/NAME` of an implicit gang: `NS/job/NAME`, `NS/pod/NAME`.
    pub gang: String,
    /// The pod that was asked about; `null`: the question was about the gang.
    pub pod: Option<PodView>,
    /// The queue that the gang names, existing or not.
    pub queue: String,
    /// Pending, Binding, Running, Succeeded or Failed.
    pub phase: String,
    /// The members of the gang, by what has become of them.
    pub members: Members,
    /// How many more members must get a place before the gang runs.
    pub needed: u32,
    /// Whether no other queue can reclaim the gang's minimum: it is within the quota of its queue,
    /// or is not preemptible; `null`: it holds nothing, or it was not looked at yet.
    #[serde(default)]
    pub protected: Option<bool>,
    /// Why the gang waits; `null`: no member of it waits.
    pub reason: Option<String>,
    /// The reason as a sentence.
    pub message: String,
    /// `Proved`: there is no place. `Bounded`: none was found within the bound of the search.
    /// `null`: the gang waits for something else.
    pub proof: Option<String>,
    /// How near the members come to fit together, where they are of several shapes or sub-groups.
    /// `null`: they are not, none or all of them have places, or they ask for parts of cards.
    pub together: Option<TogetherView>,
    /// The shortages on nodes, for each shape of the members.
    pub shortages: Vec<ShortageView>,
    /// The bound of a queue that the gang would exceed.
    pub excess: Option<ExcessView>,
    /// The gang's place in the order; `null`: something keeps the gang out of the order.
    pub standing: Option<StandingView>,
    /// When the gang is expected to start. `null`: it does not wait for room alone, or waits for no
    /// more than its right to take room from others, or there are no reservations.
    #[serde(default)]
    pub start: Option<StartView>,
    /// Whose room the gang could take, or why nobody's. `null`: the gang does not wait for room.
    #[serde(default)]
    pub eviction: Option<EvictionView>,
    /// The queues and gangs that could take the gang's own room; `null`: the gang does not run.
    #[serde(default)]
    pub takers: Option<TakersView>,
    /// What would let the gang start, a sentence each, the nearest first.
    pub remedies: Vec<String>,
    /// What else the gang's owner should know, a sentence each; none of it keeps the gang waiting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The pod that was asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodView {
    /// `NS/NAME`.
    pub name: String,
    /// Whether the pod waits for a node.
    pub waits: bool,
    /// The pod's node, also while the binding is on its way.
    pub node: Option<String>,
    /// Whether the binding is on its way: the API server has not said yet that the pod is on the
    /// node.
    #[serde(default)]
    pub binding: bool,
}

/// How many members of several shapes or sub-groups have a place together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TogetherView {
    /// The area within which the gang must be: the name of a level, `node` or `cluster`.
    pub level: String,
    /// The domain or node that comes nearest; `null`: the cluster.
    pub domain: Option<String>,
    /// How many members must be placed.
    pub need: u64,
    /// How many of the members that must be placed have a place together.
    pub placed: u64,
    /// Whether it is proved that no way to place the members leaves out fewer; else no such way was
    /// found within a bound.
    pub proved: bool,
    /// How many members have no place.
    pub members_short: u64,
    /// The GPUs that the members without a place ask for.
    pub gpus_short: u64,
    /// The members without a place, in one way to place the most.
    pub left: Vec<LeftOutView>,
}

/// Members of one shape and sub-group that have no place beside the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOutView {
    /// The sub-group of the members, by path; `null`: the gang has none.
    pub sub_group: Option<String>,
    /// How many members of the sub-group, or of the gang, must be placed.
    pub need: u64,
    /// How many members of this shape have no place.
    pub members: u64,
    /// What one such member asks for, in words that tell the shapes apart.
    pub asks: String,
    /// The GPUs of all such members.
    pub gpus: u64,
    /// The level of which the sub-group, or one above it, requires one domain; `null`: none
    /// requires one.
    pub level: Option<String>,
    /// The domain of that level in which other members of the group have their places; `null`: no
    /// member has one.
    pub domain: Option<String>,
}

/// How much room the members of one shape lack in the domain that comes nearest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShortageView {
    /// The sub-groups of these members, by path; each of several sub-groups lacks this room for
    /// itself. Empty: members of the whole gang.
    pub sub_groups: Vec<String>,
    /// The sub-groups that require one domain of the level; empty: the whole gang does, or nothing
    /// requires one.
    pub required_by: Vec<String>,
    /// What one member asks for: quantities by resource.
    pub requests: BTreeMap<String, String>,
    /// What of the requests matters, in words: GPUs or another scarcest resource, and what most
    /// nodes have too little of.
    pub asks: String,
    /// The labels that the members require of a node: `zone=a or b`.
    pub selects: Vec<String>,
    /// A sentence for each resource that the members ask for and no node has.
    #[serde(default)]
    pub unknown_resources: Vec<String>,
    /// A sentence for each label that the members require and no node has.
    pub unknown_labels: Vec<String>,
    /// A sentence about this level or one above it whose label no node has, which makes each node a
    /// domain of its own; `null`: there is no such level.
    pub unlabelled_level: Option<String>,
    /// The limits on GPU models that leave fewer GPUs than these members ask for, in words.
    #[serde(default)]
    pub model_limits: Option<String>,
    /// The area within which the members must fit together: the name of a level, `node` or
    /// `cluster`.
    pub level: String,
    /// The domain or node that comes nearest; `null`: the cluster.
    pub domain: Option<String>,
    /// How many domains of the level there are for the members.
    pub domains: u32,
    /// How many of these domains have room for all the members.
    pub domains_with_room: u32,
    /// How many members must be placed; of several sub-groups, how many of each.
    pub need: u64,
    /// How many members fit in the domain that comes nearest, now.
    pub fits: u64,
    /// How many members do not fit in the domain that comes nearest.
    pub members_short: u64,
    /// The GPUs that the members without room ask for.
    pub gpus_short: u64,
    /// How many members would fit in the best domain of the level if all nodes were empty.
    pub fits_empty: u64,
    /// How many members fit in the whole cluster now.
    pub fits_anywhere: u64,
    /// The nodes of the domain that comes nearest.
    pub nearest: NodesView,
    /// All nodes.
    pub all: NodesView,
    /// The gangs that hold the missing resource in the domain that comes nearest: first those that
    /// end first, then those that hold most.
    pub holders: Vec<HolderView>,
    /// Room in that domain that is kept for others, for which pods leave, or were moved.
    pub kept: Vec<KeptRoomView>,
}

/// What nodes say to a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodesView {
    /// How many nodes there are.
    pub nodes: u32,
    /// How many nodes have room for at least one member.
    pub with_room: u32,
    /// Why the other nodes have no room, most nodes first.
    pub refused: Vec<RefusedView>,
}

/// Nodes that refuse a member for one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedView {
    /// The predicate of the sentence about these nodes: `had insufficient nvidia.com/gpu`.
    pub because: String,
    /// How many nodes there are of this sort.
    pub nodes: u32,
    /// How many members the free amounts of these nodes would hold; 0 where an amount is missing.
    pub would_hold: u64,
}

/// Room that no pod uses, and that is kept for another gang.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptRoomView {
    /// Those who are to have the room, in words.
    pub r#for: String,
    /// How much of the missing resource is kept, in words.
    pub amount: String,
    /// On how many nodes it is kept.
    pub nodes: u32,
    /// Until when it is kept at most; `null`: until they are placed, or give up.
    pub until: Option<String>,
}

/// A holder of the missing resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HolderView {
    /// A gang; `null`: pods of other schedulers.
    pub gang: Option<String>,
    /// How much the holder holds, in words.
    pub holds: String,
    /// On how many nodes the holder holds it.
    pub nodes: u32,
    /// How many members would fit there if the holder ended, as far as the scarcest resource goes.
    pub makes_room_for: u64,
    /// When the holder is expected to end; `null`: not known.
    pub ends: Option<String>,
}

/// A bound of a queue that the gang would exceed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExcessView {
    /// The queue whose bound it is.
    pub queue: String,
    /// `resource` or `resource@product`.
    pub resource: String,
    /// `limit` or `quota`.
    pub bound: String,
    /// How much the bound allows.
    pub allowed: String,
    /// How much is held in the queue; of a quota, how much non-preemptible gangs hold.
    pub held: String,
    /// How much the gang asks for on top.
    pub asked: String,
}

/// The place of the gang in the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StandingView {
    /// The gang's place in the line of its queue; 1 is the first.
    pub position: u32,
    /// How many gangs stand in the line.
    pub length: u32,
    /// Whether a part of the gang is bound: then it comes before everything else.
    pub unfinished: bool,
    /// Whether the gang replaces lost members.
    pub replacement: bool,
    /// The gang's priority.
    pub priority: i32,
    /// Whether the gang's minimum runs, so that what waits is surplus.
    pub surplus: bool,
    /// When the gang was created.
    pub created: String,
    /// The gangs right before it, the nearest first.
    pub before: Vec<AheadView>,
    /// The gang's queue and the queues above it among their siblings, the highest first.
    pub levels: Vec<LevelView>,
}

/// A gang that stands before the explained one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AheadView {
    /// The name of the gang before.
    pub gang: String,
    /// What puts it before the explained gang.
    pub because: String,
    /// Why the gang before waits itself.
    pub reason: String,
}

/// A queue among its siblings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LevelView {
    /// The name of the queue.
    pub queue: String,
    /// The queue above; `null`: the root.
    pub parent: Option<String>,
    /// The queue's place among the siblings for which gangs wait; 1 is served first.
    pub position: u32,
    /// How many siblings have waiting gangs, the queue among them.
    pub siblings: u32,
    /// What the queue is compared by.
    pub compared_by: ComparedByView,
    /// The sibling that is served right before the queue.
    pub before: Option<SiblingView>,
}

/// A sibling that is served before a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiblingView {
    /// The name of the sibling.
    pub queue: String,
    /// What the sibling is compared by.
    pub compared_by: ComparedByView,
    /// What puts the sibling before the queue: Quota, Priority, Weight, Share, Age or Name.
    pub decided_by: String,
    /// The gang that the sibling would send: the first in its line, or in that of a queue below it.
    pub gang: String,
    /// Why that gang waits. `WaitingForTurn`: it is tried before the explained one. Any other
    /// reason: it was refused, and is passed over until something helps it.
    pub reason: String,
}

/// A quota, in quantities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaView {
    /// `resource` or `resource@product`.
    pub resource: String,
    /// How much of the resource the queue holds.
    pub held: String,
    /// How much more of the resource the gang asks for; `null`: nothing of the quota is left.
    #[serde(default)]
    pub asked: Option<String>,
    /// The quota; `0`: the queue has none of the resource.
    pub quota: String,
    /// The amount that the quota counts as: no more than what the queue above it holds, or than
    /// there is.
    pub counts_as: String,
}

/// What a queue is compared by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparedByView {
    /// Whether the queue has a quota at all.
    pub has_quota: bool,
    /// Which part of the queue's quota is used; `null`: the gang would not leave the queue within
    /// quota.
    pub quota_used: Option<String>,
    /// Which part of the queue's quota would be used after the start of the gang; `null`: as for
    /// `quotaUsed`.
    #[serde(default)]
    pub quota_used_after: Option<String>,
    /// The quota whose use is compared; `null`: the queue has none at all, or the gang asks for
    /// nothing that is divided.
    #[serde(default)]
    pub quota: Option<QuotaView>,
    /// The queue's priority.
    pub priority: i32,
    /// Whether the queue's weight is 0 for something that the gang asks for.
    pub weightless: bool,
    /// The share that is compared: the dominant share over the weight, as the weight counts.
    pub share: String,
    /// The dominant share over the weight after the start of the gang.
    #[serde(default)]
    pub share_after: String,
    /// The queue's dominant share: its largest share of a resource that is divided.
    pub dominant_share: String,
    /// The resource of the dominant share; `null`: the queue uses nothing.
    pub resource: Option<String>,
    /// How much of that resource the queue uses. For a queue with queues below, without what one of
    /// these has beyond its turn.
    pub used: Option<String>,
    /// How much of that resource is divided.
    pub of: Option<String>,
    /// The queue's weight for that resource.
    pub weight: Option<u16>,
    /// What the weight counts because of past use; `null`: it counts as it is written.
    pub counted_weight: Option<String>,
}
