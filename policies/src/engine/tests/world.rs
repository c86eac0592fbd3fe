//! A world of a few objects that does what the engine commands, at once.

mod groups;

pub(super) use groups::{WithTopology, gang, inner, leaf};

use crate::command::{Action, Announcement, Bind, EvictionCause, ObjectReference, StatusPatch};
use crate::engine::Engine;
use crate::event::{Event, Kind, Listing, Object, ObjectKey, Outcome, PodSeen};
use crate::explain::Subject;
use crate::facts::{
    Amounts, CardFacts, CardIndex, CardRequest, GroupSource, MatchOperator, MatchRequirement,
    NodeFacts, NodeSelectorTerm, PodFacts, PodPhase, PodShape, QueueFacts, QueueResource,
    TopologyFacts, TopologyLevel, Uid,
};
use crate::gpu::PRODUCT_LABEL;
use crate::place::SLICE_STEPS;
use crate::plan::search::Allowance;
use crate::reason::Reason;
use crate::report::{GangReport, PodReport};
use crate::settings::Settings;
use alloc::{boxed::Box, collections::BTreeMap, format, string::String, sync::Arc, vec::Vec};
use core::hash::Hash;
use rustc_hash::FxHasher;

/// The time at which every test begins.
pub(super) const START_MS: u64 = 1_800_000_000_000;

pub(super) struct World {
    engine: Engine,
    pub(super) now_ms: u64,
    pods: BTreeMap<Box<str>, PodFacts>,
    uids: BTreeMap<Box<str>, Uid>,
    last_uid: u128,
    pub(super) binds: usize,
    pub(super) evictions: usize,
    /// Why the last one was evicted.
    pub(super) cause: Option<EvictionCause>,
    /// Pods that may not be bound: a webhook says no.
    pub(super) refused: Vec<&'static str>,
    /// Another scheduler binds this pod to this node before us; whether the watch tells so before
    /// our request is answered.
    pub(super) rival: Option<(&'static str, &'static str, bool)>,
    /// Kubernetes events that say where a pod went.
    pub(super) scheduled: usize,
    /// Kubernetes events about anything but pods and gangs: `KIND NAME: REASON: MESSAGE`.
    pub(super) told: Vec<String>,
    pub(super) steps: usize,
    /// Whether every gang is explained after each step.
    pub(super) asks: bool,
    /// How many shortages these explanations had.
    pub(super) shortages: usize,
    /// All commands so far, hashed.
    pub(super) commands: FxHasher,
    /// Writes of the status of PodGroups.
    pub(super) gang_statuses: usize,
    /// Whether their outcome is unknown.
    pub(super) loses_statuses: bool,
    /// Whether binds have no effect and an unknown outcome.
    pub(super) loses_binds: bool,
    /// Pods whose binding is put off: the API server throttles.
    pub(super) throttled: Vec<&'static str>,
    /// Whether the watch is late and does not tell what we have bound.
    pub(super) late_watch: bool,
    pub(super) last_group: Option<(GroupSource, Box<str>)>,
    /// What else exists, with what was last written of queues and PodGroups.
    pub(super) others: BTreeMap<ObjectKey, Object>,
    /// Whether what is written of queues gets lost.
    pub(super) loses_queues: bool,
    settings: Settings,
    events: Vec<Event>,
}

/// Empty lists of every kind.
fn listings() -> Vec<Event> {
    let listing = |kind| Listing {
        kind,
        objects: Vec::new(),
    };
    Kind::ALL.map(listing).map(Event::Listed).into()
}

