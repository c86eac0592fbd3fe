//! Many seeds on many cores, and their findings together.

use crate::faults::{FaultKind, KINDS};
use crate::run::{Failure, Summary, hash, run};
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// So many failures are kept; further failures are only counted.
const FAILURES_KEPT: usize = 20;

/// What a campaign has found.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Seeds that were run.
    pub seeds: u64,
    /// Steps of all engines.
    pub steps: u64,
    /// Gangs that arrived.
    pub gangs: u64,
    /// Pods that were created.
    pub pods: u64,
    /// Bindings that were accepted.
    pub binds: u64,
    /// Evictions that were accepted.
    pub evictions: u64,
    /// Promises of starts that were made.
    pub promises: u64,
    /// How often each kind of fault struck.
    pub struck: Vec<u64>,
    /// How many seeds failed.
    pub failed: u64,
    /// The failures of the lowest seeds, sorted by seed.
    pub failures: Vec<Failure>,
    /// How long each seed took; sorted.
    pub took: Vec<Duration>,
    /// A hash of every command of every seed: equal before and after a change of the code that is
    /// to alter no command. It does not depend on the order in which seeds are run, so the number
    /// of threads does not matter.
    pub commands: u64,
    /// A hash as `commands` is, of binds and evictions alone.
    pub decisions: u64,
}

/// Which seeds are run, and how.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// The seeds.
    pub seeds: Range<u64>,
    /// Whether faults strike.
    pub with_faults: bool,
    /// How many seeds are run at a time.
    pub threads: usize,
    /// Whether the campaign stops at the first failure.
    pub stop_at_first: bool,
}

/// Runs all seeds. `clock` measures how long each takes, because this crate reads no clock.
#[must_use]
pub fn campaign(campaign: &Campaign, clock: fn() -> Duration) -> Findings {
    let next = AtomicU64::new(campaign.seeds.start);
    let findings = Mutex::new(Findings {
        struck: vec![0; KINDS],
        ..Findings::default()
    });
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= campaign.seeds.end {
                break;
            }
            let started = clock();
            let result = run(seed, campaign.with_faults);
            let took = clock().saturating_sub(started);
            let of_seed = |what: &dyn fmt::Debug| hash(seed, &format!("{what:?}"));
            let (commands, decisions) = match &result {
                Ok(summary) => (of_seed(&summary.trace), of_seed(&summary.decisions)),
                Err(failure) => (of_seed(failure), of_seed(failure)),
            };
            let mut findings = findings.lock().unwrap_or_else(PoisonError::into_inner);
            if result.is_err() && campaign.stop_at_first {
                next.store(campaign.seeds.end, Ordering::Relaxed);
            }
            findings.commands = findings.commands.wrapping_add(commands);
            findings.decisions = findings.decisions.wrapping_add(decisions);
            findings.add(result, took);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..campaign.threads {
            scope.spawn(work);
        }
        work();
    });
    let mut findings = findings
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    findings.took.sort_unstable();
    findings
}

impl Findings {
    fn add(&mut self, result: Result<Summary, Failure>, took: Duration) {
        self.seeds += 1;
        self.took.push(took);
        match result {
            Ok(summary) => {
                self.steps += u64::from(summary.steps);
                self.gangs += u64::from(summary.gangs);
                self.pods += u64::from(summary.pods);
                self.binds += u64::from(summary.binds);
                self.evictions += u64::from(summary.evictions);
                self.promises += u64::from(summary.promises);
                for (sum, kind) in self.struck.iter_mut().zip(FaultKind::ALL) {
                    *sum += u64::from(summary.faults.struck(*kind));
                }
            }
            Err(failure) => {
                self.failed += 1;
                self.failures.push(failure);
                self.failures.sort_by_key(|failure| failure.seed);
                self.failures.truncate(FAILURES_KEPT);
            }
        }
    }

    /// How often faults struck, of all kinds together.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.struck.iter().sum()
    }

    /// The kinds of faults that never struck.
    #[must_use]
    pub fn idle_kinds(&self) -> Vec<FaultKind> {
        let kinds = FaultKind::ALL.iter().zip(&self.struck);
        let idle = kinds.filter(|(_, struck)| **struck == 0);
        idle.map(|(kind, _)| *kind).collect()
    }

    fn percentile(&self, percent: usize) -> Duration {
        let index = (self.took.len() * percent / 100).min(self.took.len().saturating_sub(1));
        self.took.get(index).copied().unwrap_or_default()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{} seeds: {} gangs, {} pods, {} faults, {} binds, {} evictions, {} promises, {} steps",
            self.seeds,
            self.gangs,
            self.pods,
            self.faults(),
            self.binds,
            self.evictions,
            self.promises,
            self.steps
        )?;
        writeln!(
            formatter,
            "a seed takes {:?}, one of a hundred longer than {:?}",
            self.percentile(50),
            self.percentile(99)
        )?;
        for (kind, struck) in FaultKind::ALL.iter().zip(&self.struck) {
            writeln!(formatter, "{struck:>10} {kind:?}")?;
        }
        writeln!(formatter, "{} seeds failed", self.failed)?;
        for failure in &self.failures {
            writeln!(formatter, "  {failure}")?;
            let calm = if failure.with_faults {
                ""
            } else {
                " --without-faults"
            };
            writeln!(formatter, "    chaos --seed {}{calm}", failure.seed)?;
        }
        Ok(())
    }
}
