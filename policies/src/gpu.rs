//! What a node's object says of its NVIDIA GPUs, and when they are not to be used.
//!
//! Two rules hold everywhere. *Amounts decide, labels only describe*: how many GPUs a node has is
//! what it offers in `status.allocatable`, never `nvidia.com/gpu.count`. And *the scheduler chooses
//! nodes and counts*; which cards a container gets is decided by the kubelet and the device plugin.
//!
//! Sources: the labels of GPU feature discovery (k8s-device-plugin v0.20) and of the GPU operator
//! (v26.7). With MIG strategy `single`, `nvidia.com/gpu` counts MIG devices, so a pod that asks for
//! plain GPUs may get a slice there, as with kube-scheduler; who needs whole cards selects by
//! label.

#[cfg(test)]
pub(crate) mod fixtures;
mod refusal;
#[cfg(test)]
mod tests;

pub use refusal::{GpuRefusal, MigState};

use crate::facts::{Amount, Amounts, HAMI_REGISTER, Labels, NodeFacts, amount, label};
use alloc::{boxed::Box, format, vec::Vec};

/// The resource of whole GPUs (or of what a node offers in their place). It is the one that counts
/// for GPU models.
pub const GPU: &str = "nvidia.com/gpu";

/// The label with the model of the GPUs, with suffixes for sharing and MIG.
pub const PRODUCT_LABEL: &str = "nvidia.com/gpu.product";

/// Whether a resource is a GPU or a part of one: pods that ask for it need a node whose GPUs work.
/// Only NVIDIA's names are known.
#[must_use]
pub fn is_gpu_resource(resource: &str) -> bool {
    resource.starts_with(GPU) || resource.starts_with("nvidia.com/mig-")
}

/// Whether a resource counts as GPUs in the entries of queues for a model: only `nvidia.com/gpu`.
/// Renamed shares and MIG devices are resources of their own.
#[must_use]
pub fn counts_as_gpu(resource: &str) -> bool {
    resource == GPU
}

/// The GPU model in a value of the label `nvidia.com/gpu.product`: without `-SHARED` and
/// `-MIG-...`. `None` where nothing is left.
#[must_use]
pub fn product_base(product: &str) -> Option<&str> {
    Some(split_product(product).0).filter(|base| !base.is_empty())
}

/// Splits `<model>[-MIG-<profile>][-SHARED]` into model and profile.
fn split_product(product: &str) -> (&str, Option<&str>) {
    let unshared = product.strip_suffix("-SHARED").unwrap_or(product);
    match unshared.rsplit_once("-MIG-") {
        Some((base, profile)) => (base, Some(profile)),
        None => (unshared, None),
    }
}

/// What a scheduler must know of a node's GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuNode {
    /// The node has GPUs, working or not.
    pub has_gpus: bool,
    /// The model, as [`product_base`] gives it.
    ///
    /// The trap: on a node with cards of several models the label names only one of them.
    pub product: Option<Box<str>>,
    /// How the cards are cut.
    pub mig: Mig,
    /// How `nvidia.com/gpu` is shared.
    pub sharing: Sharing,
    /// Shares go by names of their own, which end in `.shared`.
    pub renamed_shares: bool,
    /// The NVLink domain (`nvidia.com/gpu.clique`) that the node is a part of. A domain whose
    /// cluster UUID is all zeros is none: unrelated nodes have it.
    pub clique: Option<Box<str>>,
    /// Devices (cards or MIG devices) that the node has but does not offer: sick, or the device
    /// plugin is starting. For explanations only; what is offered is already without them.
    pub sick: Amount,
    /// `nvidia.com/gpu` that are HAMi's slots on the cards. They count nowhere: nobody knows how
    /// many cards they are, and which of them a pod would get is not chosen yet.
    pub slots: Amount,
    /// Why no pod that asks for GPUs may come now.
    pub refusal: Option<GpuRefusal>,
    /// Offered resources of which a container may have only one.
    pub(crate) one_share_each: Vec<Box<str>>,
}

/// How the cards of a node are cut into MIG devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mig {
    /// They are whole.
    Whole,
    /// All into devices of this profile, offered as `nvidia.com/gpu`.
    Single {
        /// e.g. `1g.5gb`.
        profile: Box<str>,
    },
    /// Some or all into devices, each profile offered by its own name, `nvidia.com/mig-...`.
    Mixed,
}

