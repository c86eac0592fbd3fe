//! The live table: what a person sees once a second, as lines of text.

use super::setting::{GPUS, NODES, PARENT, TEAMS};
use super::witness::{Course, GPU, NodeUse, Witness};
use crate::handles::inbox::Reports;
use console::{Color, Style, measure_text_width, pad_str, style, truncate_str};
use gpu_batch_policies::facts::CARD;
use gpu_batch_policies::report::QueueReport;
use gpu_batch_policies::status::GovernedAmounts;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Colours of the teams' queues, in the order of [`TEAMS`].
const COLORS: [Color; 3] = [Color::Cyan, Color::Magenta, Color::Yellow];
/// A node by how many eighths of its GPUs are held.
const LEVELS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// How many lines are always there.
const FIXED_LINES: usize = 17;

/// What the table shows.
pub(super) struct View<'a> {
    pub(super) title: &'a str,
    pub(super) witness: &'a Witness,
    pub(super) reports: &'a Reports,
    pub(super) now: Instant,
    /// The time since the first gang.
    pub(super) elapsed: Duration,
    pub(super) binds_per_s: u64,
}

/// How many gangs wait, run and have ended; gangs that have not been submitted do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) waiting: usize,
    pub(super) running: usize,
    pub(super) ended: usize,
}

impl Counts {
    pub(super) fn of(witness: &Witness) -> Self {
        let mut counts = Self::default();
        for course in witness.courses.values() {
            counts.waiting += usize::from(course.is_waiting());
            counts.running += usize::from(course.is_running());
            counts.ended += usize::from(course.ended.is_some());
        }
        counts
    }
}

/// Draws the table for a terminal of `columns` and `rows`.
pub(super) fn frame(view: &View<'_>, columns: usize, rows: usize) -> Vec<String> {
    let mut lines = header(view, columns);
    lines.extend(racks(view.witness, columns));
    lines.push(String::new());
    lines.extend(queues(view, columns));
    lines.push(String::new());
    let left = rows.saturating_sub(FIXED_LINES).max(4);
    let waiting = left.div_ceil(2);
    lines.extend(waiting_longest(view, waiting));
    lines.push(String::new());
    lines.extend(started_last(view, left - waiting));
    lines.truncate(rows.saturating_sub(1));
    for line in &mut lines {
        *line = truncate_str(line, columns, "…").into_owned();
    }
    lines
}

/// The view in one line, for a log.
pub(super) fn one_line(view: &View<'_>) -> String {
    let counts = Counts::of(view.witness);
    let (used, all) = view.witness.gpus();
    let queues = view.reports.queues.iter().filter(|queue| is_team(queue));
    let held: Vec<String> = queues
        .map(|queue| format!("{} {}", queue.name, gpus(&queue.status.allocated)))
        .collect();
    format!(
        "{:>6}  GPUs {used}/{all}  gangs {} waiting, {} running, {} ended  binds {}  {}",
        clock(view.elapsed),
        counts.waiting,
        counts.running,
        counts.ended,
        view.witness.binds,
        held.join(", "),
    )
}

fn header(view: &View<'_>, columns: usize) -> Vec<String> {
    let counts = Counts::of(view.witness);
    let (used, all) = view.witness.gpus();
    let title = format!(
        "{}  {}  {NODES} nodes, {all} H100 in 8 racks of 2 zones",
        style(view.title).bold(),
        clock(view.elapsed),
    );
    let stop = style("Ctrl-C stops").dim().to_string();
    let gap = columns.saturating_sub(measure_text_width(&title) + measure_text_width(&stop));
    let label = format!(" {used} of {all} ({}%)", percent(used, all));
    let width = columns.saturating_sub(label.len() + 6).min(90);
    vec![
        format!("{title}{}{stop}", " ".repeat(gap.max(2))),
        format!(
            "GPUs  {}{label}",
            bar(used, all, None, width, &Style::new().green())
        ),
        format!(
            "Gangs {} waiting, {} running, {} ended    Binds {}/s, {} in all",
            counts.waiting, counts.running, counts.ended, view.binds_per_s, view.witness.binds,
        ),
        String::new(),
    ]
}

