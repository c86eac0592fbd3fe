//! Classes: all pods of one shape are judged once.
//!
//! Each class has a [`Table`] of how many of its pods fit on each node, kept current from a log of
//! changed nodes.

use crate::facts::{
    AMOUNT_MAX, Amount, CARD, CardMemory, CardModes, CardNeed, CardTerms, MatchOperator,
    MatchRequirement, PodKind, PodShape, label,
};
use crate::filter::Filter;
use crate::gpu;
use crate::ids::{Id, KindId, NodeId, ResourceId, Slab, TopologyId};
use crate::queues::Demand;
use crate::resources::{ResourceNames, Resources, amount_of};
use crate::state::cards::Cards;
use crate::state::exclusive::Exclusive;
use crate::state::kinds::{self, Kinds};
use crate::state::preferences::NodePreferences;
use crate::state::reach::{Confined, Reach};
use crate::state::relations::ClassRelations;
use crate::state::shared::ClassVolumes;
use crate::topology::Topology;
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use smallvec::SmallVec;

/// All pods of one shape, and which terms of others' anti-affinity select.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) shape: Arc<PodShape>,
    pub(crate) requests: Resources,
    /// The requests in the order of [`ResourceNames::place`], which does not depend on which
    /// resource was named first.
    pub(crate) in_order: Resources,
    /// The volumes that others use, too, which are among the requests; `None`: there are none.
    pub(crate) shared: Option<Box<ClassVolumes>>,
    /// What a pod has of a node and others may not have beside it.
    pub(crate) exclusive: Vec<Exclusive>,
    /// How many `nvidia.com/gpu` one pod asks for.
    pub(crate) gpus: Amount,
    /// What one pod counts for in queues under `nvidia.com/gpu`, in thousandths of a card, where
    /// that does not depend on cards; else what it counts for while no card is known that suits.
    pub(crate) counted: Amount,
    /// The scarcest resource that the class asks for. Nodes are searched in the order of how much
    /// of it is free.
    pub(crate) primary: ResourceId,
    /// The class asks for a GPU of any sort.
    pub(crate) accelerated: bool,
    /// What one pod asks of cards that we choose.
    pub(crate) cards: Option<CardNeed>,
    /// The GPU models that the class can run on, sorted, where its selector names them; empty: all.
    pub(crate) models: Vec<Box<str>>,
    /// Some node has each resource that the class asks for, and some node one of `models`; perhaps
    /// not the same node, and perhaps in use.
    pub(crate) is_offered: bool,
    /// The nodes that suit the class, by GPU model; `None`: not kept.
    pub(crate) reach: Option<Box<Reach>>,
    /// What follows from the reach, as of when `follow_reaches` last ran.
    pub(crate) confined: Confined,
    /// The kind of pod that the class is to placements by score.
    pub(crate) kind: KindId,
    /// What one pod asks for, by governed key without GPU models; kept until the governed keys
    /// change.
    pub(crate) governed: Option<Demand>,
    /// What the class has to do with other pods; `None`: nothing.
    pub(crate) relations: Option<Box<ClassRelations>>,
    /// What the class prefers of the nodes' objects; read when that is first asked for.
    pub(crate) node_preferences: Option<Box<NodePreferences>>,
    /// How many pods have this shape. A class without pods is kept for a while if it has a table.
    pub(crate) pods: u32,
    /// Where pods of the class fit; made when that is first asked for.
    pub(crate) table: Option<Box<Table>>,
}

/// What a pod with so many `nvidia.com/gpu` counts for in queues, as far as its shape tells. Parts
/// of cards that we choose count as such.
fn counted(shape: &PodShape, gpus: Amount) -> Amount {
    let of_need = |need: &CardNeed| u64::from(need.count()) * need.counted(None);
    match &shape.cards {
        // tests plant bugs here: part-in-queues
        Some(need) if gpus > 0 => at_a_time(shape, need, of_need),
        _ => in_thousandths(gpus),
    }
}

