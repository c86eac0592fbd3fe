use super::*;
use serde_json::json;

fn read(object: Value) -> NumaFacts {
    let object: NodeResourceTopology = serde_json::from_value(object).unwrap();
    assert_eq!(object.key(), ObjectKey::Numa(object.metadata.name.clone()));
    match object.convert(&mut Converter::new("gpu-batch", 0)) {
        Some(Object::Numa(facts)) => facts,
        other => panic!("{other:?}"),
    }
}

fn attributes(policy: &str, scope: &str) -> Value {
    json!([{"name": "nodeTopologyPodsFingerprint", "value": "pfp0v0012"},
           {"name": "topologyManagerPolicy", "value": policy},
           {"name": "topologyManagerScope", "value": scope}])
}

fn zone(name: &str, resources: Value) -> Value {
    json!({"name": name, "type": "Node", "costs": [{"name": name, "value": 10}],
           "resources": resources})
}

fn of(name: &str, capacity: &str, allocatable: &str, available: &str) -> Value {
    json!({"name": name, "capacity": capacity, "allocatable": allocatable,
           "available": available})
}

/// The fields of the problems of an object with these zones.
fn wrong(zones: Value) -> Vec<String> {
    let facts = read(json!({"metadata": {"name": "n"}, "zones": zones}));
    let problems = facts.problems.iter();
    problems.map(|problem| problem.field.to_string()).collect()
}

#[test]
fn zones_are_read_as_exporters_write_them() {
    let facts = read(json!({
        "metadata": {"name": "n1"},
        "topologyPolicies": ["BestEffort"],
        "attributes": attributes("single-numa-node", "pod"),
        "zones": [
            {"name": "cache-0", "type": "Cache"},
            zone("node-1", json!([of("nvidia.com/gpu", "4", "4", "1"), of("cpu", "8", "7", "7")])),
            zone("node-0", json!(null)),
        ],
    }));
    assert_eq!(facts.problems, []);
    assert_eq!(
        (facts.policy, facts.scope),
        (AlignmentPolicy::SingleCell, AlignmentScope::Pod)
    );
    let numbers: Vec<u16> = facts.cells.iter().map(|cell| cell.number).collect();
    assert_eq!(numbers, [0, 1]);
    let amounts = |resource: &CellResource| {
        let CellResource {
            name,
            capacity,
            allocatable,
            available,
        } = resource;
        format!("{name} {capacity} {allocatable} {available}")
    };
    let read: Vec<String> = facts.cells[1].resources.iter().map(amounts).collect();
    assert_eq!(read, ["cpu 8000 7000 7000", "nvidia.com/gpu 4 4 1"]);
}

#[test]
fn older_exporters_say_policy_and_scope_in_one_word() {
    let rules = |object: Value| {
        let facts = read(object);
        (
            facts.policy.name(),
            facts.scope.name(),
            facts.problems.len(),
        )
    };
    let word = |word: &str| rules(json!({"metadata": {"name": "n"}, "topologyPolicies": [word]}));
    assert_eq!(
        word("SingleNUMANodePodLevel"),
        ("single-numa-node", "pod", 0)
    );
    assert_eq!(word("Restricted"), ("restricted", "container", 0));
    assert_eq!(word("BestEffortPodLevel"), ("best-effort", "pod", 0));
    assert_eq!(word("Strict"), ("none", "container", 1));
    assert_eq!(
        rules(json!({"metadata": {"name": "n"}})),
        ("none", "container", 0)
    );
    let unknown = json!({"metadata": {"name": "n"}, "attributes": attributes("strict", "node")});
    assert_eq!(rules(unknown), ("none", "container", 2));
}

#[test]
fn what_contradicts_itself_is_a_problem_with_its_field() {
    let gpus = |capacity, allocatable, available| {
        wrong(json!([zone(
            "node-0",
            json!([of("nvidia.com/gpu", capacity, allocatable, available)])
        )]))
    };
    assert_eq!(gpus("4", "4", "0"), Vec::<String>::new());
    assert_eq!(gpus("4", "4", "5"), ["zones[0].resources[0].available"]);
    assert_eq!(gpus("4", "5", "5"), ["zones[0].resources[0].allocatable"]);
    assert_eq!(gpus("-4", "4", "4"), ["zones[0].resources[0].capacity"]);
    assert_eq!(gpus("4", "4", "some"), ["zones[0].resources[0].available"]);
    assert_eq!(
        wrong(json!([
            zone("node-0", json!([])),
            zone("node-0", json!([]))
        ])),
        ["zones[1].name"]
    );
    assert_eq!(wrong(json!([zone("numa", json!([]))])), ["zones[0].name"]);
    assert_eq!(wrong(json!({"node-0": {}})), ["zones"]);
    assert_eq!(wrong(json!([7])), ["zones[0]"]);
    let twice = json!([of("cpu", "1", "1", "1"), of("cpu", "1", "1", "1")]);
    assert_eq!(
        wrong(json!([zone("node-0", twice)])),
        ["zones[0].resources[1].name"]
    );
    let missing = json!([{"name": "cpu", "capacity": "1", "allocatable": "1"}]);
    assert_eq!(
        wrong(json!([zone("node-0", missing)])),
        ["zones[0].resources[0].available"]
    );
    let many = (0..9).map(|number| zone(&format!("node-{number}"), json!([])));
    assert_eq!(wrong(many.collect::<Vec<_>>().into()), ["zones"]);
}
