//! Fake GPU nodes.
//!
//! Fake nodes carry the labels that NVIDIA's GPU feature discovery gives to real nodes of the same
//! kind, and the annotation by which kwok knows that it plays them.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use http::header::CONTENT_TYPE;
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// How many nodes are created at the same time.
const PARALLEL_REQUESTS: usize = 32;

/// A kind of GPU, and the machine that it usually sits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuProduct {
    /// Label `nvidia.com/gpu.product`.
    pub name: &'static str,
    /// Label `nvidia.com/gpu.family`.
    pub family: &'static str,
    /// Memory of one GPU in MiB, as its driver reports it.
    pub memory_mib: u32,
    /// Label `nvidia.com/gpu.compute.major`.
    pub compute_major: u32,
    /// Label `nvidia.com/gpu.compute.minor`.
    pub compute_minor: u32,
    /// Label `node.kubernetes.io/instance-type`.
    pub instance_type: &'static str,
    /// Label `kubernetes.io/arch`.
    pub architecture: &'static str,
    /// GPUs of one machine.
    pub gpus: u32,
    /// Allocatable cores of one machine.
    pub cpu: u32,
    /// Allocatable memory of one machine in GiB.
    pub memory_gib: u32,
}

/// Eight H100 with NVSwitch.
pub const H100: GpuProduct = GpuProduct {
    name: "NVIDIA-H100-80GB-HBM3",
    family: "hopper",
    memory_mib: 81_559,
    compute_major: 9,
    compute_minor: 0,
    instance_type: "hgx-h100-8",
    architecture: "amd64",
    gpus: 8,
    cpu: 190,
    memory_gib: 2000,
};

/// Eight A100 with NVSwitch.
pub const A100: GpuProduct = GpuProduct {
    name: "NVIDIA-A100-SXM4-80GB",
    family: "ampere",
    memory_mib: 81_920,
    compute_major: 8,
    compute_minor: 0,
    instance_type: "hgx-a100-8",
    architecture: "amd64",
    gpus: 8,
    cpu: 126,
    memory_gib: 1000,
};

/// One tray of a GB200 NVL72 rack, which has 18.
pub const GB200: GpuProduct = GpuProduct {
    name: "NVIDIA-GB200",
    family: "blackwell",
    memory_mib: 189_471,
    compute_major: 10,
    compute_minor: 0,
    instance_type: "gb200-nvl72",
    architecture: "arm64",
    gpus: 4,
    cpu: 142,
    memory_gib: 940,
};

/// A fake node. Start from [`GpuNode::new`] and change what differs.
#[derive(Clone, Debug)]
pub struct GpuNode {
    /// The node's name, also its host name.
    pub name: String,
    /// The model of the node's GPUs.
    pub product: GpuProduct,
    /// How many GPUs the node offers; fewer than the product has where cards are broken.
    pub gpus: u32,
    /// Label `topology.kubernetes.io/zone`.
    pub zone: String,
    /// Label `example.com/rack`.
    pub rack: String,
    /// Label `nvidia.com/gpu.clique`: the NVLink domain, for GPUs whose domain spans nodes.
    pub clique: Option<String>,
    /// More labels; they replace those made from the fields.
    pub labels: BTreeMap<String, String>,
}

impl GpuNode {
    /// A whole machine in the zone `zone-a` and the rack `rack-0`.
    pub fn new(name: impl Into<String>, product: GpuProduct) -> Self {
        Self {
            name: name.into(),
            product,
            gpus: product.gpus,
            zone: "zone-a".into(),
            rack: "rack-0".into(),
            clique: None,
            labels: BTreeMap::new(),
        }
    }

