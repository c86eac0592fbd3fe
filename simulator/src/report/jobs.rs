//! Panels of simulated jobs: which queue had how many GPUs when, and how long jobs waited.
//!
//! A [`Record`] is filled while a run goes on. Its size does not grow with the number of jobs.

use super::buckets::{Buckets, as_float};
use super::waits::Waits;
use super::{Arrangement, Axis, Kind, Panel, Scale, Series, Style};
use std::collections::BTreeMap;

/// How many queues have a colour of their own; all other queues are one area.
const COLOURS: usize = 9;

/// How many queues can be chosen one by one: those that used the most.
const CHOICES_MAX: usize = 24;

/// What the reader chooses to see all queues at once.
const ALL: &str = "all queues";

/// One queue. All runs of a report have the same queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// The name of the queue.
    pub name: String,
    /// The quota of the queue, in thousandths of a GPU; `None`: no quota is shown.
    pub quota: Option<u64>,
}

/// What became of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The queue of the job, an index into the queues of the record.
    pub queue: usize,
    /// Thousandths of a GPU that the job holds while it runs.
    pub gpu_thousandths: u64,
    /// When the job was submitted, in seconds since the start of the run.
    pub submit_s: u64,
    /// From when to when the job ran, in seconds since the start of the run: once, and again after
    /// each eviction. Empty: it never started.
    pub runs_s: Vec<(u64, u64)>,
}

/// The use, the waiting and the fair shares of one run over time, by queue.
#[derive(Debug, Clone)]
pub struct Record {
    name: String,
    capacity: u64,
    queues: Vec<Queue>,
    rows: Vec<Row>,
    /// The waits by the size of jobs, the smallest first: each class with its name.
    sizes: BTreeMap<usize, (String, Waits)>,
}

/// One queue in one run.
#[derive(Debug, Clone, Default)]
struct Row {
    in_use: Buckets,
    waiting: Buckets,
    fair_share: Buckets,
    last_fair_share: u64,
    waits: Waits,
}

impl Record {
    /// A run of which nothing is known yet. All records of a report must have the same queues.
    /// `capacity` is the GPUs of all nodes, in thousandths of a GPU.
    #[must_use]
    pub fn new(name: &str, queues: Vec<Queue>, capacity: u64) -> Self {
        let rows = vec![Row::default(); queues.len()];
        Self {
            name: name.to_owned(),
            capacity,
            queues,
            rows,
            sizes: BTreeMap::new(),
        }
    }

    /// Counts a job. Jobs may come in any order. A job of an unknown queue is left out, and a job
    /// that never started.
    pub fn job(&mut self, job: &Job) {
        let (mut from_s, mut wait_s) = (job.submit_s, 0);
        for &(start_s, end_s) in &job.runs_s {
            wait_s += start_s.saturating_sub(from_s);
            self.waits_between(job.queue, from_s, Some(start_s));
            self.held(job.queue, job.gpu_thousandths, start_s, Some(end_s));
            from_s = end_s;
        }
        let row = self.rows.get_mut(job.queue);
        if let Some(row) = row.filter(|_| !job.runs_s.is_empty()) {
            row.waits.add(wait_s);
        }
    }

    /// Counts the waiting of a job, from its submission to its start, in seconds. `None`: it never
    /// started.
    pub fn waited(&mut self, queue: usize, submit_s: u64, start_s: Option<u64>) {
        self.waits_between(queue, submit_s, start_s);
        if let Some((row, start_s)) = self.rows.get_mut(queue).zip(start_s) {
            row.waits.add(start_s.saturating_sub(submit_s));
        }
    }

    /// Counts how long a job of a class of sizes waited in all. The classes are shown in the order
    /// of their numbers, by their names.
    pub fn waited_by_size(&mut self, (number, name): (usize, &str), wait_s: u64) {
        let named = || (name.to_owned(), Waits::default());
        let (_, waits) = self.sizes.entry(number).or_insert_with(named);
        waits.add(wait_s);
    }

