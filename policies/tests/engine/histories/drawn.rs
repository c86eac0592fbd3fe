//! Worlds of a few objects of every sort.

use super::ROUNDS;
use fastrand::Rng;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    CardFacts, CardNeed, GroupSource, HostPort, NodeFacts, Placement, PodFacts, PodGroupFacts,
    PodPhase, PodShape, Protocol, QueueFacts, QueueResource, SubGroupFacts, TopologyConstraint,
    Uid, queue_unit,
};
use gpu_batch_testing::{START_MS, amounts, gang, leaf, queue, topology};
use std::sync::Arc;

/// What there is at first, and what happens later.
pub(super) struct Scene {
    pub(super) objects: Vec<Object>,
    pub(super) later: Vec<Round>,
}

/// What comes or changes, and what goes.
pub(super) struct Round {
    pub(super) objects: Vec<Object>,
    pub(super) gone: Vec<Object>,
}

/// Names that no list has in the order in which they are made.
fn name(sort: &str, number: usize) -> String {
    format!("{sort}{}", (number * 7 + 3) % 10 + number / 10 * 10)
}

/// Draws objects. Their UIDs begin at a number.
pub(super) fn scene(random: &mut Rng, first_uid: u128) -> Scene {
    let mut drawing = Drawing {
        random,
        last_uid: first_uid,
        groups: 0,
        natives: 0,
        pods: 0,
        objects: Vec::new(),
    };
    drawing.topologies();
    drawing.queues();
    for number in 0..drawing.random.usize(3..9) {
        drawing.node(number);
    }
    drawing.work(6);
    drawing.foreign();
    let objects = std::mem::take(&mut drawing.objects);
    let mut later = Vec::new();
    for round in 0..ROUNDS {
        drawing.work(3);
        if drawing.random.bool() {
            drawing.node(9 + round);
        }
        if drawing.one_in(3) {
            drawing.queue("c", Some("b"));
        }
        let nodes = objects.iter().filter(|it| it.kind() == Kind::Node);
        let gone = nodes.filter(|_| drawing.random.u32(0..10) == 0);
        later.push(Round {
            gone: gone.cloned().collect(),
            objects: std::mem::take(&mut drawing.objects),
        });
    }
    Scene { objects, later }
}

struct Drawing<'a> {
    random: &'a mut Rng,
    last_uid: u128,
    groups: usize,
    /// The group whose name the last native one has.
    natives: usize,
    pods: usize,
    objects: Vec<Object>,
}

