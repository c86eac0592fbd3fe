//! One node: what it has, what is taken, who is there.

use crate::facts::{Amount, CardIndex, HostPort, NodeFacts, saturated};
use crate::filter::host_ports_conflict;
use crate::gpu::GpuNode;
use crate::ids::{ModelId, PodId, ResourceId};
use crate::queues::GovernedId;
use crate::resources::{Resources, amount_of};
use crate::state::cards::Cards;
use crate::state::class::Class;
use crate::topology::OrderKey;
use alloc::{boxed::Box, vec::Vec};
use smallvec::SmallVec;

/// A node, or a name that pods refer to before the node itself was seen.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) name: Box<str>,
    /// `None`: only referred to. Such a node has nothing, so nothing is placed on it.
    pub(crate) known: Option<KnownNode>,
    slots: SmallVec<[Slot; 6]>,
    ports: Vec<(HostPort, PodId)>,
    pub(crate) cards: Cards,
    /// Pods that take room here, in no order.
    pub(crate) pods: Vec<PodId>,
    /// Pods here that ask for a GPU of any sort.
    accelerated: u32,
    /// The place in the order of filling.
    pub(crate) rank: u64,
    /// Of a node that is free as a whole, how many others of its domain are, in powers of two; 0 of
    /// others. See [`crate::state::domains`].
    pub(crate) openness: u8,
    pub(crate) order_key: OrderKey,
}

/// See [`Node::standing`].
pub(crate) type Standing = (u8, u64);

/// The facts of a node that was seen.
#[derive(Debug, Clone)]
pub(crate) struct KnownNode {
    pub(crate) facts: NodeFacts,
    pub(crate) gpu: GpuNode,
    /// The entry of queues that GPUs of this model count in.
    pub(crate) model: Option<GovernedId>,
    /// The GPU model, as scores know it.
    pub(crate) model_id: Option<ModelId>,
}

/// What a node has too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lacking {
    /// A resource.
    Resource(ResourceId),
    /// A port that is taken.
    HostPort,
    /// Cards with as much free as is asked for.
    Cards,
}

/// One resource of a node.
#[derive(Debug, Clone, Copy)]
struct Slot {
    resource: ResourceId,
    allocatable: Amount,
    /// The exact sum: pods of other schedulers may use more than an amount holds.
    used: u128,
}

impl Slot {
    fn free(&self) -> Amount {
        self.allocatable.saturating_sub(saturated(self.used))
    }
}

