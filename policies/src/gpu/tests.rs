use super::fixtures::{
    RACK_CLIQUE, a100_mig, gb200_rack, h100, node, pod, set_label, set_resource,
};
use super::refusal::MigState;
use super::{GPU, GpuNode, GpuRefusal, Mig, Sharing, is_gpu_resource};
use super::{PRODUCT_LABEL, product_base};
use crate::facts::{Amount, NodeFacts};
use crate::filter::Filter;
use alloc::string::ToString;

/// A node with eight cards and one more label.
fn labelled(key: &str, value: &str) -> NodeFacts {
    let mut node = h100();
    set_label(&mut node, key, value);
    node
}

#[test]
fn a_node_of_whole_h100_is_read_as_it_is() {
    let gpu = GpuNode::read(&h100(), false);
    assert_eq!(
        gpu,
        GpuNode {
            has_gpus: true,
            product: Some("NVIDIA-H100-80GB-HBM3".into()),
            mig: Mig::Whole,
            sharing: Sharing::Exclusive,
            renamed_shares: false,
            clique: None,
            sick: 0,
            is_hami: false,
            slots: 0,
            refusal: None,
            one_share_each: [].into(),
        }
    );
    assert_eq!(gpu.verdict(&pod(&[(GPU, 8)])), Ok(()));
}

#[test]
fn the_nodes_of_a_gb200_rack_are_one_nvlink_domain() {
    let rack = gb200_rack();
    assert_eq!(rack.len(), 18);
    for node in &rack {
        let gpu = GpuNode::read(node, false);
        assert_eq!(gpu.product.as_deref(), Some("NVIDIA-GB200"));
        assert_eq!(gpu.clique.as_deref(), Some(RACK_CLIQUE));
        assert_eq!((gpu.mig, gpu.refusal, gpu.sick), (Mig::Whole, None, 0));
    }
}

#[test]
fn a_mixed_mig_node_has_whole_cards_and_devices() {
    let gpu = GpuNode::read(&a100_mig(), false);
    assert_eq!(gpu.product.as_deref(), Some("NVIDIA-A100-SXM4-80GB"));
    assert_eq!(gpu.mig, Mig::Mixed);
    assert_eq!((gpu.refusal.clone(), gpu.sick), (None, 0));
    assert_eq!(gpu.verdict(&pod(&[("nvidia.com/mig-1g.10gb", 7)])), Ok(()));
}

#[test]
fn the_label_of_the_strategy_does_not_cut_cards() {
    let gpu = GpuNode::read(&labelled("nvidia.com/mig.strategy", "mixed"), false);
    assert_eq!(gpu.mig, Mig::Whole);
}

#[test]
fn the_product_label_is_taken_apart() {
    let check = |label: &str, product: Option<&str>, mig: Mig| {
        let gpu = GpuNode::read(&labelled(PRODUCT_LABEL, label), false);
        assert_eq!(gpu.product.as_deref(), product, "{label}");
        assert_eq!(gpu.mig, mig, "{label}");
        assert_eq!(product_base(label), product, "{label}");
    };
    let single = |profile: &str| Mig::Single {
        profile: profile.into(),
    };
    check("Tesla-T4", Some("Tesla-T4"), Mig::Whole);
    check("Tesla-T4-SHARED", Some("Tesla-T4"), Mig::Whole);
    check("A100-MIG-1g.5gb", Some("A100"), single("1g.5gb"));
    check(
        "A100-MIG-1g.5gb.me-SHARED",
        Some("A100"),
        single("1g.5gb.me"),
    );
    check("X-MIG-Y-MIG-2g.10gb", Some("X-MIG-Y"), single("2g.10gb"));
    check("A100-MIG-INVALID", Some("A100"), Mig::Whole);
    check("", None, Mig::Whole);
    check("-SHARED", None, Mig::Whole);
}

#[test]
fn a_node_without_gpus_says_nothing_and_refuses_nobody() {
    let gpu = GpuNode::read(&node("cpu-0"), false);
    assert!(!gpu.has_gpus);
    assert_eq!(
        (gpu.product.clone(), gpu.clique.clone(), gpu.refusal.clone()),
        (None, None, None)
    );
    assert_eq!(
        gpu.verdict(&pod(&[(GPU, 1)])),
        Ok(()),
        "the count refuses, not the labels"
    );
}

