//! The books of what pods take: rooms on nodes, accounts of queues, the capacity that shares
//! divide.

use super::ClusterState;
use super::class::{Class, in_thousandths};
use super::footprints::Footprints;
use super::pod::{Account, Pod, Stage};
use crate::facts::{Amount, NodeFacts, Readiness, UnixMs, saturated};
use crate::gpu::GpuNode;
use crate::ids::{ClassId, GangId, NodeId, PodId, ResourceId};
use crate::queues::{Demand, GovernedId, QueueId, Refreshed};
use crate::resources::{GPU, ResourceNames, Resources, amount_of};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

/// How long a node that is not ready still counts: a short outage changes no share.
const LOST_NODE_COUNTS_MS: u64 = 300_000;

/// What one node adds to what is divided, as queues count it: what it has minus what pods without
/// an account take, and its GPU model.
type Contribution = (Resources, Option<Box<str>>);

/// The resources that fair shares divide: what nodes have, minus what pods without an account take.
/// A node that has not been ready for [`LOST_NODE_COUNTS_MS`] adds nothing.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    /// When each node was lost that is not ready and still counts.
    lost: BTreeMap<NodeId, UnixMs>,
    /// Nodes that have been lost for so long that they do not count.
    out: BTreeSet<NodeId>,
    contributions: BTreeMap<NodeId, Contribution>,
    totals: BTreeMap<(ResourceId, Option<Box<str>>), u128>,
    /// Nodes whose contribution may have changed since the queues were last told the capacity.
    stale: BTreeSet<NodeId>,
    /// The hierarchy of queues was built anew, so the capacity must be told again.
    forgotten: bool,
}

impl Capacity {
    pub(crate) fn node_changed(
        &mut self,
        node: NodeId,
        before: Option<&NodeFacts>,
        after: &NodeFacts,
        now_ms: UnixMs,
    ) {
        self.stale.insert(node);
        if after.readiness.is_ready() {
            self.lost.remove(&node);
            self.out.remove(&node);
            return;
        }
        let since_ms = match (before, after.readiness) {
            (Some(before), _) if !before.readiness.is_ready() => return,
            (
                _,
                Readiness::Lost {
                    since_ms: Some(said),
                },
            ) => said.min(now_ms),
            (Some(_), _) => now_ms,
            // A node that was never seen ready, and does not say since when it is lost, was always
            // lost.
            (None, _) => 0,
        };
        self.lost.insert(node, since_ms);
    }

    pub(crate) fn node_removed(&mut self, node: NodeId) {
        self.stale.insert(node);
        self.lost.remove(&node);
        self.out.remove(&node);
    }

    /// The resources that nodes have added.
    pub(crate) fn resources(&self) -> impl Iterator<Item = ResourceId> {
        let amounts = self.contributions.values().flat_map(|(amounts, _)| amounts);
        amounts.map(|(resource, _)| *resource)
    }

    /// How many GPUs a node adds, in thousandths of a card; for the audit.
    pub(crate) fn gpus_of(&self, node: NodeId) -> Amount {
        let contribution = self.contributions.get(&node);
        contribution.map_or(0, |(amounts, _)| amount_of(amounts, ResourceNames::gpu()))
    }

    /// Whether a node has been lost for so long that it does not count.
    pub(crate) fn is_out(&self, node: NodeId) -> bool {
        self.out.contains(&node)
    }

    /// When the next lost node stops counting.
    pub(crate) fn deadline(&self) -> Option<UnixMs> {
        self.lost
            .values()
            .map(|since| since.saturating_add(LOST_NODE_COUNTS_MS))
            .min()
    }

    /// Takes out the nodes that were lost for too long by now, and returns them.
    fn expire(&mut self, now_ms: UnixMs) -> Vec<NodeId> {
        let gone = |since: &UnixMs| since.saturating_add(LOST_NODE_COUNTS_MS) <= now_ms;
        let nodes: Vec<NodeId> = self
            .lost
            .iter()
            .filter(|(_, since)| gone(since))
            .map(|(node, _)| *node)
            .collect();
        for node in &nodes {
            self.lost.remove(node);
            self.out.insert(*node);
            self.stale.insert(*node);
        }
        nodes
    }