impl Drawing<'_> {
    fn one_in(&mut self, of: u32) -> bool {
        self.random.u32(0..of) == 0
    }

    fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.usize(0..of.len())]
    }

    fn uid(&mut self) -> Uid {
        self.last_uid += 1;
        Uid(self.last_uid)
    }

    fn topologies(&mut self) {
        let default = self.any(&["zone rack", "rack", "zone"]);
        if !self.one_in(6) {
            self.objects
                .push(Object::Topology(topology("default", default).facts()));
        }
        self.objects
            .push(Object::Topology(topology("fabric", "block rack").facts()));
    }

    fn queues(&mut self) {
        for (name, parent) in [("b", None), ("a", None), ("d", Some("b")), ("c", Some("b"))] {
            self.queue(name, parent);
        }
    }

    fn queue(&mut self, name: &str, parent: Option<&str>) {
        let mut facts = QueueFacts {
            uid: self.uid(),
            parent: parent.map(Box::from),
            ..queue(name).facts()
        };
        let sorts = [
            ("example.com/z", None),
            ("nvidia.com/gpu", None),
            ("example.com/a", None),
            ("nvidia.com/gpu", Some("NVIDIA-H100")),
            ("nvidia.com/gpu", Some("NVIDIA-A100")),
            ("cpu", None),
        ];
        for (resource, product) in sorts {
            if !self.one_in(4) {
                continue;
            }
            let quota = self.random.u64(0..6);
            let limit = self.one_in(2).then(|| quota + self.random.u64(0..16));
            let scale = queue_unit(resource);
            facts.resources.push(QueueResource {
                name: resource.into(),
                product: product.map(Box::from),
                quota: quota * scale,
                limit: limit.map(|limit| limit * scale),
                weight: self.random.u16(0..4),
            });
        }
        self.objects.push(Object::Queue(facts));
    }

    fn node(&mut self, number: usize) {
        let gpus = self.any(&[0, 4, 8, 8]);
        let mut resources = Vec::from([
            ("cpu", self.random.u64(4..12) * 1000),
            ("memory", 1 << 36),
            ("pods", 20),
            ("nvidia.com/gpu", gpus),
        ]);
        for resource in ["example.com/z", "example.com/a"] {
            if self.one_in(2) {
                resources.push((resource, self.random.u64(1..6)));
            }
        }
        let mut facts = NodeFacts::new(Uid(1 << 64), &name("n", number), amounts(&resources));
        let labels = [
            ("zone", ["a", "b"]),
            ("rack", ["r1", "r2"]),
            ("block", ["x", "y"]),
            ("sort", ["x", "y"]),
            ("nvidia.com/gpu.product", ["NVIDIA-H100", "NVIDIA-A100"]),
        ];
        for (key, values) in labels {
            if !self.one_in(5) {
                facts.labels.push((key.into(), self.any(&values).into()));
            }
        }
        facts.labels.sort();
        if self.one_in(4) {
            let whole = |number: u64| CardFacts::new(number.to_string(), 81_920);
            facts.cards = (0..gpus).map(whole).collect();
        }
        facts.unschedulable = self.one_in(10);
        self.objects.push(Object::Node(facts));
    }

    fn shape(&mut self) -> Arc<PodShape> {
        let gpus = self.any(&[0, 1, 1, 2, 2, 3, 4, 8]);
        let cards = if self.one_in(8) {
            CardNeed::fraction(500, 0)
        } else {
            None
        };
        let mut resources = Vec::from([
            ("cpu", self.any(&[500, 1000, 2000])),
            ("pods", 1),
            ("nvidia.com/gpu", if cards.is_some() { 0 } else { gpus }),
        ]);
        for resource in ["example.com/a", "example.com/z"] {
            if self.one_in(6) {
                resources.push((resource, self.random.u64(1..3)));
            }
        }
        let mut shape = PodShape {
            requests: amounts(&resources),
            cards,
            ..PodShape::default()
        };
        if self.one_in(5) {
            let sort = self.any(&["x", "y"]);
            shape.node_selector.push(("sort".into(), sort.into()));
        }
        if self.one_in(12) {
            shape.host_ports.push(HostPort {
                port: 80,
                protocol: Protocol::Tcp,
                host_ip: "".into(),
            });
        }
        Arc::new(shape)
    }

    fn nearness(&mut self) -> TopologyConstraint {
        let levels = [None, None, Some("zone"), Some("rack"), Some("node")];
        let fabric = [None, Some("block"), Some("rack"), Some("node")];
        let of_fabric = self.one_in(3);
        let levels = if of_fabric { &fabric[..] } else { &levels[..] };
        let required = self.any(levels).filter(|_| self.one_in(2));
        TopologyConstraint {
            name: of_fabric.then(|| "fabric".into()),
            required: required.map(Box::from),
            preferred: self.any(levels).map(Box::from),
        }
    }

    /// So many gangs or single pods.
    fn work(&mut self, count: usize) {
        for _ in 0..count {
            let (queue, created_ms) = (self.any(&["a", "c", "d"]), self.created_ms());
            if self.one_in(4) {
                let shape = self.shape();
                let mut facts = self.pod(shape);
                facts.queue = Some(queue.into());
                facts.created_ms = created_ms;
                self.objects.push(Object::Pod(facts));
            } else {
                self.gang(queue, created_ms);
            }
        }
    }

    fn created_ms(&mut self) -> u64 {
        START_MS - self.any(&[60_000, 60_000, 50_000])
    }

    fn gang(&mut self, queue: &str, created_ms: u64) {
        // Groups of two sources may have one name.
        let native = self.one_in(4) && self.natives < self.groups;
        if native {
            self.natives = self.groups;
        } else {
            self.groups += 1;
        }
        let own = name("g", self.groups);
        let mut facts = PodGroupFacts {
            uid: self.uid(),
            created_ms,
            queue: Some(queue.into()),
            priority: Some(self.random.i32(0..3) / 2),
            preemptible: Some(!self.one_in(4)),
            topology: (!self.one_in(3)).then(|| self.nearness()),
            ..gang(&own, 1).facts()
        };
        if native {
            facts.source = GroupSource::Native;
            facts.topology = None;
            facts.required_label = self.one_in(2).then(|| "rack".into());
        }
        facts.placement.gpu = self.any(&[
            None,
            None,
            None,
            Some(Placement::Spread),
            Some(Placement::Consolidated),
            Some(Placement::BestFit),
            Some(Placement::Random { seed: 7 }),
        ]);
        let shapes: Vec<_> = (0..self.random.usize(1..4)).map(|_| self.shape()).collect();
        let mut leaves = Vec::from([None]);
        if !native && self.one_in(2) {
            facts.sub_groups = self.sub_groups();
            let is_leaf = |group: &&SubGroupFacts| group.min_member.is_some();
            let groups = facts.sub_groups.iter().filter(is_leaf);
            leaves = groups.map(|group| Some(group.name.clone())).collect();
        }
        let mut members = 0;
        for leaf in leaves {
            for _ in 0..self.random.usize(1..4) {
                let shape = shapes[self.random.usize(0..shapes.len())].clone();
                let mut pod = self.pod(shape);
                pod.created_ms = self.created_ms();
                let group = Some(facts.name.clone());
                if native {
                    pod.native_group = group;
                } else {
                    pod.pod_group = group;
                }
                pod.sub_group.clone_from(&leaf);
                self.objects.push(Object::Pod(pod));
                members += 1;
            }
        }
        if facts.sub_groups.is_empty() {
            let minimum = members - self.random.u32(0..members);
            facts.minimum = minimum;
        }
        self.objects.push(Object::PodGroup(facts));
    }

    fn sub_groups(&mut self) -> Vec<SubGroupFacts> {
        let inner = self.one_in(3);
        let mut groups = Vec::new();
        if inner {
            groups.push(gpu_batch_testing::inner("inner", "").facts());
        }
        for name in ["v", "u", "w"] {
            let parent = if inner && self.random.bool() {
                "inner"
            } else {
                ""
            };
            let mut group = leaf(name, parent, self.random.u32(1..3)).facts();
            group.topology = self.random.bool().then(|| self.nearness());
            groups.push(group);
        }
        if inner && !groups.iter().any(|group| &*group.parent == "inner") {
            groups.remove(0);
        }
        groups
    }

    fn pod(&mut self, shape: Arc<PodShape>) -> PodFacts {
        self.pods += 1;
        let name = name("p", self.pods);
        PodFacts::new(self.uid(), "default", &name, shape)
    }

    /// Pods of other schedulers.
    fn foreign(&mut self) {
        for _ in 0..self.random.usize(0..3) {
            let shape = self.shape();
            let facts = self.pod(shape);
            let node = name("n", self.random.usize(0..6));
            self.objects.push(Object::Pod(PodFacts {
                ours: false,
                node: Some(node.into()),
                phase: PodPhase::Running,
                ..facts
            }));
        }
    }
}
