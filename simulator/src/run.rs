//! One run: a cluster, its work and its faults from a seed; one or two schedulers; checks all along.
//!
//! ```text
//!  work arrives, faults strike -----30 s-----> faults stop, what was broken heals
//!                                              -----> rest within 120 s, and it is judged
//! ```

mod striking;

use crate::api_server::Answer;
use crate::client::{self, Passage};
use crate::cluster::{Cluster, Task};
use crate::contender::Contender;
use crate::faults::{FaultKind, Faults};
use crate::random::Random;
use crate::rest;
use crate::scenario::{self, Arrival};
use gpu_batch_policies::command::{Action, Command, CommandId};
use gpu_batch_policies::event::{Kind, Object, Outcome};
use gpu_batch_policies::facts::{GangMinimum, NodeFacts, PodFacts, PodPhase, Uid, UnixMs};
use gpu_batch_policies::lease::LeaseSettings;
use gpu_batch_policies::settings::{InFlight, Leadership, Settings};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use striking::Striking;

/// When every run begins.
pub const START_MS: UnixMs = 1_800_000_000_000;
/// So long there are faults.
const FAULTS_MS: u64 = 30_000;
/// A world that is not at rest after so many steps never will be.
const STEPS_MAX: u32 = 10_000;
/// After the last fault everything must be at rest within this time.
const REST_MS: u64 = 120_000;
/// Rest: nothing has happened for so long; longer than a lease lives and than any grace here.
const QUIET_MS: u64 = 16_000;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Steps of all engines.
    pub steps: u32,
    /// Gangs that arrived.
    pub gangs: u32,
    /// Pods that were created, replacements among them.
    pub pods: u32,
    /// Bindings that the API server accepted.
    pub binds: u32,
    /// Evictions that it accepted.
    pub evictions: u32,
    /// The faults, and how often each struck.
    pub faults: Faults,
    /// A hash of every command: the same seed gives the same.
    pub trace: u64,
}

/// What went wrong, and the seed that shows it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// When it was noticed, since the start.
    pub after_ms: u64,
    /// The step in which it was noticed.
    pub step: u32,
    /// What does not hold.
    pub violations: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            after_ms,
            step,
            violations,
        } = self;
        let violations = violations.join("; ");
        write!(
            formatter,
            "seed {seed}, {after_ms} ms, step {step}: {violations}"
        )
    }
}

/// Runs one seed, with faults or without.
///
/// # Errors
/// The first thing that does not hold.
pub fn run(seed: u64, with_faults: bool) -> Result<Summary, Failure> {
    Run::new(seed, with_faults, None).until_rest()
}

/// Runs one seed with faults, and tells everything that happens line by line.
///
/// # Errors
/// The first thing that does not hold.
pub fn tell(seed: u64, say: &mut dyn FnMut(String)) -> Result<Summary, Failure> {
    Run::new(seed, true, Some(say)).until_rest()
}

/// Something that happens at a time.
#[derive(Debug, Clone)]
enum Happening {
    Arrival(Arrival),
    Strike(FaultKind),
    Heal,
    /// A node becomes what it was.
    Undo(Box<NodeFacts>),
    /// A machine comes in the place of another.
    Join(Box<NodeFacts>),
    Task(Task),
    /// A request gets to the API server.
    Request(Arc<Flight>, bool),
    /// An answer gets to a scheduler.
    Answer(Arc<Flight>, Outcome),
    /// A scheduler starts.
    Start(usize),
}

/// A command under way.
#[derive(Debug)]
struct Flight {
    slot: usize,
    incarnation: u32,
    id: CommandId,
    action: Action,
    answer_ms: Option<u64>,
    instead: Option<Outcome>,
}

struct Run<'say> {
    seed: u64,
    random: Random,
    faults: Faults,
    striking: Striking,
    cluster: Cluster,
    /// Schedulers, each with the number of its start.
    contenders: [Option<(u32, Contender)>; 2],
    identities: [String; 2],
    settings: Settings,
    starts: u32,
    happenings: BTreeMap<(UnixMs, u64), Happening>,
    numbered: u64,
    now_ms: UnixMs,
    healed: bool,
    active_ms: UnixMs,
    step: u32,
    gangs: u32,
    binds: BTreeMap<Uid, u32>,
    evictions: u32,
    trace: u64,
    say: Option<&'say mut dyn FnMut(String)>,
}