/// Something that a test can put into the world.
pub(super) trait Thing {
    fn object(self, world: &mut World) -> Object;
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(super) fn with(settings: Settings) -> Self {
        Self {
            engine: Engine::new(settings.clone()),
            now_ms: START_MS,
            pods: BTreeMap::new(),
            uids: BTreeMap::new(),
            last_uid: 0,
            binds: 0,
            evictions: 0,
            cause: None,
            refused: Vec::new(),
            rival: None,
            scheduled: 0,
            told: Vec::new(),
            steps: 0,
            asks: false,
            shortages: 0,
            commands: FxHasher::default(),
            gang_statuses: 0,
            loses_statuses: false,
            loses_binds: false,
            throttled: Vec::new(),
            late_watch: false,
            last_group: None,
            others: BTreeMap::new(),
            loses_queues: false,
            settings,
            events: listings(),
        }
    }

    pub(super) fn apply(&mut self, thing: impl Thing) {
        let object = thing.object(self);
        if object.kind() != Kind::Pod {
            self.others.insert(object.key(), object.clone());
        }
        self.events.push(object.into());
    }

    /// Another engine takes over, which knows nothing but the objects there are.
    pub(super) fn take_over(&mut self) {
        self.engine = Engine::new(self.settings.clone());
        self.events = listings();
        let pods = self.pods.values().cloned().map(Object::Pod);
        let objects = self.others.values().cloned().chain(pods);
        self.events.extend(objects.map(Event::from));
    }

    /// Removes the past use that was written into the statuses of queues.
    pub(super) fn forget_past_use(&mut self) {
        for other in self.others.values_mut() {
            if let Object::Queue(queue) = other {
                queue.past_use = None;
            }
        }
    }

    fn uid(&mut self, name: &str) -> Uid {
        if let Some(uid) = self.uids.get(name) {
            return *uid;
        }
        self.last_uid += 1;
        self.uids.insert(name.into(), Uid(self.last_uid));
        Uid(self.last_uid)
    }

    pub(super) fn configure(&mut self, settings: Settings) {
        self.events.push(Event::Configured(Box::new(settings)));
    }

    pub(super) fn pass(&mut self, milliseconds: u64) {
        self.now_ms += milliseconds;
    }

    pub(super) fn end(&mut self, name: &str) {
        self.end_as(name, PodPhase::Succeeded);
    }
    pub(super) fn end_as(&mut self, name: &str, phase: PodPhase) {
        let facts = self.pods.get_mut(name).unwrap();
        facts.phase = phase;
        self.events.push(Object::Pod(facts.clone()).into());
    }

    fn rival_of(&self, pod: &str) -> Option<(&'static str, &'static str, bool)> {
        self.rival.filter(|(name, _, _)| *name == pod)
    }

    pub(super) fn lose_queue(&mut self, name: &str) {
        self.events
            .push(Event::Deleted(ObjectKey::Queue(name.into())));
    }

    pub(super) fn lose_node(&mut self, name: &str) {
        let key = ObjectKey::Node(name.into(), Uid(1 << 64));
        self.events.push(Event::Deleted(key));
    }

    /// The object is gone.
    pub(super) fn forget(&mut self, object: &Object) {
        if let Object::Pod(facts) = object {
            self.pods.remove(&facts.name);
        }
        self.events.push(Event::Deleted(object.key()));
    }

    pub(super) fn delete(&mut self, name: &str) {
        let facts = self.pods.remove(name).unwrap();
        self.uids.remove(name);
        self.events.push(Event::Deleted(ObjectKey::Pod(facts.uid)));
    }

    /// Whether the search for a gang's place goes on in the next step.
    pub(super) fn is_searching(&self) -> bool {
        self.engine.planner.search.is_some()
    }

    /// How many steps searches may take from now on, beyond the first slice of each.
    pub(super) fn allow_search(&mut self, steps: u64) {
        self.engine.planner.allowance = Allowance::of(steps, self.now_ms);
    }

    /// Whether a search that ended early goes on now, in the next steps.
    pub(super) fn search_on(&mut self) -> bool {
        self.engine.search_on()
    }

    /// Steps until nothing is left to do, and audits every step.
    pub(super) fn settle(&mut self) {
        for _ in 0..1000 {
            if !self.step() && self.engine.is_idle() {
                return;
            }
        }
        panic!("the engine does not come to rest");
    }

