use super::*;
use gpu_batch_policies::facts::Problem;
use serde_json::{Value, json};

const NOW_MS: u64 = 1_795_255_200_000;

fn hints_of(annotations: Value) -> (GangHints, Vec<Problem>) {
    let pod = json!({"metadata": {"annotations": annotations}});
    let pod = serde_json::from_value(pod).unwrap();
    let mut problems = Problems::default();
    let converter = Converter::new("gpu-batch", NOW_MS);
    let hints = hints(&pod, &converter, &mut problems);
    (hints, problems.into_vec())
}

#[test]
fn every_hint_is_read() {
    let (hints, problems) = hints_of(json!({
        "gpu-batch.io/min-member": "8",
        "gpu-batch.io/expected-runtime": "2h30m",
        "gpu-batch.io/preemptible": "false",
        "gpu-batch.io/placement": "spread",
        "gpu-batch.io/topology-required": "rack",
        "gpu-batch.io/topology-preferred": "nvlink-domain",
        "gpu-batch.io/preemption-delay": "90s",
        "gpu-batch.io/last-checkpoint": "2026-11-21T09:00:00+01:00",
    }));
    let expected = GangHints {
        min_member: Some(8),
        expected_runtime_ms: Some(9_000_000),
        preemptible: Some(false),
        placement: PlacementChoice {
            gpu: Some(Placement::Spread),
            cpu: Some(Placement::Spread),
        },
        topology_required: Some("rack".into()),
        topology_preferred: Some("nvlink-domain".into()),
        preemption_delay_ms: Some(90_000),
        last_checkpoint_ms: Some(NOW_MS - 2 * 3_600_000),
    };
    assert_eq!(hints, expected);
    assert_eq!(problems.len(), 0);
}

#[test]
fn a_bad_value_is_a_problem_that_names_the_annotation() {
    for (name, value) in [
        ("min-member", "0"),
        ("min-member", "-1"),
        ("min-member", "4294967296"),
        ("min-member", "eight"),
        ("expected-runtime", "2 hours"),
        ("expected-runtime", "-1h"),
        ("expected-runtime", "0s"),
        ("expected-runtime", "876001h"),
        ("preemptible", "no"),
        ("placement", "tight"),
        ("topology-required", ""),
        ("preemption-delay", "10"),
        ("last-checkpoint", "yesterday"),
        ("last-checkpoint", "2026-11-21"),
    ] {
        let key = format!("gpu-batch.io/{name}");
        let (hints, problems) = hints_of(json!({&key: value}));
        assert_eq!(hints, GangHints::default(), "{key}: {value}");
        assert_eq!(problems.len(), 1, "{key}: {value}");
        assert_eq!(&*problems[0].field, format!("metadata.annotations[{key}]"));
    }
}

#[test]
fn the_placements_by_score_are_read() {
    for (word, placement) in [
        ("best-fit", Placement::BestFit),
        ("fragmentation", Placement::Fragmentation),
    ] {
        let (hints, problems) = hints_of(json!({"gpu-batch.io/placement": word}));
        assert_eq!(hints.placement.gpu, Some(placement));
        assert_eq!(problems, []);
    }
}

#[test]
fn a_checkpoint_in_the_future_was_now() {
    let (hints, _) = hints_of(json!({"gpu-batch.io/last-checkpoint": "2999-01-01T00:00:00Z"}));
    assert_eq!(hints.last_checkpoint_ms, Some(NOW_MS));
}

#[test]
fn a_pod_runs_no_longer_than_its_deadline() {
    let runtime = |annotations: Value, deadline: i64| {
        let pod = json!({
            "metadata": {"annotations": annotations},
            "spec": {"activeDeadlineSeconds": deadline},
        });
        let pod = serde_json::from_value(pod).unwrap();
        let converter = Converter::new("gpu-batch", NOW_MS);
        hints(&pod, &converter, &mut Problems::default()).expected_runtime_ms
    };
    assert_eq!(runtime(json!({}), 60), Some(60_000));
    assert_eq!(
        runtime(json!({"gpu-batch.io/expected-runtime": "1s"}), 60),
        Some(1_000)
    );
    assert_eq!(
        runtime(json!({"gpu-batch.io/expected-runtime": "1h"}), 60),
        Some(60_000)
    );
    assert_eq!(runtime(json!({}), -1), None);
    assert_eq!(runtime(json!({}), i64::MAX), None);
}
