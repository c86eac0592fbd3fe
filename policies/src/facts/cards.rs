//! GPU cards that the scheduler itself chooses, whole or in parts.
//!
//! A node says which cards it has only where its software lets the scheduler choose: the device
//! plugin of HAMi does, the one behind plain `nvidia.com/gpu` does not. A simulated cluster always
//! does.

use super::{CardModes, ContainerRole, MigInstance, MigProfile, UnixMs};
use alloc::boxed::Box;
use alloc::vec::Vec;

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
    /// What instances a card in MIG mode can be cut into; empty: the card is not in MIG mode.
    pub profiles: Vec<MigProfile>,
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
            profiles: Vec::new(),
            closed: None,
        }
    }
}

/// How well two cards of a node are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardLink {
    /// The place of one of the cards in [`NodeFacts::cards`](super::NodeFacts::cards).
    pub one: u16,
    /// The place of the other card there.
    pub other: u16,
    /// The score: the higher, the better. HAMi's device plugin gives 10 to cards at different CPUs,
    /// and 100 for each NVLink.
    pub score: u32,
}

/// Why a card takes no new pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CardClosed {
    /// The device plugin says that the card does not work, or does not run itself.
    Unhealthy,
    /// An administrator has closed the card.
    Cordoned,
    /// The card is shared in a way that is not supported, such as MIG without a list of profiles.
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
    /// The instances that the pod holds of a card in MIG mode, by place.
    pub instances: Vec<MigInstance>,
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

/// Where the entries of the containers that ask for cards stand among the entries that HAMi's
/// device plugin reads: one for each container of the pod, init containers first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardEntries {
    /// How many containers come before the first one that asks.
    pub before: u32,
    /// How many containers stand between one that asks and the next one that does; empty where one
    /// asks.
    pub between: Vec<u32>,
    /// How many containers come after the last one that asks.
    pub after: u32,
}

impl CardEntries {
    /// The entries of all containers of a pod, of which those that ask get these cards, in turn.
    pub(crate) fn filled(&self, asking: Vec<Vec<CardPart>>) -> Vec<Vec<CardPart>> {
        let gaps = [self.before]
            .into_iter()
            .chain(self.between.iter().copied());
        let mut entries = Vec::new();
        let none = |count: u32, entries: &mut Vec<Vec<CardPart>>| {
            entries.extend((0..count).map(|_| Vec::new()));
        };
        for (gap, parts) in gaps.chain(core::iter::repeat(0)).zip(asking) {
            none(gap, &mut entries);
            entries.push(parts);
        }
        none(self.after, &mut entries);
        entries
    }
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

/// What a pod says of cards beside the need of its one container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CardTerms {
    /// What the containers ask for that ask for cards, init containers first, each group in the
    /// order of the spec. Empty: one container asks, and it runs beside others.
    pub containers: Vec<ContainerCards>,
    /// Which cards will do: those that all rules allow. Each kind at most once, in HAMi's order.
    pub rules: Vec<CardRule>,
    /// Whether cards in MIG mode will do.
    pub modes: CardModes,
    /// Whether all cards of a container have to be attached to one NUMA node, see
    /// [`CardFacts::numa`]. Each container may get another NUMA node.
    pub in_one_cell: bool,
    /// Whether only cards will do that nobody uses. Later, others may use them, too.
    pub idle: bool,
    /// Which of the cards with room are taken, the first word first, each at most once; then those
    /// that the placement says.
    pub order: Vec<CardOrder>,
}

impl CardTerms {
    /// The terms as a shape has them; `None`: they say nothing.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }

    /// Whether it is certain that a pod of its own does not fit where none is found, on nodes with
    /// up to 16 cards.
    pub(crate) fn is_searched_whole(&self) -> bool {
        let beside = self.containers.iter();
        let beside = beside.filter(|container| self.stays(container.role));
        beside
            .map(|container| container.need.count())
            .fold(0, u16::saturating_add)
            <= 3
    }

    /// Whether a container with cards keeps them while the containers after it run. An instance of
    /// MIG belongs to one container alone.
    pub(crate) fn stays(&self, role: ContainerRole) -> bool {
        role != ContainerRole::Init || self.modes != CardModes::Shared
    }

