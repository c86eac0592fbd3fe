//! Takes a journal apart into what happened by itself and what the scheduler did.

use super::{GPU, Life, Moment, Ran, Session, Start};
use crate::journal::{Reader, Record};
use gpu_batch_policies::command::{Action, Bind, Command, CommandId};
use gpu_batch_policies::event::{Event, Kind, Object, ObjectKey, Outcome};
use gpu_batch_policies::facts::{Amount, GANG_GATE, PodFacts, PodPhase, Uid, UnixMs, amount};
use gpu_batch_policies::settings::Leadership;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

impl Session {
    /// Reads a journal to its end, or as far as it is whole.
    pub fn read<R: Read>(reader: &mut Reader<R>) -> Self {
        let mut reading = Reading::default();
        loop {
            match reader.next_record() {
                Ok(Some(record)) => reading.take(record),
                Ok(None) => return reading.finish(),
                Err(damage) => {
                    reading.session.damage = Some(damage);
                    return reading.finish();
                }
            }
        }
    }
}

/// A journal that is being read.
#[derive(Debug, Default)]
struct Reading {
    session: Session,
    /// Whether the scheduler has begun to decide.
    begun: bool,
    leads: bool,
    listed: BTreeSet<Kind>,
    /// The moment of the event that is being read.
    now: Moment,
    /// All objects as last seen, without what the scheduler writes. A pod that the scheduler has
    /// bound stays as it was before.
    known: BTreeMap<ObjectKey, Object>,
    stages: BTreeMap<Uid, Stage>,
    /// Binds that have no outcome yet, each with the time at which it was sent.
    asked: BTreeMap<CommandId, (UnixMs, Bind)>,
    /// The last bind of each pod, with the time at which it was first sent to this node.
    binds: BTreeMap<Uid, (UnixMs, Bind)>,
    evicted: BTreeSet<Uid>,
    gpus: Amount,
    gpus_since_ms: UnixMs,
}

/// How far a pod of the scheduler has come.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// The pod was bound or had ended when it was first seen. What becomes of it is not caused by
    /// this scheduler.
    Before,
    Waiting,
    Bound {
        at_ms: UnixMs,
    },
    Ended,
}

impl Reading {
    fn take(&mut self, record: Record) {
        match record {
            Record::Begun { settings, .. } => {
                self.leads = settings.leadership == Leadership::Assumed;
                self.session.settings = *settings;
            }
            Record::Events { now_ms, events } => {
                self.now.at_ms = now_ms;
                self.now.step += 1;
                for event in events {
                    self.event(event);
                }
            }
            Record::Commands(commands) => {
                // A scheduler that does not lead sends only requests for the lease.
                let acts = |command: &Command| !matches!(command.action, Action::Lease(_));
                self.leads |= commands.iter().any(acts);
                self.begin();
                for command in commands {
                    self.command(command);
                }
            }
            Record::Panicked { .. } | Record::ShutDown => {}
        }
    }

    /// Notes that the scheduler begins to decide, once it has listed all kinds and leads.
    fn begin(&mut self) {
        if self.begun || !self.leads || self.listed.len() < Kind::ALL.len() {
            return;
        }
        self.begun = true;
        self.session.start_ms = self.now.at_ms;
        self.gpus_since_ms = self.now.at_ms;
        self.session.objects = self.known.values().cloned().collect();
    }

    fn finish(mut self) -> Session {
        if self.begun {
            self.count_gpus();
        } else {
            self.session.start_ms = self.now.at_ms;
        }
        self.session.end_ms = self.now.at_ms;
        self.session
    }

    fn command(&mut self, command: Command) {
        match command.action {
            Action::Bind(bind) => {
                let uid = bind.pod.uid;
                self.asked
                    .insert(command.id, (self.now.at_ms, bind.clone()));
                // A bind that is sent again after a lost answer counts from the first time.
                let first = self
                    .binds
                    .entry(uid)
                    .or_insert((self.now.at_ms, bind.clone()));
                if first.1.node != bind.node {
                    *first = (self.now.at_ms, bind);
                }
            }
            Action::Evict(evict) => {
                let is_new = self.evicted.insert(evict.pod.uid);
                self.session.course.evictions += u64::from(is_new);
            }
            _ => {}
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Applied(object) => self.applied(*object),
            Event::Deleted(key) => self.deleted(key),
            Event::Listed(listing) => {
                self.listed.insert(listing.kind);
                let known = self.known.iter();
                let of_kind = known.filter(|(_, object)| object.kind() == listing.kind);
                let mut missing: BTreeSet<ObjectKey> =
                    of_kind.map(|(key, _)| key.clone()).collect();
                let objects = listing.objects.into_iter();
                for object in objects.filter(|object| object.kind() == listing.kind) {
                    missing.remove(&object.key());
                    self.applied(object);
                }
                for key in missing {
                    self.deleted(key);
                }
            }
            Event::Outcome(id, Outcome::Done) => {
                if let Some((at_ms, bind)) = self.asked.remove(&id) {
                    self.bound(bind.pod.uid, at_ms, bind.node, bind.queue);
                }
            }
            // The other course has one configuration from its beginning to its end, and places all
            // pods of ours itself.
            Event::Outcome(..)
            | Event::Configured(_)
            | Event::BindAsked { .. }
            | Event::Continue => {}
        }
    }

    /// Notes an event that the scheduler did not cause.
    fn happened(&mut self, event: Event) {
        if self.begun {
            self.session.happenings.push((self.now, event));
        }
    }

