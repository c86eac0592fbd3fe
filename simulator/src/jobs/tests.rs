//! Small traces whose results can be worked out by hand.

use super::fairness::fairness;
use super::output::{evaluate, write_fairness, write_jobs, write_summary};
use super::summary::{seconds, summaries};
use super::*;
use crate::trace::jobs::Job;

/// A trace in a few words: (queue, submit, duration, GPUs); rows count from 1.
pub(super) fn trace(jobs: &[(&str, u64, u64, u32)]) -> Jobs {
    let mut trace = Jobs::default();
    for ((queue, submit_s, duration_s, num_gpus), row) in jobs.iter().zip(1..) {
        let known = trace.queues.iter().position(|known| known == queue);
        let queue = known.unwrap_or_else(|| {
            trace.queues.push((*queue).to_owned());
            trace.queues.len() - 1
        });
        trace.jobs.push(Job {
            row,
            submit_s: *submit_s,
            duration_s: *duration_s,
            num_gpus: *num_gpus,
            queue: u32::try_from(queue).unwrap(),
            checkpoint_s: None,
            expected_s: None,
            owner: None,
        });
    }
    trace
}

pub(super) fn queues(queues: &[(&str, u32)]) -> Vec<TraceQueue> {
    let queues = queues.iter().map(|(name, nodes)| TraceQueue {
        name: (*name).to_owned(),
        nodes: *nodes,
    });
    queues.collect()
}

pub(super) fn run(policy: Policy, jobs: &Jobs, queues: &[TraceQueue]) -> Run {
    let workload = workload(jobs, queues);
    let execution = Execution {
        threads: NonZeroUsize::MIN,
        events: &AtomicU64::new(0),
        fair_shares_every_s: None,
    };
    simulate(&[policy], workload, execution).remove(0)
}

pub(super) fn workload<'a>(jobs: &'a Jobs, queues: &'a [TraceQueue]) -> Workload<'a> {
    Workload {
        jobs,
        queues,
        gpus_per_node: 8,
    }
}

fn starts(policy: Policy, jobs: &[(&str, u64, u64, u32)], nodes: &[(&str, u32)]) -> Vec<i64> {
    let run = run(policy, &trace(jobs), &queues(nodes));
    let starts = run.starts_s.iter();
    let start = |start: &Option<u64>| start.map_or(-1, |start| i64::try_from(start).unwrap());
    starts.map(start).collect()
}

#[test]
fn the_first_in_line_keeps_the_others_waiting_or_not() {
    let jobs = [
        ("a", 0, 100, 4),
        ("a", 1, 10, 8),
        ("a", 2, 5, 1),
        ("a", 3, 7, 4),
    ];
    let nodes = [("a", 1)];
    assert_eq!(starts(Policy::Fifo, &jobs, &nodes), [0, 100, 110, 110]);
    assert_eq!(starts(Policy::FirstFit, &jobs, &nodes), [0, 100, 2, 7]);
    // When the 8 GPUs come, nobody shorter waits; those that come later wait behind them.
    assert_eq!(starts(Policy::Sjf, &jobs, &nodes), [0, 100, 2, 7]);
}

#[test]
fn jobs_of_one_second_are_tried_in_the_order_of_the_trace() {
    let jobs: Vec<_> = (0..12).map(|job| ("a", 0, 10 + job, 8)).collect();
    let expected: Vec<i64> = (0..12)
        .map(|job| (0..job).map(|job| 10 + job).sum())
        .collect();
    assert_eq!(starts(Policy::Fifo, &jobs, &[("a", 1)]), expected);
}

#[test]
fn gangs_and_single_pods_of_one_second_are_tried_in_the_order_of_the_trace() {
    let jobs = [
        ("a", 0, 10, 16),
        ("a", 0, 10, 1),
        ("a", 0, 10, 12),
        ("a", 0, 10, 1),
    ];
    assert_eq!(starts(Policy::Fifo, &jobs, &[("a", 2)]), [0, 10, 10, 10]);
    assert_eq!(starts(Policy::Drf, &jobs, &[("a", 2)]), [0, 10, 10, 10]);
}

#[test]
fn the_rest_of_a_gang_goes_to_the_emptiest_node() {
    // 12 GPUs go to the empty nodes 1 and 2, and not to node 0 where 4 fit exactly: the 4 that
    // follow find them there, and the 8 after those wait.
    let jobs = [
        ("a", 0, 100, 4),
        ("a", 1, 10, 12),
        ("a", 2, 10, 4),
        ("a", 3, 10, 8),
    ];
    assert_eq!(starts(Policy::Fifo, &jobs, &[("a", 3)]), [0, 1, 2, 11]);
    let tight = [("a", 0, 100, 4), ("a", 1, 10, 12), ("a", 2, 10, 8)];
    assert_eq!(starts(Policy::Fifo, &tight, &[("a", 3)]), [0, 1, 11]);
    assert_eq!(starts(Policy::Drf, &tight, &[("a", 3)]), [0, 1, 2]);
}

#[test]
fn a_job_that_takes_no_time_ends_in_the_second_of_its_start() {
    let jobs = [("a", 5, 0, 8), ("a", 5, 0, 8), ("a", 5, 1, 8)];
    assert_eq!(starts(Policy::Fifo, &jobs, &[("a", 1)]), [5, 5, 5]);
}

#[test]
fn under_drf_queues_borrow_and_give_back() {
    // `b` has nothing to do at first, and `a` borrows all it has. When a job of `a` ends, `b` is
    // below its quota and goes first.
    let jobs = [
        ("a", 0, 10, 8),
        ("a", 0, 20, 8),
        ("a", 1, 10, 8),
        ("b", 2, 10, 8),
    ];
    let nodes = [("a", 1), ("b", 1)];
    assert_eq!(starts(Policy::Drf, &jobs, &nodes), [0, 0, 20, 10]);
    assert_eq!(starts(Policy::FirstFit, &jobs, &nodes), [0, 10, 30, 2]);
}

