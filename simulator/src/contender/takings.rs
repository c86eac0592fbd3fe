//! Judges evictions for gangs that wait, by what the process had been told and did (I9, I10).
//!
//! - An eviction names a beneficiary where its cause needs one, and the beneficiary is a gang that
//!   exists and waits for nothing but its room: enough of its members are nominated.
//! - A victim is preemptible, and of the queue that the cause says.
//! - What the quota of its queue protects is not reclaimed (`protected`).
//! - No disruption budget that is known to allow no eviction selects the victim.

mod protected;

use crate::gangs::{Gang, gangs_of, is_met};
use gpu_batch_policies::command::{Action, Command, Evict, EvictionCause, StatusPatch};
use gpu_batch_policies::event::{Event, Object, ObjectKey, Outcome};
use gpu_batch_policies::facts::{PodFacts, PodPhase, Uid};
use std::collections::{BTreeMap, BTreeSet};

/// A pod that moves, and the name of its gang.
type Moving = (String, PodFacts);

/// What one process knows that matters for evictions.
#[derive(Debug, Default)]
pub(super) struct Takings {
    objects: BTreeMap<ObjectKey, Object>,
    /// Pods that succeeded and were cleaned away.
    done: Vec<PodFacts>,
    /// Pods whose nomination this process has written.
    nominated: BTreeSet<Uid>,
    /// Pods that this process has sent to nodes.
    bound: BTreeSet<Uid>,
    /// Pods that this process has asked to leave, without a refusal.
    leaving: BTreeSet<Uid>,
    /// For each gang with a plan the pods that only move for it, gone or not: they have another
    /// place, so their gangs keep what they have.
    moving: BTreeMap<String, Vec<Moving>>,
    /// For each gang whose members are nominated the gangs that were protected then.
    protected: BTreeMap<String, BTreeSet<String>>,
}

impl Takings {
    /// Takes in an event that the engine is about to be told.
    pub(super) fn told(&mut self, event: &Event) {
        match event {
            Event::Applied(object) => {
                self.objects.insert(object.key(), (**object).clone());
            }
            Event::Deleted(key) => self.gone(key),
            Event::Listed(listing) => {
                let listed: BTreeSet<ObjectKey> = listing.objects.iter().map(Object::key).collect();
                let known = self.objects.keys();
                let gone = known.filter(|key| key.kind() == listing.kind && !listed.contains(key));
                for key in gone.cloned().collect::<Vec<_>>() {
                    self.gone(&key);
                }
                let objects = listing.objects.iter();
                self.objects
                    .extend(objects.map(|object| (object.key(), object.clone())));
            }
            Event::Outcome(..)
            | Event::Configured(_)
            | Event::BindAsked { .. }
            | Event::Continue => {}
        }
    }

    fn gone(&mut self, key: &ObjectKey) {
        if let Some(Object::Pod(facts)) = self.objects.remove(key)
            && facts.phase == PodPhase::Succeeded
        {
            self.done.push(facts);
        }
    }

    /// Takes in how a command has ended.
    pub(super) fn ended(&mut self, action: &Action, outcome: &Outcome) {
        match action {
            Action::PatchStatus(StatusPatch::Nominated { pod, node: Some(_) })
                if *outcome == Outcome::Done =>
            {
                self.nominated.insert(pod.uid);
            }
            Action::Evict(evict)
                if matches!(
                    outcome,
                    Outcome::Refused { .. } | Outcome::Throttled { .. } | Outcome::Conflict { .. }
                ) =>
            {
                self.leaving.remove(&evict.pod.uid);
                for moving in self.moving.values_mut() {
                    moving.retain(|(_, facts)| facts.uid != evict.pod.uid);
                }
            }
            _ => {}
        }
    }