/// How many pods share one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One.
    Exclusive,
    /// Several take turns, without any protection from each other.
    TimeSlicing {
        /// Shares of one device.
        replicas: u32,
    },
    /// Several run side by side, each with its part of the memory. A container may have only one
    /// share; the kubelet fails a pod that asks for more.
    Mps {
        /// Shares of one device.
        replicas: u32,
    },
}

impl Sharing {
    /// Reads how a resource of the node is shared: it and its shares have labels of their own.
    fn read(labels: &Labels, resource: &str) -> Self {
        let resource = resource.strip_suffix(SHARED_SUFFIX).unwrap_or(resource);
        let replicas = label(labels, &format!("{resource}.replicas"));
        let replicas = replicas
            .and_then(|text| text.parse().ok())
            .unwrap_or(1)
            .max(1);
        match label(labels, &format!("{resource}.sharing-strategy")) {
            Some("mps") => Self::Mps { replicas },
            Some("time-slicing") => Self::TimeSlicing { replicas },
            // Feature discovery before v0.15 did not name the strategy; there was only this one.
            None if replicas > 1 => Self::TimeSlicing { replicas },
            _ => Self::Exclusive,
        }
    }

    /// How many shares one device has.
    #[must_use]
    pub fn replicas(self) -> u32 {
        match self {
            Self::Exclusive => 1,
            Self::TimeSlicing { replicas } | Self::Mps { replicas } => replicas,
        }
    }
}

/// How the name of a renamed share ends.
const SHARED_SUFFIX: &str = ".shared";

impl GpuNode {
    /// Reads labels, annotations and amounts of a node.
    #[must_use]
    pub fn read(node: &NodeFacts) -> Self {
        let labels = &node.labels;
        let product = label(labels, PRODUCT_LABEL);
        let offered = || gpu_resources(&node.allocatable);
        let existing = || gpu_resources(&node.capacity);
        Self {
            has_gpus: offered().chain(existing()).next().is_some(),
            product: product.and_then(product_base).map(Into::into),
            mig: read_mig(product, &node.capacity),
            sharing: Sharing::read(labels, GPU),
            renamed_shares: existing().any(|name| name.ends_with(SHARED_SUFFIX)),
            clique: label(labels, "nvidia.com/gpu.clique")
                .and_then(real_clique)
                .map(Into::into),
            sick: existing()
                .map(|name| sick_devices(node, name))
                .fold(0, Amount::saturating_add),
            slots: match label(&node.annotations, HAMI_REGISTER) {
                Some(_) => amount(&node.allocatable, GPU),
                None => 0,
            },
            refusal: refusal::read(node),
            one_share_each: offered()
                .filter(|name| matches!(Sharing::read(labels, name), Sharing::Mps { .. }))
                .map(Into::into)
                .collect(),
        }
    }

    /// Whether the node's amount of a resource counts what it names. On a node that shares cards
    /// through HAMi the amount of GPUs counts slots instead.
    pub(crate) fn offers(&self, resource: &str) -> bool {
        self.slots == 0 || resource != GPU
    }
}

/// Whether there is a GPU of any sort among them.
pub(crate) fn asks_for_gpus(requests: &Amounts) -> bool {
    gpu_resources(requests).next().is_some()
}

fn gpu_resources(amounts: &Amounts) -> impl Iterator<Item = &str> {
    let names = amounts.iter().map(|(name, _)| &**name);
    names.filter(|name| is_gpu_resource(name))
}

/// The strategy `single` writes the profile behind the product. The label `nvidia.com/mig.strategy`
/// is not asked: it says `mixed` also where no card is cut.
fn read_mig(product: Option<&str>, capacity: &Amounts) -> Mig {
    match product.and_then(|product| split_product(product).1) {
        Some(profile) if profile != refusal::INVALID_PROFILE => Mig::Single {
            profile: profile.into(),
        },
        _ if gpu_resources(capacity).any(|name| !name.starts_with(GPU)) => Mig::Mixed,
        _ => Mig::Whole,
    }
}

/// `<cluster UUID>.<clique>`, unless the UUID is all zeros.
fn real_clique(clique: &str) -> Option<&str> {
    let (cluster, _) = clique.split_once('.').unwrap_or((clique, ""));
    let real = cluster.bytes().any(|byte| !matches!(byte, b'0' | b'-'));
    real.then_some(clique)
}

/// Devices of a resource that are there and not offered. Shares of one device count once.
fn sick_devices(node: &NodeFacts, resource: &str) -> Amount {
    let [existing, offered] = [&node.capacity, &node.allocatable].map(|all| amount(all, resource));
    let shares = Sharing::read(&node.labels, resource).replicas();
    existing.saturating_sub(offered).div_ceil(shares.into())
}