#[test]
fn sharing_is_what_the_strategy_says() {
    let check = |strategy: Option<&str>, replicas: &str, expected: Sharing| {
        let mut node = node("t4");
        set_resource(&mut node, GPU, 4, 4);
        set_label(&mut node, "nvidia.com/gpu.replicas", replicas);
        if let Some(strategy) = strategy {
            set_label(&mut node, "nvidia.com/gpu.sharing-strategy", strategy);
        }
        assert_eq!(
            GpuNode::read(&node, false).sharing,
            expected,
            "{strategy:?} {replicas}"
        );
    };
    check(Some("none"), "1", Sharing::Exclusive);
    check(
        Some("time-slicing"),
        "4",
        Sharing::TimeSlicing { replicas: 4 },
    );
    check(Some("mps"), "10", Sharing::Mps { replicas: 10 });
    check(Some("mps"), "many", Sharing::Mps { replicas: 1 });
    check(Some(""), "0", Sharing::Exclusive);
    check(None, "4", Sharing::TimeSlicing { replicas: 4 });
    check(None, "1", Sharing::Exclusive);
}

#[test]
fn a_container_gets_one_share_of_an_mps_device() {
    let check = |resource: &str, prefix: &str, strategy: &str, asked: Amount, refused: bool| {
        let mut node = node("t4");
        set_resource(&mut node, resource, 8, 8);
        set_label(&mut node, &(prefix.to_string() + ".replicas"), "4");
        set_label(
            &mut node,
            &(prefix.to_string() + ".sharing-strategy"),
            strategy,
        );
        let gpu = GpuNode::read(&node, false);
        assert_eq!(
            gpu.renamed_shares,
            resource.ends_with(".shared"),
            "{resource}"
        );
        let expected = if refused {
            Err(Filter::SharedGpu(resource.into()))
        } else {
            Ok(())
        };
        assert_eq!(
            gpu.verdict(&pod(&[(resource, asked)])),
            expected,
            "{resource} {strategy}"
        );
    };
    let mig = "nvidia.com/mig-1g.5gb";
    check(GPU, GPU, "mps", 2, true);
    check(GPU, GPU, "mps", 1, false);
    check(GPU, GPU, "time-slicing", 2, false);
    check(GPU, GPU, "none", 2, false);
    check("nvidia.com/gpu.shared", GPU, "mps", 2, true);
    check("nvidia.com/mig-1g.5gb.shared", mig, "mps", 2, true);
    check(mig, mig, "time-slicing", 2, false);
    // Another resource of the node is shared, not this one.
    check(mig, GPU, "mps", 2, false);
}

#[test]
fn two_containers_may_have_a_share_each() {
    let mut node = node("t4");
    set_resource(&mut node, GPU, 8, 8);
    set_label(&mut node, "nvidia.com/gpu.sharing-strategy", "mps");
    let mut shape = pod(&[(GPU, 2)]);
    shape.largest_container[0].1 = 1;
    assert_eq!(GpuNode::read(&node, false).verdict(&shape), Ok(()));
}

#[test]
fn devices_that_are_not_offered_are_sick() {
    let check = |resource: &str, strategy: &str, capacity, allocatable, sick| {
        let mut node = node("n");
        set_resource(&mut node, resource, capacity, allocatable);
        set_label(&mut node, "nvidia.com/gpu.replicas", "4");
        set_label(&mut node, "nvidia.com/gpu.sharing-strategy", strategy);
        let gpu = GpuNode::read(&node, false);
        assert_eq!(
            gpu.sick, sick,
            "{resource} {strategy} {capacity} {allocatable}"
        );
        assert_eq!(
            gpu.has_gpus,
            is_gpu_resource(resource) && capacity.max(allocatable) > 0
        );
    };
    check(GPU, "none", 8, 8, 0);
    check(GPU, "none", 8, 7, 1);
    check(GPU, "none", 8, 0, 8);
    check(GPU, "none", 0, 8, 0);
    check(GPU, "none", 0, 0, 0);
    check(GPU, "time-slicing", 32, 28, 1);
    check(GPU, "time-slicing", 32, 27, 2);
    check("nvidia.com/gpu.shared", "mps", 32, 24, 2);
    check("nvidia.com/mig-1g.5gb", "none", 7, 5, 2);
    check("cpu", "none", 8000, 7000, 0);
}

