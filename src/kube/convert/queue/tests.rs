use super::*;
use gpu_batch_policies::facts::{
    MatchOperator, Placement, PlacementChoice, Problem, SelectorRequirement,
};
use gpu_batch_policies::status::QueueStatus;
use serde_json::{Value, json};

const NOW_MS: u64 = 1_795_255_200_000;

fn facts(spec: Value) -> QueueFacts {
    let object = json!({"metadata": {"name": "q", "generation": 3}, "spec": spec});
    let decoded = serde_json::from_value(object).unwrap();
    queue(decoded, &Converter::new("gpu-batch", NOW_MS))
}

fn fields(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|problem| &*problem.field).collect()
}

#[test]
fn a_queue_is_read_in_full() {
    let facts = facts(json!({
        "parent": "research",
        "priority": -1,
        "resources": [
            {"name": "nvidia.com/gpu", "product": "NVIDIA-H100-80GB-HBM3", "quota": "16",
             "limit": "64", "weight": 2},
            {"name": "cpu", "quota": 1.5},
        ],
        "preemptMinRuntime": "10m",
        "reclaimMinRuntime": "2h30m",
        "placement": {"gpu": "binpack", "cpu": "spread"},
        "namespaceSelector": {
            "matchLabels": {"team": "vision"},
            "matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["test"]}],
        },
        "closed": true,
    }));
    assert_eq!(facts.problems, []);
    assert_eq!((facts.generation, facts.created_ms), (3, NOW_MS));
    assert_eq!(facts.parent.as_deref(), Some("research"));
    assert_eq!(facts.priority, -1);
    let gpus = QueueResource {
        name: "nvidia.com/gpu".into(),
        product: Some("NVIDIA-H100-80GB-HBM3".into()),
        quota: 16_000,
        limit: Some(64_000),
        weight: 2,
    };
    let cpu = QueueResource {
        name: "cpu".into(),
        product: None,
        quota: 1_500,
        limit: None,
        weight: 1,
    };
    assert_eq!(facts.resources, [gpus, cpu]);
    assert_eq!(facts.preempt_min_runtime_ms, Some(600_000));
    assert_eq!(facts.reclaim_min_runtime_ms, Some(9_000_000));
    let placement = PlacementChoice {
        gpu: Some(Placement::Binpack),
        cpu: Some(Placement::Spread),
    };
    assert_eq!(facts.placement, placement);
    let selector = facts.namespace_selector.unwrap();
    assert_eq!(selector.match_labels, [("team".into(), "vision".into())]);
    let expression = SelectorRequirement {
        key: "env".into(),
        operator: MatchOperator::NotIn,
        values: vec!["test".into()],
    };
    assert_eq!(selector.match_expressions, [expression]);
    assert!(facts.closed);
}

#[test]
fn an_empty_spec_is_a_queue_with_the_defaults() {
    for spec in [
        json!(null),
        json!({}),
        json!({"parent": "", "resources": null}),
    ] {
        let text = spec.to_string();
        let facts = facts(spec);
        assert_eq!(facts.problems, [], "{text}");
        assert_eq!(
            (facts.parent, facts.priority, facts.closed),
            (None, 0, false)
        );
        assert_eq!(facts.namespace_selector, None);
    }
    assert_eq!(
        facts(json!({"namespaceSelector": {}})).namespace_selector,
        Some(Default::default())
    );
}

fn check(spec: Value, field: &str) {
    let text = spec.to_string();
    let facts = facts(spec);
    assert_eq!(fields(&facts.problems), [field], "{text}");
}

#[test]
fn each_wrong_field_is_one_problem_with_its_path() {
    let gt = json!([{"key": "a", "operator": "Gt", "values": ["1"]}]);
    let selector = |selector: Value| json!({"namespaceSelector": selector});
    let long = "x".repeat(limits::TEXT + 1);
    for (spec, field) in [
        (json!({"parent": 5}), "parent"),
        (json!({"parent": long}), "parent"),
        (json!({"priority": "high"}), "priority"),
        (json!({"priority": 1i64 << 40}), "priority"),
        (json!({"resources": {}}), "resources"),
        (json!({"resources": [1]}), "resources[0]"),
        (json!({"preemptMinRuntime": "-1s"}), "preemptMinRuntime"),
        (json!({"reclaimMinRuntime": 600}), "reclaimMinRuntime"),
        (json!({"placement": "tight"}), "placement"),
        (json!({"placement": {"gpu": "random"}}), "placement.gpu"),
        (json!({"placement": {"tpu": "binpack"}}), "placement.tpu"),
        (selector(json!("all")), "namespaceSelector"),
        (
            selector(json!({"matchLabels": {"a": 1}})),
            "namespaceSelector.matchLabels.a",
        ),
        (selector(json!({"labels": {}})), "namespaceSelector.labels"),
        (
            selector(json!({"matchExpressions": gt})),
            "namespaceSelector.matchExpressions[0].operator",
        ),
        (json!({"closed": "no"}), "closed"),
        (json!({"quota": {}}), "quota"),
    ] {
        check(spec, &format!("spec.{field}"));
    }
    check(json!("all"), "spec");
}

/// A slip in writing a min-runtime evicts no gang.
#[test]
fn while_a_min_runtime_cannot_be_read_gangs_may_run_for_ever() {
    let wrong = facts(json!({"preemptMinRuntime": "-5m", "reclaimMinRuntime": "0.5h"}));
    assert_eq!(wrong.problems.len(), 2);
    let runtimes = [wrong.preempt_min_runtime_ms, wrong.reclaim_min_runtime_ms];
    assert!(runtimes.iter().all(|ms| ms.is_some_and(|ms| ms > 1 << 40)));
    let none = facts(json!({"reclaimMinRuntime": null}));
    assert_eq!(
        (none.preempt_min_runtime_ms, none.reclaim_min_runtime_ms),
        (None, None)
    );
}

