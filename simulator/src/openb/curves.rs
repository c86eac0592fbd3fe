//! Curves over the share of all GPUs that was asked for, in the layout of the published curves.

use crate::input::{InputError, Table};
use crate::report::openb::{Curve, Metric};
use gpu_batch_policies::report::Fragmentation;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

/// The last point of a curve, in percent of all GPUs.
const LAST_PERCENT: usize = 130;

/// The columns of the published curves before the points.
const COLUMNS: [&str; 3] = ["workload", "policy", "seed"];

/// The measurements of a run: made after each arrival, in bins of one percent of the GPUs asked
/// for.
///
/// Values are rounded where the published experiment rounds, and in its way.
#[derive(Debug)]
pub(super) struct Bins {
    gpus: f64,
    arrived: u64,
    used: u64,
    bins: Vec<Bin>,
}

/// The measurements after each arrival of one bin: GPUs in use, in percent of all; fragmented GPUs,
/// in thousandths; fragmented GPUs, in percent of the free ones.
type Bin = [Vec<f64>; 3];

impl Bins {
    pub(super) fn new(gpus: u64) -> Self {
        Self {
            gpus: float(gpus.into()),
            arrived: 0,
            used: 0,
            bins: vec![Bin::default(); LAST_PERCENT + 1],
        }
    }

    /// Measures after the arrival of a pod that asks for so many thousandths of a GPU in all.
    pub(super) fn add(&mut self, thousandths: u64, placed: bool, now: &Fragmentation) {
        self.arrived += thousandths;
        self.used += if placed { thousandths } else { 0 };
        let percent = (float(self.arrived.into()) / self.gpus / 10.0).round_ties_even();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates"
        )]
        let percent = percent as usize;
        let Some(bin) = self.bins.get_mut(percent) else {
            return;
        };
        let fragmented = float(now.weighted) / float(now.weight.max(1).into());
        let free = float(now.free_thousandths.max(1).into());
        let values = [
            float(self.used.into()) / self.gpus / 10.0,
            fragmented,
            100.0 * fragmented / free,
        ];
        for (measured, value) in bin.iter_mut().zip(values) {
            measured.push(printed(value));
        }
    }

    pub(super) fn used_thousandths(&self) -> u64 {
        self.used
    }

    /// The points of one curve; not a number in bins without an arrival.
    pub(super) fn values(&self, metric: Metric) -> Vec<f64> {
        let value = |[used, fragmented, share]: &Bin| match metric {
            Metric::Alloc => rounded(mean(used)),
            Metric::FragAmount => rounded(100.0 * mean(fragmented) / 1000.0 / self.gpus),
            Metric::FragRatio => mean(share),
        };
        self.bins.iter().map(value).collect()
    }
}

/// A value after it was printed with two decimals and read again.
fn printed(value: f64) -> f64 {
    format!("{value:.2}").parse().unwrap_or(value)
}

/// Rounds to two decimals as numpy does, with which the published curves were made.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round_ties_even() / 100.0
}

/// The mean as numpy works it out; not a number if there are no values.
fn mean(values: &[f64]) -> f64 {
    numpy_sum(values) / float(values.len() as u128)
}

/// The sum in the order in which numpy adds: eight sums side by side, and long lists in halves. The
/// order decides on which side of a tie a mean falls.
fn numpy_sum(values: &[f64]) -> f64 {
    const SIDE_BY_SIDE: usize = 8;
    const LONG: usize = 128;
    if values.len() > LONG {
        let half = values.len() / 2;
        let (first, second) = values.split_at(half - half % SIDE_BY_SIDE);
        return numpy_sum(first) + numpy_sum(second);
    }
    let (eights, rest) = values.as_chunks::<SIDE_BY_SIDE>();
    let sums = eights.iter().copied().reduce(|mut sums, eight| {
        for (sum, value) in sums.iter_mut().zip(eight) {
            *sum += value;
        }
        sums
    });
    let sum = sums.map_or(0.0, |[a, b, c, d, e, f, g, h]| {
        ((a + b) + (c + d)) + ((e + f) + (g + h))
    });
    rest.iter().fold(sum, |sum, value| sum + value)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sums below 2^53 are exact, larger ones nearly"
)]
fn float(amount: u128) -> f64 {
    amount as f64
}

/// The curves as a file: `workload,policy,seed,metric,0,1 ... 130`. A point is empty where no pod
/// arrived.
#[must_use]
pub fn write_csv(curves: &[Curve]) -> String {
    let mut text = format!("{},metric", COLUMNS.join(","));
    for percent in 0..=LAST_PERCENT {
        write!(text, ",{percent}").expect("a String takes everything");
    }
    for curve in curves {
        let Curve {
            workload,
            policy,
            seed,
            metric,
            values,
        } = curve;
        let workload = quoted(workload);
        write!(text, "\n{workload},{policy},{seed},{}", name(*metric))
            .expect("a String takes everything");
        for value in values {
            text.push(',');
            if value.is_finite() {
                text.push_str(decimals(*value).trim_end_matches('0').trim_end_matches('.'));
            }
        }
    }
    text.push('\n');
    text
}

fn decimals(value: f64) -> String {
    format!("{value:.4}")
}

/// Quotes a text if it would break the table: the workload is named after a file.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Alloc => "alloc",
        Metric::FragAmount => "frag_amount",
        Metric::FragRatio => "frag_ratio",
    }
}

/// Reads a file of published curves of one metric: `workload,policy,seed,0,1 ... 130`. Empty points
/// are not a number.
///
/// # Errors
/// If the file is broken or a value is not a number.
pub fn read_published(path: &Path, metric: Metric) -> Result<Vec<Curve>, InputError> {
    static POINTS: LazyLock<Vec<String>> = LazyLock::new(|| {
        (0..=LAST_PERCENT)
            .map(|percent| percent.to_string())
            .collect()
    });
    let points = POINTS.iter().map(String::as_str);
    let columns: Vec<&'static str> = COLUMNS.into_iter().chain(points).collect();
    let mut table = Table::open(path, &columns, &[])?;
    let mut curves = Vec::new();
    while let Some(row) = table.next_row()? {
        let mut values = Vec::with_capacity(POINTS.len());
        for column in COLUMNS.len()..columns.len() {
            values.push(match row.text(column)? {
                "" => f64::NAN,
                _ => row.decimal(column)?,
            });
        }
        curves.push(Curve {
            workload: row.name(0)?.to_owned(),
            policy: row.name(1)?.to_owned(),
            seed: row.whole(2, u64::MAX)?,
            metric,
            values,
        });
    }
    Ok(curves)
}