    /// Steps as [`World::settle`] does, until the messages of all gangs that wait are true now. No
    /// gang starts for it.
    pub(super) fn settle_and_review(&mut self) {
        self.settle();
        let binds = self.binds;
        self.engine.review();
        self.settle();
        assert_eq!(self.binds, binds, "a gang that fits has waited");
    }

    /// One step; whether there were commands.
    pub(super) fn step(&mut self) -> bool {
        let events = core::mem::take(&mut self.events);
        let before = self.engine.planner.allowance.left_at(self.now_ms);
        let commands = self.engine.step(self.now_ms, events);
        self.steps += 1;
        format!("{commands:?}").hash(&mut self.commands);
        if self.asks {
            for gang in self.engine.gang_reports() {
                let explained = self.engine.explain(Subject::Gang(&gang.name));
                self.shortages += explained.unwrap().shortages.len();
            }
        }
        let searched = before - self.engine.planner.allowance.left_at(self.now_ms);
        assert!(searched <= SLICE_STEPS, "{searched} steps in one slice");
        let violations = self.engine.audit();
        assert!(violations.is_empty(), "{violations:?}");
        for command in &commands {
            let outcome = self.carry_out(&command.action);
            self.events.push(Event::Outcome(command.id, outcome));
        }
        !commands.is_empty()
    }

    /// The engine panics over a gang; the next one gets empty lists.
    pub(super) fn panic_over(&mut self, gang: &str, message: &str) {
        let engine = &mut self.engine;
        let gangs = engine.state.gangs.iter();
        engine.planner.in_hand = gangs
            .filter(|(_, found)| &*found.name == gang)
            .map(|(id, _)| id)
            .next();
        assert_eq!(engine.gang_in_hand(), Some(gang));
        self.engine = engine.after_panic(message);
        self.events = listings();
    }

    pub(super) fn shut_down(&mut self) {
        self.engine.shut_down();
    }

    /// Requests may be sent again, after they could not.
    pub(super) fn let_act(&mut self) {
        self.engine.binder.outbox.limits = Settings::default().in_flight;
    }

    fn carry_out(&mut self, action: &Action) -> Outcome {
        match action {
            Action::Bind(bind) => return self.bind(bind),
            Action::Evict(evict) => {
                self.evictions += 1;
                self.cause = Some(evict.cause);
                let name = evict.pod.name.clone();
                self.delete(&name);
            }
            Action::PatchStatus(StatusPatch::Unscheduled {
                pod,
                reason,
                message,
                ..
            }) => {
                let condition = crate::facts::ScheduledCondition {
                    reason: reason.clone(),
                    message: message.clone(),
                };
                let facts = self.pods.get_mut(&pod.name).unwrap();
                facts.unscheduled = Some(condition);
                self.events.push(Object::Pod(facts.clone()).into());
            }
            Action::PatchStatus(StatusPatch::PodGroup { name, status, .. }) => {
                self.gang_statuses += 1;
                if self.loses_statuses {
                    return lost();
                }
                for other in self.others.values_mut() {
                    if let Object::PodGroup(group) = other
                        && group.name == *name
                    {
                        group.status = Some(status.clone());
                    }
                }
            }
            Action::PatchStatus(StatusPatch::Queue { name, status, .. }) => {
                if self.loses_queues {
                    return lost();
                }
                let key = ObjectKey::Queue(name.clone());
                if let Some(Object::Queue(queue)) = self.others.get_mut(&key) {
                    queue.past_use.clone_from(&status.past_use);
                }
            }
            Action::Publish(announcement) => self.publish(announcement),
            Action::Observe(pod) => {
                let node = self.pods[&pod.name].node.clone();
                return Outcome::Observed(node.map_or(PodSeen::Unbound, PodSeen::Bound));
            }
            Action::Lease(_) => {}
        }
        Outcome::Done
    }

