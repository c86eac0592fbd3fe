use super::*;
use gpu_batch_policies::facts::{Placement, PlacementChoice};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::{MemberCounts, Phase, PodGroupStatus, Staleness};
use serde_json::{Value, json};

fn facts(spec: Value) -> PodGroupFacts {
    let object = json!({
        "metadata": {"name": "train", "namespace": "vision", "generation": 2,
                     "creationTimestamp": "1970-01-01T00:00:01Z"},
        "spec": spec,
    });
    let decoded = serde_json::from_value(object).unwrap();
    pod_group(decoded, &Converter::new("gpu-batch", 5_000))
}

#[test]
fn a_pod_group_is_read_in_full() {
    let facts = facts(json!({
        "queue": "team-vision",
        "minMember": 8,
        "priorityClassName": "train",
        "preemptible": false,
        "topology": {"name": "fabric", "required": "rack", "preferred": "nvlink-domain"},
        "placement": "spread",
        "expectedRuntime": "2h",
        "preemptionDelay": "5m",
        "stalenessGracePeriod": "-1s",
    }));
    let expected = PodGroupFacts {
        source: GroupSource::GpuBatch,
        namespace: "vision".into(),
        name: "train".into(),
        uid: identity::named_uid("PodGroup", "vision", "train", ""),
        generation: 2,
        created_ms: 1_000,
        queue: Some("team-vision".into()),
        minimum: 8,
        sub_groups: Vec::new(),
        min_sub_groups: None,
        priority_class: Some("train".into()),
        priority: None,
        preemptible: Some(false),
        topology: Some(TopologyConstraint {
            name: Some("fabric".into()),
            required: Some("rack".into()),
            preferred: Some("nvlink-domain".into()),
        }),
        required_label: None,
        placement: PlacementChoice {
            gpu: Some(Placement::Spread),
            cpu: Some(Placement::Spread),
        },
        expected_runtime_ms: Some(7_200_000),
        preemption_delay_ms: Some(300_000),
        staleness_grace_ms: Some(-1_000),
        unsupported: Vec::new(),
        problems: Vec::new(),
        unknown_keys: Vec::new(),
        status: None,
        is_told_by_other: false,
    };
    assert_eq!(facts, expected);
}

#[test]
fn an_empty_spec_is_a_gang_of_one() {
    for spec in [
        json!(null),
        json!({}),
        json!({"queue": "", "minMember": null}),
    ] {
        let facts = facts(spec);
        assert_eq!(facts.minimum, 1);
        assert_eq!(
            (facts.queue, facts.topology, facts.preemptible),
            (None, None, None)
        );
        assert_eq!((facts.unsupported.len(), facts.problems.len()), (0, 0));
    }
}

#[test]
fn each_wrong_field_is_one_problem_with_its_path() {
    for (spec, field) in [
        (json!([]), "spec"),
        (json!({"queue": ["a"]}), "spec.queue"),
        (json!({"minMember": 0}), "spec.minMember"),
        (json!({"minMember": -8}), "spec.minMember"),
        (json!({"minMember": 1u64 << 63}), "spec.minMember"),
        (json!({"minMember": 1e100}), "spec.minMember"),
        (json!({"minMember": "8"}), "spec.minMember"),
        (json!({"preemptible": "yes"}), "spec.preemptible"),
        (json!({"topology": "rack"}), "spec.topology"),
        (
            json!({"topology": {"required": 1}}),
            "spec.topology.required",
        ),
        (json!({"placement": ["binpack"]}), "spec.placement"),
        (json!({"placement": {"cpu": "tight"}}), "spec.placement.cpu"),
        (json!({"expectedRuntime": "2 h"}), "spec.expectedRuntime"),
        (json!({"expectedRuntime": "0s"}), "spec.expectedRuntime"),
        (
            json!({"expectedRuntime": "8766000h"}),
            "spec.expectedRuntime",
        ),
        (json!({"preemptionDelay": "-5m"}), "spec.preemptionDelay"),
        (
            json!({"stalenessGracePeriod": 60}),
            "spec.stalenessGracePeriod",
        ),
        (json!({"subGroups": 1}), "spec.subGroups"),
    ] {
        let text = spec.to_string();
        let facts = facts(spec);
        let fields: Vec<&str> = facts
            .problems
            .iter()
            .map(|problem| &*problem.field)
            .collect();
        assert_eq!(fields, [field], "{text}");
        assert_eq!(facts.unsupported, [], "{text}");
    }
}

/// The problems of a spec: each field with its message.
fn told(spec: Value) -> Vec<String> {
    let problems = facts(spec).problems.into_iter();
    let told = problems.map(|problem| format!("{}: {}", problem.field, problem.message));
    told.collect()
}

