use super::*;
use crate::kube::convert::ClusterPreferences;
use serde_json::{Value, json};

/// The nodes of the field guide: eight H100, a member of an NVL72 rack, A100 in mixed MIG mode.
const H100: &str = include_str!("tests/h100.yaml");
const GB200: &str = include_str!("tests/gb200.yaml");
const A100_MIG: &str = include_str!("tests/a100-mig.yaml");

const NOW_MS: u64 = 1_700_000_000_000;

fn facts(value: Value) -> NodeFacts {
    let mut converter = Converter::new("gpu-batch", NOW_MS);
    node(serde_json::from_value(value).unwrap(), &mut converter)
}

fn from_yaml(text: &str) -> NodeFacts {
    facts(serde_saphyr::from_str(text).unwrap())
}

fn label<'a>(facts: &'a NodeFacts, key: &str) -> Option<&'a str> {
    let found = facts.labels.iter().find(|(name, _)| &**name == key);
    found.map(|(_, value)| &**value)
}

fn amount(amounts: &Amounts, resource: &str) -> Option<u64> {
    let found = amounts.iter().find(|(name, _)| &**name == resource);
    found.map(|(_, amount)| *amount)
}

#[test]
fn an_hgx_node_is_read() {
    let facts = from_yaml(H100);
    assert_eq!(facts.problems, []);
    assert_eq!(&*facts.name, "h100-00");
    assert_eq!(
        label(&facts, "nvidia.com/gpu.product"),
        Some("NVIDIA-H100-80GB-HBM3")
    );
    assert_eq!(
        label(&facts, "nvidia.com/cuda.runtime-version.full"),
        Some("12.8")
    );
    assert_eq!(facts.annotations, []);
    let taint = Taint {
        key: "nvidia.com/gpu".into(),
        value: "present".into(),
        effect: TaintEffect::NoSchedule,
    };
    assert_eq!(facts.taints, [taint]);
    let expected: Amounts = vec![
        ("cpu".into(), 190_000),
        ("memory".into(), 2_000 << 30),
        ("nvidia.com/gpu".into(), 8),
        ("pods".into(), 110),
        ("rdma/hca_shared_devices_a".into(), 64),
    ];
    assert_eq!(facts.allocatable, expected);
    assert_eq!(amount(&facts.capacity, "memory"), Some(2_048 << 30));
}

#[test]
fn a_node_of_a_rack_is_read() {
    let facts = from_yaml(GB200);
    assert_eq!(facts.problems, []);
    assert_eq!(
        label(&facts, "nvidia.com/gpu.clique"),
        Some("7b968a6d-c8aa-45e1-9e07-e1e51be99c31.32766")
    );
    assert_eq!(amount(&facts.allocatable, "nvidia.com/gpu"), Some(4));
    assert_eq!(facts.taints, []);
}

#[test]
fn a_node_in_mixed_mig_mode_is_read() {
    let facts = from_yaml(A100_MIG);
    assert_eq!(facts.problems, []);
    for (resource, expected) in [
        ("nvidia.com/gpu", 4),
        ("nvidia.com/mig-1g.10gb", 8),
        ("nvidia.com/mig-2g.20gb", 4),
        ("nvidia.com/mig-3g.40gb", 4),
    ] {
        assert_eq!(
            amount(&facts.allocatable, resource),
            Some(expected),
            "{resource}"
        );
    }
    assert_eq!(label(&facts, "nvidia.com/gpu.count"), Some("8"));
}

#[test]
fn only_conditions_that_are_bad_are_kept() {
    let bad = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let conditions = json!([
        bad("GpuMemWatch", "True"),
        bad("GpuSmWatch", "False"),
        bad("MemoryPressure", "True"),
        bad("AcceleratedHardwareReady", "False"),
        bad("GpuPcieWatch", "Perhaps"),
        {"type": "NebiusGPUError", "status": "True", "lastTransitionTime": "2100-01-01T00:00:00Z"},
    ]);
    let kept = |facts: NodeFacts| {
        let conditions = facts.conditions.into_iter();
        let kept = conditions.map(|it| (String::from(it.kind), it.status, it.since_ms));
        kept.collect::<Vec<_>>()
    };
    let object = json!({"status": {"conditions": conditions}});
    use ConditionStatus::{False, True};
    let bad = [
        ("GpuMemWatch", True),
        ("GpuSmWatch", True),
        ("AcceleratedHardwareReady", False),
        ("NebiusGPUError", True),
    ];
    let bad = bad.map(|(kind, status)| (kind.into(), status));
    let mut converter = Converter::new("gpu-batch", NOW_MS).with_conditions(bad.to_vec());
    let of_bad = node(
        serde_json::from_value(object.clone()).unwrap(),
        &mut converter,
    );
    assert_eq!(
        kept(of_bad),
        [
            ("GpuMemWatch".to_owned(), True, None),
            ("AcceleratedHardwareReady".to_owned(), False, None),
            // A clock that is ahead.
            ("NebiusGPUError".to_owned(), True, Some(NOW_MS)),
        ]
    );
    assert_eq!(facts(object).conditions, []);
}

