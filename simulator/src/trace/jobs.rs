//! The jobs of a trace: `row,submit_s,duration_s,num_gpus,vc`, sorted by time of submission. A
//! column `checkpoint_s` may say how often a job saves its work, a column `expected_s` how long its
//! owner expects it to run, and a column `owner` whose job it is.

use crate::input::{InputError, Row, Table};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

#[cfg(test)]
mod tests;

/// The columns of the file, in the order in which [`crate::generate`] writes them.
pub const COLUMNS: [&str; 5] = ["row", "submit_s", "duration_s", "num_gpus", "vc"];

const ROW: usize = 0;
const SUBMIT: usize = 1;
const DURATION: usize = 2;
const GPUS: usize = 3;
const QUEUE: usize = 4;
const CHECKPOINT: usize = 5;
const EXPECTED: usize = 6;
const OWNER: usize = 7;

/// The columns that a file may have or not.
const OPTIONAL: [&str; 3] = ["checkpoint_s", "expected_s", "owner"];

/// The largest time in seconds, about 300 years: times stay far from overflow, also in
/// milliseconds.
pub const SECONDS_MAX: u64 = 10_000_000_000;

/// The most GPUs of a job: more than any cluster has. A job that asks for more than the simulated
/// cluster has never runs.
pub const GPUS_MAX: u32 = 1_000_000;

/// One job: a number of GPUs at once for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// The number of the job in the source of the trace; unique.
    pub row: u64,
    /// Submission, in seconds from the beginning of the trace.
    pub submit_s: u64,
    /// Seconds from the start of the job to its end; 0 if it ends as soon as it has started.
    pub duration_s: u64,
    /// GPUs that the job asks for, at least 1.
    pub num_gpus: u32,
    /// The queue of the job, an index into [`Jobs::queues`].
    pub queue: u32,
    /// After so many seconds of running, at least 1, the job saves its work, and again after as
    /// many. `None`: it saves nothing, and begins anew whenever it is evicted.
    pub checkpoint_s: Option<u64>,
    /// How many seconds the owner of the job expects it to run. `None`: nobody knows.
    pub expected_s: Option<u64>,
    /// Whose job it is, an index into [`Jobs::owners`]. `None`: nobody says.
    pub owner: Option<u32>,
}

/// The jobs of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jobs {
    /// The jobs by time of submission; jobs of one second in the order of the file.
    pub jobs: Vec<Job>,
    /// The names of the queues, in the order in which the file first names them.
    pub queues: Vec<String>,
    /// The names of the owners, in the order in which the file first names them. Empty: the file
    /// does not say whose jobs these are.
    pub owners: Vec<String>,
}

impl Jobs {
    /// Reads a file, gzip or not.
    ///
    /// # Errors
    /// If the file is broken or has no jobs, if a value is not valid, if a time is earlier than
    /// that of the line before, or if a `row` occurs twice.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        Ok(Self::read_noting(path)?.0)
    }

    /// As [`read`](Self::read), with the columns that mean nothing, in words; `None`: there are
    /// none.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_noting(path: &Path) -> Result<(Self, Option<String>), InputError> {
        let table = Table::open(path, &COLUMNS, &OPTIONAL)?;
        let unknown = table.unknown().map(str::to_owned);
        Ok((Self::of_table(table)?, unknown))
    }

    /// Writes the jobs in the layout that [`read`](Self::read) reads.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, file: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(file);
        let told = [
            self.jobs.iter().any(|job| job.checkpoint_s.is_some()),
            self.jobs.iter().any(|job| job.expected_s.is_some()),
            !self.owners.is_empty(),
        ];
        let optional = OPTIONAL.iter().zip(told).filter(|(_, is_told)| *is_told);
        writer.write_record(COLUMNS.iter().chain(optional.map(|(name, _)| name)))?;
        for job in &self.jobs {
            let numbers = [job.row, job.submit_s, job.duration_s, job.num_gpus.into()];
            for number in numbers {
                writer.write_field(number.to_string())?;
            }
            writer.write_field(&self.queues[job.queue as usize])?;
            let seconds = |seconds: Option<u64>| seconds.map(|seconds| seconds.to_string());
            let owner = job.owner.map(|owner| self.owners[owner as usize].clone());
            let values = [seconds(job.checkpoint_s), seconds(job.expected_s), owner];
            for (value, _) in values.into_iter().zip(told).filter(|(_, told)| *told) {
                writer.write_field(value.unwrap_or_default())?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        writer.flush()
    }

    fn of_table(mut table: Table) -> Result<Self, InputError> {
        let mut read = Self::default();
        let (mut queues, mut owners) = (Names::default(), Names::default());
        let mut lines = Lines::default();
        let mut latest_s = 0;
        while let Some(row) = table.next_row()? {
            let queue = queues.index(row.name(QUEUE)?);
            let owner = Some(row.text(OWNER)?).filter(|owner| !owner.is_empty());
            let job = Job {
                queue: queue.ok_or_else(|| row.error(QUEUE, "too many queues"))?,
                owner: match owner.map(|owner| owners.index(owner)) {
                    Some(None) => return Err(row.error(OWNER, "too many owners")),
                    index => index.flatten(),
                },
                ..job(&row)?
            };
            if job.submit_s < latest_s {
                let message = format!("{} is before {latest_s} of the job above", job.submit_s);
                return Err(row.error(SUBMIT, message));
            }
            latest_s = job.submit_s;
            lines.push(row.line());
            read.jobs.push(job);
        }
        (read.queues, read.owners) = (queues.names, owners.names);
        if read.jobs.is_empty() {
            return Err(InputError::of_file(table.file(), "has no jobs"));
        }
        match duplicate(&read.jobs) {
            Some((first, second)) => Err(InputError {
                file: table.file().to_owned(),
                line: Some(lines.of(second)),
                field: Some(COLUMNS[ROW].to_owned()),
                message: format!(
                    "{} is also the row of the job on line {}",
                    read.jobs[second].row,
                    lines.of(first),
                ),
            }),
            None => Ok(read),
        }
    }
}

