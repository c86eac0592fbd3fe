//! One run: a cluster, its work and its faults from a seed; one or two schedulers; checks at every
//! step.
//!
//! ```text
//!  work arrives, faults strike -----30 s-----> faults stop, what was broken heals
//!                                              -----> rest within 120 s, and it is judged
//! ```
//!
//! Where past use counts, some minutes follow after the first rest, in which schedulers start anew,
//! half-lives change and pods end. Where gangs are promised starts, pods go on ending after the
//! faults have stopped, for some minutes, until all gangs that can have run.
//!
//! At every step the engine audits itself, and `contender/watchdog.rs` judges each command by what
//! the process had been told.

mod ailing;
mod asking;
mod beneficiaries;
mod kubelets;
mod past_use;
mod promises;
mod resting;
mod sharing;
mod striking;
mod stuck;

use crate::api_server::Name;
use crate::cluster::{Cluster, Task};
use crate::contender::Contender;
use crate::faults::{FaultKind, Faults};
use crate::panics::caught;
use crate::random::Random;
use crate::rest;
use crate::scenario::{self, Arrival};
use crate::shell::Shell;
use crate::timeline::undisturbed;
use beneficiaries::Beneficiaries;
use gpu_batch_policies::command::Action;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{NodeFacts, PodFacts, PodGroupFacts, PodPhase, Uid, UnixMs};
use gpu_batch_policies::lease::LeaseSettings;
use gpu_batch_policies::report::PodReport;
use gpu_batch_policies::settings::{Evictions, InFlight, Leadership, Settings};
pub use kubelets::ALIGNED_SEEDS_FROM;
use kubelets::aligns;
use past_use::Remembered;
use promises::Promises;
pub use sharing::SHARING_SEEDS_FROM;
use sharing::shares;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use striking::Striking;

/// When a run begins. Runs in which past use counts begin up to a minute later.
pub const START_MS: UnixMs = 1_800_000_000_000;
/// How long there are faults, from the beginning.
const FAULTS_MS: u64 = 30_000;
/// A world that is not at rest after so many steps never will be.
const STEPS_MAX: u32 = 40_000;
/// After the last fault everything must be at rest within this time.
const REST_MS: u64 = 120_000;
/// A world is at rest if nothing has happened for so long: longer than the lease is valid, and
/// longer than any grace in these worlds.
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
    /// Evictions that the API server accepted.
    pub evictions: u32,
    /// Promises of starts that were made to gangs that had none.
    pub promises: u32,
    /// The faults, and how often each struck.
    pub faults: Faults,
    /// A hash of every command: equal seeds give equal hashes.
    pub trace: u64,
    /// A hash of the binds and evictions alone, in their order.
    pub decisions: u64,
}

/// What went wrong, and the seed that shows it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// Whether the run was with faults.
    pub with_faults: bool,
    /// When it was noticed, in milliseconds since the start of the run.
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
            with_faults: _,
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
/// The first thing that does not hold, or the panic that ended the run.
pub fn run(seed: u64, with_faults: bool) -> Result<Summary, Failure> {
    let mut run = Run::new(seed, with_faults, None);
    let summary = caught(|| run.until_rest());
    summary.unwrap_or_else(|panic| Err(run.failure(vec![format!("a panic: {panic}")])))
}

/// Runs one seed as [`run`] does, and tells everything that happens line by line.
///
/// # Errors
/// The first thing that does not hold.
pub fn tell(seed: u64, with_faults: bool, say: &mut dyn FnMut(String)) -> Result<Summary, Failure> {
    Run::new(seed, with_faults, Some(say)).until_rest()
}

/// Runs one seed as [`run`] does, and returns the recordings of all scheduler processes, each as
/// the bytes of one block of a journal, not packed yet.
///
/// # Errors
/// The first thing that does not hold.
pub fn record(seed: u64, with_faults: bool) -> Result<(Summary, Vec<Vec<u8>>), Failure> {
    let mut run = Run::new(seed, with_faults, None);
    run.shells.iter_mut().for_each(Shell::record);
    let summary = run.until_rest()?;
    let recorded = run.shells.into_iter().flat_map(Shell::into_recorded);
    Ok((summary, recorded.collect()))
}

