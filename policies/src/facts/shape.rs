//! What decides where a pod can run. Pods of one shape are judged once.

use super::{
    AlignedContainer, Amounts, CardNeed, CardTerms, Labels, NodeFeature, NodeSelectorTerm,
    Preferences, Relations, TaintEffect, VolumeNeeds,
};
use alloc::{boxed::Box, vec::Vec};

/// What decides where a pod can run. Pods of equal shape are one *class* to the engine, which
/// judges a class once instead of each pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PodShape {
    /// What the pod takes, in base units (see [`Amount`](super::Amount)), summed the way Kubernetes
    /// does (init containers, sidecars, pod-level requests, overhead; for bound pods also in-place
    /// resize), with `pods: 1`.
    pub requests: Amounts,
    /// The largest request of one container, in pieces, for extended resources alone. Sharing
    /// strategies may refuse more than one share in a container.
    pub largest_container: Amounts,
    /// The containers that get something for themselves alone, in the order in which the kubelet
    /// admits them. On some nodes it rejects pods for which it cannot have that from few cells.
    pub aligned: Vec<AlignedContainer>,
    /// The request for cards that the scheduler chooses; a pod with such a request fits only on
    /// nodes that name their cards. Where several containers ask, that of the one that asks for
    /// most: placements by score see no more of it.
    pub cards: Option<CardNeed>,
    /// What else the pod says of these cards; `None`: nothing.
    pub card_terms: Option<Box<CardTerms>>,
    /// `spec.nodeSelector`.
    pub node_selector: Labels,
    /// `requiredDuringSchedulingIgnoredDuringExecution` of the node affinity: one of the terms must
    /// hold. `None`: every node matches. An empty list matches no node.
    pub node_affinity: Option<Vec<NodeSelectorTerm>>,
    /// `spec.tolerations`.
    pub tolerations: Vec<Toleration>,
    /// Ports of the host that the pod opens; sorted.
    pub host_ports: Vec<HostPort>,
    /// The disks that the pod names itself and that keep others away; sorted, each once.
    pub disks: Vec<Disk>,
    /// What the node must declare; sorted, each once. Of foreign pods nothing is known.
    pub features: Vec<NodeFeature>,
    /// What the pod requires of other pods; `None`: nothing. Of foreign pods only the anti-affinity
    /// is known.
    pub relations: Option<Box<Relations>>,
    /// What the pod would rather have; `None`: nothing. Of foreign pods only what they prefer of
    /// other pods is known.
    pub preferences: Option<Box<Preferences>>,
    /// What the claims of the pod ask of nodes; `None`: it has no claims. The engine works it out;
    /// facts from shells have none.
    pub volumes: Option<Box<VolumeNeeds>>,
    /// Fields that are not supported yet, e.g. `spec.resourceClaims`. A pod with such a field is
    /// held with the reason `Unsupported`, never placed as if the field were not there.
    pub unsupported: Vec<Box<str>>,
}

/// A toleration of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Toleration {
    /// The taint's key; empty with `Exists`: every taint.
    pub key: Box<str>,
    /// How the taint's key and value are compared.
    pub operator: TolerationOperator,
    /// The taint's value, for `Equal`.
    pub value: Box<str>,
    /// The taint's effect; `None`: every effect.
    pub effect: Option<TaintEffect>,
}

/// How a toleration compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TolerationOperator {
    /// The taint has the key and the value. The default.
    Equal,
    /// The taint has the key, with any value.
    Exists,
}

/// A port of the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The port's number.
    pub port: u16,
    /// The port's protocol; TCP where the pod names none.
    pub protocol: Protocol,
    /// The address of the host on which the port is opened; empty: all addresses, also where the
    /// pod says `0.0.0.0`.
    pub host_ip: Box<str>,
}

/// A disk that a pod names itself, and that other pods of the node may use only if all read it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Disk {
    /// What tells the disk from all others: two pods that have an equal one have one disk.
    pub name: Box<str>,
    /// The pod only reads it, and its kind can be read by several.
    pub read_only: bool,
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}