    fn bind(&mut self, bind: &Bind) -> Outcome {
        self.binds += 1;
        if self.loses_binds {
            return lost();
        }
        if self.throttled.contains(&&*bind.pod.name) {
            return Outcome::Throttled {
                retry_after_ms: 1_000,
            };
        }
        if self.refused.contains(&&*bind.pod.name) {
            let message = "a webhook says no".into();
            return Outcome::Refused { message };
        }
        if let Some((_, node, told_first)) = self.rival_of(&bind.pod.name) {
            let facts = self.pods.get_mut(&bind.pod.name).unwrap();
            facts.node = Some(node.into());
            if told_first {
                self.events.push(Object::Pod(facts.clone()).into());
            }
            let message = "it is bound already".into();
            return Outcome::Conflict { message };
        }
        self.last_group = bind
            .pod_group
            .clone()
            .map(|name| (GroupSource::GpuBatch, name));
        let facts = self.pods.get_mut(&bind.pod.name).unwrap();
        facts.node = Some(bind.node.clone());
        facts.cards = bind.cards.clone();
        facts.bound_ms = Some(self.now_ms);
        facts.bound_minima.clone_from(&bind.minima);
        facts.phase = PodPhase::Running;
        if !self.late_watch {
            self.events.push(Object::Pod(facts.clone()).into());
        }
        Outcome::Done
    }

    fn publish(&mut self, announcement: &Announcement) {
        self.scheduled += usize::from(announcement.reason == "Scheduled");
        let ObjectReference {
            kind,
            name,
            namespace,
            ..
        } = &announcement.regarding;
        if namespace.is_empty() || announcement.reason != "Scheduled" {
            let Announcement {
                reason, message, ..
            } = announcement;
            self.told
                .push(format!("{kind} {name}: {reason}: {message}"));
        }
    }

    pub(super) fn pod(&self, name: &str) -> PodReport {
        let reports = self.engine.pod_reports();
        reports
            .into_iter()
            .find(|report| &*report.name == name)
            .unwrap()
    }

    pub(super) fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    pub(super) fn find(&self, name: &str) -> Option<PodReport> {
        let mut reports = self.engine.pod_reports().into_iter();
        reports.find(|report| &*report.name == name)
    }

    pub(super) fn node_of(&self, name: &str) -> Option<Box<str>> {
        self.pod(name).node
    }

    /// The cards that a pod was bound to.
    pub(super) fn cards_of(&self, name: &str) -> &[CardIndex] {
        &self.pods[name].cards
    }

    pub(super) fn nodes_of(&self, names: &[&str]) -> Vec<Box<str>> {
        let mut nodes: Vec<_> = names.iter().filter_map(|name| self.node_of(name)).collect();
        nodes.sort();
        nodes
    }

    pub(super) fn gang(&self, name: &str) -> GangReport {
        let reports = self.engine.gang_reports();
        let names: Vec<_> = reports.iter().map(|report| report.name.clone()).collect();
        reports
            .into_iter()
            .find(|report| report.name == name)
            .unwrap_or_else(|| panic!("no gang {name} among {names:?}"))
    }

    pub(super) fn reason(&self, gang: &str) -> Option<Reason> {
        self.gang(gang).status.reason
    }

    pub(super) fn reason_of_pod(&self, name: &str) -> Option<Reason> {
        self.pod(name).reason
    }

    /// When the engine wants to go on by itself.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.engine.next_deadline()
    }

    /// The GPUs that a queue asks for, and holds.
    pub(super) fn requested(&mut self, queue: &str) -> u64 {
        let reports = self.engine.queue_reports();
        let report = reports.iter().find(|report| &*report.name == queue);
        let requested = &report
            .unwrap_or_else(|| panic!("no queue {queue}"))
            .status
            .requested;
        let gpus = requested
            .iter()
            .filter(|(key, _)| &**key == "nvidia.com/gpu");
        gpus.map(|(_, amount)| amount).sum()
    }

    pub(super) fn message(&self, gang: &str) -> String {
        self.gang(gang).status.message.into()
    }
}

