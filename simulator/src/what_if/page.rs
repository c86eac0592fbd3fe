//! The page that shows two courses of one session side by side.

use super::{Comparison, Course, Figures, Session};
use crate::report::jobs::{Queue, Record, panels};
use crate::report::{Report, Table};
use gpu_batch_policies::facts::UnixMs;

/// The names of the two courses.
const COURSES: [&str; 2] = ["recorded", "other"];

/// Thousandths in a GPU.
const GPU: u64 = 1_000;

impl Session {
    /// The page about another course and its comparison with the recorded one. `facts` are shown
    /// below the heading: the journal, and what was changed.
    #[must_use]
    pub fn report(
        &self,
        other: &Course,
        comparison: &Comparison,
        facts: Vec<(String, String)>,
    ) -> Report {
        let courses = [&self.course, other];
        let records: Vec<Record> = COURSES
            .iter()
            .zip(courses)
            .map(|(name, course)| self.record(name, course, comparison))
            .collect();
        let mut tables = vec![
            queues(comparison),
            self.gang_table(comparison),
            pod_table(comparison),
        ];
        tables.extend(self.promise_table(other));
        Report {
            title: "What if".to_owned(),
            subtitle: format!(
                "{} of {} gangs would have started at another time, and {} of {} pods on another \
                 node. Pods that were bound before the record began are not counted.",
                comparison.gangs.len(),
                self.gangs().len(),
                comparison.pods.len(),
                self.lives.len(),
            ),
            facts,
            runs: COURSES.map(str::to_owned).into(),
            panels: panels(&records, "gangs"),
            tables,
        }
    }

    /// The record of a course over time, in whole seconds since the recorded scheduler began to
    /// decide.
    fn record(&self, name: &str, course: &Course, comparison: &Comparison) -> Record {
        let rows = comparison.queues.iter();
        let names: Vec<&str> = rows.map(|row| &*row.queue).collect();
        let queues = names.iter().map(|name| Queue {
            name: (*name).to_owned(),
            quota: None,
        });
        let mut record = Record::new(name, queues.collect(), self.mean_gpu_thousandths());
        let place = |queue: &str| names.iter().position(|name| *name == queue);
        for gang in self.gangs().values() {
            if let Some(queue) = place(&gang.queue(self, course)) {
                let started_ms = gang.started_ms(course);
                let started_s = started_ms.map(|at_ms| self.after_s(at_ms));
                record.waited(queue, self.after_s(gang.arrived_ms), started_s);
            }
        }
        for (uid, start) in &course.starts {
            if let Some((queue, life)) = place(&start.queue).zip(self.lives.get(uid)) {
                let until_s = start.until_ms.map(|at_ms| self.after_s(at_ms));
                let held = life.gpus().saturating_mul(GPU);
                record.held(queue, held, self.after_s(start.at_ms), until_s);
            }
        }
        record
    }

    /// The GPUs of all nodes, as a mean over the session.
    fn mean_gpu_thousandths(&self) -> u64 {
        let length_ms = u128::from(self.end_ms.saturating_sub(self.start_ms));
        let mean = (self.gpu_ms * u128::from(GPU)).checked_div(length_ms);
        u64::try_from(mean.unwrap_or(0)).unwrap_or(u64::MAX)
    }

    fn after_s(&self, at_ms: UnixMs) -> u64 {
        at_ms.saturating_sub(self.start_ms) / 1_000
    }

    fn gang_table(&self, comparison: &Comparison) -> Table {
        let mut table = Table::new(
            "Gangs that would have started at another time",
            "In seconds since the recorded scheduler began to decide; empty: never.",
            &["gang", "queue", "recorded, s", "other, s", "later by, s"],
        );
        for gang in &comparison.gangs {
            let both = gang.recorded_ms.zip(gang.other_ms);
            let later = both.map_or_else(String::new, |(recorded, other)| later(recorded, other));
            table.row(vec![
                gang.gang.clone(),
                gang.queue.to_string(),
                self.after(gang.recorded_ms),
                self.after(gang.other_ms),
                later,
            ]);
        }
        table
    }

    /// What gangs would have been promised, and what would have come of it; `None`: nobody is to be
    /// promised anything.
    fn promise_table(&self, other: &Course) -> Option<Table> {
        let figures = self.promise_figures(other)?;
        let mut table = Table::new(
            "Promised starts",
            &format!(
                "What gangs of the other course were told first, in seconds since the recorded \
                 scheduler began to decide. {} of {} started then or before. {} gangs waited \
                 behind promises to others.",
                figures.kept, figures.promised, figures.behind,
            ),
            &["gang", "promised, s", "started, s", "later by, s"],
        );
        for kept in self.promises_kept(other)? {
            let started_ms = kept.started_ms;
            let later = started_ms.map(|started_ms| later(kept.promised_ms, started_ms));
            table.row(vec![
                kept.gang.into(),
                self.after(Some(kept.promised_ms)),
                self.after(started_ms),
                later.unwrap_or_default(),
            ]);
        }
        Some(table)
    }
}

/// By how much the second time is later than the first one, in seconds.
fn later(one: UnixMs, other: UnixMs) -> String {
    let sign = if other < one { "-" } else { "" };
    format!("{sign}{}", milliseconds(other.abs_diff(one)))
}

fn queues(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        "Queues",
        "GPU time: the part of all nodes' GPU time that the queue's pods held. A gang that still \
         waits has waited until the end.",
        &[
            "queue",
            "course",
            "started",
            "waiting",
            "mean wait, s",
            "p99 wait, s",
            "GPU time, %",
        ],
    );
    for row in comparison.queues.iter().chain([&comparison.total]) {
        let name = if row.queue.is_empty() {
            "(all)"
        } else {
            &row.queue
        };
        for (course, figures) in COURSES.iter().zip([row.recorded, row.other]) {
            let Figures {
                started,
                waiting,
                wait_mean_ms,
                wait_p99_ms,
                gpu_share_millionths,
            } = figures;
            let tenths = (gpu_share_millionths + 500) / 1_000;
            table.row(vec![
                name.to_owned(),
                (*course).to_owned(),
                started.to_string(),
                waiting.to_string(),
                milliseconds(wait_mean_ms),
                milliseconds(wait_p99_ms),
                format!("{}.{}", tenths / 10, tenths % 10),
            ]);
        }
    }
    table
}

fn pod_table(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        "Pods on another node",
        "Those that were bound in both.",
        &["pod", "recorded", "other"],
    );
    for pod in &comparison.pods {
        table.row(vec![
            pod.pod.clone(),
            pod.recorded.to_string(),
            pod.other.to_string(),
        ]);
    }
    table
}

/// Milliseconds as seconds, with three decimals.
pub(super) fn milliseconds(value: u64) -> String {
    format!("{}.{:03}", value / 1_000, value % 1_000)
}
