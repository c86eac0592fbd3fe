//! Sequences of operations, drawn from a seed.
//!
//! There are few names, so that operations meet: pods are bound twice, deleted while they leave and
//! created again under their name, and requests carry UIDs and versions of the past.

use std::collections::BTreeMap;
use std::ops::Range;

use gpu_batch_policies::command::{
    Action, Announcement, Bind, Evict, EvictionCause, Lift, ObjectReference, PodReference,
    StatusPatch,
};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    GroupSource, LearnedRuntimes, OwnerRuntimes, PastUse, PodFacts, PodPhase, ScheduledCondition,
    Uid,
};
use gpu_batch_policies::lease::LeaseCall;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::{
    MemberCounts, Phase, PodGroupStatus, QueueFault, QueueStatus, Staleness,
};
use gpu_batch_simulator::api_server::{
    Answer, ApiServer, Expected, Name, Request, Stored, Version,
};
use gpu_batch_simulator::random::Random;

use super::objects::{self, Place};

/// A UID and a version that no object ever has.
const NEVER_UID: Uid = Uid(1 << 40);
const NEVER_VERSION: Version = 1 << 40;
/// The faces of the die that [`Sequence::draw`] rolls: all, those for the end of pods, those for
/// the lease. What takes several operations of a sort would seldom come together by chance alone.
const ALL: Range<u64> = 0..100;
const DISRUPTION: Range<u64> = 43..82;
const ELECTION: Range<u64> = 93..100;
const TEN_O_CLOCK_MS: u64 = 1_795_255_200_000;

/// One step of a sequence.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Debug, Clone)]
pub(super) enum Operation {
    /// The scheduler does something.
    Act(Action),
    /// Another client sends a request, as the model has it.
    Ask(Request),
    /// A user deletes the lease.
    DeleteLease,
}

/// What comes next, and what requests of the past may be repeated.
pub(super) struct Sequence {
    pub(super) place: Place,
    random: Random,
    /// Half of its operations are of these.
    focus: Range<u64>,
    left: u64,
    step: u64,
    uids: BTreeMap<Name, Vec<Uid>>,
    versions: Vec<Version>,
    lease_versions: Vec<Box<str>>,
}