impl Thing for Object {
    fn object(self, world: &mut World) -> Object {
        if let Object::Pod(facts) = &self {
            world.pods.insert(facts.name.clone(), facts.clone());
        }
        self
    }
}

/// A pod of 1 CPU and so many GPUs.
pub(super) struct PodSketch {
    name: Box<str>,
    gpus: u64,
    node: Option<Box<str>>,
    group: Option<Box<str>>,
    sub_group: Option<Box<str>>,
    queue: Option<Box<str>>,
    gates: Vec<Box<str>>,
    runtime_ms: Option<u64>,
    created_ms: u64,
    ours: bool,
    cards: Option<CardRequest>,
    held: Vec<CardIndex>,
    model: Option<&'static str>,
    affinity: Option<NodeSelectorTerm>,
    more: Vec<(&'static str, u64)>,
}

pub(super) fn pod(name: &str, gpus: u64) -> PodSketch {
    let name = name.into();
    PodSketch {
        name,
        gpus,
        node: None,
        group: None,
        sub_group: None,
        queue: None,
        gates: Vec::new(),
        runtime_ms: None,
        created_ms: START_MS - 60_000,
        ours: true,
        cards: None,
        held: Vec::new(),
        model: None,
        affinity: None,
        more: Vec::new(),
    }
}

impl PodSketch {
    /// Of another scheduler.
    pub(super) fn foreign(mut self) -> Self {
        self.ours = false;
        self
    }

    /// It asks for cards that we choose.
    pub(super) fn cards(mut self, cards: Option<CardRequest>) -> Self {
        assert!(cards.is_some());
        self.cards = cards;
        self
    }

    /// It holds these cards of its node.
    pub(super) fn holds(mut self, cards: &[CardIndex]) -> Self {
        self.held = cards.into();
        self
    }

    /// Created after all others were bound.
    pub(super) fn late(mut self) -> Self {
        self.created_ms = START_MS;
        self
    }

    pub(super) fn on(mut self, node: &str) -> Self {
        self.node = Some(node.into());
        self
    }

    pub(super) fn of(mut self, group: &str) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Of a leaf of the group.
    pub(super) fn of_leaf(mut self, group: &str, leaf: &str) -> Self {
        self.sub_group = Some(leaf.into());
        self.of(group)
    }

    pub(super) fn queue(mut self, queue: &str) -> Self {
        self.queue = Some(queue.into());
        self
    }

    pub(super) fn gate(mut self, gate: &str) -> Self {
        self.gates.push(gate.into());
        self
    }

    /// It runs on GPUs of this model alone.
    pub(super) fn model(mut self, model: &'static str) -> Self {
        self.model = Some(model);
        self
    }

    /// The pod runs only on nodes of which a label is like this.
    pub(super) fn needs(mut self, key: &str, operator: MatchOperator, values: &[&str]) -> Self {
        let requirement = MatchRequirement {
            key: key.into(),
            operator,
            values: values.iter().map(|value| (*value).into()).collect(),
        };
        self.affinity = Some(NodeSelectorTerm {
            match_expressions: [requirement].into(),
            match_fields: Vec::new(),
        });
        self
    }

    /// It asks for one of this, too.
    pub(super) fn with_one(mut self, resource: &'static str) -> Self {
        self.more.push((resource, 1));
        self
    }

