//! The room that a card of HAMi has left: its slots, computing power, memory and places for
//! instances of MIG, less those of the pods that hold parts of it.

use crate::cluster::Cluster;
use crate::scenario::Part;
use gpu_batch_policies::facts::{
    CardFacts, CardMemory, MigPlacement, MigProfile, NodeFacts, WHOLE_CARD,
};

/// The free room of a card.
#[derive(Debug)]
pub(super) struct CardRoom {
    slots: u64,
    thousandths: u64,
    memory_mib: u64,
    /// The memory of the card.
    whole_mib: u64,
    /// Whether pods hold parts of the card.
    is_used: bool,
    /// The profiles of a card in MIG mode, and the memory slices that instances have, as bits.
    profiles: Vec<MigProfile>,
    taken: u8,
}

impl CardRoom {
    pub(super) fn of(cluster: &Cluster, node: &NodeFacts, card: &CardFacts) -> Self {
        let mut room = Self {
            slots: card.slots.into(),
            thousandths: card.thousandths.into(),
            memory_mib: card.memory_mib,
            whole_mib: card.memory_mib,
            is_used: false,
            profiles: card.profiles.clone(),
            taken: 0,
        };
        let here = cluster
            .api
            .pods()
            .filter(|facts| facts.node.as_deref() == Some(&*node.name) && !facts.phase.ended());
        for part in here
            .flat_map(|facts| &facts.cards)
            .filter(|part| part.card == card.id)
        {
            room.slots = room.slots.saturating_sub(part.slots.into());
            room.thousandths = room.thousandths.saturating_sub(part.thousandths.into());
            room.memory_mib = room.memory_mib.saturating_sub(part.memory_mib);
            room.is_used = true;
            for instance in &part.instances {
                room.taken |= instance.placement.mask();
            }
        }
        room
    }

    /// For how many parts of one size there is room.
    pub(super) fn parts(&self, part: Part) -> u64 {
        if !self.profiles.is_empty() {
            return self.instances(part);
        }
        if part.thousandths == WHOLE_CARD && self.is_used {
            return 0;
        }
        let memory_mib = match part.memory {
            CardMemory::Any => 0,
            CardMemory::Mib(memory_mib) => memory_mib,
            CardMemory::Percent(percent) => self.whole_mib * u64::from(percent) / 100,
        };
        let by_power = self.thousandths / u64::from(part.thousandths);
        let by_memory = self.memory_mib / memory_mib.max(1);
        self.slots.min(by_power).min(by_memory)
    }

    fn instances(&self, part: Part) -> u64 {
        let placements = self.profiles.iter().flat_map(|profile| &profile.placements);
        let slices = placements.map(|place| u64::from(place.size)).max();
        let has_memory = |profile: &MigProfile, place: &MigPlacement| match part.memory {
            CardMemory::Any => true,
            CardMemory::Mib(memory_mib) => profile.memory_mib >= memory_mib,
            CardMemory::Percent(percent) => {
                100 * u64::from(place.size) >= u64::from(percent) * slices.unwrap_or(0)
            }
        };
        let enough = self.profiles.iter().flat_map(|profile| {
            let has_power = profile.thousandths >= part.thousandths.into();
            let places = profile.placements.iter();
            places.filter(move |place| has_power && has_memory(profile, place))
        });
        most(self.taken, &enough.copied().collect::<Vec<_>>())
    }
}

/// How many of these places can be taken beside the slices that are taken, found by trying all.
fn most(taken: u8, places: &[MigPlacement]) -> u64 {
    let Some((first, others)) = places.split_first() else {
        return 0;
    };
    let without = most(taken, others);
    match first.mask() & taken {
        0 => without.max(1 + most(taken | first.mask(), others)),
        _ => without,
    }
}
