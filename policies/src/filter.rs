//! Filters: whether a pod may run on a node at all.
//!
//! The verdicts are those of kube-scheduler's default profile (v1.36). This module has the *static*
//! filters, which read only the pod's shape and the node's object, so that a class of pods is
//! judged once for each node. What is counted (resources, host ports) or depends on queues (limits
//! on a GPU model) is judged where the counts are; only the words for it are here. Two filters are
//! our own: a node on whose GPUs the GPU operator is working, or that says that GPUs have failed,
//! takes no pods that ask for GPUs (see [`crate::gpu`]), and a node that is not ready takes no pods
//! at all, tainted or not.

mod affinity;
mod cards;
mod preference;
#[cfg(test)]
mod tests;
mod volumes;

pub(crate) use preference::{affinity_weight, unwanted_taints, would_rather_be_left};
pub(crate) use volumes::{one_place_holds, one_term_holds};

pub(crate) use cards::CardShortage;

use crate::facts::{
    HostPort, MatchOperator, MatchRequirement, NodeFacts, NodeFeature, NodeSelectorTerm, PodShape,
    Taint, TaintEffect, Toleration, TolerationOperator, VolumeNeeds, amount, label,
};
use crate::gpu::{self, GpuNode, GpuRefusal};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// Why a pod may not run on a node. Equal refusals of many nodes are counted together.
///
/// [`fmt::Display`] gives words that follow `3 node(s)`, such as `were unschedulable`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Filter {
    /// The node is cordoned (NodeUnschedulable).
    NodeUnschedulable,
    /// The node's condition Ready is False or Unknown. kube-scheduler has no such filter and relies
    /// on taints.
    NotReady,
    /// The first taint with effect NoSchedule or NoExecute that the pod does not tolerate
    /// (TaintToleration).
    Taint(Taint),
    /// The node selector or the required node affinity does not hold (NodeAffinity).
    NodeAffinity,
    /// The node does not declare a feature that the pod needs (NodeDeclaredFeatures).
    NodeFeature(NodeFeature),
    /// A volume of the pod is on other nodes (VolumeBinding).
    VolumeAffinity,
    /// There is no volume that a claim of the pod could get on the node, and none can be made there
    /// (VolumeBinding).
    NoVolume,
    /// A volume of the pod is in another zone or region (VolumeZone).
    VolumeZone,
    /// The pod asks for GPUs, and the node's GPUs must not be used now.
    GpuNode(GpuRefusal),
    /// A container asks for several shares of this resource, and the node gives each container one.
    SharedGpu(Box<str>),
    /// Too little of this resource is free (NodeResourcesFit).
    Resource(Box<str>),
    /// A host port is taken (NodePorts).
    HostPort,
    /// A pod on the node has a disk that the pod names (VolumeRestrictions).
    Disk,
    /// Too few cards are as free as the pod asks for.
    Cards(CardShortage),
    /// The kubelet could not align this with its Topology Manager.
    Alignment(Box<str>),
    /// A queue's limit for this GPU model, which the node has, is reached.
    ModelLimit(Box<str>),
    /// The node has not this label, which a topology spread constraint names (PodTopologySpread).
    NoSpreadLabel(Box<str>),
    /// The pods of a topology spread constraint would be spread too unevenly (PodTopologySpread).
    Spread,
    /// No pod that the required pod affinity selects is near enough (InterPodAffinity).
    PodAffinity,
    /// A pod that the required pod anti-affinity selects is too near (InterPodAffinity).
    PodAntiAffinity,
    /// A pod that is too near selects this one in its required anti-affinity (InterPodAffinity).
    OthersAntiAffinity,
}

