//! A model of the API server, of controllers and of kubelets, in virtual time.
//!
//! What it knows of the real one: a bind is refused with a conflict if the pod is leaving, has a
//! node (even the same one) or has gates; the node is not looked at; UIDs are preconditions. News
//! of one kind arrives in order, of several kinds in any order.

use crate::faults::Faults;
use crate::random::Random;
use gpu_batch_policies::command::{Action, Bind, Evict, StatusPatch};
use gpu_batch_policies::event::{Event, Kind, Listing, Object, ObjectKey, Outcome, PodSeen};
use gpu_batch_policies::facts::{
    NodeFacts, PodFacts, PodGroupFacts, PodPhase, QueueFacts, ScheduledCondition, TopologyFacts,
    Uid, UnixMs,
};
use std::collections::{BTreeMap, VecDeque};

/// All objects, and the news that has not been delivered.
#[derive(Debug, Default)]
pub struct World {
    /// Nodes by name.
    pub nodes: BTreeMap<Box<str>, NodeFacts>,
    /// Pods by UID.
    pub pods: BTreeMap<Uid, PodFacts>,
    /// PodGroups by name.
    pub pod_groups: BTreeMap<Box<str>, PodGroupFacts>,
    /// Queues by name.
    pub queues: BTreeMap<Box<str>, QueueFacts>,
    /// Topologies by name.
    pub topologies: BTreeMap<Box<str>, TopologyFacts>,
    /// Binds that were accepted, by pod: never more than one.
    pub binds: BTreeMap<Uid, u32>,
    /// Evictions that were accepted.
    pub evictions: u32,
    evicted: Vec<PodFacts>,
    news: BTreeMap<Kind, VecDeque<(UnixMs, Event)>>,
    last_uid: u128,
}

impl World {
    /// A UID that no object has had.
    pub fn new_uid(&mut self) -> Uid {
        self.last_uid += 1;
        Uid(self.last_uid)
    }

    /// Creates or changes an object; the news goes out.
    pub fn put(&mut self, object: Object, at_ms: UnixMs) {
        match object.clone() {
            Object::Node(facts) => drop(self.nodes.insert(facts.name.clone(), facts)),
            Object::Pod(facts) => drop(self.pods.insert(facts.uid, facts)),
            Object::PodGroup(facts) => drop(self.pod_groups.insert(facts.name.clone(), facts)),
            Object::Queue(facts) => drop(self.queues.insert(facts.name.clone(), facts)),
            Object::Topology(facts) => drop(self.topologies.insert(facts.name.clone(), facts)),
            Object::PriorityClass(_) | Object::Namespace(_) | Object::Job(_) => {}
        }
        self.tell(object.kind(), at_ms, object.into());
    }

    /// Deletes a pod; the news goes out.
    pub fn delete_pod(&mut self, uid: Uid, at_ms: UnixMs) {
        if self.pods.remove(&uid).is_some() {
            self.tell(Kind::Pod, at_ms, Event::Deleted(ObjectKey::Pod(uid)));
        }
    }

    /// Deletes a node; the news goes out.
    pub fn delete_node(&mut self, name: &str, at_ms: UnixMs) {
        if let Some(facts) = self.nodes.remove(name) {
            let key = ObjectKey::Node(facts.name, facts.uid);
            self.tell(Kind::Node, at_ms, Event::Deleted(key));
        }
    }

    /// The pods that were evicted since the last call: their owners make new ones.
    pub fn take_evicted(&mut self) -> Vec<PodFacts> {
        std::mem::take(&mut self.evicted)
    }

    fn tell(&mut self, kind: Kind, at_ms: UnixMs, event: Event) {
        let news = self.news.entry(kind).or_default();
        // News of a kind never overtakes earlier news of it.
        let at_ms = news.back().map_or(at_ms, |(last, _)| at_ms.max(*last));
        news.push_back((at_ms, event));
    }

    /// Takes the news that has arrived by now.
    pub fn arrived(&mut self, now_ms: UnixMs) -> Vec<Event> {
        let mut arrived = Vec::new();
        for news in self.news.values_mut() {
            while news.front().is_some_and(|(at_ms, _)| *at_ms <= now_ms) {
                arrived.extend(news.pop_front().map(|(_, event)| event));
            }
        }
        arrived
    }

