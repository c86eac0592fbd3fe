//! Judges each command of one scheduler process as it is sent, by what the process was told and
//! did. This knowledge is kept apart from the engine.

mod cards;
mod locks;
mod volumes;

use super::takings::Takings;
use cards::Cards;
use gpu_batch_policies::command::{Action, Bind, Command, CommandId, StatusPatch};
use gpu_batch_policies::event::{Event, Object, ObjectKey, Outcome, PodSeen};
use gpu_batch_policies::facts::{Amounts, PodShape, Uid, UnixMs, amount};
use gpu_batch_policies::lease::{LeaseCall, LeaseSettings};
use gpu_batch_policies::settings::{InFlight, Leadership, Settings};
use locks::Locks;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use volumes::Volumes;

/// A pod as the process was last told of it.
#[derive(Debug)]
struct Shown {
    node: Option<Box<str>>,
    shape: Arc<PodShape>,
}

/// Watches one engine. Times are those of the process's clock.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// `None`: the process always leads.
    lease: Option<LeaseSettings>,
    limits: InFlight,
    nodes: BTreeMap<Box<str>, Amounts>,
    pods: BTreeMap<Uid, Shown>,
    /// Pods for which a bind was sent and which no event or answer has shown on a node yet; with
    /// the node of the bind.
    sent: BTreeMap<Uid, Box<str>>,
    /// Pods that had no node when the API server was asked, but may still be bound by a late
    /// request; with the node of that request.
    doubtful: BTreeMap<Uid, Box<str>>,
    under_way: BTreeMap<CommandId, (UnixMs, Action)>,
    last_id: Option<CommandId>,
    /// When the last write of the lease that succeeded was sent.
    renewed_ms: Option<UnixMs>,
    /// `None`: nobody is evicted for others.
    takings: Option<Takings>,
    volumes: Volumes,
    cards: Cards,
    locks: Locks,
}

