//! The objects that stand for the jobs, nodes and queues of a trace in the engine.

use crate::objects::{GPU, amounts, pod};
use crate::trace::jobs::Job;
use crate::trace::queues::TraceQueue;
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::{
    CARD, GangHints, NodeFacts, OwnerReference, PodFacts, PodShape, QueueFacts, QueueResource, Uid,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// UIDs of nodes, queues and owners have these bits, so that they differ from UIDs of pods, which
/// are made from the run, the job and the member.
const NODES: u128 = 1 << 96;
const QUEUES: u128 = 2 << 96;
const OWNERS: u128 = 3 << 96;
const MEMBER_BITS: u32 = 32;
const JOB_BITS: u32 = 32;

/// A job that comes to wait for a start: when it is submitted, and again after each eviction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<'a> {
    /// The index of the job in the trace.
    pub(super) number: usize,
    pub(super) job: &'a Job,
    pub(super) queue: &'a str,
    /// How many runs of the job were evicted before. The pods of each run are new ones.
    pub(super) run: u32,
    pub(super) at_s: u64,
    /// How long the job is known to have still to run, in seconds; `None`: nobody knows.
    pub(super) expected_s: Option<u64>,
}

impl<'a> Arrival<'a> {
    /// The submission of a job.
    pub(super) fn first(number: usize, job: &'a Job, queue: &'a str) -> Self {
        Self {
            number,
            job,
            queue,
            run: 0,
            at_s: job.submit_s,
            expected_s: None,
        }
    }
}

/// Makes the objects of one cluster.
#[derive(Debug)]
pub(super) struct Objects {
    gpus_per_node: u32,
    /// Pods that would not be made anew are never moved, so where jobs are evicted also single pods
    /// have a controller.
    evicts: bool,
    /// A pod with the fields that all pods have in common.
    template: PodFacts,
    /// The shapes by number of GPUs: pods of one shape share it.
    shapes: BTreeMap<u32, Arc<PodShape>>,
}

impl Objects {
    pub(super) fn new(gpus_per_node: u32, evicts: bool) -> Self {
        Self {
            gpus_per_node,
            evicts,
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
                quota: quota * CARD,
                limit: None,
                weight: 1,
            }],
            ..QueueFacts::new(Uid(QUEUES | number as u128), &owns.name)
        })
    }

    /// Adds the pods of a job that arrives to the batch, those that take a whole node first.
    pub(super) fn arrive(&mut self, arrival: Arrival<'_>, batch: &mut Vec<Event>) {
        let Arrival { number, job, .. } = arrival;
        let whole = job.num_gpus / self.gpus_per_node;
        let members = self.members(job);
        for member in 0..members {
            let gpus = if member < whole {
                self.gpus_per_node
            } else {
                job.num_gpus % self.gpus_per_node
            };
            let mut facts = self.pod(arrival, member, gpus);
            if members > 1 {
                facts.name = format!("{}-{member}", facts.name).into();
                facts.hints.min_member = Some(members);
            }
            if members > 1 || self.evicts {
                facts.owner = Some(owner(number, name(number, job)));
            }
            batch.push(Object::Pod(facts).into());
        }
    }

    /// How many pods a job has.
    pub(super) fn members(&self, job: &Job) -> u32 {
        job.num_gpus.div_ceil(self.gpus_per_node)
    }

    fn pod(&mut self, arrival: Arrival<'_>, member: u32, gpus: u32) -> PodFacts {
        let shape = self.shapes.entry(gpus).or_insert_with(|| {
            Arc::new(PodShape {
                requests: amounts(&[(GPU, u64::from(gpus))]),
                ..PodShape::default()
            })
        });
        PodFacts {
            uid: Self::uid(arrival.number, arrival.run, member),
            name: name(arrival.number, arrival.job),
            created_ms: arrival.at_s.saturating_mul(1_000),
            queue: Some(arrival.queue.into()),
            shape: Arc::clone(shape),
            hints: GangHints {
                expected_runtime_ms: arrival
                    .expected_s
                    .map(|seconds| seconds.saturating_mul(1_000)),
                ..GangHints::default()
            },
            ..self.template.clone()
        }
    }

    /// The UID of a pod of one run of a job.
    pub(super) fn uid(number: usize, run: u32, member: u32) -> Uid {
        let run = u128::from(run) << (MEMBER_BITS + JOB_BITS);
        Uid(run | (number as u128) << MEMBER_BITS | u128::from(member))
    }

    /// The index of a pod's job, which run of the job the pod is of, and which member.
    pub(super) fn member(uid: Uid) -> (usize, u32, u32) {
        let low = |bits: u128| u32::try_from(bits & u128::from(u32::MAX)).unwrap_or(u32::MAX);
        let number = low(uid.0 >> MEMBER_BITS);
        let run = low(uid.0 >> (MEMBER_BITS + JOB_BITS));
        (number as usize, run, low(uid.0))
    }

    /// The index of the job that a gang stands for, of which the engine tells the name.
    pub(super) fn job_of_gang(gang: &str) -> Option<usize> {
        gang.rsplit(['/', '-']).next()?.parse().ok()
    }
}

/// The name of a job. Of jobs that were submitted in one second the engine tries the one with the
/// smallest name first. So the names are in the order of the trace. They begin with the owners, by
/// which the engine finds out whose jobs these are: jobs without one come first, then those of the
/// owner that the trace names first; under all policies, so that runs side by side differ by their
/// policies alone.
fn name(number: usize, job: &Job) -> Box<str> {
    match job.owner {
        Some(owner) => format!("owner{owner:010}-{number:010}").into(),
        None => format!("{number:010}").into(),
    }
}

/// The owner that makes the pods of a job one gang. A gang is named after the kind and the name of
/// its owner, a single pod after `pod` and its name. So the kind of the owner is Pod: then the
/// names of all gangs compare as those of their jobs do.
fn owner(number: usize, name: Box<str>) -> OwnerReference {
    OwnerReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name,
        uid: Uid(OWNERS | number as u128),
    }
}
