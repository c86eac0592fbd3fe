//! What a pod requires of the pods that share its node, or a domain of its node.

use super::LabelSelector;
use alloc::{boxed::Box, vec::Vec};

/// Rules of a pod about other pods, which hold when the pod is placed and are not looked at later.
///
/// Sources: the plugins InterPodAffinity and PodTopologySpread of kube-scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Relations {
    /// The namespace of the pod.
    pub namespace: Box<str>,
    /// The required pod affinity: in each term's domain of the node there must be a pod that *all*
    /// terms select. Where there is no such pod in the whole cluster, a pod that selects itself may
    /// be the first.
    pub affinity: Vec<PodTerm>,
    /// The required pod anti-affinity: in no term's domain of the node may there be a pod that the
    /// term selects. It holds the other way round, too: no pod that a term selects may come to a
    /// domain in which a pod with this term is.
    pub anti_affinity: Vec<PodTerm>,
    /// The topology spread constraints with `DoNotSchedule`.
    pub spread: Vec<SpreadRule>,
}

/// One term of the required affinity or anti-affinity between pods.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodTerm {
    /// The node label whose values are the domains.
    pub topology_key: Box<str>,
    /// Which pods the term selects.
    pub selection: PodSelection,
    /// The labels of the pod with the term are among those that the term selects.
    pub selects_own_labels: bool,
}

/// Pods that are selected by their namespaces and labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodSelection {
    /// Namespaces by name, sorted.
    pub namespaces: Vec<Box<str>>,
    /// Namespaces by their labels, in addition; `None`: only those that are named. The empty
    /// selector selects all.
    pub namespace_selector: Option<LabelSelector>,
    /// Pods by their labels, in these namespaces; `None` selects no pod.
    pub labels: Option<LabelSelector>,
}

/// A topology spread constraint. With `DoNotSchedule`, in the domain of the node there may be at
/// most `max_skew` more selected pods, the new one among them, than in the domain that has fewest.
/// With `ScheduleAnyway`, nodes in domains with fewer selected pods are preferred, and `max_skew`
/// says how little a pod more or less matters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpreadRule {
    /// The node label whose values are the domains.
    pub topology_key: Box<str>,
    /// `maxSkew`, in pods.
    pub max_skew: u32,
    /// `minDomains`: with fewer domains the fewest pods of a domain count as none.
    pub min_domains: u32,
    /// Pods of the pod's own namespace by their labels; `None` selects no pod.
    pub labels: Option<LabelSelector>,
    /// The pod's own labels are selected.
    pub selects_own_labels: bool,
    /// Only nodes that the pod's selector and required affinity allow count.
    pub honors_affinity: bool,
    /// Only nodes whose taints the pod tolerates count.
    pub honors_taints: bool,
}

impl Relations {
    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.affinity.is_empty() && self.anti_affinity.is_empty() && self.spread.is_empty()
    }
}

impl PodSelection {
    /// Whether pods of a namespace may be selected. `label_of` gives the value of a label of the
    /// namespace.
    pub fn spans<V: AsRef<str>>(
        &self,
        namespace: &str,
        label_of: impl Fn(&str) -> Option<V>,
    ) -> bool {
        let by_labels = self.namespace_selector.as_ref();
        self.namespaces.iter().any(|name| &**name == namespace)
            || by_labels.is_some_and(|selector| selector.selects(label_of))
    }
}
