use super::{Filter, host_ports_conflict, is_refused_for_one_thing, judged_alike, static_verdict};
use crate::facts::{
    HostPort, MatchOperator, MatchRequirement, NodeFacts, NodeFeature, NodeSelectorTerm, PodShape,
    Protocol, Taint, TaintEffect, Toleration, TolerationOperator,
};
use crate::gpu::fixtures::{a100_mig, gpu_taint, h100, node, pod, set_label, sorted};
use crate::gpu::refusal::MigState;
use crate::gpu::{GPU, GpuNode, GpuRefusal};
use alloc::string::ToString;
use alloc::{vec, vec::Vec};
use core::{slice, str::FromStr};
use proptest::prelude::*;

fn verdict(shape: &PodShape, node: &NodeFacts) -> Result<(), Filter> {
    static_verdict(shape, node, &GpuNode::read(node, false))
}

/// `<operator> <value> <value>...` on a key.
fn requirement(key: &str, operator: MatchOperator, values: &[&str]) -> MatchRequirement {
    let values = values.iter().map(|value| (*value).into()).collect();
    MatchRequirement {
        key: key.into(),
        operator,
        values,
    }
}

fn expressions<const N: usize>(requirements: [MatchRequirement; N]) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_expressions: requirements.into(),
        match_fields: Vec::new(),
    }
}

fn fields<const N: usize>(requirements: [MatchRequirement; N]) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_expressions: Vec::new(),
        match_fields: requirements.into(),
    }
}

fn with_affinity(terms: &[NodeSelectorTerm]) -> PodShape {
    PodShape {
        node_affinity: Some(terms.to_vec()),
        ..PodShape::default()
    }
}

/// The node that the affinity tests look at.
fn labelled_node() -> NodeFacts {
    let mut node = node("n1");
    node.labels = sorted(&[
        ("zone", "a"),
        ("gpus", "8"),
        ("zeros", "0008"),
        ("minus", "-3"),
        ("word", "eight"),
        ("huge", "9223372036854775808"),
        ("empty", ""),
    ]);
    node
}

fn check_affinity(terms: &[NodeSelectorTerm], fits: bool) {
    let expected = if fits {
        Ok(())
    } else {
        Err(Filter::NodeAffinity)
    };
    assert_eq!(
        verdict(&with_affinity(terms), &labelled_node()),
        expected,
        "{terms:?}"
    );
}

#[test]
fn every_label_of_the_selector_must_be_there() {
    let check = |selector: &[(&str, &str)], fits: bool| {
        let shape = PodShape {
            node_selector: sorted(selector),
            ..PodShape::default()
        };
        assert_eq!(
            verdict(&shape, &labelled_node()).is_ok(),
            fits,
            "{selector:?}"
        );
    };
    check(&[], true);
    check(&[("zone", "a")], true);
    check(&[("zone", "a"), ("gpus", "8")], true);
    check(&[("zone", "a"), ("gpus", "4")], false);
    check(&[("zone", "b")], false);
    check(&[("absent", "")], false);
    check(&[("empty", "")], true);
    check(&[("zone", "")], false);
}

#[test]
fn each_operator_compares_as_in_kubernetes() {
    use MatchOperator::{DoesNotExist, Exists, Gt, In, Lt, NotIn};
    let check = |key: &str, operator, values: &[&str], fits| {
        check_affinity(&[expressions([requirement(key, operator, values)])], fits);
    };
    check("zone", In, &["a"], true);
    check("zone", In, &["b", "a"], true);
    check("zone", In, &["b", "c"], false);
    check("zone", In, &[], false);
    check("absent", In, &["a"], false);
    check("absent", In, &[""], false);
    check("empty", In, &[""], true);
    check("zone", NotIn, &["b", "c"], true);
    check("zone", NotIn, &["b", "a"], false);
    check("absent", NotIn, &["a"], true);
    check("zone", NotIn, &[], false);
    check("zone", Exists, &[], true);
    check("absent", Exists, &[], false);
    check("zone", Exists, &["a"], false);
    check("absent", DoesNotExist, &[], true);
    check("zone", DoesNotExist, &[], false);
    check("absent", DoesNotExist, &["a"], false);
    for (operator, below, above) in [(Gt, true, false), (Lt, false, true)] {
        check("gpus", operator, &["7"], below);
        check("gpus", operator, &["8"], false);
        check("gpus", operator, &["9"], above);
        check("gpus", operator, &["007"], below);
        check("zeros", operator, &["7"], below);
        check("minus", operator, &["0"], above);
        for nonsense in [
            &["x"][..],
            &[""],
            &[],
            &["7", "9"],
            &["7.0"],
            &["0x9"],
            &["1_0"],
        ] {
            check("gpus", operator, nonsense, false);
        }
        check("gpus", operator, &["9223372036854775807"], above);
        check("gpus", operator, &["9223372036854775808"], false);
        for no_integer in ["word", "huge", "empty", "absent"] {
            check(no_integer, operator, &["7"], false);
        }
    }
}

