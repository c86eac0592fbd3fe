//! The model world of the demo: the API server, one scheduler, Jobs and kubelets, in virtual time.

use super::machines::{Kubelet, Member, shown};
use crate::handles::inbox::Reports;
use crate::kube::convert::{Converter, Document, from_value};
use crate::lab::demo::seen::Pod;
use crate::lab::demo::witness::Books;
use crate::lab::demo::workload::Gang;
use anyhow::{Context, bail};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{OwnerReference, PodFacts, PodPhase, UnixMs};
use gpu_batch_policies::settings::Settings;
use gpu_batch_simulator::api_server::{
    Answer, ApiServer, Expected, Name, Request, Sort, Stored, Version,
};
use gpu_batch_simulator::faults::{FaultKind, Faults};
use gpu_batch_simulator::random::Random;
use gpu_batch_simulator::shell::Shell;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// When the world begins, in Unix milliseconds: an arbitrary moment.
const BEGIN_MS: UnixMs = 1_800_000_000_000;
/// The length of one step of the world's time.
const STEP_MS: UnixMs = 20;
/// How often controllers and kubelets act.
const CONTROLLERS_MS: UnixMs = 100;

/// How many of a thousand requests or changes between the scheduler and its API server go wrong.
const CHAOS: [(FaultKind, u32); 6] = [
    (FaultKind::RequestLost, 25),
    (FaultKind::ConnectionReset, 25),
    (FaultKind::ResponseLost, 25),
    (FaultKind::ErrorAfterEffect, 25),
    (FaultKind::Throttled, 50),
    (FaultKind::NewsLate, 50),
];
/// At each turn of the controllers, the chance in percent that the scheduler crashes, and that its
/// watches are cut.
const CRASHES_PERCENT: u64 = 1;
const CUTS_PERCENT: u64 = 1;

/// A gang that was submitted.
#[derive(Debug)]
struct Job {
    gang: Gang,
    template: Value,
    owner: OwnerReference,
    members: Vec<Member>,
}

/// The world.
pub(super) struct Model {
    api_server: ApiServer,
    scheduler: Shell,
    faults: Faults,
    /// Draws the scheduler's faults.
    random: Random,
    crashes: u32,
    watches_cut: u32,
    converter: Converter,
    /// The random numbers for faults of the machines, and when all faults end.
    chaos: Option<(Random, UnixMs)>,
    now_ms: UnixMs,
    arriving: VecDeque<Gang>,
    submitted: Vec<String>,
    jobs: Vec<Job>,
    /// The revision up to which the witness has been told.
    told: Version,
    audits: u32,
    violations: Vec<String>,
    rejections: u32,
}

/// The scheduler's settings. In chaos nobody is evicted so that others can start: a pod that is
/// evicted right after it has ended would look lost to the witness, since these Jobs have no
/// finalizers on their pods.
fn settings(chaos: bool) -> Settings {
    let mut settings = Settings::default();
    if chaos {
        settings.evictions.in_flight = 0;
    }
    settings
}

impl Model {
    /// An empty world. `chaos`: a seed, and for how long things go wrong. `recorded`: whether the
    /// scheduler is recorded, for [`Model::into_recorded`].
    pub(super) fn new(
        converter: Converter,
        chaos: Option<(u64, Duration)>,
        recorded: bool,
    ) -> Self {
        let until = |length: Duration| BEGIN_MS + milliseconds(length);
        let mut scheduler = Shell::default();
        if recorded {
            scheduler.record();
        }
        scheduler.start(settings(chaos.is_some()), 0, BEGIN_MS);
        Self {
            api_server: ApiServer::default(),
            scheduler,
            faults: chaos.map_or_else(Faults::none, |_| Faults::of(&CHAOS)),
            random: Random::new(chaos.map_or(0, |(seed, _)| seed)),
            crashes: 0,
            watches_cut: 0,
            converter,
            chaos: chaos.map(|(seed, length)| (Random::new(!seed), until(length))),
            now_ms: BEGIN_MS,
            arriving: VecDeque::new(),
            submitted: Vec::new(),
            jobs: Vec::new(),
            told: 0,
            audits: 0,
            violations: Vec::new(),
            rejections: 0,
        }
    }