impl Sequence {
    /// 10 to 25 operations.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            place: Place::new(&seed.to_string()),
            focus: random.pick(&[ALL, DISRUPTION, ELECTION]).clone(),
            left: random.between(10, 25),
            random,
            step: 0,
            uids: BTreeMap::new(),
            versions: Vec::new(),
            lease_versions: Vec::new(),
        }
    }

    /// The next operation in a world as the model has it.
    pub(super) fn next(&mut self, model: &ApiServer) -> Option<Operation> {
        self.left = self.left.checked_sub(1)?;
        self.step += 1;
        let kind = Kind::Pod;
        Some(Operation::Ask(match self.step {
            // The first list says where the model's version 0 is.
            1 => Request::List { kind, at: None },
            2 => self.create(kind),
            // Budgets say yes and no only to those that come after them.
            3 if self.focus == DISRUPTION => self.create(Kind::DisruptionBudget),
            4 if self.focus == DISRUPTION => self.replace_status_of(Kind::DisruptionBudget, model),
            _ => return Some(self.draw(model)),
        }))
    }

    /// Remembers what an answer says, for requests that come too late.
    pub(super) fn remember(&mut self, answer: &Answer) {
        match answer {
            Answer::Created(stored) | Answer::Found(stored) => {
                self.versions.push(stored.version);
                if let Some(uid) = uid_of(stored) {
                    self.uids
                        .entry(Name::of(&stored.object))
                        .or_default()
                        .push(uid);
                }
            }
            Answer::Listed { version, .. } => self.versions.push(*version),
            Answer::Lease(seen) => self.lease_versions.extend(seen.resource_version.clone()),
            _ => {}
        }
    }

    fn draw(&mut self, model: &ApiServer) -> Operation {
        use Operation::{Act, Ask};
        let focused = self.random.percent(50);
        let die = if focused { &self.focus } else { &ALL };
        match self.random.between(die.start, die.end - 1) {
            0..18 => {
                let kind = self.kind();
                Ask(self.create(kind))
            }
            18..23 => Ask(Request::Get(self.name())),
            23..28 => Ask(Request::List {
                kind: self.kind(),
                at: self.random.percent(60).then(|| self.old_version()),
            }),
            28..32 => Ask(Request::Watch {
                kind: self.kind(),
                after: self.known_version(),
            }),
            32..43 => Ask(self.replace(model)),
            43..51 => Ask(self.delete(model)),
            51..58 => Act(Action::Evict(self.evict(model))),
            58 => Ask(self.create(Kind::DisruptionBudget)),
            59..62 => Ask(self.replace_status_of(Kind::DisruptionBudget, model)),
            62..70 => Ask(self.replace_status(model)),
            70..82 => Act(Action::Bind(self.bind(model))),
            82 => Act(Action::Lift(self.lift(model))),
            83..89 => Act(Action::PatchStatus(self.patch(model))),
            89..92 => Act(Action::Observe(self.pod(model))),
            92 => Act(Action::Publish(self.publish(model))),
            93..99 => Act(Action::Lease(self.lease())),
            _ => Operation::DeleteLease,
        }
    }

    /// Half of what happens, happens to pods.
    fn kind(&mut self) -> Kind {
        if self.random.percent(50) {
            Kind::Pod
        } else {
            *self.random.pick(&objects::kinds())
        }
    }

    fn create(&mut self, kind: Kind) -> Request {
        let name = self.place.name(kind, &mut self.random);
        Request::Create(objects::object(name, &self.place, &mut self.random))
    }

    fn name(&mut self) -> Name {
        let kind = self.kind();
        self.place.name(kind, &mut self.random)
    }

    /// The current UID mostly, else one of the past or one that never was.
    fn uid(&mut self, name: &Name, model: &ApiServer) -> Uid {
        let current = model.get(name).and_then(|stored| uid_of(stored));
        let past = self.uids.get(name).filter(|_| self.random.percent(20));
        match (past, current) {
            (Some(past), _) => *self.random.pick(past),
            (None, Some(current)) if self.random.percent(90) => current,
            _ => NEVER_UID,
        }
    }

    fn known_version(&mut self) -> Version {
        *self.random.pick(&self.versions)
    }

    fn old_version(&mut self) -> Version {
        if self.random.percent(2) {
            NEVER_VERSION
        } else {
            self.known_version()
        }
    }

    /// Of a precondition: none, the current version, or one of the past.
    fn expected_version(&mut self, name: &Name, model: &ApiServer) -> Option<Version> {
        match self.random.below(10) {
            0..3 => None,
            3..8 => model.get(name).map(|stored| stored.version),
            _ => Some(self.known_version()).filter(|version| *version > 0),
        }
    }

    fn pod(&mut self, model: &ApiServer) -> PodReference {
        let name = self.place.name(Kind::Pod, &mut self.random);
        PodReference {
            uid: self.uid(&name, model),
            namespace: name.namespace,
            name: name.name,
        }
    }

    fn bind(&mut self, model: &ApiServer) -> Bind {
        Bind {
            pod: self.pod(model),
            node: self.place.name(Kind::Node, &mut self.random).name,
            cards: Vec::new(),
            assignment: None,
            queue: self.place.name(Kind::Queue, &mut self.random).name,
            pod_group: self.random.percent(50).then_some("g".into()),
            minima: vec![3; usize::try_from(self.random.below(3)).unwrap()],
        }
    }

    fn lift(&mut self, model: &ApiServer) -> Lift {
        Lift {
            pod: self.pod(model),
            node: self.place.name(Kind::Node, &mut self.random).name,
        }
    }

    /// The API server tries an eviction again for ten seconds where no budget guards the pod and
    /// the UID is another one. A few such are enough.
    fn evict(&mut self, model: &ApiServer) -> Evict {
        let name = self.ending(model);
        let name = name.unwrap_or_else(|| self.place.name(Kind::Pod, &mut self.random));
        let mut pod = PodReference {
            uid: self.uid(&name, model),
            namespace: name.namespace.clone(),
            name: name.name.clone(),
        };
        if let Some(Object::Pod(facts)) = model.get(&name).map(|stored| &stored.object)
            && (facts.phase != PodPhase::Running || facts.deletion_ms.is_some())
            && self.random.percent(98)
        {
            pod.uid = facts.uid;
        }
        let cause = EvictionCause::Stale;
        Evict {
            pod,
            cause,
            beneficiary: None,
        }
    }

    /// Half of the time a pod that runs or leaves, if there is one.
    fn ending(&mut self, model: &ApiServer) -> Option<Name> {
        let half = self.random.percent(50);
        let mut pods = model.pods();
        let pod = pods.find(|pod| pod.phase == PodPhase::Running || pod.deletion_ms.is_some());
        let pod = pod.filter(|_| half)?;
        Some(Name::pod(&pod.namespace, &pod.name))
    }

    fn delete(&mut self, model: &ApiServer) -> Request {
        let name = self.ending(model).unwrap_or_else(|| self.name());
        let has_uid = model
            .get(&name)
            .is_some_and(|stored| uid_of(stored).is_some());
        let uid = (has_uid && self.random.percent(40)).then(|| self.uid(&name, model));
        let version = match self.random.percent(30) {
            true => self.expected_version(&name, model),
            false => None,
        };
        let grace_s = *self
            .random
            .pick(&[None, None, Some(0), Some(0), Some(5), Some(60)]);
        Request::Delete {
            name,
            expected: Expected { uid, version },
            grace_s,
        }
    }

    fn replace(&mut self, model: &ApiServer) -> Request {
        let name = self.name();
        let mut object = match model.get(&name) {
            Some(stored) => stored.object.clone(),
            None => objects::object(name.clone(), &self.place, &mut self.random),
        };
        objects::change(&mut object, &self.place, &mut self.random);
        let uid = self.uid(&name, model);
        objects::set_uid(&mut object, uid);
        Request::Replace {
            version: self.expected_version(&name, model),
            object,
        }
    }

    fn replace_status(&mut self, model: &ApiServer) -> Request {
        let kind = if self.random.percent(80) {
            Kind::Pod
        } else {
            Kind::Node
        };
        self.replace_status_of(kind, model)
    }

    fn replace_status_of(&mut self, kind: Kind, model: &ApiServer) -> Request {
        let name = self.place.name(kind, &mut self.random);
        let mut object = match model.get(&name) {
            Some(stored) => stored.object.clone(),
            None => objects::object(name.clone(), &self.place, &mut self.random),
        };
        match &mut object {
            Object::Pod(facts) => self.change_pod_status(facts),
            Object::Node(facts) => objects::change_node_status(facts, &mut self.random),
            Object::DisruptionBudget(facts) => {
                facts.allowed = u32::try_from(self.random.below(3)).unwrap();
            }
            _ => {}
        }
        let uid = self.uid(&name, model);
        objects::set_uid(&mut object, uid);
        Request::ReplaceStatus {
            version: self.expected_version(&name, model),
            object,
        }
    }

    fn change_pod_status(&mut self, facts: &mut PodFacts) {
        use PodPhase::{Failed, Pending, Running, Succeeded};
        facts.phase = *self
            .random
            .pick(&[Pending, Running, Running, Running, Succeeded, Failed]);
        if facts.phase != Pending {
            facts.started_ms = Some(TEN_O_CLOCK_MS);
        }
        match self.random.below(10) {
            0 => {
                facts.unscheduled = Some(ScheduledCondition {
                    reason: "Unschedulable".into(),
                    message: "no node fits".into(),
                });
            }
            1 => facts.unscheduled = None,
            2 => facts.nominated = Some("elsewhere".into()),
            3 => facts.nominated = None,
            _ => {}
        }
    }

    fn patch(&mut self, model: &ApiServer) -> StatusPatch {
        let kinds = [Kind::Pod, Kind::Queue, Kind::PodGroup, Kind::NativePodGroup];
        let kind = *self.random.pick(&kinds);
        let existing = model.objects(kind).next();
        let name = match existing {
            Some(stored) if self.random.percent(80) => Name::of(&stored.object),
            _ => self.place.name(kind, &mut self.random),
        };
        let uid = self.uid(&name, model);
        let Name {
            namespace, name, ..
        } = name;
        match kind {
            Kind::Queue => {
                let status = self.queue_status();
                StatusPatch::Queue { name, uid, status }
            }
            Kind::PodGroup | Kind::NativePodGroup => StatusPatch::PodGroup {
                source: match kind {
                    Kind::PodGroup => GroupSource::GpuBatch,
                    _ => GroupSource::Native,
                },
                namespace,
                name,
                uid,
                status: self.group_status(),
            },
            _ => self.patch_of(PodReference {
                namespace,
                name,
                uid,
            }),
        }
    }

    /// Half of the patches of pods are nominations, of which half are taken back.
    fn patch_of(&mut self, pod: PodReference) -> StatusPatch {
        let reason = (*self.random.pick(&["OverLimit", "Unschedulable"])).into();
        let message = (*self.random.pick(&["", "it waits"])).into();
        let since_ms = TEN_O_CLOCK_MS + self.random.below(2_000);
        if since_ms.is_multiple_of(2) {
            let node = since_ms.is_multiple_of(4).then_some("elsewhere".into());
            return StatusPatch::Nominated { pod, node };
        }
        StatusPatch::Unscheduled {
            pod,
            reason,
            message,
            since_ms,
        }
    }

    fn queue_status(&mut self) -> QueueStatus {
        let fault = (QueueFault::ParentNotFound, "the parent is missing".into());
        QueueStatus {
            observed_generation: 1,
            fault: self.random.percent(30).then_some(fault),
            note: None,
            ready_since_ms: TEN_O_CLOCK_MS + self.random.below(2_000),
            allocated: match self.random.percent(50) {
                true => vec![("cpu".into(), 1_500), ("nvidia.com/gpu".into(), 8)],
                false => Vec::new(),
            },
            requested: vec![("memory".into(), 1 << 35)],
            fair_share: Vec::new(),
            dominant_share_millionths: self.random.below(1_000_000),
            past_use: self.random.percent(30).then(|| PastUse {
                at_ms: TEN_O_CLOCK_MS,
                averages: vec![("nvidia.com/gpu".into(), 1_500), ("cpu".into(), 2_000_000)],
            }),
            runtimes: self.random.percent(30).then(|| LearnedRuntimes {
                seconds: vec![60, 3_600],
                owners: vec![OwnerRuntimes {
                    owner: "default/job/nightly".into(),
                    seconds: vec![60, 3_600],
                }],
            }),
            pending: 1,
            running: 0,
        }
    }

    fn group_status(&mut self) -> PodGroupStatus {
        let scheduled = self.random.percent(50);
        let stale = self.random.percent(30);
        PodGroupStatus {
            observed_generation: 1,
            phase: if scheduled {
                Phase::Running
            } else {
                Phase::Pending
            },
            members: MemberCounts {
                expected: 2,
                created: 2,
                ..MemberCounts::default()
            },
            reason: (!scheduled).then_some(Reason::OverLimit),
            message: "as it is".into(),
            scheduled,
            scheduled_since_ms: TEN_O_CLOCK_MS + self.random.below(2_000),
            staleness: stale.then_some(Staleness {
                stale: self.random.percent(50),
                since_ms: TEN_O_CLOCK_MS,
            }),
            protected: scheduled.then(|| self.random.percent(50)),
            estimated_start_ms: (!scheduled).then_some(TEN_O_CLOCK_MS + 3_600_000),
        }
    }

    fn lease(&mut self) -> LeaseCall {
        if self.random.percent(20) {
            return LeaseCall::Read;
        }
        let newest = self.lease_versions.last().cloned();
        LeaseCall::Write {
            resource_version: match self.random.below(10) {
                0..2 => None,
                2..8 => newest,
                _ if self.lease_versions.is_empty() => None,
                _ => Some(self.random.pick(&self.lease_versions).clone()),
            },
            holder: (*self.random.pick(&["", "one", "other"])).into(),
            transitions: u32::try_from(self.random.below(3)).unwrap(),
            acquire: self.random.percent(50),
            duration_ms: *self.random.pick(&[0, 1_500, 15_000]),
        }
    }

    fn publish(&mut self, model: &ApiServer) -> Announcement {
        let pod = self.pod(model);
        Announcement {
            regarding: ObjectReference {
                api_version: "v1".into(),
                kind: "Pod".into(),
                namespace: pod.namespace,
                name: pod.name,
                uid: pod.uid,
            },
            warning: self.random.percent(50),
            reason: "Scheduled".into(),
            message: "it has a node".into(),
            once: false,
        }
    }
}

fn uid_of(stored: &Stored) -> Option<Uid> {
    stored.object.uid()
}