impl<'say> Run<'say> {
    fn new(seed: u64, with_faults: bool, say: Option<&'say mut dyn FnMut(String)>) -> Self {
        let mut random = Random::new(seed);
        let faults = if with_faults {
            Faults::draw(&mut random)
        } else {
            Faults::none()
        };
        let mut cluster = Cluster::default();
        scenario::build(&mut cluster, &mut random, START_MS);
        let (arrivals, gangs) = scenario::arrivals(&mut random, START_MS, FAULTS_MS * 9 / 10);
        let mut run = Self {
            seed,
            settings: settings(&mut random),
            random,
            faults,
            striking: Striking::default(),
            cluster,
            contenders: [None, None],
            identities: ["replica-0".to_owned(), "replica-1".to_owned()],
            starts: 0,
            happenings: BTreeMap::new(),
            numbered: 0,
            now_ms: START_MS,
            healed: false,
            active_ms: START_MS,
            step: 0,
            gangs,
            binds: BTreeMap::new(),
            evictions: 0,
            trace: 0,
            say,
        };
        for (at_ms, arrival) in arrivals {
            run.plan(at_ms, Happening::Arrival(arrival));
        }
        let timed: Vec<FaultKind> = run.faults.timed().collect();
        for kind in timed {
            let at_ms = START_MS + run.random.below(FAULTS_MS);
            run.plan(at_ms, Happening::Strike(kind));
        }
        run.plan(START_MS + FAULTS_MS, Happening::Heal);
        run.plan(START_MS, Happening::Start(0));
        run
    }

    fn plan(&mut self, at_ms: UnixMs, happening: Happening) {
        self.numbered += 1;
        self.happenings.insert((at_ms, self.numbered), happening);
    }

    fn log(&mut self, line: impl FnOnce() -> String) {
        if let Some(say) = &mut self.say {
            say(format!("{:>7} {}", self.now_ms - START_MS, line()));
        }
    }

    fn until_rest(mut self) -> Result<Summary, Failure> {
        if self.say.is_some() {
            let faults = self.faults.to_string();
            self.log(|| format!("faults: {faults}"));
        }
        while self.step < STEPS_MAX {
            while let Some(entry) = self.happenings.first_entry()
                && entry.key().0 <= self.now_ms
            {
                let happening = entry.remove();
                self.happen(happening);
                self.controllers();
            }
            for slot in 0..self.contenders.len() {
                self.turn(slot)?;
            }
            if self.is_at_rest() {
                return self.judge();
            }
            if self.now_ms > START_MS + FAULTS_MS + REST_MS {
                break;
            }
            self.now_ms = self.next_ms().max(self.now_ms);
        }
        let failure = self.failure(vec!["I18: the world does not come to rest".to_owned()]);
        Err(failure)
    }

    fn next_ms(&self) -> UnixMs {
        let happening = self.happenings.keys().next().map(|(at_ms, _)| *at_ms);
        let running = self.contenders.iter().flatten();
        let contenders = running.map(|(_, contender)| contender.due_ms());
        let quiet_ms = self.active_ms + QUIET_MS;
        let quiet = Some(quiet_ms).filter(|at_ms| *at_ms > self.now_ms);
        contenders
            .chain(happening)
            .chain(quiet)
            .min()
            .unwrap_or(self.now_ms + 1)
    }

    fn controllers(&mut self) {
        let Self {
            cluster,
            faults,
            random,
            ..
        } = self;
        cluster.react(faults, random, self.now_ms);
        for (at_ms, task) in std::mem::take(&mut self.cluster.tasks) {
            self.plan(at_ms, Happening::Task(task));
        }
    }