    fn applied(&mut self, object: Object) {
        self.now.event += 1;
        match object {
            Object::Pod(pod) if pod.ours => self.pod(pod),
            Object::PodGroup(mut group) => {
                group.status = None;
                self.change(Object::PodGroup(group));
            }
            other => self.change(other),
        }
    }

    /// Notes a change of an object that the scheduler did not cause, if the object differs from
    /// what was known.
    fn change(&mut self, object: Object) {
        let key = object.key();
        if self.known.get(&key) == Some(&object) {
            return;
        }
        if let Object::PodGroup(group) = &object
            && let Some(queue) = &group.queue
        {
            let name = (group.namespace.clone(), group.name.clone());
            self.session.group_queues.insert(name, queue.clone());
        }
        let before = self.known.insert(key, object.clone());
        self.node_changed(before.as_ref(), Some(&object));
        self.happened(object.into());
    }

    fn pod(&mut self, mut pod: PodFacts) {
        // In the other world there is no kube-scheduler that would ask to bind the pod.
        (pod.extended, pod.planned_node) = (false, None);
        pod.gates.retain(|gate| **gate != *GANG_GATE);
        // What the recorded scheduler said of the pod is not said in the other world.
        (pod.unscheduled, pod.nominated) = (None, None);
        let uid = pod.uid;
        let is_new = !self.stages.contains_key(&uid);
        if is_new {
            self.meet(&pod);
        }
        if let (Some(Stage::Waiting), Some(node)) = (self.stages.get(&uid), &pod.node) {
            let (at_ms, queue) = match self.binds.get(&uid) {
                Some((at_ms, bind)) if bind.node == *node => (*at_ms, bind.queue.clone()),
                _ => (self.now.at_ms, queue_of(&pod)),
            };
            self.bound(uid, at_ms, node.clone(), queue);
        }
        match self.stages.get(&uid) {
            Some(Stage::Bound { at_ms }) if pod.phase.ended() => {
                self.ran(uid, *at_ms, Some(pod.phase));
                self.stages.insert(uid, Stage::Ended);
            }
            // Of a bound pod only counts how long it ran.
            Some(Stage::Bound { .. } | Stage::Ended) => {}
            _ => {
                if pod.phase.ended() {
                    self.session.course.ended(uid, self.now.at_ms);
                }
                self.change(Object::Pod(pod));
            }
        }
    }

    fn meet(&mut self, pod: &PodFacts) {
        let uid = pod.uid;
        let waits = pod.node.is_none() && !pod.phase.ended();
        let stage = if waits { Stage::Waiting } else { Stage::Before };
        self.stages.insert(uid, stage);
        if waits {
            let life = Life {
                facts: pod.clone(),
                arrived_ms: self.now.at_ms,
                ran: None,
            };
            self.session.lives.insert(uid, life);
        }
    }

    fn bound(&mut self, uid: Uid, at_ms: UnixMs, node: Box<str>, queue: Box<str>) {
        if !matches!(self.stages.get(&uid), Some(Stage::Waiting)) {
            return;
        }
        self.stages.insert(uid, Stage::Bound { at_ms });
        let start = Start {
            at_ms,
            until_ms: None,
            node,
            queue,
        };
        self.session.course.starts.insert(uid, start);
    }

    /// Notes that a bound pod has ended and given back its room.
    fn ran(&mut self, uid: Uid, at_ms: UnixMs, phase: Option<PodPhase>) {
        self.session.course.ended(uid, self.now.at_ms);
        if let Some(life) = self.session.lives.get_mut(&uid)
            && !self.evicted.contains(&uid)
        {
            life.ran = Some(Ran {
                length_ms: self.now.at_ms.saturating_sub(at_ms),
                ended: self.now,
                phase,
                gone: None,
            });
        }
    }

    fn deleted(&mut self, key: ObjectKey) {
        self.now.event += 1;
        let before = self.known.remove(&key);
        self.node_changed(before.as_ref(), None);
        if let ObjectKey::Pod(uid) = key {
            match self.stages.remove(&uid) {
                Some(Stage::Bound { at_ms }) => return self.ran(uid, at_ms, None),
                Some(Stage::Ended) => {
                    let life = self.session.lives.get_mut(&uid);
                    if let Some(ran) = life.and_then(|life| life.ran.as_mut()) {
                        ran.gone = Some(self.now);
                    }
                    return;
                }
                Some(Stage::Before | Stage::Waiting) | None => {}
            }
        }
        self.happened(Event::Deleted(key));
    }

    fn node_changed(&mut self, before: Option<&Object>, after: Option<&Object>) {
        let gpus = |object: Option<&Object>| match object {
            Some(Object::Node(node)) => amount(&node.allocatable, GPU),
            _ => 0,
        };
        let (before, after) = (gpus(before), gpus(after));
        if before != after {
            if self.begun {
                self.count_gpus();
            }
            self.gpus = (self.gpus + after).saturating_sub(before);
        }
    }

    fn count_gpus(&mut self) {
        let passed_ms = self.now.at_ms.saturating_sub(self.gpus_since_ms);
        self.session.gpu_ms += u128::from(self.gpus) * u128::from(passed_ms);
        self.gpus_since_ms = self.now.at_ms;
    }
}

/// The queue of a pod that was bound without a known bind of this scheduler.
fn queue_of(pod: &PodFacts) -> Box<str> {
    let queue = pod.bound_queue.as_ref().or(pod.queue.as_ref());
    queue.map_or_else(|| "default".into(), Clone::clone)
}
