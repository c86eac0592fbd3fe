//! Classes: all pods of one shape are judged once.
//!
//! Each class has a [`Table`] of how many of its pods fit on each node, kept current from a log of
//! changed nodes.

use crate::facts::{
    Amount, CardRequest, MatchOperator, MatchRequirement, PodKind, PodShape, label,
};
use crate::filter::Filter;
use crate::gpu;
use crate::ids::{Id, KindId, NodeId, ResourceId, TopologyId};
use crate::queues::Demand;
use crate::resources::{ResourceNames, Resources, amount_of};
use crate::state::kinds::{self, Kinds};
use crate::state::node::Node;
use crate::state::offered::Offered;
use crate::state::reach::{Confined, Reach};
use crate::topology::Topology;
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use smallvec::SmallVec;

/// All pods of one shape.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) shape: Arc<PodShape>,
    pub(crate) requests: Resources,
    /// The requests in an order that does not depend on which resource was named first.
    pub(crate) in_order: Resources,
    /// `nvidia.com/gpu` of one pod.
    pub(crate) gpus: Amount,
    /// The scarcest resource that it asks for: nodes are searched in the order of what is free of
    /// it.
    pub(crate) primary: ResourceId,
    /// It asks for a GPU of any sort.
    pub(crate) accelerated: bool,
    /// What one pod asks of cards that we choose.
    pub(crate) cards: Option<CardRequest>,
    /// The GPU models that it can run on, sorted, where its selector says which; empty: all.
    pub(crate) models: Vec<Box<str>>,
    /// Some node has each resource that it asks for, and some node one of those models; perhaps
    /// not the same node, and whether they are free or not.
    pub(crate) is_offered: bool,
    /// The nodes that suit the class, by GPU model; `None`: not followed.
    pub(crate) reach: Option<Box<Reach>>,
    /// The conclusion from the reach, as of when the reach was last taken in.
    pub(crate) confined: Confined,
    /// What scores see of its pods.
    pub(crate) kind: KindId,
    /// What one pod asks for of what queues govern, whatever its model; kept until they govern
    /// something else.
    pub(crate) governed: Option<Demand>,
    /// Pods of this shape; the class goes when it has had none for a while.
    pub(crate) pods: u32,
    /// Where it fits; made when the first pod of the class waits.
    pub(crate) table: Option<Box<Table>>,
}

impl Class {
    /// What one pod takes of the scarcest: of all its cards, else of its primary resource.
    pub(crate) fn scarcest(&self) -> Amount {
        match self.cards {
            Some(cards) => Amount::from(cards.count()) * Amount::from(cards.thousandths()),
            None => amount_of(&self.requests, self.primary),
        }
    }

    /// Whether we can do what it asks for.
    pub(crate) fn is_supported(&self) -> bool {
        self.shape.unsupported.is_empty() && !self.confined.to_slots
    }