impl Watchdog {
    pub(super) fn new(settings: &Settings) -> Self {
        let lease = match &settings.leadership {
            Leadership::Assumed => None,
            Leadership::Elected(lease) => Some(lease.clone()),
        };
        Self {
            lease,
            limits: settings.in_flight,
            takings: (settings.evictions.in_flight > 0).then(Takings::default),
            volumes: Volumes::default(),
            cards: Cards::new(settings.health.clone()),
            locks: Locks::default(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            sent: BTreeMap::new(),
            doubtful: BTreeMap::new(),
            under_way: BTreeMap::new(),
            last_id: None,
            renewed_ms: None,
        }
    }

    /// Takes in an event that the engine is about to be told.
    pub(super) fn told(&mut self, event: &Event) {
        if let Some(takings) = &mut self.takings {
            takings.told(event);
        }
        self.volumes.told(event);
        self.locks.told(event);
        match event {
            Event::Applied(object) => self.shown(object),
            Event::Deleted(ObjectKey::Pod(uid)) => self.gone(*uid),
            Event::Deleted(ObjectKey::Node(name, _)) => drop(self.nodes.remove(name)),
            Event::Listed(listing) => {
                let pods: BTreeSet<Uid> = listing
                    .objects
                    .iter()
                    .filter_map(|object| match object {
                        Object::Pod(facts) => Some(facts.uid),
                        _ => None,
                    })
                    .collect();
                match listing.kind {
                    gpu_batch_policies::event::Kind::Pod => {
                        let known: Vec<Uid> = self.pods.keys().copied().collect();
                        for uid in known.into_iter().filter(|uid| !pods.contains(uid)) {
                            self.gone(uid);
                        }
                    }
                    gpu_batch_policies::event::Kind::Node => self.nodes.clear(),
                    _ => {}
                }
                for object in &listing.objects {
                    self.shown(object);
                }
            }
            Event::Outcome(id, outcome) => self.ended(*id, outcome),
            Event::Deleted(_)
            | Event::Configured(_)
            | Event::BindAsked { .. }
            | Event::Continue => {}
        }
    }

    fn shown(&mut self, object: &Object) {
        match object {
            Object::Node(facts) => {
                self.cards.node(facts);
                self.nodes
                    .insert(facts.name.clone(), facts.allocatable.clone());
            }
            Object::Pod(facts) if facts.phase.ended() => self.gone(facts.uid),
            Object::Pod(facts) => {
                if facts.node.is_some() {
                    self.sent.remove(&facts.uid);
                }
                let known = self.pods.get(&facts.uid).and_then(|pod| pod.node.clone());
                let shown = Shown {
                    // A pod never loses its node; this event may be older than an answer that named
                    // the node.
                    node: facts.node.clone().or(known),
                    shape: Arc::clone(&facts.shape),
                };
                self.pods.insert(facts.uid, shown);
            }
            _ => {}
        }
    }

    fn gone(&mut self, uid: Uid) {
        self.pods.remove(&uid);
        self.sent.remove(&uid);
        self.doubtful.remove(&uid);
    }

    fn ended(&mut self, id: CommandId, outcome: &Outcome) {
        let Some((sent_ms, action)) = self.under_way.remove(&id) else {
            return;
        };
        if let Some(takings) = &mut self.takings {
            takings.ended(&action, outcome);
        }
        self.volumes.ended(&action, outcome);
        self.locks.ended(&action, outcome);
        match (action, outcome) {
            (Action::Bind(bind), Outcome::Refused { .. } | Outcome::Throttled { .. }) => {
                self.sent.remove(&bind.pod.uid);
            }
            (Action::Bind(bind), Outcome::Done) => {
                if let Some(pod) = self.pods.get_mut(&bind.pod.uid) {
                    pod.node = Some(bind.node);
                    self.sent.remove(&bind.pod.uid);
                }
            }
            (Action::Observe(pod), Outcome::Observed(PodSeen::Gone)) => self.gone(pod.uid),
            (Action::Observe(pod), Outcome::Observed(PodSeen::Bound(node))) => {
                if let Some(shown) = self.pods.get_mut(&pod.uid) {
                    shown.node = Some(node.clone());
                }
                self.sent.remove(&pod.uid);
            }
            (Action::Observe(pod), Outcome::Observed(PodSeen::Unbound)) => {
                if let Some(node) = self.sent.remove(&pod.uid) {
                    self.doubtful.insert(pod.uid, node);
                }
            }
            (Action::Lease(request), Outcome::Lease(seen)) => {
                let ours = |lease: &LeaseSettings| seen.holder == lease.identity;
                if !self.lease.as_ref().is_some_and(ours) {
                    self.renewed_ms = None;
                } else if matches!(request, LeaseCall::Write { .. }) {
                    self.renewed_ms = Some(sent_ms);
                }
            }
            _ => {}
        }
    }

    /// Judges the commands of one step. `is_behind`: the clock of the process is behind the
    /// world's.
    pub(super) fn sends(
        &mut self,
        now_ms: UnixMs,
        is_behind: bool,
        commands: &[Command],
        leads: bool,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for command in commands {
            if self.last_id >= Some(command.id) {
                found.push(format!("I12: {:?} was used before", command.id));
            }
            self.last_id = Some(command.id);
            if !matches!(command.action, Action::Lease(_)) {
                self.leads(now_ms, command, leads, &mut found);
            }
            if let Action::Bind(bind) = &command.action {
                self.binds(bind, &mut found);
            }
            if let Action::Evict(evict) = &command.action {
                self.cards.evicts(&evict.pod.name, evict.cause, &mut found);
            }
            self.under_way
                .insert(command.id, (now_ms, command.action.clone()));
        }
        self.locks.sends(commands, leads, &mut found);
        self.counts(&mut found);
        if let Some(takings) = &mut self.takings {
            takings.sends(commands, is_behind, &mut found);
        }
        found
    }

    /// I13: only the leader sends commands, and their deadlines end before its lease.
    fn leads(&self, now_ms: UnixMs, command: &Command, leads: bool, found: &mut Vec<String>) {
        let Some(lease) = &self.lease else { return };
        let until_ms = |span_ms| self.renewed_ms.map_or(0, |sent_ms| sent_ms + span_ms);
        if !leads || now_ms >= until_ms(lease.renew_deadline_ms) {
            found.push(format!(
                "I13: {:?} was sent without the lease",
                command.action
            ));
        } else if command.deadline_ms >= until_ms(lease.duration_ms) {
            found.push(format!("I13: {:?} may outlive the lease", command.action));
        }
    }

    /// I2: a bind goes to a node that exists and has room. A bind that is sent again to its node is
    /// not judged: the first one may still arrive, so the pod must not go to another node.
    fn binds(&mut self, bind: &Bind, found: &mut Vec<String>) {
        let (uid, node) = (bind.pod.uid, &*bind.node);
        let to_node =
            |sent: &BTreeMap<Uid, Box<str>>| sent.get(&uid).is_some_and(|to| **to == *node);
        if to_node(&self.sent) || to_node(&self.doubtful) {
            self.sent.insert(uid, node.into());
            return;
        }
        self.volumes.binds(bind, found);
        if let Some(other) = self.pods.get(&uid).and_then(|pod| pod.node.as_ref()) {
            found.push(format!("I6: pod {uid} is known to be on {other}"));
        }
        self.sent.insert(uid, node.into());
        let Some(allocatable) = self.nodes.get(node) else {
            found.push(format!("I2: pod {uid} goes to {node}, which is gone"));
            return;
        };
        let Some(pod) = self.pods.get(&uid) else {
            found.push(format!("I2: pod {uid} was never shown"));
            return;
        };
        self.cards.binds(bind, &pod.shape, found);
        Cards::gives(bind, &pod.shape, found);
        for (resource, asked) in &pod.shape.requests {
            let here = |(other, shown): &(&Uid, &Shown)| {
                let at = shown.node.as_ref().or_else(|| self.sent.get(*other));
                **other != uid && at.is_some_and(|at| **at == *node)
            };
            let others = self.pods.iter().filter(here);
            let taken: u64 = others
                .map(|(_, shown)| amount(&shown.shape.requests, resource))
                .sum();
            let has = amount(allocatable, resource);
            if taken + asked > has {
                found.push(format!(
                    "I2: pod {uid} asks for {asked} {resource} on {node}, which has {has}, {taken} \
                     of it taken"
                ));
            }
        }
    }

    /// I12: no more commands are under way than the settings allow.
    fn counts(&self, found: &mut Vec<String>) {
        let (mut actions, mut statuses, mut announcements, mut leases) = (0, 0, 0, 0);
        for (_, action) in self.under_way.values() {
            *match action {
                Action::Bind(_)
                | Action::Evict(_)
                | Action::Lift(_)
                | Action::SelectNode(_)
                | Action::KeepVolume(_)
                | Action::LockCards(_)
                | Action::UnlockCards(_)
                | Action::Observe(_)
                | Action::PatchStatus(StatusPatch::Nominated { .. }) => &mut actions,
                Action::PatchStatus(_) => &mut statuses,
                Action::Publish(_) => &mut announcements,
                Action::Lease(_) => &mut leases,
            } += 1;
        }
        let limits = self.limits;
        if actions > limits.actions
            || statuses > limits.statuses
            || announcements > limits.announcements
            || leases > 1
        {
            found.push(format!(
                "I12: {actions} actions, {statuses} statuses, {announcements} events and {leases} \
                 requests for the lease are under way"
            ));
        }
    }
}
