//! What each gang that runs takes of nodes and of queues, summed up.
//!
//! A what-if that lets hundreds of gangs go, one after the other, looks once at each node of a
//! gang, and at no pod. Sums are kept until the gang may hold something else.

use super::ClusterState;
use super::pod::{Account, Pod};
use crate::ids::{ById, GangId, NodeId};
use crate::queues::add_demand;
use crate::resources::Resources;
use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

/// What a gang takes of nodes and of queues. All its members with a place take amounts alone, and
/// stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) nodes: Vec<OnNode>,
    /// What queues count for the gang, which is one account unless members count in several ways.
    pub(crate) accounts: Vec<Account>,
}

/// What the members of a gang take of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OnNode {
    pub(crate) node: NodeId,
    pub(crate) amounts: Resources,
    /// How many of the members ask for a GPU of any sort.
    pub(crate) accelerated: u32,
}

/// The footprint of a gang, as far as it was asked for since the gang last changed.
#[derive(Debug, Default)]
enum Known {
    /// Nobody has asked for it.
    #[default]
    Nothing,
    /// Amounts alone do not say what the gang takes.
    NotInSums,
    Sums(Arc<Footprint>),
}

/// The footprints that were asked for, by gang.
#[derive(Debug, Default)]
pub(crate) struct Footprints {
    known: ById<GangId, Known>,
}

impl Footprints {
    /// Notes that a gang may hold something else.
    pub(super) fn forget(&mut self, gang: GangId) {
        if !matches!(self.known[gang], Known::Nothing) {
            self.known.forget(gang);
        }
    }

    /// The footprint of a gang, if it is kept.
    pub(crate) fn kept(&self, gang: GangId) -> Option<&Footprint> {
        match &self.known[gang] {
            Known::Sums(footprint) => Some(footprint),
            Known::Nothing | Known::NotInSums => None,
        }
    }
}

impl ClusterState {
    /// What a gang takes, if sums say all of it; `None`: its pods have to be looked at.
    pub(crate) fn footprint(&mut self, gang: GangId) -> Option<Arc<Footprint>> {
        // The sums of a single pod would be larger than what they save.
        if self.gangs[gang].members.len() < 2 || !self.relations.is_empty() {
            return None;
        }
        if matches!(self.footprints.known[gang], Known::Nothing) {
            let sums = self.sum_up(gang).map(Arc::new);
            self.footprints.known[gang] = sums.map_or(Known::NotInSums, Known::Sums);
        }
        let Known::Sums(footprint) = &self.footprints.known[gang] else {
            return None;
        };
        let mut nodes = footprint.nodes.iter();
        // Of the NUMA nodes of its node each pod has a part of its own.
        let is_whole = nodes.all(|part| self.nodes[part.node].cells.is_none());
        is_whole.then(|| Arc::clone(footprint))
    }

    /// Works out what a gang takes; `None`: sums do not say all of it.
    pub(crate) fn sum_up(&self, gang: GangId) -> Option<Footprint> {
        let mut nodes: BTreeMap<NodeId, OnNode> = BTreeMap::new();
        let mut accounts: Vec<Account> = Vec::new();
        let members = self.gangs[gang].members.iter().map(|pod| &self.pods[*pod]);
        let placed = members.filter_map(|pod| Some((pod, pod.stage.node()?)));
        for (pod, node) in placed {
            let account = self.account_in_sums(pod)?;
            let part = nodes.entry(node).or_insert_with(|| OnNode {
                node,
                amounts: Resources::new(),
                accelerated: 0,
            });
            let class = &self.classes[pod.class];
            for (resource, amount) in &class.requests {
                let mut known = part.amounts.iter_mut();
                match known.find(|(known, _)| known == resource) {
                    Some((_, sum)) => *sum = sum.checked_add(*amount)?,
                    None => part.amounts.push((*resource, *amount)),
                }
            }
            part.accelerated += u32::from(class.accelerated);
            add_account(&mut accounts, account);
        }
        let mut nodes: Vec<OnNode> = nodes.into_values().collect();
        for part in &mut nodes {
            part.amounts.sort_unstable();
        }
        Some(Footprint { nodes, accounts })
    }

    /// What queues count for a pod that takes amounts alone and stays; `None`: there is more to it.
    fn account_in_sums<'a>(&self, pod: &'a Pod) -> Option<&'a Account> {
        // A pod may hold cards that it does not ask for.
        let takes_amounts = self.classes[pod.class].asks_for_amounts() && pod.cards.is_empty();
        let account = pod.account().filter(|_| takes_amounts && !pod.leaving);
        account.filter(|account| account.allocated && !account.leaving)
    }

    /// Gives nodes back what a gang takes of them, or takes it again.
    pub(crate) fn shift_footprint(&mut self, footprint: &Footprint, takes: bool) {
        for part in &footprint.nodes {
            self.nodes[part.node].shift_sums(&part.amounts, part.accelerated, takes);
            self.node_changed(part.node, false);
        }
    }
}

/// Adds what an account holds to the last of the sums, or begins a new one.
pub(crate) fn add_account(sums: &mut Vec<Account>, account: &Account) {
    let key = |account: &Account| (account.queue, account.preemptible, account.leaving);
    let has_room = |last: &Account| {
        account.demand.iter().all(|(key, amount)| {
            let mut known = last.demand.iter();
            let known = known.find(|(known, _)| known == key);
            known.is_none_or(|(_, sum)| sum.checked_add(*amount).is_some())
        })
    };
    let last = sums.last_mut();
    match last.filter(|last| key(last) == key(account) && has_room(last)) {
        Some(last) => add_demand(&mut last.demand, &account.demand),
        None => sums.push(account.clone()),
    }
}