    /// The only GPU model that it can run on, where its selector says one.
    pub(crate) fn only_model(&self) -> Option<&str> {
        match self.models.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    pub(crate) fn new(
        shape: Arc<PodShape>,
        names: &mut ResourceNames,
        kinds: &mut Kinds,
        offered: &Offered,
    ) -> Self {
        let requests = names.vector(&shape.requests);
        let in_order = names.in_order(requests.clone());
        let extended = |gpus_only: bool| {
            let mut resources = in_order.iter().map(|(resource, _)| *resource);
            resources.find(|resource| {
                let name = names.name(*resource);
                if gpus_only {
                    gpu::is_gpu_resource(name)
                } else {
                    name.contains('/')
                }
            })
        };
        let accelerator = extended(true);
        let mut models = named_models(&shape);
        models.sort_unstable();
        models.dedup();
        let gpus = amount_of(&requests, ResourceNames::gpu());
        let kind = kinds.enter(PodKind {
            cpu_milli: amount_of(&requests, ResourceNames::cpu()),
            cards: shape.cards.or_else(|| kinds::whole_cards(gpus)),
            models: models.clone(),
        });
        Self {
            cards: shape.cards,
            is_offered: offered.has(&shape.requests, &models),
            models,
            kind,
            gpus,
            primary: accelerator
                .or_else(|| extended(false))
                .unwrap_or_else(ResourceNames::cpu),
            accelerated: accelerator.is_some() || shape.cards.is_some(),
            shape,
            requests,
            in_order,
            reach: None,
            confined: Confined::default(),
            governed: None,
            pods: 0,
            table: None,
        }
    }
}

/// The GPU models that a selector allows, if it names them.
fn named_models(shape: &PodShape) -> Vec<Box<str>> {
    const PRODUCT: &str = "nvidia.com/gpu.product";
    let base = |product: &str| gpu::product_base(product).map(Box::from);
    if let Some(product) = label(&shape.node_selector, PRODUCT) {
        return base(product).into_iter().collect();
    }
    let Some([term]) = shape.node_affinity.as_deref() else {
        return Vec::new();
    };
    let names = |requirement: &&MatchRequirement| {
        &*requirement.key == PRODUCT && requirement.operator == MatchOperator::In
    };
    match term.match_expressions.iter().find(names) {
        Some(named) => named
            .values
            .iter()
            .filter_map(|product| base(product))
            .collect(),
        None => Vec::new(),
    }
}

/// Where the pods of a class fit: a number for each node, and sums over domains.
///
/// Kept up to date from the log of nodes that changed, when somebody looks. What an event costs is
/// therefore the number of changed nodes times the number of classes that wait.
#[derive(Debug)]
pub(crate) struct Table {
    /// Static verdicts by node: the number of a filter, or one of the two below.
    verdicts: Vec<u16>,
    /// The static filters that refuse any node, and how many nodes each refuses.
    refused: Vec<(Filter, u32)>,
    /// How many more pods fit, by node.
    pub(crate) counts: Vec<u32>,
    /// The sum of all counts.
    pub(crate) total: u64,
    /// How far in the log of changes this table has read.
    pub(crate) cursor: u64,
    sums: SmallVec<[DomainSums; 1]>,
}

/// The counts of a table, summed by the domains of one topology.
#[derive(Debug)]
struct DomainSums {
    topology: TopologyId,
    version: u64,
    sums: Vec<u64>,
}

/// The static verdict on a node that nobody has seen.
const UNSEEN: u16 = u16::MAX;
/// The static verdict on a node that the pods may use.
const ELIGIBLE: u16 = u16::MAX - 1;

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            verdicts: Vec::new(),
            refused: Vec::new(),
            counts: Vec::new(),
            total: 0,
            cursor: 0,
            sums: SmallVec::new(),
        }
    }

    /// The table of a class of which the static filters say the same as of this one's.
    pub(crate) fn judged_like(other: &Self) -> Self {
        Self {
            verdicts: other.verdicts.clone(),
            refused: other.refused.clone(),
            ..Self::new()
        }
    }

    pub(crate) fn count(&self, node: NodeId) -> u32 {
        self.counts.get(node.index()).copied().unwrap_or(0)
    }

    /// Notes what the static filters say of a node; `None`: the node is not there.
    pub(crate) fn judge(&mut self, node: NodeId, verdict: Option<Result<(), Filter>>) {
        let index = node.index();
        if self.verdicts.len() <= index {
            self.verdicts.resize(index + 1, UNSEEN);
        }
        let now = match verdict {
            None => UNSEEN,
            Some(Ok(())) => ELIGIBLE,
            Some(Err(filter)) => self.count_refusal(filter),
        };
        let before = core::mem::replace(&mut self.verdicts[index], now);
        if let Some((_, nodes)) = self.refused.get_mut(usize::from(before)) {
            *nodes -= 1;
        }
    }

    fn count_refusal(&mut self, filter: Filter) -> u16 {
        if let Some(position) = self.refused.iter().position(|(known, _)| *known == filter) {
            self.refused[position].1 += 1;
            return u16::try_from(position).unwrap_or(ELIGIBLE - 1);
        }
        self.refused.push((filter, 1));
        u16::try_from(self.refused.len() - 1).unwrap_or(ELIGIBLE - 1)
    }

    /// Whether the static filters let the class use a node.
    pub(crate) fn is_eligible(&self, node: NodeId) -> bool {
        self.verdicts.get(node.index()) == Some(&ELIGIBLE)
    }

    /// How many nodes each static filter refuses.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&Filter, u32)> {
        self.refused
            .iter()
            .filter(|(_, nodes)| *nodes > 0)
            .map(|(filter, nodes)| (filter, *nodes))
    }

    /// Looks at one node again. Whether more fit there than before.
    pub(crate) fn update(
        &mut self,
        class: &Class,
        id: NodeId,
        node: Option<&Node>,
        topologies: &crate::ids::Slab<TopologyId, Topology>,
    ) -> bool {
        let index = id.index();
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        let fits = match node {
            Some(node) if self.is_eligible(id) => node.multiplicity(class),
            _ => 0,
        };
        let before = core::mem::replace(&mut self.counts[index], fits);
        if fits == before {
            return false;
        }
        let shift = |sum: &mut u64| *sum = *sum + u64::from(fits) - u64::from(before);
        shift(&mut self.total);
        for sums in &mut self.sums {
            let Some(topology) = topologies.get(sums.topology) else {
                continue;
            };
            // Sums of another version are made anew before they are read.
            if sums.version == topology.version {
                for domain in topology.path(id) {
                    shift(&mut sums.sums[domain.index()]);
                }
            }
        }
        fits > before
    }

    /// How many fit in each domain of a topology.
    pub(crate) fn sums(&mut self, id: TopologyId, topology: &Topology) -> &[u64] {
        let position = match self.sums.iter().position(|sums| sums.topology == id) {
            Some(position) => position,
            None => {
                let sums = Vec::new();
                self.sums.push(DomainSums {
                    topology: id,
                    version: u64::MAX,
                    sums,
                });
                self.sums.len() - 1
            }
        };
        let entry = &mut self.sums[position];
        if entry.version != topology.version {
            entry.version = topology.version;
            entry.sums.clear();
            entry.sums.resize(topology.bound(), 0);
            for (index, count) in self
                .counts
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0)
            {
                let node = NodeId::new(u32::try_from(index).unwrap_or(u32::MAX));
                for domain in topology.path(node) {
                    entry.sums[domain.index()] += u64::from(*count);
                }
            }
        }
        &entry.sums
    }

    /// Forgets the sums over a topology that is gone.
    pub(crate) fn forget(&mut self, topology: TopologyId) {
        self.sums.retain(|sums| sums.topology != topology);
    }
}
