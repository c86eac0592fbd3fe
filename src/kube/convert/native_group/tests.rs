use super::*;
use serde_json::{Value, json};

fn facts(object: Value) -> PodGroupFacts {
    let decoded = serde_json::from_value(object).unwrap();
    native_group(decoded, &Converter::new("gpu-batch", 5_000))
}

fn fields(facts: &PodGroupFacts) -> Vec<&str> {
    facts
        .problems
        .iter()
        .map(|problem| &*problem.field)
        .collect()
}

#[test]
fn a_gang_has_its_minimum_label_and_queue() {
    let facts = facts(json!({
        "metadata": {"name": "g", "namespace": "ns", "labels": {"gpu-batch.io/queue": "q"}},
        "spec": {
            "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
            "schedulingPolicy": {"gang": {"minCount": 4}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "priorityClassName": "high",
            "priority": 1000,
            "disruptionMode": "PodGroup",
        },
    }));
    assert_eq!(facts.source, GroupSource::Native);
    assert_eq!(facts.minimum, 4);
    assert_eq!(facts.required_label.as_deref(), Some("rack"));
    assert_eq!(facts.queue.as_deref(), Some("q"));
    assert_eq!(facts.priority_class.as_deref(), Some("high"));
    assert_eq!(facts.priority, Some(1_000));
    assert_eq!((facts.problems.len(), facts.unsupported.len()), (0, 0));
}

#[test]
fn a_basic_group_is_gangs_of_one() {
    let facts = facts(json!({"spec": {"schedulingPolicy": {"basic": {}}}}));
    assert_eq!(facts.minimum, 1);
    assert_eq!((facts.priority_class, facts.queue), (None, None));
}

#[test]
fn what_contradicts_itself_is_a_problem() {
    let gang = json!({"minCount": 2});
    for (policy, field) in [
        (json!({}), "spec.schedulingPolicy"),
        (json!({"basic": {}, "gang": gang}), "spec.schedulingPolicy"),
        (json!({"gang": {}}), "spec.schedulingPolicy.gang.minCount"),
        (
            json!({"gang": {"minCount": -1}}),
            "spec.schedulingPolicy.gang.minCount",
        ),
        (
            json!({"gang": {"minCount": 1u64 << 40}}),
            "spec.schedulingPolicy.gang.minCount",
        ),
    ] {
        let text = policy.to_string();
        let facts = facts(json!({"spec": {"schedulingPolicy": policy}}));
        assert_eq!(fields(&facts), [field], "{text}");
    }
    let basic = json!({"schedulingPolicy": {"basic": {}},
                       "schedulingConstraints": {"topology": [{}]}});
    assert_eq!(
        fields(&facts(json!({"spec": basic}))),
        ["spec.schedulingConstraints.topology[0].key"]
    );
    let empty = json!({"metadata": {"labels": {"gpu-batch.io/queue": ""}},
                       "spec": {"schedulingPolicy": {"basic": {}}}});
    assert_eq!(
        fields(&facts(empty)),
        ["metadata.labels[gpu-batch.io/queue]"]
    );
}

#[test]
fn claims_and_a_second_constraint_are_unsupported() {
    let facts = facts(json!({"spec": {
        "schedulingPolicy": {"basic": {}},
        "schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]},
        "resourceClaims": [{"name": "c"}],
    }}));
    assert_eq!(
        facts.unsupported,
        [
            "spec.schedulingConstraints.topology[1]".into(),
            "spec.resourceClaims".into()
        ]
    );
}