    /// The world's time since its beginning.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_millis(self.now_ms - BEGIN_MS)
    }

    /// The recording of the last scheduler process: a block of a journal, not packed yet.
    pub(super) fn into_recorded(self) -> Option<Vec<u8>> {
        self.scheduler.into_recorded().pop()
    }

    /// Creates an object from its manifest.
    ///
    /// # Errors
    /// If the manifest cannot be read, or the object exists already.
    pub(super) fn create(&mut self, manifest: Value) -> anyhow::Result<Arc<Stored>> {
        let object = self.read(manifest)?;
        self.store(object)
    }

    fn read(&mut self, manifest: Value) -> anyhow::Result<Object> {
        self.converter.set_now(self.now_ms);
        match from_value(manifest, &mut self.converter)? {
            Document::Object(object) => Ok(*object),
            other => bail!("{other:?} is of no use to a scheduler"),
        }
    }

    fn store(&mut self, object: Object) -> anyhow::Result<Arc<Stored>> {
        match self.api_server.handle(Request::Create(object), self.now_ms) {
            Answer::Created(stored) => Ok(stored),
            answer => bail!("the object was not created: {answer:?}"),
        }
    }

    /// Takes the gangs that will be submitted, each at its time.
    pub(super) fn expect(&mut self, gangs: Vec<Gang>) {
        self.arriving = gangs.into();
    }

    /// Lets one step of time pass.
    ///
    /// # Errors
    /// If an object of the demo's own cannot be created.
    pub(super) fn advance(&mut self) -> anyhow::Result<()> {
        self.now_ms += STEP_MS;
        let elapsed = self.elapsed();
        let due = self
            .arriving
            .partition_point(|gang| gang.arrival <= elapsed);
        for gang in self.arriving.drain(..due).collect::<Vec<_>>() {
            self.submit(gang)?;
        }
        if self.now_ms.is_multiple_of(CONTROLLERS_MS) {
            for index in 0..self.jobs.len() {
                self.look_after(index)?;
            }
        }
        self.scheduler_turns();
        Ok(())
    }

    /// Lets the scheduler take its turn: it crashes now and then, and its engine is audited at
    /// every step.
    fn scheduler_turns(&mut self) {
        let now_ms = self.now_ms;
        if !self.is_chaotic() {
            self.faults.stop();
        } else if now_ms.is_multiple_of(CONTROLLERS_MS) {
            if self.random.percent(CRASHES_PERCENT) {
                self.crashes += 1;
                self.scheduler.start(settings(true), 0, now_ms);
            }
            if self.random.percent(CUTS_PERCENT) {
                self.watches_cut += 1;
                self.scheduler.cut_watches(now_ms + CONTROLLERS_MS);
            }
        }
        let api_server = &mut self.api_server;
        self.scheduler.carry(api_server, now_ms);
        let (faults, random) = (&mut self.faults, &mut self.random);
        let turn = self
            .scheduler
            .turn(api_server, faults, random, now_ms, false);
        self.audits += u32::from(turn.stepped);
        self.violations.extend(turn.violations);
    }

    fn is_chaotic(&self) -> bool {
        let until = self.chaos.as_ref().map(|(_, until)| *until);
        until.is_some_and(|until| self.now_ms < until)
    }

    fn submit(&mut self, gang: Gang) -> anyhow::Result<()> {
        for (_, mut manifest) in gang.objects("gpu-batch", false) {
            manifest["metadata"]["namespace"] = gang.namespace.into();
            let template = manifest["spec"]["template"].clone();
            let stored = self.create(manifest)?;
            if let Object::Job(job) = &stored.object {
                self.jobs.push(Job {
                    template,
                    owner: OwnerReference {
                        api_version: "batch/v1".into(),
                        kind: "Job".into(),
                        name: job.name.clone(),
                        uid: job.uid,
                    },
                    members: (0..gang.pods).map(Member::new).collect(),
                    gang: gang.clone(),
                });
            }
        }
        self.submitted.push(gang.name);
        Ok(())
    }

    /// Lets the Job controller and the kubelets do their part for one Job.
    fn look_after(&mut self, index: usize) -> anyhow::Result<()> {
        let mut members = std::mem::take(&mut self.jobs[index].members);
        for member in members.iter_mut().filter(|member| !member.done) {
            let facts = self.pod_of(index, member);
            match facts {
                Some(facts) if facts.phase == PodPhase::Succeeded => member.done = true,
                Some(facts) if facts.phase != PodPhase::Failed => {
                    if facts.node.is_some() || facts.deletion_ms.is_some() {
                        self.kubelet(index, member, facts);
                    }
                }
                // A place that never had a pod, or whose pod is gone or has failed.
                _ => self.fill(index, member)?,
            }
        }
        self.jobs[index].members = members;
        Ok(())
    }

    fn pod_of(&self, index: usize, member: &Member) -> Option<PodFacts> {
        let name = Name::pod(self.jobs[index].gang.namespace, member.pod.as_deref()?);
        match &self.api_server.get(&name)?.object {
            Object::Pod(facts) => Some(facts.clone()),
            _ => None,
        }
    }

    fn fill(&mut self, index: usize, member: &mut Member) -> anyhow::Result<()> {
        let job = &self.jobs[index];
        let manifest = member.next_pod(&job.gang, &job.template);
        let owner = job.owner.clone();
        let mut object = self.read(manifest).context("a pod of the demo")?;
        if let Object::Pod(facts) = &mut object {
            facts.owner = Some(owner);
        }
        self.store(object).map(drop)
    }

    fn kubelet(&mut self, index: usize, member: &mut Member, mut facts: PodFacts) {
        let chaotic = self.is_chaotic();
        let chaos = self.chaos.as_mut().map(|(random, _)| random);
        let gang = &self.jobs[index].gang;
        let chaos = chaos.filter(|_| chaotic);
        let request = match member.kubelet(&facts, gang, chaos, self.now_ms) {
            Kubelet::Nothing => return,
            Kubelet::Sets(phase) => {
                self.rejections += u32::from(phase == PodPhase::Failed);
                facts.phase = phase;
                facts.started_ms.get_or_insert(self.now_ms);
                Request::ReplaceStatus {
                    object: Object::Pod(facts),
                    version: None,
                }
            }
            Kubelet::Removes => Request::Delete {
                name: Name::pod(&facts.namespace, &facts.name),
                expected: Expected::default(),
                grace_s: Some(0),
            },
        };
        // The request does nothing if the pod has gone meanwhile.
        self.api_server.handle(request, self.now_ms);
    }

    /// Tells the witness what has happened since it was told last.
    pub(super) fn tell(&mut self, books: &Books, start: Instant) {
        let now = start + self.elapsed();
        let mut witness = books.open();
        for gang in self.submitted.drain(..) {
            witness.submitted(&gang, now);
        }
        let after = std::mem::replace(&mut self.told, self.api_server.revision());
        let kind = Kind::Pod;
        let answer = self
            .api_server
            .handle(Request::Watch { kind, after }, self.now_ms);
        let Answer::Changes { changes, .. } = answer else {
            return;
        };
        for change in changes {
            let Object::Pod(facts) = &change.object.object else {
                continue;
            };
            if let Some(pod) = shown(facts) {
                witness.saw(&pod, now);
            }
            if change.sort == Sort::Deleted {
                witness.gone(&facts.uid.to_string(), now);
            }
        }
        drop(witness);
        // No watcher asks for changes that are older than this.
        let old = self.api_server.revision().saturating_sub(HISTORY);
        self.api_server.compact(old);
    }

    /// All pods as they are now.
    pub(super) fn pods(&self) -> Vec<Pod> {
        self.api_server.pods().filter_map(shown).collect()
    }

    /// The reports of the scheduler, as it would serve them.
    pub(super) fn reports(&mut self) -> Arc<Reports> {
        let Some(engine) = self.scheduler.engine_mut() else {
            return Arc::default();
        };
        Arc::new(Reports::take(engine, self.now_ms))
    }

    pub(super) fn audits(&self) -> u32 {
        self.audits
    }

    pub(super) fn violations(&self) -> &[String] {
        &self.violations
    }

    /// What went wrong, and how often.
    pub(super) fn struck(&self) -> [(u32, &'static str); 6] {
        let struck =
            |kinds: [FaultKind; 2]| kinds.map(|kind| self.faults.struck(kind)).iter().sum();
        let throttled = self.faults.struck(FaultKind::Throttled);
        [
            (
                struck([FaultKind::RequestLost, FaultKind::ConnectionReset]),
                "requests were lost",
            ),
            (
                struck([FaultKind::ResponseLost, FaultKind::ErrorAfterEffect]),
                "answers were lost",
            ),
            (throttled, "requests were turned away by flow control"),
            (self.watches_cut, "times all watches broke"),
            (self.crashes, "times the scheduler crashed"),
            (self.rejections, "pods were rejected by their kubelet"),
        ]
    }
}

/// How many revisions the API server remembers.
const HISTORY: Version = 20_000;

fn milliseconds(length: Duration) -> UnixMs {
    UnixMs::try_from(length.as_millis()).unwrap_or(UnixMs::MAX / 2)
}
