//! Panels of the fill-up experiment: curves over the share of the cluster's GPUs asked for.

use super::buckets::as_float;
use super::{Arrangement, Axis, Kind, Panel, Scale, Series, Style, Table};
use std::collections::{BTreeMap, BTreeSet};

/// One measured or published curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The name of the list of pods that arrive, for example `default`.
    pub workload: String,
    /// The policy that placed the pods. It must be spelled like the name of a run.
    pub policy: String,
    /// The seed of the order in which the pods arrive.
    pub seed: u64,
    /// The quantity that is measured.
    pub metric: Metric,
    /// Values in percent, at 0, 1, 2 ... percent of the cluster's GPUs asked for; not a number
    /// where nothing was measured.
    pub values: Vec<f64>,
}

/// Two curves can be compared if they have one key: workload, policy, seed and metric.
type Key<'a> = (&'a str, &'a str, u64, Metric);

impl Curve {
    fn key(&self) -> Key<'_> {
        (&self.workload, &self.policy, self.seed, self.metric)
    }
}

/// What a curve measures, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// GPUs in use, of all GPUs.
    Alloc,
    /// Free GPUs that a pod of the workload cannot use, of all GPUs.
    FragAmount,
    /// Free GPUs that a pod of the workload cannot use, of all free GPUs.
    FragRatio,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 3] = [Self::Alloc, Self::FragAmount, Self::FragRatio];

    fn title(self) -> &'static str {
        match self {
            Self::Alloc => "GPUs in use",
            Self::FragAmount => "GPUs lost to fragments",
            Self::FragRatio => "Fragments among the free GPUs",
        }
    }

    fn note(self) -> &'static str {
        match self {
            Self::Alloc => "Up to 100 % asked for, the diagonal is the best that there is.",
            Self::FragAmount => "Free and of no use to a typical pod. Less is better.",
            Self::FragRatio => "How much of what is free is of no use. Lower for longer is better.",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Alloc | Self::FragAmount => "of all GPUs",
            Self::FragRatio => "of free GPUs",
        }
    }
}

/// One panel for each metric: the mean over the seeds of each policy with a band from the lowest to
/// the highest, and the mean of the published curves of the same seeds, dashed.
///
/// `runs` are the policies in the order of the report; curves of other policies are left out.
#[must_use]
pub fn panels(runs: &[String], measured: &[Curve], published: &[Curve]) -> Vec<Panel> {
    let keys: BTreeSet<Key<'_>> = measured.iter().map(Curve::key).collect();
    let same = published.iter().filter(|curve| keys.contains(&curve.key()));
    let same: Vec<Curve> = same.cloned().collect();
    let panel = |metric: Metric| {
        let mut series = series(runs, measured, metric, Style::Solid);
        series.extend(self::series(runs, &same, metric, Style::Dashed));
        // Each published curve follows the measured one, also in the list of values.
        series.sort_by(|a, b| (&a.choice, a.run).cmp(&(&b.choice, b.run)));
        Panel {
            title: metric.title().to_owned(),
            note: metric.note().to_owned(),
            x: Axis::new("GPUs asked for, of all GPUs", Scale::Percent),
            y: Axis::new(metric.label(), Scale::Percent),
            kind: Kind::Lines,
            arrangement: Arrangement::Together,
            choice: Some("Workload".to_owned()),
            series,
        }
    };
    Metric::ALL.map(panel).into()
}

/// How far each measured curve is from the published curve of its workload, policy, seed and
/// metric. Curves without a published one are left out.
#[must_use]
pub fn comparison(runs: &[String], measured: &[Curve], published: &[Curve]) -> Table {
    let columns = [
        "workload",
        "policy",
        "metric",
        "curves",
        "points",
        "largest difference, points of %",
    ];
    let note = "Over all seeds and all points of a curve.";
    let mut table = Table::new("Measured and published", note, &columns);
    let by_key: BTreeMap<Key<'_>, &Curve> = published.iter().map(|one| (one.key(), one)).collect();
    let mut differences: BTreeMap<(&str, usize, Metric), (usize, usize, f64)> = BTreeMap::new();
    for curve in measured {
        let run = runs.iter().position(|run| *run == curve.policy);
        let (Some(run), Some(other)) = (run, by_key.get(&curve.key())) else {
            continue;
        };
        let pairs = curve.values.iter().zip(&other.values);
        let distances = pairs
            .map(|(a, b)| (a - b).abs())
            .filter(|distance| distance.is_finite());
        let key = (&*curve.workload, run, curve.metric);
        let (curves, points, largest) = differences.entry(key).or_default();
        *curves += 1;
        for distance in distances {
            *points += 1;
            *largest = largest.max(distance);
        }
    }
    for ((workload, run, metric), (curves, points, largest)) in differences {
        let figures = [
            curves.to_string(),
            points.to_string(),
            format!("{largest:.4}"),
        ];
        let names = [workload, &runs[run], metric.title()].map(str::to_owned);
        table.row(names.into_iter().chain(figures).collect());
    }
    table
}