    fn waits_between(&mut self, queue: usize, from_s: u64, to_s: Option<u64>) {
        if let Some(row) = self.rows.get_mut(queue) {
            row.waiting.add(from_s, 1);
            if let Some(to_s) = to_s {
                row.waiting.add(to_s, -1);
            }
        }
    }

    /// Counts the GPUs that a job, or a part of it, holds. Without an end they are held to the end
    /// of the run.
    pub fn held(&mut self, queue: usize, gpu_thousandths: u64, start_s: u64, end_s: Option<u64>) {
        let Some(row) = self.rows.get_mut(queue) else {
            return;
        };
        row.in_use.add(start_s, signed(gpu_thousandths));
        if let Some(end_s) = end_s {
            row.in_use.add(end_s, -signed(gpu_thousandths));
        }
    }

    /// Sets the fair share of a queue from this second on, in thousandths of a GPU. The calls for
    /// one queue must be in the order of time. A call that repeats the last value costs nothing.
    pub fn fair_share(&mut self, at_s: u64, queue: usize, gpu_thousandths: u64) {
        if let Some(row) = self.rows.get_mut(queue) {
            let change = signed(gpu_thousandths) - signed(row.last_fair_share);
            row.fair_share.add(at_s, change);
            row.last_fair_share = gpu_thousandths;
        }
    }

    /// Adds the record of another part of this run, for example of another cluster: its jobs, and
    /// the fair shares of its queues, which must not be queues of this part.
    pub fn merge(&mut self, other: Self) {
        for (row, more) in self.rows.iter_mut().zip(other.rows) {
            row.in_use.merge(more.in_use);
            row.waiting.merge(more.waiting);
            row.fair_share.merge(more.fair_share);
            row.waits.merge(&more.waits);
        }
        for (number, (name, more)) in other.sizes {
            let (_, waits) = self
                .sizes
                .entry(number)
                .or_insert_with(|| (name, Waits::default()));
            waits.merge(&more);
        }
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The panels of some runs, which must have the same queues. The order of the records is that of
/// [`Report::runs`](super::Report::runs). `work` is the word for what waits and runs: `jobs`,
/// `gangs`.
#[must_use]
pub fn panels(records: &[Record], work: &str) -> Vec<Panel> {
    let Some(first) = records.first() else {
        return Vec::new();
    };
    let plots = Plots::new(records, &first.queues);
    let mut panels = vec![plots.in_use()];
    if first.queues.len() > 1 || plots.has_fair_shares() {
        panels.push(plots.shares());
    }
    panels.push(plots.waits(work));
    if records.iter().any(|record| !record.sizes.is_empty()) {
        panels.push(plots.waits_by_size(work));
    }
    panels.push(plots.waiting(work));
    panels
}

/// Records whose stretches of time have one length, so that they can be drawn together.
struct Plots<'a> {
    records: Vec<Record>,
    queues: &'a [Queue],
    /// Indices of queues, those that used the most first.
    order: Vec<usize>,
    width_s: u64,
    count: usize,
}

impl<'a> Plots<'a> {
    fn new(records: &[Record], queues: &'a [Queue]) -> Self {
        let mut records = records.to_vec();
        let mut all = Vec::new();
        for row in records.iter_mut().flat_map(|record| &mut record.rows) {
            all.extend([&mut row.in_use, &mut row.waiting, &mut row.fair_share]);
        }
        let width_s = all.iter().map(|one| one.width_s()).max().unwrap_or(1);
        all.iter_mut().for_each(|one| one.widen(width_s));
        let count = all.iter().map(|one| one.len()).max().unwrap_or(0);
        let used = |queue: usize| {
            let rows = records.iter().filter_map(|record| record.rows.get(queue));
            rows.flat_map(|row| row.in_use.means(count)).sum::<f64>()
        };
        let mut by_use: Vec<(f64, usize)> = (0..queues.len()).map(|at| (used(at), at)).collect();
        by_use.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let order = by_use.into_iter().map(|(_, queue)| queue).collect();
        Self {
            records,
            queues,
            order,
            width_s,
            count,
        }
    }

