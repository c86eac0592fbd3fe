//! What would have been different, for people and programs.

use super::time;
use crate::views::table::{Entry, Screen, draw as draw_table};
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_simulator::what_if::{
    Comparison, Course, Figures, GangDifference, PodDifference, PromiseFigures, QueueFigures,
    Session,
};
use serde::Serialize;
use std::fmt::Write;

/// How many gangs are listed for people; programs get all of them.
const GANGS_SHOWN: usize = 20;

/// Two courses of one session side by side, as `-o json` prints them.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WhatIfReport {
    /// When the recorded scheduler began to decide.
    pub from: String,
    /// When the record ends.
    pub to: String,
    /// Pods that were evicted, as recorded.
    pub evictions_recorded: u64,
    /// Pods that would have been evicted.
    pub evictions_other: u64,
    /// What gangs would have been promised; `null`: nobody was to be promised anything.
    pub promises: Option<PromisesRow>,
    /// All queues together.
    pub total: QueueRow,
    /// By queue.
    pub queues: Vec<QueueRow>,
    /// Gangs that would have started at another time.
    pub gangs: Vec<GangRow>,
    /// Pods that would have been bound to another node.
    pub pods: Vec<PodRow>,
}

/// What gangs would have been promised. The record has no promises to put beside them.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromisesRow {
    /// Gangs that would have been promised a start.
    pub promised: u32,
    /// The promised gangs that would have started when they were promised to, or before.
    pub kept: u32,
    /// The promised gangs that were to start after the end of the record, and would not have
    /// started by then.
    pub open: u32,
    /// The median of the promised start minus the real one: above 0 gangs start earlier than
    /// promised. `null`: none of the gangs starts.
    pub error_median_seconds: Option<f64>,
    /// The 95th percentile of the promised start minus the real one.
    pub error_p95_seconds: Option<f64>,
    /// Gangs that would have waited at some time for what was promised to others.
    pub behind: u32,
}

/// One queue, side by side.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueRow {
    /// The name of the queue; `total` has none.
    pub queue: String,
    /// As recorded.
    pub recorded: FiguresRow,
    /// As it would have been.
    pub other: FiguresRow,
}

/// How a queue fared.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FiguresRow {
    /// Gangs that started.
    pub started: u32,
    /// Gangs that still waited at the end.
    pub waiting: u32,
    /// The mean waiting time of the gangs that started.
    pub wait_mean_seconds: f64,
    /// One gang of a hundred waited longer.
    pub wait_p99_seconds: f64,
    /// The part of all GPU time that the queue held, from 0 to 1.
    pub gpu_share: f64,
}

/// A gang that would have started at another time.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GangRow {
    /// The name of the gang.
    pub gang: String,
    /// The queue of the gang.
    pub queue: String,
    /// When the gang started, since `from`; `null`: it did not.
    pub recorded_after_seconds: Option<f64>,
    /// When the gang would have started, since `from`; `null`: it would not have.
    pub other_after_seconds: Option<f64>,
    /// How much later the gang would have started; `null` where it did not start in one of the
    /// courses.
    pub later_seconds: Option<f64>,
}

/// A pod that would have been bound to another node.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodRow {
    /// `NS/NAME`.
    pub pod: String,
    /// The node in the record.
    pub recorded: String,
    /// The node in the other course.
    pub other: String,
}

impl WhatIfReport {
    /// The report of a comparison.
    #[must_use]
    pub(crate) fn new(session: &Session, comparison: &Comparison, other: &Course) -> Self {
        Self {
            from: time(session.start_ms),
            to: time(session.end_ms),
            evictions_recorded: session.course.evictions,
            evictions_other: other.evictions,
            promises: session.promise_figures(other).map(promises_row),
            total: queue_row(&comparison.total),
            queues: comparison.queues.iter().map(queue_row).collect(),
            gangs: comparison
                .gangs
                .iter()
                .map(|gang| gang_row(gang, session.start_ms))
                .collect(),
            pods: comparison.pods.iter().map(pod_row).collect(),
        }
    }
}

fn promises_row(figures: PromiseFigures) -> PromisesRow {
    let seconds = |error_ms: Option<i64>| error_ms.map(|error_ms| error_ms as f64 / 1e3);
    PromisesRow {
        promised: figures.promised,
        kept: figures.kept,
        open: figures.open,
        error_median_seconds: seconds(figures.error_median_ms),
        error_p95_seconds: seconds(figures.error_p95_ms),
        behind: figures.behind,
    }
}

fn queue_row(figures: &QueueFigures) -> QueueRow {
    QueueRow {
        queue: figures.queue.to_string(),
        recorded: figures_row(figures.recorded),
        other: figures_row(figures.other),
    }
}

