//! The world of a session under other settings, in virtual time.

use super::{Course, Moment, Promised, Session, Start, wholes};
use crate::timeline::{self, Timeline};
use gpu_batch_policies::command::{Bind, Evict};
use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::{PodFacts, PodPhase, QueueFacts, Uid, UnixMs};
use gpu_batch_policies::settings::{Leadership, Settings};
use std::collections::{BTreeMap, BTreeSet};

impl Session {
    /// The course that a scheduler with these settings would have taken. The queues given here are
    /// there from the start. They replace the queues with their names, and do not change.
    #[must_use]
    pub fn under(&self, settings: &Settings, queues: &[QueueFacts]) -> Course {
        let mut world = World::new(self, settings.clone(), queues);
        let first = world.timeline.advance(self.start_ms, []);
        world.follow(first);
        while let Some(at) = world.next().filter(|at| at.at_ms <= self.end_ms) {
            let events = world.happen(at);
            let moment = world.timeline.advance(at.at_ms, events);
            world.follow(moment);
        }
        world.course
    }
}

struct World<'session> {
    session: &'session Session,
    /// The events that are still to happen by themselves.
    happenings: &'session [(Moment, Event)],
    queues: BTreeSet<Box<str>>,
    timeline: Timeline,
    /// Pods that wait or run in this world, or have ended and are not deleted yet.
    pods: BTreeMap<Uid, PodFacts>,
    /// For each PodGroup and Job how many of its pods have not ended.
    parts: BTreeMap<ObjectKey, u32>,
    /// PodGroups and Jobs that are to be deleted when all their pods have ended.
    leaving: BTreeSet<ObjectKey>,
    due: BTreeMap<Moment, Due>,
    now_ms: UnixMs,
    course: Course,
}

/// An event that a bound pod still has before it: its end, or that it is gone.
#[derive(Debug, Clone, Copy)]
enum Due {
    End(Uid, Option<PodPhase>),
    Gone(Uid),
}

impl<'session> World<'session> {
    fn new(session: &'session Session, settings: Settings, queues: &[QueueFacts]) -> Self {
        let names: BTreeSet<Box<str>> = queues.iter().map(|queue| queue.name.clone()).collect();
        let replaced = |object: &&Object| match object {
            Object::Queue(queue) => names.contains(&queue.name),
            _ => false,
        };
        let kept = session.objects.iter().filter(|object| !replaced(object));
        let given = queues.iter().cloned().map(Object::Queue);
        let objects: Vec<Object> = kept.cloned().chain(given).collect();
        let settings = Settings {
            leadership: Leadership::Assumed,
            ..settings
        };
        let reserves = settings.reservations > 0;
        let mut world = Self {
            session,
            happenings: &session.happenings,
            timeline: Timeline::new(settings, session.start_ms, objects),
            queues: names,
            pods: BTreeMap::new(),
            parts: BTreeMap::new(),
            leaving: BTreeSet::new(),
            due: BTreeMap::new(),
            now_ms: session.start_ms,
            course: Course {
                promised: reserves.then(Promised::default),
                ..Course::default()
            },
        };
        for object in &session.objects {
            if let Object::Pod(pod) = object
                && session.lives.contains_key(&pod.uid)
            {
                world.came(pod.clone());
            }
        }
        world
    }

    fn came(&mut self, pod: PodFacts) {
        for whole in wholes(&pod) {
            *self.parts.entry(whole).or_default() += 1;
        }
        self.pods.insert(pod.uid, pod);
    }

    /// Notes that a pod has ended and holds no room any more. PodGroups and Jobs that have waited
    /// for it are deleted.
    fn ended(&mut self, pod: &PodFacts, events: &mut Vec<Event>) {
        self.course.ended(pod.uid, self.now_ms);
        for whole in wholes(pod) {
            if let Some(parts) = self.parts.get_mut(&whole) {
                *parts -= 1;
                if *parts == 0 {
                    self.parts.remove(&whole);
                    if self.leaving.remove(&whole) {
                        events.push(Event::Deleted(whole));
                    }
                }
            }
        }
    }

    /// The moment of the next event, without what the engine waits for.
    fn next_happening(&self) -> Option<Moment> {
        let own = self.happenings.first().map(|(at, _)| *at);
        let due = self.due.keys().next().copied();
        own.into_iter().chain(due).min()
    }

    /// The moment of the next step.
    fn next(&self) -> Option<Moment> {
        // If an event happens at the time for which the engine waits, its step comes first and
        // serves the engine, too.
        let engine = self.timeline.next_ms().map(|at_ms| Moment {
            at_ms,
            step: u64::MAX,
            event: u64::MAX,
        });
        self.next_happening().into_iter().chain(engine).min()
    }

