use super::*;
use gpu_batch_policies::facts::MatchOperator;
use serde_json::{Value, json};

/// The cluster adds nothing.
const STATED: ClusterPreferences = ClusterPreferences {
    image_locality: false,
    default_spreading: false,
};

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "team", "labels": {"app": "web"}},
        "spec": spec,
    }))
    .unwrap()
}

fn term() -> Value {
    json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}})
}

fn of_pods(weight: i64) -> Value {
    json!({PREFERRED: [{"weight": weight, "podAffinityTerm": term()}]})
}

#[test]
fn every_sort_of_preference_is_read() {
    let preference = json!({"matchExpressions": [{"key": "disk", "operator": "Exists"}]});
    let spec = json!({
        "affinity": {
            "nodeAffinity": {PREFERRED: [{"weight": 7, "preference": preference}]},
            "podAffinity": of_pods(3),
            "podAntiAffinity": of_pods(100),
        },
        "topologySpreadConstraints": [
            {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 2},
            {"topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1},
        ],
    });
    let mut problems = Problems::default();
    let preferences = own(&pod(spec), STATED, &mut problems).unwrap();
    assert!(problems.into_vec().is_empty());
    assert_eq!(&*preferences.namespace, "team");
    let [nodes] = &*preferences.nodes else {
        panic!("{preferences:?}");
    };
    assert_eq!(nodes.weight, 7);
    let operator = nodes.term.match_expressions[0].operator;
    assert_eq!(operator, MatchOperator::Exists);
    let weights: Vec<i32> = preferences.pods.iter().map(|one| one.weight).collect();
    assert_eq!(weights, [3, -100]);
    assert_eq!(*preferences.pods[0].selection.namespaces, ["team".into()]);
    let [spread] = &*preferences.spread else {
        panic!("{preferences:?}");
    };
    assert_eq!((&*spread.topology_key, spread.max_skew), ("zone", 2));
}

#[test]
fn weights_are_from_1_to_100() {
    for weight in [0, 101, -1, i64::MAX] {
        let mut problems = Problems::default();
        own(
            &pod(json!({"affinity": {"podAffinity": of_pods(weight)}})),
            STATED,
            &mut problems,
        );
        let problems = problems.into_vec();
        let fields: Vec<&str> = problems.iter().map(|problem| &*problem.field).collect();
        assert_eq!(
            fields,
            [format!("spec.affinity.podAffinity.{PREFERRED}[0].weight")]
        );
    }
}

#[test]
fn a_term_that_makes_no_sense_is_named_with_its_field() {
    let preference = json!({"matchExpressions": [{"key": "disk", "operator": "In"}]});
    let preferred = json!([{"weight": 1, "preference": preference}]);
    let mut problems = Problems::default();
    let spec = json!({"affinity": {"nodeAffinity": {PREFERRED: preferred}}});
    own(&pod(spec), STATED, &mut problems);
    let problems = problems.into_vec();
    let fields: Vec<&str> = problems.iter().map(|problem| &*problem.field).collect();
    let field = format!("{PREFERRED_NODES}[0].preference.matchExpressions[0].values");
    assert_eq!(fields, [field]);
}

#[test]
fn what_other_schedulers_pods_require_or_prefer_of_pods_draws_others() {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let mut near = of_pods(5);
    near[required] = json!([term()]);
    let spec = json!({
        "affinity": {
            "nodeAffinity": {PREFERRED: [{"weight": 7, "preference": {}}]},
            "podAffinity": near,
        },
        "topologySpreadConstraints": [
            {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 2},
        ],
    });
    let preferences = foreign(&pod(spec)).unwrap();
    let weights: Vec<i32> = preferences.pods.iter().map(|one| one.weight).collect();
    assert_eq!(weights, [5, 1]);
    assert!(preferences.nodes.is_empty() && preferences.spread.is_empty());
    assert_eq!(foreign(&pod(json!({}))), None);
}

/// A pod with images whose controller is of this kind.
fn controlled(version: &str, kind: &str, constraints: Value) -> Pod {
    let owner = json!({"apiVersion": version, "kind": kind, "name": "o", "controller": true,
        "uid": "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234"});
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "team", "ownerReferences": [owner]},
        "spec": {
            "containers": [{"image": "a"}, {"image": "host:5000/b"}, {"image": "a:v1"}],
            "initContainers": [{"image": "a"}, {}],
            "volumes": [{"name": "v", "image": {"reference": "c@sha256:0"}}, {"name": "w"}],
            "topologySpreadConstraints": constraints,
        },
    }))
    .unwrap()
}

#[test]
fn what_the_cluster_adds_is_added_where_it_is_on_and_the_pod_states_no_constraint() {
    let added = ClusterPreferences {
        image_locality: true,
        default_spreading: true,
    };
    let read = |pod: &Pod, added| own(pod, added, &mut Problems::default());
    let owned = controlled("apps/v1", "ReplicaSet", Value::Null);
    assert_eq!(read(&owned, STATED), None);
    let both = read(&owned, added).unwrap();
    let images = both.images.unwrap();
    let names: Vec<&str> = images.names.iter().map(|name| &**name).collect();
    let known = [
        "a:latest",
        "a:latest",
        "a:v1",
        "c@sha256:0",
        "host:5000/b:latest",
    ];
    assert_eq!((names.as_slice(), images.containers), (known.as_slice(), 5));
    let spread = |pod: &Pod| -> Vec<(Box<str>, u32)> {
        let rules = read(pod, added).unwrap().spread.into_iter();
        rules
            .map(|rule| (rule.topology_key, rule.max_skew))
            .collect()
    };
    let defaults = [
        ("topology.kubernetes.io/zone".into(), 5),
        ("kubernetes.io/hostname".into(), 3),
    ];
    assert_eq!(spread(&owned), defaults);
    assert!(both.spread_is_default);
    assert_eq!(spread(&controlled("batch/v1", "Job", Value::Null)), []);
    let constraint = json!([{"topologyKey": "rack", "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway"}]);
    let stated = controlled("apps/v1", "ReplicaSet", constraint);
    assert_eq!(spread(&stated), [("rack".into(), 1)]);
    assert!(!read(&stated, added).unwrap().spread_is_default);
}
