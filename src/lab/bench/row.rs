//! One measured figure, tables of figures, and how much they grow with the size of a scenario.

use super::as_f64;
use serde::Serialize;
use std::fmt::Write;

/// One measured figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    /// The benchmark that measured the figure, as `--filter` knows it.
    pub benchmark: &'static str,
    /// The name of the measured quantity.
    pub name: &'static str,
    /// The work that was measured, and its size.
    pub scenario: String,
    /// The figure.
    pub value: f64,
    /// The unit of the figure.
    pub unit: &'static str,
    /// The reference: the target, or the figure of a peer in the same run; `None` for figures that
    /// stand for themselves.
    pub reference: Option<f64>,
    /// `value` over `reference`; `None` also where that is 0.
    pub ratio: Option<f64>,
    /// On which side of the reference the figure should be.
    pub bound: Option<Bound>,
    /// What the reference is, and what other schedulers take for this work on such a machine.
    pub note: &'static str,
}

/// On which side of its reference a figure should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    /// At most the reference: times.
    AtMost,
    /// At least the reference: rates.
    AtLeast,
}

fn ratio(value: f64, reference: f64) -> Option<f64> {
    Some(value / reference).filter(|ratio| ratio.is_finite())
}

impl Row {
    /// A figure without a reference.
    pub(crate) fn new(
        name: &'static str,
        scenario: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            benchmark: "",
            name,
            scenario: scenario.into(),
            value,
            unit,
            reference: None,
            ratio: None,
            bound: None,
            note: "",
        }
    }

    /// Says which benchmark the row belongs to.
    #[must_use]
    pub(super) fn of(mut self, benchmark: &'static str) -> Self {
        self.benchmark = benchmark;
        self
    }

    /// Adds a reference, and the side of it on which the figure should be.
    #[must_use]
    pub(crate) fn against(mut self, bound: Bound, reference: f64, note: &'static str) -> Self {
        self.reference = Some(reference);
        self.ratio = ratio(self.value, reference);
        self.bound = Some(bound);
        self.note = note;
        self
    }

    /// Adds the figure of a peer in the same run as the reference, without a judgement.
    #[must_use]
    pub(crate) fn beside(mut self, reference: f64, note: &'static str) -> Self {
        self.reference = Some(reference);
        self.ratio = ratio(self.value, reference);
        self.note = note;
        self
    }

    /// Whether the figure is on the right side of its reference; true for a figure without a
    /// reference.
    #[must_use]
    pub(crate) fn holds(&self) -> bool {
        match (self.bound, self.reference) {
            (Some(Bound::AtMost), Some(reference)) => self.value <= reference,
            (Some(Bound::AtLeast), Some(reference)) => self.value >= reference,
            _ => true,
        }
    }
}

/// The rows as a table for people, in Markdown.
#[must_use]
pub(crate) fn table(rows: &[Row]) -> String {
    let mut lines = vec![
        [
            "benchmark",
            "figure",
            "scenario",
            "value",
            "reference",
            "ratio",
            "holds",
            "note",
        ]
        .map(String::from),
    ];
    for row in rows {
        let sign = match row.bound {
            Some(Bound::AtMost) => "<= ",
            Some(Bound::AtLeast) => ">= ",
            None => "",
        };
        let holds = match (row.bound, row.holds()) {
            (None, _) => "",
            (Some(_), true) => "yes",
            (Some(_), false) => "no",
        };
        lines.push([
            row.benchmark.to_owned(),
            row.name.to_owned(),
            row.scenario.clone(),
            format!("{} {}", figure(row.value), row.unit),
            row.reference.map_or_else(String::new, |reference| {
                format!("{sign}{} {}", figure(reference), row.unit)
            }),
            row.ratio.map_or_else(String::new, figure),
            holds.to_owned(),
            row.note.to_owned(),
        ]);
    }
    render(&lines)
}

fn render(lines: &[[String; 8]]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; 8] = std::array::from_fn(width);
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(widths) {
            // Writing into a string cannot fail.
            let _ = write!(text, "| {cell:width$} ");
        }
        text.push_str("|\n");
        if number == 0 {
            for width in widths {
                let _ = write!(text, "|{:-<1$}", "", width + 2);
            }
            text.push_str("|\n");
        }
    }
    text
}

