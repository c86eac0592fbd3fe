//! GPU cards that the scheduler itself chooses, whole or by the fraction.
//!
//! A node says which cards it has only where its software lets the scheduler choose (the device
//! plugin behind plain `nvidia.com/gpu` does not). A simulated cluster always does.

/// A whole card, in thousandths.
pub const WHOLE_CARD: u16 = 1000;

/// One card of a node; its number is its place in the node's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CardFacts {
    /// Its memory in MiB.
    pub memory_mib: u64,
}

/// The number of a card on its node. No node has more than 256.
pub type CardIndex = u8;

/// What a pod asks of cards: some whole ones, or a fraction of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardRequest {
    count: u16,
    thousandths: u16,
    memory_mib: u64,
}

impl CardRequest {
    /// So many cards that nobody else uses, each with at least so much memory. `None` for no card
    /// and for more than a node can have.
    #[must_use]
    pub fn whole(count: u64, memory_mib: u64) -> Option<Self> {
        let count = u16::try_from(count).ok()?;
        (1..=256).contains(&count).then_some(Self {
            count,
            thousandths: WHOLE_CARD,
            memory_mib,
        })
    }

    /// So many thousandths of one card, and so much of its memory; pods share a card while both
    /// last. `None` for nothing and for more than a card.
    #[must_use]
    pub fn fraction(thousandths: u64, memory_mib: u64) -> Option<Self> {
        let thousandths = u16::try_from(thousandths).ok()?;
        (1..=WHOLE_CARD).contains(&thousandths).then_some(Self {
            count: 1,
            thousandths,
            memory_mib,
        })
    }

    /// How many cards.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.count
    }

    /// How much of each, in thousandths: [`WHOLE_CARD`], or less of a single card.
    #[must_use]
    pub fn thousandths(&self) -> u16 {
        self.thousandths
    }

    /// How much memory of each, in MiB; 0 asks for none in particular.
    #[must_use]
    pub fn memory_mib(&self) -> u64 {
        self.memory_mib
    }

    /// Whether it asks for a part of a card.
    #[must_use]
    pub fn is_fraction(&self) -> bool {
        self.thousandths < WHOLE_CARD
    }
}