    /// Replaces what a node adds. The totals stay exact: only what was added is taken off.
    fn replace(&mut self, node: NodeId, contribution: Option<Contribution>) {
        if let Some((amounts, product)) = self.contributions.remove(&node) {
            self.shift(&amounts, product.as_deref(), u128::saturating_sub);
        }
        if let Some((amounts, product)) = contribution {
            self.shift(&amounts, product.as_deref(), u128::saturating_add);
            self.contributions.insert(node, (amounts, product));
        }
    }

    fn shift(&mut self, amounts: &Resources, product: Option<&str>, by: fn(u128, u128) -> u128) {
        for (resource, amount) in amounts {
            let total = self.totals.entry((*resource, None)).or_insert(0);
            *total = by(*total, u128::from(*amount));
            if let Some(product) = product.filter(|_| *resource == ResourceNames::gpu()) {
                let total = self
                    .totals
                    .entry((*resource, Some(product.into())))
                    .or_insert(0);
                *total = by(*total, u128::from(*amount));
            }
        }
    }
}

impl ClusterState {
    /// What one pod of a class counts for in a queue, by governed key. GPUs count also under the
    /// model of `node`, or without a node under the only model that the class can run on.
    ///
    /// Without a node no pod counts for less than it does where it may run later, so limits that
    /// are kept without knowing the node are kept on it, too.
    pub(crate) fn demand(&self, id: ClassId, node: Option<NodeId>) -> Demand {
        let class = &self.classes[id];
        // Copied as a slice, because `clone` goes element by element.
        let kept = class.governed.as_deref().map(Demand::from_slice);
        let mut demand = kept.unwrap_or_else(|| self.governed_part(class));
        let counted = self.counted(id, node);
        if let Some((_, amount)) = demand.iter_mut().find(|(key, _)| *key == GovernedId::GPU) {
            *amount = counted;
        }
        let model = match node {
            Some(node) => self.nodes[node]
                .known
                .as_ref()
                .and_then(|known| known.model),
            None => class.confined.model,
        };
        if let Some(model) = model.filter(|_| class.gpus > 0) {
            let position = demand.partition_point(|(entry, _)| *entry < model);
            demand.insert(position, (model, counted));
        }
        demand
    }

    /// What one pod of a class counts for in a queue under `nvidia.com/gpu`, in thousandths of a
    /// card: on `node` what its cards tell, without a node the most of all nodes that suit the
    /// class.
    pub(crate) fn counted(&self, id: ClassId, node: Option<NodeId>) -> Amount {
        let class = &self.classes[id];
        let Some(node) = node else {
            return class.confined.counted.unwrap_or(class.counted);
        };
        let node = &self.nodes[node];
        let known = node.known.is_some() && class.is_measured();
        let counted = known.then(|| class.counted_on(&node.cards)).flatten();
        // tests plant bugs here: counted-on-a-node
        counted.unwrap_or(class.counted)
    }

    /// What one pod of a class asks for of the resources that are governed keys, models left aside.
    fn governed_part(&self, class: &Class) -> Demand {
        let requests = class.requests.iter();
        let mut part: Demand = requests
            .filter_map(|(resource, amount)| {
                let name = self.resource_names.name(*resource);
                let amount = match *resource == ResourceNames::gpu() {
                    true => class.counted,
                    false => *amount,
                };
                Some((self.queues.governed_id(name, None)?, amount))
            })
            .collect();
        part.sort_unstable_by_key(|(entry, _)| *entry);
        part
    }

    /// Keeps the governed part of what a class asks for, so that the next pod of the class need not
    /// look up names.
    fn keep_governed(&mut self, class: ClassId) {
        if self.classes[class].governed.is_none() {
            let part = self.governed_part(&self.classes[class]);
            self.classes[class].governed = Some(part);
        }
    }

