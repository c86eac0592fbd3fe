//! What exists in a small world, in few words.

use crate::{GPU, MODEL, START_MS};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    Amounts, AttachmentFacts, CARD, CapacityFacts, CardFacts, CardMemory, CardNeed, CardPart,
    CardTerms, ClaimFacts, CsiDriverFacts, CsiNodeFacts, JobFacts, MatchOperator, MatchRequirement,
    NodeFacts, NodeSelectorTerm, NumaFacts, OwnerReference, Placement, PodFacts, PodGroupFacts,
    PodShape, QueueFacts, QueueResource, StorageClassFacts, StorageFacts, SubGroupFacts,
    TopologyConstraint, TopologyFacts, TopologyLevel, Uid, VolumeFacts,
};
use std::sync::Arc;

/// When everything was created, unless a sketch says otherwise.
const CREATED_MS: u64 = START_MS - 60_000;

/// Facts of one or several objects that differ in their names alone.
#[derive(Debug, Clone)]
pub struct Sketch<F>(Vec<F>);

/// What a test can put into a world, alone or several in a tuple, an array or a vector.
pub trait Thing {
    /// The objects. Pods without a UID get one from the world.
    fn objects(self) -> Vec<Object>;
}

/// Amounts by name, without zeros, sorted.
#[must_use]
pub fn amounts(amounts: &[(&str, u64)]) -> Amounts {
    let some = amounts.iter().filter(|(_, amount)| *amount > 0);
    let mut amounts: Amounts = some
        .map(|(name, amount)| ((*name).into(), *amount))
        .collect();
    amounts.sort();
    amounts
}

/// So many names: `names("p", 3)` is `p0 p1 p2`.
#[must_use]
pub fn names(stem: &str, count: usize) -> String {
    let names = (0..count).map(|number| format!("{stem}{number}"));
    names.collect::<Vec<_>>().join(" ")
}

/// Nodes of 100 CPUs and so many GPUs. The names are apart by blanks, here and everywhere.
#[must_use]
pub fn node(names: &str, gpus: u64) -> Sketch<NodeFacts> {
    let resources = amounts(&[("cpu", 100_000), (GPU, gpus), ("pods", 110)]);
    Sketch::each(names, |name| {
        NodeFacts::new(Uid(1 << 64), name, resources.clone())
    })
}

/// Pods of ours that wait, of 1 CPU and so many GPUs each.
#[must_use]
pub fn pod(names: &str, gpus: u64) -> Sketch<PodFacts> {
    let shape = Arc::new(PodShape {
        requests: amounts(&[("cpu", 1_000), (GPU, gpus), ("pods", 1)]),
        ..PodShape::default()
    });
    Sketch::each(names, |name| PodFacts {
        created_ms: CREATED_MS,
        ..PodFacts::new(Uid(0), "default", name, Arc::clone(&shape))
    })
}

/// PodGroups of which so many members start together.
#[must_use]
pub fn gang(names: &str, minimum: u32) -> Sketch<PodGroupFacts> {
    Sketch::each(names, |name| PodGroupFacts {
        created_ms: CREATED_MS,
        ..PodGroupFacts::new(Uid(2 << 64), "default", name, minimum)
    })
}

/// Sub-groups without sub-groups, of which so many pods start together. The parent of those right
/// below the PodGroup is empty.
#[must_use]
pub fn leaf(names: &str, parent: &str, min_member: u32) -> Sketch<SubGroupFacts> {
    Sketch::each(names, |name| {
        SubGroupFacts::new(name, parent, Some(min_member))
    })
}

/// Sub-groups with sub-groups below them.
#[must_use]
pub fn inner(names: &str, parent: &str) -> Sketch<SubGroupFacts> {
    Sketch::each(names, |name| SubGroupFacts::new(name, parent, None))
}

/// Queues without entries.
#[must_use]
pub fn queue(names: &str) -> Sketch<QueueFacts> {
    Sketch::each(names, |name| QueueFacts {
        created_ms: CREATED_MS,
        ..QueueFacts::new(Uid(3 << 64), name)
    })
}

/// Queues that are promised so many GPUs.
#[must_use]
pub fn quota(names: &str, gpus: u64) -> Sketch<QueueFacts> {
    queue(names).entry(GPU, None, (gpus, None), 1)
}

