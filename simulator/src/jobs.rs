//! The jobs of a trace under a policy: when does each start?
//!
//! A job is a gang of pods that take whole nodes each, and of one more pod for the GPUs that are
//! left over. The job runs for its duration from the start of its gang; only under a policy that
//! [evicts](Policy::evicts) it may be evicted before. Every start is a `Bind` of the engine and
//! every eviction an `Evict`: a [`Policy`] is a setting of the engine, not a scheduler of its own.
//!
//! Under [`Policy::Fifo`], [`Policy::Sjf`] and [`Policy::FirstFit`] every queue has its nodes for
//! itself, as the virtual clusters of the traces had. Under the others all nodes are one cluster.
//! Under [`Policy::Easy`] and [`Policy::Conservative`] all jobs stand in one line there; under the
//! rest a queue's nodes are its quota, and queues borrow what others leave.
//!
//! None of these settings (the order in a leaf queue, whether the first in line keeps the others
//! waiting, `Placement::Consolidated`) is offered to users of a cluster. Clusters that share no
//! node run on threads of their own, and the number of threads changes no byte of the result. Jobs
//! that have ended are forgotten by engine and timeline; only their starts are kept.

mod cluster;
pub mod evictions;
pub mod expectations;
pub mod fairness;
mod lessons;
pub mod nearness;
mod objects;
pub mod output;
pub mod promises;
pub mod ratios;
pub mod sizes;
pub mod summary;
#[cfg(test)]
mod tests;

use crate::timeline::undisturbed;
use crate::trace::jobs::Jobs;
use crate::trace::queues::{self, TraceQueue};
use cluster::{Cluster, Outcome};
use evictions::Eviction;
use gpu_batch_policies::facts::Placement;
use gpu_batch_policies::settings::{Evictions, LeafOrder, Queueing, Settings};
use promises::Promise;
use ratios::Foreseen;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The rule by which jobs are ordered, and by which a job that finds no room keeps others waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// First in, first out. A job that finds no room keeps all later jobs waiting.
    Fifo,
    /// The shortest job first. A job that finds no room keeps all longer jobs waiting.
    Sjf,
    /// First in, first out, but a job that finds no room lets later jobs pass.
    FirstFit,
    /// First in, first out; the first job that finds no room is promised a start, and later jobs
    /// pass where they do not delay it (EASY backfilling).
    Easy,
    /// First in, first out; every job is promised a start when it is submitted, and later jobs pass
    /// where they delay no other job (conservative backfilling).
    Conservative,
    /// Dominant resource fairness between queues, which have quotas and borrow from each other.
    /// Jobs run to their end. Inside a queue as [`Policy::FirstFit`].
    Drf,
    /// What the live scheduler does: as [`Policy::Drf`], and queues take back what is theirs.
    DrfEvictions,
    /// As [`Policy::Drf`], and so many jobs that find no room are promised a start; others pass
    /// where they do not delay it. 0: no job is promised anything.
    DrfReservations(u32),
    /// As [`Policy::DrfEvictions`], with promises as under [`Policy::DrfReservations`].
    DrfEvictionsReservations(u32),
}

/// How many jobs at a time are promised a start, where nothing else is said.
pub const RESERVATIONS: u32 = 8;

impl Policy {
    /// All policies, those with reservations with [`RESERVATIONS`] of them.
    pub const ALL: [Self; 9] = [
        Self::Fifo,
        Self::Sjf,
        Self::FirstFit,
        Self::Easy,
        Self::Conservative,
        Self::Drf,
        Self::DrfEvictions,
        Self::DrfReservations(RESERVATIONS),
        Self::DrfEvictionsReservations(RESERVATIONS),
    ];