    /// The governed key for the GPU model of a node; `None`: the node names no model, or no queue
    /// has an entry for it.
    pub(crate) fn model_entry(&self, gpu: &GpuNode) -> Option<GovernedId> {
        self.queues.governed_id(GPU, Some(gpu.product.as_deref()?))
    }

    /// Takes a pod's room on a node, and books the pod there in its queue.
    pub(crate) fn occupy(&mut self, pod: PodId, node: NodeId) {
        self.put_on(pod, node);
        self.charge(pod, Some(node));
        if self.pods[pod].account().is_none() {
            self.capacity.stale.insert(node);
        }
    }

    /// The exact reverse of [`ClusterState::occupy`]. `announce`: whether refused gangs are to hear
    /// of the room; false when a trial is undone.
    pub(crate) fn vacate(&mut self, pod: PodId, node: NodeId, announce: bool) {
        self.charge(pod, None);
        self.take_off(pod, node, announce);
        if self.pods[pod].account().is_none() {
            self.capacity.stale.insert(node);
        }
        if announce {
            if let Some(account) = self.pods[pod].account() {
                self.released.insert(account.queue);
            }
            self.drop_node_if_unused(node);
        }
    }

    /// Takes a pod's room on a node, and books nothing.
    pub(crate) fn put_on(&mut self, pod: PodId, node: NodeId) {
        let class = self.pods[pod].class;
        let cards = &self.pods[pod].cards;
        self.nodes[node].take(pod, &self.classes[class], cards);
        self.take_cells(pod, node);
        if self.pods[pod].leaving {
            self.nodes[node].count_leaving(&self.classes[class], true);
        }
        self.relate(pod, node, true);
        self.node_changed(node, false);
    }

    /// The exact reverse of [`ClusterState::put_on`]. `announce`: as for [`ClusterState::vacate`].
    pub(crate) fn take_off(&mut self, pod: PodId, node: NodeId, announce: bool) {
        let class = self.pods[pod].class;
        let cards = &self.pods[pod].cards;
        self.nodes[node].give_back(pod, &self.classes[class], cards);
        self.give_back_cells(pod, node);
        if self.pods[pod].leaving {
            self.nodes[node].count_leaving(&self.classes[class], false);
        }
        self.relate(pod, node, false);
        // tests plant bugs here: room-comes-free
        self.node_changed(node, announce);
    }

    /// Takes what an account holds off the books of its queue, and of those above it; what the
    /// queue asks for stays.
    pub(crate) fn release(&mut self, account: &Account) {
        let (queue, demand) = (account.queue, &account.demand);
        match account.leaving {
            true => self
                .queues
                .release_leaving(queue, demand, account.preemptible),
            false => self.queues.release(queue, demand, account.preemptible),
        }
    }

    /// The exact reverse of [`ClusterState::release`].
    pub(crate) fn charge_again(&mut self, account: &Account) {
        let (queue, demand) = (account.queue, &account.demand);
        match account.leaving {
            true => self
                .queues
                .charge_leaving(queue, demand, account.preemptible),
            false => self.queues.charge(queue, demand, account.preemptible),
        }
    }

    /// Books a pod anew in the queue in which it already counts: on a node, or as waiting. What the
    /// queue wants for the pod stays.
    pub(super) fn charge(&mut self, pod: PodId, node: Option<NodeId>) {
        if let Some(account) = self.take_account(pod) {
            self.book(pod, account.queue, account.preemptible, node);
        }
    }

    /// Makes a pod count in a queue: adds what the pod asks for to what the queue wants, and books
    /// the pod.
    pub(crate) fn open_account(
        &mut self,
        pod: PodId,
        queue: QueueId,
        preemptible: bool,
        node: Option<NodeId>,
    ) {
        let class = self.pods[pod].class;
        self.keep_governed(class);
        let wanted = self.demand(class, None);
        self.queues.add_wanted(queue, &wanted);
        self.book(pod, queue, preemptible, node);
    }

