//! Results as one page that needs no network. This module knows what a page shows, and not where
//! the figures come from.
//!
//! A [`Report`] is panels and tables of one or more runs. Builders make them from results: [`jobs`]
//! from simulated jobs, [`openb`] from the curves of the fill-up experiment. [`Report::to_html`]
//! writes one file with everything in it, [`Report::to_json`] the same data for programs. Equal
//! reports give equal bytes.

mod buckets;
mod html;
pub mod jobs;
pub mod openb;
#[cfg(test)]
mod tests;
mod thin;
mod waits;

use serde::{Serialize, Serializer};
use serde_json::Number;

/// The most rows of a table that are written; see [`Table::row`].
const ROWS_MAX: usize = 1_000;

/// What one page shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The heading, and the title of the browser's window.
    pub title: String,
    /// One sentence below the title.
    pub subtitle: String,
    /// Names and values that are needed to get the result again: seed, files, policy, version.
    pub facts: Vec<(String, String)>,
    /// Names of the runs, for example policies. The reader switches them on and off.
    pub runs: Vec<String>,
    /// The plots, from top to bottom.
    pub panels: Vec<Panel>,
    /// The tables below the plots.
    pub tables: Vec<Table>,
}

/// One plot, or one for each run with the same axes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Panel {
    /// The title of the plot.
    pub title: String,
    /// One sentence on how to read the plot.
    pub note: String,
    /// The axis from left to right.
    pub x: Axis,
    /// The axis from bottom to top.
    pub y: Axis,
    /// How the points are drawn.
    pub kind: Kind,
    /// Where the runs are drawn.
    pub arrangement: Arrangement,
    /// What the reader can choose one of, for example `Queue`. The values are in
    /// [`Series::choice`]. `None`: there is no choice.
    pub choice: Option<String>,
    /// The data.
    pub series: Vec<Series>,
}

/// One axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// The quantity that the axis measures. The unit is shown at the ticks.
    pub label: String,
    /// How values become positions and ticks.
    pub scale: Scale,
}

/// How values of an axis become positions and ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Seconds since the start of the run; ticks are hours and days.
    Time,
    /// A length of time in seconds, from 0 to months, on a logarithmic scale.
    LogSeconds,
    /// Percent: 100 is all.
    Percent,
    /// Any number, from 0.
    Number,
}

/// How the points of a panel are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Straight lines between the points.
    Lines,
    /// A value holds until the next point; the last one to the end of the axis.
    Steps,
    /// Areas with steps, one on the other in the order of the series. Dashed series are lines over
    /// the areas.
    ///
    /// All areas of one run and choice have the same x values.
    StackedAreas,
    /// Steps: how many percent of all values are at most x.
    Distribution,
}

/// Where the runs of a panel are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// All runs in one plot; a colour stands for a run.
    Together,
    /// A plot for each run, beside each other with the same axes; a colour stands for the name of a
    /// series.
    SideBySide,
}

/// One line or area.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Series {
    /// The name of the series. With [`Arrangement::SideBySide`], series of one name have one colour
    /// in all runs.
    pub name: String,
    /// The run that the series belongs to, an index into [`Report::runs`]; `None`: all runs.
    pub run: Option<usize>,
    /// The series is shown when the reader chooses this value of [`Panel::choice`]; `None`: always.
    pub choice: Option<String>,
    /// How the series is drawn.
    pub style: Style,
    /// Points of x and y, sorted by x. At most about a thousand points are written: the highest and
    /// lowest of each stretch are kept. A point that is not finite is left out.
    #[serde(serialize_with = "by_column")]
    pub points: Vec<(f64, f64)>,
    /// The lowest and highest value at each point, drawn as a band; empty: there is no band.
    #[serde(serialize_with = "by_column")]
    pub band: Vec<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// A measured line.
    #[default]
    Solid,
    /// A line with the area below it shaded.
    Filled,
    /// A line that others are compared with: published results, a quota.
    Dashed,
}

/// One table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// The title of the table.
    pub title: String,
    /// One sentence on how to read the table.
    pub note: String,
    /// The heads of the columns, with units.
    pub columns: Vec<String>,
    /// One text for each column. A column of numbers is set to the right and sorted by value.
    pub rows: Vec<Vec<String>>,
    /// How many rows are left out because there are too many.
    pub rows_left_out: usize,
}

impl Axis {
    /// An axis of this label and scale.
    #[must_use]
    pub fn new(label: &str, scale: Scale) -> Self {
        let label = label.to_owned();
        Self { label, scale }
    }
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(title: &str, note: &str, columns: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            note: note.to_owned(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Adds a row. From the thousand-and-first on, rows are only counted.
    pub fn row(&mut self, cells: Vec<String>) {
        if self.rows.len() < ROWS_MAX {
            self.rows.push(cells);
        } else {
            self.rows_left_out += 1;
        }
    }
}

impl Report {
    /// The page: one HTML file with style, script and data in it.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::page(self)
    }

    /// The data of the page as one JSON object, with the field names of [`Report`]. Points and
    /// bands are two columns each, `[x, y]` and `[low, high]`. A column is an array of numbers, or
    /// `{"from", "step", "count"}` if it has more than three numbers and all steps between them are
    /// equal.
    #[must_use]
    pub fn to_json(&self) -> String {
        let thinned = thin::thinned(self);
        serde_json::to_string(&thinned).expect("text and finite numbers are JSON")
    }
}

/// Two columns instead of many pairs: half as much to load.
fn by_column<S: Serializer>(pairs: &[(f64, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    [Column::of(&first), Column::of(&second)].serialize(serializer)
}

/// A column of numbers. Whole numbers are written without a decimal point.
#[derive(Serialize)]
#[serde(untagged)]
enum Column {
    Values(Vec<Number>),
    Even {
        from: Number,
        step: Number,
        count: usize,
    },
}

impl Column {
    fn of(values: &[f64]) -> Self {
        if let [from, second, ..] = values {
            let step = second - from;
            let is_even = values.windows(2).all(|pair| pair[1] - pair[0] == step);
            if is_even && values.len() > 3 {
                let count = values.len();
                let (from, step) = (number(*from), number(step));
                return Self::Even { from, step, count };
            }
        }
        Self::Values(values.iter().copied().map(number).collect())
    }
}

fn number(value: f64) -> Number {
    /// Every whole number up to this one is exact in a double.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
        #[expect(clippy::cast_possible_truncation, reason = "checked in the line above")]
        let whole = value as i64;
        return whole.into();
    }
    Number::from_f64(value).unwrap_or_else(|| 0.into())
}
