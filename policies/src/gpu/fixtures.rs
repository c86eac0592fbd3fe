//! Nodes as GPU feature discovery, the GPU operator and the device plugin describe them.

use crate::facts::{Amount, Amounts, NodeFacts, PodShape, Taint, TaintEffect, Uid};
use alloc::{boxed::Box, format, vec, vec::Vec};

const GIB: Amount = 1 << 30;

/// The NVLink domain of [`gb200_rack`].
pub(crate) const RACK_CLIQUE: &str = "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.32766";

/// A Ready node without labels, taints or resources.
pub(crate) fn node(name: &str) -> NodeFacts {
    let uid = name.bytes().fold(1, |uid, byte| {
        (uid << 8 | u128::from(byte)) % 0xffff_ffff_fffd
    });
    NodeFacts::new(Uid(uid), name, Amounts::new())
}

/// A pod that asks for these amounts, all of them in one container.
pub(crate) fn pod(requests: &[(&str, Amount)]) -> PodShape {
    PodShape {
        requests: sorted(requests),
        largest_container: sorted(requests),
        ..PodShape::default()
    }
}

/// Text pairs or amounts, in the order that facts have.
pub(crate) fn sorted<Value: Copy, Kept: Ord + From<Value>>(
    pairs: &[(&str, Value)],
) -> Vec<(Box<str>, Kept)> {
    let mut sorted: Vec<(Box<str>, Kept)> = pairs
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect();
    sorted.sort();
    sorted
}

/// Sets a label of a node.
pub(crate) fn set_label(node: &mut NodeFacts, key: &str, value: &str) {
    node.labels.retain(|(name, _)| **name != *key);
    node.labels.push((key.into(), value.into()));
    node.labels.sort();
}

/// Sets how much of a resource a node has and how much of that it offers.
pub(crate) fn set_resource(
    node: &mut NodeFacts,
    name: &str,
    capacity: Amount,
    allocatable: Amount,
) {
    for (amounts, amount) in [
        (&mut node.capacity, capacity),
        (&mut node.allocatable, allocatable),
    ] {
        amounts.retain(|(known, _)| **known != *name);
        if amount > 0 {
            amounts.push((name.into(), amount));
        }
        amounts.sort();
    }
}

/// `nvidia.com/gpu: present`, as users and clouds set it.
pub(crate) fn gpu_taint() -> Taint {
    Taint {
        key: "nvidia.com/gpu".into(),
        value: "present".into(),
        effect: TaintEffect::NoSchedule,
    }
}

/// A node with eight H100 behind NVSwitch, tainted for GPU pods.
pub(crate) fn h100() -> NodeFacts {
    let mut h100 = node("h100-00");
    h100.labels = sorted(&[
        ("kubernetes.io/hostname", "h100-00"),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("node.kubernetes.io/instance-type", "hgx-h100-8"),
        ("topology.kubernetes.io/region", "r1"),
        ("topology.kubernetes.io/zone", "r1-a"),
        ("feature.node.kubernetes.io/pci-10de.present", "true"),
        ("nvidia.com/gpu.present", "true"),
        ("nvidia.com/gpu.deploy.device-plugin", "true"),
        ("nvidia.com/gpu.workload.config", "container"),
        ("nvidia.com/gpu.count", "8"),
        ("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"),
        ("nvidia.com/gpu.memory", "81559"),
        ("nvidia.com/gpu.family", "hopper"),
        ("nvidia.com/gpu.compute.major", "9"),
        ("nvidia.com/gpu.compute.minor", "0"),
        ("nvidia.com/gpu.replicas", "1"),
        ("nvidia.com/gpu.sharing-strategy", "none"),
        ("nvidia.com/gpu.mode", "compute"),
        ("nvidia.com/mig.capable", "true"),
        ("nvidia.com/mig.config", "all-disabled"),
        ("nvidia.com/mig.config.state", "success"),
        ("nvidia.com/mps.capable", "false"),
        ("nvidia.com/cuda.driver-version.full", "570.158.01"),
        ("nvidia.com/cuda.driver-version.major", "570"),
        ("nvidia.com/cuda.runtime-version.full", "12.8"),
        ("fabric.topograph.run/tier-0", "leaf-03"),
        ("fabric.topograph.run/tier-1", "spine-01"),
        ("fabric.topograph.run/tier-2", "core-0"),
    ]);
    h100.taints = vec![gpu_taint()];
    set_resource(&mut h100, "cpu", 192_000, 190_000);
    set_resource(&mut h100, "memory", 2048 * GIB, 2000 * GIB);
    set_resource(&mut h100, "pods", 110, 110);
    set_resource(&mut h100, "nvidia.com/gpu", 8, 8);
    set_resource(&mut h100, "rdma/hca_shared_devices_a", 64, 64);
    h100
}