/// Three significant digits, and thousands in groups.
fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    if digits > 0 {
        return text;
    }
    let mut grouped = String::new();
    for (position, digit) in text.chars().enumerate() {
        if position > 0 && (text.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The rows of each size. After the rows of each size but the first: how much every figure has
/// grown since the size before, beside the growth of the size itself.
pub(super) fn over_sizes(
    sizes: impl IntoIterator<Item = usize>,
    mut at_size: impl FnMut(usize) -> Vec<Row>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut before: Option<(usize, Vec<Row>)> = None;
    for size in sizes {
        let now = at_size(size);
        rows.extend(now.iter().cloned());
        if let Some((smaller, before)) = before {
            let grown = as_f64(size) / as_f64(smaller);
            rows.extend(now.iter().filter_map(|row| growth(&before, row, grown)));
        }
        before = Some((size, now));
    }
    rows
}

/// How much a figure has grown; `None`: the smaller size has no such figure.
fn growth(before: &[Row], row: &Row, grown: f64) -> Option<Row> {
    let small = before.iter().find(|small| small.name == row.name)?;
    let scenario = format!("growth to {}", row.scenario);
    let growth = Row::new(row.name, scenario, row.value / small.value, "x");
    Some(if row.unit.ends_with("/s") {
        growth.beside(1.0, "reference: a rate is the same at all sizes")
    } else {
        growth.beside(grown, "reference: the growth of the scenario")
    })
}

#[cfg(test)]
mod tests {
    use super::{Bound, Row, figure, over_sizes, table};

    #[test]
    fn figures_keep_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (0.5, "0.50"),
            (2.345, "2.35"),
            (45.67, "45.7"),
            (1234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn a_row_says_whether_it_holds() {
        let row = Row::new("rate", "few", 9.0, "pods/s").of("single pods");
        assert!(row.holds());
        assert!(!row.clone().against(Bound::AtLeast, 10.0, "").holds());
        assert!(row.clone().against(Bound::AtMost, 10.0, "").holds());
        let text = table(&[row.against(Bound::AtLeast, 10.0, "target")]);
        assert!(text.contains("\n| single pods | rate   |"), "{text}");
        assert!(
            text.contains("| 9.00 pods/s | >= 10.0 pods/s | 0.90  | no"),
            "{text}"
        );
    }

    #[test]
    fn over_a_reference_of_nothing_there_is_no_ratio() {
        let row = Row::new("findings", "", 0.0, "pages").against(Bound::AtMost, 0.0, "target");
        assert!(row.holds() && row.ratio.is_none());
        let text = table(&[row]);
        assert!(text.contains("| <= 0 pages |       | yes   |"), "{text}");
    }

    #[test]
    fn growth_stands_after_the_larger_size() {
        let rows = over_sizes([10, 20, 80], |size| {
            let mut rows = vec![
                Row::new("time", format!("{size} nodes"), size as f64, "ms"),
                Row::new("rate", format!("{size} nodes"), 8.0, "pods/s"),
            ];
            if size > 10 {
                rows.push(Row::new("slice", format!("{size} nodes"), 3.0, "ms"));
            }
            rows
        });
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.name, &*row.scenario, row.value, row.reference))
            .collect();
        let expected = [
            ("time", "10 nodes", 10.0, None),
            ("rate", "10 nodes", 8.0, None),
            ("time", "20 nodes", 20.0, None),
            ("rate", "20 nodes", 8.0, None),
            ("slice", "20 nodes", 3.0, None),
            ("time", "growth to 20 nodes", 2.0, Some(2.0)),
            ("rate", "growth to 20 nodes", 1.0, Some(1.0)),
            ("time", "80 nodes", 80.0, None),
            ("rate", "80 nodes", 8.0, None),
            ("slice", "80 nodes", 3.0, None),
            ("time", "growth to 80 nodes", 4.0, Some(4.0)),
            ("rate", "growth to 80 nodes", 1.0, Some(1.0)),
            ("slice", "growth to 80 nodes", 1.0, Some(4.0)),
        ];
        assert_eq!(told, expected);
    }
}
