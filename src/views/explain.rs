//! Explanations as they are written in JSON; [`draw`](fn@draw) makes text of them for people.
//!
//! The running scheduler serves the JSON and `gpu-batch explain` draws it, so both say the same.

mod draw;
mod from_engine;

pub use draw::draw;

use crate::kube::api::Members;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a gang waits, what is missing, and what would let it start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationView {
    /// `NS/NAME` of a PodGroup; `NS/KIND/NAME` of an implicit gang: `NS/job/NAME`, `NS/pod/NAME`.
    pub gang: String,
    /// The pod that was asked about; `null`: the gang was.
    pub pod: Option<PodView>,
    /// The queue that it names, existing or not.
    pub queue: String,
    /// Pending, Binding, Running, Succeeded or Failed.
    pub phase: String,
    /// Its members, by what has become of them.
    pub members: Members,
    /// How many more members must get a place before it runs.
    pub needed: u32,
    /// Why it waits; `null`: nothing of it waits.
    pub reason: Option<String>,
    /// The reason as a sentence.
    pub message: String,
    /// `Proved`: there is no place. `Bounded`: none was found within the bound of the search.
    /// `null`: it waits for something else.
    pub proof: Option<String>,
    /// How near its members come to fit together, where they are of several shapes or sub-groups;
    /// `null`: they are not, none or all of them have places, or they ask for parts of cards.
    pub together: Option<TogetherView>,
    /// The shortages on nodes, for each shape of its members.
    pub shortages: Vec<ShortageView>,
    /// The bound of a queue that it would exceed.
    pub excess: Option<ExcessView>,
    /// Its place in the order; `null`: something keeps it out of it.
    pub standing: Option<StandingView>,
    /// What would let it start, a sentence each, the nearest first.
    pub remedies: Vec<String>,
    /// What else its owner should know, a sentence each: it holds nothing up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The pod that was asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodView {
    /// `NS/NAME`.
    pub name: String,
    /// Whether it waits for a node.
    pub waits: bool,
    /// Its node, also while the binding is on its way.
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
    /// Within what the gang must be: the name of a level, `node` or `cluster`.
    pub level: String,
    /// The domain or node that comes nearest; `null`: the cluster.
    pub domain: Option<String>,
    /// How many members must be placed.
    pub need: u64,
    /// How many of them have a place together.
    pub placed: u64,
    /// Whether no way to place them leaves out fewer; else none was found within a bound.
    pub proved: bool,
    /// How many have none.
    pub members_short: u64,
    /// The GPUs that those ask for.
    pub gpus_short: u64,
    /// The members without a place, in one way to place the most.
    pub left: Vec<LeftOutView>,
}

/// Members of one shape and sub-group that have no place beside the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOutView {
    /// Their sub-group by path; `null`: the gang has none.
    pub sub_group: Option<String>,
    /// How many members of the sub-group, or of the gang, must be placed.
    pub need: u64,
    /// How many of this shape have no place.
    pub members: u64,
    /// What one of them asks for, in words that tell the shapes apart.
    pub asks: String,
    /// GPUs of all of them.
    pub gpus: u64,
    /// The level of which the sub-group, or one above it, requires one domain; `null`: none does.
    pub level: Option<String>,
    /// The domain of that level in which others of that group have their places; `null`: none has.
    pub domain: Option<String>,
}

/// How much room the members of one shape lack in the domain that comes nearest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShortageView {
    /// The sub-groups whose members these are, by path; several lack the same, each for itself.
    /// Empty: members of the whole gang.
    pub sub_groups: Vec<String>,
    /// The sub-groups that require one domain of the level; empty: the gang does, or nobody.
    pub required_by: Vec<String>,
    /// What one member asks for: quantities by resource.
    pub requests: BTreeMap<String, String>,
    /// What of it matters, in words: its GPUs or other scarcest resource, and what most nodes have
    /// too little of.
    pub asks: String,
    /// The labels that its nodes must have: `zone=a or b`.
    pub selects: Vec<String>,
    /// A sentence for each resource that it asks for and no node has.
    #[serde(default)]
    pub unknown_resources: Vec<String>,
    /// A sentence for each label that it insists on and no node has.
    pub unknown_labels: Vec<String>,
    /// A sentence about a level down to that one whose label no node has, which makes each node a
    /// domain of its own; `null`: there is none.
    pub unlabelled_level: Option<String>,
    /// The limits on GPU models that leave fewer GPUs than these members ask for, in words.
    #[serde(default)]
    pub model_limits: Option<String>,
    /// Within what they must fit together: the name of a level, `node` or `cluster`.
    pub level: String,
    /// The domain or node that comes nearest; `null`: the cluster.
    pub domain: Option<String>,
    /// How many domains of the level there are for them.
    pub domains: u32,
    /// How many of these have room for all of them.
    pub domains_with_room: u32,
    /// How many members must be placed; of several sub-groups, how many of each.
    pub need: u64,
    /// How many fit there now.
    pub fits: u64,
    /// How many do not.
    pub members_short: u64,
    /// The GPUs that those ask for.
    pub gpus_short: u64,
    /// How many would fit in the best domain of the level if all nodes were empty.
    pub fits_empty: u64,
    /// How many fit in the whole cluster now.
    pub fits_anywhere: u64,
    /// The nodes of the domain that comes nearest.
    pub nearest: NodesView,
    /// All nodes.
    pub all: NodesView,
    /// The gangs that hold the missing resource there: first those that end first, then those that
    /// hold most.
    pub holders: Vec<HolderView>,
}