#[test]
fn a_value_that_can_be_no_label_spoils_its_term() {
    use MatchOperator::{Exists, Gt, In, NotIn};
    let check = |key: &str, operator, values: &[&str], fits| {
        check_affinity(&[expressions([requirement(key, operator, values)])], fits);
    };
    // Kubernetes reads values as label values, and these cannot begin with a sign.
    check("gpus", Gt, &["-1"], false);
    check("gpus", Gt, &["+1"], false);
    check("zone", NotIn, &["not a label"], false);
    check("zone", In, &["a", "not a label"], false);
    check("not a key", NotIn, &["a"], false);
    check("not a key", Exists, &[], false);
    let spoilt = expressions([requirement("zone", NotIn, &["not a label"])]);
    check_affinity(
        &[spoilt, expressions([requirement("zone", In, &["a"])])],
        true,
    );
}

#[test]
fn one_term_is_enough_and_in_a_term_everything_must_hold() {
    use MatchOperator::{Exists, In};
    let zone = requirement("zone", In, &["a"]);
    let other = requirement("zone", In, &["b"]);
    let gpus = requirement("gpus", Exists, &[]);
    check_affinity(&[], false);
    check_affinity(&[NodeSelectorTerm::default()], false);
    check_affinity(
        &[NodeSelectorTerm::default(), expressions([zone.clone()])],
        true,
    );
    check_affinity(&[expressions([zone.clone(), gpus.clone()])], true);
    check_affinity(&[expressions([zone.clone(), other.clone()])], false);
    check_affinity(&[expressions([other.clone()]), expressions([gpus])], true);
    let named = requirement("metadata.name", In, &["n1"]);
    let both = |zone: MatchRequirement| NodeSelectorTerm {
        match_expressions: vec![zone],
        match_fields: vec![named.clone()],
    };
    check_affinity(&[both(zone)], true);
    check_affinity(&[both(other)], false);
}

#[test]
fn a_field_has_one_value_and_is_the_name() {
    use MatchOperator::{DoesNotExist, Exists, Gt, In, NotIn};
    let check = |key: &str, operator, values: &[&str], fits| {
        check_affinity(&[fields([requirement(key, operator, values)])], fits);
    };
    check("metadata.name", In, &["n1"], true);
    check("metadata.name", In, &["n2"], false);
    check("metadata.name", In, &["n1", "n2"], false);
    check("metadata.name", In, &[], false);
    check("metadata.name", NotIn, &["n1"], false);
    check("metadata.name", NotIn, &["n2"], true);
    check("metadata.name", NotIn, &["n2", "n3"], false);
    check("metadata.name", Exists, &[], false);
    check("metadata.name", DoesNotExist, &[], false);
    check("metadata.name", Gt, &["0"], false);
    check("metadata.uid", In, &["n1"], false);
    check("metadata.uid", NotIn, &["n1"], true);
}

#[test]
fn the_selector_and_the_affinity_must_both_hold() {
    let mut shape = with_affinity(&[expressions([requirement(
        "zone",
        MatchOperator::Exists,
        &[],
    )])]);
    shape.node_selector = sorted(&[("gpus", "8")]);
    assert_eq!(verdict(&shape, &labelled_node()), Ok(()));
    shape.node_selector = sorted(&[("gpus", "4")]);
    assert_eq!(verdict(&shape, &labelled_node()), Err(Filter::NodeAffinity));
}

fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
    Taint {
        key: key.into(),
        value: value.into(),
        effect,
    }
}

fn equal(key: &str, value: &str, effect: Option<TaintEffect>) -> Toleration {
    Toleration {
        key: key.into(),
        operator: TolerationOperator::Equal,
        value: value.into(),
        effect,
    }
}

fn exists(key: &str, effect: Option<TaintEffect>) -> Toleration {
    Toleration {
        key: key.into(),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect,
    }
}