    fn happen(&mut self, happening: Happening) {
        if !matches!(&happening, Happening::Request(flight, _) | Happening::Answer(flight, _)
            if matches!(flight.action, Action::Lease(_)))
        {
            self.active_ms = self.now_ms;
            self.log(|| format!("{happening:?}"));
        }
        match happening {
            Happening::Arrival(arrival) => self.arrive(arrival),
            Happening::Strike(kind) => {
                if !self.healed && self.strike(kind) {
                    self.faults.count(kind);
                }
            }
            Happening::Heal => self.heal(),
            Happening::Undo(facts) => self.undo(*facts),
            Happening::Join(facts) => self.join(*facts),
            Happening::Task(task) => {
                let Self {
                    cluster,
                    faults,
                    random,
                    ..
                } = self;
                cluster.perform(&task, faults, random, self.now_ms);
            }
            Happening::Request(flight, answered) => self.request(flight, answered),
            Happening::Answer(flight, outcome) => {
                if let Some((incarnation, contender)) = &mut self.contenders[flight.slot]
                    && *incarnation == flight.incarnation
                {
                    contender.answered(flight.id, outcome);
                }
            }
            Happening::Start(slot) => self.start(slot),
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        let now_ms = self.now_ms;
        match arrival {
            Arrival::Gang(description, mut recipes) => {
                let stored = description.and_then(|object| self.cluster.put(object, now_ms));
                let job = stored.and_then(|stored| match &stored.object {
                    Object::Job(facts) => Some(facts.uid),
                    _ => None,
                });
                for recipe in &mut recipes {
                    if let (Some(uid), Some(owner)) = (job, &mut recipe.pod.owner) {
                        owner.uid = uid;
                    }
                }
                for recipe in recipes {
                    self.cluster.own(recipe, now_ms);
                }
            }
            Arrival::GatesOpen(prefix) => {
                let prefix = format!("{prefix}-");
                self.cluster.open_gates(&prefix, now_ms);
            }
            Arrival::PodEnds(number) => {
                let picked = self.pick_pod(number, |facts| facts.phase == PodPhase::Running);
                if let Some(facts) = picked {
                    self.cluster.end(facts.uid, PodPhase::Succeeded, now_ms);
                }
            }
            Arrival::QueueClosed(name, closed) => {
                let queue = self.find(Kind::Queue, name);
                if let Some(Object::Queue(mut facts)) = queue {
                    facts.closed = closed;
                    self.cluster.put(Object::Queue(facts), now_ms);
                }
            }
            Arrival::MinimumChanges(name, minimum) => {
                let group = self.find(Kind::PodGroup, &name);
                if let Some(Object::PodGroup(mut facts)) = group {
                    facts.minimum = GangMinimum::Together(minimum);
                    self.cluster.put(Object::PodGroup(facts), now_ms);
                }
            }
        }
    }

    fn find(&self, kind: Kind, name: &str) -> Option<Object> {
        let objects = self.cluster.api.objects(kind);
        let named = |object: &Object| *crate::api_server::Name::of(object).name == *name;
        let mut found = objects.filter(|stored| named(&stored.object));
        found.next().map(|stored| stored.object.clone())
    }

    fn pick_pod(&self, number: u64, which: impl Fn(&PodFacts) -> bool) -> Option<PodFacts> {
        let pods = self.cluster.api.pods();
        let pods: Vec<_> = pods
            .filter(|facts| !facts.phase.ended() && which(facts))
            .collect();
        let index = usize::try_from(number.checked_rem(pods.len() as u64)?).unwrap_or(0);
        Some(pods[index].clone())
    }

    fn request(&mut self, flight: Arc<Flight>, answered: bool) {
        let api = &mut self.cluster.api;
        api.flow_control_s = (self.now_ms < self.striking.storm_until_ms).then_some(1);
        let answer = api.handle(client::request(&flight.action), self.now_ms);
        api.flow_control_s = None;
        match (&flight.action, &answer) {
            (Action::Bind(bind), Answer::Done) => {
                *self.binds.entry(bind.pod.uid).or_insert(0) += 1;
            }
            (Action::Evict(_), Answer::Done) => self.evictions += 1,
            _ => {}
        }
        if answered && let Some(answer_ms) = flight.answer_ms {
            let outcome = match &flight.instead {
                Some(instead) => instead.clone(),
                None => client::outcome(&flight.action, answer),
            };
            let at_ms = self.now_ms + answer_ms;
            self.plan(at_ms, Happening::Answer(flight, outcome));
        }
    }

    /// A scheduler takes its turn, if there is a reason for one.
    fn turn(&mut self, slot: usize) -> Result<(), Failure> {
        let log = self.say.is_some();
        let Some((incarnation, contender)) = &mut self.contenders[slot] else {
            return Ok(());
        };
        let incarnation = *incarnation;
        let (faults, random) = (&mut self.faults, &mut self.random);
        contender.follow(&mut self.cluster.api, faults, random, self.now_ms);
        let Some(stepped) = contender.turn(self.now_ms, log) else {
            return Ok(());
        };
        let ended = contender.is_shut_down();
        self.step += 1;
        if log {
            for event in std::mem::take(&mut contender.last_events) {
                self.log(|| format!("  {slot} < {event}"));
            }
        }
        for command in stepped.commands {
            self.send(slot, incarnation, command);
        }
        if ended {
            self.contenders[slot] = None;
        }
        if stepped.violations.is_empty() {
            return Ok(());
        }
        Err(self.failure(stepped.violations))
    }

    fn send(&mut self, slot: usize, incarnation: u32, command: Command) {
        self.log(|| format!("  {slot} > {:?} {:?}", command.id, command.action));
        self.trace = hash(self.trace, &format!("{command:?}"));
        let lease = matches!(command.action, Action::Lease(_));
        if !lease {
            self.active_ms = self.now_ms;
        }
        let slow = !lease && self.now_ms < self.striking.slow_until_ms;
        let (faults, random) = (&mut self.faults, &mut self.random);
        let passage = Passage::draw(&command.action, slow, faults, random);
        let flight = Arc::new(Flight {
            slot,
            incarnation,
            id: command.id,
            action: command.action,
            answer_ms: passage.answer_ms,
            instead: passage.instead.clone(),
        });
        for (index, way_ms) in passage.arrivals_ms.iter().enumerate() {
            let answered = index == passage.answered;
            let request = Happening::Request(Arc::clone(&flight), answered);
            self.plan(self.now_ms + way_ms, request);
        }
        if passage.arrivals_ms.is_empty()
            && let (Some(outcome), Some(answer_ms)) = (passage.instead, passage.answer_ms)
        {
            let at_ms = self.now_ms + answer_ms;
            self.plan(at_ms, Happening::Answer(flight, outcome));
        }
    }

    fn is_at_rest(&self) -> bool {
        self.healed
            && self.now_ms >= self.active_ms + QUIET_MS
            && self
                .leader()
                .is_some_and(|leader| leader.is_settled(self.now_ms))
    }

    fn leader(&self) -> Option<&Contender> {
        let mut running = self.contenders.iter().flatten();
        let leading = running.find(|(_, contender)| contender.engine.is_leader());
        leading.map(|(_, contender)| contender)
    }

    fn judge(self) -> Result<Summary, Failure> {
        let mut violations = Vec::new();
        for (uid, binds) in self.binds.iter().filter(|(_, binds)| **binds > 1) {
            violations.push(format!("I4: pod {uid} was bound {binds} times"));
        }
        let rejected = self.cluster.rejected;
        if rejected > 0 && !self.striking.explains_overcommit && self.starts == 1 {
            violations.push(format!("I2: kubelets had no room for {rejected} pods"));
        }
        if let Some(leader) = self.leader() {
            violations.extend(rest::violations(&self.cluster, leader, self.now_ms));
        }
        if !violations.is_empty() {
            return Err(self.failure(violations));
        }
        Ok(Summary {
            steps: self.step,
            gangs: self.gangs,
            pods: self.cluster.made(),
            binds: self.binds.values().sum(),
            evictions: self.evictions,
            faults: self.faults,
            trace: self.trace,
        })
    }

    fn failure(&self, violations: Vec<String>) -> Failure {
        Failure {
            seed: self.seed,
            after_ms: self.now_ms - START_MS,
            step: self.step,
            violations,
        }
    }
}

/// The settings of every scheduler of a run, but for the identity.
fn settings(random: &mut Random) -> Settings {
    let mut settings = Settings {
        staleness_grace_ms: Some(random.between(3_000, 8_000)),
        leadership: Leadership::Elected(LeaseSettings {
            identity: "".into(),
            duration_ms: 15_000,
            renew_deadline_ms: 10_000,
            retry_ms: 2_000,
        }),
        ..Settings::default()
    };
    if random.percent(50) {
        let mut few = || u32::try_from(random.between(1, 8)).unwrap_or(1);
        settings.in_flight = InFlight {
            actions: few(),
            statuses: few(),
            announcements: few(),
        };
    }
    settings
}

/// FNV-1a, continued.
fn hash(state: u64, text: &str) -> u64 {
    text.bytes()
        .fold(state ^ 0xcbf2_9ce4_8422_2325, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}
