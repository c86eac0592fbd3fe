//! GPU cards that the scheduler itself chooses, whole or in parts.
//!
//! A node says which cards it has only where its software lets the scheduler choose: the device
//! plugin of HAMi does, the one behind plain `nvidia.com/gpu` does not. A simulated cluster always
//! does.

use super::UnixMs;
use alloc::boxed::Box;

/// The computing power of a whole card, in thousandths.
pub const WHOLE_CARD: u16 = 1000;

/// One card of a node that the scheduler chooses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CardFacts {
    /// The name by which the node's device plugin knows the card, e.g. `GPU-8dcd427f-...`.
    pub id: Box<str>,
    /// The GPU model.
    pub model: Box<str>,
    /// The memory that may be given away, in MiB.
    pub memory_mib: u64,
    /// The computing power that may be given away, in thousandths of a card: [`WHOLE_CARD`], unless
    /// the plugin gives away more than there is.
    pub thousandths: u32,
    /// How many containers may share the card.
    pub slots: u32,
    /// The number of the NUMA node that the card is attached to.
    pub numa: u32,
    /// Why no new pod may use the card; `None`: pods may.
    pub closed: Option<CardClosed>,
}

impl CardFacts {
    /// A whole card of no model that any number of pods may share.
    #[must_use]
    pub fn new(id: impl Into<Box<str>>, memory_mib: u64) -> Self {
        Self {
            id: id.into(),
            model: "".into(),
            memory_mib,
            thousandths: WHOLE_CARD.into(),
            slots: u32::MAX,
            numa: 0,
            closed: None,
        }
    }
}

/// Why a card takes no new pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CardClosed {
    /// The device plugin says that the card does not work, or does not run itself.
    Unhealthy,
    /// An administrator has closed the card.
    Cordoned,
    /// The card is shared in a way that is not supported, such as MIG.
    OtherMode,
}

/// What a pod holds of one card.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardPart {
    /// [`CardFacts::id`].
    pub card: Box<str>,
    /// How many of the card's slots the pod holds.
    pub slots: u32,
    /// The computing power, in thousandths of a card.
    pub thousandths: u32,
    /// The memory, in MiB.
    pub memory_mib: u64,
}

/// The lock under which cards of a node are assigned: the annotation `hami.io/mutex.lock`. HAMi's
/// device plugin takes the lock away when it has given the holder its cards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardLock {
    /// The annotation's value as it stands.
    pub value: Box<str>,
    /// The namespace and the name of the pod that holds the lock; `None`: the value names no pod,
    /// or cannot be read.
    pub holder: Option<(Box<str>, Box<str>)>,
    /// When the lock was taken; `None`: the value cannot be read.
    pub at_ms: Option<UnixMs>,
}

/// Where the entry of the container that asks for cards stands among the entries that HAMi's device
/// plugin reads: one for each container of the pod, init containers first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CardEntries {
    /// How many containers come before it.
    pub before: u32,
    /// How many containers come after it.
    pub after: u32,
}

/// How much memory of each card a pod asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CardMemory {
    /// Any amount will do, and none is counted.
    #[default]
    Any,
    /// So many MiB.
    Mib(u64),
    /// So many hundredths of what the card has, in whole MiB, rounded down.
    Percent(u32),
}

impl CardMemory {
    /// So many MiB; 0: any amount will do.
    fn of_mib(memory_mib: u64) -> Self {
        match memory_mib {
            0 => Self::Any,
            memory_mib => Self::Mib(memory_mib),
        }
    }

    /// How much this is of a card with so much memory, in MiB.
    pub(crate) fn of_card(self, memory_mib: u64) -> u64 {
        match self {
            Self::Any => 0,
            Self::Mib(asked_mib) => asked_mib,
            Self::Percent(percent) => {
                let part = u128::from(memory_mib) * u128::from(percent) / 100;
                u64::try_from(part).unwrap_or(u64::MAX)
            }
        }
    }
}

/// What a pod asks of cards: the same of each of a number of different cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardNeed {
    count: u16,
    thousandths: u16,
    memory: CardMemory,
}

impl CardNeed {
    /// A number of different cards, and of each so many thousandths and so much memory. With 0
    /// thousandths a pod computes with what others leave; with [`WHOLE_CARD`] nobody else may use
    /// the card. `None` for 0 cards, for more than 256, and for more than [`WHOLE_CARD`].
    #[must_use]
    pub fn new(count: u64, thousandths: u64, memory: CardMemory) -> Option<Self> {
        let count = u16::try_from(count).ok()?;
        let thousandths = u16::try_from(thousandths).ok()?;
        let is_possible = (1..=256).contains(&count) && thousandths <= WHOLE_CARD;
        is_possible.then_some(Self {
            count,
            thousandths,
            memory,
        })
    }

    /// A number of cards that no other pod uses, each with at least `memory_mib` MiB. `None` as
    /// with [`CardNeed::new`].
    #[must_use]
    pub fn whole(count: u64, memory_mib: u64) -> Option<Self> {
        Self::new(count, WHOLE_CARD.into(), CardMemory::of_mib(memory_mib))
    }

    /// A part of one card, in thousandths, and `memory_mib` MiB of its memory; pods share a card
    /// while both last. `None` for 0 and for more than [`WHOLE_CARD`].
    #[must_use]
    pub fn fraction(thousandths: u64, memory_mib: u64) -> Option<Self> {
        let need = Self::new(1, thousandths, CardMemory::of_mib(memory_mib));
        need.filter(|need| need.thousandths > 0)
    }

    /// The need for as many cards and as much of their power, with any memory.
    pub(crate) fn without_memory(self) -> Self {
        Self {
            memory: CardMemory::Any,
            ..self
        }
    }

    /// How many cards are asked for.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.count
    }

    /// How much computing power of each card, in thousandths.
    #[must_use]
    pub fn thousandths(&self) -> u16 {
        self.thousandths
    }

    /// How much memory of each card.
    #[must_use]
    pub fn memory(&self) -> CardMemory {
        self.memory
    }

    /// Whether parts of cards are asked for.
    pub(crate) fn is_fraction(&self) -> bool {
        self.thousandths < WHOLE_CARD
    }
}