/// A line for each zone: its racks, with a block for each node. The block is as high as the node is
/// full, in the colour of the queue that holds most of the node.
fn racks(witness: &Witness, columns: usize) -> Vec<String> {
    let mut zones: BTreeMap<&str, BTreeMap<&str, Vec<&NodeUse>>> = BTreeMap::new();
    for node in witness.nodes.values() {
        let racks = zones.entry(&node.zone).or_default();
        racks.entry(&node.rack).or_default().push(node);
    }
    let gap = if columns >= 100 { "    " } else { "  " };
    let line = |(zone, racks): (&str, BTreeMap<&str, Vec<&NodeUse>>)| {
        let racks: Vec<String> = racks
            .into_iter()
            .map(|(rack, nodes)| {
                let nodes: String = nodes.into_iter().map(block).collect();
                format!("{} {nodes}", style(rack).dim())
            })
            .collect();
        format!("{zone}  {}", racks.join(gap))
    };
    zones.into_iter().map(line).collect()
}

fn block(node: &NodeUse) -> String {
    let of = |amounts: &BTreeMap<String, u64>| amounts.get(GPU).copied().unwrap_or(0);
    let (used, all) = (of(&node.used), of(&node.capacity).max(1));
    let level = usize::try_from(used * 8 / all).unwrap_or(8).min(8);
    let most = node.gpus_by_queue.iter().max_by_key(|(_, gpus)| **gpus);
    let color = most.map_or(Style::new().dim(), |(queue, _)| style_of(queue));
    color.apply_to(LEVELS[level]).to_string()
}

fn queues(view: &View<'_>, columns: usize) -> Vec<String> {
    let heading = "QUEUE            GPUS  QUOTA  FAIR  LIMIT  WAIT   RUN  SHARE";
    let width = columns.saturating_sub(heading.len() + 2).min(48);
    let mut lines = vec![style(heading).dim().to_string()];
    let (_, all) = view.witness.gpus();
    for queue in view.reports.queues.iter().filter(|queue| queue.defined) {
        let team = TEAMS.iter().find(|team| *team.queue == *queue.name);
        let indent = if queue.parent.is_some() { "  " } else { "" };
        let name = pad_str(
            &queue.name,
            17 - indent.len(),
            console::Alignment::Left,
            Some("…"),
        );
        let (held, fair) = (
            gpus(&queue.status.allocated),
            gpus(&queue.status.fair_share),
        );
        let dash = || "-".to_owned();
        let color = style_of(&queue.name);
        lines.push(format!(
            "{indent}{}{held:>4}  {:>5}  {fair:>4}  {:>5}  {:>4}  {:>4}  {:>4}%  {}",
            color.apply_to(name),
            quota(&queue.name).map_or_else(dash, |quota| quota.to_string()),
            team.and_then(|team| team.limit)
                .map_or_else(dash, |limit| limit.to_string()),
            queue.status.pending,
            queue.status.running,
            queue.status.dominant_share_millionths / 10_000,
            bar(held, all, Some(fair), width, &color),
        ));
    }
    lines
}

/// The guaranteed GPUs of a queue of the demo.
fn quota(queue: &str) -> Option<u32> {
    let team = TEAMS.iter().find(|team| team.queue == queue);
    let parent = (queue == PARENT).then_some(GPUS);
    team.map(|team| team.quota).or(parent)
}

/// The gangs that have waited longest. Hopeless gangs get the rows that others leave, or half of
/// all rows if that is more: without a bound they would hide all others.
fn waiting_longest(view: &View<'_>, rows: usize) -> Vec<String> {
    let waiting = view.witness.courses.values();
    let waiting = waiting.filter(|course| course.is_waiting());
    let (mut hopeless, mut waiting): (Vec<&Course>, Vec<&Course>) =
        waiting.partition(|course| course.gang.hopeless);
    hopeless.sort_by_key(|course| course.submitted);
    hopeless.truncate(rows.saturating_sub(waiting.len()).max(rows / 2));
    waiting.sort_by_key(|course| course.submitted);
    waiting.truncate(rows - hopeless.len());
    waiting.extend(hopeless);
    waiting.sort_by_key(|course| course.submitted);
    let heading = "WAITING LONGEST  QUEUE          GPUS    FOR  WHY";
    let mut lines = vec![style(heading).dim().to_string()];
    let reasons = reasons(view.reports);
    lines.extend(waiting.into_iter().take(rows).map(|course| {
        let why = reasons.get(course.gang.name.as_str());
        format!(
            "{}  {}",
            gang(course, view.now),
            why.map_or("", String::as_str)
        )
    }));
    lines.resize(rows + 1, String::new());
    lines
}

