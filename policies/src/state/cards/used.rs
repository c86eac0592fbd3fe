//! The taken part of a card: sums over the pods that hold it, and the slices of its MIG instances.

use crate::facts::{CardNeed, CardPart, MIG_SLICES, MigInstance, MigPlacement, MigProfile};
use alloc::vec::Vec;

/// The taken part of a card: the exact sums over the pods that hold the card. Pods of other
/// schedulers may use more than the card has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Used {
    pub(super) memory_mib: u128,
    pub(super) thousandths: u64,
    pub(super) slots: u64,
    /// How many instances of MIG have each memory slice.
    instances: [u16; MIG_SLICES as usize],
    /// How many slots have no instance. On a card in MIG mode nobody knows where these are.
    uncut: u64,
}

impl Used {
    /// What a share of a card with so much memory takes.
    pub(super) fn of_share(need: &CardNeed, memory_mib: u64) -> Self {
        Self {
            memory_mib: need.memory().of_card(memory_mib).into(),
            thousandths: need.thousandths().into(),
            slots: 1,
            uncut: 1,
            ..Self::default()
        }
    }

    /// What an instance takes.
    pub(super) fn of_instance(profile: &MigProfile, placement: MigPlacement) -> Self {
        let mut used = Self {
            memory_mib: profile.memory_mib.into(),
            thousandths: profile.thousandths.into(),
            slots: 1,
            ..Self::default()
        };
        used.cut(placement, |count| *count += 1);
        used
    }

    /// What a pod takes that uses so much at most, as a part of a card.
    pub(super) fn part(
        self,
        card: &str,
        instances: impl IntoIterator<Item = MigInstance>,
    ) -> CardPart {
        let mut instances: Vec<MigInstance> = instances.into_iter().collect();
        instances.sort_unstable();
        CardPart {
            card: card.into(),
            slots: u32::try_from(self.slots).unwrap_or(u32::MAX),
            thousandths: u32::try_from(self.thousandths).unwrap_or(u32::MAX),
            memory_mib: u64::try_from(self.memory_mib).unwrap_or(u64::MAX),
            instances,
        }
    }

    pub(super) fn add(&mut self, part: &CardPart) {
        self.memory_mib += u128::from(part.memory_mib);
        self.thousandths += u64::from(part.thousandths);
        self.slots += u64::from(part.slots);
        self.uncut += uncut(part);
        for instance in &part.instances {
            self.cut(instance.placement, |count| *count = count.saturating_add(1));
        }
    }

    pub(super) fn remove(&mut self, part: &CardPart) {
        // tests plant bugs here: part-of-a-card
        self.memory_mib = self.memory_mib.saturating_sub(part.memory_mib.into());
        self.thousandths = self.thousandths.saturating_sub(part.thousandths.into());
        self.slots = self.slots.saturating_sub(part.slots.into());
        self.uncut = self.uncut.saturating_sub(uncut(part));
        // tests plant bugs here: freed-instance
        for instance in &part.instances {
            self.cut(instance.placement, |count| *count = count.saturating_sub(1));
        }
    }

    fn cut(&mut self, placement: MigPlacement, change: impl Fn(&mut u16)) {
        let slices = self.instances.iter_mut().skip(placement.start.into());
        slices.take(placement.size.into()).for_each(change);
    }

    /// The memory slices of a card in MIG mode that are taken, as bits: all, where it is not known
    /// of some slot where it is.
    pub(super) fn occupied(&self) -> u8 {
        if self.uncut > 0 {
            return u8::MAX;
        }
        let taken = self.instances.iter().enumerate();
        let taken = taken.filter(|(_, count)| **count > 0);
        taken.fold(0, |mask, (slice, _)| mask | 1 << slice)
    }

    /// Whether two instances of a card in MIG mode have one slice, or perhaps have.
    pub(super) fn is_overlapping(&self) -> bool {
        self.uncut > 0 || self.instances.iter().any(|count| *count > 1)
    }

    pub(super) fn raise_by(&mut self, part: Self) {
        self.memory_mib += part.memory_mib;
        self.thousandths += part.thousandths;
        self.slots += part.slots;
        self.uncut += part.uncut;
        for (count, more) in self.instances.iter_mut().zip(part.instances) {
            *count = count.saturating_add(more);
        }
    }

    /// The most of each of two amounts of shares, which are not cut.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            memory_mib: self.memory_mib.max(other.memory_mib),
            thousandths: self.thousandths.max(other.thousandths),
            slots: self.slots.max(other.slots),
            uncut: self.uncut.max(other.uncut),
            instances: self.instances,
        }
    }

    /// How much of another amount is not in this one.
    pub(super) fn lacks(self, other: Self) -> (u64, u64, u128) {
        (
            other.slots.saturating_sub(self.slots),
            other.thousandths.saturating_sub(self.thousandths),
            other.memory_mib.saturating_sub(self.memory_mib),
        )
    }
}

/// How many slots of a part have no instance.
fn uncut(part: &CardPart) -> u64 {
    let instances = u64::try_from(part.instances.len()).unwrap_or(u64::MAX);
    u64::from(part.slots).saturating_sub(instances)
}