/// A Topology whose levels, farthest first, are the labels of these names.
#[must_use]
pub fn topology(name: &str, levels: &str) -> Sketch<TopologyFacts> {
    let levels = levels.split_whitespace().map(|level| TopologyLevel {
        name: level.into(),
        node_label: level.into(),
    });
    Sketch(vec![TopologyFacts {
        name: name.into(),
        uid: Uid(4 << 64 | name.len() as u128),
        levels: levels.collect(),
        problems: Vec::new(),
    }])
}

impl<F> Sketch<F> {
    pub(crate) fn each(names: &str, make: impl FnMut(&str) -> F) -> Self {
        Self(names.split_whitespace().map(make).collect())
    }

    /// Changes what has no word of its own here.
    #[must_use]
    pub fn with(mut self, change: impl FnMut(&mut F)) -> Self {
        self.0.iter_mut().for_each(change);
        self
    }

    /// The facts of the only object.
    ///
    /// # Panics
    /// If the sketch is of several.
    #[must_use]
    pub fn facts(mut self) -> F {
        assert_eq!(self.0.len(), 1, "a sketch of one object");
        self.0.remove(0)
    }
}

impl<F, const N: usize> From<[Sketch<F>; N]> for Sketch<F> {
    fn from(sketches: [Self; N]) -> Self {
        Self(sketches.into_iter().flat_map(|sketch| sketch.0).collect())
    }
}

impl<F> FromIterator<Self> for Sketch<F> {
    fn from_iter<I: IntoIterator<Item = Self>>(sketches: I) -> Self {
        Self(sketches.into_iter().flat_map(|sketch| sketch.0).collect())
    }
}

impl Sketch<NodeFacts> {
    /// Gives the nodes a label.
    #[must_use]
    pub fn label(self, key: &str, value: &str) -> Self {
        self.with(|node| {
            node.labels.push((key.into(), value.into()));
            node.labels.sort();
        })
    }

    /// Gives the nodes GPUs of this model.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.label(MODEL, model)
    }

    /// Lets the nodes name so many cards, `0` and so on, with so much memory each.
    #[must_use]
    pub fn cards(self, count: usize, memory_mib: u64) -> Self {
        let cards = (0..count).map(|number| CardFacts::new(number.to_string(), memory_mib));
        let cards: Vec<CardFacts> = cards.collect();
        self.with(|node| node.cards.clone_from(&cards))
    }

    /// Gives the nodes so much of a resource, in base units.
    #[must_use]
    pub fn has(self, resource: &str, amount: u64) -> Self {
        self.with(|node| {
            node.allocatable.retain(|(known, _)| **known != *resource);
            node.allocatable.push((resource.into(), amount));
            node.allocatable.sort();
        })
    }

    /// Cordons the nodes.
    #[must_use]
    pub fn cordoned(self) -> Self {
        self.with(|node| node.unschedulable = true)
    }
}

impl Sketch<PodFacts> {
    /// Changes of the shapes of the pods what has no word of its own here.
    #[must_use]
    pub fn shape(self, change: impl Fn(&mut PodShape)) -> Self {
        self.with(|pod| change(Arc::make_mut(&mut pod.shape)))
    }

    /// Makes the pods another scheduler's.
    #[must_use]
    pub fn foreign(self) -> Self {
        self.with(|pod| pod.ours = false)
    }

    /// Lets the pods ask for cards that the engine chooses.
    ///
    /// # Panics
    /// Without a request.
    #[must_use]
    pub fn cards(self, cards: Option<CardNeed>) -> Self {
        assert!(cards.is_some(), "a request of cards");
        self.shape(|shape| shape.cards = cards)
    }

    /// What else the pods say about the cards that they ask for.
    #[must_use]
    pub fn card_terms(self, terms: CardTerms) -> Self {
        self.shape(|shape| shape.card_terms = terms.clone().boxed())
    }

    /// Lets the pods hold what they ask for of these cards of their node.
    #[must_use]
    pub fn holds(self, cards: &[&str]) -> Self {
        self.with(|pod| {
            let need = pod.shape.cards;
            let part = |card: &&str| CardPart {
                card: (*card).into(),
                slots: 1,
                thousandths: need.map_or(0, |need| need.thousandths().into()),
                memory_mib: match need.map(|need| need.memory()) {
                    Some(CardMemory::Mib(memory_mib)) => memory_mib,
                    _ => 0,
                },
                instances: Vec::new(),
            };
            pod.cards = cards.iter().map(part).collect();
        })
    }

    /// Lets the pods be created after all others were bound.
    #[must_use]
    pub fn late(self) -> Self {
        self.with(|pod| pod.created_ms = START_MS)
    }

