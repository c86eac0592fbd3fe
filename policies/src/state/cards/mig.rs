//! Places for instances of MIG on a card.
//!
//! An instance gets the smallest profile that is large enough and has a free place, at the place
//! that costs the fewest places of later instances; of several, at the last. So small instances
//! gather at the end of the card, and the first half is kept whole for a large one.
//!
//! How many places each of the 256 sets of occupied slices leaves is worked out once for each
//! list of profiles, which is one for each GPU model and driver.
//!
//! Sources: NVIDIA's MIG user guide, and `selectMigCandidate` of HAMi's scheduler, which takes the
//! smallest profile, too.

use crate::facts::{CardMemory, CardNeed, MIG_SLICES, MigPlacement, MigProfile, WHOLE_CARD};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::hash::{Hash, Hasher};

/// How many lists of profiles are kept before those are forgotten that no card has.
const KEPT: usize = 64;

/// The profiles of a card, with what follows from them.
#[derive(Debug)]
pub(crate) struct MigModel {
    profiles: Box<[MigProfile]>,
    /// How many memory slices the card has.
    slices: u8,
    /// The places of all plain profiles, those that end first in front.
    places: Vec<Place>,
    /// By occupied slices: how many of the places are free.
    left: Vec<u16>,
    /// By occupied slices: the most computing power of instances that still find places, in
    /// thousandths of the card.
    power: Vec<u32>,
}

/// A place of an instance of a profile.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The place of the profile in the list.
    profile: usize,
    placement: MigPlacement,
    mask: u8,
}

/// What a request gets of a card.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chosen<'a> {
    pub(crate) profile: &'a MigProfile,
    pub(crate) placement: MigPlacement,
    /// How many places are lost for later instances.
    pub(crate) loss: u16,
}

impl MigModel {
    fn new(profiles: &[MigProfile]) -> Self {
        let all = profiles.iter().flat_map(|profile| &profile.placements);
        let end = all.map(|placement| placement.start + placement.size).max();
        let plain = profiles.iter().enumerate();
        let plain = plain.filter(|(_, profile)| profile.is_plain());
        let places = plain.flat_map(|(number, profile)| {
            let placements = profile.placements.iter();
            placements.map(move |placement| Place {
                profile: number,
                placement: *placement,
                mask: placement.mask(),
            })
        });
        let mut places: Vec<Place> = places.collect();
        places.sort_by_key(|place| place.placement.start + place.placement.size);
        let (mut left, mut power) = (alloc::vec![0_u16; 256], alloc::vec![0_u32; 256]);
        // A place adds bits to the occupied ones, so larger numbers come first.
        for occupied in (0..=u8::MAX).rev() {
            let index = usize::from(occupied);
            for place in places.iter().filter(|place| place.mask & occupied == 0) {
                let beside = power[index | usize::from(place.mask)];
                let with = profiles[place.profile].thousandths.saturating_add(beside);
                left[index] = left[index].saturating_add(1);
                power[index] = power[index].max(with);
            }
        }
        Self {
            profiles: profiles.into(),
            slices: if end > Some(4) { MIG_SLICES } else { 4 },
            places,
            left,
            power,
        }
    }

    /// The most computing power of instances that find places beside the occupied slices, in
    /// thousandths of the card.
    pub(super) fn power(&self, occupied: u8) -> u32 {
        self.power[usize::from(occupied)]
    }

    /// Whether an instance of a profile has what is asked of one card. A percentage is one of the
    /// memory slices: instances have a little less memory than their slices together.
    fn is_enough(&self, profile: &MigProfile, need: &CardNeed) -> bool {
        let memory = match need.memory() {
            CardMemory::Any => true,
            CardMemory::Mib(memory_mib) => profile.memory_mib >= memory_mib,
            CardMemory::Percent(percent) => {
                let size = profile.placements.iter().map(|placement| placement.size);
                let size = u64::from(size.min().unwrap_or(0));
                100 * size >= u64::from(percent) * u64::from(self.slices)
            }
        };
        memory && profile.thousandths >= need.thousandths().into()
    }

    /// What the smallest instance that has what is asked of one card counts for in queues, by
    /// memory slices, in thousandths of a card; `None`: there is none.
    pub(super) fn counted(&self, need: &CardNeed) -> Option<u64> {
        let chosen = self.choose(0, need)?;
        // tests plant bugs here: instance-in-queues
        let slices = u64::from(chosen.placement.size);
        Some((slices * u64::from(WHOLE_CARD)).div_ceil(self.slices.into()))
    }

    /// How many instances that have what is asked of one card find places beside the occupied
    /// slices. It is the largest number: of rows that do not overlap, most are found by taking the
    /// one that ends first again and again.
    pub(super) fn count(&self, mut occupied: u8, need: &CardNeed) -> u64 {
        let mut count = 0;
        for place in &self.places {
            let profile = &self.profiles[place.profile];
            if place.mask & occupied == 0 && self.is_enough(profile, need) {
                occupied |= place.mask;
                count += 1;
            }
        }
        count
    }

    /// The instance that a request gets beside the occupied slices, so that as many of its kind as
    /// before find places with it; `None`: there is no place.
    pub(super) fn choose(&self, occupied: u8, need: &CardNeed) -> Option<Chosen<'_>> {
        let count = self.count(occupied, need);
        let enough = |place: &Place| self.is_enough(&self.profiles[place.profile], need);
        let spoils = |place: &Place| self.count(occupied | place.mask, need) + 1 < count;
        let places = self.places.iter();
        // tests plant bugs here: place-of-an-instance
        let free = places.filter(|place| place.mask & occupied == 0);
        let best = free
            .filter(|place| enough(place) && !spoils(place))
            .min_by_key(|place| {
                let profile = &self.profiles[place.profile];
                let size = (
                    profile.memory_mib,
                    place.placement.size,
                    profile.thousandths,
                );
                let loss = self.loss(occupied, place.mask);
                (size, place.profile, loss, Reverse(place.placement.start))
            })?;
        Some(Chosen {
            profile: &self.profiles[best.profile],
            placement: best.placement,
            loss: self.loss(occupied, best.mask),
        })
    }

    /// How many places are lost beside the occupied slices if these are taken, too.
    fn loss(&self, occupied: u8, mask: u8) -> u16 {
        let left = |occupied: u8| self.left[usize::from(occupied)];
        left(occupied).saturating_sub(left(occupied | mask))
    }
}

impl PartialEq for MigModel {
    fn eq(&self, other: &Self) -> bool {
        self.profiles == other.profiles
    }
}

impl Eq for MigModel {}

impl Hash for MigModel {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.profiles.hash(hasher);
    }
}

/// The lists of profiles of all cards, each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct MigModels(Vec<Arc<MigModel>>);

impl MigModels {
    /// What follows from a list of profiles; `None`: it is empty, and the card is not in MIG mode.
    pub(super) fn get(&mut self, profiles: &[MigProfile]) -> Option<Arc<MigModel>> {
        if profiles.is_empty() {
            return None;
        }
        if let Some(known) = self.0.iter().find(|known| *known.profiles == *profiles) {
            return Some(Arc::clone(known));
        }
        if self.0.len() >= KEPT {
            self.0.retain(|known| Arc::strong_count(known) > 1);
        }
        let model = Arc::new(MigModel::new(profiles));
        self.0.push(Arc::clone(&model));
        Some(model)
    }
}

#[cfg(test)]
mod tests;
