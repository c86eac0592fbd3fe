//! Two courses of one session, side by side.

use super::gang::Gang;
use super::{Course, Session};
use gpu_batch_policies::facts::UnixMs;
use std::collections::{BTreeMap, BTreeSet};

/// What differs between the recorded course and another.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// By queue, sorted by name. A gang that was never bound counts in the queue that it names.
    pub queues: Vec<QueueFigures>,
    /// All queues together; the name of the queue is empty.
    pub total: QueueFigures,
    /// Gangs that started at another time, or in only one of the two courses, by name.
    pub gangs: Vec<GangDifference>,
    /// Pods that were bound in both courses, to different nodes, by name.
    pub pods: Vec<PodDifference>,
}

/// One queue in both courses.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueFigures {
    /// The name of the queue; empty: all queues.
    pub queue: Box<str>,
    /// The figures of the recorded course.
    pub recorded: Figures,
    /// The figures of the other course.
    pub other: Figures,
}

/// How one queue fared.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Gangs of which a member was bound.
    pub started: u32,
    /// Gangs that still waited at the end.
    pub waiting: u32,
    /// How long gangs waited on average, in milliseconds, from the first sight of the gang to its
    /// first binding. A gang that still waits has waited until the end.
    pub wait_mean_ms: u64,
    /// The 99th percentile of the waits, in milliseconds: one of a hundred gangs waited longer.
    pub wait_p99_ms: u64,
    /// The part of all GPU time that the queue's pods held, in millionths.
    pub gpu_share_millionths: u64,
}

/// A gang that started at another time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GangDifference {
    /// `NS/NAME` of a group, `NS/KIND/NAME` of an owner, `NS/pod/NAME`.
    pub gang: String,
    /// The queue of the gang in the other course.
    pub queue: Box<str>,
    /// When the gang's first binding was recorded; `None`: it never started.
    pub recorded_ms: Option<UnixMs>,
    /// When the gang's first binding is in the other course; `None`: it never starts.
    pub other_ms: Option<UnixMs>,
}

/// A pod that was bound elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDifference {
    /// `NS/NAME`.
    pub pod: String,
    /// The node in the recorded course.
    pub recorded: Box<str>,
    /// The node in the other course.
    pub other: Box<str>,
}

impl Session {
    /// Compares the recorded course with another.
    #[must_use]
    pub fn compare(&self, other: &Course) -> Comparison {
        let gangs = self.gangs();
        let recorded = self.figures(&self.course, &gangs);
        let others = self.figures(other, &gangs);
        let names: BTreeSet<&Box<str>> = recorded.keys().chain(others.keys()).collect();
        let mut queues: Vec<QueueFigures> = names
            .into_iter()
            .map(|queue| QueueFigures {
                queue: queue.clone(),
                recorded: recorded.get(queue).copied().unwrap_or_default(),
                other: others.get(queue).copied().unwrap_or_default(),
            })
            .collect();
        let is_total = |figures: &QueueFigures| figures.queue.is_empty();
        let total = queues.iter().position(is_total).map(|at| queues.remove(at));
        Comparison {
            queues,
            total: total.unwrap_or_else(|| QueueFigures {
                queue: "".into(),
                recorded: Figures::default(),
                other: Figures::default(),
            }),
            gangs: self.gang_differences(other, &gangs),
            pods: self.pod_differences(other),
        }
    }

    /// The figures of a course by queue, and those of all queues under the empty name.
    fn figures(
        &self,
        course: &Course,
        gangs: &BTreeMap<String, Gang<'_>>,
    ) -> BTreeMap<Box<str>, Figures> {
        let mut figures: BTreeMap<Box<str>, Figures> = BTreeMap::new();
        let mut waits: BTreeMap<Box<str>, Vec<u64>> = BTreeMap::new();
        let mut held: BTreeMap<Box<str>, u128> = BTreeMap::new();
        for gang in gangs.values() {
            let started_ms = gang.started_ms(course);
            let queue = gang.queue(self, course);
            let wait_ms = started_ms.unwrap_or(self.end_ms);
            let wait_ms = wait_ms.saturating_sub(gang.arrived_ms.max(self.start_ms));
            for name in [queue, "".into()] {
                let figures = figures.entry(name.clone()).or_default();
                figures.started += u32::from(started_ms.is_some());
                figures.waiting += u32::from(started_ms.is_none());
                waits.entry(name).or_default().push(wait_ms);
            }
        }
        for (uid, start) in &course.starts {
            let Some(life) = self.lives.get(uid) else {
                continue;
            };
            let held_ms = start.until_ms.unwrap_or(self.end_ms);
            let held_ms = held_ms.saturating_sub(start.at_ms);
            let gpu_ms = u128::from(life.gpus()) * u128::from(held_ms);
            for name in [start.queue.clone(), "".into()] {
                *held.entry(name).or_default() += gpu_ms;
            }
        }
        for (name, figures) in &mut figures {
            if let Some(waits) = waits.get_mut(name) {
                (figures.wait_mean_ms, figures.wait_p99_ms) = mean_and_p99(waits);
            }
            let held = held.get(name).copied().unwrap_or(0);
            let share = (held * 1_000_000).checked_div(self.gpu_ms);
            figures.gpu_share_millionths = u64::try_from(share.unwrap_or(0)).unwrap_or(u64::MAX);
        }
        figures
    }

    fn gang_differences(
        &self,
        other: &Course,
        gangs: &BTreeMap<String, Gang<'_>>,
    ) -> Vec<GangDifference> {
        let differences = gangs.iter().filter_map(|(name, gang)| {
            let recorded_ms = gang.started_ms(&self.course);
            let other_ms = gang.started_ms(other);
            (recorded_ms != other_ms).then(|| GangDifference {
                gang: name.clone(),
                queue: gang.queue(self, other),
                recorded_ms,
                other_ms,
            })
        });
        differences.collect()
    }

    fn pod_differences(&self, other: &Course) -> Vec<PodDifference> {
        let mut differences: Vec<PodDifference> = self
            .lives
            .iter()
            .filter_map(|(uid, life)| {
                let recorded = &self.course.starts.get(uid)?.node;
                let other = &other.starts.get(uid)?.node;
                (recorded != other).then(|| PodDifference {
                    pod: format!("{}/{}", life.facts.namespace, life.facts.name),
                    recorded: recorded.clone(),
                    other: other.clone(),
                })
            })
            .collect();
        differences.sort_by(|a, b| a.pod.cmp(&b.pod));
        differences
    }
}

/// The mean and the 99th percentile (the nearest rank); 0 if there are no values.
fn mean_and_p99(values: &mut [u64]) -> (u64, u64) {
    values.sort_unstable();
    let sum: u128 = values.iter().copied().map(u128::from).sum();
    let mean = sum.checked_div(values.len() as u128).unwrap_or(0);
    let rank = (values.len() * 99).div_ceil(100).saturating_sub(1);
    let p99 = values.get(rank).copied().unwrap_or(0);
    (u64::try_from(mean).unwrap_or(u64::MAX), p99)
}
