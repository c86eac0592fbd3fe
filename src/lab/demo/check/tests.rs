use super::*;
use crate::lab::demo::workload;
use serde_json::json;

const NOW_LATER: Duration = Duration::from_secs(60);

fn node(name: &str, rack: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"example.com/rack": rack}},
        "status": {"allocatable": {"nvidia.com/gpu": "8", "pods": "10"}},
    }))
    .unwrap()
}

fn pod(gang: &str, index: u32, node: &str, phase: &str) -> Pod {
    let gpus = json!({"requests": {"nvidia.com/gpu": "6"}});
    serde_json::from_value(json!({
        "metadata": {"uid": format!("{gang}-{index}-{node}"), "labels": {
            "app.kubernetes.io/instance": gang,
            "batch.kubernetes.io/job-completion-index": index.to_string(),
        }},
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": gpus}]},
        "status": {"phase": phase},
    }))
    .unwrap()
}

/// `pair` needs two members in one rack; `lone` is a single pod.
fn violations(pods: &[Pod]) -> Vec<String> {
    let mut gangs = workload::gangs(0, Duration::from_secs(100));
    gangs.truncate(2);
    for (gang, (name, pods)) in gangs.iter_mut().zip([("pair", 2), ("lone", 1)]) {
        gang.name = name.into();
        (gang.pods, gang.minimum) = (pods, pods);
        gang.traits = Traits::OneRack;
    }
    let nodes = [node("n1", "r1"), node("n2", "r1"), node("n3", "r2")];
    let witness = Witness::new(gangs, &nodes);
    let checks = all(&witness, &nodes, pods, Instant::now() + NOW_LATER);
    checks
        .into_iter()
        .flat_map(|check| check.violations)
        .collect()
}

#[test]
fn each_broken_promise_is_found_and_no_other() {
    let check = |pods: &[Pod], expected: &[&str]| assert_eq!(violations(pods), expected);
    let first = || pod("pair", 0, "n1", "Running");
    check(&[], &[]);
    check(&[first(), pod("pair", 1, "n2", "Running")], &[]);
    check(&[first()], &["pair has 1 members on nodes and needs 2"]);
    check(
        &[first(), pod("pair", 1, "n1", "Running")],
        &["n1 holds 12 nvidia.com/gpu and has 8"],
    );
    check(&[first(), pod("pair", 1, "n1", "Succeeded")], &[]);
    check(
        &[first(), pod("pair", 1, "n3", "Running")],
        &["pair requires one rack and is in r1, r2"],
    );
    check(
        &[
            pod("lone", 0, "n1", "Running"),
            pod("lone", 0, "n2", "Running"),
        ],
        &["member 0 of lone holds 2 places"],
    );
    check(
        &[pod("lone", 0, "n9", "Running")],
        &["pods are on n9, which is no node"],
    );
}

/// One gang of two pods, both of which it needs.
fn pair() -> Vec<workload::Gang> {
    let mut gangs = workload::gangs(0, Duration::from_secs(100));
    gangs.truncate(1);
    gangs[0].name = "pair".into();
    (gangs[0].pods, gangs[0].minimum) = (2, 2);
    gangs
}

#[test]
fn a_gang_that_was_seen_partly_on_nodes_for_long_is_found_though_it_is_whole_now() {
    let nodes = [node("n1", "r1"), node("n2", "r1")];
    let pods = [
        pod("pair", 0, "n1", "Running"),
        pod("pair", 1, "n2", "Running"),
    ];
    let mut witness = Witness::new(pair(), &nodes);
    let now = Instant::now();
    witness.saw(&pods[0], now);
    witness.saw(&pods[1], now + Duration::from_secs(30));
    let checks = all(&witness, &nodes, &pods, now + NOW_LATER);
    let violations: Vec<&String> = checks.iter().flat_map(|check| &check.violations).collect();
    assert_eq!(violations, ["pair was partly on nodes for 30 s"]);
}