fn series(runs: &[String], curves: &[Curve], metric: Metric, style: Style) -> Vec<Series> {
    let mut groups: BTreeMap<(&str, usize), Vec<&Curve>> = BTreeMap::new();
    for curve in curves.iter().filter(|curve| curve.metric == metric) {
        if let Some(run) = runs.iter().position(|run| *run == curve.policy) {
            groups
                .entry((&curve.workload, run))
                .or_default()
                .push(curve);
        }
    }
    let one = |((workload, run), curves): ((&str, usize), Vec<&Curve>)| {
        let (points, band) = mean_and_band(&curves);
        let is_wide = band.iter().any(|(low, high)| low < high) && style == Style::Solid;
        Series {
            name: match style {
                Style::Solid | Style::Filled => runs[run].clone(),
                Style::Dashed => "published".to_owned(),
            },
            run: Some(run),
            choice: Some(workload.to_owned()),
            style,
            points,
            band: if is_wide { band } else { Vec::new() },
        }
    };
    groups.into_iter().map(one).collect()
}

type Pairs = Vec<(f64, f64)>;

/// The mean and the band at each point, over the curves that have a value there.
fn mean_and_band(curves: &[&Curve]) -> (Pairs, Pairs) {
    let lengths = curves.iter().map(|curve| curve.values.len());
    let mut points = Vec::new();
    let mut band = Vec::new();
    for at in 0..lengths.max().unwrap_or(0) {
        let values = curves.iter().filter_map(|curve| curve.values.get(at));
        let values: Vec<f64> = values.copied().filter(|value| value.is_finite()).collect();
        if values.is_empty() {
            continue;
        }
        let mean = values.iter().sum::<f64>() / as_float(values.len());
        points.push((as_float(at), mean));
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        band.push((low, high));
    }
    (points, band)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(policy: &str, seed: u64, values: &[f64]) -> Curve {
        Curve {
            workload: "default".to_owned(),
            policy: policy.to_owned(),
            seed,
            metric: Metric::Alloc,
            values: values.to_vec(),
        }
    }

    #[test]
    fn seeds_become_a_mean_and_a_band() {
        let runs = ["fgd".to_owned(), "random".to_owned()];
        let measured = [
            curve("fgd", 42, &[0.0, 2.0, 3.0]),
            curve("fgd", 43, &[0.0, 4.0, f64::NAN]),
            curve("random", 42, &[1.0]),
            curve("unknown", 42, &[1.0]),
        ];
        let mut elsewhere = curve("fgd", 42, &[0.0]);
        elsewhere.workload = "cpu100".to_owned();
        let unmeasured = curve("fgd", 44, &[9.0, 9.0]);
        let published = [curve("fgd", 42, &[0.0, 3.0]), elsewhere, unmeasured];
        let panels = panels(&runs, &measured, &published);
        let names: Vec<&str> = panels[0].series.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["fgd", "published", "random"]);
        let fgd = &panels[0].series[0];
        assert_eq!(fgd.points, [(0.0, 0.0), (1.0, 3.0), (2.0, 3.0)]);
        assert_eq!(fgd.band, [(0.0, 0.0), (2.0, 4.0), (3.0, 3.0)]);
        assert_eq!((panels.len(), panels[1].series.len()), (3, 0));
        assert_eq!(panels[0].series[1].points, [(0.0, 0.0), (1.0, 3.0)]);
        let table = comparison(&runs, &measured, &published);
        let row = ["default", "fgd", "GPUs in use", "1", "2", "1.0000"];
        assert_eq!(table.rows, [row]);
        assert!(panels[0].series[2].band.is_empty());
    }
}