/// What a pod uses at a time of what each need of its containers uses.
fn at_a_time(shape: &PodShape, need: &CardNeed, amount: impl Fn(&CardNeed) -> u64) -> u64 {
    match shape.card_terms.as_deref() {
        Some(terms) if !terms.containers.is_empty() => {
            terms.most_at_a_time(amount, |role| terms.stays(role))
        }
        _ => amount(need),
    }
}

/// Whole cards as queues count them: no more than the largest amount that is whole.
pub(crate) fn in_thousandths(cards: Amount) -> Amount {
    cards.min(AMOUNT_MAX / CARD) * CARD
}

impl Class {
    /// What one pod takes of what is scarcest: of all its cards, in thousandths, else of the
    /// primary resource.
    pub(crate) fn scarcest(&self) -> Amount {
        match self.cards {
            Some(cards) => {
                let terms = self.shape.card_terms.as_deref();
                let together = terms.map_or(0, CardTerms::thousandths);
                together.max(cards.in_all())
            }
            None => amount_of(&self.requests, self.primary),
        }
    }

    /// Whether it depends on a card what a pod of the class counts for in queues: on its memory,
    /// where memory is asked for in MiB, or on its profiles, where instances of MIG will do.
    pub(crate) fn is_measured(&self) -> bool {
        let modes = self.shape.card_terms.as_deref().map(|terms| terms.modes);
        let by_memory = |need: CardNeed| matches!(need.memory(), CardMemory::Mib(_));
        let is_cut = modes.is_some_and(|modes| modes != CardModes::Shared);
        self.gpus > 0 && self.cards.is_some() && (is_cut || self.card_needs().any(by_memory))
    }

    /// What the containers of a pod ask of cards that the scheduler chooses, each by itself.
    pub(crate) fn card_needs(&self) -> impl Iterator<Item = CardNeed> {
        let terms = self.shape.card_terms.as_deref();
        let several = terms.map_or(&[][..], |terms| &terms.containers);
        let one = self.cards.filter(|_| several.is_empty());
        several.iter().map(|container| container.need).chain(one)
    }

    /// What a pod of the class counts for on these cards: what each container would count for on
    /// the card that makes it count most. `None`: for some container no card suits.
    pub(crate) fn counted_on(&self, cards: &Cards) -> Option<Amount> {
        let terms = self.shape.card_terms.as_deref();
        let of_card = |need: &CardNeed| cards.counted(need, terms);
        if self.card_needs().any(|need| of_card(&need).is_none()) {
            return None;
        }
        let of_need = |need: &CardNeed| u64::from(need.count()) * of_card(need).unwrap_or(0);
        Some(at_a_time(&self.shape, &self.cards?, of_need))
    }

    /// Whether pods of the class may be placed as they stand: all that they ask for is supported,
    /// and nothing about their volumes is missing.
    pub(crate) fn may_be_placed(&self) -> bool {
        let volumes = self.shape.volumes.as_ref();
        let is_complete = volumes.is_none_or(|volumes| volumes.missing.is_none());
        self.shape.unsupported.is_empty() && !self.confined.to_slots && is_complete
    }

    /// Whether a pod of the class takes amounts alone, the same on every node: neither cards nor
    /// host ports nor disks nor volumes that others use, too.
    pub(crate) fn asks_for_amounts(&self) -> bool {
        self.cards.is_none() && self.exclusive.is_empty() && self.shared.is_none()
    }

    /// Whether no node can have two pods of the class.
    pub(crate) fn is_apart(&self) -> bool {
        self.exclusive.iter().any(|one| one.conflicts(one))
    }

    /// What each pod of the class takes by itself: the requests without volumes that others use,
    /// too.
    pub(crate) fn apart(&self) -> &Resources {
        let shared = self.shared.as_deref();
        shared.map_or(&self.requests, |shared| &shared.apart)
    }

