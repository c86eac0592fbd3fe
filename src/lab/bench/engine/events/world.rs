//! A full cluster, and what happens in it.
//!
//! Of 28 pods on a node, 4 are members of running gangs (2 GPUs each, so the node is full), 10 are
//! single CPU pods of ours, the others are foreign. The gangs that wait want 8 whole nodes each. If
//! ends are known, each gang is expected to run for so many hours, from 2 to 25.

use super::Size;
use crate::lab::bench::engine::facts::{group_name, node, pod, pod_group, running, shape};
use crate::lab::bench::engine::policy;
use gpu_batch_policies::command::{Action, Command};
use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::{NodeFacts, PodFacts, PodPhase, PodShape, Uid};
use std::collections::VecDeque;
use std::sync::Arc;

/// How many shapes the waiting members have.
const SHAPES: usize = 20;
/// Members of a waiting gang.
const PENDING_MEMBERS: usize = 8;
/// Members of a running gang.
const RUNNING_MEMBERS: usize = 16;
/// Pods of ours on a node: members of gangs, then single ones.
const MEMBERS_ON_NODE: usize = 4;
const SINGLES_ON_NODE: usize = 10;

pub(in crate::lab::bench::engine) struct World {
    size: Size,
    ends_are_known: bool,
    nodes: Vec<NodeFacts>,
    running: Vec<PodFacts>,
    shapes: Vec<Arc<PodShape>>,
    created: usize,
    random: fastrand::Rng,
    /// Pods that are being evicted.
    evicted: VecDeque<Uid>,
    /// Pods that take the place of others that have ended, and are still to come.
    successors: VecDeque<PodFacts>,
}

impl World {
    pub(in crate::lab::bench::engine) fn new(size: Size, ends_are_known: bool) -> Self {
        let nodes: Vec<NodeFacts> = (0..size.nodes)
            .map(|number| node(number, 8, [number / 1000, number / 100, number / 10]))
            .collect();
        let shapes = vec![
            Arc::new(shape(8_000, 64, 2)),
            Arc::new(shape(1_000, 4, 0)),
            Arc::new(shape(100, 1, 0)),
        ];
        let mut world = Self {
            size,
            ends_are_known,
            nodes,
            running: Vec::new(),
            shapes,
            created: 0,
            random: fastrand::Rng::with_seed(7),
            evicted: VecDeque::new(),
            successors: VecDeque::new(),
        };
        let bound = size.pods - size.gangs * PENDING_MEMBERS;
        world.running = (0..bound).map(|number| world.running_pod(number)).collect();
        world.created = bound;
        world
    }

    fn running_pod(&self, number: usize) -> PodFacts {
        let (round, on) = (number / self.nodes.len(), number % self.nodes.len());
        let mut pod = match round {
            0..MEMBERS_ON_NODE => {
                let mut pod = pod(number, &self.shapes[0]);
                pod.pod_group = Some(group_name(self.size.gangs + number / RUNNING_MEMBERS));
                pod
            }
            round => {
                let ours = round < MEMBERS_ON_NODE + SINGLES_ON_NODE;
                let mut pod = pod(number, &self.shapes[if ours { 1 } else { 2 }]);
                pod.ours = ours;
                pod
            }
        };
        pod.queue = pod.ours.then(|| policy::team(number));
        running(pod, &self.nodes[on])
    }