    /// The name of the policy, as users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Sjf => "sjf",
            Self::FirstFit => "first-fit",
            Self::Easy => "easy",
            Self::Conservative => "conservative",
            Self::Drf => "drf",
            Self::DrfEvictions => "drf+evictions",
            Self::DrfReservations(_) => "drf+reservations",
            Self::DrfEvictionsReservations(_) => "drf+evictions+reservations",
        }
    }

    /// Whether all queues share one cluster.
    #[must_use]
    pub fn shares_nodes(self) -> bool {
        !matches!(self, Self::Fifo | Self::Sjf | Self::FirstFit)
    }

    /// Whether jobs are evicted so that others can start.
    #[must_use]
    pub fn evicts(self) -> bool {
        matches!(self, Self::DrfEvictions | Self::DrfEvictionsReservations(_))
    }

    /// Whether all jobs stand in one line, whatever their queues.
    #[must_use]
    pub fn is_one_line(self) -> bool {
        matches!(self, Self::Easy | Self::Conservative)
    }

    /// Whether jobs are promised starts, which later jobs that pass do not delay.
    #[must_use]
    pub fn reserves(self) -> bool {
        self.reservations() > 0
    }

    /// How many jobs at a time are promised a start; [`u32::MAX`]: all that wait.
    #[must_use]
    pub fn reservations(self) -> u32 {
        match self {
            Self::Easy => 1,
            Self::Conservative => u32::MAX,
            Self::DrfReservations(count) | Self::DrfEvictionsReservations(count) => count,
            _ => 0,
        }
    }

    /// The policy that differs only in that nobody is promised a start; `None`: there is none.
    #[must_use]
    pub fn without_reservations(self) -> Option<Self> {
        match self {
            Self::DrfReservations(_) => Some(Self::Drf),
            Self::DrfEvictionsReservations(_) => Some(Self::DrfEvictions),
            _ => None,
        }
    }

    fn settings(self) -> Settings {
        let leaf_order = match self {
            Self::Sjf => LeafOrder::ShortestFirst,
            _ => LeafOrder::Age,
        };
        let queueing = match self {
            Self::Fifo | Self::Sjf => Queueing::Strict,
            _ => Queueing::BestEffort,
        };
        let gpu_placement = match self {
            _ if self.shares_nodes() => Placement::Binpack,
            _ => Placement::Consolidated,
        };
        let undisturbed = undisturbed();
        // Requests are answered at once, so no pace is needed.
        let at_once = Evictions {
            in_flight: u32::MAX,
            per_second: u32::MAX,
        };
        Settings {
            leaf_order,
            queueing,
            reservations: self.reservations(),
            gpu_placement,
            evictions: if self.evicts() {
                at_once
            } else {
                undisturbed.evictions
            },
            ..undisturbed
        }
    }
}

/// The input of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Workload<'a> {
    /// The jobs, by time of submission.
    pub jobs: &'a Jobs,
    /// The queues and how many nodes each owns.
    pub queues: &'a [TraceQueue],
    /// GPUs of each node.
    pub gpus_per_node: u32,
}

impl Workload<'_> {
    /// The nodes of all queues.
    #[must_use]
    pub fn nodes(&self) -> u64 {
        queues::nodes(self.queues)
    }

    /// The GPUs of all queues.
    #[must_use]
    pub fn gpus(&self) -> u64 {
        self.nodes() * u64::from(self.gpus_per_node)
    }

    /// Whether the engine learns runtimes under a policy: it needs to know whose jobs they are, and
    /// expects runtimes only to promise starts.
    #[must_use]
    pub fn teaches(&self, policy: Policy) -> bool {
        policy.reserves() && !self.jobs.owners.is_empty()
    }

    /// For each queue of the trace its index in [`Workload::queues`]; `None`: it is not there.
    fn queues_of_trace(&self) -> Vec<Option<usize>> {
        let places: BTreeMap<&str, usize> = self
            .queues
            .iter()
            .map(|queue| &*queue.name)
            .zip(0..)
            .collect();
        let names = self.jobs.queues.iter();
        names.map(|name| places.get(&**name).copied()).collect()
    }
}

/// The result of simulating one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The policy.
    pub policy: Policy,
    /// When the run of each job began that came to its end, in seconds, in the order of the trace.
    /// `None`: the job never started, or not again after an eviction.
    pub starts_s: Vec<Option<u64>>,
    /// The evictions, by job and then by time.
    pub evictions: Vec<Eviction>,
    /// What jobs were promised before they started for the first time, by job.
    pub promises: Vec<Promise>,
    /// How long jobs ran of which a runtime was expected, by the ends of these runs, where runtimes
    /// are [learned](Workload::teaches); otherwise empty.
    pub foreseen: Vec<Foreseen>,
    /// The jobs that never started and why, sorted by their index in the trace.
    pub never: Vec<Never>,
    /// How many steps the engines made, for figures of speed.
    pub steps: u64,
    /// Samples of the fair shares, if [`Execution::fair_shares_every_s`] asks for them.
    pub fair_shares: Vec<FairShare>,
}

