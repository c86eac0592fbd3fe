use super::*;
use serde_json::{Value, json};

fn facts(spec: Value) -> TopologyFacts {
    let object = json!({"metadata": {"name": "default"}, "spec": spec});
    topology(serde_json::from_value(object).unwrap())
}

fn names(facts: &TopologyFacts) -> Vec<(&str, &str)> {
    let levels = facts.levels.iter();
    levels
        .map(|level| (&*level.name, &*level.node_label))
        .collect()
}

#[test]
fn levels_keep_their_order() {
    let facts = facts(json!({"levels": [
        {"name": "zone", "nodeLabel": "topology.kubernetes.io/zone"},
        {"name": "rack", "nodeLabel": "example.com/rack"},
    ]}));
    assert_eq!(facts.problems, []);
    assert_eq!(
        names(&facts),
        [
            ("zone", "topology.kubernetes.io/zone"),
            ("rack", "example.com/rack")
        ]
    );
}

#[test]
fn a_topology_without_levels_has_the_nodes() {
    for spec in [json!(null), json!({}), json!({"levels": []})] {
        let facts = facts(spec);
        assert_eq!((facts.levels.len(), facts.problems.len()), (0, 0));
    }
}

#[test]
fn each_wrong_field_is_one_problem_with_its_path() {
    let rack = json!({"name": "rack", "nodeLabel": "r"});
    for (levels, field) in [
        (json!("rack"), "spec.levels"),
        (json!(["rack"]), "spec.levels[0]"),
        (json!([{"name": "rack"}]), "spec.levels[0].nodeLabel"),
        (json!([{"nodeLabel": "r"}]), "spec.levels[0].name"),
        (json!([rack, rack]), "spec.levels[1].name"),
        (
            json!([rack, {"name": "row", "nodeLabel": "r"}]),
            "spec.levels[1].nodeLabel",
        ),
        (
            json!([{"name": "host", "nodeLabel": "kubernetes.io/hostname"}]),
            "spec.levels[0].nodeLabel",
        ),
        (
            json!([{"name": "node", "nodeLabel": "n"}]),
            "spec.levels[0].name",
        ),
        (
            json!([{"name": "rack", "nodeLabel": "r", "size": 4}]),
            "spec.levels[0].size",
        ),
    ] {
        let text = levels.to_string();
        let facts = facts(json!({"levels": levels}));
        let fields: Vec<&str> = facts
            .problems
            .iter()
            .map(|problem| &*problem.field)
            .collect();
        assert!(fields.contains(&field), "{text}: {fields:?}");
    }
}

#[test]
fn more_levels_than_the_limit_are_refused() {
    let levels: Vec<Value> = (0..=limits::TOPOLOGY_LEVELS)
        .map(|index| json!({"name": format!("l{index}"), "nodeLabel": format!("l{index}")}))
        .collect();
    let facts = facts(json!({"levels": levels}));
    assert_eq!(
        (facts.levels.len(), facts.problems.len()),
        (limits::TOPOLOGY_LEVELS, 1)
    );
}

#[test]
fn a_level_that_is_there_twice_is_told_with_what_is_twice() {
    let said = |second: Value| {
        let rack = json!({"name": "rack", "nodeLabel": "r"});
        let facts = facts(json!({"levels": [rack, second]}));
        assert_eq!(facts.problems.len(), 1);
        facts.problems[0].message.clone()
    };
    assert_eq!(
        &*said(json!({"name": "rack", "nodeLabel": "other"})),
        "there is a level `rack` already"
    );
    assert_eq!(
        &*said(json!({"name": "row", "nodeLabel": "r"})),
        "`r` is the label of the level `rack` already"
    );
}

#[test]
fn a_level_needs_a_label_that_a_node_can_have() {
    let good = ["rack", "example.com/rack", "a.b-c.d/X_1.y", "1"];
    let long = "a".repeat(64);
    let far = format!("{}/rack", "a.".repeat(127));
    let bad = [
        "not a label!",
        "/rack",
        "example.com/",
        "a/b/c",
        "-rack",
        "rack-",
        "Example.com/rack",
        "example..com/rack",
        "r\u{e4}ck",
        &long,
        &far,
    ];
    let count = |label: &str| {
        let level = json!({"name": "rack", "nodeLabel": label});
        let facts = facts(json!({"levels": [level]}));
        (facts.levels.len(), facts.problems.len())
    };
    for label in good {
        assert_eq!(count(label), (1, 0), "{label}");
    }
    for label in bad {
        assert_eq!(count(label), (0, 1), "{label}");
    }
}
