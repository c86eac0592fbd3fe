//! One node: what it has, what is taken, and which pods are on it.

use crate::facts::{Amount, CardPart, NodeFacts, saturated};
use crate::filter::CardShortage;
use crate::gpu::GpuNode;
use crate::ids::{ModelId, PodId, ResourceId};
use crate::numa::Cells;
use crate::queues::GovernedId;
use crate::resources::{Resources, amount_of};
use crate::state::cards::{Cards, Held};
use crate::state::class::Class;
use crate::state::exclusive::Exclusive;
use crate::state::shared::{ClassVolumes, NodeVolumes, Use};
use crate::topology::OrderKey;
use alloc::{boxed::Box, vec::Vec};
use smallvec::SmallVec;

/// A node, or a name that pods refer to before the node itself was seen.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) name: Box<str>,
    /// `None`: pods refer to the node, but it was not seen. It has nothing, so nothing is placed on
    /// it.
    pub(crate) known: Option<KnownNode>,
    slots: SmallVec<[Slot; 6]>,
    /// What is leaving and what is held of the node's resources; most nodes have nothing of either.
    coming: Vec<Coming>,
    /// The host ports and the disks that pods have.
    exclusive: Vec<(Exclusive, PodId)>,
    /// Those that are held, sorted; one as often as it is held.
    held: Vec<Exclusive>,
    pub(crate) cards: Cards,
    /// The volumes that several pods use.
    pub(crate) shared: NodeVolumes,
    /// The NUMA nodes; `None`: the kubelet rejects no pods for them, or nothing is known of them.
    pub(crate) cells: Option<Box<Cells>>,
    /// The pods that take room on the node, in no order.
    pub(crate) pods: Vec<PodId>,
    /// How many pods on the node ask for a GPU of any sort.
    accelerated: u32,
    /// For how many pods room is held on the node.
    held_for: u32,
    /// The node's place in the order of filling.
    pub(crate) rank: u64,
    /// Of a node that is free as a whole, the openness of its domain, which tells in powers of two
    /// how many such nodes the domain has; 0 for all other nodes. See [`crate::state::domains`].
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
    /// How many `nvidia.com/gpu` the node has, working or not.
    pub(crate) gpus: Amount,
    /// The governed key that the GPUs of the node count under by model; `None`: no queue has an
    /// entry for the model.
    pub(crate) model: Option<GovernedId>,
    /// The GPU model, if the node names one.
    pub(crate) model_id: Option<ModelId>,
}

/// What a node has too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lacking {
    /// A resource.
    Resource(ResourceId),
    /// A port of the host that another pod has taken.
    HostPort,
    /// A disk that another pod uses.
    Disk,
    /// Cards with as much free as the pod asks for.
    Cards(CardShortage),
    /// NUMA nodes with as much free together as the pod asks for.
    Alignment,
}

/// One resource of a node.
#[derive(Debug, Clone, Copy)]
struct Slot {
    resource: ResourceId,
    allocatable: Amount,
    /// What a gang without a hold may take; kept because it is asked for again and again.
    free: Amount,
    /// The exact sum over the pods on the node: pods of other schedulers may use more than an
    /// [`Amount`] holds.
    used: u128,
}

/// How much of a resource of a node comes free, or is held.
#[derive(Debug, Clone, Copy)]
struct Coming {
    resource: ResourceId,
    /// The part of what is used of pods that are leaving: this room is coming.
    leaving: u128,
    /// What is held for gangs that wait for room that is coming.
    held: u128,
    /// The amount that counts as taken in a what-if, for holders of room too.
    withheld: u128,
}

impl Coming {
    /// The amount that counts as taken beyond what pods use: holds that no leaving pod covers, and
    /// what is withheld.
    fn kept(&self) -> u128 {
        let held = self.held.saturating_sub(self.leaving);
        held.saturating_add(self.withheld)
    }

    fn is_empty(&self) -> bool {
        self.leaving == 0 && self.held == 0 && self.withheld == 0
    }
}

impl Slot {
    /// How much of the resource a gang without a hold cannot have: what pods use, with those that
    /// are leaving, what is withheld, and holds as far as leaving pods do not cover them.
    fn taken(&self, coming: &[Coming]) -> u128 {
        let coming = coming
            .iter()
            .find(|coming| coming.resource == self.resource);
        let kept = coming.map_or(0, Coming::kept);
        self.used.saturating_add(kept)
    }

    fn settle(&mut self, coming: &[Coming]) {
        let taken = self.taken(coming);
        self.free = self.allocatable.saturating_sub(saturated(taken));
    }
}