impl Filter {
    /// Whether the refusal comes from the state of the node and not from the rules for its pods:
    /// the node is cordoned, not ready, tainted by Kubernetes (unreachable, under pressure), or its
    /// GPUs must not be used now.
    pub(crate) fn closes_node(&self) -> bool {
        match self {
            Self::NodeUnschedulable | Self::NotReady | Self::GpuNode(_) => true,
            Self::Taint(taint) => tells_state(taint),
            Self::NodeAffinity
            | Self::NodeFeature(_)
            | Self::VolumeAffinity
            | Self::NoVolume
            | Self::VolumeZone
            | Self::SharedGpu(_)
            | Self::Resource(_)
            | Self::HostPort
            | Self::Disk
            | Self::Cards(_)
            | Self::Alignment(_)
            | Self::ModelLimit(_)
            | Self::NoSpreadLabel(_)
            | Self::Spread
            | Self::PodAffinity
            | Self::PodAntiAffinity
            | Self::OthersAntiAffinity => false,
        }
    }

    /// Whether the refusal comes from where volumes are, or can be.
    pub(crate) fn is_about_volumes(&self) -> bool {
        matches!(
            self,
            Self::VolumeAffinity | Self::NoVolume | Self::VolumeZone
        )
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeUnschedulable => formatter.write_str("were unschedulable"),
            Self::NotReady => formatter.write_str("were not ready"),
            Self::Taint(Taint { key, value, effect }) => {
                let effect = match effect {
                    TaintEffect::NoExecute => "NoExecute ",
                    TaintEffect::NoSchedule | TaintEffect::PreferNoSchedule => "",
                };
                write!(
                    formatter,
                    "had untolerated {effect}taint {{{key}: {value}}}"
                )
            }
            Self::NodeAffinity => {
                formatter.write_str("didn't match the pod's node affinity/selector")
            }
            Self::NodeFeature(feature) => {
                write!(formatter, "didn't declare the feature {}", feature.name())
            }
            Self::VolumeAffinity => formatter.write_str("had volume node affinity conflict"),
            Self::NoVolume => {
                formatter.write_str("didn't find available persistent volumes to bind")
            }
            Self::VolumeZone => formatter.write_str("had no available volume zone"),
            Self::GpuNode(refusal) => refusal.fmt(formatter),
            Self::SharedGpu(resource) => {
                write!(formatter, "shared {resource}, one share for each container")
            }
            Self::Resource(resource) => write!(formatter, "had insufficient {resource}"),
            Self::HostPort => {
                formatter.write_str("didn't have free ports for the requested pod ports")
            }
            Self::Disk => formatter.write_str("had no available disk"),
            Self::Cards(shortage) => shortage.fmt(formatter),
            Self::Alignment(asked) => write!(formatter, "didn't have {asked}"),
            Self::ModelLimit(product) => {
                write!(
                    formatter,
                    "had {product}, whose limit in the queue is reached"
                )
            }
            Self::NoSpreadLabel(key) => write!(
                formatter,
                "didn't have the label {key} of a topology spread constraint of the pod"
            ),
            Self::Spread => {
                formatter.write_str("didn't match the pod's topology spread constraints")
            }
            Self::PodAffinity => formatter.write_str("didn't match the pod's affinity to pods"),
            Self::PodAntiAffinity => {
                formatter.write_str("didn't match the pod's anti-affinity to pods")
            }
            Self::OthersAntiAffinity => {
                formatter.write_str("had pods near by whose anti-affinity keeps the pod out")
            }
        }
    }
}

/// Whether pods of this shape may run on this node, whatever else runs there. `gpu` is what
/// [`GpuNode::read`] says of `node`.
///
/// # Errors
/// The first filter that refuses, in the order in which kube-scheduler asks its filters.
pub(crate) fn static_verdict(
    shape: &PodShape,
    node: &NodeFacts,
    gpu: &GpuNode,
) -> Result<(), Filter> {
    if node.unschedulable && !tolerate(&shape.tolerations, &cordon()) {
        return Err(Filter::NodeUnschedulable);
    }
    if let Some(taint) = untolerated_taint(&shape.tolerations, &node.taints) {
        return Err(Filter::Taint(taint.clone()));
    }
    if node.readiness.is_lost() {
        return Err(Filter::NotReady);
    }
    if !affinity::selects(shape, node) {
        return Err(Filter::NodeAffinity);
    }
    if let Some(feature) = undeclared_feature(shape, node) {
        return Err(Filter::NodeFeature(feature));
    }
    volumes::verdict(shape, node)?;
    gpu.verdict(shape)
}

