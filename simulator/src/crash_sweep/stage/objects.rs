//! The objects of the run, and how the story changes them.

use super::super::Story;
use super::Stage;
use crate::api_server::{ApiServer, Name, Request};
use crate::objects::{GPU, NAMESPACE, node, pod, pod_group};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    CARD, NodeFacts, PodFacts, PodPhase, QueueFacts, QueueResource, Uid, amount,
};

/// GPUs of a node. Each member takes a whole node, and there is one node for each member; one more
/// where the gang takes the room of others.
const GPUS: u64 = 8;
const GANG: &str = "gang";
const TEAM: &str = "team";

/// The name of a member.
pub(super) fn member(number: usize) -> String {
    format!("member-{number}")
}

/// The name of a node whose pods ask for more GPUs than it has.
pub(super) fn overfull(api: &ApiServer) -> Option<Box<str>> {
    let full = |node: &NodeFacts| used(api, &node.name) > amount(&node.allocatable, GPU);
    nodes(api).into_iter().find(full).map(|node| node.name)
}

/// A pod of lower priority than the gang.
fn victim(name: &str) -> PodFacts {
    let mut facts = pod(name, Uid(0), 0, 1, GPUS);
    facts.queue = Some(TEAM.into());
    facts
}

fn nodes(api: &ApiServer) -> Vec<NodeFacts> {
    let nodes = api.objects(Kind::Node);
    nodes
        .filter_map(|stored| match &stored.object {
            Object::Node(facts) => Some(facts.clone()),
            _ => None,
        })
        .collect()
}

fn used(api: &ApiServer, node: &str) -> u64 {
    let here = |facts: &&PodFacts| facts.node.as_deref() == Some(node) && !facts.phase.ended();
    let pods = api.pods().filter(here);
    pods.map(|facts| amount(&facts.shape.requests, GPU)).sum()
}

impl Stage<'_> {
    fn create(&mut self, object: Object) {
        self.api.handle(Request::Create(object), self.now_ms);
    }

    /// Creates nodes and queues. The queue `rivals` is always served first, because it has a quota.
    pub(super) fn furnish(&mut self) {
        self.create_nodes();
        for (name, quota) in [(TEAM, 0), ("rivals", 1_000 * CARD)] {
            let mut facts = QueueFacts::new(Uid(0), name);
            facts.resources.push(QueueResource {
                name: GPU.into(),
                product: None,
                quota,
                limit: None,
                weight: 1,
            });
            self.create(Object::Queue(facts));
        }
        if self.case.story == Story::Taken {
            for node in nodes(&self.api) {
                let mut facts = victim(&format!("victim-of-{}", node.name));
                facts.node = Some(node.name);
                facts.bound_ms = Some(self.now_ms - 3_600_000);
                facts.bound_queue = Some(TEAM.into());
                facts.phase = PodPhase::Running;
                self.create(Object::Pod(facts));
            }
        }
    }

    /// Creates the nodes that do not exist.
    fn create_nodes(&mut self) {
        let more = usize::from(self.case.story == Story::Taken);
        for number in 0..self.case.members + more {
            let name = format!("node-{number}");
            self.create(Object::Node(node(&name, Uid(0), 64, GPUS, &[])));
        }
    }

    pub(super) fn create_gang(&mut self) {
        let minimum = u32::try_from(self.case.members).unwrap_or(u32::MAX);
        let mut facts = pod_group(GANG, Uid(0), 0, minimum);
        facts.queue = Some(TEAM.into());
        facts.priority = Some(100);
        self.create(Object::PodGroup(facts));
        for number in 0..self.case.members {
            self.create_member(&member(number));
        }
    }

    /// Makes a pod anew that was evicted.
    pub(super) fn recreate(&mut self, name: &str) {
        match name.starts_with("victim") {
            true => self.create(Object::Pod(victim(name))),
            false => self.create_member(name),
        }
    }

    fn create_member(&mut self, name: &str) {
        let mut facts = pod(name, Uid(0), 0, 1, GPUS);
        facts.pod_group = Some(GANG.into());
        self.create(Object::Pod(facts));
    }

    /// The names of the nodes without a pod.
    fn free_nodes(&self) -> Vec<Box<str>> {
        let free = |node: &NodeFacts| used(&self.api, &node.name) == 0;
        let nodes = nodes(&self.api).into_iter().filter(free);
        nodes.map(|node| node.name).collect()
    }

    /// Changes the world as the story says.
    pub(super) fn turn(&mut self) {
        for node in self.free_nodes() {
            let mut other = pod(&format!("other-{node}"), Uid(0), 0, 1, GPUS);
            match self.case.story {
                Story::RoomKept | Story::Refused | Story::Taken => {}
                Story::RoomTaken => {
                    other.ours = false;
                    other.node = Some(node);
                    self.create(Object::Pod(other));
                }
                Story::NodesGone => self.delete(Name {
                    kind: Kind::Node,
                    namespace: "".into(),
                    name: node,
                }),
                Story::Contended => {
                    other.queue = Some("rivals".into());
                    self.create(Object::Pod(other));
                }
            }
        }
    }

    /// Gives the gang back everything that it needs: nodes come back, other pods go. Room that it
    /// can take it has to take.
    pub(super) fn heal(&mut self) {
        self.healed_ms = Some(self.now_ms);
        if self.case.story == Story::Taken {
            return;
        }
        self.create_nodes();
        let others = self.api.pods().filter(|facts| facts.pod_group.is_none());
        let others: Vec<Box<str>> = others.map(|facts| facts.name.clone()).collect();
        for name in others {
            self.delete(Name::pod(NAMESPACE, &name));
        }
    }
}