    /// Binds the pods to this node, since 30 s before the start.
    #[must_use]
    pub fn on(self, node: &str) -> Self {
        self.with(|pod| {
            pod.node = Some(node.into());
            pod.bound_ms = Some(START_MS - 30_000);
        })
    }

    /// Makes the pods members of this PodGroup.
    #[must_use]
    pub fn of(self, group: &str) -> Self {
        self.with(|pod| pod.pod_group = Some(group.into()))
    }

    /// Lets a Job of this name control the pods, which makes them anew.
    #[must_use]
    pub fn owned_by(self, job: &str) -> Self {
        let owner = OwnerReference {
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            name: job.into(),
            uid: Uid(5 << 64),
        };
        self.with(|pod| pod.owner = Some(owner.clone()))
    }

    /// Makes the pods members of this leaf of a PodGroup.
    #[must_use]
    pub fn of_leaf(self, group: &str, leaf: &str) -> Self {
        self.of(group).with(|pod| pod.sub_group = Some(leaf.into()))
    }

    /// Lets the pods name a queue.
    #[must_use]
    pub fn queue(self, queue: &str) -> Self {
        self.with(|pod| pod.queue = Some(queue.into()))
    }

    /// Lets the pods wait behind a scheduling gate.
    #[must_use]
    pub fn gate(self, gate: &str) -> Self {
        self.with(|pod| pod.gates.push(gate.into()))
    }

    /// Lets the pods run on GPUs of this model alone.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.shape(|shape| shape.node_selector.push((MODEL.into(), model.into())))
    }

    /// Lets the pods run only on nodes of which a label is like this.
    #[must_use]
    pub fn needs(self, key: &str, operator: MatchOperator, values: &[&str]) -> Self {
        let requirement = MatchRequirement {
            key: key.into(),
            operator,
            values: values.iter().map(|value| (*value).into()).collect(),
        };
        let term = NodeSelectorTerm {
            match_expressions: vec![requirement],
            match_fields: Vec::new(),
        };
        self.shape(|shape| shape.node_affinity = Some(vec![term.clone()]))
    }

    /// Lets the pods ask for one of this resource, too.
    #[must_use]
    pub fn with_one(self, resource: &str) -> Self {
        self.shape(|shape| {
            shape.requests.push((resource.into(), 1));
            shape.requests.sort();
        })
    }

    /// Lets the pods be expected to run so long.
    #[must_use]
    pub fn runtime(self, runtime_ms: u64) -> Self {
        self.with(|pod| pod.hints.expected_runtime_ms = Some(runtime_ms))
    }
}

impl Sketch<PodGroupFacts> {
    /// Gives the PodGroups these sub-groups.
    #[must_use]
    pub fn sub_groups(self, groups: impl Into<Sketch<SubGroupFacts>>) -> Self {
        let Sketch(groups) = groups.into();
        self.with(|gang| gang.sub_groups.clone_from(&groups))
    }

    /// Lets the PodGroups need so many of their sub-groups without a parent.
    #[must_use]
    pub fn at_least(self, min_sub_groups: u32) -> Self {
        self.with(|gang| gang.min_sub_groups = Some(min_sub_groups))
    }

    /// Lets the PodGroups be below their minimum for so long; negative: for ever.
    #[must_use]
    pub fn grace(self, grace_ms: i64) -> Self {
        self.with(|gang| gang.staleness_grace_ms = Some(grace_ms))
    }

    /// Lets the PodGroups name a queue.
    #[must_use]
    pub fn queue(self, queue: &str) -> Self {
        self.with(|gang| gang.queue = Some(queue.into()))
    }

    /// Lets the `spec` of the PodGroups have been changed so often.
    #[must_use]
    pub fn generation(self, generation: i64) -> Self {
        self.with(|gang| gang.generation = generation)
    }

    /// Lets the PodGroups say how GPU nodes are chosen.
    #[must_use]
    pub fn placed(self, placement: Placement) -> Self {
        self.with(|gang| gang.placement.gpu = Some(placement))
    }
}

impl Sketch<QueueFacts> {
    /// Puts the queues below this queue.
    #[must_use]
    pub fn parent(self, parent: &str) -> Self {
        self.with(|queue| queue.parent = Some(parent.into()))
    }

    /// Lets the queues hold so many GPUs, and promises them none.
    #[must_use]
    pub fn limit(self, gpus: u64) -> Self {
        self.entry(GPU, None, (0, Some(gpus)), 1)
    }

