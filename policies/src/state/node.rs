//! One node: what it has, what is taken, who is there.

use crate::facts::{Amount, HostPort, NodeFacts, saturated};
use crate::filter::host_ports_conflict;
use crate::gpu::GpuNode;
use crate::ids::{PodId, ResourceId};
use crate::queues::GovernedId;
use crate::resources::{Resources, amount_of};
use crate::topology::OrderKey;
use alloc::{boxed::Box, vec::Vec};
use smallvec::SmallVec;

/// A node, or a name that pods refer to before the node itself was seen.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: Box<str>,
    /// `None`: only referred to. Such a node has nothing, so nothing is placed on it.
    pub(crate) known: Option<KnownNode>,
    slots: SmallVec<[Slot; 6]>,
    ports: Vec<(HostPort, PodId)>,
    /// Pods that take room here, in no order.
    pub(crate) pods: Vec<PodId>,
    /// The place in the order of filling.
    pub(crate) rank: u64,
    pub(crate) order_key: OrderKey,
}

/// What is known of a node that was seen.
#[derive(Debug)]
pub(crate) struct KnownNode {
    pub(crate) facts: NodeFacts,
    pub(crate) gpu: GpuNode,
    /// The entry of queues that GPUs of this model count in.
    pub(crate) model: Option<GovernedId>,
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
            pods: Vec::new(),
            rank: 0,
            order_key: (SmallVec::new(), name.into()),
        }
    }

    /// Replaces what the node has. Whether any resource has more room than before.
    pub(crate) fn set_allocatable(&mut self, amounts: &Resources) -> bool {
        let mut grew = false;
        for slot in &mut self.slots {
            let now = amount_of(amounts, slot.resource);
            grew |= now > slot.allocatable;
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
    pub(crate) fn take(&mut self, pod: PodId, requests: &Resources, ports: &[HostPort]) {
        for (resource, amount) in requests {
            let slot = self.slot(*resource);
            slot.used += u128::from(*amount);
        }
        self.ports
            .extend(ports.iter().map(|port| (port.clone(), pod)));
        self.pods.push(pod);
    }

    /// The exact reverse of [`Node::take`].
    pub(crate) fn give_back(&mut self, pod: PodId, requests: &Resources) {
        for (resource, amount) in requests {
            let slot = self.slot(*resource);
            slot.used = slot.used.saturating_sub(u128::from(*amount));
        }
        self.ports.retain(|(_, owner)| *owner != pod);
        if let Some(position) = self.pods.iter().position(|id| *id == pod) {
            self.pods.swap_remove(position);
        }
    }

    /// What is left of a resource; 0 also where more is used than there is.
    pub(crate) fn free(&self, resource: ResourceId) -> Amount {
        self.find(resource).map_or(0, Slot::free)
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

    /// How many pods with these requests and ports fit beside what is here.
    pub(crate) fn multiplicity(&self, requests: &Resources, ports: &[HostPort]) -> u32 {
        if self.known.is_none() || !self.ports_free(ports) {
            return 0;
        }
        let mut fits = if ports.is_empty() {
            Amount::from(u32::MAX)
        } else {
            1
        };
        let mut slots = self.slots.iter();
        for (resource, amount) in requests {
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
        u32::try_from(fits).unwrap_or(u32::MAX)
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

    /// Whether more than there is was taken of a resource that these requests name.
    pub(crate) fn is_overfull(&self, requests: &Resources) -> bool {
        let mut slots = requests.iter().filter_map(|(id, _)| self.find(*id));
        slots.any(|slot| slot.used > slot.allocatable.into())
    }

    /// The first resource of which there is too little for one pod.
    pub(crate) fn lacking(&self, requests: &Resources) -> Option<ResourceId> {
        requests
            .iter()
            .find(|(id, amount)| self.free(*id) < *amount)
            .map(|(id, _)| *id)
    }

    pub(crate) fn has_gpus(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.gpu.has_gpus)
    }
}
