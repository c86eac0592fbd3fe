//! What a node's object says of its NVIDIA GPUs, and when they are not to be used.
//!
//! Two rules hold everywhere. *Amounts decide, labels only describe*: how many GPUs a node has is
//! what it offers in `status.allocatable`, never `nvidia.com/gpu.count`. And *the scheduler chooses
//! nodes and counts*; which cards a container gets is decided by the kubelet and the device plugin.
//!
//! Sources: the labels of GPU feature discovery (k8s-device-plugin v0.20) and of the GPU operator
//! (v26.7). With MIG strategy `single`, `nvidia.com/gpu` counts MIG devices, so a pod that asks for
//! plain GPUs may get a slice there, as with kube-scheduler; a pod that needs whole cards selects
//! nodes by label.

#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod mig;
pub(crate) mod refusal;
#[cfg(test)]
mod tests;

pub(crate) use crate::facts::GPU;
pub(crate) use refusal::{GpuRefusal, awaits_upgrade};

use crate::facts::{Amount, Amounts, HAMI_REGISTER, Labels, NodeFacts, amount, label};
use alloc::{boxed::Box, format, vec::Vec};

/// The label with the model of the GPUs, with suffixes for sharing and MIG.
pub(crate) const PRODUCT_LABEL: &str = "nvidia.com/gpu.product";

/// Whether a resource is a GPU or a part of one: pods that ask for it need a node whose GPUs work.
/// Only NVIDIA's names are known.
pub(crate) fn is_gpu_resource(resource: &str) -> bool {
    resource.starts_with(GPU) || resource.starts_with("nvidia.com/mig-")
}

/// The GPU model in a value of the label `nvidia.com/gpu.product`: without `-SHARED` and
/// `-MIG-...`. `None` where nothing is left.
pub(crate) fn product_base(product: &str) -> Option<&str> {
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

/// What a scheduler must know of the GPUs of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GpuNode {
    /// The node has GPUs, working or not.
    pub has_gpus: bool,
    /// The GPU model, as [`product_base`] gives it; `None`: the node has no such label.
    ///
    /// The trap: on a node with cards of several models the label names only one of them.
    pub product: Option<Box<str>>,
    /// How the cards are cut into MIG devices.
    pub mig: Mig,
    /// How `nvidia.com/gpu` is shared.
    pub sharing: Sharing,
    /// The node offers shares of GPUs under resource names that end in `.shared`.
    pub renamed_shares: bool,
    /// The NVLink domain (`nvidia.com/gpu.clique`) that the node is a part of. `None` also where
    /// the cluster UUID of the domain is all zeros, which unrelated nodes have.
    pub clique: Option<Box<str>>,
    /// Devices (cards or MIG devices) that the node has but does not offer: sick, or the device
    /// plugin is starting. For explanations only; what is offered is already without them.
    pub sick: Amount,
    /// HAMi's device plugin shares the cards, and has to be told which of them a pod gets.
    pub is_hami: bool,
    /// How many `nvidia.com/gpu` of the node are HAMi's slots on its cards. Slots are no GPUs: they
    /// are for pods that ask for parts of cards.
    pub slots: Amount,
    /// Why the node takes no pods that ask for GPUs now; `None`: it takes them.
    pub refusal: Option<GpuRefusal>,
    /// Offered resources of which a container may have only one.
    pub(crate) one_share_each: Vec<Box<str>>,
}

/// How the cards of a node are cut into MIG devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mig {
    /// All cards are whole.
    Whole,
    /// All cards are cut into devices of one profile, offered as `nvidia.com/gpu`.
    Single {
        /// The profile, e.g. `1g.5gb`.
        profile: Box<str>,
    },
    /// Some or all cards are cut into devices, each profile offered under a name of its own,
    /// `nvidia.com/mig-...`.
    Mixed,
}

/// How many pods share one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One pod.
    Exclusive,
    /// Several pods take turns, without any protection from each other.
    TimeSlicing {
        /// How many shares one device has.
        replicas: u32,
    },
    /// Several pods run side by side, each with its part of the memory. A container may have only
    /// one share; the kubelet fails a pod that asks for more.
    Mps {
        /// How many shares one device has.
        replicas: u32,
    },
}

