//! Cards in MIG mode, which the scheduler cuts into instances as pods need them.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// How many memory slices a card has at most.
pub const MIG_SLICES: u8 = 8;

/// A size of instances that a card can be cut into.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MigProfile {
    /// Its name, e.g. `1g.10gb`. Another model may give the name another size.
    pub name: Box<str>,
    /// The memory of an instance, in MiB.
    pub memory_mib: u64,
    /// The computing power of an instance, in thousandths of the card.
    pub thousandths: u32,
    /// Where an instance may be.
    pub placements: Vec<MigPlacement>,
}

impl MigProfile {
    /// A profile whose instances have `size` memory slices and begin at one of `starts`.
    #[must_use]
    pub fn new(name: &str, memory_mib: u64, thousandths: u32, size: u8, starts: &[u8]) -> Self {
        let starts = starts.iter();
        Self {
            name: name.into(),
            memory_mib,
            thousandths,
            placements: starts.map(|&start| MigPlacement { start, size }).collect(),
        }
    }

    /// Whether instances have nothing but computing power and memory. The others have media
    /// engines or graphics, too (`1g.10gb+me`), or lack them (`1g.24gb-me`). Nobody asks for these,
    /// and a card has one set of them.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.name.contains(['+', '-'])
    }
}

/// A row of memory slices of a card. Two instances are on one card together if they share no
/// slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MigPlacement {
    /// The first slice.
    pub start: u8,
    /// How many slices.
    pub size: u8,
}

impl MigPlacement {
    /// The row of slices; `None`: it has none, or some beyond the [`MIG_SLICES`] of a card.
    #[must_use]
    pub fn new(start: u32, size: u32) -> Option<Self> {
        let (start, size) = (u8::try_from(start).ok()?, u8::try_from(size).ok()?);
        let is_on_card = size > 0 && start.checked_add(size)? <= MIG_SLICES;
        is_on_card.then_some(Self { start, size })
    }

    /// The slices as bits, the first slice of the card lowest.
    #[must_use]
    pub fn mask(self) -> u8 {
        let slices = (self.start..MIG_SLICES).take(self.size.into());
        slices.fold(0, |mask, slice| mask | 1 << slice)
    }
}

/// An instance that a pod holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MigInstance {
    /// Where it is.
    pub placement: MigPlacement,
    /// [`MigProfile::name`].
    pub profile: Box<str>,
}

/// Which cards will do, by the way in which they are divided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CardModes {
    /// Cards that containers share, kept apart by software of HAMi.
    #[default]
    Shared,
    /// Cards in MIG mode.
    Mig,
    /// Both.
    Any,
}

impl CardModes {
    /// Whether a card will do.
    #[must_use]
    pub fn allow(self, is_mig: bool) -> bool {
        match self {
            Self::Shared => !is_mig,
            Self::Mig => is_mig,
            Self::Any => true,
        }
    }
}
