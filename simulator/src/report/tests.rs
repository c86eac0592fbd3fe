use super::jobs::{Job, Queue, Record};
use super::*;

#[test]
fn rows_beyond_a_thousand_are_counted() {
    let mut table = Table::new("Jobs", "", &["job"]);
    for row in 0..1_003 {
        table.row(vec![row.to_string()]);
    }
    assert_eq!((table.rows.len(), table.rows_left_out), (1_000, 3));
}

fn queue(name: &str, gpus: u64) -> Queue {
    Queue {
        name: name.to_owned(),
        quota: Some(gpus * 1_000),
    }
}

fn job(queue: usize, gpus: u64, submit_s: u64, start_s: u64, end_s: u64) -> Job {
    Job {
        queue,
        gpu_thousandths: gpus * 1_000,
        submit_s,
        runs_s: vec![(start_s, end_s)],
    }
}

/// Two queues; the second used more.
fn record() -> Record {
    let mut record = Record::new("fifo", vec![queue("a", 4), queue("b", 8)], 12_000);
    record.job(&job(0, 2, 0, 0, 2));
    record.job(&job(1, 8, 0, 1, 4));
    record.job(&Job {
        runs_s: Vec::new(),
        ..job(0, 1, 3, 0, 0)
    });
    record.fair_share(0, 0, 4_000);
    record.fair_share(2, 0, 1_000);
    record
}

fn heights(panel: &Panel, name: &str, choice: Option<&str>) -> Vec<f64> {
    let found = panel
        .series
        .iter()
        .find(|one| one.name == name && one.choice.as_deref() == choice);
    found.unwrap().points.iter().map(|point| point.1).collect()
}

#[test]
fn jobs_become_use_and_waits() {
    let panels = jobs::panels(&[record()], "jobs");
    let titles: Vec<&str> = panels.iter().map(|panel| &*panel.title).collect();
    let expected = [
        "GPUs in use",
        "Fair share and use of a queue",
        "Waiting time",
        "Waiting jobs",
    ];
    assert_eq!(titles, expected);
    let names: Vec<&str> = panels[0].series.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["b", "a", "all GPUs"], "who used most is below");
    assert_eq!(
        heights(&panels[0], "a", None),
        [2.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(
        heights(&panels[0], "b", None),
        [0.0, 8.0, 8.0, 8.0, 0.0, 0.0]
    );
    assert_eq!(heights(&panels[0], "all GPUs", None), [12.0, 12.0]);
    let fair = heights(&panels[1], "fair share", Some("a"));
    assert_eq!(fair, [4.0, 4.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(heights(&panels[1], "quota", Some("b")), [8.0, 8.0]);
    let waits = &panels[2].series[0];
    assert_eq!(waits.points, [(0.0, 50.0), (1.0, 100.0)]);
    let waiting = heights(&panels[3], "fifo", Some("all queues"));
    // One never ran: it is listed and takes no part.
    assert_eq!(waiting, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn parts_of_a_run_add_up() {
    let mut parts = Record::new("fifo", vec![queue("a", 4), queue("b", 8)], 12_000);
    parts.merge(record());
    assert_eq!(
        jobs::panels(&[parts], "jobs"),
        jobs::panels(&[record()], "jobs")
    );
}

#[test]
fn waits_by_size_have_a_plot_with_the_largest_first() {
    let mut parts = record();
    parts.waited_by_size((0, "1"), 5);
    let mut more = Record::new("fifo", vec![queue("a", 4), queue("b", 8)], 12_000);
    more.waited_by_size((0, "1"), 0);
    more.waited_by_size((3, "64+"), 70);
    parts.merge(more);
    let panels = jobs::panels(&[parts, record()], "jobs");
    let panel = panels.iter().find(|it| it.title == "Waiting time by size");
    let series = panel.unwrap().series.iter();
    let shown: Vec<_> = series
        .map(|it| (it.choice.as_deref(), &*it.points))
        .collect();
    assert_eq!(
        shown,
        [
            (Some("64+"), &[(0.0, 0.0), (70.0, 100.0)][..]),
            (Some("64+"), &[]),
            (Some("1"), &[(0.0, 50.0), (5.0, 100.0)]),
            (Some("1"), &[]),
        ]
    );
}

#[test]
fn the_smallest_of_many_queues_share_a_colour() {
    let names: Vec<String> = (0..11).map(|at| format!("q{at}")).collect();
    let queues = names.iter().map(|name| queue(name, 1)).collect();
    let mut record = Record::new("fifo", queues, 99_000);
    for at in 0..11 {
        record.job(&job(at, at as u64, 0, 0, 1));
    }
    let panels = jobs::panels(&[record], "jobs");
    assert_eq!(panels[0].series.len(), 11, "nine, the others and all GPUs");
    assert_eq!(panels[0].series[0].name, "q10");
    assert_eq!(heights(&panels[0], "2 others", None)[0], 1.0);
}

#[test]
fn columns_with_even_steps_are_short() {
    let series = Series {
        points: vec![(0.0, 1.0), (2.0, 0.5), (4.0, 7.0), (6.0, 7.0)],
        ..Series::default()
    };
    let json = serde_json::to_value(series).unwrap();
    let expected = r#"[{"count":4,"from":0,"step":2},[1,0.5,7,7]]"#;
    assert_eq!(json["points"].to_string(), expected);
}