    /// Books a pod in a queue: as allocated if it is on a node, else as requested.
    fn book(&mut self, pod: PodId, queue: QueueId, preemptible: bool, node: Option<NodeId>) {
        let demand = self.demand(self.pods[pod].class, node);
        let allocated = node.is_some();
        let leaving = allocated && self.pods[pod].leaving;
        match (allocated, leaving) {
            (true, true) => self.queues.charge_leaving(queue, &demand, preemptible),
            (true, false) => self.queues.charge(queue, &demand, preemptible),
            (false, _) => self.queues.add_requested(queue, &demand),
        }
        if let Some(own) = &mut self.pods[pod].own {
            own.account = Some(Account {
                queue,
                demand,
                preemptible,
                allocated,
                leaving,
            });
        }
        if allocated {
            self.note_holder(pod);
        }
    }

    /// Takes what a pod asks for or holds off the books. What its queue wants stays.
    fn take_account(&mut self, pod: PodId) -> Option<Account> {
        let account = self.pods[pod].own.as_mut()?.account.take()?;
        if account.allocated {
            self.release(&account);
            self.note_holder(pod);
        } else {
            self.queues.sub_requested(account.queue, &account.demand);
        }
        Some(account)
    }

    /// Notes that the gang of a pod holds something else.
    fn note_holder(&mut self, pod: PodId) {
        // tests plant bugs here: holder-changes
        if let Some(gang) = self.pods[pod].gang() {
            self.note_minimum(gang);
        }
    }

    /// Makes a pod count in no queue. Returns the queue in which it counted, and whether it counted
    /// as preemptible; `None`: it counted nowhere.
    pub(crate) fn close_account(&mut self, pod: PodId) -> Option<(QueueId, bool)> {
        let account = self.take_account(pod)?;
        self.holds.rebooked.push(self.pods[pod].uid);
        // The demand of a pod changes only while its account is closed, so this takes off what was
        // added.
        let wanted = self.demand(self.pods[pod].class, None);
        self.queues.sub_wanted(account.queue, &wanted);
        Some((account.queue, account.preemptible))
    }

    /// Makes a pod count in this queue, preemptible or not, or in none.
    pub(crate) fn settle_account(&mut self, pod: PodId, queue: Option<(QueueId, bool)>) {
        let current = self.pods[pod]
            .account()
            .map(|account| (account.queue, account.preemptible));
        let queue = queue.filter(|_| !matches!(self.pods[pod].stage, Stage::Ended { .. }));
        if current == queue {
            return;
        }
        self.released.extend(current.map(|(queue, _)| queue));
        self.close_account(pod);
        let node = self.pods[pod].stage.node();
        self.capacity.stale.extend(node);
        if let Some((queue, preemptible)) = queue {
            self.open_account(pod, queue, preemptible, node);
        }
    }

    /// Takes what a gang's members hold and ask for in a queue off the books of that queue.
    pub(crate) fn leave_queue(&mut self, gang: GangId, queue: QueueId) {
        for index in 0..self.gangs[gang].members.len() {
            let pod = self.gangs[gang].members[index];
            if self.pods[pod]
                .account()
                .is_some_and(|account| account.queue == queue)
            {
                self.settle_account(pod, None);
            }
        }
    }

    /// Takes in changed queues. Returns whether the hierarchy was built anew: then every account
    /// must be opened anew, and all numbers of queues are void.
    pub(crate) fn refresh_queues(&mut self, now_ms: UnixMs) -> bool {
        match self.queues.refresh(now_ms) {
            Refreshed::Unchanged => return false,
            Refreshed::Edited { rules, bounds } => {
                for queue in rules {
                    let gangs = self.submitted.to(self.queues.name(queue));
                    self.touched.extend(gangs);
                }
                self.holds.queues_changed = true;
                self.released.extend(bounds);
                return false;
            }
            Refreshed::Rebuilt => self.rules_changed(),
        }
        self.holds.queues_changed = true;
        self.keep_reaches();
        for class in self.classes.ids() {
            self.classes[class].governed = None;
            self.classes[class].confined = self.confined_of(class);
        }
        self.released.clear();
        self.footprints = Footprints::default();
        for id in self.nodes.ids() {
            let model = self.nodes[id]
                .known
                .as_ref()
                .and_then(|k| self.model_entry(&k.gpu));
            if let Some(known) = &mut self.nodes[id].known {
                known.model = model;
            }
        }
        for pod in self.pods.ids() {
            let Pod { own, stage, .. } = &mut self.pods[pod];
            // If a pod finds no queue any more, it counts as foreign, which changes what its node
            // adds.
            let own = own.as_mut().filter(|own| own.account.is_some());
            if let Some(own) = own {
                own.account = None;
                self.capacity.stale.extend(stage.node());
            }
        }
        self.book_holds_anew();
        self.capacity.forgotten = true;
        true
    }