fn figures_row(figures: Figures) -> FiguresRow {
    FiguresRow {
        started: figures.started,
        waiting: figures.waiting,
        wait_mean_seconds: seconds(figures.wait_mean_ms),
        wait_p99_seconds: seconds(figures.wait_p99_ms),
        gpu_share: figures.gpu_share_millionths as f64 / 1e6,
    }
}

fn gang_row(gang: &GangDifference, start_ms: UnixMs) -> GangRow {
    let after = |at_ms: Option<UnixMs>| at_ms.map(|at_ms| seconds(at_ms.saturating_sub(start_ms)));
    let later = gang
        .recorded_ms
        .zip(gang.other_ms)
        .map(|(recorded, other)| {
            let earlier = seconds(recorded.saturating_sub(other));
            seconds(other.saturating_sub(recorded)) - earlier
        });
    GangRow {
        gang: gang.gang.clone(),
        queue: gang.queue.to_string(),
        recorded_after_seconds: after(gang.recorded_ms),
        other_after_seconds: after(gang.other_ms),
        later_seconds: later,
    }
}

fn pod_row(pod: &PodDifference) -> PodRow {
    PodRow {
        pod: pod.pod.clone(),
        recorded: pod.recorded.to_string(),
        other: pod.other.to_string(),
    }
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

/// The report for people: a cell is `recorded -> other`, or one value where both are equal.
#[must_use]
pub(crate) fn draw(report: &WhatIfReport, screen: Screen) -> String {
    let mut text = format!(
        "From {} to {}: recorded -> other\n\n",
        report.from, report.to
    );
    let headings = [
        "QUEUE",
        "STARTED",
        "WAITING",
        "MEAN WAIT",
        "P99 WAIT",
        "GPU TIME",
    ];
    let mut rows: Vec<Vec<Entry>> = report.queues.iter().map(cells).collect();
    let mut total = cells(&report.total);
    total[0] = "(all)".into();
    rows.push(total);
    text += &draw_table(&headings, rows, screen);
    let count =
        |which: fn(&GangRow) -> bool| report.gangs.iter().filter(|gang| which(gang)).count();
    let earlier = count(|gang| gang.later_seconds.is_some_and(|later| later < 0.0));
    let later = count(|gang| gang.later_seconds.is_some_and(|later| later > 0.0));
    let only_recorded = count(|gang| gang.other_after_seconds.is_none());
    let only_other = count(|gang| gang.recorded_after_seconds.is_none());
    // Writing into a text cannot fail.
    let _ = write!(
        text,
        "\n{earlier} gangs would have started earlier, {later} later, {only_other} in addition and \
         {only_recorded} not at all.\n{} pods would have been on another node. Evicted pods: {}.\n",
        report.pods.len(),
        side_by_side(
            report.evictions_recorded.to_string(),
            report.evictions_other.to_string()
        ),
    );
    if let Some(promises) = &report.promises {
        let _ = writeln!(
            text,
            "{} gangs would have been promised a start, and {} would have started then or before; \
             {} gangs would have waited behind promises to others.",
            promises.promised, promises.kept, promises.behind,
        );
    }
    if !report.gangs.is_empty() {
        text += "\n";
        let shown = report.gangs.iter().take(GANGS_SHOWN).map(gang_cells);
        let headings = ["GANG", "QUEUE", "LATER BY", "STARTED AFTER"];
        text += &draw_table(&headings, shown.collect(), screen);
        let hidden = report.gangs.len().saturating_sub(GANGS_SHOWN);
        if hidden > 0 {
            let _ = writeln!(text, "... and {hidden} more; -o json lists all");
        }
    }
    text
}

fn cells(row: &QueueRow) -> Vec<Entry> {
    let QueueRow {
        queue,
        recorded,
        other,
    } = row;
    let both = |show: fn(&FiguresRow) -> String| side_by_side(show(recorded), show(other)).into();
    vec![
        queue.as_str().into(),
        both(|figures| figures.started.to_string()),
        both(|figures| figures.waiting.to_string()),
        both(|figures| format!("{:.1} s", figures.wait_mean_seconds)),
        both(|figures| format!("{:.1} s", figures.wait_p99_seconds)),
        both(|figures| format!("{:.1} %", figures.gpu_share * 100.0)),
    ]
}

fn gang_cells(row: &GangRow) -> Vec<Entry> {
    let started =
        |after: Option<f64>| after.map_or_else(|| "never".to_owned(), |s| format!("{s:.3} s"));
    let later = row.later_seconds.map(|later| format!("{later:+.3} s"));
    vec![
        row.gang.as_str().into(),
        row.queue.as_str().into(),
        later.unwrap_or_default().into(),
        side_by_side(
            started(row.recorded_after_seconds),
            started(row.other_after_seconds),
        )
        .into(),
    ]
}

fn side_by_side(recorded: String, other: String) -> String {
    if recorded == other {
        recorded
    } else {
        format!("{recorded} -> {other}")
    }
}