#[test]
fn under_drf_equal_queues_share_what_nobody_owns() {
    let mut jobs = vec![("c", 0, 10, 8); 8];
    jobs.extend([("a", 1, 10, 1); 40]);
    jobs.extend([("b", 1, 10, 1); 40]);
    let run = run(
        Policy::Drf,
        &trace(&jobs),
        &queues(&[("a", 0), ("b", 0), ("c", 8)]),
    );
    let at = |s: u64, range: std::ops::Range<usize>| {
        let starts = &run.starts_s[range];
        starts.iter().filter(|start| **start == Some(s)).count()
    };
    assert_eq!((at(10, 8..48), at(10, 48..88)), (32, 32));
    assert_eq!((at(20, 8..48), at(20, 48..88)), (8, 8));
}

#[test]
fn what_never_runs_is_told_and_keeps_nobody_waiting() {
    let jobs = [
        ("a", 0, 10, 9),
        ("a", 1, 10, 8),
        ("nobody", 2, 10, 1),
        ("idle", 3, 10, 1),
    ];
    let nodes = [("a", 1), ("idle", 0)];
    let fifo = run(Policy::Fifo, &trace(&jobs), &queues(&nodes));
    assert_eq!(fifo.starts_s, [None, Some(1), None, None]);
    let told: Vec<_> = fifo.never.iter().map(|it| (it.job, &*it.why)).collect();
    assert_eq!(
        told,
        [
            (0, "it asks for 9 GPUs, and its cluster has 8 on 1 nodes"),
            (2, "its queue is not in the file of queues"),
            (3, "it asks for 1 GPUs, and its cluster has 0 on 0 nodes"),
        ]
    );
    let drf = run(Policy::Drf, &trace(&jobs), &queues(&nodes));
    assert_eq!(drf.starts_s, [None, Some(1), None, Some(11)]);
}

#[test]
fn figures_are_those_that_one_works_out_by_hand() {
    let jobs = trace(&[
        ("a", 0, 10, 8),
        ("a", 1, 10, 8),
        ("b", 4, 7, 8),
        ("c", 5, 1, 1),
    ]);
    let queues = queues(&[("a", 1), ("b", 1)]);
    let run = run(Policy::Fifo, &jobs, &queues);
    let rows: Vec<_> = summaries(&run, workload(&jobs, &queues))
        .into_iter()
        .map(|row| {
            let means = (seconds(row.wait), seconds(row.completion));
            (row.queue, row.jobs, means, row.wait_p99_s, row.makespan_s)
        })
        .collect();
    let means = |wait: &str, completion: &str| (wait.to_owned(), completion.to_owned());
    assert_eq!(
        rows,
        [
            (Some(0), 2, means("4.50", "14.50"), 9, 20),
            (Some(1), 1, means("0.00", "7.00"), 0, 7),
            (None, 3, means("3.00", "12.00"), 9, 20),
        ]
    );
    let fair = fairness(&run, workload(&jobs, &queues));
    assert_eq!(fair.served, [Some(1.0), Some(1.0)]);
    assert_eq!(fair.jain, 1.0);
    // Until second 5: 8 GPUs for 5 s and 8 for one, of 16.
    assert_eq!(fair.utilisation, 0.6);
}

#[test]
fn a_queue_that_waits_within_its_quota_is_served_in_part() {
    // 6 of 8 GPUs are busy for 10 s; 4 wait, and only 2 of them are within the quota.
    let jobs = trace(&[("a", 0, 10, 6), ("a", 0, 10, 4), ("b", 0, 20, 8)]);
    let queues = queues(&[("a", 1), ("b", 1)]);
    let run = run(Policy::Fifo, &jobs, &queues);
    let fair = fairness(&run, workload(&jobs, &queues));
    // 10 s at 6 of 8, and 10 s at 4 of 4.
    assert_eq!(fair.served, [Some(0.833_333), Some(1.0)]);
    assert_eq!(fair.worst(), Some((0, 0.833_333)));
    assert!(fair.jain > 0.99 && fair.jain < 1.0);
}

#[test]
fn files_have_their_columns() {
    let jobs = trace(&[("a,b", 0, 10, 8), ("a,b", 1, 10, 16)]);
    let queues = queues(&[("a,b", 1)]);
    let workload = workload(&jobs, &queues);
    let runs = [evaluate(run(Policy::FirstFit, &jobs, &queues), workload)];
    let mut file = Vec::new();
    write_jobs(&runs, workload, &mut file).unwrap();
    assert_eq!(
        String::from_utf8(file).unwrap(),
        "policy,row,queue,start_s,end_s\nfirst-fit,1,\"a,b\",0,10\nfirst-fit,2,\"a,b\",,\n"
    );
    let mut file = Vec::new();
    write_summary(&runs, workload, &mut file).unwrap();
    assert_eq!(
        String::from_utf8(file).unwrap(),
        "policy,queue,jobs,avg_jct_s,avg_queue_s,p99_queue_s,makespan_s\n\
         first-fit,\"a,b\",1,10.00,0.00,0,10\nfirst-fit,ALL,1,10.00,0.00,,\n"
    );
    let mut file = Vec::new();
    write_fairness(&runs, workload, &mut file).unwrap();
    assert_eq!(
        String::from_utf8(file).unwrap(),
        "policy,utilisation,jain,worst_queue,worst_served\n\
         first-fit,1.000000,1.000000,\"a,b\",1.000000\n"
    );
}
