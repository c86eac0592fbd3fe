//! Thins out the points of a report: points that a screen cannot show are not written.

use super::{Kind, Panel, Report, Series, Style};
use std::collections::BTreeMap;

/// How many stretches a series is cut into. At most four points of each are kept.
const STRETCHES: usize = 256;

/// A report as it is written: with few points, only finite ones, and no more digits than a plot
/// shows.
pub(super) fn thinned(report: &Report) -> Report {
    let mut report = report.clone();
    for panel in &mut report.panels {
        for series in &mut panel.series {
            drop_what_is_not_finite(series);
        }
        if panel.kind == Kind::StackedAreas {
            thin_stacks(panel);
        }
        for series in &mut panel.series {
            let heights: Vec<f64> = series.points.iter().map(|point| point.1).collect();
            keep(series, &kept(&heights));
            round(series);
        }
    }
    report
}

fn drop_what_is_not_finite(series: &mut Series) {
    if series.band.len() != series.points.len() {
        series.band.clear();
    }
    let is_finite = |pair: &(f64, f64)| pair.0.is_finite() && pair.1.is_finite();
    let good = |index: &usize| {
        let band = series.band.get(*index);
        is_finite(&series.points[*index]) && band.is_none_or(is_finite)
    };
    let indices: Vec<usize> = (0..series.points.len()).filter(good).collect();
    if indices.len() < series.points.len() {
        keep(series, &indices);
    }
}

fn keep(series: &mut Series, indices: &[usize]) {
    series.points = indices.iter().map(|&index| series.points[index]).collect();
    if !series.band.is_empty() {
        series.band = indices.iter().map(|&index| series.band[index]).collect();
    }
}

/// Thins out stacked areas. All areas of one stack keep the same x values: those where their sum is
/// extreme.
fn thin_stacks(panel: &mut Panel) {
    let mut stacks: BTreeMap<(Option<usize>, Option<String>), Vec<usize>> = BTreeMap::new();
    let areas = panel.series.iter().enumerate();
    for (index, series) in areas.filter(|(_, series)| series.style == Style::Solid) {
        let stack = (series.run, series.choice.clone());
        stacks.entry(stack).or_default().push(index);
    }
    for members in stacks.into_values() {
        let first = &panel.series[members[0]].points;
        let length = first.len();
        let same_x = |index: &usize| {
            let points = &panel.series[*index].points;
            points.len() == length && points.iter().zip(first).all(|(a, b)| a.0 == b.0)
        };
        debug_assert!(
            members.iter().all(same_x),
            "areas on each other have the same x"
        );
        let sum = |at: usize| {
            let members = members.iter();
            members
                .filter_map(|&index| panel.series[index].points.get(at))
                .map(|point| point.1)
                .sum()
        };
        let heights: Vec<f64> = (0..length).map(sum).collect();
        let indices = kept(&heights);
        for &member in &members {
            let series = &mut panel.series[member];
            if series.points.len() == length {
                keep(series, &indices);
            }
        }
    }
}

/// The indices of the first, the last, the highest and the lowest point of each stretch, sorted.
fn kept(heights: &[f64]) -> Vec<usize> {
    let length = heights.len();
    if length <= 4 * STRETCHES {
        return (0..length).collect();
    }
    let mut indices = Vec::with_capacity(4 * STRETCHES);
    for stretch in 0..STRETCHES {
        let range = stretch * length / STRETCHES..(stretch + 1) * length / STRETCHES;
        let by_height = |a: &usize, b: &usize| heights[*a].total_cmp(&heights[*b]);
        let extremes = [
            Some(range.start),
            range.clone().min_by(by_height),
            range.clone().max_by(by_height),
            range.end.checked_sub(1),
        ];
        indices.extend(extremes.into_iter().flatten());
    }
    indices.sort_unstable();
    indices.dedup();
    indices
}

fn round(series: &mut Series) {
    for (x, y) in &mut series.points {
        *x = rounded(*x);
        *y = rounded(*y);
    }
    for (low, high) in &mut series.band {
        *low = rounded(*low);
        *high = rounded(*high);
    }
}

/// Rounds a number that is not whole to five digits.
fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 {
        return value;
    }
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_survive() {
        let mut heights = vec![1.0; 1_000_000];
        heights[777_777] = 9.0;
        heights[123_456] = -3.0;
        let indices = kept(&heights);
        assert!(indices.len() <= 4 * STRETCHES, "{}", indices.len());
        assert!(indices.contains(&777_777) && indices.contains(&123_456));
        assert_eq!((indices[0], indices.last()), (0, Some(&999_999)));
        assert!(indices.is_sorted());
    }

    #[test]
    fn few_points_stay_as_they_are() {
        assert_eq!(kept(&[3.0, 1.0, 2.0]), [0, 1, 2]);
        assert_eq!(kept(&[]), [0_usize; 0]);
    }

    #[test]
    fn what_is_not_finite_goes_with_its_band() {
        let mut series = Series {
            points: vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (3.0, 1.0)],
            band: vec![(0.0, 2.0), (0.0, 2.0), (1.0, f64::INFINITY), (0.5, 1.5)],
            ..Series::default()
        };
        drop_what_is_not_finite(&mut series);
        assert_eq!(series.points, [(0.0, 1.0), (3.0, 1.0)]);
        assert_eq!(series.band, [(0.0, 2.0), (0.5, 1.5)]);
    }

    #[test]
    fn numbers_have_five_digits() {
        assert_eq!(rounded(1.0 / 3.0), 0.333_33);
        assert_eq!(rounded(-1_234_567.25), -1_234_600.0);
        assert_eq!(rounded(123_456_789.0), 123_456_789.0);
    }
}