#[test]
fn a_field_that_there_is_not_is_told_with_what_may_be_meant() {
    for (spec, says) in [
        (
            json!({"placement": {"tpu": "binpack"}}),
            "spec.placement.tpu: there is no such field; did you mean cpu or gpu?",
        ),
        (
            json!({"minMembers": 8}),
            "spec.minMembers: there is no such field; did you mean minMember?",
        ),
        (
            json!({"topology": {"forbidden": "rack"}}),
            "spec.topology.forbidden: there is no such field",
        ),
        (
            json!({"subGroups": [{"name": "a", "minmember": 2}]}),
            "spec.subGroups[0].minmember: there is no such field; did you mean minMember?",
        ),
    ] {
        assert_eq!(told(spec), [says]);
    }
}

#[test]
fn a_field_of_another_type_is_told_in_plain_words() {
    for (spec, says) in [
        (
            json!({"minMember": "three"}),
            "spec.minMember: \"three\" is not a whole number from 1 to 1000000",
        ),
        (
            json!({"minMember": 0}),
            "spec.minMember: 0 is not a whole number from 1 to 1000000",
        ),
        (
            json!({"minMember": 1.5}),
            "spec.minMember: 1.5 is not a whole number from 1 to 1000000",
        ),
        (json!({"queue": ["a"]}), "spec.queue: a list is not a text"),
        (
            json!({"preemptible": "no"}),
            "spec.preemptible: \"no\" is not true or false",
        ),
        (
            json!({"subGroups": {}}),
            "spec.subGroups: an object is not a list",
        ),
        (
            json!({"subGroups": ["prefill"]}),
            "spec.subGroups[0]: is not an object that can be read",
        ),
        (
            json!({"topology": "rack"}),
            "spec.topology: is not an object that can be read",
        ),
        (
            json!({"stalenessGracePeriod": 60}),
            "spec.stalenessGracePeriod: 60 is not a duration such as 90s, 10m or 2h30m",
        ),
        (
            json!({"expectedRuntime": "0s"}),
            "spec.expectedRuntime: `0s` must be longer than 0s",
        ),
        (
            json!({"preemptionDelay": "8766000h"}),
            "spec.preemptionDelay: `8766000h` is too long; write it in hours, at most 876000h, which \
             is a hundred years",
        ),
    ] {
        assert_eq!(told(spec), [says]);
    }
}

#[test]
fn sub_groups_are_read() {
    let facts = facts(json!({"subGroups": [
        {"name": "prefill", "parent": "", "minMember": 2},
        {"name": "left", "parent": "prefill"},
        {"minMember": 0},
    ], "minMember": 3}));
    assert_eq!(
        facts.sub_groups,
        [
            SubGroupFacts::new("prefill", "", Some(2)),
            SubGroupFacts::new("left", "prefill", None),
            SubGroupFacts::new("", "", None),
        ]
    );
    let fields: Vec<&str> = facts
        .problems
        .iter()
        .map(|problem| &*problem.field)
        .collect();
    assert_eq!(
        fields,
        [
            "spec.subGroups[2].name",
            "spec.subGroups[2].minMember",
            "spec.minMember"
        ]
    );
    assert_eq!(facts.unsupported, []);
}

#[test]
fn a_flood_of_unknown_fields_is_cut() {
    let spec: serde_json::Map<String, Value> = (0..10_000)
        .map(|index| (format!("field-{index}"), json!(1)))
        .collect();
    assert_eq!(facts(Value::Object(spec)).problems.len(), limits::PROBLEMS);
}

#[test]
fn a_status_is_read_back_as_it_was_written_and_anything_else_is_none() {
    let status = PodGroupStatus {
        observed_generation: 3,
        phase: Phase::Pending,
        members: MemberCounts {
            expected: 8,
            created: 7,
            bound: 6,
            running: 5,
            succeeded: 4,
            failed: 3,
        },
        reason: Some(Reason::MembersLost),
        message: "two members were lost".into(),
        scheduled: false,
        scheduled_since_ms: 1_800_000_000_000,
        staleness: Some(Staleness {
            stale: true,
            since_ms: 1_800_000_001_000,
        }),
        protected: Some(false),
        estimated_start_ms: Some(1_800_000_060_000),
    };
    let written = crate::kube::execute::pod_group_status(&status);
    assert_eq!(written_status(written.clone()), Some(status.clone()));
    for staleness in [
        None,
        Some(Staleness {
            stale: false,
            since_ms: 1_800_000_002_000,
        }),
    ] {
        let status = PodGroupStatus {
            staleness,
            protected: staleness.map(|_| true),
            estimated_start_ms: None,
            ..status.clone()
        };
        let written = crate::kube::execute::pod_group_status(&status);
        assert_eq!(written_status(written), Some(status));
    }
    for (field, value) in [
        ("phase", json!("Resting")),
        ("reason", json!("Boredom")),
        ("members", json!({"expected": 8})),
        ("members", json!({"expected": -1})),
        ("conditions", json!([])),
        ("message", json!(null)),
        ("observedGeneration", json!("3")),
    ] {
        let mut other = written.clone();
        other[field] = value;
        assert_eq!(written_status(other), None, "{field}");
    }
    assert_eq!(written_status(json!(null)), None);
}