#[test]
fn readiness_is_the_condition_ready() {
    use Readiness::{Lost, Ready, Unsaid};
    let lost = |since_ms| Lost { since_ms };
    let since = |time: &str| {
        let time = json!({"type": "Ready", "status": "Unknown", "lastTransitionTime": time});
        json!([{"type": "DiskPressure", "status": "False"}, time])
    };
    for (conditions, expected) in [
        (json!(null), Unsaid),
        (json!([]), Unsaid),
        (json!([{"type": "Ready", "status": "True"}]), Ready),
        (json!([{"type": "Ready", "status": "False"}]), lost(None)),
        (json!([{"type": "Ready", "status": "Unknown"}]), lost(None)),
        (since("2023-11-14T22:12:20Z"), lost(Some(1_699_999_940_000))),
        // A clock that is ahead.
        (since("2100-01-01T00:00:00Z"), lost(Some(NOW_MS))),
        (
            json!([{"type": "MemoryPressure", "status": "True"}]),
            Unsaid,
        ),
    ] {
        let text = conditions.to_string();
        let facts = facts(json!({"status": {"conditions": conditions}}));
        assert_eq!(facts.readiness, expected, "{text}");
    }
}

#[test]
fn of_hami_it_is_kept_that_the_node_has_a_register() {
    let facts = facts(json!({"metadata": {"annotations": {
        "hami.io/node-handshake": "Reported",
        "hami.io/node-nvidia-register": "GPU-1,10,81559,100,NVIDIA-NVIDIA H100 80GB HBM3,0,true:",
        "nvidia.com/gpu-driver-upgrade-enabled": "true",
    }}}));
    let kept: Vec<_> = facts
        .annotations
        .iter()
        .map(|(k, v)| (&**k, &**v))
        .collect();
    assert_eq!(
        kept,
        [
            ("hami.io/node-nvidia-register", ""),
            ("nvidia.com/gpu-driver-upgrade-enabled", "true"),
        ]
    );
}

#[test]
fn the_cards_of_hami_and_who_holds_their_lock_are_kept() {
    let node = |slots: &str, register: &str| {
        facts(json!({
            "metadata": {"annotations": {
                "hami.io/node-nvidia-register": register,
                "hami.io/mutex.lock": "2026-11-21T10:00:00Z,team,pair-0",
            }},
            "status": {"allocatable": {"nvidia.com/gpu": slots}},
        }))
    };
    let found = node(
        "10",
        "GPU-1,10,81559,100,NVIDIA-NVIDIA H100 80GB HBM3,1,true:",
    );
    let card = CardFacts {
        profiles: Vec::new(),
        id: "GPU-1".into(),
        model: "NVIDIA-NVIDIA H100 80GB HBM3".into(),
        memory_mib: 81_559,
        thousandths: 1_000,
        slots: 10,
        numa: 1,
        closed: None,
    };
    assert_eq!(found.cards, [card]);
    let lock = found.card_lock.unwrap();
    assert_eq!(lock.holder, Some(("team".into(), "pair-0".into())));
    assert_eq!(lock.at_ms, Some(1_795_255_200_000));
    assert_eq!(found.problems, []);

    // The plugin does not run.
    let found = node("0", "GPU-1,10,81559,100,T4,1,true:");
    assert_eq!(found.cards[0].closed, Some(CardClosed::Unhealthy));
    let found = node("10", "GPU-1,10,81559");
    assert_eq!(found.cards, []);
    let problem = &found.problems[0];
    assert_eq!(
        &*problem.field,
        "metadata.annotations[hami.io/node-nvidia-register]"
    );
}

