//! A world of a few objects that does what the engine commands, at once.

use crate::{START_MS, Thing};
use gpu_batch_policies::command::{
    Action, Announcement, Bind, Command, EvictionCause, KeepVolume, Lift, SelectNode, StatusPatch,
};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Object, ObjectKey, Outcome, PodSeen};
use gpu_batch_policies::facts::{
    GANG_GATE, PodFacts, PodPhase, ScheduledCondition, StorageFacts, StorageKind, Uid,
};
use gpu_batch_policies::settings::Settings;
use std::collections::BTreeMap;

/// After so many steps an engine must be at rest.
const STEPS_MAX: usize = 2_000;

/// Commands of one sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// Every binding.
    Bind,
    /// The binding of the pod of this name.
    BindOf(&'static str),
    /// The eviction of the pod of this name.
    EvictionOf(&'static str),
    /// The nomination of the pod of this name.
    NominationOf(&'static str),
    /// The lifting of the gate of the pod of this name.
    LiftOf(&'static str),
    /// The selection of a node for the claim of this name.
    SelectionOf(&'static str),
    /// That a volume is kept for the claim of this name.
    KeepingFor(&'static str),
    /// The lock on the cards of the node of this name.
    LockOf(&'static str),
    /// That the lock on the cards of the node of this name is given back.
    UnlockOf(&'static str),
    /// Every status of a PodGroup.
    GangStatus,
    /// Every status of a queue.
    QueueStatus,
}

/// An engine, the objects that it sees, and what it has done to them.
#[derive(Debug)]
pub struct World {
    /// Decides, and answers questions that the world has no word for.
    pub engine: Engine,
    /// The present.
    pub now_ms: u64,
    /// What the API server holds, as the watches tell it but for [`World::late_watch`].
    pub objects: BTreeMap<ObjectKey, Object>,
    /// What the engine hears with the next step.
    pub events: Vec<Event>,
    /// Whether the watches do not tell what was bound.
    pub late_watch: bool,
    /// Bindings that were asked for, with success or not.
    pub binds: usize,
    /// The last binding that succeeded.
    pub last_bind: Option<Bind>,
    /// Selections of nodes for claims that were asked for, with success or not.
    pub selections: usize,
    /// Volumes that were to be kept for claims, with success or not.
    pub keepings: usize,
    /// Whether no provisioner makes volumes where claims say, and no controller binds claims to
    /// volumes that are kept for them.
    pub no_provisioner: bool,
    /// Locks on cards that were taken and given back, as `POD locks NODE` and `POD unlocks NODE`.
    pub lock_requests: Vec<String>,
    /// Whether device plugins give pods their cards only when the test says so.
    pub is_plugin_slow: bool,
    /// Pods that were evicted.
    pub evictions: usize,
    /// The pods that were evicted, by name, in order.
    pub evicted: Vec<String>,
    /// How long evicted pods have for leaving: they stay until the test deletes them. `None`: they
    /// leave at once.
    pub grace_ms: Option<u64>,
    /// Why the last pod was evicted.
    pub cause: Option<EvictionCause>,
    /// Kubernetes events that say where a pod went.
    pub scheduled: usize,
    /// All Kubernetes events but those that say where a pod went: `KIND NAME: REASON: MESSAGE`.
    pub told: Vec<String>,
    /// Statuses of PodGroups that were written, with success or not.
    pub gang_statuses: usize,
    /// Statuses of Queues that were written, with success or not.
    pub queue_statuses: usize,
    /// Steps so far.
    pub steps: usize,
    settings: Settings,
    answers: Vec<(To, Outcome)>,
    last_uid: u128,
}

/// The outcome of a request whose answer was lost.
#[must_use]
pub fn lost() -> Outcome {
    let message = "the answer was lost".into();
    Outcome::Unknown { message }
}

/// The outcome of a request that a webhook denies.
#[must_use]
pub fn refused() -> Outcome {
    let message = "a webhook says no".into();
    Outcome::Refused { message }
}

/// The outcome of a request that another one has overtaken.
#[must_use]
pub fn conflict() -> Outcome {
    let message = "it is bound already".into();
    Outcome::Conflict { message }
}

/// The outcome of a request for which the API server has no time.
#[must_use]
pub fn throttled() -> Outcome {
    Outcome::Throttled {
        retry_after_ms: 1_000,
    }
}

impl World {
    /// An empty world under default settings, whose engine has not made a step.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    /// An empty world under these settings.
    #[must_use]
    pub fn with(settings: Settings) -> Self {
        Self {
            engine: Engine::new(settings.clone()),
            now_ms: START_MS,
            objects: BTreeMap::new(),
            events: Event::lists([]),
            late_watch: false,
            selections: 0,
            keepings: 0,
            lock_requests: Vec::new(),
            is_plugin_slow: false,
            no_provisioner: false,
            binds: 0,
            last_bind: None,
            evictions: 0,
            evicted: Vec::new(),
            grace_ms: None,
            cause: None,
            scheduled: 0,
            told: Vec::new(),
            gang_statuses: 0,
            queue_statuses: 0,
            steps: 0,
            settings,
            answers: Vec::new(),
            last_uid: 0,
        }
    }

    /// An empty world under default settings, in which evicted pods have so long for leaving.
    #[must_use]
    pub fn with_grace(seconds: u64) -> Self {
        Self {
            grace_ms: Some(seconds * 1_000),
            ..Self::new()
        }
    }

    /// A world of these things, under default settings, at rest.
    #[must_use]
    pub fn of(things: impl Thing) -> Self {
        let mut world = Self::new();
        world.then(things);
        world
    }

    /// Creates or changes objects; the engine hears of it with the next step.
    pub fn apply(&mut self, things: impl Thing) {
        for object in things.objects() {
            let object = self.with_uid(object);
            self.objects.insert(object.key(), object.clone());
            self.events.push(object.into());
        }
    }

    /// Creates or changes objects, and lets everything come to rest.
    pub fn then(&mut self, things: impl Thing) {
        self.apply(things);
        self.settle();
    }

    /// A pod without a UID has that of the pod of its name, or a new one.
    fn with_uid(&mut self, mut object: Object) -> Object {
        if let Object::Pod(pod) = &mut object
            && pod.uid == Uid(0)
        {
            let known = self.find_pod(&pod.name).map(|known| known.uid);
            pod.uid = known.unwrap_or_else(|| {
                self.last_uid += 1;
                Uid(self.last_uid)
            });
        }
        object
    }

    fn find_pod(&self, name: &str) -> Option<&PodFacts> {
        self.objects.values().find_map(|object| match object {
            Object::Pod(pod) if &*pod.name == name => Some(pod),
            _ => None,
        })
    }

    /// A pod as the API server holds it.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn stored(&self, pod: &str) -> &PodFacts {
        let found = self.find_pod(pod);
        found.unwrap_or_else(|| panic!("there is no pod {pod}"))
    }

    /// Changes pods of these names; the watch tells it.
    pub fn change(&mut self, pods: &str, change: impl Fn(&mut PodFacts)) {
        for name in pods.split_whitespace() {
            let mut pod = self.stored(name).clone();
            change(&mut pod);
            self.apply(pod);
        }
    }

    /// Pods of these names succeed.
    pub fn end(&mut self, pods: &str) {
        self.change(pods, |pod| pod.phase = PodPhase::Succeeded);
    }

    /// Pods of these names fail.
    pub fn fail(&mut self, pods: &str) {
        self.change(pods, |pod| pod.phase = PodPhase::Failed);
    }

    /// The object is gone.
    pub fn forget(&mut self, key: ObjectKey) {
        self.objects.remove(&key);
        self.events.push(Event::Deleted(key));
    }

    /// Pods of these names are gone.
    pub fn delete(&mut self, pods: &str) {
        for name in pods.split_whitespace() {
            let key = ObjectKey::Pod(self.stored(name).uid);
            self.forget(key);
        }
    }

    /// A node is gone.
    ///
    /// # Panics
    /// If there is none of the name.
    pub fn lose_node(&mut self, name: &str) {
        let of_name = |key: &&ObjectKey| matches!(key, ObjectKey::Node(node, _) if &**node == name);
        let key = self.objects.keys().find(of_name).cloned();
        self.forget(key.unwrap_or_else(|| panic!("there is no node {name}")));
    }

    /// A queue is gone.
    pub fn lose_queue(&mut self, name: &str) {
        self.forget(ObjectKey::Queue(name.into()));
    }

    /// Another engine takes over, which knows nothing but the objects that there are.
    pub fn take_over(&mut self) {
        self.engine = Engine::new(self.settings.clone());
        self.events = Event::lists(self.objects.values().cloned());
    }

    /// The settings change.
    pub fn configure(&mut self, settings: Settings) {
        self.events.push(Event::Configured(Box::new(settings)));
    }

    /// From now on the API server answers commands of a sort so.
    pub fn answers(&mut self, to: To, outcome: Outcome) {
        self.answers_again(&to);
        self.answers.push((to, outcome));
    }

    /// From now on commands of a sort succeed again.
    pub fn answers_again(&mut self, to: &To) {
        self.answers.retain(|(other, _)| other != to);
    }

    /// The clock goes on; nothing else happens.
    pub fn pass(&mut self, milliseconds: u64) {
        self.now_ms += milliseconds;
    }

    /// The clock goes on, and then everything comes to rest.
    pub fn later(&mut self, milliseconds: u64) {
        self.pass(milliseconds);
        self.settle();
    }

    /// Time goes on in tenths of a second, with everything at rest after each.
    pub fn run(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds / 100 {
            self.pass(100);
            self.settle();
        }
    }

    /// Steps until nothing is left to do, and audits every step.
    ///
    /// # Panics
    /// If that never comes, or the audit finds something.
    pub fn settle(&mut self) {
        self.settle_with(&mut |_, _| {});
    }

    fn settle_with(&mut self, each: &mut impl FnMut(&mut Engine, &[Command])) {
        for _ in 0..STEPS_MAX {
            if !self.step_with(each) && self.engine.is_idle() {
                return;
            }
        }
        panic!("the engine does not come to rest");
    }

    /// Settles until the messages of all gangs that wait are true now.
    ///
    /// # Panics
    /// If a gang starts for it: it has waited, and fits.
    pub fn settle_and_review(&mut self) {
        self.settle_and_review_with(&mut |_, _| {});
    }

    /// As [`World::settle_and_review`]. After each step `each` gets the engine and the commands,
    /// which are not carried out yet.
    ///
    /// # Panics
    /// If a gang starts for it: it has waited, and fits.
    pub fn settle_and_review_with(&mut self, each: &mut impl FnMut(&mut Engine, &[Command])) {
        self.settle_with(each);
        let binds = self.binds;
        self.engine.review();
        self.settle_with(each);
        assert_eq!(self.binds, binds, "a gang that fits has waited");
    }

    /// One step, whose commands are carried out; whether there were any.
    ///
    /// # Panics
    /// If the audit finds something.
    pub fn step(&mut self) -> bool {
        self.step_with(&mut |_, _| {})
    }

    fn step_with(&mut self, each: &mut impl FnMut(&mut Engine, &[Command])) -> bool {
        let commands = self.commands();
        each(&mut self.engine, &commands);
        let violations = self.engine.audit();
        assert!(violations.is_empty(), "{violations:?}");
        let any = !commands.is_empty();
        for command in commands {
            let outcome = self.answer_to(&command.action);
            self.carry_out(command, outcome);
        }
        any
    }

    /// One step, whose commands are left to the test: see [`World::carry_out`].
    pub fn commands(&mut self) -> Vec<Command> {
        self.steps += 1;
        let events = std::mem::take(&mut self.events);
        self.engine.step(self.now_ms, events)
    }

    /// A command has ended so. It has an effect if it succeeded, and none otherwise.
    pub fn carry_out(&mut self, command: Command, outcome: Outcome) {
        let done = outcome == Outcome::Done;
        match command.action {
            Action::Bind(bind) => {
                self.binds += 1;
                if done {
                    self.bind(bind);
                }
            }
            Action::Evict(evict) => {
                self.evictions += 1;
                self.cause = Some(evict.cause);
                if done {
                    self.evicted.push(evict.pod.name.to_string());
                    self.evict(evict.pod.uid);
                }
            }
            Action::Lift(lift) if done => self.lift(lift),
            Action::SelectNode(select) => {
                self.selections += 1;
                if done {
                    self.select(select);
                }
            }
            Action::KeepVolume(keep) => {
                self.keepings += usize::from(keep.claim.is_some());
                if done {
                    self.keep(keep);
                }
            }
            Action::PatchStatus(patch) => {
                let of_gang = matches!(patch, StatusPatch::PodGroup { .. });
                self.gang_statuses += usize::from(of_gang);
                let of_queue = matches!(patch, StatusPatch::Queue { .. });
                self.queue_statuses += usize::from(of_queue);
                if done {
                    self.patch(patch);
                }
            }
            Action::Publish(announcement) => self.publish(&announcement),
            Action::LockCards(lock) if done => self.take_lock(&lock),
            Action::UnlockCards(unlock) if done => self.give_lock_back(&unlock),
            Action::LockCards(_)
            | Action::UnlockCards(_)
            | Action::Lift(_)
            | Action::Observe(_)
            | Action::Lease(_) => {}
        }
        self.events.push(Event::Outcome(command.id, outcome));
    }

    fn evict(&mut self, pod: Uid) {
        let key = ObjectKey::Pod(pod);
        match (self.grace_ms, self.objects.get_mut(&key)) {
            (Some(grace_ms), Some(Object::Pod(pod))) => {
                pod.deletion_ms = Some(self.now_ms + grace_ms);
                self.events.push(Object::Pod(pod.clone()).into());
            }
            _ => self.forget(key),
        }
    }

    fn answer_to(&self, action: &Action) -> Outcome {
        if let Action::Observe(pod) = action {
            return Outcome::Observed(self.seen(pod.uid));
        }
        let about = |to: &To| match (to, action) {
            (To::Bind, Action::Bind(_))
            | (To::GangStatus, Action::PatchStatus(StatusPatch::PodGroup { .. }))
            | (To::QueueStatus, Action::PatchStatus(StatusPatch::Queue { .. })) => true,
            (To::BindOf(name), Action::Bind(bind)) => &*bind.pod.name == *name,
            (To::EvictionOf(name), Action::Evict(evict)) => &*evict.pod.name == *name,
            (To::NominationOf(name), Action::PatchStatus(StatusPatch::Nominated { pod, .. })) => {
                &*pod.name == *name
            }
            (To::LiftOf(name), Action::Lift(lift)) => &*lift.pod.name == *name,
            (To::SelectionOf(name), Action::SelectNode(select)) => &*select.name == *name,
            (To::LockOf(node), Action::LockCards(lock)) => *lock.node == **node,
            (To::UnlockOf(node), Action::UnlockCards(unlock)) => *unlock.node == **node,
            (To::KeepingFor(name), Action::KeepVolume(keep)) => keep
                .claim
                .as_ref()
                .is_some_and(|claim| *claim.name == **name),
            _ => false,
        };
        let answer = self.answers.iter().find(|(to, _)| about(to));
        match (answer, action) {
            (Some((_, outcome)), _) => outcome.clone(),
            (None, Action::LockCards(lock)) => self.lock_answer(&lock.node, lock.seen.as_deref()),
            (None, Action::UnlockCards(unlock)) => {
                self.lock_answer(&unlock.node, Some(&unlock.lock.read_back().value))
            }
            (None, _) => Outcome::Done,
        }
    }

    /// What a read of a pod says.
    #[must_use]
    pub fn seen(&self, pod: Uid) -> PodSeen {
        match self.objects.get(&ObjectKey::Pod(pod)) {
            Some(Object::Pod(facts)) => {
                let node = facts.node.clone();
                node.map_or(PodSeen::Unbound, PodSeen::Bound)
            }
            _ => PodSeen::Gone,
        }
    }

    fn bind(&mut self, bind: Bind) {
        let key = ObjectKey::Pod(bind.pod.uid);
        if let Some(Object::Pod(pod)) = self.objects.get_mut(&key) {
            pod.node = Some(bind.node.clone());
            pod.nominated = None;
            pod.cards.clone_from(&bind.cards);
            pod.bound_ms = Some(self.now_ms);
            pod.bound_queue = Some(bind.queue.clone());
            pod.bound_pod_group.clone_from(&bind.pod_group);
            pod.bound_minima.clone_from(&bind.minima);
            pod.phase = PodPhase::Running;
            if !self.late_watch {
                self.events.push(Object::Pod(pod.clone()).into());
            }
        }
        if bind.assignment.is_some() && !self.is_plugin_slow {
            self.serve(&bind.pod.name);
        }
        self.last_bind = Some(bind);
    }

    fn lift(&mut self, lift: Lift) {
        if let Some(Object::Pod(pod)) = self.objects.get_mut(&ObjectKey::Pod(lift.pod.uid)) {
            pod.gates.retain(|gate| **gate != *GANG_GATE);
            pod.planned_node = Some(lift.node);
            self.events.push(Object::Pod(pod.clone()).into());
        }
    }

    /// Says where the volume of a claim is to be made. A provisioner makes it at once, reached from
    /// every node, and the claim is bound to it.
    fn select(&mut self, select: SelectNode) {
        let key = ObjectKey::Storage(StorageKind::Claim, select.namespace, select.name);
        let Some(Object::Storage(StorageFacts::Claim(claim))) = self.objects.get_mut(&key) else {
            return;
        };
        claim.selected_node = select.node;
        let volume = match self.no_provisioner {
            true => None,
            false => claim.provision(),
        };
        let made = volume.map(|volume| Object::Storage(StorageFacts::Volume(volume)));
        let mut told: Vec<Object> = made.into_iter().collect();
        told.push(Object::Storage(StorageFacts::Claim(claim.clone())));
        for object in told {
            self.objects.insert(object.key(), object.clone());
            self.events.push(object.into());
        }
    }

    /// Keeps a volume for a claim, or frees it. A controller binds the two at once.
    fn keep(&mut self, keep: KeepVolume) {
        let key = ObjectKey::Storage(StorageKind::Volume, "".into(), keep.volume);
        let Some(Object::Storage(StorageFacts::Volume(volume))) = self.objects.get(&key) else {
            return;
        };
        let claim = keep.claim.as_ref().filter(|_| !self.no_provisioner);
        let mut claim = claim.and_then(|claim| {
            let (namespace, name) = (claim.namespace.clone(), claim.name.clone());
            let key = ObjectKey::Storage(StorageKind::Claim, namespace, name);
            match self.objects.get(&key)? {
                Object::Storage(StorageFacts::Claim(claim)) => Some(claim.clone()),
                _ => None,
            }
        });
        let told = volume.clone().keep(keep.claim, claim.as_mut());
        for object in told.into_iter().map(Object::Storage) {
            self.objects.insert(object.key(), object.clone());
            self.events.push(object.into());
        }
    }

    fn patch(&mut self, patch: StatusPatch) {
        match patch {
            StatusPatch::Nominated { pod, node } => {
                if let Some(Object::Pod(stored)) = self.objects.get_mut(&ObjectKey::Pod(pod.uid)) {
                    stored.nominated = node;
                    self.events.push(Object::Pod(stored.clone()).into());
                }
            }
            StatusPatch::Unscheduled {
                pod,
                reason,
                message,
                ..
            } => {
                if let Some(Object::Pod(stored)) = self.objects.get_mut(&ObjectKey::Pod(pod.uid)) {
                    stored.unscheduled = Some(ScheduledCondition { reason, message });
                    self.events.push(Object::Pod(stored.clone()).into());
                }
            }
            StatusPatch::PodGroup {
                source,
                namespace,
                name,
                status,
                ..
            } => {
                let key = ObjectKey::PodGroup(source, namespace, name);
                if let Some(Object::PodGroup(group)) = self.objects.get_mut(&key) {
                    (group.status, group.is_told_by_other) = (Some(status), false);
                }
            }
            StatusPatch::Queue { name, status, .. } => {
                let stored = self.objects.get_mut(&ObjectKey::Queue(name));
                if let Some(Object::Queue(queue)) = stored {
                    (queue.past_use, queue.runtimes) = (status.past_use, status.runtimes);
                    queue.is_told_by_other = false;
                }
            }
        }
    }

    fn publish(&mut self, announcement: &Announcement) {
        let Announcement {
            regarding,
            reason,
            message,
            ..
        } = announcement;
        if reason == "Scheduled" {
            self.scheduled += 1;
        } else {
            let (kind, name) = (&regarding.kind, &regarding.name);
            self.told
                .push(format!("{kind} {name}: {reason}: {message}"));
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}