impl Node {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            known: None,
            slots: SmallVec::new(),
            ports: Vec::new(),
            cards: Cards::default(),
            pods: Vec::new(),
            accelerated: 0,
            rank: 0,
            openness: 0,
            order_key: (SmallVec::new(), name.into()),
        }
    }

    /// Replaces what the node has. Whether any resource has more room than before.
    pub(crate) fn set_allocatable(&mut self, amounts: &Resources) -> bool {
        let mut grew = false;
        for slot in &mut self.slots {
            let now = amount_of(amounts, slot.resource);
            grew |= now > slot.allocatable;
            // tests plant bugs here: node-shrinks
            slot.allocatable = now;
        }
        for (resource, amount) in amounts {
            let slot = self.slot(*resource);
            grew |= slot.allocatable < *amount;
            slot.allocatable = *amount;
        }
        self.slots
            .retain(|slot| slot.allocatable > 0 || slot.used > 0);
        grew
    }

    fn slot(&mut self, resource: ResourceId) -> &mut Slot {
        let position = match self
            .slots
            .binary_search_by_key(&resource, |slot| slot.resource)
        {
            Ok(position) => position,
            Err(position) => {
                self.slots.insert(
                    position,
                    Slot {
                        resource,
                        allocatable: 0,
                        used: 0,
                    },
                );
                position
            }
        };
        &mut self.slots[position]
    }

    /// A pod takes its room, whether there is enough or not: the world is as it is.
    pub(crate) fn take(&mut self, pod: PodId, class: &Class, cards: &[CardIndex]) {
        for (resource, amount) in &class.requests {
            let slot = self.slot(*resource);
            slot.used += u128::from(*amount);
        }
        let ports = class.shape.host_ports.iter();
        self.ports.extend(ports.map(|port| (port.clone(), pod)));
        if let Some(request) = &class.cards {
            self.cards.take(request, cards);
        }
        self.accelerated += u32::from(class.accelerated);
        self.pods.push(pod);
    }

    /// The exact reverse of [`Node::take`].
    pub(crate) fn give_back(&mut self, pod: PodId, class: &Class, cards: &[CardIndex]) {
        for (resource, amount) in &class.requests {
            let slot = self.slot(*resource);
            slot.used = slot.used.saturating_sub(u128::from(*amount));
        }
        self.ports.retain(|(_, owner)| *owner != pod);
        if let Some(request) = &class.cards {
            self.cards.give_back(request, cards);
        }
        if let Some(position) = self.pods.iter().position(|id| *id == pod) {
            self.pods.swap_remove(position);
            self.accelerated -= u32::from(class.accelerated);
        }
    }

    /// The free amount of a resource; 0 also where more is used than there is.
    pub(crate) fn free(&self, resource: ResourceId) -> Amount {
        self.find(resource).map_or(0, Slot::free)
    }

    /// The free amount of a resource if so much of what is used were given back.
    pub(crate) fn free_without(&self, resource: ResourceId, amount: u128) -> Amount {
        self.find(resource).map_or(0, |slot| {
            let used = slot.used.saturating_sub(amount);
            slot.allocatable.saturating_sub(saturated(used))
        })
    }

    /// The free amount of the resource that is scarcest for a class, see [`Class::scarcest`].
    pub(crate) fn free_scarcest(&self, class: &Class) -> Amount {
        match class.cards {
            Some(_) => self.cards.free_thousandths(),
            None => self.free(class.primary),
        }
    }

    pub(crate) fn allocatable(&self, resource: ResourceId) -> Amount {
        self.find(resource).map_or(0, |slot| slot.allocatable)
    }

    /// All resources with what the node has and what is taken.
    pub(crate) fn resources(&self) -> impl Iterator<Item = (ResourceId, Amount, Amount)> + '_ {
        self.slots
            .iter()
            .map(|slot| (slot.resource, slot.allocatable, saturated(slot.used)))
    }

    fn find(&self, resource: ResourceId) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.resource == resource)
    }

    /// How many pods of a class fit beside what is here.
    pub(crate) fn multiplicity(&self, class: &Class) -> u32 {
        let ports = &class.shape.host_ports;
        if self.known.is_none() || !self.ports_free(ports) {
            return 0;
        }
        let mut fits = if ports.is_empty() {
            Amount::from(u32::MAX)
        } else {
            1
        };
        let mut slots = self.slots.iter();
        for (resource, amount) in &class.requests {
            let Some(slot) = slots.find(|slot| slot.resource == *resource) else {
                return 0;
            };
            let free = slot.free();
            if free < *amount {
                return 0;
            }
            // Most pods take most of a node: a comparison spares most divisions.
            if free < amount.saturating_mul(fits) {
                fits = free / amount;
            }
        }
        if let Some(request) = &class.cards {
            fits = fits.min(self.cards.multiplicity(request));
        }
        u32::try_from(fits).unwrap_or(u32::MAX)
    }

    /// How many pods of a class would fit if nothing were here: for explanations.
    pub(crate) fn multiplicity_empty(&self, class: &Class) -> u64 {
        let ports = if class.shape.host_ports.is_empty() {
            u64::MAX
        } else {
            1
        };
        let resources = class.requests.iter();
        let fits = resources.map(|(id, amount)| self.allocatable(*id) / amount);
        let cards = class.cards.iter();
        let cards = cards.map(|request| self.cards.multiplicity_empty(request));
        fits.chain(cards).fold(ports, u64::min)
    }

    /// Whether none of the ports is taken here.
    pub(crate) fn ports_free(&self, ports: &[HostPort]) -> bool {
        ports.iter().all(|port| {
            !self
                .ports
                .iter()
                .any(|(taken, _)| host_ports_conflict(taken, port))
        })
    }

    /// Whether more than there is was taken of a resource that a class asks for.
    pub(crate) fn is_overfull(&self, class: &Class) -> bool {
        let mut slots = class.requests.iter().filter_map(|(id, _)| self.find(*id));
        slots.any(|slot| slot.used > slot.allocatable.into())
            || class.cards.is_some() && self.cards.is_overfull()
    }

    /// The first thing of which there is too little for one pod: before what others hold, what the
    /// node would lack if it were empty.
    pub(crate) fn lacking(&self, class: &Class) -> Lacking {
        let never = |(id, amount): &&(ResourceId, Amount)| self.allocatable(*id) < *amount;
        let now = |(id, amount): &&(ResourceId, Amount)| self.free(*id) < *amount;
        let mut requests = class.in_order.iter();
        match requests.clone().find(never).or_else(|| requests.find(now)) {
            Some((id, _)) => Lacking::Resource(*id),
            None if !self.ports_free(&class.shape.host_ports) => Lacking::HostPort,
            None => Lacking::Cards,
        }
    }

    /// Whether all of its GPUs are free to be used: what stays whole for those who need it.
    pub(crate) fn is_whole(&self) -> bool {
        let open = |known: &KnownNode| !known.facts.unschedulable;
        self.accelerated == 0 && self.has_gpus() && self.known.as_ref().is_some_and(open)
    }

    /// The place among nodes that are equally good: the fullest domain first, then the order of
    /// filling.
    pub(crate) fn standing(&self) -> Standing {
        (self.openness, self.rank)
    }

    pub(crate) fn has_gpus(&self) -> bool {
        !self.cards.is_empty() || self.known.as_ref().is_some_and(|known| known.gpu.has_gpus)
    }
}