    /// The Kubernetes object of the node; it is ready, so that it can be used without kwok too.
    pub fn object(&self) -> Value {
        let GpuProduct {
            cpu,
            memory_gib,
            architecture,
            ..
        } = self.product;
        let amounts = json!({
            "cpu": cpu.to_string(),
            "memory": format!("{memory_gib}Gi"),
            "pods": "110",
            "nvidia.com/gpu": self.gpus.to_string(),
        });
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.name,
                "labels": self.all_labels(),
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "fake node",
                }],
                "addresses": [
                    {"type": "Hostname", "address": self.name},
                    {"type": "InternalIP", "address": "10.0.0.1"},
                ],
                "nodeInfo": {
                    "architecture": architecture,
                    "operatingSystem": "linux",
                    "bootID": "", "machineID": "", "systemUUID": "",
                    "containerRuntimeVersion": "fake", "kernelVersion": "fake",
                    "kubeProxyVersion": "fake", "kubeletVersion": "fake", "osImage": "fake",
                },
            },
        })
    }

    fn all_labels(&self) -> BTreeMap<String, String> {
        let product = self.product;
        let mut labels: BTreeMap<String, String> = [
            ("kubernetes.io/hostname", self.name.clone()),
            ("kubernetes.io/os", "linux".into()),
            ("kubernetes.io/arch", product.architecture.into()),
            (
                "node.kubernetes.io/instance-type",
                product.instance_type.into(),
            ),
            ("topology.kubernetes.io/region", "region-1".into()),
            ("topology.kubernetes.io/zone", self.zone.clone()),
            ("example.com/rack", self.rack.clone()),
            ("feature.node.kubernetes.io/pci-10de.present", "true".into()),
            ("nvidia.com/gpu.present", "true".into()),
            ("nvidia.com/gpu.deploy.device-plugin", "true".into()),
            ("nvidia.com/gpu.workload.config", "container".into()),
            ("nvidia.com/gpu.count", product.gpus.to_string()),
            ("nvidia.com/gpu.product", product.name.into()),
            ("nvidia.com/gpu.memory", product.memory_mib.to_string()),
            ("nvidia.com/gpu.family", product.family.into()),
            (
                "nvidia.com/gpu.compute.major",
                product.compute_major.to_string(),
            ),
            (
                "nvidia.com/gpu.compute.minor",
                product.compute_minor.to_string(),
            ),
            ("nvidia.com/gpu.replicas", "1".into()),
            ("nvidia.com/gpu.sharing-strategy", "none".into()),
            ("nvidia.com/gpu.mode", "compute".into()),
            ("nvidia.com/mig.capable", "true".into()),
            ("nvidia.com/mig.config", "all-disabled".into()),
            ("nvidia.com/mig.config.state", "success".into()),
            ("nvidia.com/mps.capable", "false".into()),
            ("nvidia.com/cuda.driver-version.full", "570.158.01".into()),
            ("nvidia.com/cuda.driver-version.major", "570".into()),
            ("nvidia.com/cuda.runtime-version.full", "12.8".into()),
        ]
        .map(|(label, value): (&str, String)| (label.to_owned(), value))
        .into();
        if let Some(clique) = &self.clique {
            labels.insert("nvidia.com/gpu.clique".into(), clique.clone());
        }
        labels.extend(self.labels.clone());
        labels
    }
}

/// Creates `nodes`, many at a time. One request makes a whole node: unlike for other kinds, the API
/// server keeps the status of a node that is created.
///
/// # Errors
/// The first request that fails; nodes before and after it may have been created.
pub async fn create(
    client: &Client,
    nodes: impl IntoIterator<Item = GpuNode>,
) -> Result<(), kube::Error> {
    futures::stream::iter(nodes)
        .map(|node| async move {
            let request = http::Request::post("/api/v1/nodes")
                .header(CONTENT_TYPE, "application/json")
                .body(node.object().to_string().into_bytes())
                .map_err(kube::Error::HttpError)?;
            client.request::<IgnoredAny>(request).await.map(drop)
        })
        .buffer_unordered(PARALLEL_REQUESTS)
        .try_collect()
        .await
}
