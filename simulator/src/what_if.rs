//! What would have been different: a recorded session under other settings or with other queues.
//!
//! ```text
//!  journal --read--> Session: what happened by itself -------> Timeline, other settings
//!                      |      how long each pod ran                  |
//!                      +----> the recorded Course       the other Course
//!                                      +------- compare -------+
//! ```
//!
//! What the scheduler caused is taken out of the record: bindings, statuses, and when bound pods
//! ended. Everything else happens again at its time: pods and groups come, nodes and queues change,
//! users delete pods that have not started. A pod runs as long as it ran in the record, whenever
//! and wherever it is bound; a pod whose run has no recorded end runs until the record ends.
//!
//! What this cannot know: if a pod fails or is evicted only in the other course, no new pod is made
//! in its place; pods that were made anew in the record come in the other course, too. And users
//! are assumed to submit their work whatever they see.
//!
//! With the settings of the record the result should be the record. `docs/replay.md` says how much
//! it differs.
//!
//! Events of several steps in one millisecond are given to as many steps again: in one batch they
//! might be decided otherwise.

mod comparison;
mod course;
mod gang;
mod kept;
mod output;
mod page;
mod promised;
mod reading;
#[cfg(test)]
mod tests;
mod world;

pub use comparison::{Comparison, Figures, GangDifference, PodDifference, QueueFigures};
pub use course::{Course, Start};
pub use kept::{PromiseFigures, PromiseKept};
pub use promised::{Promise, Promised};

use crate::journal::Damage;
use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::{Amount, PodFacts, PodPhase, Uid, UnixMs, amount};
use gpu_batch_policies::settings::Settings;
use std::collections::BTreeMap;

/// The resource of which shares are given.
const GPU: &str = "nvidia.com/gpu";

/// A recorded session, apart from what the scheduler did in it.
#[derive(Debug, Default)]
pub struct Session {
    /// The settings of the recorded scheduler.
    pub settings: Settings,
    /// When the recorded scheduler began to decide: it had listed all kinds and led.
    pub start_ms: UnixMs,
    /// The time of the last recorded step.
    pub end_ms: UnixMs,
    /// The course that was recorded.
    pub course: Course,
    /// Why the journal could not be read to its end; `None`: it could.
    pub damage: Option<Damage>,
    /// The objects at the start.
    objects: Vec<Object>,
    /// The events that the scheduler did not cause, by moment.
    happenings: Vec<(Moment, Event)>,
    /// Pods of the scheduler that waited when they were first seen.
    lives: BTreeMap<Uid, Life>,
    /// The queues that PodGroups name, by namespace and name.
    group_queues: BTreeMap<(Box<str>, Box<str>), Box<str>>,
    /// The GPUs of all nodes over time, in GPU-milliseconds.
    gpu_ms: u128,
}

/// A place in the record: the time, the number of the step, and that of the event. So events of
/// several steps in one millisecond stay apart, and events of one step stay in their order: the
/// other scheduler is to see what the recorded one saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    at_ms: UnixMs,
    step: u64,
    event: u64,
}

/// A pod of the scheduler.
#[derive(Debug)]
struct Life {
    /// The pod as it was first seen.
    facts: PodFacts,
    arrived_ms: UnixMs,
    /// How long it ran; `None`: it was never bound, was evicted, or its end is not in the record.
    ran: Option<Ran>,
}

/// What became of a bound pod.
#[derive(Debug, Clone, Copy)]
struct Ran {
    /// How long it ran, from its binding to its end.
    length_ms: u64,
    /// When the end of the pod was seen.
    ended: Moment,
    /// The phase in which it ended; `None`: it was deleted while it ran.
    phase: Option<PodPhase>,
    /// When it was deleted after its end; `None`: never.
    gone: Option<Moment>,
}

impl Session {
    /// Whether the recorded scheduler never decided anything, because it did not lead or had not
    /// listed all kinds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start_ms == self.end_ms
    }

    /// The queue that the pod's PodGroup names, otherwise the one that the pod names.
    fn queue_named(&self, pod: &PodFacts) -> Option<Box<str>> {
        let group = pod.pod_group.as_ref().or(pod.native_group.as_ref());
        let group = group.map(|group| (pod.namespace.clone(), group.clone()));
        let of_group = group.and_then(|group| self.group_queues.get(&group));
        of_group.or(pod.queue.as_ref()).cloned()
    }
}

impl Life {
    fn gpus(&self) -> Amount {
        gpus(&self.facts)
    }

    /// The name of the gang that the pod is a part of, as [`GangDifference::gang`] has it.
    fn work(&self) -> String {
        let PodFacts {
            namespace,
            name,
            pod_group,
            native_group,
            owner,
            deployment,
            ..
        } = &self.facts;
        if let Some(deployment) = deployment.as_ref().filter(|_| pod_group.is_none()) {
            return format!("{namespace}/deployment/{deployment}");
        }
        match (pod_group.as_ref().or(native_group.as_ref()), owner) {
            (Some(group), _) => format!("{namespace}/{group}"),
            (None, Some(owner)) => {
                let kind = owner.kind.to_lowercase();
                format!("{namespace}/{kind}/{}", owner.name)
            }
            (None, None) => format!("{namespace}/pod/{name}"),
        }
    }
}

fn gpus(facts: &PodFacts) -> Amount {
    amount(&facts.shape.requests, GPU)
}

/// The keys of objects that a pod may be a part of: PodGroups and its Job. They are not deleted
/// before the pod has ended.
fn wholes(facts: &PodFacts) -> impl Iterator<Item = ObjectKey> {
    use gpu_batch_policies::facts::GroupSource::{GpuBatch, Native};
    let group = |source, name: &Option<Box<str>>| {
        let name = name.clone()?;
        Some(ObjectKey::PodGroup(source, facts.namespace.clone(), name))
    };
    let owner = facts.owner.as_ref().map(|owner| ObjectKey::Job(owner.uid));
    let groups = [
        group(GpuBatch, &facts.pod_group),
        group(Native, &facts.native_group),
        owner,
    ];
    groups.into_iter().flatten()
}