impl Sharing {
    /// Reads how a resource of the node is shared. Each resource has labels of its own, which also
    /// hold for its renamed shares.
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
            // Feature discovery before v0.15 did not name the strategy; time-slicing was the only
            // one.
            None if replicas > 1 => Self::TimeSlicing { replicas },
            _ => Self::Exclusive,
        }
    }

    /// How many shares one device has.
    pub(crate) fn replicas(self) -> u32 {
        match self {
            Self::Exclusive => 1,
            Self::TimeSlicing { replicas } | Self::Mps { replicas } => replicas,
        }
    }
}

/// The end of the resource names of renamed shares.
const SHARED_SUFFIX: &str = ".shared";

impl GpuNode {
    /// Reads what the labels, annotations and amounts of a node say of its GPUs.
    /// `time_slices_are_single`: a container may have only one share of a GPU that is shared by
    /// time-slicing, too.
    pub(crate) fn read(node: &NodeFacts, time_slices_are_single: bool) -> Self {
        let labels = &node.labels;
        let product = label(labels, PRODUCT_LABEL);
        let is_hami = label(&node.annotations, HAMI_REGISTER).is_some();
        let offered = || gpu_resources(&node.allocatable);
        let existing = || gpu_resources(&node.capacity);
        let is_single = |name: &&str| match Sharing::read(labels, name) {
            Sharing::Exclusive => false,
            Sharing::TimeSlicing { .. } => time_slices_are_single,
            Sharing::Mps { .. } => true,
        };
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
            is_hami,
            slots: match is_hami {
                true => amount(&node.allocatable, GPU),
                false => 0,
            },
            refusal: refusal::read(node),
            one_share_each: offered().filter(is_single).map(Into::into).collect(),
        }
    }

    /// Whether the node's amount of a resource counts what the resource is named after. On a node
    /// that shares cards through HAMi the amount of `nvidia.com/gpu` counts slots instead.
    pub(crate) fn offers(&self, resource: &str) -> bool {
        self.slots == 0 || resource != GPU
    }
}

/// How many `nvidia.com/gpu` a node has, working or not.
pub(crate) fn gpus(node: &NodeFacts) -> Amount {
    amount(&node.allocatable, GPU).max(amount(&node.capacity, GPU))
}

/// The GPU resources of which a node has any, offered or not, each with how much there is.
pub(crate) fn existing(node: &NodeFacts) -> impl Iterator<Item = (&str, Amount)> {
    let offered = node.allocatable.iter();
    let only_offered = offered.filter(|(name, _)| amount(&node.capacity, name) == 0);
    let all = node.capacity.iter().chain(only_offered);
    all.map(|(name, amount)| (&**name, *amount))
        .filter(|(name, amount)| *amount > 0 && is_gpu_resource(name))
}

/// Whether these requests ask for a GPU of any sort.
pub(crate) fn asks_for_gpus(requests: &Amounts) -> bool {
    gpu_resources(requests).next().is_some()
}

fn gpu_resources(amounts: &Amounts) -> impl Iterator<Item = &str> {
    let names = amounts.iter().map(|(name, _)| &**name);
    names.filter(|name| is_gpu_resource(name))
}

/// Reads how the cards are cut. The strategy `single` writes the profile behind the product. The
/// label `nvidia.com/mig.strategy` is not used: it says `mixed` also where no card is cut.
fn read_mig(product: Option<&str>, capacity: &Amounts) -> Mig {
    match product.and_then(|product| split_product(product).1) {
        Some(profile) if profile != refusal::INVALID_PROFILE => Mig::Single {
            profile: profile.into(),
        },
        _ if gpu_resources(capacity).any(|name| !name.starts_with(GPU)) => Mig::Mixed,
        _ => Mig::Whole,
    }
}

/// The clique, `<cluster UUID>.<clique>`, unless its cluster UUID is all zeros.
fn real_clique(clique: &str) -> Option<&str> {
    let (cluster, _) = clique.split_once('.').unwrap_or((clique, ""));
    let real = cluster.bytes().any(|byte| !matches!(byte, b'0' | b'-'));
    real.then_some(clique)
}

/// How many devices of a resource the node has and does not offer. Shares of one device count once.
fn sick_devices(node: &NodeFacts, resource: &str) -> Amount {
    let [existing, offered] = [&node.capacity, &node.allocatable].map(|all| amount(all, resource));
    let shares = Sharing::read(&node.labels, resource).replicas();
    existing.saturating_sub(offered).div_ceil(shares.into())
}
