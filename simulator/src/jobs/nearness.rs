//! How near to each other the members of gangs are placed: the jobs of a trace on a network of
//! domains.
//!
//! Every [`Choice`] of hosts has a world of its own, in which the jobs of the trace arrive at their
//! times. Jobs wait where earlier choices have left no room, so what a choice costs later counts,
//! too. All choices take the jobs in one order: the oldest first, and a job that finds no room lets
//! later jobs pass.

mod choice;
mod network;
mod room;
#[cfg(test)]
mod tests;

pub use choice::Choice;
pub use network::{LINGJUN_COLUMNS, Network};

use super::objects::Objects;
use crate::generate::GPUS_PER_NODE;
use crate::trace::jobs::{Job, Jobs};
use choice::Chooser;
use gpu_batch_policies::facts::UnixMs;
use room::{Place, Room};
use std::collections::{BTreeMap, BTreeSet};

/// What a choice of hosts makes of a trace. A *rack* is a domain of the lowest level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Nearness {
    /// Jobs that have started.
    pub started: u64,
    /// How long the started jobs waited, summed, in milliseconds.
    pub waited_ms: u64,
    /// Started jobs that need several hosts: gangs.
    pub gangs: u64,
    /// Gangs of which all members are in one rack.
    pub together: u64,
    /// Gangs that need at most as many hosts as the largest rack has: in an empty cluster each of
    /// these gangs would be in one rack.
    pub together_at_best: u64,
    /// The racks of each gang, summed.
    pub racks: u64,
    /// The racks that each gang would have in an empty cluster, summed.
    pub racks_at_best: u64,
    /// Milliseconds from the first arrival to the last one. The sums below are taken over this
    /// time.
    pub lasted_ms: u64,
    /// The hosts of the largest gang that would still fit in one rack, summed over milliseconds.
    pub open_in_rack_ms: u64,
    /// The hosts of the largest gang that would still fit at all, summed over milliseconds.
    pub open_ms: u64,
    /// The racks in which no GPU is in use, summed over milliseconds.
    pub free_racks_ms: u64,
}

/// Runs all jobs to their ends on hosts of [`GPUS_PER_NODE`] GPUs. Jobs that are larger than the
/// network never start. The queues of the trace do not count: all jobs are in one queue.
#[must_use]
pub fn measure(jobs: &Jobs, network: &Network, choice: Choice) -> Nearness {
    let mut month = Month {
        jobs: &jobs.jobs,
        network,
        room: Room::new(network),
        held: BTreeMap::new(),
        ends: BTreeMap::new(),
        now_ms: jobs.jobs.first().map_or(0, arrival_ms),
        until_ms: jobs.jobs.last().map_or(0, arrival_ms),
        found: Nearness::default(),
    };
    month.found.lasted_ms = month.until_ms - month.now_ms;
    month.run(Chooser::new(choice, network));
    month.found
}

/// A world in which the jobs of a trace run.
struct Month<'a> {
    jobs: &'a [Job],
    network: &'a Network,
    room: Room<'a>,
    /// The places that each running job holds.
    held: BTreeMap<usize, Vec<Place>>,
    /// The running jobs, by the time at which they end.
    ends: BTreeMap<UnixMs, Vec<usize>>,
    now_ms: UnixMs,
    until_ms: UnixMs,
    found: Nearness,
}

impl Month<'_> {
    fn run(&mut self, mut chooser: Chooser) {
        let mut arriving = (0..self.jobs.len()).peekable();
        loop {
            let arrival = arriving.peek().map(|job| arrival_ms(&self.jobs[*job]));
            let end = self.ends.keys().next().copied();
            let next = [arrival, end, chooser.next_ms()];
            let Some(at_ms) = next.into_iter().flatten().min() else {
                return;
            };
            self.pass(at_ms);
            let mut ended = Vec::new();
            while let Some(entry) = self.ends.first_entry().filter(|e| *e.key() <= at_ms) {
                ended.extend(entry.remove());
            }
            for job in &ended {
                for place in self.held.remove(job).unwrap_or_default() {
                    self.room.give(place);
                }
            }
            let arrives = |job: &usize| arrival_ms(&self.jobs[*job]) <= at_ms;
            let mut arrived = Vec::new();
            while let Some(job) = arriving.next_if(arrives) {
                arrived.push(job);
            }
            let room = &mut self.room;
            for (job, places) in chooser.advance(at_ms, self.jobs, &ended, &arrived, room) {
                self.start(job, places);
            }
        }
    }

    /// Adds what is open until `at_ms` to the sums, and sets the present to it.
    fn pass(&mut self, at_ms: UnixMs) {
        let passed_ms = at_ms.min(self.until_ms).saturating_sub(self.now_ms);
        self.found.open_ms += passed_ms * u64::from(self.room.open());
        self.found.free_racks_ms += passed_ms * u64::from(self.room.free_racks());
        self.found.open_in_rack_ms += passed_ms * u64::from(self.room.open_in_rack());
        self.now_ms = self.now_ms.max(at_ms);
    }

    fn start(&mut self, number: usize, places: Vec<Place>) {
        let job = &self.jobs[number];
        let found = &mut self.found;
        found.started += 1;
        found.waited_ms += self.now_ms - arrival_ms(job);
        if places.len() > 1 {
            let racks: BTreeSet<usize> = places.iter().map(|p| self.network.rack(p.host)).collect();
            let fewest = self.network.fewest_racks(places.len());
            found.gangs += 1;
            found.together += u64::from(racks.len() == 1);
            found.together_at_best += u64::from(fewest == 1);
            found.racks += racks.len() as u64;
            found.racks_at_best += fewest;
        }
        let ends_ms = self.now_ms + job.duration_s * 1_000;
        self.ends.entry(ends_ms).or_default().push(number);
        self.held.insert(number, places);
    }
}

fn arrival_ms(job: &Job) -> UnixMs {
    job.submit_s * 1_000
}

/// The GPUs of each pod of a job: first pods of a whole host, then one with the GPUs that are left.
fn pods(job: &Job) -> impl Iterator<Item = u32> {
    let rest = job.num_gpus % GPUS_PER_NODE;
    let whole = job.num_gpus / GPUS_PER_NODE;
    (0..whole)
        .map(|_| GPUS_PER_NODE)
        .chain((rest > 0).then_some(rest))
}