impl Node {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            known: None,
            slots: SmallVec::new(),
            coming: Vec::new(),
            exclusive: Vec::new(),
            held: Vec::new(),
            cards: Cards::default(),
            shared: NodeVolumes::default(),
            cells: None,
            pods: Vec::new(),
            accelerated: 0,
            held_for: 0,
            rank: 0,
            openness: 0,
            order_key: (SmallVec::new(), name.into()),
        }
    }

    /// Replaces how much of each resource the node has. Returns whether it has more of any resource
    /// than before.
    pub(crate) fn set_allocatable(&mut self, amounts: &Resources) -> bool {
        let mut grew = false;
        for slot in &mut self.slots {
            let now = amount_of(amounts, slot.resource);
            grew |= now > slot.allocatable;
            // tests plant bugs here: node-shrinks
            slot.allocatable = now;
        }
        for (resource, amount) in amounts {
            let position = self.slot(*resource);
            let slot = &mut self.slots[position];
            grew |= slot.allocatable < *amount;
            slot.allocatable = *amount;
        }
        let coming = &self.coming;
        let is_coming = |slot: &Slot| coming.iter().any(|one| one.resource == slot.resource);
        let is_empty = |slot: &Slot| slot.allocatable == 0 && slot.used == 0;
        self.slots.retain(|slot| !is_empty(slot) || is_coming(slot));
        for slot in &mut self.slots {
            slot.settle(coming);
        }
        grew
    }

    /// The slot of a resource, which is made if the node has none.
    fn slot(&mut self, resource: ResourceId) -> usize {
        let known = self
            .slots
            .binary_search_by_key(&resource, |slot| slot.resource);
        known.unwrap_or_else(|position| {
            let slot = Slot {
                resource,
                allocatable: 0,
                free: 0,
                used: 0,
            };
            self.slots.insert(position, slot);
            position
        })
    }

    /// Changes how much of a resource is used.
    fn use_up(&mut self, resource: ResourceId, change: impl FnOnce(u128) -> u128) {
        let position = self.slot(resource);
        let slot = &mut self.slots[position];
        slot.used = change(slot.used);
        slot.settle(&self.coming);
    }

    /// Changes what is leaving and what is held of a resource.
    fn expect(&mut self, resource: ResourceId, change: impl FnOnce(&mut Coming)) {
        let known = self.coming.iter().position(|one| one.resource == resource);
        let known = known.unwrap_or_else(|| {
            self.coming.push(Coming {
                resource,
                leaving: 0,
                held: 0,
                withheld: 0,
            });
            self.coming.len() - 1
        });
        let coming = &mut self.coming[known];
        change(coming);
        if coming.is_empty() {
            self.coming.swap_remove(known);
        }
        let position = self.slot(resource);
        self.slots[position].settle(&self.coming);
    }

    /// Takes the room of a pod, whether there is enough or not: other schedulers bind pods too.
    pub(crate) fn take(&mut self, pod: PodId, class: &Class, cards: &Held) {
        self.shift(class.apart(), true);
        self.share(class, Use::Pod, true);
        let exclusive = class.exclusive.iter();
        self.exclusive
            .extend(exclusive.map(|one| (one.clone(), pod)));
        self.cards.take(cards);
        self.accelerated += u32::from(class.accelerated);
        self.pods.push(pod);
    }

    /// The exact reverse of [`Node::take`].
    pub(crate) fn give_back(&mut self, pod: PodId, class: &Class, cards: &Held) {
        self.shift(class.apart(), false);
        self.share(class, Use::Pod, false);
        self.exclusive.retain(|(_, owner)| *owner != pod);
        self.cards.give_back(cards);
        if let Some(position) = self.pods.iter().position(|id| *id == pod) {
            self.pods.swap_remove(position);
            self.accelerated -= u32::from(class.accelerated);
        }
    }

    /// Takes what several pods take that ask for amounts alone, or gives it back. Which pods are on
    /// the node stays as it is.
    pub(crate) fn shift_sums(&mut self, amounts: &Resources, accelerated: u32, takes: bool) {
        self.shift(amounts, takes);
        self.accelerated = match takes {
            true => self.accelerated + accelerated,
            false => self.accelerated.saturating_sub(accelerated),
        };
    }

    /// Counts amounts as used, or not any more.
    fn shift(&mut self, amounts: &Resources, takes: bool) {
        for (resource, amount) in amounts {
            self.use_up(*resource, |used| shifted(used, *amount, takes));
        }
    }

    /// Counts the room of a pod on the node as coming, or not any more.
    pub(crate) fn count_leaving(&mut self, class: &Class, leaves: bool) {
        for (resource, amount) in class.apart() {
            self.expect(*resource, |coming| {
                coming.leaving = shifted(coming.leaving, *amount, leaves);
            });
        }
        self.share(class, Use::Leaving, leaves);
    }

    /// Counts one use more of each shared volume of a class, or one less.
    fn share(&mut self, class: &Class, which: Use, adds: bool) {
        let Some(shared) = class.shared.as_deref() else {
            return;
        };
        for volume in shared.volumes() {
            let (before, now) = self.shared.change(volume, which, adds);
            let (resource, _) = volume;
            if before.used != now.used {
                self.use_up(resource, |used| {
                    (used + now.used).saturating_sub(before.used)
                });
            }
            if (before.leaving, before.held) != (now.leaving, now.held) {
                self.expect(resource, |coming| {
                    coming.leaving = (coming.leaving + now.leaving).saturating_sub(before.leaving);
                    coming.held = (coming.held + now.held).saturating_sub(before.held);
                });
            }
        }
    }

    /// What the shared volumes of a class would take of a resource on the node with one more pod of
    /// the class, beyond what is taken.
    fn missing(&self, shared: &ClassVolumes, resource: ResourceId) -> Amount {
        let change = self.shared.with_one_more(shared, resource);
        let mut coming = self.coming.iter();
        let coming = coming.find(|coming| coming.resource == resource);
        let (held, leaving) = coming.map_or((0, 0), |coming| (coming.held, coming.leaving));
        let kept = held.saturating_sub(leaving);
        let held = (held + change.after.held).saturating_sub(change.before.held);
        let leaving = (leaving + change.after.leaving).saturating_sub(change.before.leaving);
        let now = change.before.used + kept;
        let then = change.after.used + held.saturating_sub(leaving);
        saturated(then.saturating_sub(now))
    }

    /// What one more pod of a class would take of a resource.
    pub(crate) fn takes_now(&self, class: &Class, resource: ResourceId) -> Amount {
        match class.shared.as_deref() {
            None => amount_of(&class.requests, resource),
            Some(shared) => {
                let missing = self.missing(shared, resource);
                shared.apart_of(resource).saturating_add(missing)
            }
        }
    }

    /// The free amount of a resource on the node that pods of a class can use, and the amount that
    /// each of these pods takes of it. `None`: the free amount is too little for one pod. The free
    /// amount is without what the shared volumes of the class take once, for all its pods.
    fn room(&self, class: &Class, slot: &Slot, amount: Amount) -> Option<(Amount, Amount)> {
        let (free, amount) = match class.shared.as_deref() {
            None => (slot.free, amount),
            Some(shared) => (
                slot.free.checked_sub(self.missing(shared, slot.resource))?,
                shared.apart_of(slot.resource),
            ),
        };
        (free >= amount).then_some((free, amount))
    }

    /// Holds room for one more pod of a class, or gives it back.
    pub(crate) fn count_held(&mut self, class: &Class, holds: bool) {
        for (resource, amount) in class.apart() {
            self.expect(*resource, |coming| {
                coming.held = shifted(coming.held, *amount, holds);
            });
        }
        self.share(class, Use::Held, holds);
        for one in &class.exclusive {
            match (self.held.binary_search(one), holds) {
                (Ok(at) | Err(at), true) => self.held.insert(at, one.clone()),
                (Ok(at), false) => drop(self.held.remove(at)),
                (Err(_), false) => {}
            }
        }
        self.held_for = match holds {
            true => self.held_for.saturating_add(1),
            false => self.held_for.saturating_sub(1),
        };
    }

    /// Counts amounts as taken in a what-if, or not any more.
    pub(crate) fn count_withheld(&mut self, amounts: &Resources, adds: bool) {
        for (resource, amount) in amounts {
            self.expect(*resource, |coming| {
                coming.withheld = shifted(coming.withheld, *amount, adds);
            });
        }
    }

    /// Whether room is held on the node for any pod.
    pub(crate) fn is_held(&self) -> bool {
        self.held_for > 0
    }

    /// Whether no pod uses this much of a resource. What is held counts as unused.
    pub(crate) fn is_unused(&self, resource: ResourceId, amount: u128) -> bool {
        let slot = self.find(resource);
        slot.is_some_and(|slot| slot.used.saturating_add(amount) <= slot.allocatable.into())
    }

    /// Whether what is held will be there once everything that is leaving has left.
    pub(crate) fn keeps_holds(&self) -> bool {
        let mut held = self.coming.iter().filter(|coming| coming.held > 0);
        held.all(|coming| {
            self.find(coming.resource).is_some_and(|slot| {
                let stays = slot.used.saturating_sub(coming.leaving);
                stays.saturating_add(coming.held) <= slot.allocatable.into()
            })
        })
    }

    /// Whether more is leaving than is held, so that room comes free for any gang. Ports and cards
    /// of leaving pods, which are not counted, always come free for any gang.
    pub(crate) fn leaves_more_than_is_held(&self) -> bool {
        let has_ports_or_cards = !self.exclusive.is_empty() || !self.cards.is_empty();
        let mut leaving = self.coming.iter().filter(|coming| coming.leaving > 0);
        leaving.any(|coming| has_ports_or_cards || coming.leaving > coming.held)
    }

    /// The free amount of a resource; 0 also where more is used than there is.
    pub(crate) fn free(&self, resource: ResourceId) -> Amount {
        self.find(resource).map_or(0, |slot| slot.free)
    }

    /// The free amount of a resource if `amount` of what is used were given back.
    pub(crate) fn free_without(&self, resource: ResourceId, amount: u128) -> Amount {
        self.find(resource).map_or(0, |slot| {
            let used = slot.taken(&self.coming).saturating_sub(amount);
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

    /// All resources of the node, each with its allocatable and its used amount.
    pub(crate) fn resources(&self) -> impl Iterator<Item = (ResourceId, Amount, Amount)> + '_ {
        self.slots
            .iter()
            .map(|slot| (slot.resource, slot.allocatable, saturated(slot.used)))
    }

    /// All resources of the node, each with what is leaving and what is held of it.
    pub(crate) fn coming(&self) -> impl Iterator<Item = (ResourceId, u128, u128)> + '_ {
        self.slots.iter().map(|slot| {
            let mut coming = self.coming.iter();
            let coming = coming.find(|coming| coming.resource == slot.resource);
            let amounts = coming.map(|coming| (coming.leaving, coming.held));
            let (leaving, held) = amounts.unwrap_or_default();
            (slot.resource, leaving, held)
        })
    }

    /// The resources that the node has, of which pods use some, or that are leaving or held.
    pub(crate) fn resources_in_use(&self) -> impl Iterator<Item = ResourceId> {
        let slots = self.slots.iter();
        let slots = slots.filter(|slot| slot.allocatable > 0 || slot.used > 0);
        let coming = self.coming.iter().map(|coming| coming.resource);
        slots.map(|slot| slot.resource).chain(coming)
    }

    fn find(&self, resource: ResourceId) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.resource == resource)
    }

    /// How many more pods of a class fit beside the pods on the node; static filters are not asked.
    pub(crate) fn multiplicity(&self, class: &Class) -> u32 {
        self.multiplicity_up_to(class, u32::MAX)
    }

    /// How many pods of a class fit on the node now; no more than `most` are counted.
    pub(crate) fn multiplicity_up_to(&self, class: &Class, most: u32) -> u32 {
        if self.known.is_none() || self.in_way(class).is_some() {
            return 0;
        }
        let most = if class.is_apart() { most.min(1) } else { most };
        let mut fits = Amount::from(most);
        let mut slots = self.slots.iter();
        for (resource, amount) in &class.requests {
            let Some(slot) = slots.find(|slot| slot.resource == *resource) else {
                return 0;
            };
            let Some((free, amount)) = self.room(class, slot, *amount) else {
                return 0;
            };
            // Most pods take most of a node: a comparison spares most divisions.
            if free < amount.saturating_mul(fits) {
                fits = free / amount;
            }
        }
        if let Some(request) = &class.cards {
            let terms = class.shape.card_terms.as_deref();
            fits = fits.min(self.cards.multiplicity(request, terms, fits));
        }
        if let Some(cells) = &self.cells {
            // tests plant bugs here: room-in-cells
            fits = cells.multiplicity(&class.shape, fits, false);
        }
        u32::try_from(fits).unwrap_or(u32::MAX)
    }

    /// How many pods of a class would fit if no pod were on the node; for explanations.
    pub(crate) fn multiplicity_empty(&self, class: &Class) -> u64 {
        let most = if class.is_apart() { 1 } else { u64::MAX };
        let shared = class.shared.as_deref();
        let resources = class.requests.iter();
        let fits = resources.map(|(id, amount)| {
            let once = shared.map_or(0, |shared| shared.count(*id));
            match self.allocatable(*id).checked_sub(once) {
                None => 0,
                Some(left) => left
                    .checked_div(amount.saturating_sub(once))
                    .unwrap_or(u64::MAX),
            }
        });
        let cards = class.cards.iter();
        let terms = class.shape.card_terms.as_deref();
        let cards = cards.map(|request| self.cards.multiplicity_empty(request, terms));
        let fits = fits.chain(cards).fold(most, u64::min);
        match &self.cells {
            Some(cells) => cells.multiplicity(&class.shape, fits, true),
            None => fits,
        }
    }

    /// The pods on the node that keep pods of a class away by what they have, with that.
    pub(crate) fn holders_in_way<'a>(
        &'a self,
        class: &'a Class,
    ) -> impl Iterator<Item = (&'a Exclusive, PodId)> {
        let in_way = |taken: &Exclusive| class.exclusive.iter().any(|one| one.conflicts(taken));
        let holders = self.exclusive.iter().map(|(taken, pod)| (taken, *pod));
        holders.filter(move |(taken, _)| in_way(taken))
    }

    /// The first of what a class wants for itself that is taken on the node, or held; `None`: all
    /// is free.
    pub(crate) fn in_way<'a>(&self, class: &'a Class) -> Option<&'a Exclusive> {
        class.exclusive.iter().find(|one| {
            let taken = self.exclusive.iter().map(|(taken, _)| taken);
            taken.chain(&self.held).any(|taken| one.conflicts(taken))
        })
    }

    /// Whether more is taken than the node has of a resource that a class asks for, or of a card
    /// that its pod is to get.
    pub(crate) fn is_overfull(&self, class: &Class, cards: &[CardPart]) -> bool {
        let apart = class.apart().iter().map(|(id, _)| *id);
        // What other pods keep on the node is not there for this pod.
        let volumes = class.shared.iter().flat_map(|shared| shared.volumes());
        let alone = volumes.filter(|(id, handle)| self.shared.has_one_user(*id, handle));
        let resources = apart.chain(alone.map(|(id, _)| id));
        let mut slots = resources.filter_map(|id| self.find(id));
        slots.any(|slot| slot.used > slot.allocatable.into()) || self.cards.fail(cards)
    }

    /// The first thing of which the node has too little for one more pod of a class. What even the
    /// empty node lacks comes before what other pods hold.
    pub(crate) fn lacking(&self, class: &Class) -> Lacking {
        let never = |(id, amount): &&(ResourceId, Amount)| self.allocatable(*id) < *amount;
        let now = |(id, amount): &&(ResourceId, Amount)| {
            let slot = self.find(*id);
            slot.is_none_or(|slot| self.room(class, slot, *amount).is_none())
        };
        let mut requests = class.in_order.iter();
        match requests.clone().find(never).or_else(|| requests.find(now)) {
            Some((id, _)) => Lacking::Resource(*id),
            None => match self.in_way(class) {
                Some(Exclusive::Port(_)) => Lacking::HostPort,
                Some(Exclusive::Disk(_)) => Lacking::Disk,
                None if self.misaligns(class) => Lacking::Alignment,
                None => Lacking::Cards(class.cards.map_or(CardShortage::Room, |request| {
                    let terms = class.shape.card_terms.as_deref();
                    self.cards.shortage(&request, terms)
                })),
            },
        }
    }

    /// Whether too little is free together in the NUMA nodes for one more pod of a class.
    fn misaligns(&self, class: &Class) -> bool {
        let cells = self.cells.as_ref();
        cells.is_some_and(|cells| cells.multiplicity(&class.shape, 1, false) == 0)
    }

    /// Whether the node is free as a whole: it has GPUs, no pod on it asks for a GPU, and it is not
    /// cordoned. Such nodes are kept whole for pods that need whole nodes.
    pub(crate) fn is_whole(&self) -> bool {
        let open = |known: &KnownNode| !known.facts.unschedulable;
        self.accelerated == 0
            && !self.is_held()
            && self.has_gpus()
            && self.known.as_ref().is_some_and(open)
    }

    /// The node's place among nodes that are equally good: the fullest domain first, then the order
    /// of filling.
    pub(crate) fn standing(&self) -> Standing {
        (self.openness, self.rank)
    }

    pub(crate) fn has_gpus(&self) -> bool {
        !self.cards.is_empty() || self.known.as_ref().is_some_and(|known| known.gpu.has_gpus)
    }
}

fn shifted(sum: u128, amount: Amount, adds: bool) -> u128 {
    match adds {
        true => sum.saturating_add(amount.into()),
        false => sum.saturating_sub(amount.into()),
    }
}