/// The first feature that a shape needs and the node does not declare.
fn undeclared_feature(shape: &PodShape, node: &NodeFacts) -> Option<NodeFeature> {
    let mut needed = shape.features.iter().copied();
    needed.find(|feature| !node.features.contains(feature))
}

impl GpuNode {
    /// Whether the node's GPUs allow pods of this shape now, as far as the node's object says. Pods
    /// that ask for no GPUs are always allowed.
    ///
    /// # Errors
    /// [`Filter::GpuNode`] if the GPUs must not be used now, [`Filter::SharedGpu`] if a container
    /// asks for more shares than it would get.
    pub(crate) fn verdict(&self, shape: &PodShape) -> Result<(), Filter> {
        if gpu::asks_for_gpus(&shape.requests) {
            if self.is_hami && shape.cards.is_none() {
                return Err(Filter::GpuNode(GpuRefusal::Slots));
            }
            if let Some(refusal) = &self.refusal {
                return Err(Filter::GpuNode(refusal.clone()));
            }
        }
        self.gives_enough_shares(shape)
    }

    /// Whether each container of this shape gets all shares of GPUs that it asks for.
    ///
    /// # Errors
    /// [`Filter::SharedGpu`] with the first resource of which a container asks for too many shares.
    pub(crate) fn gives_enough_shares(&self, shape: &PodShape) -> Result<(), Filter> {
        let several = |name: &&str| amount(&shape.largest_container, name) > 1;
        match self.one_share_each.iter().map(|name| &**name).find(several) {
            Some(resource) => Err(Filter::SharedGpu(resource.into())),
            None => Ok(()),
        }
    }
}

/// Whether a node can have volumes.
pub(crate) fn allows_volumes(needs: &VolumeNeeds, node: &NodeFacts) -> bool {
    volumes::verdict_on(needs, node).is_ok()
}

/// Whether the selector and the required affinity of a shape allow a node.
pub(crate) fn selects(shape: &PodShape, node: &NodeFacts) -> bool {
    affinity::selects(shape, node)
}

/// Whether a shape tolerates all taints of a node that keep new pods out.
pub(crate) fn tolerates(shape: &PodShape, node: &NodeFacts) -> bool {
    untolerated_taint(&shape.tolerations, &node.taints).is_none()
}

/// Whether pods of this shape could run on a node once it is in order. Ignored is what passes: a
/// cordon, the taints `node.kubernetes.io/...` that tell the node's state, readiness, and the work
/// of the GPU operator.
pub(crate) fn suits(shape: &PodShape, node: &NodeFacts, gpu: &GpuNode) -> bool {
    let stays = |taint: &&Taint| !tells_state(taint);
    let mut taints = node.taints.iter().filter(stays);
    !taints.any(|taint| keeps_out(taint, &shape.tolerations))
        && affinity::selects(shape, node)
        && undeclared_feature(shape, node).is_none()
        && volumes::verdict(shape, node).is_ok()
        && gpu.gives_enough_shares(shape).is_ok()
}

/// Whether exactly one thing keeps pods of this shape off a node: that it is closed for the time
/// being (by its cordon, its readiness or the taints with which Kubernetes tells of these), one
/// other taint, the pods' selector and affinity, a feature, their volumes, or its GPUs.
pub(crate) fn is_refused_for_one_thing(shape: &PodShape, node: &NodeFacts, gpu: &GpuNode) -> bool {
    let cordoned = node.unschedulable && !tolerate(&shape.tolerations, &cordon());
    let keeps_out = |taint: &&Taint| keeps_out(taint, &shape.tolerations);
    let taints = node.taints.iter().filter(keeps_out);
    let (of_state, others): (Vec<&Taint>, Vec<&Taint>) =
        taints.partition(|taint| tells_state(taint));
    let is_closed = cordoned || node.readiness.is_lost() || !of_state.is_empty();
    let things = usize::from(is_closed)
        + others.len()
        + usize::from(!affinity::selects(shape, node))
        + usize::from(undeclared_feature(shape, node).is_some())
        + usize::from(volumes::verdict(shape, node).is_err())
        + usize::from(gpu.verdict(shape).is_err());
    things == 1
}