/// What nodes say to a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodesView {
    /// How many there are.
    pub nodes: u32,
    /// How many have room for at least one.
    pub with_room: u32,
    /// Why the others have none, most nodes first.
    pub refused: Vec<RefusedView>,
}

/// Nodes that refuse a member for the same thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedView {
    /// The predicate of the sentence about these nodes: `had insufficient nvidia.com/gpu`.
    pub because: String,
    /// How many they are.
    pub nodes: u32,
    /// How many members their free amounts would hold; 0 where an amount is missing.
    pub would_hold: u64,
}

/// A holder of the missing resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HolderView {
    /// A gang; `null`: pods of other schedulers.
    pub gang: Option<String>,
    /// How much, in words.
    pub holds: String,
    /// On how many nodes.
    pub nodes: u32,
    /// How many members would fit there if it ended, as far as what is scarcest goes.
    pub makes_room_for: u64,
    /// When it is expected to end; `null`: nobody said.
    pub ends: Option<String>,
}

/// A bound of a queue that the gang would exceed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExcessView {
    /// Whose bound.
    pub queue: String,
    /// `resource` or `resource@product`.
    pub resource: String,
    /// `limit` or `quota`.
    pub bound: String,
    /// How much is allowed.
    pub allowed: String,
    /// How much is held; of a quota by non-preemptible gangs alone.
    pub held: String,
    /// How much is asked for on top.
    pub asked: String,
}

/// The place of the gang in the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StandingView {
    /// Its place in the line of its queue; 1 is the first.
    pub position: u32,
    /// How long the line is.
    pub length: u32,
    /// A part of it is bound: it comes before everything else.
    pub unfinished: bool,
    /// It replaces lost members.
    pub replacement: bool,
    /// Its priority.
    pub priority: i32,
    /// Its minimum runs, and this is beyond it.
    pub surplus: bool,
    /// When it was created.
    pub created: String,
    /// Those right before it, the nearest first.
    pub before: Vec<AheadView>,
    /// Its queue and those above it among their siblings, the highest first.
    pub levels: Vec<LevelView>,
}

/// A gang that stands before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AheadView {
    /// Its name.
    pub gang: String,
    /// What puts it before.
    pub because: String,
    /// Why it waits itself.
    pub reason: String,
}

/// A queue among its siblings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LevelView {
    /// Its name.
    pub queue: String,
    /// The queue above; `null`: the root.
    pub parent: Option<String>,
    /// Its place among the siblings for which gangs wait; 1 is served first.
    pub position: u32,
    /// How many those are, itself among them.
    pub siblings: u32,
    /// The claim by which it is compared.
    pub claim: ClaimView,
    /// The sibling that is served right before it.
    pub before: Option<SiblingView>,
}

/// A sibling that is served before a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiblingView {
    /// Its name.
    pub queue: String,
    /// The claim by which it is compared.
    pub claim: ClaimView,
    /// What puts it before: Quota, Priority, Weight, Share, Age or Name.
    pub decided_by: String,
    /// The gang that it would send: the first in its line, or in that of a queue below it.
    pub gang: String,
    /// Why that gang waits. `WaitingForTurn`: it is tried before. Everything else: it was refused,
    /// and is passed over until something helps it.
    pub reason: String,
}

/// A quota, in quantities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaView {
    /// `resource` or `resource@product`.
    pub resource: String,
    /// What the queue holds of it.
    pub held: String,
    /// The quota; `0`: it has none of this.
    pub quota: String,
    /// The amount that the quota counts as: no more than what the queue above it holds, or than
    /// there is.
    pub counts_as: String,
}

/// What a queue is compared by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimView {
    /// Whether it has a quota at all.
    pub has_quota: bool,
    /// Which part of its quota is used; `null`: it has none left for the gang.
    pub quota_used: Option<String>,
    /// The quota that this is about; `null`: it has none at all, or the gang asks for nothing that
    /// is divided.
    #[serde(default)]
    pub quota: Option<QuotaView>,
    /// Its priority.
    pub priority: i32,
    /// Its weight is 0 for something that the gang asks for.
    pub weightless: bool,
    /// The share that is compared: its dominant share over its weight, as that counts.
    pub share: String,
    /// Its dominant share: what it uses of the resource, of all that is divided.
    pub dominant_share: String,
    /// The resource of that share; `null`: it uses nothing.
    pub resource: Option<String>,
    /// The amount of the resource that it uses. Of a queue with queues below, without what one of
    /// those has beyond its turn.
    pub used: Option<String>,
    /// How much of the resource is divided.
    pub of: Option<String>,
    /// Its weight for the resource.
    pub weight: Option<u16>,
    /// What the weight counts because of past use; `null`: what it says.
    pub counted_weight: Option<String>,
}