/// Names, and which number each has.
#[derive(Default)]
struct Names {
    /// In the order in which they were first named.
    names: Vec<String>,
    indexes: BTreeMap<String, u32>,
}

impl Names {
    /// The number of a name, which may be new; `None`: there are too many.
    fn index(&mut self, name: &str) -> Option<u32> {
        if let Some(index) = self.indexes.get(name) {
            return Some(*index);
        }
        let index = u32::try_from(self.names.len()).ok()?;
        self.names.push(name.to_owned());
        self.indexes.insert(name.to_owned(), index);
        Some(index)
    }
}

/// The job of a row, as the first queue's and nobody's.
fn job(row: &Row<'_>) -> Result<Job, InputError> {
    let job = Job {
        row: row.whole(ROW, u64::MAX)?,
        submit_s: row.whole(SUBMIT, SECONDS_MAX)?,
        duration_s: row.whole(DURATION, SECONDS_MAX)?,
        num_gpus: row.whole(GPUS, GPUS_MAX)?,
        queue: 0,
        checkpoint_s: seconds(row, CHECKPOINT)?,
        expected_s: seconds(row, EXPECTED)?,
        owner: None,
    };
    if job.num_gpus == 0 {
        return Err(row.error(GPUS, "is 0; only jobs with GPUs are simulated"));
    }
    if job.checkpoint_s == Some(0) {
        let message = "is 0; it is left empty for a job that saves nothing";
        return Err(row.error(CHECKPOINT, message));
    }
    Ok(job)
}

/// A number of seconds that may be left out.
fn seconds(row: &Row<'_>, column: usize) -> Result<Option<u64>, InputError> {
    match row.text(column)? {
        "" => Ok(None),
        _ => row.whole(column, SECONDS_MAX).map(Some),
    }
}

/// The indexes of two jobs with one `row`: of all such pairs the one whose second job comes first
/// in the file.
fn duplicate(jobs: &[Job]) -> Option<(usize, usize)> {
    if jobs.is_sorted_by(|a, b| a.row < b.row) {
        return None;
    }
    let mut rows: Vec<(u64, usize)> = jobs.iter().map(|job| job.row).zip(0..).collect();
    rows.sort_unstable();
    let same = rows.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    same.map(|pair| (pair[0].1, pair[1].1))
        .min_by_key(|(_, second)| *second)
}

/// The line of each job in the file. Jobs stand on consecutive lines except where lines are empty,
/// so only the jobs after such a break are kept.
#[derive(Default)]
struct Lines {
    count: usize,
    /// A job and its line: from this job on, lines are counted from this line.
    breaks: Vec<(usize, u64)>,
}

impl Lines {
    fn push(&mut self, line: u64) {
        if self.count == 0 || self.of(self.count) != line {
            self.breaks.push((self.count, line));
        }
        self.count += 1;
    }

    fn of(&self, job: usize) -> u64 {
        let breaks = self.breaks.partition_point(|(from, _)| *from <= job);
        let last = breaks.checked_sub(1).map(|index| self.breaks[index]);
        last.map_or(0, |(from, line)| line + (job - from) as u64)
    }
}