/// A GB200 NVL72 rack: 18 nodes of four GPUs in one NVLink domain.
pub(crate) fn gb200_rack() -> Vec<NodeFacts> {
    (0..18).map(gb200).collect()
}

fn gb200(index: u32) -> NodeFacts {
    let name = format!("gb200-r1-n{index:02}");
    let mut gb200 = node(&name);
    gb200.labels = sorted(&[
        ("kubernetes.io/arch", "arm64"),
        ("kubernetes.io/hostname", &name),
        ("nvidia.com/gpu.present", "true"),
        ("nvidia.com/gpu.count", "4"),
        ("nvidia.com/gpu.product", "NVIDIA-GB200"),
        ("nvidia.com/gpu.memory", "189471"),
        ("nvidia.com/gpu.family", "blackwell"),
        ("nvidia.com/gpu.compute.major", "10"),
        ("nvidia.com/gpu.compute.minor", "0"),
        ("nvidia.com/gpu.replicas", "1"),
        ("nvidia.com/gpu.sharing-strategy", "none"),
        ("nvidia.com/mig.capable", "true"),
        ("nvidia.com/gpu.clique", RACK_CLIQUE),
        ("accelerator.topograph.run/domain", RACK_CLIQUE),
        ("fabric.topograph.run/tier-0", "leaf-12"),
        ("fabric.topograph.run/tier-1", "spine-02"),
    ]);
    set_resource(&mut gb200, "cpu", 144_000, 142_000);
    set_resource(&mut gb200, "memory", 960 * GIB, 940 * GIB);
    set_resource(&mut gb200, "pods", 110, 110);
    set_resource(&mut gb200, "nvidia.com/gpu", 4, 4);
    gb200
}

/// A node with eight A100, four whole and four cut, with MIG strategy `mixed`.
pub(crate) fn a100_mig() -> NodeFacts {
    let mut a100 = node("a100-mig-00");
    a100.labels = sorted(&[
        ("nvidia.com/gpu.present", "true"),
        ("nvidia.com/gpu.count", "8"),
        ("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"),
        ("nvidia.com/gpu.memory", "81920"),
        ("nvidia.com/gpu.family", "ampere"),
        ("nvidia.com/gpu.replicas", "1"),
        ("nvidia.com/gpu.sharing-strategy", "none"),
        ("nvidia.com/mig.capable", "true"),
        ("nvidia.com/mig.strategy", "mixed"),
        ("nvidia.com/mig.config", "custom-half"),
        ("nvidia.com/mig.config.state", "success"),
        ("nvidia.com/mig-1g.10gb.count", "8"),
        (
            "nvidia.com/mig-1g.10gb.product",
            "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
        ),
        ("nvidia.com/mig-1g.10gb.memory", "9728"),
        ("nvidia.com/mig-1g.10gb.replicas", "1"),
        ("nvidia.com/mig-1g.10gb.slices.gi", "1"),
        ("nvidia.com/mig-1g.10gb.slices.ci", "1"),
        ("nvidia.com/mig-2g.20gb.count", "4"),
        ("nvidia.com/mig-2g.20gb.memory", "19968"),
        ("nvidia.com/mig-3g.40gb.count", "4"),
        ("nvidia.com/mig-3g.40gb.memory", "40192"),
    ]);
    set_resource(&mut a100, "cpu", 128_000, 126_000);
    set_resource(&mut a100, "memory", 2000 * GIB, 1960 * GIB);
    set_resource(&mut a100, "pods", 110, 110);
    set_resource(&mut a100, "nvidia.com/gpu", 4, 4);
    set_resource(&mut a100, "nvidia.com/mig-1g.10gb", 8, 8);
    set_resource(&mut a100, "nvidia.com/mig-2g.20gb", 4, 4);
    set_resource(&mut a100, "nvidia.com/mig-3g.40gb", 4, 4);
    a100
}