    /// Judges the commands of one step. `is_behind`: the clock of the process is behind the
    /// world's. Then all pods seem to have been bound just now, and it is not judged which gangs
    /// are protected.
    pub(super) fn sends(&mut self, commands: &[Command], is_behind: bool, found: &mut Vec<String>) {
        let mut nominates = BTreeSet::new();
        let mut evictions = Vec::new();
        for command in commands {
            match &command.action {
                Action::Bind(bind) => {
                    self.bound.insert(bind.pod.uid);
                }
                Action::PatchStatus(StatusPatch::Nominated { pod, node: None }) => {
                    self.nominated.remove(&pod.uid);
                }
                Action::PatchStatus(StatusPatch::Nominated { pod, .. }) => {
                    nominates.insert(pod.uid);
                }
                Action::Evict(evict) => evictions.push(evict),
                _ => {}
            }
        }
        if nominates.is_empty() && evictions.is_empty() {
            return;
        }
        let mut leaving = std::mem::take(&mut self.leaving);
        let gangs = gangs_of(self.objects.values(), &self.done);
        let mut protected = std::mem::take(&mut self.protected);
        let mut moving = std::mem::take(&mut self.moving);
        if !nominates.is_empty() {
            let now = protected::gangs(self.objects.values(), &gangs, &self.bound);
            let is_one = |facts: &&&PodFacts| nominates.contains(&facts.uid);
            for gang in &gangs {
                if gang.waiting.iter().any(|facts| is_one(&facts)) {
                    protected.insert(gang.name.clone(), now.clone());
                    moving.remove(&gang.name);
                }
            }
        }
        for evict in evictions {
            match &evict.beneficiary {
                Some(beneficiary) => {
                    let then = protected.get(&*beneficiary.gang);
                    let then = then.filter(|_| !is_behind);
                    let moving = moving.entry(beneficiary.gang.to_string()).or_default();
                    let before = (&leaving, &**moving);
                    self.evicts(&gangs, before, evict, &beneficiary.gang, then, found);
                    moving.extend(moves(&gangs, evict));
                }
                None if for_others(evict.cause) => {
                    found.push(format!("I10: {evict:?} names no beneficiary"));
                }
                None => {}
            }
            leaving.insert(evict.pod.uid);
        }
        self.leaving = leaving;
        self.protected = protected;
        self.moving = moving;
    }