    /// It is expected to run so long.
    pub(super) fn runtime(mut self, runtime_ms: u64) -> Self {
        self.runtime_ms = Some(runtime_ms);
        self
    }
}

impl Thing for PodSketch {
    fn object(self, world: &mut World) -> Object {
        let usual = [("cpu", 1000), ("nvidia.com/gpu", self.gpus), ("pods", 1)];
        let label = |model: &str| (PRODUCT_LABEL.into(), model.into());
        let shape = PodShape {
            requests: amounts(&[&usual[..], &self.more].concat()),
            node_selector: self.model.map(label).into_iter().collect(),
            node_affinity: self.affinity.map(|term| Vec::from([term])),
            cards: self.cards,
            ..PodShape::default()
        };
        let facts = PodFacts {
            ours: self.ours,
            bound_ms: self.node.as_ref().map(|_| START_MS - 30_000),
            node: self.node,
            cards: self.held,
            created_ms: self.created_ms,
            gates: self.gates,
            pod_group: self.group,
            sub_group: self.sub_group,
            queue: self.queue,
            hints: crate::facts::GangHints {
                expected_runtime_ms: self.runtime_ms,
                ..crate::facts::GangHints::default()
            },
            ..PodFacts::new(
                world.uid(&self.name),
                "default",
                &self.name,
                Arc::new(shape),
            )
        };
        world.pods.insert(self.name, facts.clone());
        Object::Pod(facts)
    }
}

pub(super) fn amounts(amounts: &[(&str, u64)]) -> Amounts {
    let mut amounts: Amounts = amounts
        .iter()
        .filter(|(_, amount)| *amount > 0)
        .map(|(name, amount)| ((*name).into(), *amount))
        .collect();
    amounts.sort();
    amounts
}

/// A node of 100 CPUs and so many GPUs.
pub(super) fn node(name: &str, gpus: u64) -> NodeFacts {
    let resources = amounts(&[("cpu", 100_000), ("nvidia.com/gpu", gpus), ("pods", 110)]);
    NodeFacts::new(Uid(1 << 64), name, resources)
}

impl NodeFacts {
    /// It names so many cards with so much memory each.
    pub(super) fn with_cards(mut self, count: usize, memory_mib: u64) -> Self {
        self.cards = alloc::vec![CardFacts { memory_mib }; count];
        self
    }

    pub(super) fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.into(), value.into()));
        self.labels.sort();
        self
    }
}

impl Thing for NodeFacts {
    fn object(self, _: &mut World) -> Object {
        Object::Node(self)
    }
}

pub(super) fn queue(name: &str) -> QueueFacts {
    QueueFacts {
        created_ms: START_MS - 60_000,
        ..QueueFacts::new(Uid(3 << 64), name)
    }
}

impl QueueFacts {
    pub(super) fn parent(mut self, parent: &str) -> Self {
        self.parent = Some(parent.into());
        self
    }

    pub(super) fn limit(self, gpus: u64) -> Self {
        self.entry("nvidia.com/gpu", None, (0, Some(gpus)), 1)
    }

    pub(super) fn entry(
        mut self,
        name: &str,
        product: Option<&str>,
        (quota, limit): (u64, Option<u64>),
        weight: u16,
    ) -> Self {
        self.resources.push(QueueResource {
            name: name.into(),
            product: product.map(Into::into),
            quota,
            limit,
            weight,
        });
        self
    }
}

impl Thing for QueueFacts {
    fn object(self, _: &mut World) -> Object {
        Object::Queue(self)
    }
}

pub(super) fn topology(name: &str, levels: &[&str]) -> TopologyFacts {
    let levels = levels
        .iter()
        .map(|level| TopologyLevel {
            name: (*level).into(),
            node_label: (*level).into(),
        })
        .collect();
    TopologyFacts {
        name: name.into(),
        uid: Uid(4 << 64 | u128::from(name.len() as u64)),
        levels,
        problems: Vec::new(),
    }
}

impl Thing for TopologyFacts {
    fn object(self, _: &mut World) -> Object {
        Object::Topology(self)
    }
}

/// The outcome of a request whose answer was lost.
fn lost() -> Outcome {
    let message = "the answer was lost".into();
    Outcome::Unknown { message }
}
