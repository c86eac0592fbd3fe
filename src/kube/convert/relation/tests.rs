use super::*;
use serde_json::{Value, json};

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "team", "labels": {"app": "web", "hash": "1"}},
        "spec": spec,
    }))
    .unwrap()
}

fn read(spec: Value) -> (Option<Box<Relations>>, Vec<String>) {
    let mut problems = Problems::default();
    let relations = own(&pod(spec), &mut problems);
    let problems = problems.into_vec();
    let problems = problems
        .iter()
        .map(|problem| format!("{}: {}", problem.field, problem.message));
    (relations, problems.collect())
}

fn required(name: &str, term: Value) -> Value {
    json!({"affinity": {name: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

#[test]
fn preferences_are_no_rules() {
    let preferred = json!({"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]});
    let spec = json!({
        "affinity": {"podAffinity": preferred, "podAntiAffinity": preferred},
        "topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1}],
    });
    assert_eq!(read(spec), (None, vec![]));
}

#[test]
fn a_term_without_namespaces_is_about_the_pods_own() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let term = json!({"topologyKey": "zone", "labelSelector": selector});
    let (relations, problems) = read(required("podAntiAffinity", term.clone()));
    assert_eq!(problems, Vec::<String>::new());
    let relations = relations.unwrap();
    let [read_term] = &*relations.anti_affinity else {
        panic!("{relations:?}");
    };
    assert!(read_term.selects_own_labels);
    assert_eq!(*read_term.selection.namespaces, ["team".into()]);
    assert_eq!(&*read_term.topology_key, "zone");

    let mut everywhere = term;
    everywhere["namespaceSelector"] = json!({});
    let (relations, _) = read(required("podAffinity", everywhere));
    let selection = &relations.as_ref().unwrap().affinity[0].selection;
    assert!(selection.namespaces.is_empty());
    assert!(selection.spans("other", |_| None::<&str>));
}

#[test]
fn anti_affinity_beyond_the_limit_keeps_all_pods_away() {
    let term = |index: usize| {
        let labels = json!({"app": format!("a-{index}")});
        let key = if index < 40 { "host" } else { "zone" };
        json!({"topologyKey": key, "labelSelector": {"matchLabels": labels}})
    };
    let terms: Vec<Value> = (0..42).map(term).collect();
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
    let spec = json!({"affinity": {"podAntiAffinity": required}});
    let (own, problems) = read(spec.clone());
    assert_eq!(problems.len(), 1, "{problems:?}");
    for relations in [own, foreign(&pod(spec))] {
        let terms = relations.unwrap().anti_affinity;
        let (read, rest) = terms.split_at(32);
        assert!(read.iter().all(|term| &*term.topology_key == "host"));
        let keys: Vec<&str> = rest.iter().map(|term| &*term.topology_key).collect();
        assert_eq!(keys, ["host", "zone"]);
        for PodTerm { selection, .. } in rest {
            assert!(selection.spans("other", |_| None::<&str>));
            assert!(selection.labels.as_ref().unwrap().selects(|_| None::<&str>));
        }
    }
}

#[test]
fn without_a_selector_no_pod_is_selected_and_with_an_empty_one_all_are() {
    let (none, _) = read(required("podAffinity", json!({"topologyKey": "zone"})));
    assert_eq!(none.unwrap().affinity[0].selection.labels, None);
    let all = json!({"topologyKey": "zone", "labelSelector": {}});
    let (all, _) = read(required("podAffinity", all));
    assert!(all.unwrap().affinity[0].selects_own_labels);
}

#[test]
fn keys_that_must_match_become_requirements() {
    let term = json!({
        "topologyKey": "zone", "labelSelector": {},
        "matchLabelKeys": ["hash", "absent"], "mismatchLabelKeys": ["app"],
    });
    let (relations, _) = read(required("podAffinity", term.clone()));
    let term_read = &relations.unwrap().affinity[0];
    let labels = term_read.selection.labels.as_ref().unwrap();
    let keys: Vec<_> = labels
        .match_expressions
        .iter()
        .map(|it| (&*it.key, it.operator))
        .collect();
    assert_eq!(
        keys,
        [("hash", MatchOperator::In), ("app", MatchOperator::NotIn)]
    );
    assert!(!term_read.selects_own_labels);

    // The API server has written them into the selector already, from the labels of that time.
    let mut stored = pod(required("podAffinity", term));
    stored.metadata.uid = "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234".into();
    let relations = own(&stored, &mut Problems::default()).unwrap();
    let labels = relations.affinity[0].selection.labels.as_ref().unwrap();
    assert_eq!(labels.match_expressions, []);
}

#[test]
fn a_spread_rule_has_the_defaults_of_kubernetes() {
    let constraint = json!({
        "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["hash"],
    });
    let (relations, _) = read(json!({"topologySpreadConstraints": [constraint]}));
    let rule = &relations.unwrap().spread[0];
    assert_eq!((rule.max_skew, rule.min_domains), (2, 1));
    assert!(rule.selects_own_labels && rule.honors_affinity && !rule.honors_taints);
    assert_eq!(rule.labels.as_ref().unwrap().match_expressions.len(), 1);
}

#[test]
fn what_the_api_server_would_refuse_is_a_problem() {
    let wrong = json!([{"maxSkew": 0, "minDomains": -1, "whenUnsatisfiable": "DoNotSchedule"}]);
    let (_, problems) = read(json!({"topologySpreadConstraints": wrong}));
    assert_eq!(
        problems,
        [
            "spec.topologySpreadConstraints[0].maxSkew: must be at least 1, not 0",
            "spec.topologySpreadConstraints[0].minDomains: must be at least 1, not -1",
            "spec.topologySpreadConstraints[0].topologyKey: is missing",
        ]
    );
    let term = json!({"topologyKey": "", "labelSelector": {
        "matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}});
    let (_, problems) = read(required("podAffinity", term));
    assert_eq!(problems.len(), 2, "{problems:?}");
    let many = vec![json!({"topologyKey": "zone"}); 33];
    let many = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": many}}});
    let (relations, problems) = read(many);
    // The terms that are read, and one for the label that the last one names.
    assert_eq!(relations.unwrap().anti_affinity.len(), 33);
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn of_a_pod_of_another_scheduler_only_the_anti_affinity_is_read() {
    let both = json!({"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {}}]});
    let both = json!({"affinity": {"podAffinity": both, "podAntiAffinity": both}});
    let relations = foreign(&pod(both)).unwrap();
    assert_eq!(relations.affinity, []);
    assert!(!relations.anti_affinity[0].selects_own_labels);
    assert_eq!(foreign(&pod(json!({}))), None);
}