/// An eviction that comes as a pod ends removes the pod, and its Job makes no other one.
#[test]
fn a_member_that_ended_well_and_was_removed_counts_and_one_that_was_taken_does_not() {
    let nodes = [node("n1", "r1"), node("n2", "r1")];
    let found = |removed: &str, left: &str, after: Duration| {
        let mut witness = Witness::new(pair(), &nodes);
        let now = Instant::now();
        let last = [pod("pair", 0, "n1", removed), pod("pair", 1, "n2", left)];
        for pod in [
            pod("pair", 0, "n1", "Running"),
            pod("pair", 1, "n2", "Running"),
        ] {
            witness.saw(&pod, now);
        }
        for pod in &last {
            witness.saw(pod, now);
        }
        witness.gone(&last[0].metadata.uid.clone().unwrap(), now);
        let checks = all(&witness, &nodes, &last[1..], now + after);
        let violations = checks.into_iter().flat_map(|check| check.violations);
        violations.collect::<Vec<String>>()
    };
    let after = 2 * NOW_LATER;
    assert_eq!(found("Succeeded", "Succeeded", after), [""; 0]);
    assert_eq!(found("Succeeded", "Running", after), [""; 0]);
    let broken = ["pair ran below its minimum for 120 s"];
    assert_eq!(found("Running", "Running", after), broken);
    assert_eq!(found("Running", "Succeeded", after), broken);
    assert_eq!(found("Failed", "Running", after), broken);
    // The demo may end while a gang leaves.
    assert_eq!(found("Failed", "Running", Duration::ZERO), [""; 0]);
}

/// A gang from which an eviction took a member has begun as a whole: its other members may stay
/// for the grace period.
#[test]
fn a_gang_of_which_a_member_was_taken_may_stay_in_part_for_a_minute_and_no_longer() {
    let nodes = [node("n1", "r1"), node("n2", "r1")];
    let pods = [
        pod("pair", 0, "n1", "Running"),
        pod("pair", 1, "n2", "Running"),
    ];
    let taken = pods[0].metadata.uid.clone().unwrap();
    let after = |seconds| {
        let mut witness = Witness::new(pair(), &nodes);
        let now = Instant::now();
        witness.saw(&pods[0], now);
        witness.saw(&pods[1], now);
        witness.gone(&taken, now);
        let back = now + Duration::from_secs(seconds);
        witness.saw(&pods[0], back);
        let checks = all(&witness, &nodes, &pods, back + NOW_LATER);
        let violations = checks.into_iter().flat_map(|check| check.violations);
        violations.collect::<Vec<String>>()
    };
    assert_eq!(after(69), [""; 0]);
    assert_eq!(after(71), ["pair ran below its minimum for 71 s"]);
}

#[test]
fn who_shared_no_time_with_a_member_may_be_in_another_rack_and_who_did_may_not() {
    let gangs = || {
        let mut gangs = pair();
        gangs[0].traits = Traits::OneRack;
        gangs
    };
    let nodes = [node("n1", "r1"), node("n3", "r2")];
    let seen = |course: &[Pod]| {
        let mut witness = Witness::new(gangs(), &nodes);
        let now = Instant::now();
        for pod in course {
            witness.saw(pod, now);
        }
        let pods = [
            pod("pair", 0, "n1", "Succeeded"),
            pod("pair", 1, "n3", "Succeeded"),
        ];
        all(&witness, &nodes, &pods, now).remove(3).violations
    };
    let first = |phase| pod("pair", 0, "n1", phase);
    let second = || pod("pair", 1, "n3", "Running");
    let none: [String; 0] = [];
    assert_eq!(
        seen(&[first("Running"), first("Succeeded"), second()]),
        none
    );
    assert_eq!(
        seen(&[first("Running"), second(), first("Succeeded")]),
        ["pair requires one rack and is in r1, r2"]
    );
}
