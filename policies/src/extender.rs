//! What kube-scheduler asks of its extender about a pod, and what the engine answers.
//!
//! An *extended* pod is one that kube-scheduler asks to bind, with the engine as its extender (see
//! [`PodFacts::extended`](crate::facts::PodFacts)): kube-scheduler chooses the node, the engine
//! says which nodes and when, and binds. Of a *planned* pod the engine chooses the node, too,
//! before kube-scheduler looks at the pod: see
//! [`PodFacts::is_planned`](crate::facts::PodFacts::is_planned). Source:
//! `k8s.io/kube-scheduler/extender/v1`.

use alloc::boxed::Box;
use core::fmt;

/// The best score that a node can get, as the API of extenders wants it.
pub const SCORE_MAX: u8 = 10;

/// Why the engine has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// Not every kind was listed yet, or another process leads.
    NotLeading,
    /// No event has told of the pod yet, or it is gone. kube-scheduler may hear of a new pod first.
    PodNotSeen,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotLeading => "this gpu-batch does not lead, or has not read everything yet",
            Self::PodNotSeen => "gpu-batch has not seen the pod, or it is gone",
        })
    }
}

/// What a node is for a pod. The sentences name no node, so that those of many nodes are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeAnswer {
    /// The pod may be bound to the node now.
    Fits,
    /// The pod does not fit now. It may where pods on the node end or are evicted.
    Refused(Box<str>),
    /// No eviction from the node helps: the queue of the pod refuses it, or the room is held for
    /// others.
    Hopeless(Box<str>),
}

/// The outcome of a bind that [`Event::BindAsked`](crate::event::Event::BindAsked) has asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindAnswer {
    /// The pod is bound to the node.
    Bound,
    /// The pod has its place there, and the outcome of its binding is not known yet.
    UnderWay,
    /// The pod is not bound to the node, and will not be unless that is asked for again.
    Refused(Box<str>),
}
