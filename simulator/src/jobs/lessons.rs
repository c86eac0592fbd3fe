//! Runtimes that the engine learns from jobs of one owner that have ended.
//!
//! A cluster learns from gangs that end well. So where the trace says whose jobs they are, and jobs
//! are promised starts, the pods of a job succeed at its end and are deleted a second later; all
//! other jobs end by the deletion of their pods alone, which costs less and teaches nothing:
//!
//! ```text
//!  arrives ──> waits ──> bound ──(its duration)──> succeeded ──(1 s)──> deleted
//!                ^          │
//!                └──────────┘ evicted: the pods of the next run take their place
//! ```

use super::objects::Objects;
use gpu_batch_policies::command::Bind;
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::{PodFacts, PodPhase};
use std::collections::BTreeMap;

/// The jobs whose ends teach the engine runtimes, while they wait or run.
#[derive(Debug, Default)]
pub(super) struct Lessons {
    /// The pods of the last run of each job, by the job's index in the trace.
    pods: BTreeMap<usize, Vec<PodFacts>>,
    /// Which runs of jobs end when, in seconds: job and run. A run may have been evicted meanwhile.
    ends: BTreeMap<u64, Vec<(usize, u32)>>,
}

impl Lessons {
    /// Takes in the pods of a run of a job that begins to wait.
    pub(super) fn arrive<'a>(&mut self, job: usize, pods: impl Iterator<Item = &'a Event>) {
        let pods = pods
            .flat_map(Event::objects)
            .filter_map(|object| match object {
                Object::Pod(pod) => Some(pod.clone()),
                _ => None,
            });
        self.pods.insert(job, pods.collect());
    }

    /// Takes in where a pod runs, and when the run of its job ends.
    pub(super) fn bind(&mut self, bind: &Bind, end_s: u64) {
        let (job, run, member) = Objects::member(bind.pod.uid);
        let pods = self.pods.get_mut(&job);
        if let Some(pod) = pods.and_then(|pods| pods.get_mut(member as usize)) {
            pod.node = Some(bind.node.clone());
        }
        if member == 0 {
            self.ends.entry(end_s).or_default().push((job, run));
        }
    }

    /// When the next run ends, in seconds.
    pub(super) fn next_s(&self) -> Option<u64> {
        self.ends.first_key_value().map(|(end_s, _)| *end_s)
    }

    /// The pods of the runs that have ended until now, with their success.
    pub(super) fn ended(&mut self, now_s: u64) -> Vec<PodFacts> {
        let mut ended = Vec::new();
        while let Some(entry) = self.ends.first_entry().filter(|it| *it.key() <= now_s) {
            for (job, run) in entry.remove() {
                let first = Objects::uid(job, run, 0);
                let pods = self.pods.get(&job).and_then(|pods| pods.first());
                if pods.is_some_and(|pod| pod.uid == first) {
                    ended.extend(self.pods.remove(&job).unwrap_or_default());
                }
            }
        }
        for pod in &mut ended {
            pod.phase = PodPhase::Succeeded;
        }
        ended
    }
}

#[cfg(test)]
mod tests;
