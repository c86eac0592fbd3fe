//! One scenario at several sizes, and by how much its figures grow.

use super::{Row, as_f64};

/// The rows of each size, and after those of each size but the first by how much every figure has
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

/// `None`: the smaller size has no such figure.
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
    use super::{Row, over_sizes};

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
