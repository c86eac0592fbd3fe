//! GPU cards that the scheduler itself chooses, whole or by the fraction.
//!
//! A node says which cards it has only where its software lets the scheduler choose (the device
//! plugin behind plain `nvidia.com/gpu` does not). A simulated cluster always does.

/// A whole card, in thousandths.
pub const WHOLE_CARD: u16 = 1000;

/// One card of a node; the card's number is its place in the node's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CardFacts {
    /// The card's memory in MiB.
    pub memory_mib: u64,
}

/// The number of a card on its node. No node has more than 256.
pub type CardIndex = u8;

/// What a pod asks of cards: some whole ones, or a fraction of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardNeed {
    count: u16,
    thousandths: u16,
    memory_mib: u64,
}

impl CardNeed {
    /// A number of cards that no other pod uses, each with at least `memory_mib` MiB. `None` for 0
    /// and for more than the 256 cards that a node can have.
    #[must_use]
    pub fn whole(count: u64, memory_mib: u64) -> Option<Self> {
        let count = u16::try_from(count).ok()?;
        (1..=256).contains(&count).then_some(Self {
            count,
            thousandths: WHOLE_CARD,
            memory_mib,
        })
    }

    /// A part of one card, in thousandths, and `memory_mib` MiB of its memory; pods share a card
    /// while both last. `None` for 0 and for more than [`WHOLE_CARD`].
    #[must_use]
    pub fn fraction(thousandths: u64, memory_mib: u64) -> Option<Self> {
        let thousandths = u16::try_from(thousandths).ok()?;
        (1..=WHOLE_CARD).contains(&thousandths).then_some(Self {
            count: 1,
            thousandths,
            memory_mib,
        })
    }

    /// How many cards are asked for.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.count
    }

    /// How much of each card, in thousandths: [`WHOLE_CARD`], or less of a single card.
    #[must_use]
    pub fn thousandths(&self) -> u16 {
        self.thousandths
    }

    /// How much memory of each card, in MiB; 0: any amount will do.
    #[must_use]
    pub fn memory_mib(&self) -> u64 {
        self.memory_mib
    }

    /// Whether a part of one card is asked for.
    pub(crate) fn is_fraction(&self) -> bool {
        self.thousandths < WHOLE_CARD
    }
}
