use super::*;
use gpu_batch_policies::facts::{
    AlignedContainer, CardMemory, CardNeed, ContainerRole, MatchOperator, MatchRequirement,
    NodeSelectorTerm, Problem,
};
use serde_json::{Value, json};

fn shape_of(spec: Value) -> (PodShape, Vec<Problem>) {
    let pod = serde_json::from_value(json!({"spec": spec})).unwrap();
    let mut problems = Problems::default();
    let (shape, _) = own(&pod, ClusterPreferences::default(), &mut problems);
    (shape, problems.into_vec())
}

fn port(port: u16, protocol: Protocol, host_ip: &str) -> HostPort {
    HostPort {
        port,
        protocol,
        host_ip: host_ip.into(),
    }
}

#[test]
fn host_ports_are_those_of_containers_and_sidecars() {
    let ports = |ports: Value| json!({"name": "c", "ports": ports});
    let check = |spec: Value, expected: &[HostPort]| {
        let (shape, problems) = shape_of(spec.clone());
        assert_eq!(shape.host_ports, expected, "{spec}");
        assert_eq!(problems, [], "{spec}");
    };
    check(
        json!({"containers": [ports(json!([
            {"containerPort": 80},
            {"hostPort": 0, "containerPort": 80},
            {"hostPort": 9000, "protocol": "UDP", "hostIP": "127.0.0.1"},
            {"hostPort": 8000, "hostIP": "0.0.0.0"},
            {"hostPort": 8000, "protocol": "TCP", "hostIP": ""},
        ]))]}),
        &[
            port(8_000, Protocol::Tcp, ""),
            port(9_000, Protocol::Udp, "127.0.0.1"),
        ],
    );
    check(
        json!({"initContainers": [
            {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 1}]},
            {"name": "i", "ports": [{"hostPort": 2}]},
        ]}),
        &[port(1, Protocol::Tcp, "")],
    );
    check(
        json!({"hostNetwork": true, "containers": [ports(json!([{"containerPort": 80}]))]}),
        &[port(80, Protocol::Tcp, "")],
    );
}

#[test]
fn features_that_nodes_must_declare_are_those_of_the_spec() {
    use NodeFeature::{RestartAllContainers, UserNamespacesHostNetwork};
    let rules = |action: &str| json!([{"restartPolicyRules": [{"action": action}]}]);
    let restart_all = || rules("RestartAllContainers");
    let check = |spec: Value, expected: &[NodeFeature]| {
        assert_eq!(shape_of(spec.clone()).0.features, expected, "{spec}");
    };
    check(
        json!({"containers": rules("Restart"), "hostUsers": false}),
        &[],
    );
    check(
        json!({"containers": restart_all()}),
        &[RestartAllContainers],
    );
    check(json!({"hostNetwork": true}), &[]);
    let both = json!({"initContainers": restart_all(), "hostNetwork": true, "hostUsers": false});
    check(both, &[RestartAllContainers, UserNamespacesHostNetwork]);
}

#[test]
fn a_port_that_cannot_be_is_a_problem() {
    for (port, part) in [
        (json!({"hostPort": 65_536}), "hostPort"),
        (json!({"hostPort": -1}), "hostPort"),
        (json!({"hostPort": 1, "protocol": "HTTP"}), "protocol"),
    ] {
        let (shape, problems) = shape_of(json!({"containers": [{"name": "c", "ports": [port]}]}));
        assert_eq!(shape.host_ports, [], "{port}");
        let field = format!("spec.containers[0].ports[0].{part}");
        assert_eq!(&*problems[0].field, field, "{port}");
    }
}

#[test]
fn tolerations_have_the_api_servers_defaults() {
    let (shape, problems) = shape_of(json!({"tolerations": [
        {"key": "a", "value": "b"},
        {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3},
        {"key": "c", "operator": "Equal", "effect": ""},
    ]}));
    let toleration = |key: &str, operator, value: &str, effect| Toleration {
        key: key.into(),
        operator,
        value: value.into(),
        effect,
    };
    let expected = [
        toleration("a", TolerationOperator::Equal, "b", None),
        toleration(
            "",
            TolerationOperator::Exists,
            "",
            Some(TaintEffect::NoExecute),
        ),
        toleration("c", TolerationOperator::Equal, "", None),
    ];
    assert_eq!(shape.tolerations, expected);
    assert_eq!(problems, []);
}

#[test]
fn a_toleration_that_is_not_known_is_named() {
    let (shape, problems) = shape_of(json!({"tolerations": [
        {"key": "a", "operator": "Gt", "value": "5"},
        {"key": "a", "operator": "Like"},
        {"key": "a", "effect": "Never"},
    ]}));
    assert_eq!(shape.tolerations, []);
    assert_eq!(shape.unsupported, ["spec.tolerations[0].operator".into()]);
    let fields: Vec<&str> = problems.iter().map(|problem| &*problem.field).collect();
    assert_eq!(
        fields,
        ["spec.tolerations[1].operator", "spec.tolerations[2].effect"]
    );
}

fn required(terms: Value) -> Value {
    json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
    }}})
}

