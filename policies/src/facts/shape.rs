//! What decides where a pod can run; pods of one shape are judged once.

use super::{Amounts, CardRequest, Labels, TaintEffect};
use alloc::{boxed::Box, vec::Vec};

/// What decides where a pod can run. Pods of equal shape are one *class* to the engine, which
/// judges a class once instead of each pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PodShape {
    /// What the pod takes, summed the way Kubernetes does (init containers, sidecars, pod-level
    /// requests, overhead; for bound pods also in-place resize), with `pods: 1`.
    pub requests: Amounts,
    /// The largest request of one container, for extended resources alone. Sharing strategies may
    /// refuse more than one share in a container.
    pub largest_container: Amounts,
    /// The request for parts of cards that the scheduler chooses; such a pod fits only on nodes
    /// that name their cards.
    pub cards: Option<CardRequest>,
    /// `spec.nodeSelector`.
    pub node_selector: Labels,
    /// `requiredDuringSchedulingIgnoredDuringExecution`: one of the terms must hold. `None`: no
    /// such rule. An empty list matches no node.
    pub node_affinity: Option<Vec<NodeSelectorTerm>>,
    /// `spec.tolerations`.
    pub tolerations: Vec<Toleration>,
    /// Ports of the host that the pod opens; sorted.
    pub host_ports: Vec<HostPort>,
    /// Fields that are not supported yet, e.g. `spec.resourceClaims`. A pod with any is held with
    /// the reason `Unsupported`, never placed as if the field were not there.
    pub unsupported: Vec<Box<str>>,
}

/// One term of a node affinity: all its requirements must hold; a term without any matches nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    pub match_expressions: Vec<MatchRequirement>,
    /// Requirements on fields; the only field is `metadata.name`.
    pub match_fields: Vec<MatchRequirement>,
}

/// `key operator values`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MatchRequirement {
    /// A label key, or the field's path.
    pub key: Box<str>,
    /// How the values are compared.
    pub operator: MatchOperator,
    /// The values; one integer for `Gt` and `Lt`, none for `Exists` and `DoesNotExist`.
    pub values: Vec<Box<str>>,
}

/// How a requirement compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchOperator {
    /// The key's value is one of the values.
    In,
    /// The key is absent or its value is none of the values.
    NotIn,
    /// The key is there.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// The key's value is an integer greater than the value.
    Gt,
    /// The key's value is an integer less than the value.
    Lt,
}

/// A toleration of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Toleration {
    /// The taint's key; empty with `Exists`: every taint.
    pub key: Box<str>,
    /// How the value is compared.
    pub operator: TolerationOperator,
    /// The value, for `Equal`.
    pub value: Box<str>,
    /// The effect; `None`: every effect.
    pub effect: Option<TaintEffect>,
}

/// How a toleration compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TolerationOperator {
    /// Key and value are equal. The default.
    Equal,
    /// The key is there.
    Exists,
}

/// A port of the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The number.
    pub port: u16,
    /// The protocol; TCP where the pod names none.
    pub protocol: Protocol,
    /// The address; empty and `0.0.0.0` mean all of them and are written as empty.
    pub host_ip: Box<str>,
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
