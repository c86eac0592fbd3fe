//! The objects that stand for the jobs, nodes and queues of a trace in the engine.

use crate::objects::{amounts, pod};
use crate::trace::jobs::Job;
use crate::trace::queues::TraceQueue;
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::{
    GangHints, NodeFacts, OwnerReference, PodFacts, PodShape, QueueFacts, QueueResource, Uid,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The only resource of the traces.
pub(super) const GPU: &str = "nvidia.com/gpu";

/// UIDs of nodes, queues and owners have these bits, so that they differ from UIDs of pods, which
/// are made from the job and the member.
const NODES: u128 = 1 << 96;
const QUEUES: u128 = 2 << 96;
const OWNERS: u128 = 3 << 96;
const MEMBER_BITS: u32 = 32;

/// Makes the objects of one cluster.
#[derive(Debug)]
pub(super) struct Objects {
    gpus_per_node: u32,
    /// A pod with the fields that all pods have in common.
    template: PodFacts,
    /// The shapes by number of GPUs: pods of one shape share it.
    shapes: BTreeMap<u32, Arc<PodShape>>,
}

impl Objects {
    pub(super) fn new(gpus_per_node: u32) -> Self {
        Self {
            gpus_per_node,
            template: pod("", Uid(0), 0, 0, 0),
            shapes: BTreeMap::new(),
        }
    }

    /// So many nodes, whose names are in the order of their numbers.
    pub(super) fn nodes(&self, nodes: u32) -> Vec<Object> {
        let has = amounts(&[(GPU, u64::from(self.gpus_per_node))]);
        let node = |number: u32| {
            let uid = Uid(NODES | u128::from(number));
            NodeFacts::new(uid, &format!("node-{number:07}"), has.clone())
        };
        (0..nodes)
            .map(|number| Object::Node(node(number)))
            .collect()
    }

    /// A queue whose quota is the GPUs of its nodes.
    pub(super) fn queue(&self, number: usize, owns: &TraceQueue) -> Object {
        let quota = u64::from(owns.nodes) * u64::from(self.gpus_per_node);
        Object::Queue(QueueFacts {
            resources: vec![QueueResource {
                name: GPU.into(),
                product: None,
                quota,
                limit: None,
                weight: 1,
            }],
            ..QueueFacts::new(Uid(QUEUES | number as u128), &owns.name)
        })
    }

    /// Adds the pods of a job that arrives to the batch, those that take a whole node first.
    pub(super) fn arrive(&mut self, number: usize, job: &Job, queue: &str, batch: &mut Vec<Event>) {
        let whole = job.num_gpus / self.gpus_per_node;
        let rest = job.num_gpus % self.gpus_per_node;
        let members = whole + u32::from(rest > 0);
        for member in 0..members {
            let gpus = if member < whole {
                self.gpus_per_node
            } else {
                rest
            };
            let mut facts = self.pod(number, member, gpus, job, queue);
            if members > 1 {
                facts.name = format!("{}-{member}", facts.name).into();
                facts.hints.min_member = Some(members);
                facts.owner = Some(owner(number));
            }
            batch.push(Object::Pod(facts).into());
        }
    }

    fn pod(&mut self, number: usize, member: u32, gpus: u32, job: &Job, queue: &str) -> PodFacts {
        let shape = self.shapes.entry(gpus).or_insert_with(|| {
            Arc::new(PodShape {
                requests: amounts(&[(GPU, u64::from(gpus))]),
                ..PodShape::default()
            })
        });
        PodFacts {
            uid: Self::uid(number, member),
            name: name(number),
            created_ms: job.submit_s.saturating_mul(1_000),
            queue: Some(queue.into()),
            shape: Arc::clone(shape),
            hints: GangHints {
                expected_runtime_ms: Some(job.duration_s.saturating_mul(1_000)),
                ..GangHints::default()
            },
            ..self.template.clone()
        }
    }

    /// The UID of a job's pod.
    pub(super) fn uid(number: usize, member: u32) -> Uid {
        Uid((number as u128) << MEMBER_BITS | u128::from(member))
    }

    /// The index of a pod's job, and which member of the job the pod is.
    pub(super) fn member(uid: Uid) -> (usize, u32) {
        let number = usize::try_from(uid.0 >> MEMBER_BITS).unwrap_or(usize::MAX);
        let member = u32::try_from(uid.0 & u128::from(u32::MAX)).unwrap_or(u32::MAX);
        (number, member)
    }
}

/// The name of a job. Of jobs that were submitted in one second the engine tries the one with the
/// smallest name first. So the names are in the order of the trace.
fn name(number: usize) -> Box<str> {
    format!("{number:010}").into()
}

/// The owner that makes the pods of a job one gang. A gang is named after the kind and the name of
/// its owner, a single pod after `pod` and its name. So the kind of the owner is Pod: then the
/// names of all gangs compare as their jobs' numbers do.
fn owner(number: usize) -> OwnerReference {
    OwnerReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: name(number),
        uid: Uid(OWNERS | number as u128),
    }
}