/// A job that never started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Never {
    /// The index of the job in the trace.
    pub job: usize,
    /// Why it never started: a sentence without the final point.
    pub why: String,
}

/// The fair share of a queue at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FairShare {
    /// The time, in seconds from the beginning of the trace.
    pub at_s: u64,
    /// The queue: an index into [`Workload::queues`].
    pub queue: usize,
    /// The fair share, in thousandths of a GPU.
    pub gpu_thousandths: u64,
}

/// How a run is carried out. Nothing of this changes when jobs start.
#[derive(Debug, Clone, Copy)]
pub struct Execution<'a> {
    /// How many clusters are simulated at the same time.
    pub threads: NonZeroUsize,
    /// Counts the events (arrivals, starts and ends of jobs) while the runs go on.
    pub events: &'a AtomicU64,
    /// How many seconds at least are between two samples of [`Run::fair_shares`], where queues
    /// share nodes. `None`: there are no samples.
    pub fair_shares_every_s: Option<u64>,
}

/// Simulates each policy by itself, and returns the runs in the order of the policies.
#[must_use]
pub fn simulate(policies: &[Policy], workload: Workload<'_>, execution: Execution<'_>) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut all = Vec::new();
    for (index, policy) in policies.iter().enumerate() {
        let (clusters, never) = clusters(*policy, workload);
        all.extend(clusters.into_iter().map(|cluster| (index, cluster)));
        runs.push(Run {
            policy: *policy,
            starts_s: vec![None; workload.jobs.jobs.len()],
            evictions: Vec::new(),
            promises: Vec::new(),
            foreseen: Vec::new(),
            never,
            steps: 0,
            fair_shares: Vec::new(),
        });
    }
    // The largest cluster first, so that no thread begins it when the other threads are done.
    all.sort_by_key(|(_, cluster)| std::cmp::Reverse(cluster.jobs.len()));
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        while let Some((run, cluster)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = cluster.run(policies[*run], workload, execution);
            let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            outcomes.push((*run, outcome));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..execution.threads.get().min(all.len()) {
            scope.spawn(work);
        }
        work();
    });
    for (run, outcome) in outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        runs[run].add(outcome);
    }
    for run in &mut runs {
        run.never.sort_by_key(|never| never.job);
        run.evictions.sort_by_key(|it| (it.job, it.at_s));
        run.promises.sort_by_key(|promise| promise.job);
    }
    runs
}

/// The clusters with the jobs that compete for their nodes, and the jobs that can never run.
fn clusters(policy: Policy, workload: Workload<'_>) -> (Vec<Cluster>, Vec<Never>) {
    let Workload { jobs, queues, .. } = workload;
    let mut clusters: Vec<Cluster> = if policy.shares_nodes() {
        let all = (0..queues.len()).collect();
        vec![Cluster::new(all, workload)]
    } else {
        let queues = 0..queues.len();
        queues
            .map(|queue| Cluster::new(vec![queue], workload))
            .collect()
    };
    let places = workload.queues_of_trace();
    let mut never = Vec::new();
    for (index, job) in jobs.jobs.iter().enumerate() {
        let Some(queue) = places[job.queue as usize] else {
            let why = "its queue is not in the file of queues".to_owned();
            never.push(Never { job: index, why });
            continue;
        };
        let cluster = &mut clusters[if policy.shares_nodes() { 0 } else { queue }];
        match cluster.too_large(job) {
            Some(why) => never.push(Never { job: index, why }),
            None => cluster.jobs.push((index, queue)),
        }
    }
    clusters.retain(|cluster| !cluster.jobs.is_empty());
    (clusters, never)
}

impl Run {
    /// Adds the outcome of one cluster. Clusters have no job in common.
    fn add(&mut self, outcome: Outcome) {
        self.steps += outcome.steps;
        self.fair_shares.extend(outcome.fair_shares);
        self.never.extend(outcome.never);
        self.evictions.extend(outcome.evictions);
        self.promises.extend(outcome.promises.into_values());
        self.foreseen.extend(outcome.foreseen);
        for (job, start_s) in outcome.starts {
            self.starts_s[job] = start_s;
        }
    }
}