#[test]
fn a_clique_of_zeros_is_no_nvlink_domain() {
    let check = |clique: &str, expected: Option<&str>| {
        let gpu = GpuNode::read(&labelled("nvidia.com/gpu.clique", clique), false);
        assert_eq!(gpu.clique.as_deref(), expected, "{clique}");
    };
    check(RACK_CLIQUE, Some(RACK_CLIQUE));
    check("00000000-0000-0000-0000-000000000000.0", None);
    check("00000000-0000-0000-0000-000000000000.7", None);
    check(
        "00000000-0000-0000-0000-000000000001.0",
        Some("00000000-0000-0000-0000-000000000001.0"),
    );
    check("", None);
}

#[test]
fn the_operator_keeps_gpu_pods_away_while_it_works() {
    let check = |key: &str, value: &str, expected: Option<GpuRefusal>| {
        let gpu = GpuNode::read(&labelled(key, value), false);
        assert_eq!(gpu.refusal, expected, "{key}={value}");
        let verdict = expected.map_or(Ok(()), |refusal| Err(Filter::GpuNode(refusal)));
        assert_eq!(gpu.verdict(&pod(&[(GPU, 1)])), verdict);
        assert_eq!(gpu.verdict(&pod(&[("nvidia.com/mig-1g.5gb", 1)])), verdict);
        assert_eq!(
            gpu.verdict(&pod(&[("cpu", 1000), ("amd.com/gpu", 1)])),
            Ok(())
        );
    };
    let upgrade = "nvidia.com/gpu-driver-upgrade-state";
    for state in super::refusal::UPGRADING {
        check(upgrade, state, Some(GpuRefusal::DriverUpgrade(state)));
    }
    for fine in ["", "upgrade-done", "upgrade-required"] {
        check(upgrade, fine, None);
    }
    let mig = |state| Some(GpuRefusal::MigChange(state));
    check(
        "nvidia.com/mig.config.state",
        "pending",
        mig(MigState::Pending),
    );
    check(
        "nvidia.com/mig.config.state",
        "rebooting",
        mig(MigState::Rebooting),
    );
    check(
        "nvidia.com/mig.config.state",
        "failed",
        mig(MigState::Failed),
    );
    check("nvidia.com/mig.config.state", "success", None);
    let plugin = "nvidia.com/gpu.deploy.device-plugin";
    check(
        plugin,
        "paused-for-mig-change",
        Some(GpuRefusal::PluginPaused),
    );
    check(
        plugin,
        "paused-for-driver-upgrade",
        Some(GpuRefusal::PluginPaused),
    );
    check(plugin, "true", None);
    let workload = "nvidia.com/gpu.workload.config";
    check(
        workload,
        "vm-passthrough",
        Some(GpuRefusal::NotForContainers),
    );
    check(workload, "vm-vgpu", Some(GpuRefusal::NotForContainers));
    check(workload, "container", None);
    check(workload, "", None);
    check(
        PRODUCT_LABEL,
        "NVIDIA-A100-MIG-INVALID",
        Some(GpuRefusal::MigInvalid),
    );
    check(PRODUCT_LABEL, "NVIDIA-A100-MIG-1g.5gb", None);
}

#[test]
fn a_driver_that_waits_for_an_empty_node_gets_one() {
    let mut node = h100();
    let key = "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load";
    node.annotations = [(key.into(), "".into())].into();
    assert_eq!(GpuNode::read(&node, false).refusal, None);
    node.annotations = [(key.into(), "true".into())].into();
    assert_eq!(
        GpuNode::read(&node, false).refusal,
        Some(GpuRefusal::DriverLoad)
    );
}

#[test]
fn only_names_of_nvidia_are_gpus() {
    let check = |name: &str, gpu: bool| assert_eq!(is_gpu_resource(name), gpu, "{name}");
    check("nvidia.com/gpu", true);
    check("nvidia.com/gpu.shared", true);
    check("nvidia.com/gpumem", true);
    check("nvidia.com/mig-1g.5gb", true);
    check("nvidia.com/mig-3g.40gb.shared", true);
    check("nvidia.com/pgpu", false);
    check("amd.com/gpu", false);
    check("cpu", false);
}