fn started_last(view: &View<'_>, rows: usize) -> Vec<String> {
    let mut started: Vec<&Course> = view
        .witness
        .courses
        .values()
        .filter(|course| course.started.is_some())
        .collect();
    started.sort_by_key(|course| std::cmp::Reverse(course.started));
    let heading = "STARTED LAST     QUEUE          GPUS WAITED  WHERE";
    let mut lines = vec![style(heading).dim().to_string()];
    lines.extend(started.into_iter().take(rows).map(|course| {
        format!(
            "{}  {}",
            gang(course, view.now),
            place(course, view.witness)
        )
    }));
    lines.resize(rows + 1, String::new());
    lines
}

/// The columns with which both lists of gangs begin.
fn gang(course: &Course, now: Instant) -> String {
    let gang = &course.gang;
    let queue = pad_str(gang.queue, 14, console::Alignment::Left, Some("…"));
    format!(
        "{:<16} {} {:>4} {:>5.1}s",
        gang.name,
        style_of(gang.queue).apply_to(queue),
        gang.all_gpus(),
        course.waited(now).as_secs_f64(),
    )
}

/// `8 nodes in rack a3`.
fn place(course: &Course, witness: &Witness) -> String {
    let racks: BTreeSet<&str> = course
        .nodes
        .keys()
        .filter_map(|node| witness.nodes.get(node))
        .map(|node| node.rack.as_str())
        .collect();
    let racks: Vec<&str> = racks.into_iter().collect();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    match (course.nodes.len(), course.nodes.keys().next()) {
        (0, _) | (_, None) => String::new(),
        (1, Some(node)) => format!("node {node}"),
        (count, _) => format!(
            "{count} nodes in rack{} {}",
            plural(racks.len()),
            racks.join(", ")
        ),
    }
}

/// Why each gang waits, by the name of its Job or PodGroup.
pub(super) fn reasons(reports: &Reports) -> BTreeMap<&str, String> {
    let entry = |gang: &'_ gpu_batch_policies::report::GangReport| {
        let reason = gang.status.reason?;
        Some(format!("{reason}: {}", gang.status.message))
    };
    reports
        .gangs
        .iter()
        .filter_map(|gang| Some((work_name(&gang.name), entry(gang)?)))
        .collect()
}

/// What the scheduler says of each gang, by the name of its Job or PodGroup: its phase, and why it
/// waits if it does.
pub(super) fn phases(reports: &Reports) -> BTreeMap<&str, String> {
    let entry = |gang: &'_ gpu_batch_policies::report::GangReport| {
        let status = &gang.status;
        match status.reason {
            Some(reason) => format!("{}, {reason}: {}", status.phase.as_str(), status.message),
            None => status.phase.as_str().to_owned(),
        }
    };
    let gangs = reports.gangs.iter();
    gangs
        .map(|gang| (work_name(&gang.name), entry(gang)))
        .collect()
}

/// `eval-007` of `demo-vision/pod/eval-007-0-x7k2p`; the demo's names have one dash.
fn work_name(gang: &str) -> &str {
    let name = gang.rsplit('/').next().unwrap_or(gang);
    if !gang.contains("/pod/") {
        return name;
    }
    match name.match_indices('-').nth(1) {
        Some((end, _)) => &name[..end],
        None => name,
    }
}

fn is_team(queue: &QueueReport) -> bool {
    TEAMS.iter().any(|team| *team.queue == *queue.name)
}

fn style_of(queue: &str) -> Style {
    let team = TEAMS.iter().position(|team| team.queue == queue);
    team.map_or_else(Style::new, |team| Style::new().fg(COLORS[team]))
}

/// A bar of `width` columns; `mark` is shown as a line where a bar of that amount would end.
fn bar(part: u64, all: u64, mark: Option<u64>, width: usize, style: &Style) -> String {
    let columns = |amount: u64| {
        let width = u64::try_from(width).unwrap_or(0);
        usize::try_from(amount.min(all) * width / all.max(1)).unwrap_or(0)
    };
    let filled = columns(part);
    let mark = mark.map(|mark| columns(mark).min(width.saturating_sub(1)));
    let cell = |column: usize| match column {
        _ if mark == Some(column) => '│',
        _ if column < filled => '█',
        _ => '░',
    };
    style
        .apply_to((0..width).map(cell).collect::<String>())
        .to_string()
}

/// The amount of GPUs among the amounts.
fn gpus(amounts: &GovernedAmounts) -> u64 {
    let entry = amounts.iter().find(|(name, _)| **name == *GPU);
    entry.map_or(0, |(_, amount)| *amount / CARD)
}

pub(super) fn percent(part: u64, all: u64) -> u64 {
    part * 100 / all.max(1)
}

/// `1m04s`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}m{:02}s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests;
