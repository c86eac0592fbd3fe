//! Reports of invented runs, large and with every part that a page has.

use gpu_batch_simulator::random::Random;
use gpu_batch_simulator::report::jobs::{self, Job, Queue, Record};
use gpu_batch_simulator::report::openb::{self, Curve, Metric};
use gpu_batch_simulator::report::{Report, Table};

const DAY_S: u64 = 86_400;
const DAYS: u64 = 61;

/// Names of queues that a careless page would take for something else.
pub(super) const HOSTILE: [&str; 8] = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "a\"b'c`d${e}\\n",
    "{{data}}{{script}}",
    "名前 عربي \u{2028}\u{2029}\u{0}",
    "",
    "a-very-long-name-of-a-queue-that-nobody-would-choose-but-that-is-allowed-all-the-same",
];

/// Four policies over two months, with so many queues and jobs.
pub(super) fn jobs(queues: &[&str], count: u64) -> Report {
    let runs = ["fifo", "sjf", "first-fit", "drf"];
    let quota = |at: usize| 1_000 * 512 / (at as u64 + 2);
    let queue = |(at, &name): (usize, &&str)| Queue {
        name: name.to_owned(),
        quota: Some(quota(at)),
    };
    let queues_of_all: Vec<Queue> = queues.iter().enumerate().map(queue).collect();
    let columns = ["policy", "queue", "jobs", "avg JCT, s", "p99 wait, s"];
    let note = "Click a heading to sort.";
    let mut summary = Table::new("Summary by policy and queue", note, &columns);
    let record = |(run, name): (usize, &&str)| {
        let capacity: u64 = queues_of_all.iter().filter_map(|queue| queue.quota).sum();
        let mut record = Record::new(name, queues_of_all.clone(), capacity);
        let mut random = Random::new(7);
        for _ in 0..count {
            record.job(&job(&mut random, queues.len(), run as u64));
        }
        for hour in 0..DAYS * 24 {
            for at in 0..queues.len() {
                let share = quota(at) * (80 + random.below(60)) / 100;
                record.fair_share(hour * 3_600, at, share);
            }
        }
        record
    };
    let records: Vec<Record> = runs.iter().enumerate().map(record).collect();
    for run in runs {
        for (at, queue) in queues.iter().enumerate() {
            let figure = |number: usize| (number * 7_919 % 90_001).to_string();
            let figures = [
                figure(at + 1),
                figure(at + run.len()),
                figure(at * run.len() + 5),
            ];
            summary.row(
                [run, queue]
                    .map(str::to_owned)
                    .into_iter()
                    .chain(figures)
                    .collect(),
            );
        }
    }
    let mut never = Table::new(
        "Jobs that can never run",
        "They ask for more than there is, and are not in the figures above.",
        &["row", "queue", "GPUs", "why"],
    );
    never.row(
        ["77", queues[0], "4096", "more GPUs than the cluster has"]
            .map(str::to_owned)
            .into(),
    );
    Report {
        title: "Jobs of two months".to_owned(),
        subtitle: "52,849 jobs of 12 queues on 321 nodes with 8 GPUs each".to_owned(),
        facts: facts(&[
            ("trace", "jobs.csv.gz"),
            ("node scale", "0.5"),
            ("seed", "7"),
        ]),
        runs: runs.map(str::to_owned).into(),
        panels: jobs::panels(&records, "jobs"),
        tables: vec![summary, never],
    }
}

fn facts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    pairs.iter().map(owned).collect()
}

/// More jobs by day than by night, short ones mostly, and waits that depend on the policy.
fn job(random: &mut Random, queues: usize, run: u64) -> Job {
    let night = random.below(3) == 0;
    let hour = if night {
        random.below(24)
    } else {
        random.between(9, 20)
    };
    let submit_s = random.below(DAYS) * DAY_S + hour * 3_600 + random.below(3_600);
    let duration_s = 1 << random.between(5, 16);
    let longest_s = 1 << random.between(2, 12 + run);
    let wait_s = match random.below(4) {
        0 => 0,
        _ => random.below(longest_s),
    };
    let start_s = submit_s + wait_s;
    let largest_first = random.below(queues as u64).min(random.below(queues as u64));
    Job {
        queue: usize::try_from(largest_first).unwrap(),
        gpu_thousandths: 1_000 << random.below(6),
        submit_s,
        runs_s: vec![(start_s, start_s + duration_s)],
    }
}

/// Six policies on two workloads with ten seeds, and published curves beside them.
pub(super) fn openb() -> Report {
    let runs = [
        "fgd",
        "bestfit",
        "dotprod",
        "gpupacking",
        "gpuclustering",
        "random",
    ];
    let runs = runs.map(str::to_owned).to_vec();
    let mut measured = Vec::new();
    for workload in ["default", "multigpu30"] {
        for (at, policy) in runs.iter().enumerate() {
            for seed in 42..52 {
                let level = 95.0 - 2.0 * at as f64 + (seed % 4) as f64 / 3.0;
                measured.extend(curves(workload, policy, seed, level));
            }
        }
    }
    let mut published = measured.clone();
    for value in published.iter_mut().flat_map(|curve| &mut curve.values) {
        *value *= 0.995;
    }
    let comparison = openb::comparison(&runs, &measured, &published);
    Report {
        title: "Filling a cluster until nothing fits".to_owned(),
        subtitle: "Six policies, ten orders of arrival each, 1,213 nodes with 6,212 GPUs"
            .to_owned(),
        facts: facts(&[
            ("nodes", "openb_node_list_gpu_node.csv"),
            ("seeds", "42 to 51"),
        ]),
        panels: openb::panels(&runs, &measured, &published),
        runs,
        tables: vec![comparison],
    }
}

fn curves(workload: &str, policy: &str, seed: u64, level: f64) -> Vec<Curve> {
    let one = |metric, value: &dyn Fn(f64) -> f64| Curve {
        workload: workload.to_owned(),
        policy: policy.to_owned(),
        seed,
        metric,
        values: (0..=130).map(|x| value(f64::from(x))).collect(),
    };
    let used = |x: f64| {
        if x < 85.0 {
            x
        } else {
            85.0 + (level - 85.0) * (1.0 - (-(x - 85.0) / 9.0).exp())
        }
    };
    let lost = |x: f64| (10.0 + x / 30.0).min(100.0 - used(x)) * (1.0 + (95.0 - level) / 60.0);
    vec![
        one(Metric::Alloc, &used),
        one(Metric::FragAmount, &lost),
        one(Metric::FragRatio, &|x| {
            100.0 * (lost(x) / (100.0 - used(x))).min(1.0)
        }),
    ]
}