    /// When the next news arrives.
    #[must_use]
    pub fn next_news(&self) -> Option<UnixMs> {
        self.news
            .values()
            .filter_map(|news| Some(news.front()?.0))
            .min()
    }

    /// A list of a kind as it is now; the news of the kind that is under way is void.
    pub fn list(&mut self, kind: Kind) -> Event {
        self.news.remove(&kind);
        let objects = match kind {
            Kind::Node => self.nodes.values().cloned().map(Object::Node).collect(),
            Kind::Pod => self.pods.values().cloned().map(Object::Pod).collect(),
            Kind::PodGroup => self
                .pod_groups
                .values()
                .cloned()
                .map(Object::PodGroup)
                .collect(),
            Kind::Queue => self.queues.values().cloned().map(Object::Queue).collect(),
            Kind::Topology => self
                .topologies
                .values()
                .cloned()
                .map(Object::Topology)
                .collect(),
            Kind::NativePodGroup | Kind::PriorityClass | Kind::Namespace | Kind::Job => Vec::new(),
        };
        Event::Listed(Listing { kind, objects })
    }

    /// Carries out a request, or not, as the faults have it.
    pub fn request(
        &mut self,
        action: &Action,
        faults: &Faults,
        random: &mut Random,
        now_ms: UnixMs,
    ) -> Outcome {
        if random.percent(faults.request_lost) {
            return Outcome::Unknown;
        }
        if random.percent(faults.throttled) {
            return Outcome::Throttled {
                retry_after_ms: 1_000,
            };
        }
        if matches!(action, Action::Bind(_)) && random.percent(faults.refused) {
            return Outcome::Refused {
                message: "a webhook said no".into(),
            };
        }
        let news_ms = now_ms + random.below(faults.late_ms + 1);
        let outcome = self.carry_out(action, news_ms);
        if random.percent(faults.response_lost) {
            Outcome::Unknown
        } else {
            outcome
        }
    }

    fn carry_out(&mut self, action: &Action, news_ms: UnixMs) -> Outcome {
        match action {
            Action::Bind(bind) => self.bind(bind, news_ms),
            Action::Evict(evict) => self.evict(evict, news_ms),
            Action::Observe(pod) => Outcome::Observed(match self.pods.get(&pod.uid) {
                None => PodSeen::Gone,
                Some(facts) => facts.node.clone().map_or(PodSeen::Unbound, PodSeen::Bound),
            }),
            Action::PatchStatus(StatusPatch::Unscheduled {
                pod,
                reason,
                message,
                ..
            }) => {
                let Some(mut facts) = self.pods.get(&pod.uid).cloned() else {
                    return Outcome::NotFound;
                };
                let (reason, message) = (reason.clone(), message.clone());
                facts.unscheduled = Some(ScheduledCondition { reason, message });
                self.put(Object::Pod(facts), news_ms);
                Outcome::Done
            }
            Action::PatchStatus(_) | Action::Publish(_) | Action::Lease(_) => Outcome::Done,
        }
    }

    fn bind(&mut self, bind: &Bind, news_ms: UnixMs) -> Outcome {
        let Some(mut facts) = self.pods.get(&bind.pod.uid).cloned() else {
            return Outcome::NotFound;
        };
        if facts.node.is_some() || facts.deleting || !facts.gates.is_empty() {
            return Outcome::Conflict;
        }
        *self.binds.entry(facts.uid).or_insert(0) += 1;
        facts.node = Some(bind.node.clone());
        facts.bound_ms = Some(news_ms);
        facts.phase = PodPhase::Running;
        facts.bound_queue = Some(bind.queue.clone());
        facts.bound_pod_group.clone_from(&bind.pod_group);
        facts.unscheduled = None;
        self.put(Object::Pod(facts), news_ms);
        Outcome::Done
    }

    fn evict(&mut self, evict: &Evict, news_ms: UnixMs) -> Outcome {
        let Some(facts) = self.pods.get(&evict.pod.uid).cloned() else {
            return Outcome::NotFound;
        };
        self.evictions += 1;
        self.evicted.push(facts);
        self.delete_pod(evict.pod.uid, news_ms);
        Outcome::Done
    }
}