fn tolerant(tolerations: &[Toleration]) -> PodShape {
    PodShape {
        tolerations: tolerations.to_vec(),
        ..PodShape::default()
    }
}

#[test]
fn a_toleration_fits_key_value_and_effect() {
    use TaintEffect::{NoExecute, NoSchedule, PreferNoSchedule};
    let check = |toleration: Toleration, fits: bool| {
        let mut node = node("n1");
        node.taints = vec![taint("team", "vision", NoSchedule)];
        assert_eq!(
            verdict(&tolerant(slice::from_ref(&toleration)), &node).is_ok(),
            fits,
            "{toleration:?}"
        );
    };
    check(equal("team", "vision", Some(NoSchedule)), true);
    check(equal("team", "vision", None), true);
    check(equal("team", "vision", Some(NoExecute)), false);
    check(equal("team", "vision", Some(PreferNoSchedule)), false);
    check(equal("team", "speech", None), false);
    check(equal("team", "", None), false);
    check(equal("owner", "vision", None), false);
    check(exists("team", None), true);
    check(exists("team", Some(NoSchedule)), true);
    check(exists("team", Some(NoExecute)), false);
    check(exists("owner", None), false);
    check(exists("", None), true);
    check(exists("", Some(NoExecute)), false);
    // The API server refuses an empty key with Equal; where one exists, it means every key.
    check(equal("", "vision", None), true);
    check(equal("", "", None), false);
}