    /// All events that happen up to the step of this moment, in their order.
    fn happen(&mut self, now: Moment) -> Vec<Event> {
        self.now_ms = now.at_ms;
        let in_time = |at: &Moment| (at.at_ms, at.step) <= (now.at_ms, now.step);
        let mut events = Vec::new();
        while let Some(at) = self.next_happening().filter(in_time) {
            match self.due.remove(&at) {
                Some(Due::End(uid, phase)) => self.end(uid, phase, &mut events),
                Some(Due::Gone(uid)) => {
                    if self.pods.remove(&uid).is_some() {
                        events.push(Event::Deleted(ObjectKey::Pod(uid)));
                    }
                }
                None => {
                    if let Some(((_, event), rest)) = self.happenings.split_first() {
                        self.happenings = rest;
                        self.take(event.clone(), &mut events);
                    }
                }
            }
        }
        events
    }

    fn end(&mut self, uid: Uid, phase: Option<PodPhase>, events: &mut Vec<Event>) {
        let Some(mut pod) = self.pods.remove(&uid) else {
            return;
        };
        match phase {
            Some(phase) => {
                pod.phase = phase;
                events.push(Object::Pod(pod.clone()).into());
            }
            None => events.push(Event::Deleted(ObjectKey::Pod(uid))),
        }
        self.ended(&pod, events);
        if phase.is_some() {
            self.pods.insert(uid, pod);
        }
    }

    /// Turns an event of the record into what it means in this world.
    fn take(&mut self, event: Event, events: &mut Vec<Event>) {
        match &event {
            Event::Applied(object) => match &**object {
                Object::Pod(pod) if self.session.lives.contains_key(&pod.uid) => {
                    return self.pod_changed(pod.clone(), events);
                }
                Object::Queue(queue) if self.queues.contains(&queue.name) => return,
                other => {
                    self.leaving.remove(&other.key());
                }
            },
            Event::Deleted(ObjectKey::Queue(name)) if self.queues.contains(name) => return,
            Event::Deleted(ObjectKey::Pod(uid)) if self.session.lives.contains_key(uid) => {
                let Some(pod) = self.pods.remove(uid) else {
                    return;
                };
                if !pod.phase.ended() {
                    self.ended(&pod, events);
                }
            }
            Event::Deleted(key) if self.parts.contains_key(key) => {
                self.leaving.insert(key.clone());
                return;
            }
            _ => {}
        }
        events.push(event);
    }

    /// A change of a pod that waits in the record. In this world it may run, or be gone.
    fn pod_changed(&mut self, mut pod: PodFacts, events: &mut Vec<Event>) {
        match self.pods.get_mut(&pod.uid) {
            Some(known) if known.node.is_some() => {
                pod.node.clone_from(&known.node);
                pod.cards.clone_from(&known.cards);
                pod.phase = known.phase;
                pod.bound_ms = known.bound_ms;
                pod.started_ms = known.started_ms;
                pod.bound_queue.clone_from(&known.bound_queue);
                pod.bound_pod_group.clone_from(&known.bound_pod_group);
                pod.bound_minima.clone_from(&known.bound_minima);
                *known = pod.clone();
            }
            Some(known) => *known = pod.clone(),
            None if self.course.starts.contains_key(&pod.uid) => return,
            None => self.came(pod.clone()),
        }
        events.push(Object::Pod(pod).into());
    }

    /// Takes in what the engine has done at a moment.
    fn follow(&mut self, moment: timeline::Moment) {
        self.now_ms = self.timeline.now_ms();
        for bind in moment.bound {
            self.bound(bind);
        }
        for Evict { pod, .. } in moment.evicted {
            self.course.evictions += 1;
            if let Some(pod) = self.pods.remove(&pod.uid) {
                let mut events = Vec::new();
                self.ended(&pod, &mut events);
                for event in events {
                    self.timeline.schedule(self.now_ms, event);
                }
            }
        }
        if let Some(promised) = &mut self.course.promised {
            promised.follow(self.timeline.engine(), self.now_ms);
        }
    }

    fn bound(&mut self, bind: Bind) {
        let uid = bind.pod.uid;
        let start = Start {
            at_ms: self.now_ms,
            until_ms: None,
            node: bind.node.clone(),
            queue: bind.queue.clone(),
        };
        self.course.starts.insert(uid, start);
        if let Some(pod) = self.pods.get_mut(&uid) {
            pod.node = Some(bind.node);
            pod.cards = bind.cards;
            pod.phase = PodPhase::Running;
            pod.bound_ms = Some(self.now_ms);
            pod.started_ms = Some(self.now_ms);
            pod.bound_queue = Some(bind.queue);
            pod.bound_pod_group = bind.pod_group;
            pod.bound_minima = bind.minima;
        }
        if let Some(ran) = self.session.lives.get(&uid).and_then(|life| life.ran) {
            let end_ms = self.now_ms.saturating_add(ran.length_ms);
            let ended = Moment {
                at_ms: end_ms,
                ..ran.ended
            };
            self.due.insert(ended, Due::End(uid, ran.phase));
            if let Some(gone) = ran.gone {
                let after_ms = gone.at_ms.saturating_sub(ran.ended.at_ms);
                let at_ms = end_ms.saturating_add(after_ms);
                self.due.insert(Moment { at_ms, ..gone }, Due::Gone(uid));
            }
        }
    }
}
