use super::*;
use crate::lab::demo::workload;
use console::strip_ansi_codes;

/// A view in which every gang of the demo waits.
fn drawn(columns: usize, rows: usize) -> Vec<String> {
    let now = Instant::now();
    let gangs = workload::gangs(300, Duration::from_secs(100));
    let names: Vec<String> = gangs.iter().map(|gang| gang.name.clone()).collect();
    let mut witness = Witness::new(gangs, &[]);
    for name in &names {
        witness.submitted(name, now);
    }
    let view = View {
        title: "gpu-batch demo",
        witness: &witness,
        reports: &Reports::default(),
        now: now + Duration::from_secs(7),
        elapsed: Duration::from_secs(67),
        binds_per_s: 12,
    };
    let lines = frame(&view, columns, rows);
    lines
        .iter()
        .map(|line| strip_ansi_codes(line).into_owned())
        .collect()
}

#[test]
fn the_table_fits_every_terminal() {
    for (columns, rows) in [(80, 24), (120, 40), (200, 60), (40, 10), (1, 1), (0, 0)] {
        let lines = drawn(columns, rows);
        assert!(
            lines.len() < rows.max(1),
            "{columns}x{rows}: {}",
            lines.len()
        );
        for line in &lines {
            assert!(
                measure_text_width(line) <= columns,
                "{columns}x{rows}: {line}"
            );
        }
    }
}

#[test]
fn gangs_that_wait_for_ever_do_not_hide_the_others() {
    let lines = drawn(80, 24).join("\n");
    let hopeless = ["too-large", "typo", "greedy", "incomplete"];
    let shown = hopeless
        .iter()
        .filter(|name| lines.contains(**name))
        .count();
    assert_eq!(shown, 2, "{lines}");
    assert!(lines.contains("304 waiting, 0 running, 0 ended"), "{lines}");
    assert!(lines.contains(" 7.0s"), "{lines}");
}

#[test]
fn a_gang_is_found_by_the_name_of_its_work() {
    for (gang, work) in [
        ("demo-vision/job/train-012", "train-012"),
        ("demo-vision/sweep-003", "sweep-003"),
        ("demo-vision/pod/eval-007-0-x7k2p", "eval-007"),
        ("demo-vision/job/too-large", "too-large"),
    ] {
        assert_eq!(work_name(gang), work);
    }
}

#[test]
fn a_bar_is_filled_in_proportion_and_marked() {
    let check = |part, mark, expected: &str| {
        let drawn = bar(part, 100, mark, 10, &Style::new());
        assert_eq!(strip_ansi_codes(&drawn), expected);
    };
    check(0, None, "░░░░░░░░░░");
    check(50, None, "█████░░░░░");
    check(999, None, "██████████");
    check(30, Some(50), "███░░│░░░░");
    check(100, Some(100), "█████████│");
}