/// Something that happens at a time.
#[derive(Debug, Clone)]
enum Happening {
    Arrival(Arrival),
    Strike(FaultKind),
    Heal,
    /// A node becomes what it was before a fault.
    Undo(Box<NodeFacts>),
    /// A new machine comes in the place of a deleted node.
    Join(Box<NodeFacts>),
    Task(Task),
    /// A scheduler starts in this slot.
    Start(usize),
    /// The scheduler in this slot is killed.
    Kill(usize),
    /// The pause of a scheduler ends. It is planned so that no rest is seen before.
    GoOn,
    /// The configuration has another half-life of past use.
    HalfLife(Option<u64>),
    /// kube-scheduler asks to bind pods.
    Ask,
    /// The minimum of the PodGroup with this number, modulo their count, is raised by so much.
    Raise(u64, u32),
}

struct Run<'say> {
    seed: u64,
    with_faults: bool,
    random: Random,
    faults: Faults,
    striking: Striking,
    cluster: Cluster,
    shells: [Shell; 2],
    identities: [String; 2],
    settings: Settings,
    starts: u32,
    happenings: BTreeMap<(UnixMs, u64), Happening>,
    numbered: u64,
    start_ms: UnixMs,
    now_ms: UnixMs,
    /// The world must be at rest by then.
    rest_by_ms: UnixMs,
    /// How often that was put off, because gangs moved late.
    late_moves: u32,
    /// What tests know of past use; `None`: it does not count in this world.
    past: Option<Remembered>,
    healed: bool,
    active_ms: UnixMs,
    /// Gangs of which a member was evicted for another gang: namespace and PodGroup.
    victims: BTreeSet<(Box<str>, Box<str>)>,
    beneficiaries: Beneficiaries,
    promises: Promises,
    step: u32,
    gangs: u32,
    trace: u64,
    decisions: u64,
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
        let past = scenario::past(&mut Random::new(seed.rotate_left(32)));
        let past = past.filter(|_| !reserves(seed));
        let start_ms = START_MS + past.as_ref().map_or(0, |past| past.offset_ms);
        let (cluster, arrivals, gangs) = drawn(seed, &mut random, start_ms);
        let mut settings = settings(seed, &mut random);
        settings.use_half_life_ms = past.as_ref().map(|past| past.half_life_ms);
        let mut run = Self {
            seed,
            with_faults,
            settings,
            random,
            faults,
            striking: Striking::default(),
            cluster,
            shells: [Shell::default(), Shell::default()],
            identities: ["replica-0".to_owned(), "replica-1".to_owned()],
            starts: 0,
            happenings: BTreeMap::new(),
            numbered: 0,
            start_ms,
            now_ms: start_ms,
            rest_by_ms: start_ms + FAULTS_MS + REST_MS + patience_ms(seed),
            late_moves: 0,
            past: past.map(Remembered::new),
            healed: false,
            active_ms: start_ms,
            victims: BTreeSet::new(),
            beneficiaries: Beneficiaries::default(),
            promises: Promises::default(),
            step: 0,
            gangs,
            trace: 0,
            decisions: 0,
            say,
        };
        for (at_ms, arrival) in arrivals {
            run.plan(at_ms, Happening::Arrival(arrival));
        }
        let timed: Vec<FaultKind> = run.faults.timed().collect();
        for kind in timed {
            let at_ms = start_ms + run.random.below(FAULTS_MS);
            run.plan(at_ms, Happening::Strike(kind));
        }
        run.plan(start_ms + FAULTS_MS, Happening::Heal);
        run.plan(start_ms, Happening::Start(0));
        run.begin_past();
        run
    }

    fn plan(&mut self, at_ms: UnixMs, happening: Happening) {
        self.numbered += 1;
        self.happenings.insert((at_ms, self.numbered), happening);
    }

    fn log(&mut self, line: impl FnOnce() -> String) {
        if let Some(say) = &mut self.say {
            say(format!("{:>7} {}", self.now_ms - self.start_ms, line()));
        }
    }

    fn until_rest(&mut self) -> Result<Summary, Failure> {
        if self.say.is_some() {
            let faults = self.faults.to_string();
            self.log(|| format!("faults: {faults}"));
        }
        while self.step < STEPS_MAX {
            self.count_use();
            while let Some(entry) = self.happenings.first_entry()
                && entry.key().0 <= self.now_ms
            {
                let happening = entry.remove();
                self.happen(happening);
                self.controllers();
            }
            for slot in 0..self.shells.len() {
                if self.shells[slot].carry(&mut self.cluster.api, self.now_ms) {
                    self.active_ms = self.now_ms;
                }
                self.controllers();
            }
            for slot in 0..self.shells.len() {
                self.turn(slot)?;
            }
            if self.is_at_rest() {
                let mut violations = Vec::new();
                if !self.live_on(&mut violations) {
                    return self.judge();
                }
                if !violations.is_empty() {
                    return Err(self.failure(violations));
                }
            }
            if self.now_ms > self.rest_by_ms {
                break;
            }
            self.now_ms = self.next_ms().max(self.now_ms);
        }
        let failure = self.failure(vec!["I18: the world does not come to rest".to_owned()]);
        Err(failure)
    }

    fn next_ms(&self) -> UnixMs {
        let happening = self.happenings.keys().next().map(|(at_ms, _)| *at_ms);
        let shells = self.shells.iter().map(Shell::due_ms);
        let quiet_ms = self.active_ms + QUIET_MS;
        let quiet = Some(quiet_ms).filter(|at_ms| *at_ms > self.now_ms);
        shells
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
        self.active_ms = self.now_ms;
        self.log(|| format!("{happening:?}"));
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
            Happening::Start(slot) => {
                self.start(slot);
                self.begin_counting();
            }
            Happening::Kill(slot) => self.kill(slot),
            Happening::GoOn => {}
            Happening::Ask => self.ask(),
            Happening::HalfLife(half_life_ms) => self.change_half_life(half_life_ms),
            Happening::Raise(number, by) => self.raise_minimum(number, by),
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        let now_ms = self.now_ms;
        match arrival {
            Arrival::Gang(description, mut recipes) => {
                let stored = description.and_then(|object| self.cluster.put(*object, now_ms));
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
            Arrival::Guarded(budget, min_available) => {
                self.cluster.guard(budget, min_available, now_ms);
            }
            Arrival::Unguarded(name) => {
                if let Some(budget) = self.find(Kind::DisruptionBudget, &name) {
                    self.cluster.delete(Name::of(&budget), None, now_ms);
                }
            }
            Arrival::Stored(object) => {
                if self.cluster.api.get(&Name::of(&object)).is_none() {
                    self.cluster.put(*object, now_ms);
                }
            }
            Arrival::Gone(name) => self.cluster.delete(name, None, now_ms),
            Arrival::Ails(number, kind, shows) => self.ail(number, kind, shows),
            Arrival::VolumeGone(number) => self.cluster.lose_volume(number, now_ms),
            Arrival::VolumeTaken(number) => self.cluster.take_volume(number, now_ms),
            Arrival::MinimumChanges(name, minimum) => {
                let group = self.find(Kind::PodGroup, &name);
                if let Some(Object::PodGroup(mut facts)) = group {
                    change_minimum(&mut facts, minimum);
                    self.cluster.put(Object::PodGroup(facts), now_ms);
                }
            }
        }
    }

    fn find(&self, kind: Kind, name: &str) -> Option<Object> {
        let objects = self.cluster.api.objects(kind);
        let named = |object: &Object| *Name::of(object).name == *name;
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

    /// Lets the scheduler of a slot take its turn.
    fn turn(&mut self, slot: usize) -> Result<(), Failure> {
        let Self {
            shells,
            cluster,
            faults,
            random,
            ..
        } = self;
        let log = self.say.is_some();
        let turn = shells[slot].turn(&mut cluster.api, faults, random, self.now_ms, log);
        self.step += u32::from(turn.stepped);
        if turn.heard {
            // A process that was paused for long may only have begun to work on its news.
            self.active_ms = self.now_ms;
        }
        for event in turn.events {
            self.log(|| format!("  {slot} < {event}"));
        }
        let mut violations = turn.violations;
        self.forget_claims_of_followers(slot);
        self.judge_stuck(&mut violations);
        if turn.stepped {
            self.plan_to_ask();
            self.judge_promises(slot, &mut violations);
        }
        for (id, action) in turn.commands {
            violations.extend(self.judge_eviction(&action));
            self.note_victim(&action);
            self.put_off_rest(&action);
            self.note_beneficiary(slot, &action);
            self.log(|| format!("  {slot} > {id:?} {action:?}"));
            self.trace = hash(self.trace, &format!("{slot} {id:?} {action:?}"));
            if matches!(action, Action::Bind(_) | Action::Evict(_)) {
                self.decisions = hash(self.decisions, &format!("{slot} {action:?}"));
            }
            if !matches!(action, Action::Lease(_)) {
                self.active_ms = self.now_ms;
            }
        }
        if violations.is_empty() {
            return Ok(());
        }
        Err(self.failure(violations))
    }

    fn is_at_rest(&self) -> bool {
        self.healed
            && self.happenings.is_empty()
            && self.now_ms >= self.active_ms + QUIET_MS
            && self.leader().is_some_and(|leader| {
                // Room is kept for minutes for pods that move, whether they come back or not.
                leader.is_settled(self.now_ms)
                    && !leader.engine.holds_room()
                    && !self.are_offered(leader)
                    && !self.are_prepared(leader)
            })
    }

    /// Whether pods have places and wait for their volumes, or for locks on cards, in worlds with
    /// such.
    fn are_prepared(&self, leader: &Contender) -> bool {
        let is_prepared = |report: &PodReport| {
            let pod = self.cluster.pod(report.uid);
            report.node.is_some() && pod.is_some_and(|facts| facts.node.is_none())
        };
        let can_wait = has_claims(self.seed) || shares(self.seed);
        can_wait && leader.engine.pod_reports().iter().any(is_prepared)
    }

    fn leader(&self) -> Option<&Contender> {
        let mut running = self.shells.iter().filter_map(Shell::process);
        running.find(|process| process.engine.is_leader())
    }

    fn judge(&mut self) -> Result<Summary, Failure> {
        let mut violations = Vec::new();
        let mut binds: BTreeMap<Uid, u32> = BTreeMap::new();
        for (uid, times) in self.shells.iter().flat_map(Shell::binds) {
            *binds.entry(*uid).or_default() += times;
        }
        for (uid, times) in binds.iter().filter(|(_, times)| **times > 1) {
            violations.push(format!("I4: pod {uid} was bound {times} times"));
        }
        self.judge_rejections(&mut violations);
        let calm = FaultKind::ALL
            .iter()
            .all(|kind| self.faults.struck(*kind) == 0);
        self.judge_locks(&mut violations);
        self.judge_books(&mut violations);
        if let Some(leader) = self.leader() {
            let binders = self.binders();
            let found = rest::violations(&self.cluster, leader, &binders, calm, self.now_ms);
            violations.extend(found);
        }
        self.judge_beneficiaries(&mut violations);
        self.judge_promises_at_rest(&mut violations);
        self.judge_past(&mut violations);
        if !violations.is_empty() {
            return Err(self.failure(violations));
        }
        Ok(Summary {
            steps: self.step,
            gangs: self.gangs,
            pods: self.cluster.made(),
            binds: binds.values().sum(),
            evictions: self.shells.iter().map(Shell::evictions).sum(),
            promises: self.promises.made,
            faults: self.faults.clone(),
            trace: self.trace,
            decisions: self.decisions,
        })
    }

    /// The binder of each pod. Strays have none, because their process had given up the bind and
    /// decided without it. All other pods count as bound by one process, unless a process may have
    /// begun with old news, or beside another one.
    fn binders(&self) -> BTreeMap<Uid, rest::Binder> {
        let apart = [
            // A process may not know what another one has bound,
            FaultKind::ListStale,
            FaultKind::KindHeldBack,
            FaultKind::NewsLate,
            // or two may lead for a moment, and begin with a gang at once.
            FaultKind::LeaseDeleted,
            FaultKind::ClockStalls,
            FaultKind::ClockJumps,
        ];
        let apart = apart.iter().any(|kind| self.faults.struck(*kind) > 0);
        let mut binders = BTreeMap::new();
        for (slot, shell) in self.shells.iter().enumerate() {
            let heard = shell.binders().iter();
            for (uid, start) in heard.filter(|(uid, _)| !shell.strays().contains(uid)) {
                let binder = if apart { (slot, *start) } else { (0, 0) };
                binders.insert(*uid, binder);
            }
        }
        binders
    }

    fn failure(&self, violations: Vec<String>) -> Failure {
        Failure {
            seed: self.seed,
            with_faults: self.with_faults,
            after_ms: self.now_ms - self.start_ms,
            step: self.step,
            violations,
        }
    }
}

/// How long room may be kept for pods that move, and do not come back.
const MOVERS_MS: u64 = 5 * 60_000;

/// How often that may begin anew: once such room is given up, gangs may move again.
const LATE_MOVES_MAX: u32 = 3;

/// How long a world may take longer to come to rest because room is kept for pods that move, and
/// because pods are slow to leave.
fn patience_ms(seed: u64) -> u64 {
    let movers_ms = if takes(seed) { MOVERS_MS } else { 0 };
    let leaving_ms = if needs_patience(seed) { LEAVING_MS } else { 0 };
    let running_ms = if reserves(seed) { RUNNING_MS } else { 0 };
    let prepares = has_claims(seed) || shares(seed);
    let preparing_ms = if prepares { PREPARING_MS } else { 0 };
    movers_ms + leaving_ms + running_ms + preparing_ms
}

/// How long a gang may wait for a volume that nobody makes, or for locks that nobody gives back.
const PREPARING_MS: u64 = 11 * 60_000;

/// How long gangs may run one after the other, where pods go on ending.
const RUNNING_MS: u64 = 20 * 60_000;

/// How long evictions of pods that are slow to leave, or are stuck, may go on one after the other.
const LEAVING_MS: u64 = 10 * 60_000;

/// Whether gangs evict others in the world of a seed: in a fourth of the worlds, and in those that
/// need patience.
fn takes(seed: u64) -> bool {
    needs_patience(seed) || seed % 4 == 3 && !WITHOUT_EVICTIONS.contains(&seed)
}

/// The first seed of worlds in which evicting takes patience: gangs are protected for a while,
/// and pods are slow to leave, or stuck.
pub const PATIENT_SEEDS_FROM: u64 = 1 << 62;

fn needs_patience(seed: u64) -> bool {
    (PATIENT_SEEDS_FROM..RESERVING_SEEDS_FROM).contains(&seed)
}

/// The first seed of worlds in which GPUs fail.
pub const AILING_SEEDS_FROM: u64 = 1 << 59;

fn ails(seed: u64) -> bool {
    (AILING_SEEDS_FROM..CLAIMING_SEEDS_FROM).contains(&seed)
}

/// The first seed of worlds in which pods have volumes.
pub const CLAIMING_SEEDS_FROM: u64 = 1 << 60;

fn has_claims(seed: u64) -> bool {
    (CLAIMING_SEEDS_FROM..EXTENDED_SEEDS_FROM).contains(&seed)
}

/// The first seed of worlds in which the volumes of pods exist before their claims.
pub const DISK_SEEDS_FROM: u64 = 3 << 59;

fn has_disks(seed: u64) -> bool {
    (DISK_SEEDS_FROM..EXTENDED_SEEDS_FROM).contains(&seed)
}

/// The first seed of worlds in which kube-scheduler chooses the nodes of pods.
pub const EXTENDED_SEEDS_FROM: u64 = 1 << 61;

fn has_extended(seed: u64) -> bool {
    (EXTENDED_SEEDS_FROM..PATIENT_SEEDS_FROM).contains(&seed)
}

/// The first seed of those worlds with patience in which pods have rules about other pods, too.
pub const RELATED_SEEDS_FROM: u64 = 3 << 61;

fn is_related(seed: u64) -> bool {
    (RELATED_SEEDS_FROM..RESERVING_SEEDS_FROM).contains(&seed)
}

/// The first seed of worlds in which gangs are promised starts. In the even ones gangs have a fixed
/// order and end as they are expected to, see `scenario/expected`. In the odd ones anything goes.
pub const RESERVING_SEEDS_FROM: u64 = 1 << 63;

fn reserves(seed: u64) -> bool {
    seed >= RESERVING_SEEDS_FROM
}

fn is_orderly(seed: u64) -> bool {
    reserves(seed) && seed.is_multiple_of(2)
}

/// Seeds of these numbers failed once in worlds without evictions, which they are to stay.
const WITHOUT_EVICTIONS: Range<u64> = 20_000..50_000_000;

/// The cluster of a seed, and what arrives in it: by time, and how many gangs.
fn drawn(
    seed: u64,
    random: &mut Random,
    start_ms: UnixMs,
) -> (Cluster, Vec<(UnixMs, Arrival)>, u32) {
    const SPAN_MS: u64 = FAULTS_MS * 9 / 10;
    let mut cluster = Cluster::default();
    scenario::build(&mut cluster, random, start_ms);
    if is_orderly(seed) {
        let (arrivals, gangs) = scenario::orderly(&mut cluster, random, start_ms, SPAN_MS);
        return (cluster, arrivals, gangs);
    }
    let (mut arrivals, gangs) = scenario::arrivals(random, start_ms, SPAN_MS);
    scenario::grow(&mut arrivals, &mut Random::new(!seed));
    let guards = &mut Random::new(seed.rotate_left(16));
    scenario::guard(&mut arrivals, guards, start_ms, SPAN_MS);
    let others = &mut Random::new(seed.rotate_left(48));
    if needs_patience(seed) {
        scenario::protect(&mut cluster, others, start_ms);
        scenario::linger(&mut arrivals, others);
    }
    if is_related(seed) {
        scenario::relate(&mut arrivals, others);
    }
    if has_extended(seed) {
        scenario::extend(&mut arrivals, others);
    }
    if has_disks(seed) {
        scenario::equip(&mut cluster, &mut arrivals, others, (start_ms, SPAN_MS));
    } else if has_claims(seed) {
        scenario::furnish(&mut cluster, &mut arrivals, others, (start_ms, SPAN_MS));
    }
    if shares(seed) {
        scenario::share(&mut cluster, &mut arrivals, others, start_ms);
    }
    if aligns(seed) {
        scenario::align(&mut cluster, &mut arrivals, others, start_ms);
    }
    if ails(seed) {
        scenario::ail(&mut arrivals, others, start_ms, SPAN_MS);
    }
    if reserves(seed) {
        scenario::expect(&mut arrivals, others);
    }
    (cluster, arrivals, gangs)
}

/// Draws the settings of all schedulers of a run, without the identity.
fn settings(seed: u64, random: &mut Random) -> Settings {
    let mut settings = Settings {
        staleness_grace_ms: Some(random.between(3_000, 8_000)),
        leadership: Leadership::Elected(LeaseSettings {
            identity: "".into(),
            duration_ms: 15_000,
            renew_deadline_ms: 10_000,
            retry_ms: 2_000,
        }),
        ..undisturbed()
    };
    if takes(seed) {
        settings.evictions = Evictions {
            in_flight: 50,
            per_second: [1, 20, 1_000][usize::try_from(seed / 12 % 3).unwrap_or(0)],
        };
    }
    if reserves(seed) {
        settings.reservations = [1, 2, 8, u32::MAX][usize::try_from(seed / 4 % 4).unwrap_or(0)];
    }
    if ails(seed) {
        settings.health = scenario::health(&mut Random::new(seed.rotate_left(8)));
    }
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

/// Gives a gang another minimum. If the gang has sub-groups, the first leaf gets it.
fn change_minimum(facts: &mut PodGroupFacts, minimum: u32) {
    let groups = &facts.sub_groups;
    let is_leaf = |name: &str| groups.iter().all(|child| *child.parent != *name);
    match groups.iter().position(|group| is_leaf(&group.name)) {
        None => facts.minimum = minimum,
        Some(leaf) => facts.sub_groups[leaf].min_member = Some(minimum),
    }
}

/// The 64-bit hash FNV-1a of a text, continued from the hash of earlier texts.
pub(crate) fn hash(state: u64, text: &str) -> u64 {
    text.bytes()
        .fold(state ^ 0xcbf2_9ce4_8422_2325, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}