    /// The most computing power, in thousandths of a card, that the containers use at a time; 0
    /// where one asks.
    pub(crate) fn thousandths(&self) -> u64 {
        self.most_at_a_time(CardNeed::in_all, |role| role != ContainerRole::Init)
    }

    /// The most of something that the containers use at a time; 0 where one asks. `stays`: whether
    /// a container keeps what it uses while those after it run.
    pub(crate) fn most_at_a_time(
        &self,
        amount: impl Fn(&CardNeed) -> u64,
        stays: impl Fn(ContainerRole) -> bool,
    ) -> u64 {
        let (mut together, mut most) = (0_u64, 0);
        for ContainerCards { role, need } in &self.containers {
            let amount = amount(need);
            // tests plant bugs here: most-at-a-time
            most = most.max(together.saturating_add(amount));
            if stays(*role) {
                together = together.saturating_add(amount);
            }
        }
        most
    }
}

/// What one of several containers asks of cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContainerCards {
    /// When the container runs.
    pub role: ContainerRole,
    /// What it asks for.
    pub need: CardNeed,
}

/// A rule about the cards that will do, from an annotation of the pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CardRule {
    /// The model has one of these texts in it, in small letters.
    Models(Vec<Box<str>>),
    /// The model has none of these texts in it, in small letters.
    NotModels(Vec<Box<str>>),
    /// The card has one of these ids.
    Ids(Vec<Box<str>>),
    /// The card has none of these ids.
    NotIds(Vec<Box<str>>),
}

impl CardRule {
    /// Whether a card will do. `model`: in small letters.
    #[must_use]
    pub fn allows(&self, id: &str, model: &str) -> bool {
        let has_part = |names: &[Box<str>]| names.iter().any(|name| model.contains(&**name));
        let is_named = |names: &[Box<str>]| names.iter().any(|name| **name == *id);
        match self {
            Self::Models(names) => has_part(names),
            Self::NotModels(names) => !has_part(names),
            Self::Ids(names) => is_named(names),
            Self::NotIds(names) => !is_named(names),
        }
    }

    /// The annotation that says so.
    #[must_use]
    pub fn annotation(&self) -> &'static str {
        match self {
            Self::Models(_) => CARD_RULES[0],
            Self::NotModels(_) => CARD_RULES[1],
            Self::Ids(_) => CARD_RULES[2],
            Self::NotIds(_) => CARD_RULES[3],
        }
    }
}

/// HAMi's annotations of pods about the cards that will do: models, models that will not do, ids,
/// and ids that will not do. The value is a list with commas.
pub const CARD_RULES: [&str; 4] = [
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
];

/// Which of the cards with room a container gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CardOrder {
    /// Those with the least free computing power.
    Binpack,
    /// Those with the most free computing power.
    Spread,
    /// Those of few NUMA nodes.
    Numa,
    /// Those that are connected best; a single one where the pairs that are broken are the worst.
    Links,
}

/// What a container asks of cards: the same of each of a number of different cards. Of a card in
/// MIG mode it may get several instances, each of which counts as a card.
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

    /// How much computing power of all cards together, in thousandths of a card.
    pub(crate) fn in_all(&self) -> u64 {
        u64::from(self.count) * u64::from(self.thousandths)
    }

    /// What one of the cards counts for in queues, in thousandths of a card, rounded up: the part
    /// of its memory or of its computing power, the larger. `memory_mib`: what the card has;
    /// `None`: not known, so an amount in MiB counts as all of it. Nothing counts as nothing, or a
    /// queue could hold any number of such pods.
    pub(crate) fn counted(&self, memory_mib: Option<u64>) -> u64 {
        let whole = u64::from(WHOLE_CARD);
        let memory = match (self.memory, memory_mib) {
            (CardMemory::Any, _) => 0,
            (CardMemory::Percent(percent), _) => u64::from(percent) * whole / 100,
            (CardMemory::Mib(_), None | Some(0)) => whole,
            (CardMemory::Mib(asked_mib), Some(memory_mib)) => {
                asked_mib.saturating_mul(whole).div_ceil(memory_mib)
            }
        };
        memory.max(self.thousandths.into()).clamp(1, whole)
    }

    /// Whether parts of cards are asked for.
    pub(crate) fn is_fraction(&self) -> bool {
        self.thousandths < WHOLE_CARD
    }
}