    fn evicts(
        &self,
        gangs: &[Gang<'_>],
        (leaving, moving): (&BTreeSet<Uid>, &[Moving]),
        evict: &Evict,
        beneficiary: &str,
        protected_then: Option<&BTreeSet<String>>,
        found: &mut Vec<String>,
    ) {
        let name = &evict.pod.name;
        let mut wrong = |why: String| found.push(format!("{why}: pod {name} for {beneficiary}"));
        if !for_others(evict.cause) {
            wrong(format!("I10: {:?} names a beneficiary", evict.cause));
        }
        let Some(claimant) = gangs.iter().find(|gang| gang.name == beneficiary) else {
            return wrong("I10: the beneficiary does not exist".to_owned());
        };
        if !self.is_nominated(claimant) {
            wrong("I10: not all members of the beneficiary are nominated".to_owned());
        }
        let is_it = |facts: &&&PodFacts| facts.uid == evict.pod.uid;
        let of = gangs
            .iter()
            .find_map(|gang| Some((gang, *gang.bound.iter().find(is_it)?)));
        let Some((gang, pod)) = of else { return };
        if gang.name == beneficiary || gang.protected {
            wrong("I9: this gang is never evicted".to_owned());
        }
        let queue = pod.bound_queue.as_ref().unwrap_or(&gang.queue);
        let is_own = *queue == claimant.queue;
        if matches!(evict.cause, EvictionCause::Reclaim) == is_own
            && evict.cause != EvictionCause::Consolidate
        {
            wrong(format!("I10: {:?} from queue {queue}", evict.cause));
        }
        if evict.cause == EvictionCause::Reclaim
            && breaks(gang, (leaving, moving), pod)
            && protected_then.is_some_and(|gangs| gangs.contains(&gang.name))
            && protected::gangs(self.objects.values(), gangs, &self.bound).contains(&gang.name)
        {
            wrong(format!("I9: gang {} is protected", gang.name));
        }
        if pod.phase == PodPhase::Running && self.is_kept(pod) {
            wrong("I10: a disruption budget allows no eviction".to_owned());
        }
    }

    /// Whether enough members of a gang are nominated or have a node. If the spec was changed, a
    /// part of the gang may have been placed for another minimum, and one nomination will do. So it
    /// will where members wait with a place for their turn at the lock on its cards.
    fn is_nominated(&self, gang: &Gang<'_>) -> bool {
        let nominated =
            |facts: &&&PodFacts| facts.nominated.is_some() || self.nominated.contains(&facts.uid);
        let nominated: Vec<&PodFacts> = gang.waiting.iter().filter(nominated).copied().collect();
        let sent = gang.waiting.iter().copied();
        let sent = sent.filter(|facts| self.bound.contains(&facts.uid));
        let held = gang.bound.iter().chain(&gang.succeeded).chain(&gang.done);
        let held = held.copied().chain(sent);
        let all = gang.by_leaf(held.chain(nominated.iter().copied()));
        let takes_turns = gang.waiting.iter().any(|pod| pod.shape.cards.is_some());
        !nominated.is_empty() && (gang.changed || takes_turns || is_met(&gang.groups, 0, &all))
    }

    /// Whether disruption budgets are known to keep a pod from being evicted.
    fn is_kept(&self, pod: &PodFacts) -> bool {
        let budgets = self.objects.values().filter_map(|object| match object {
            Object::DisruptionBudget(facts) if facts.selects(pod) => Some(facts.allowed),
            _ => None,
        });
        let budgets: Vec<u32> = budgets.collect();
        budgets.len() > 1 || budgets.contains(&0)
    }
}

/// The pod of an eviction that is to have another place.
fn moves(gangs: &[Gang<'_>], evict: &Evict) -> Option<Moving> {
    let is_it = |facts: &&&PodFacts| facts.uid == evict.pod.uid;
    let of = |gang: &Gang<'_>| {
        let facts = *gang.bound.iter().find(is_it)?;
        Some((gang.name.clone(), facts.clone()))
    };
    let moves = evict.cause == EvictionCause::Consolidate;
    gangs.iter().filter(|_| moves).find_map(of)
}

fn for_others(cause: EvictionCause) -> bool {
    match cause {
        EvictionCause::Reclaim | EvictionCause::Preempt | EvictionCause::Consolidate => true,
        EvictionCause::Stale | EvictionCause::Unwind | EvictionCause::CardFailed => false,
    }
}

/// Whether a gang that has its minimum loses it with a pod, once all pods have left that were asked
/// to leave and have no other place.
fn breaks(gang: &Gang<'_>, (leaving, moving): (&BTreeSet<Uid>, &[Moving]), pod: &PodFacts) -> bool {
    let stays = |facts: &&PodFacts| !leaving.contains(&facts.uid);
    let ended = gang.succeeded.iter().chain(&gang.done).copied();
    let moving = moving.iter().filter(|(of, _)| *of == gang.name);
    let moving = moving.map(|(_, facts)| facts);
    let staying = gang.bound.iter().copied().filter(stays).chain(ended);
    let staying: Vec<&PodFacts> = staying.chain(moving).collect();
    let others = staying.iter().copied();
    let others = others.filter(|facts| facts.uid != pod.uid);
    let held = |pods: &mut dyn Iterator<Item = &PodFacts>| {
        let mut sums = vec![0; gang.groups.len()];
        for leaf in pods.filter_map(|facts| gang.leaf_of(facts)) {
            sums[leaf] += 1;
        }
        is_met(&gang.groups, 0, &sums)
    };
    held(&mut staying.iter().copied()) && !held(&mut others.into_iter())
}
