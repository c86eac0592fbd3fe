use super::sigmoid::{THRESHOLDS, percent};

/// The function that the table of thresholds stands for.
fn exact(x: f64) -> i32 {
    super::truncated(100.0 * (1.0 / (1.0 + f64::exp(-x))))
}

#[test]
fn the_logistic_function_rises_where_the_table_says() {
    for (index, threshold) in THRESHOLDS.iter().enumerate() {
        let reached = i32::try_from(index + 1).unwrap();
        assert_eq!(exact(*threshold), reached, "at {threshold}");
        assert_eq!(
            exact(threshold.next_down()),
            reached - 1,
            "below {threshold}"
        );
    }
    for step in -4_000..4_000 {
        let x = f64::from(step) / 100.0;
        assert_eq!(percent(x), exact(x), "at {x}");
    }
}

#[test]
fn no_change_is_half_and_the_least_loss_is_less() {
    assert_eq!(percent(0.0), 50);
    assert_eq!(percent(1e-9), 50);
    assert_eq!(percent(-1e-9), 49);
}