    /// Whether kubelets may reject pods of the class for their NUMA nodes.
    pub(crate) fn is_aligned(&self) -> bool {
        !self.shape.aligned.is_empty()
    }

    /// The only GPU model that the class can run on, where its selector names just one.
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
        is_offered: impl FnOnce(&[Box<str>]) -> bool,
    ) -> Self {
        let requests = names.vector(&shape.requests);
        let in_order = names.in_order(requests.clone());
        let volumes = shape.volumes.as_deref();
        let shared = volumes.map_or(&[][..], |volumes| &volumes.shared);
        let shared = ClassVolumes::new(shared, &requests, names);
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
            is_offered: is_offered(&models),
            models,
            kind,
            gpus,
            counted: counted(&shape, gpus),
            primary: accelerator
                .or_else(|| extended(false))
                .unwrap_or_else(ResourceNames::cpu),
            accelerated: accelerator.is_some() || shape.cards.is_some(),
            exclusive: Exclusive::of(&shape),
            shape,
            requests,
            in_order,
            shared,
            reach: None,
            confined: Confined::default(),
            governed: None,
            relations: None,
            node_preferences: None,
            pods: 0,
            table: None,
        }
    }
}

/// The GPU models that the selector or the affinity of a shape allows; empty: it names none.
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
/// A table is brought up to date from the log of changed nodes when it is needed. So an event costs
/// the number of changed nodes times the number of classes that wait.
#[derive(Debug)]
pub(crate) struct Table {
    /// Static verdicts by node: an index into `refused`, [`UNSEEN`] or [`ELIGIBLE`].
    verdicts: Vec<u16>,
    /// The static filters that refuse any node, and how many nodes each refuses.
    refused: Vec<(Filter, u32)>,
    /// How many more pods of the class fit, by node.
    pub(crate) counts: Vec<u32>,
    /// The sum of `counts`.
    pub(crate) total: u64,
    /// How far in the log of changes this table has read.
    pub(crate) cursor: u64,
    /// What other pods said of the class when the table was last brought up to date.
    pub(crate) relation_stamp: u64,
    sums: SmallVec<[DomainSums; 1]>,
}

/// The counts of a table, summed by the domains of one topology.
#[derive(Debug)]
struct DomainSums {
    topology: TopologyId,
    version: u64,
    sums: Vec<u64>,
}

/// The static verdict on a node that is not known.
const UNSEEN: u16 = u16::MAX;
/// The static verdict on a node that pods of the class may use.
const ELIGIBLE: u16 = u16::MAX - 1;

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            verdicts: Vec::new(),
            refused: Vec::new(),
            counts: Vec::new(),
            total: 0,
            cursor: 0,
            relation_stamp: 0,
            sums: SmallVec::new(),
        }
    }

    /// A table with the static verdicts of another one, for a class that the static filters judge
    /// alike. It has no counts yet.
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

    /// Notes what the static filters say of a node; `None`: the node is not known.
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

    /// Notes how many more pods of the class fit on a node now.
    pub(crate) fn set_count(
        &mut self,
        id: NodeId,
        fits: u32,
        topologies: &Slab<TopologyId, Topology>,
    ) {
        let index = id.index();
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        let before = core::mem::replace(&mut self.counts[index], fits);
        if fits == before {
            return;
        }
        let shift = |sum: &mut u64| *sum = *sum + u64::from(fits) - u64::from(before);
        shift(&mut self.total);
        for sums in &mut self.sums {
            let Some(topology) = topologies.get(sums.topology) else {
                continue;
            };
            // Sums of another version of the topology are made anew before they are read.
            if sums.version == topology.version {
                for domain in topology.path(id) {
                    shift(&mut sums.sums[domain.index()]);
                }
            }
        }
    }

    /// How many more pods of the class fit in each domain of a topology, by the domain's index.
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