#[test]
fn node_selectors_and_required_affinity_are_kept() {
    let mut spec = required(json!([
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]},
                              {"key": "b", "operator": "Gt", "values": ["-5"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]},
        {},
    ]));
    spec["nodeSelector"] = json!({"z": "1", "a": ""});
    let (shape, problems) = shape_of(spec);
    assert_eq!(problems, []);
    assert_eq!(
        shape.node_selector,
        [("a".into(), "".into()), ("z".into(), "1".into())]
    );
    let requirement = |key: &str, operator, values: &[&str]| MatchRequirement {
        key: key.into(),
        operator,
        values: values.iter().map(|value| (*value).into()).collect(),
    };
    let terms = [
        NodeSelectorTerm {
            match_expressions: vec![
                requirement("a", MatchOperator::In, &["x", "y"]),
                requirement("b", MatchOperator::Gt, &["-5"]),
            ],
            match_fields: Vec::new(),
        },
        NodeSelectorTerm {
            match_expressions: Vec::new(),
            match_fields: vec![requirement("metadata.name", MatchOperator::NotIn, &["n"])],
        },
        NodeSelectorTerm::default(),
    ];
    assert_eq!(shape.node_affinity.as_deref(), Some(terms.as_slice()));
}

#[test]
fn no_terms_are_not_no_rule() {
    assert_eq!(shape_of(json!({})).0.node_affinity, None);
    assert_eq!(
        shape_of(required(json!(null))).0.node_affinity,
        Some(Vec::new())
    );
    let preferred = json!({"affinity": {"nodeAffinity": {}}});
    assert_eq!(shape_of(preferred).0.node_affinity, None);
}

#[test]
fn a_requirement_that_makes_no_sense_is_a_problem() {
    for (kind, requirement) in [
        (
            "matchExpressions",
            json!({"key": "a", "operator": "Is", "values": ["x"]}),
        ),
        ("matchExpressions", json!({"key": "a", "operator": "In"})),
        ("matchExpressions", json!({"key": "", "operator": "Exists"})),
        (
            "matchExpressions",
            json!({"key": "a", "operator": "Exists", "values": ["x"]}),
        ),
        (
            "matchExpressions",
            json!({"key": "a", "operator": "Gt", "values": ["1", "2"]}),
        ),
        (
            "matchFields",
            json!({"key": "spec.x", "operator": "In", "values": ["x"]}),
        ),
        (
            "matchFields",
            json!({"key": "metadata.name", "operator": "Exists"}),
        ),
        (
            "matchFields",
            json!({"key": "metadata.name", "operator": "Gt", "values": ["1"]}),
        ),
        (
            "matchFields",
            json!({"key": "metadata.name", "operator": "In", "values": ["x", "y"]}),
        ),
    ] {
        let (_, problems) = shape_of(required(json!([{kind: [requirement]}])));
        assert_eq!(problems.len(), 1, "{requirement}");
        let field = format!(
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
             .nodeSelectorTerms[0].{kind}[0]"
        );
        assert!(
            problems[0].field.starts_with(&field),
            "{requirement}: {problems:?}"
        );
    }
}

/// The API server lets them in, and kube-scheduler drops the term.
#[test]
fn a_number_that_cannot_be_read_is_no_problem() {
    for bound in ["x", "5.0", "9223372036854775808", ""] {
        let term = json!({"matchExpressions": [{"key": "a", "operator": "Lt", "values": [bound]}]});
        let (shape, problems) = shape_of(required(json!([term])));
        assert_eq!((shape.node_affinity.unwrap().len(), problems), (1, vec![]));
    }
}

#[test]
fn a_shape_with_too_much_text_loses_its_selectors_and_says_so() {
    let spec = |bytes: usize| json!({"nodeSelector": {"a": "x".repeat(bytes - 1)}});
    let (shape, problems) = shape_of(spec(limits::SHAPE_TEXT));
    assert_eq!((shape.node_selector.len(), problems.len()), (1, 0));
    let (shape, problems) = shape_of(spec(limits::SHAPE_TEXT + 1));
    assert_eq!((shape.node_selector.len(), problems.len()), (0, 1));
}

#[test]
fn a_foreign_pod_has_requests_and_ports_alone() {
    let pod = serde_json::from_value(json!({"spec": {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "resourceClaims": [{}],
        "containers": [{
            "resources": {"requests": {"nvidia.com/gpu": "1"}},
            "ports": [{"hostPort": 1}],
        }],
    }}))
    .unwrap();
    let expected = PodShape {
        requests: vec![("nvidia.com/gpu".into(), 1), ("pods".into(), 1)],
        aligned: vec![AlignedContainer {
            role: ContainerRole::Main,
            amounts: vec![("nvidia.com/gpu".into(), 1)],
        }],
        host_ports: vec![port(1, Protocol::Tcp, "")],
        ..PodShape::default()
    };
    assert_eq!(foreign(&pod), expected);
}

/// The slots are what the kubelet counts, and what quotas do.
#[test]
fn parts_of_cards_count_beside_the_slots_on_them() {
    let limits = json!({"cpu": "2", "nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000"});
    let containers = json!([{"name": "c", "resources": {"limits": limits}}]);
    let (shape, problems) = shape_of(json!({"containers": containers}));
    assert_eq!(shape.cards, CardNeed::new(2, 0, CardMemory::Mib(3_000)));
    assert_eq!(shape.requests[1], ("nvidia.com/gpu".into(), 2));
    assert!(shape.unsupported.is_empty() && problems.is_empty());

    let limits = json!({"nvidia.com/gpu": "2"});
    let containers = json!([{"name": "c", "resources": {"limits": limits}}]);
    let (shape, _) = shape_of(json!({"containers": containers}));
    assert_eq!(shape.cards, None);
    assert_eq!(shape.requests[0], ("nvidia.com/gpu".into(), 2));
}
