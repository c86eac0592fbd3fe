//! HAMi's device plugin on nodes whose cards it shares.

use super::Cluster;
use crate::api_server::Request;
use gpu_batch_policies::command::{OwnCardLock, UnlockCards};
use gpu_batch_policies::facts::{CardFacts, CardPart, NodeFacts, PodFacts, UnixMs};

impl Cluster {
    /// The plugin gives a pod its cards when the kubelet starts it, and takes the lock away. If the
    /// lock names another pod, it gives that pod's cards instead, and without a lock it gives none.
    pub(super) fn give_cards(&mut self, facts: &PodFacts, now_ms: UnixMs) {
        let node = facts.node.as_deref().and_then(|node| self.node(node));
        let Some(node) = node.filter(|node| !node.cards.is_empty() && !facts.cards.is_empty())
        else {
            return;
        };
        let lock = node.card_lock.as_ref();
        let lock = lock.and_then(|lock| Some((lock.holder.as_ref()?, lock.at_ms?)));
        let pod = (&facts.namespace, &facts.name);
        let own = lock.filter(|((namespace, name), _)| (namespace, name) == pod);
        let Some(((namespace, name), at_ms)) = own else {
            self.misassigned += u32::from(!self.restarted.contains(&facts.uid));
            return;
        };
        let lock = OwnCardLock {
            namespace: namespace.clone(),
            name: name.clone(),
            at_ms,
        };
        let node = node.name.clone();
        let request = Request::UnlockCards(UnlockCards { node, lock });
        self.api.handle(request, now_ms);
    }

    /// Whether the cards that a pod gets have room for it beside the pods that run. An instance
    /// needs a place that its profile has, and no slice of another instance.
    pub(super) fn has_cards(&self, node: &NodeFacts, facts: &PodFacts) -> bool {
        let runs_here = |other: &&PodFacts| {
            let is_here = other.node.as_deref() == Some(&*node.name);
            other.uid != facts.uid && is_here && !other.phase.ended() && other.started_ms.is_some()
        };
        facts.cards.iter().all(|part| {
            let Some(card) = node.cards.iter().find(|card| card.id == part.card) else {
                return node.cards.is_empty();
            };
            let held = self
                .api
                .pods()
                .filter(runs_here)
                .flat_map(|other| &other.cards);
            let held = held.filter(|held| held.card == part.card).chain([part]);
            let held: Vec<&CardPart> = held.collect();
            if !fits_in_slices(card, part, &held) {
                return false;
            }
            let held = held.into_iter();
            let sum = held.fold((0, 0, 0), |(slots, power, memory), held| {
                let memory = memory + held.memory_mib;
                (slots + held.slots, power + held.thousandths, memory)
            });
            sum.0 <= card.slots && sum.1 <= card.thousandths && sum.2 <= card.memory_mib
        })
    }
}

/// Whether a card has the places of a pod's instances, and no slice is that of two among all that
/// are held.
fn fits_in_slices(card: &CardFacts, part: &CardPart, held: &[&CardPart]) -> bool {
    if card.profiles.is_empty() {
        return part.instances.is_empty();
    }
    let mut instances = part.instances.iter();
    let is_placed = instances.all(|instance| {
        let mut profiles = card.profiles.iter();
        let profile = profiles.find(|profile| profile.name == instance.profile);
        profile.is_some_and(|profile| profile.placements.contains(&instance.placement))
    });
    let mut taken = 0;
    let mut all = held.iter().flat_map(|part| &part.instances);
    let is_apart = all.all(|instance| {
        let mask = instance.placement.mask();
        let is_free = taken & mask == 0;
        taken |= mask;
        is_free
    });
    is_placed && is_apart && part.instances.len() == part.slots as usize
}