#[test]
fn of_the_declared_features_those_are_kept_that_pods_need() {
    let declared = ["Else", "UserNamespacesHostNetworkSupport", "Else"];
    let status = json!({"declaredFeatures": declared});
    let facts = facts(json!({"metadata": {"name": "n", "uid": "u"}, "status": status}));
    assert_eq!(facts.features, [NodeFeature::UserNamespacesHostNetwork]);
}

#[test]
fn without_allocatable_all_capacity_is() {
    let facts = facts(json!({"status": {"capacity": {"cpu": 4, "memory": 1.5}}}));
    assert_eq!(
        facts.allocatable,
        [("cpu".into(), 4_000), ("memory".into(), 2)]
    );
    assert_eq!(facts.allocatable, facts.capacity);
}

#[test]
fn with_an_empty_allocatable_all_capacity_is() {
    let facts = facts(json!({"status": {"capacity": {"cpu": 4}, "allocatable": {}}}));
    assert_eq!(facts.allocatable, [("cpu".into(), 4_000)]);
}

#[test]
fn what_cannot_be_read_is_treated_in_the_safe_way() {
    let facts = facts(json!({
        "spec": {"taints": [{"key": "a", "effect": "Forbid"}], "unschedulable": null},
        "status": {"allocatable": {"cpu": "lots", "memory": "-1", "nvidia.com/gpu": "1e99",
                                   "pods": "110", "example.com/none": "0"}},
    }));
    assert_eq!(facts.allocatable, [("pods".into(), 110)]);
    assert_eq!(facts.taints[0].effect, TaintEffect::NoSchedule);
    let fields: Vec<&str> = facts
        .problems
        .iter()
        .map(|problem| &*problem.field)
        .collect();
    assert_eq!(
        fields,
        [
            "spec.taints[0].effect",
            "status.allocatable[cpu]",
            "status.allocatable[memory]",
            "status.allocatable[nvidia.com/gpu]",
        ]
    );
    assert!(!facts.unschedulable);
}

#[test]
fn only_the_gpu_operators_annotations_are_kept() {
    let facts = facts(json!({"metadata": {"annotations": {
        "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load": "true",
        "gpu-batch.io/x": "y",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }}}));
    let expected = [(
        "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load".into(),
        "true".into(),
    )];
    assert_eq!(facts.annotations, expected);
}

#[test]
fn a_flood_of_labels_cordons_the_node_and_is_cut() {
    let with_labels = |count: usize| {
        let labels: serde_json::Map<String, Value> = (0..count)
            .map(|index| (format!("label-{index}"), json!("x")))
            .collect();
        facts(json!({"metadata": {"labels": labels}}))
    };
    let most = with_labels(limits::PAIRS);
    assert_eq!(
        (most.labels.len(), most.unschedulable, most.problems.len()),
        (limits::PAIRS, false, 0)
    );
    for count in [limits::PAIRS + 1, 10_000] {
        let flooded = with_labels(count);
        assert_eq!(flooded.labels.len(), limits::PAIRS);
        assert!(flooded.unschedulable);
        assert_eq!(&*flooded.problems[0].field, "metadata.labels");
    }
}

#[test]
fn endless_annotations_cordon_the_node_and_are_left_out() {
    let facts = facts(json!({"metadata": {"annotations": {
        "nvidia.com/a": "x", "nvidia.com/b": "x".repeat(limits::ANNOTATION_TEXT),
    }}}));
    assert_eq!(facts.annotations.len(), 1);
    assert!(facts.unschedulable);
    assert_eq!(facts.problems.len(), 1);
}

#[test]
fn images_are_read_where_pods_prefer_nodes_that_have_theirs() {
    let node = json!({
        "metadata": {"name": "n"},
        "status": {"images": [
            {"names": ["a@sha256:0", "a:v1"], "sizeBytes": 7},
            {"names": ["b:v1"], "sizeBytes": -1},
            {"sizeBytes": 9},
        ]},
    });
    assert_eq!(facts(node.clone()).images, []);
    let preferences = ClusterPreferences {
        image_locality: true,
        default_spreading: false,
    };
    let mut converter = Converter::new("gpu-batch", NOW_MS).with_preferences(preferences);
    let read = super::node(serde_json::from_value(node).unwrap(), &mut converter);
    let images = read.images.iter();
    let images: Vec<(&str, u64)> = images.map(|it| (&*it.name, it.size_bytes)).collect();
    assert_eq!(images, [("a@sha256:0", 7), ("a:v1", 7), ("b:v1", 0)]);
}
