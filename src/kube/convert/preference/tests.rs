use super::*;
use gpu_batch_policies::facts::MatchOperator;
use serde_json::{Value, json};

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
    let preferences = own(&pod(spec), &mut problems).unwrap();
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
    own(&pod(spec), &mut problems);
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