    /// All objects that exist at the beginning.
    pub(in crate::lab::bench::engine) fn objects(&self) -> impl Iterator<Item = Object> {
        let waiting: Vec<Arc<PodShape>> = (0..SHAPES as u64)
            .map(|number| Arc::new(shape(64_000 + 1_000 * number, 1024, 8)))
            .collect();
        let running_gangs = self.nodes.len() * MEMBERS_ON_NODE / RUNNING_MEMBERS;
        let expected_ms = |number: usize| (2 + number as u64 * 7 % 24) * 3_600_000;
        let groups = (0..=self.size.gangs + running_gangs).map(move |number| {
            let waits = number < self.size.gangs;
            let minimum = if waits { PENDING_MEMBERS } else { 1 };
            let required = (waits && number.is_multiple_of(2)).then_some("block");
            let minimum = u32::try_from(minimum).unwrap_or(u32::MAX);
            let mut group = pod_group(number, minimum, required);
            group.queue = Some(policy::team(number));
            group.expected_runtime_ms = self.ends_are_known.then(|| expected_ms(number));
            Object::PodGroup(group)
        });
        let members = (0..self.size.gangs * PENDING_MEMBERS).map(move |number| {
            let gang = number / PENDING_MEMBERS;
            let mut pod = pod(10_000_000 + number, &waiting[gang % SHAPES]);
            pod.pod_group = Some(group_name(gang));
            Object::Pod(pod)
        });
        policy::objects()
            .chain(self.nodes.iter().cloned().map(Object::Node))
            .chain(groups)
            .chain(members)
            .chain(self.running.iter().cloned().map(Object::Pod))
    }

    /// Evicted pods end first. Else: 70 % changes of a pod's status, 20 % a pod that ends or its
    /// successor, 10 % changes of a node.
    pub(in crate::lab::bench::engine) fn next_event(&mut self) -> Event {
        while let Some(uid) = self.evicted.pop_front() {
            if let Some(number) = self.running.iter().position(|pod| pod.uid == uid) {
                return self.end(number);
            }
        }
        match self.random.u32(0..10) {
            0..7 => self.pod_status(),
            7 | 8 => self.end_or_start(),
            _ => self.node_status(),
        }
    }

    /// A running pod turns Pending or Running, as with a probe, a restart or an annotation.
    fn pod_status(&mut self) -> Event {
        let number = self.random.usize(0..self.running.len());
        let pod = &mut self.running[number];
        pod.phase = match pod.phase {
            PodPhase::Running => PodPhase::Pending,
            _ => PodPhase::Running,
        };
        Object::Pod(pod.clone()).into()
    }

    fn end_or_start(&mut self) -> Event {
        if let Some(pod) = self.successors.pop_front() {
            return Object::Pod(pod).into();
        }
        let number = self.random.usize(0..self.running.len());
        self.end(number)
    }

    fn end(&mut self, number: usize) -> Event {
        let ended = self.running.swap_remove(number);
        let uid = ended.uid;
        self.created += 1;
        let mut successor = pod(self.created, &ended.shape);
        successor.ours = ended.ours;
        successor.queue = ended.queue;
        successor.pod_group = ended.pod_group;
        // A foreign pod arrives bound; a pod of ours waits for the engine.
        if !successor.ours {
            successor.node = ended.node;
            successor.phase = PodPhase::Running;
            self.running.push(successor.clone());
        }
        self.successors.push_back(successor);
        Event::Deleted(ObjectKey::Pod(uid))
    }

    /// An annotation of a node changes, or the node is cordoned or opened again.
    fn node_status(&mut self) -> Event {
        let number = self.random.usize(0..self.nodes.len());
        let node = &mut self.nodes[number];
        if self.random.bool() {
            node.unschedulable = !node.unschedulable;
        } else {
            let value: Box<str> = self.random.u32(..).to_string().into();
            node.annotations = vec![("nvidia.com/driver-check".into(), value)];
        }
        Object::Node(node.clone()).into()
    }

    /// Lets pods run for which there is a bind, and those end that are evicted.
    pub(in crate::lab::bench::engine) fn carry_out(&mut self, commands: &[Command]) {
        for command in commands {
            let bind = match &command.action {
                Action::Bind(bind) => bind,
                Action::Evict(evict) => {
                    self.evicted.push_back(evict.pod.uid);
                    continue;
                }
                _ => continue,
            };
            let number = usize::try_from(bind.pod.uid.0 & u128::from(u64::MAX)).unwrap_or(0);
            let mut pod = pod(number, &self.shapes[usize::from(bind.pod_group.is_none())]);
            pod.node = Some(bind.node.clone());
            pod.phase = PodPhase::Running;
            pod.pod_group = bind.pod_group.clone();
            pod.queue = Some(bind.queue.clone());
            self.running.push(pod);
        }
    }
}