    /// The means over time of the sum of some queues, in `unit`s.
    fn sum(&self, run: usize, queues: &[usize], of: fn(&Row) -> &Buckets, unit: f64) -> Points {
        let mut sums = vec![0.0; self.count];
        for &queue in queues {
            let means = of(&self.records[run].rows[queue]).means(self.count);
            sums.iter_mut()
                .zip(means)
                .for_each(|(sum, mean)| *sum += mean);
        }
        let point = |(at, sum): (usize, f64)| (as_float(self.width_s) * as_float(at), sum / unit);
        let mut points: Points = sums.into_iter().enumerate().map(point).collect();
        // A last point, so that the last stretch is drawn with its length.
        let end = as_float(self.width_s) * as_float(self.count);
        points.extend(points.last().map(|last| (end, last.1)));
        points
    }

    fn level(&self, amount: u64) -> Points {
        let end = as_float(self.width_s) * as_float(self.count);
        let amount = as_float(amount) / GPU;
        vec![(0.0, amount), (end, amount)]
    }

    fn has_fair_shares(&self) -> bool {
        let mut rows = self.records.iter().flat_map(|record| &record.rows);
        rows.any(|row| row.fair_share.len() > 0)
    }

    fn in_use(&self) -> Panel {
        // One more queue takes as much room in the legend as "others".
        let alone = if self.order.len() > COLOURS + 1 {
            COLOURS
        } else {
            self.order.len()
        };
        let (own, others) = self.order.split_at(alone);
        let mut series = Vec::new();
        for (run, record) in self.records.iter().enumerate() {
            let stacked = |name: &str, queues: &[usize]| Series {
                name: name.to_owned(),
                run: Some(run),
                points: self.sum(run, queues, |row| &row.in_use, GPU),
                ..Series::default()
            };
            series.extend(
                own.iter()
                    .map(|&queue| stacked(&self.queues[queue].name, &[queue])),
            );
            if !others.is_empty() {
                series.push(stacked(&format!("{} others", others.len()), others));
            }
            series.push(Series {
                name: "all GPUs".to_owned(),
                run: Some(run),
                style: Style::Dashed,
                points: self.level(record.capacity),
                ..Series::default()
            });
        }
        Panel {
            title: "GPUs in use".to_owned(),
            note: format!(
                "By queue, one on the other; each step is a mean over {}.",
                self.width()
            ),
            x: Axis::new("time", Scale::Time),
            y: Axis::new("GPUs", Scale::Number),
            kind: Kind::StackedAreas,
            arrangement: Arrangement::SideBySide,
            choice: None,
            series,
        }
    }

    fn shares(&self) -> Panel {
        let has_quota = |queue: &Queue| queue.quota.is_some();
        let mut series = Vec::new();
        for &queue in self.order.iter().take(CHOICES_MAX) {
            for run in 0..self.records.len() {
                series.extend(self.shares_of(run, queue));
            }
        }
        let (title, note) = if self.has_fair_shares() || self.queues.iter().any(has_quota) {
            (
                "Fair share and use of a queue",
                "Fair is what the queue would hold if all that it asks for were shared out now; \
                 the quota is what it is entitled to.",
            )
        } else {
            ("GPUs in use of a queue", "One queue at a time.")
        };
        Panel {
            title: title.to_owned(),
            note: note.to_owned(),
            x: Axis::new("time", Scale::Time),
            y: Axis::new("GPUs", Scale::Number),
            kind: Kind::Steps,
            arrangement: Arrangement::SideBySide,
            choice: Some("Queue".to_owned()),
            series,
        }
    }

    fn shares_of(&self, run: usize, queue: usize) -> Vec<Series> {
        let one = |name: &str, style, points| Series {
            name: name.to_owned(),
            run: Some(run),
            choice: Some(self.queues[queue].name.clone()),
            style,
            points,
            ..Series::default()
        };
        let in_use = self.sum(run, &[queue], |row| &row.in_use, GPU);
        let mut series = vec![one("in use", Style::Filled, in_use)];
        if self.records[run].rows[queue].fair_share.len() > 0 {
            let fair = self.sum(run, &[queue], |row| &row.fair_share, GPU);
            series.push(one("fair share", Style::Solid, fair));
        }
        let quota = self.queues[queue].quota;
        series.extend(quota.map(|quota| one("quota", Style::Dashed, self.level(quota))));
        series
    }