    /// Lets the queues hold so many GPUs of this model, and promises them none.
    #[must_use]
    pub fn limit_of(self, model: &str, gpus: u64) -> Self {
        self.entry(GPU, Some(model), (0, Some(gpus)), 1)
    }

    /// Gives the queues an entry for a resource, or for a model of it: quota, limit and weight.
    /// GPUs are in whole cards, all else in base units.
    #[must_use]
    pub fn entry(
        self,
        name: &str,
        product: Option<&str>,
        (quota, limit): (u64, Option<u64>),
        weight: u16,
    ) -> Self {
        let unit = if name == GPU { CARD } else { 1 };
        let entry = QueueResource {
            name: name.into(),
            product: product.map(Into::into),
            quota: quota * unit,
            limit: limit.map(|limit| limit * unit),
            weight,
        };
        self.with(|queue| queue.resources.push(entry.clone()))
    }

    /// Closes the queues: they start nothing.
    #[must_use]
    pub fn closed(self) -> Self {
        self.with(|queue| queue.closed = true)
    }
}

/// A PodGroup or a sub-group.
pub trait Near {
    /// What the PodGroup or sub-group says of where its members are; empty if it had said nothing.
    fn nearness(&mut self) -> &mut TopologyConstraint;
}

impl Near for PodGroupFacts {
    fn nearness(&mut self) -> &mut TopologyConstraint {
        self.topology.get_or_insert_default()
    }
}

impl Near for SubGroupFacts {
    fn nearness(&mut self) -> &mut TopologyConstraint {
        self.topology.get_or_insert_default()
    }
}

impl<F: Near> Sketch<F> {
    /// Requires all members to be in one domain of this level.
    #[must_use]
    pub fn required(self, level: &str) -> Self {
        self.with(|group| group.nearness().required = Some(level.into()))
    }

    /// Prefers all members in one domain of this level.
    #[must_use]
    pub fn preferred(self, level: &str) -> Self {
        self.with(|group| group.nearness().preferred = Some(level.into()))
    }

    /// Takes the levels from the Topology of this name.
    #[must_use]
    pub fn in_topology(self, name: &str) -> Self {
        self.with(|group| group.nearness().name = Some(name.into()))
    }
}

impl Thing for Object {
    fn objects(self) -> Vec<Object> {
        vec![self]
    }
}

/// Facts make an object of their kind.
macro_rules! things {
    ($($facts:ident $make:expr;)+) => { $(
        impl Thing for $facts {
            fn objects(self) -> Vec<Object> {
                vec![$make(self)]
            }
        }
    )+ };
}

things! {
    NodeFacts Object::Node;
    PodFacts Object::Pod;
    PodGroupFacts Object::PodGroup;
    QueueFacts Object::Queue;
    TopologyFacts Object::Topology;
    JobFacts Object::Job;
    NumaFacts Object::Numa;
    ClaimFacts (|claim| Object::Storage(StorageFacts::Claim(claim)));
    VolumeFacts (|volume| Object::Storage(StorageFacts::Volume(volume)));
    StorageClassFacts (|class| Object::Storage(StorageFacts::Class(class)));
    CsiNodeFacts (|node| Object::Storage(StorageFacts::CsiNode(node)));
    CsiDriverFacts (|driver| Object::Storage(StorageFacts::CsiDriver(driver)));
    AttachmentFacts (|attachment| Object::Storage(StorageFacts::Attachment(attachment)));
    CapacityFacts (|capacity| Object::Storage(StorageFacts::Capacity(capacity)));
}

impl<F: Thing> Thing for Sketch<F> {
    fn objects(self) -> Vec<Object> {
        self.0.into_iter().flat_map(Thing::objects).collect()
    }
}

impl<T: Thing> Thing for Vec<T> {
    fn objects(self) -> Vec<Object> {
        self.into_iter().flat_map(Thing::objects).collect()
    }
}

impl<T: Thing, const N: usize> Thing for [T; N] {
    fn objects(self) -> Vec<Object> {
        self.into_iter().flat_map(Thing::objects).collect()
    }
}

/// A tuple of things makes the objects of all of them.
macro_rules! tuples {
    ($($($thing:ident)+;)+) => { $(
        impl<$($thing: Thing),+> Thing for ($($thing,)+) {
            #[expect(non_snake_case, reason = "a part is named as its type")]
            fn objects(self) -> Vec<Object> {
                let ($($thing,)+) = self;
                [$($thing.objects()),+].concat()
            }
        }
    )+ };
}

tuples! {
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}