#[test]
fn the_first_taint_that_keeps_pods_out_is_named() {
    use TaintEffect::{NoExecute, NoSchedule, PreferNoSchedule};
    let check = |effects: &[TaintEffect], tolerations: &[Toleration], refused: Option<&str>| {
        let mut node = node("n1");
        let taints = effects.iter().enumerate();
        node.taints = taints
            .map(|(i, effect)| taint(&i.to_string(), "", *effect))
            .collect();
        let key = match verdict(&tolerant(tolerations), &node) {
            Ok(()) => None,
            Err(Filter::Taint(taint)) => Some(taint.key),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(key.as_deref(), refused, "{effects:?}");
    };
    check(&[], &[], None);
    check(&[PreferNoSchedule], &[], None);
    check(&[NoSchedule], &[], Some("0"));
    check(&[NoExecute], &[], Some("0"));
    check(&[PreferNoSchedule, NoExecute, NoSchedule], &[], Some("1"));
    check(&[NoSchedule, NoExecute], &[exists("0", None)], Some("1"));
    check(
        &[NoSchedule, NoExecute],
        &[exists("0", None), exists("1", None)],
        None,
    );
}

#[test]
fn a_cordoned_node_takes_only_pods_that_tolerate_it() {
    let key = "node.kubernetes.io/unschedulable";
    let check = |tolerations: &[Toleration], fits: bool| {
        let mut node = node("n1");
        node.unschedulable = true;
        let expected = if fits {
            Ok(())
        } else {
            Err(Filter::NodeUnschedulable)
        };
        assert_eq!(
            verdict(&tolerant(tolerations), &node),
            expected,
            "{tolerations:?}"
        );
    };
    check(&[], false);
    check(&[exists("team", None)], false);
    check(&[exists(key, None)], true);
    check(&[exists("", None)], true);
    check(&[equal(key, "", Some(TaintEffect::NoSchedule))], true);
    check(&[exists(key, Some(TaintEffect::NoExecute))], false);
    check(&[equal(key, "true", None)], false);
}

#[test]
fn filters_are_asked_in_the_order_of_kube_scheduler() {
    let mut node = labelled_node();
    let shape = PodShape {
        node_selector: sorted(&[("zone", "b")]),
        ..pod(&[(GPU, 1)])
    };
    set_label(&mut node, "nvidia.com/mig.config.state", "pending");
    node.taints = vec![gpu_taint()];
    node.unschedulable = true;
    assert_eq!(verdict(&shape, &node), Err(Filter::NodeUnschedulable));
    node.unschedulable = false;
    assert_eq!(verdict(&shape, &node), Err(Filter::Taint(gpu_taint())));
    node.taints.clear();
    assert_eq!(verdict(&shape, &node), Err(Filter::NodeAffinity));
    set_label(&mut node, "zone", "b");
    let refusal = GpuRefusal::MigChange(MigState::Pending);
    assert_eq!(verdict(&shape, &node), Err(Filter::GpuNode(refusal)));
    set_label(&mut node, "nvidia.com/mig.config.state", "success");
    assert_eq!(verdict(&shape, &node), Ok(()));
}

#[test]
fn a_node_would_do_but_for_one_thing_or_is_refused_for_several() {
    let shape = PodShape {
        node_selector: sorted(&[("zone", "b")]),
        ..pod(&[(GPU, 1)])
    };
    for things in 0_u32..16 {
        let mut node = labelled_node();
        // Kubernetes taints the nodes that it cordons: that is one thing.
        if things & 1 != 0 {
            node.unschedulable = true;
            node.taints.push(super::cordon());
        }
        if things & 2 != 0 {
            node.taints.push(gpu_taint());
        }
        set_label(&mut node, "zone", if things & 4 != 0 { "a" } else { "b" });
        if things & 8 != 0 {
            set_label(&mut node, "nvidia.com/mig.config.state", "pending");
        }
        let refused_for_one = is_refused_for_one_thing(&shape, &node, &GpuNode::read(&node, false));
        assert_eq!(refused_for_one, things.count_ones() == 1, "{things:04b}");
        assert_eq!(verdict(&shape, &node).is_ok(), things == 0);
    }
}

#[test]
fn pods_for_h100_and_for_mig_devices_find_their_nodes() {
    let mut shape = pod(&[(GPU, 8)]);
    shape.node_selector = sorted(&[("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3")]);
    assert_eq!(verdict(&shape, &h100()), Err(Filter::Taint(gpu_taint())));
    shape.tolerations = vec![exists("nvidia.com/gpu", Some(TaintEffect::NoSchedule))];
    assert_eq!(verdict(&shape, &h100()), Ok(()));
    assert_eq!(verdict(&shape, &a100_mig()), Err(Filter::NodeAffinity));
    assert_eq!(
        verdict(&pod(&[("nvidia.com/mig-3g.40gb", 1)]), &a100_mig()),
        Ok(())
    );
}

#[test]
fn host_ports_conflict_on_the_same_or_on_all_addresses() {
    let port = |host_ip: &str, protocol, port| HostPort {
        port,
        protocol,
        host_ip: host_ip.into(),
    };
    let check = |one: HostPort, other: HostPort, conflict: bool| {
        assert_eq!(
            host_ports_conflict(&one, &other),
            conflict,
            "{one:?} {other:?}"
        );
        assert_eq!(
            host_ports_conflict(&other, &one),
            conflict,
            "{other:?} {one:?}"
        );
    };
    use Protocol::{Sctp, Tcp, Udp};
    check(port("", Tcp, 80), port("", Tcp, 80), true);
    check(port("", Tcp, 80), port("", Tcp, 81), false);
    check(port("", Tcp, 80), port("", Udp, 80), false);
    check(port("", Sctp, 80), port("", Udp, 80), false);
    check(port("", Tcp, 80), port("10.0.0.1", Tcp, 80), true);
    check(port("10.0.0.1", Tcp, 80), port("10.0.0.1", Tcp, 80), true);
    check(port("10.0.0.1", Tcp, 80), port("10.0.0.2", Tcp, 80), false);
    check(port("::", Tcp, 80), port("10.0.0.2", Tcp, 80), false);
}

#[test]
fn refusals_read_as_sentences_about_nodes() {
    let check = |filter: Filter, words: &str| assert_eq!(filter.to_string(), words);
    check(Filter::NodeUnschedulable, "were unschedulable");
    check(
        Filter::Taint(gpu_taint()),
        "had untolerated taint {nvidia.com/gpu: present}",
    );
    let lost = taint("node.kubernetes.io/unreachable", "", TaintEffect::NoExecute);
    let words = "had untolerated NoExecute taint {node.kubernetes.io/unreachable: }";
    check(Filter::Taint(lost), words);
    check(
        Filter::NodeAffinity,
        "didn't match the pod's node affinity/selector",
    );
    check(
        Filter::NodeFeature(NodeFeature::UserNamespacesHostNetwork),
        "didn't declare the feature UserNamespacesHostNetworkSupport",
    );
    let upgrade = GpuRefusal::DriverUpgrade("drain-required");
    check(
        Filter::GpuNode(upgrade),
        "had a driver upgrade under way (drain-required)",
    );
    let shared = "shared nvidia.com/gpu, one share for each container";
    check(Filter::SharedGpu(GPU.into()), shared);
    check(
        Filter::Resource("nvidia.com/gpu".into()),
        "had insufficient nvidia.com/gpu",
    );
    check(
        Filter::HostPort,
        "didn't have free ports for the requested pod ports",
    );
    let limit = "had NVIDIA-H100-80GB-HBM3, whose limit in the queue is reached";
    check(Filter::ModelLimit("NVIDIA-H100-80GB-HBM3".into()), limit);
}

#[test]
fn shapes_that_are_judged_alike_hear_the_same_of_every_node() {
    let toleration = Toleration {
        key: "".into(),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect: None,
    };
    let requests: [&[(&str, u64)]; 4] = [
        &[],
        &[(GPU, 1)],
        &[(GPU, 2)],
        &[("nvidia.com/mig-1g.5gb", 1)],
    ];
    let mut shapes = Vec::new();
    for (requests, number) in requests.iter().zip(0..) {
        for choice in 0..64 {
            let mut shape = pod(requests);
            shape.requests.push(("cpu".into(), 1_000 + (choice & 1)));
            if choice & 2 > 0 {
                shape.tolerations.push(toleration.clone());
            }
            if choice & 4 > 0 {
                shape.node_selector = sorted(&[("zone", "a")]);
            }
            if choice & 8 > 0 {
                let zone = requirement("zone", MatchOperator::In, &["a", "b"]);
                shape.node_affinity = Some(vec![expressions([zone])]);
            }
            if choice & 16 > 0 {
                shape.largest_container = vec![(GPU.into(), number)];
            }
            if choice & 32 > 0 {
                shape.features.push(NodeFeature::RestartAllContainers);
            }
            shapes.push(shape);
        }
    }
    let mut cordoned = labelled_node();
    cordoned.unschedulable = true;
    let mut shared = h100();
    set_label(&mut shared, "nvidia.com/gpu.sharing-strategy", "mps");
    let mut declaring = labelled_node();
    declaring.features.push(NodeFeature::RestartAllContainers);
    let nodes = [
        labelled_node(),
        cordoned,
        declaring,
        shared,
        h100(),
        a100_mig(),
        node("n1"),
    ];
    let mut pairs = 0;
    for one in &shapes {
        for other in shapes.iter().filter(|other| judged_alike(one, other)) {
            pairs += usize::from(one != other);
            for node in &nodes {
                assert_eq!(
                    verdict(one, node),
                    verdict(other, node),
                    "{one:?} {other:?}"
                );
            }
        }
    }
    // Each at least with the one that asks for another amount of CPU.
    assert!(pairs >= shapes.len(), "only {pairs} pairs are alike");
}

proptest! {
    /// Gt and Lt see the order of the integers, and a number is never both.
    #[test]
    fn integers_compare_as_integers(label: i64, bound in 0i64..) {
        let holds = |operator| {
            let mut node = node("n1");
            set_label(&mut node, "number", &label.to_string());
            let term = expressions([requirement("number", operator, &[&bound.to_string()])]);
            verdict(&with_affinity(&[term]), &node).is_ok()
        };
        prop_assert_eq!(holds(MatchOperator::Gt), label > bound);
        prop_assert_eq!(holds(MatchOperator::Lt), label < bound);
    }

    /// A text is an integer for us exactly where it is one for Kubernetes: an optional sign and
    /// decimal digits, within 64 bits.
    #[test]
    fn only_decimal_texts_are_integers(text in "[-+0-9_. x]{0,22}") {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(&text);
        let decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let magnitude = digits.parse::<u128>().unwrap_or(u128::MAX);
        let most = (1u128 << 63) - u128::from(!text.starts_with('-'));
        prop_assert_eq!(i64::from_str(&text).is_ok(), decimal && magnitude <= most);
    }

    /// NotIn is the opposite of In for every label, present or not.
    #[test]
    fn not_in_is_the_opposite_of_in(
        value in "[abc]",
        values in prop::collection::vec("[abc]", 1..4),
    ) {
        let mut node = node("n1");
        set_label(&mut node, "key", &value);
        let values: Vec<&str> = values.iter().map(|value| &**value).collect();
        for key in ["key", "absent"] {
            let holds = |operator| {
                let term = expressions([requirement(key, operator, &values)]);
                verdict(&with_affinity(&[term]), &node).is_ok()
            };
            prop_assert_ne!(holds(MatchOperator::In), holds(MatchOperator::NotIn));
        }
    }
}