#[test]
fn each_wrong_field_of_an_entry_is_one_problem_with_its_path() {
    for (entry, field) in [
        (json!({"quota": "1"}), "name"),
        (json!({"name": "cpu", "product": "x"}), "product"),
        (
            json!({"name": "example.com/hca", "product": "x"}),
            "product",
        ),
        (
            json!({"name": "nvidia.com/mig-1g.10gb", "product": "x"}),
            "product",
        ),
        (
            json!({"name": "nvidia.com/gpu.shared", "product": "x"}),
            "product",
        ),
        (
            json!({"name": "nvidia.com/gpu", "product": "X-SHARED"}),
            "product",
        ),
        (
            json!({"name": "nvidia.com/gpu", "product": "X-MIG-1g.5gb"}),
            "product",
        ),
        (
            json!({"name": "nvidia.com/gpu", "quota": "0.0005"}),
            "quota",
        ),
        (json!({"name": "nvidia.com/gpu", "limit": "1500u"}), "limit"),
        (json!({"name": "nvidia.com/gpu", "quota": "1e14"}), "quota"),
        (json!({"name": "example.com/hca", "quota": "0.5"}), "quota"),
        (
            json!({"name": "nvidia.com/mig-1g.10gb", "limit": "1500m"}),
            "limit",
        ),
        (json!({"name": "cpu", "quota": "many"}), "quota"),
        (json!({"name": "cpu", "quota": "-1"}), "quota"),
        (json!({"name": "cpu", "quota": "1e100"}), "quota"),
        (json!({"name": "cpu", "quota": []}), "quota"),
        (json!({"name": "cpu", "limit": true}), "limit"),
        (json!({"name": "cpu", "quota": "2", "limit": "1"}), "limit"),
        (json!({"name": "cpu", "weight": -1}), "weight"),
        (json!({"name": "cpu", "weight": 65_536}), "weight"),
        (json!({"name": "cpu", "weight": 0.5}), "weight"),
        (json!({"name": "cpu", "share": 1}), "share"),
    ] {
        check(
            json!({"resources": [entry]}),
            &format!("spec.resources[0].{field}"),
        );
    }
    let twice = json!({"resources": [{"name": "cpu"}, {"name": "cpu"}]});
    check(twice, "spec.resources[1].name");
}

#[test]
fn parts_of_cards_are_read_to_a_thousandth() {
    for (quota, limit, expected) in [
        ("0.5", "1500m", (500, 1_500)),
        ("1m", "2", (1, 2_000)),
        ("0.250", "36028797018963", (250, 36_028_797_018_963_000)),
    ] {
        let entry = json!({"name": "nvidia.com/gpu", "quota": quota, "limit": limit});
        let facts = facts(json!({"resources": [entry]}));
        assert_eq!(facts.problems, [], "{quota} {limit}");
        let read = &facts.resources[0];
        assert_eq!((read.quota, read.limit), (expected.0, Some(expected.1)));
    }
    let finer = facts(json!({"resources": [{"name": "nvidia.com/gpu", "quota": "0.0005"}]}));
    let message = "`0.0005` is finer than a thousandth of a card";
    assert_eq!(&*finer.problems[0].message, message);
}

#[test]
fn more_resources_than_the_limit_are_refused() {
    let with = |count: usize| {
        let entries: Vec<Value> = (0..count)
            .map(|index| json!({"name": format!("example.com/{index}")}))
            .collect();
        facts(json!({"resources": entries}))
    };
    let most = with(limits::QUEUE_RESOURCES);
    assert_eq!(
        (most.resources.len(), most.problems.len()),
        (limits::QUEUE_RESOURCES, 0)
    );
    let more = with(limits::QUEUE_RESOURCES + 1);
    assert_eq!(
        (more.resources.len(), more.problems.len()),
        (limits::QUEUE_RESOURCES, 1)
    );
}

#[test]
fn what_was_learned_is_read_back_as_it_was_written_and_anything_else_is_nothing() {
    let learned = LearnedRuntimes {
        seconds: vec![60, u32::MAX],
        owners: vec![OwnerRuntimes {
            owner: "vision/job/nightly".into(),
            seconds: vec![60],
        }],
    };
    let status = QueueStatus {
        runtimes: Some(learned.clone()),
        past_use: Some(PastUse {
            at_ms: NOW_MS,
            averages: vec![("nvidia.com/gpu".into(), 1_500)],
        }),
        ..QueueStatus::default()
    };
    let read = |status: Value| {
        let object = json!({"metadata": {"name": "q"}, "spec": {}, "status": status});
        let decoded = serde_json::from_value(object).unwrap();
        queue(decoded, &Converter::new("gpu-batch", NOW_MS))
    };
    let mut written = crate::kube::execute::queue_status(&status);
    assert!(!read(written.clone()).is_told_by_other, "nobody says");
    for (scheduler, is_other) in [("gpu-batch", false), ("night-shift", true)] {
        written["scheduler"] = json!(scheduler);
        assert_eq!(read(written.clone()).is_told_by_other, is_other);
    }
    let facts = read(written.clone());
    assert_eq!(
        (facts.runtimes, facts.past_use),
        (Some(learned), status.past_use)
    );
    for runtimes in [
        json!(7),
        json!({"seconds": [-1]}),
        json!({"seconds": [1.5]}),
        json!({"seconds": [1], "owners": [{"seconds": [1]}]}),
    ] {
        let mut other = written.clone();
        other["runtimes"] = runtimes;
        let facts = read(other);
        assert_eq!(facts.runtimes, None);
        assert!(facts.past_use.is_some(), "one does not spoil the other");
    }
}
