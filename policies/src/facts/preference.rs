//! What a pod would rather have: it orders the nodes that fit, and keeps the pod off none.

use super::{NodeSelectorTerm, PodSelection, SpreadRule};
use alloc::{boxed::Box, vec::Vec};

/// The preferences that a pod states, and those that the cluster adds. That a pod tolerates a taint
/// with `PreferNoSchedule` is one, too, and stands in its tolerations.
///
/// Sources: the plugins NodeAffinity, InterPodAffinity, PodTopologySpread and ImageLocality of
/// kube-scheduler, where they score.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Preferences {
    /// The namespace of the pod.
    pub namespace: Box<str>,
    /// The preferred node affinity.
    pub nodes: Vec<PreferredNodes>,
    /// The preferred affinity and anti-affinity between pods. Of foreign pods the required affinity
    /// as well, with weight 1: it draws pods that it selects.
    pub pods: Vec<PreferredPods>,
    /// The topology spread constraints with `ScheduleAnyway`.
    pub spread: Vec<SpreadRule>,
    /// `spread` holds the defaults of the cluster for pods without constraints: nodes count that
    /// lack a label, and are scored by the labels that they have.
    pub spread_is_default: bool,
    /// The container images that a node should have; `None`: it does not matter.
    pub images: Option<PreferredImages>,
}

/// The container images of a pod.
///
/// Source: the plugin ImageLocality of kube-scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PreferredImages {
    /// The names, sorted, each with a tag or a digest, as often as the pod uses it: in its
    /// containers, init containers and image volumes.
    pub names: Vec<Box<str>>,
    /// How many containers and init containers the pod has.
    pub containers: u32,
}

/// One term of the preferred node affinity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PreferredNodes {
    /// What each selected node gets, from 1 to 100.
    pub weight: u32,
    /// The nodes. A term without requirements selects none.
    pub term: NodeSelectorTerm,
}

/// One term of the preferred affinity or anti-affinity between pods. It holds the other way round,
/// too: pods that it selects are drawn to where a pod with this term is, or away from there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PreferredPods {
    /// What a node gets for each selected pod in its domain: from 1 to 100, negative in
    /// anti-affinity.
    pub weight: i32,
    /// The node label whose values are the domains.
    pub topology_key: Box<str>,
    /// The pods.
    pub selection: PodSelection,
}

impl Preferences {
    /// Whether nothing is preferred.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
            && self.pods.is_empty()
            && self.spread.is_empty()
            && self.images.is_none()
    }
}
