//! What the cards of a node have too little of.

use core::fmt;

/// What the cards of a node have too little of for one more pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum CardShortage {
    /// Slots: as many pods as may share a card are on it.
    Slots,
    /// Computing power.
    Power,
    /// Memory.
    Memory,
    /// Freedom from HAMi's own scheduler, which gives the same cards to pods of its own.
    OwnScheduler,
    /// Cards that are not in MIG mode.
    Shared,
    /// Cards in MIG mode.
    Mig,
    /// Profiles of MIG that are large enough.
    Profile,
    /// Free places for instances of MIG that are large enough.
    Place,
    /// Cards in a single NUMA node, where all of a container have to be in one.
    Cell,
    /// Room in a single NUMA node: there is enough in several together.
    CellRoom,
    /// Cards that nobody uses.
    Idle,
    /// Cards that the rule of this annotation allows.
    Ruled(&'static str),
    /// Open cards, or several of the others.
    Room,
}

impl fmt::Display for CardShortage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Ruled(annotation) => {
                return write!(formatter, "had too few cards that {annotation} allows");
            }
            Self::Shared => "had too few cards that are not in MIG mode",
            Self::Mig => "had too few cards in MIG mode",
            Self::Profile => "had too few cards with a MIG profile that is large enough",
            Self::Place => {
                "had too few free places on its cards for MIG instances that are large enough"
            }
            Self::Cell => "had too few cards in a single NUMA node",
            Self::CellRoom => "had too few cards with enough room in a single NUMA node",
            Self::Idle => "had too few cards that nobody uses",
            Self::OwnScheduler => "had pods of HAMi's own scheduler",
            Self::Slots => "had too few cards with a free slot",
            Self::Power => "had too few cards with enough free computing power",
            Self::Memory => "had too few cards with enough free memory",
            Self::Room => "had too few cards with enough room",
        })
    }
}