    fn waits(&self, work: &str) -> Panel {
        let points = |run: usize, queues: &[usize]| {
            let mut waits = Waits::default();
            for &queue in queues {
                waits.merge(&self.records[run].rows[queue].waits);
            }
            waits.distribution()
        };
        Panel {
            title: "Waiting time".to_owned(),
            note: format!(
                "How many percent of the {work} that started had waited at most so long."
            ),
            x: Axis::new("waited at most", Scale::LogSeconds),
            y: Axis::new(&format!("of the {work}"), Scale::Percent),
            kind: Kind::Distribution,
            arrangement: Arrangement::Together,
            choice: Some("Queue".to_owned()),
            series: self.by_choice(points),
        }
    }

    fn waits_by_size(&self, work: &str) -> Panel {
        let sizes = self.records.iter().flat_map(|record| &record.sizes);
        let names: BTreeMap<usize, &str> = sizes.map(|(at, (name, _))| (*at, &**name)).collect();
        let mut series = Vec::new();
        // The largest first: what a policy does for them is seen least elsewhere.
        for (number, name) in names.into_iter().rev() {
            for (run, record) in self.records.iter().enumerate() {
                let waits = record.sizes.get(&number);
                series.push(Series {
                    name: record.name.clone(),
                    run: Some(run),
                    choice: Some(name.to_owned()),
                    points: waits.map_or_else(Vec::new, |(_, waits)| waits.distribution()),
                    ..Series::default()
                });
            }
        }
        Panel {
            title: "Waiting time by size".to_owned(),
            note: format!("As above, for the {work} that ask for so many GPUs."),
            x: Axis::new("waited at most", Scale::LogSeconds),
            y: Axis::new(&format!("of the {work}"), Scale::Percent),
            kind: Kind::Distribution,
            arrangement: Arrangement::Together,
            choice: Some("GPUs".to_owned()),
            series,
        }
    }

    fn waiting(&self, work: &str) -> Panel {
        let points = |run: usize, queues: &[usize]| self.sum(run, queues, |row| &row.waiting, 1.0);
        Panel {
            title: format!("Waiting {work}"),
            note: format!("Each step is a mean over {}.", self.width()),
            x: Axis::new("time", Scale::Time),
            y: Axis::new(work, Scale::Number),
            kind: Kind::Steps,
            arrangement: Arrangement::Together,
            choice: Some("Queue".to_owned()),
            series: self.by_choice(points),
        }
    }

    /// For each run a series for all queues together, and one for each of the larger queues.
    fn by_choice(&self, points: impl Fn(usize, &[usize]) -> Points) -> Vec<Series> {
        let largest = self.order.iter().take(CHOICES_MAX);
        let single = largest.map(|&queue| (&*self.queues[queue].name, vec![queue]));
        let all = (ALL, self.order.clone());
        let mut series = Vec::new();
        for (choice, queues) in std::iter::once(all).chain(single) {
            for (run, record) in self.records.iter().enumerate() {
                series.push(Series {
                    name: record.name.clone(),
                    run: Some(run),
                    choice: Some(choice.to_owned()),
                    points: points(run, &queues),
                    ..Series::default()
                });
            }
        }
        series
    }

    fn width(&self) -> String {
        match self.width_s {
            1 => "a second".to_owned(),
            seconds @ ..120 => format!("{seconds} s"),
            seconds @ ..7_200 => format!("{} min", (seconds + 30) / 60),
            seconds => format!("{} h", (seconds + 1_800) / 3_600),
        }
    }
}

type Points = Vec<(f64, f64)>;

/// Thousandths in a GPU.
const GPU: f64 = 1_000.0;
