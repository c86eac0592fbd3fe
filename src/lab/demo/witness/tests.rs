use super::*;
use crate::lab::demo::workload;
use serde_json::json;

/// A witness of one gang of two pods, on a node of 8 GPUs.
fn witness() -> Witness {
    let mut gang = workload::gangs(0, Duration::from_secs(100)).remove(0);
    gang.name = "train".into();
    (gang.pods, gang.minimum) = (2, 2);
    let node = json!({
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"nvidia.com/gpu": "8", "pods": "10"}},
    });
    Witness::new(vec![gang], &[serde_json::from_value(node).unwrap()])
}

fn pod(uid: &str, node: Option<&str>, phase: &str) -> Pod {
    let gpus = json!({"requests": {"nvidia.com/gpu": "6"}});
    serde_json::from_value(json!({
        "metadata": {"uid": uid, "name": uid, "namespace": "demo",
            "labels": {"app.kubernetes.io/instance": "train"}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": gpus}]},
        "status": {"phase": phase},
    }))
    .unwrap()
}

fn used(witness: &Witness) -> u64 {
    witness.gpus().0
}

#[test]
fn a_pod_holds_its_node_from_its_binding_to_its_end() {
    let (mut witness, now) = (witness(), Instant::now());
    witness.saw(&pod("a", None, "Pending"), now);
    assert_eq!((used(&witness), witness.binds), (0, 0));
    for phase in ["Pending", "Running", "Running"] {
        witness.saw(&pod("a", Some("n1"), phase), now);
        assert_eq!((used(&witness), witness.binds), (6, 1));
    }
    witness.saw(&pod("a", Some("n1"), "Succeeded"), now);
    witness.gone("a", now);
    assert_eq!((used(&witness), witness.evictions.len()), (0, 0));
    assert_eq!(witness.violations, Vec::<String>::new());
}

#[test]
fn a_gang_starts_with_its_minimum_and_ends_with_its_last_pod() {
    let (mut witness, start) = (witness(), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    witness.submitted("train", start);
    witness.saw(&pod("a", Some("n1"), "Running"), at(1));
    assert!(witness.courses["train"].is_waiting());
    witness.saw(&pod("b", Some("n2"), "Running"), at(3));
    let course = &witness.courses["train"];
    assert_eq!(course.waited(at(9)), Duration::from_secs(3));
    assert_eq!(course.longest_partial, Duration::from_secs(2));
    witness.saw(&pod("a", Some("n1"), "Succeeded"), at(5));
    assert!(witness.courses["train"].is_running());
    witness.saw(&pod("b", Some("n2"), "Failed"), at(6));
    assert_eq!(witness.courses["train"].ended, None, "another comes");
    witness.saw(&pod("c", Some("n2"), "Succeeded"), at(7));
    assert_eq!(witness.courses["train"].ended, Some(at(7)));
    witness.gone("a", at(8));
    assert_eq!(witness.courses["train"].ended, Some(at(7)), "done is done");
}

#[test]
fn a_pod_that_goes_before_its_end_was_evicted_and_its_gang_waits_again() {
    let (mut witness, now) = (witness(), Instant::now());
    witness.submitted("train", now);
    witness.saw(&pod("a", Some("n1"), "Running"), now);
    witness.gone("a", now);
    let queue = witness.courses["train"].gang.queue;
    assert_eq!(used(&witness), 0);
    assert_eq!(witness.evictions, [(queue, 1)].into());
    assert!(witness.courses["train"].is_waiting());
}

#[test]
fn a_pod_that_fails_because_it_was_evicted_counts_as_evicted_when_it_is_gone() {
    for (reason, evictions) in [("EvictionByEvictionAPI", 1), ("DeletionByTaintManager", 0)] {
        let (mut witness, now) = (witness(), Instant::now());
        witness.submitted("train", now);
        witness.saw(&pod("a", Some("n1"), "Running"), now);
        let mut failed = pod("a", Some("n1"), "Failed");
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": reason});
        failed.status.as_mut().unwrap().conditions =
            vec![serde_json::from_value(condition).unwrap()];
        witness.saw(&failed, now);
        assert_eq!((used(&witness), witness.evictions.len()), (0, 0));
        witness.gone("a", now);
        assert_eq!(witness.evictions.values().sum::<u64>(), evictions);
        assert!(witness.courses["train"].is_waiting());
    }
}

#[test]
fn a_list_gives_back_the_room_of_pods_that_have_ended_before_others_take_it() {
    let (mut witness, now) = (witness(), Instant::now());
    witness.saw(&pod("b", Some("n1"), "Running"), now);
    let now_there = [
        pod("a", Some("n1"), "Running"),
        pod("b", Some("n1"), "Succeeded"),
    ];
    witness.saw_all(&now_there, now);
    assert_eq!((used(&witness), witness.violations.len()), (6, 0));
    witness.saw_all(
        &[
            pod("a", Some("n1"), "Succeeded"),
            pod("c", Some("n1"), "Running"),
        ],
        now,
    );
    assert_eq!((used(&witness), witness.violations.len()), (6, 0));
}

#[test]
fn what_breaks_a_rule_is_written_down() {
    let check = |pods: &[Pod], expected: &str| {
        let mut witness = witness();
        for pod in pods {
            witness.saw(pod, Instant::now());
        }
        assert_eq!(witness.violations, [expected]);
    };
    check(
        &[
            pod("a", Some("n1"), "Running"),
            pod("b", Some("n1"), "Running"),
        ],
        "n1 holds 12 nvidia.com/gpu and has 8",
    );
    check(
        &[pod("a", Some("n9"), "Running")],
        "pod demo/a is on n9, which is no node of the demo",
    );
    check(
        &[
            pod("a", Some("n1"), "Succeeded"),
            pod("a", Some("n2"), "Succeeded"),
        ],
        "pod demo/a was bound to n1, then to n2",
    );
}
