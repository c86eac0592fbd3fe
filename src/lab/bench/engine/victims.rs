//! Gangs that take room from others: how long it takes to find whom to evict, or that nobody can
//! be.
//!
//! The first three cases are those that KAI-Scheduler's own benchmarks have.

use super::facts::{GPU, group_name, node, pod, pod_group, queue, running, shape};
use super::session::{Session, done};
use crate::lab::bench::row::over_sizes;
use crate::lab::bench::{Bound, Row, milliseconds};
use gpu_batch_policies::command::{Action, Command, StatusPatch};
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::{CARD, OwnerReference, PodFacts, QueueFacts, QueueResource, Uid};
use gpu_batch_policies::settings::Settings;
use std::sync::Arc;
use std::time::Duration;

const GPUS: usize = 8;
/// More than any case asks for at a time.
const IN_FLIGHT: u32 = 1_000_000;
/// How long searches may take on the clock of the engine, which pauses between them.
const SEARCH_MS: u64 = 600_000;

/// A cluster in which everything runs that runs, and pods that want room.
struct Case {
    name: &'static str,
    /// What runs and what claims, in words.
    scenario: &'static str,
    /// Numbers of nodes.
    sizes: &'static [usize],
    world: fn(usize) -> Vec<Object>,
    claimants: fn(usize) -> Vec<Object>,
    /// Of how many nodes how many members are to be nominated.
    nominated: fn(usize) -> usize,
    /// The target in milliseconds, for so many nodes, and what KAI takes; for 0 nodes: none.
    target: (usize, f64, &'static str),
}

const CASES: [Case; 5] = [
    Case {
        name: "reclaim for one large gang",
        scenario: "one gang of N/2 pods of 8 GPUs from 8N one-GPU jobs",
        sizes: &[100, 500, 1_000, 5_000],
        world: |nodes| borrowed(nodes, 0),
        claimants: large_gang,
        nominated: |nodes| nodes / 2,
        target: (1_000, 30.0, "target; KAI takes 29.9 s"),
    },
    Case {
        name: "reclaim for many small jobs",
        scenario: "8N one-GPU jobs from 8N one-GPU jobs, all decisions",
        sizes: &[100, 200, 500],
        world: |nodes| borrowed(nodes, 0),
        claimants: |nodes| (0..GPUS * nodes).map(single).collect(),
        nominated: |nodes| GPUS * nodes,
        target: (500, 100.0, "target; KAI takes 112 s"),
    },
    Case {
        name: "nobody can give",
        scenario: "one gang of 10 pods of 8 GPUs without quota, 8N one-GPU jobs within their quota",
        sizes: &[100, 500, 1_000],
        world: within_quota,
        claimants: |_| gang(10, "lender"),
        nominated: |_| 0,
        target: (1_000, 20.0, "target; KAI takes 249 s end to end"),
    },
    Case {
        name: "a search used up in vain",
        scenario: "one gang of N/2 pods of 8 GPUs, 8N one-GPU jobs, each queue is promised all",
        sizes: &[100, 500, 1_000],
        world: |nodes| borrowed(nodes, GPUS * nodes),
        claimants: large_gang,
        nominated: |_| 0,
        target: (0, 0.0, ""),
    },
    Case {
        name: "moving for one gang",
        scenario: "one gang of N/8 pods of 8 GPUs, 4 movable one-GPU jobs on each node",
        sizes: &[100, 500, 1_000],
        world: scattered,
        claimants: |nodes| gang(nodes / 8, "lender"),
        nominated: |nodes| nodes / 8,
        target: (1_000, 100.0, "target"),
    },
];

pub(super) fn measure() -> Vec<Row> {
    CASES.iter().flat_map(of_case).collect()
}

fn of_case(case: &Case) -> Vec<Row> {
    over_sizes(case.sizes.iter().copied(), |nodes| {
        let slices = slices(case, nodes);
        let total: Duration = slices.iter().sum();
        let longest = slices.iter().max().copied().unwrap_or_default();
        let scenario = format!("{}, N = {nodes}", case.scenario);
        let row = Row::new(case.name, scenario.clone(), milliseconds(total), "ms");
        let (size, target, note) = case.target;
        vec![
            match nodes == size {
                true => row.against(Bound::AtMost, target, note),
                false => row,
            },
            Row::new(
                "one slice of it, longest",
                scenario,
                milliseconds(longest),
                "ms",
            ),
        ]
    })
}

/// How long each step took, from the arrival of the last claimant until all room is nominated that
/// can be.
fn slices(case: &Case, nodes: usize) -> Vec<Duration> {
    // Nobody is promised a start: a step is a try for victims and nothing else.
    let settings = Settings {
        reservations: 0,
        ..Settings::default()
    };
    let mut session = Session::begin(settings, IN_FLIGHT, (case.world)(nodes));
    let planned = session.plan(Session::listed());
    session.settle(planned.commands);
    session.now_ms += 1_000;
    let events = (case.claimants)(nodes).into_iter().map(Event::from);
    let first = session.step(events.collect());
    let expected = (case.nominated)(nodes);
    let (mut slices, mut nominated) = (vec![first.took], nominations(&first.commands));
    let mut answers = done(&first.commands);
    let until_ms = session.now_ms + SEARCH_MS;
    while (expected == 0 || nominated < expected) && session.advance(until_ms) {
        answers.push(Event::Continue);
        let slice = session.step(std::mem::take(&mut answers));
        slices.push(slice.took);
        nominated += nominations(&slice.commands);
        answers = done(&slice.commands);
    }
    assert_eq!(nominated, expected, "{}", case.name);
    slices
}

fn nominations(commands: &[Command]) -> usize {
    let is_nomination = |command: &&Command| {
        let patch = &command.action;
        matches!(patch, Action::PatchStatus(StatusPatch::Nominated { .. }))
    };
    commands.iter().filter(is_nomination).count()
}

/// Nodes that are full of one-GPU jobs of a queue with this quota; another queue has the quota of
/// the whole cluster.
fn borrowed(nodes: usize, quota: usize) -> Vec<Object> {
    let all = nodes * GPUS;
    let queues = [of_quota(0, "lender", all), of_quota(1, "borrower", quota)];
    let queues = queues.map(Object::Queue).into_iter();
    queues.chain(filled(nodes, GPUS, "borrower")).collect()
}

/// Nodes that are full of one-GPU jobs of a queue whose quota is the whole cluster; the other queue
/// has none.
fn within_quota(nodes: usize) -> Vec<Object> {
    let queues = [
        of_quota(0, "lender", 0),
        of_quota(1, "borrower", nodes * GPUS),
    ];
    let queues = queues.map(Object::Queue).into_iter();
    queues.chain(filled(nodes, GPUS, "borrower")).collect()
}

/// Nodes that are half full of one-GPU jobs of one queue, which come back when they are evicted.
fn scattered(nodes: usize) -> Vec<Object> {
    let queue = Object::Queue(of_quota(0, "lender", nodes * GPUS));
    let filled = filled(nodes, GPUS / 2, "lender");
    core::iter::once(queue).chain(filled).collect()
}

fn filled(nodes: usize, on_node: usize, queue: &'static str) -> impl Iterator<Item = Object> {
    let shape = Arc::new(shape(8_000, 64, 1));
    (0..nodes).flat_map(move |number| {
        let node = node(number, GPUS as u64, [0; 3]);
        let mut objects = Vec::new();
        for slot in 0..on_node {
            let number = slot * nodes + number;
            let mut pod = running(pod(number, &shape), &node);
            pod.queue = Some(queue.into());
            pod.owner = Some(owner(number));
            objects.push(Object::Pod(pod));
        }
        objects.push(Object::Node(node));
        objects
    })
}

fn owner(number: usize) -> OwnerReference {
    OwnerReference {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        name: format!("job-{number:06}").into(),
        uid: Uid(9 << 64 | number as u128),
    }
}

fn of_quota(number: usize, name: &str, gpus: usize) -> QueueFacts {
    let mut facts = queue(number);
    facts.name = name.into();
    facts.resources = vec![QueueResource {
        name: GPU.into(),
        product: None,
        quota: gpus as u64 * CARD,
        limit: None,
        weight: 1,
    }];
    facts
}

fn large_gang(nodes: usize) -> Vec<Object> {
    gang(nodes / 2, "lender")
}

fn gang(members: usize, queue: &str) -> Vec<Object> {
    let minimum = u32::try_from(members).unwrap_or(u32::MAX);
    let mut group = pod_group(0, minimum, None);
    group.queue = Some(queue.into());
    let shape = Arc::new(shape(64_000, 512, GPUS as u64));
    let member = |number| {
        let mut pod = pod(5_000_000 + number, &shape);
        pod.pod_group = Some(group_name(0));
        Object::Pod(pod)
    };
    let members = (0..members).map(member);
    core::iter::once(Object::PodGroup(group))
        .chain(members)
        .collect()
}

/// A job of one GPU that waits.
fn single(number: usize) -> Object {
    let mut pod: PodFacts = pod(5_000_000 + number, &Arc::new(shape(8_000, 64, 1)));
    pod.queue = Some("lender".into());
    pod.owner = Some(owner(5_000_000 + number));
    Object::Pod(pod)
}
