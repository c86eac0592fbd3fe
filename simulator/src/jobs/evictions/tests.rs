//! Small traces in which jobs are evicted, whose results can be worked out by hand.

use super::*;
use crate::jobs::Policy;
use crate::jobs::output::{evaluate, write_evictions, write_jobs, write_summary};
use crate::jobs::tests::{queues, run, trace, workload};
use crate::trace::queues::TraceQueue;

/// Two queues with a node each.
fn nodes() -> Vec<TraceQueue> {
    queues(&[("a", 1), ("b", 1)])
}

/// A trace in which all jobs save their work so often.
fn saving(every_s: Option<u64>, jobs: &[(&str, u64, u64, u32)]) -> crate::trace::jobs::Jobs {
    let mut trace = trace(jobs);
    for job in &mut trace.jobs {
        job.checkpoint_s = every_s;
    }
    trace
}

/// When the runs of each job of the trace began and ended.
fn runs(every_s: Option<u64>, jobs: &[(&str, u64, u64, u32)]) -> Vec<Vec<(u64, u64)>> {
    let trace = saving(every_s, jobs);
    let run = run(Policy::DrfEvictions, &trace, &nodes());
    let jobs = trace.jobs.iter().enumerate();
    jobs.map(|(index, job)| run.runs_s(index, job).collect())
        .collect()
}

/// `a` borrows the node of `b`, until `b` wants it at second 10.
const BORROWED: [(&str, u64, u64, u32); 3] = [("a", 0, 100, 8), ("a", 5, 100, 8), ("b", 10, 50, 8)];

#[test]
fn what_was_borrowed_is_taken_back() {
    // The younger job loses less. It begins anew when `b` has done.
    let expected = [vec![(0, 100)], vec![(5, 10), (60, 160)], vec![(10, 60)]];
    assert_eq!(runs(None, &BORROWED), expected);
}

#[test]
fn nobody_is_evicted_unless_that_is_asked_for() {
    let trace = trace(&BORROWED);
    for policy in Policy::ALL.into_iter().filter(|policy| !policy.evicts()) {
        assert_eq!(run(policy, &trace, &nodes()).evictions, []);
    }
}

#[test]
fn what_was_saved_stays_saved() {
    // After 5 s, 4 are saved: 96 are left.
    let expected = [vec![(0, 100)], vec![(5, 10), (60, 156)], vec![(10, 60)]];
    assert_eq!(runs(Some(2), &BORROWED), expected);
    // Twice: after 5 s and after 10 s, of which 4 and 8 are saved.
    let twice = [BORROWED.as_slice(), &[("b", 70, 10, 8)]].concat();
    let again = runs(Some(4), &twice);
    assert_eq!(again[1], [(5, 10), (60, 70), (80, 168)]);
    assert_eq!(again[0], [(0, 100)]);
}

#[test]
fn a_gang_leaves_as_a_whole() {
    let gang = [("a", 0, 100, 16), ("b", 10, 50, 4)];
    // `b` needs half a node, and both pods of the gang go.
    assert_eq!(
        runs(None, &gang),
        [vec![(0, 10), (60, 160)], vec![(10, 60)]]
    );
}

#[test]
fn figures_of_evictions_are_those_that_one_works_out_by_hand() {
    let trace = saving(Some(2), &BORROWED);
    let queues = nodes();
    let workload = workload(&trace, &queues);
    let evaluated = evaluate(run(Policy::DrfEvictions, &trace, &queues), workload);
    let lost = Losses {
        evictions: 1,
        lost_gpu_s: 8,
    };
    assert_eq!(evaluated.losses, BTreeMap::from([((0, Some(1)), lost)]));
    assert_eq!(evaluated.lost_by(Some(0)), lost);
    assert_eq!(evaluated.lost_by(Some(1)), Losses::default());
    assert_eq!(evaluated.lost_by(None), lost);
    // The second job waited from 10 to 60.
    assert_eq!(evaluated.run.waited_s(1, &trace.jobs[1]), Some(50));
    assert_eq!(evaluated.fairness.served, [Some(1.0), Some(1.0)]);

    let runs = [evaluated];
    let text = |file: Vec<u8>| String::from_utf8(file).unwrap();
    let mut file = Vec::new();
    write_evictions(&runs, workload, &mut file).unwrap();
    assert_eq!(
        text(file),
        "policy,time_s,row,queue,cause,for_row,for_queue,gpu_seconds_lost\n\
         drf+evictions,10,2,a,Reclaim,3,b,8\n"
    );
    let mut file = Vec::new();
    write_jobs(&runs, workload, &mut file).unwrap();
    assert_eq!(
        text(file),
        "policy,row,queue,start_s,end_s,evictions,gpu_seconds_lost\n\
         drf+evictions,1,a,0,100,0,0\n\
         drf+evictions,2,a,5,156,1,8\n\
         drf+evictions,3,b,10,60,0,0\n"
    );
    let mut file = Vec::new();
    write_summary(&runs, workload, &mut file).unwrap();
    assert_eq!(
        text(file),
        "policy,queue,jobs,avg_jct_s,avg_queue_s,p99_queue_s,makespan_s,evictions,gpu_seconds_lost\n\
         drf+evictions,a,2,125.50,25.00,50,156,1,8\n\
         drf+evictions,b,1,50.00,0.00,0,50,0,0\n\
         drf+evictions,ALL,3,100.33,16.67,,,1,8\n"
    );
}