    /// Books the pods of a node as if they had no node, while its GPU model or its cards change.
    pub(crate) fn uncharge_node(&mut self, node: NodeId) {
        for pod in self.nodes[node].pods.clone() {
            self.holds.rebooked.push(self.pods[pod].uid);
            self.charge(pod, None);
        }
    }

    /// Books the pods of a node there again, after [`ClusterState::uncharge_node`].
    pub(crate) fn charge_node(&mut self, node: NodeId) {
        for pod in self.nodes[node].pods.clone() {
            self.charge(pod, Some(node));
        }
    }

    /// Stops counting nodes that have been lost for too long.
    pub(crate) fn give_up_lost(&mut self, now_ms: UnixMs) {
        for node in self.capacity.expire(now_ms) {
            self.judge_reach(node);
        }
    }

    /// Tells the queues the capacity that they divide, if it may have changed.
    pub(crate) fn settle_capacity(&mut self) {
        let stale = core::mem::take(&mut self.capacity.stale);
        let forgotten = core::mem::take(&mut self.capacity.forgotten);
        if stale.is_empty() && !forgotten {
            return;
        }
        for node in stale {
            let contribution = self.contribution(node);
            self.capacity.replace(node, contribution);
        }
        for ((resource, product), amount) in &self.capacity.totals {
            let name = self.resource_names.name(*resource);
            if let Some(entry) = self.queues.governed_id(name, product.as_deref()) {
                self.queues.set_capacity(entry, saturated(*amount));
            }
        }
    }

    /// The names of nodes of which a wrong contribution is kept; for the audit.
    pub(crate) fn wrong_contributions(&self) -> impl Iterator<Item = &str> {
        let settled = |id: &NodeId| !self.capacity.stale.contains(id);
        let nodes = self.nodes.iter().filter(move |(id, _)| settled(id));
        nodes
            .filter(|(id, _)| {
                self.capacity.contributions.get(id) != self.contribution(*id).as_ref()
            })
            .map(|(_, node)| &*node.name)
    }

    fn contribution(&self, id: NodeId) -> Option<Contribution> {
        let node = self.nodes.get(id)?;
        let known = node
            .known
            .as_ref()
            .filter(|_| !self.capacity.out.contains(&id))?;
        let mut amounts: Resources = node
            .resources()
            .filter(|(_, allocatable, _)| *allocatable > 0)
            .map(
                |(resource, allocatable, _)| match resource == ResourceNames::gpu() {
                    // Of slots only the cards behind them count.
                    // tests plant bugs here: cards-behind-slots
                    true if known.gpu.slots > 0 => {
                        (resource, in_thousandths(known.facts.cards.len() as Amount))
                    }
                    true => (resource, in_thousandths(allocatable)),
                    false => (resource, allocatable),
                },
            )
            .collect();
        for pod in node
            .pods
            .iter()
            .filter(|pod| self.pods[**pod].account().is_none())
        {
            let class_id = self.pods[*pod].class;
            let class = &self.classes[class_id];
            for (resource, amount) in &class.requests {
                let amount = match *resource == ResourceNames::gpu() {
                    true => self.counted(class_id, Some(id)),
                    false => *amount,
                };
                if let Some((_, left)) = amounts.iter_mut().find(|(id, _)| id == resource) {
                    *left = left.saturating_sub(amount);
                }
            }
        }
        Some((amounts, known.gpu.product.clone()))
    }
}