/// Whether a taint is one with which Kubernetes tells the state of a node.
fn tells_state(taint: &Taint) -> bool {
    taint.key.starts_with("node.kubernetes.io/")
}

/// Whether the selector or the required affinity names the nodes, so that pods of this shape cannot
/// run on nodes that are added later under other names.
pub(crate) fn names_nodes(shape: &PodShape) -> bool {
    const HOSTNAME: &str = "kubernetes.io/hostname";
    let is_in = |one: &MatchRequirement| one.operator == MatchOperator::In;
    let named = |term: &NodeSelectorTerm| {
        let mut labels = term.match_expressions.iter();
        let mut fields = term.match_fields.iter();
        fields.any(is_in) || labels.any(|one| is_in(one) && &*one.key == HOSTNAME)
    };
    let terms = shape.node_affinity.as_deref().unwrap_or_default();
    let by_affinity = !terms.is_empty() && terms.iter().all(named);
    by_affinity || label(&shape.node_selector, HOSTNAME).is_some()
}

/// Whether two shapes agree in everything that [`static_verdict`] reads, so that it gives both an
/// equal verdict on every node.
pub(crate) fn judged_alike(one: &PodShape, other: &PodShape) -> bool {
    // A new field must be put here: ignored (`: _`), or compared below.
    let PodShape {
        requests,
        largest_container,
        node_selector,
        node_affinity,
        tolerations,
        features,
        volumes,
        cards,
        aligned: _,
        card_terms: _,
        host_ports: _,
        disks: _,
        relations: _,
        preferences: _,
        unsupported: _,
    } = one;
    *node_selector == other.node_selector
        && *node_affinity == other.node_affinity
        && *tolerations == other.tolerations
        && *features == other.features
        && *volumes == other.volumes
        && *largest_container == other.largest_container
        && cards.is_some() == other.cards.is_some()
        && gpu::asks_for_gpus(requests) == gpu::asks_for_gpus(&other.requests)
}

/// The taint that stands for `spec.unschedulable`: a pod that tolerates it may use a cordoned node.
fn cordon() -> Taint {
    Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: "".into(),
        effect: TaintEffect::NoSchedule,
    }
}

/// The first taint that keeps new pods out and that none of the tolerations tolerates.
fn untolerated_taint<'node>(
    tolerations: &[Toleration],
    taints: &'node [Taint],
) -> Option<&'node Taint> {
    taints.iter().find(|taint| keeps_out(taint, tolerations))
}

fn keeps_out(taint: &Taint, tolerations: &[Toleration]) -> bool {
    taint.effect != TaintEffect::PreferNoSchedule && !tolerate(tolerations, taint)
}

/// Whether one of the tolerations tolerates the taint. An empty key means every key, with either
/// operator; no effect means every effect.
fn tolerate(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| {
        toleration
            .effect
            .is_none_or(|effect| effect == taint.effect)
            && (toleration.key.is_empty() || toleration.key == taint.key)
            && match toleration.operator {
                TolerationOperator::Exists => true,
                TolerationOperator::Equal => toleration.value == taint.value,
            }
    })
}

/// Whether two pods with these host ports cannot share a node: port and protocol are equal, and the
/// addresses are equal or one of them is empty, which means all addresses (NodePorts).
pub(crate) fn host_ports_conflict(one: &HostPort, other: &HostPort) -> bool {
    one.port == other.port
        && one.protocol == other.protocol
        && (one.host_ip.is_empty() || other.host_ip.is_empty() || one.host_ip == other.host_ip)
}
