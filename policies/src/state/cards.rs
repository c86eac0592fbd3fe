//! The cards of one node: what is taken of each, and by which sorts of pods.
//!
//! Where a node names its cards, their use is counted in thousandths of a card and in MiB. A Txn
//! chooses cards (`ClusterState::choose_cards`) and gives them back; the Bind command carries them.

use crate::facts::{CardFacts, CardIndex, CardNeed, WHOLE_CARD};
use alloc::vec::Vec;
use smallvec::SmallVec;

/// The cards of a node. Pods may hold cards that the node does not name, or not any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cards {
    cards: SmallVec<[Card; 8]>,
    /// How many of `cards` the node names; those come first.
    named: usize,
    /// How many pods of each sort hold cards of the node; sorted, none zero.
    sorts: SmallVec<[(Sort, u32); 2]>,
}

/// One card.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Card {
    memory_mib: u64,
    /// The exact sum over the pods that hold the card: pods of other schedulers may use more than
    /// it has.
    used_thousandths: u64,
    used_memory_mib: u128,
}

/// The sort of a pod in the eyes of GPU clustering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// The pod holds a part of a card.
    Share,
    /// The pod holds this many whole cards.
    Whole(u16),
}

impl Sort {
    pub(crate) fn of(request: &CardNeed) -> Self {
        if request.is_fraction() {
            Self::Share
        } else {
            Self::Whole(request.count())
        }
    }
}

impl Card {
    fn free_thousandths(&self) -> u16 {
        let used = u16::try_from(self.used_thousandths).unwrap_or(WHOLE_CARD);
        WHOLE_CARD.saturating_sub(used)
    }

    fn free_memory_mib(&self) -> u64 {
        let used = u64::try_from(self.used_memory_mib).unwrap_or(u64::MAX);
        self.memory_mib.saturating_sub(used)
    }

    /// How many times what a request asks of one card fits on this card.
    fn fits(&self, request: &CardNeed) -> u64 {
        let by_thousandths = u64::from(self.free_thousandths() / request.thousandths());
        match request.memory_mib() {
            0 => by_thousandths,
            memory => by_thousandths.min(self.free_memory_mib() / memory),
        }
    }
}

impl Cards {
    /// Replaces the cards that the node names. Returns whether they are more, or any has more
    /// memory.
    pub(crate) fn set(&mut self, facts: &[CardFacts]) -> bool {
        let named = facts.len().min(usize::from(CardIndex::MAX) + 1);
        let mut grew = named > self.named;
        if self.cards.len() < named {
            self.cards.resize(named, Card::default());
        }
        for (position, card) in self.cards.iter_mut().enumerate() {
            let memory_mib = facts.get(position).map_or(0, |card| card.memory_mib);
            grew |= memory_mib > card.memory_mib;
            card.memory_mib = memory_mib;
        }
        self.named = named;
        self.forget_unused();
        grew
    }

    /// Removes cards at the end that are neither named nor held.
    fn forget_unused(&mut self) {
        while self.cards.len() > self.named
            && self
                .cards
                .last()
                .is_some_and(|card| *card == Card::default())
        {
            self.cards.pop();
        }
    }

    /// Takes a pod's part of the cards `held`, whether there is enough or not.
    pub(crate) fn take(&mut self, request: &CardNeed, held: &[CardIndex]) {
        for index in held {
            let index = usize::from(*index);
            if self.cards.len() <= index {
                self.cards.resize(index + 1, Card::default());
            }
            let card = &mut self.cards[index];
            card.used_thousandths += u64::from(request.thousandths());
            card.used_memory_mib += u128::from(request.memory_mib());
        }
        if held.is_empty() {
            return;
        }
        match self.sort_position(request) {
            Ok(position) => self.sorts[position].1 += 1,
            Err(position) => self.sorts.insert(position, (Sort::of(request), 1)),
        }
    }

    /// The exact reverse of [`Cards::take`].
    pub(crate) fn give_back(&mut self, request: &CardNeed, held: &[CardIndex]) {
        for index in held {
            if let Some(card) = self.cards.get_mut(usize::from(*index)) {
                let used = &mut card.used_thousandths;
                *used = used.saturating_sub(request.thousandths().into());
                let used = &mut card.used_memory_mib;
                *used = used.saturating_sub(request.memory_mib().into());
            }
        }
        self.forget_unused();
        if held.is_empty() {
            return;
        }
        if let Ok(position) = self.sort_position(request) {
            self.sorts[position].1 -= 1;
            if self.sorts[position].1 == 0 {
                self.sorts.remove(position);
            }
        }
    }

    fn sort_position(&self, request: &CardNeed) -> Result<usize, usize> {
        let sort = Sort::of(request);
        self.sorts.binary_search_by_key(&sort, |(sort, _)| *sort)
    }

    /// Whether the node names no cards.
    pub(crate) fn is_empty(&self) -> bool {
        self.named == 0
    }

    /// The free part of each named card, in thousandths, in the order of the node.
    pub(crate) fn free(&self) -> impl Iterator<Item = u16> + '_ {
        self.named().map(Card::free_thousandths)
    }

    /// The free parts of all named cards together, in thousandths of a card.
    pub(crate) fn free_thousandths(&self) -> u64 {
        self.free().map(u64::from).sum()
    }

    /// The cards with room for what a request asks of one card, each with its free thousandths.
    pub(crate) fn fitting(&self, request: CardNeed) -> impl Iterator<Item = (CardIndex, u16)> {
        let cards = (0..=CardIndex::MAX).zip(self.named());
        let fitting = cards.filter(move |(_, card)| card.fits(&request) > 0);
        fitting.map(|(index, card)| (index, card.free_thousandths()))
    }

    fn named(&self) -> impl Iterator<Item = &Card> {
        self.cards[..self.named].iter()
    }

    /// How many more pods with this request fit beside the pods on the node.
    pub(crate) fn multiplicity(&self, request: &CardNeed) -> u64 {
        let parts: u64 = self.named().map(|card| card.fits(request)).sum();
        parts / u64::from(request.count())
    }

    /// How many pods with this request would fit if no pod were on the node.
    pub(crate) fn multiplicity_empty(&self, request: &CardNeed) -> u64 {
        let fresh = self.named().map(|card| Card {
            memory_mib: card.memory_mib,
            ..Card::default()
        });
        fresh.map(|card| card.fits(request)).sum::<u64>() / u64::from(request.count())
    }

    /// Whether more is taken of any card than it has; a card that the node does not name has
    /// nothing.
    pub(crate) fn is_overfull(&self) -> bool {
        let named = self.named;
        self.cards.iter().enumerate().any(|(position, card)| {
            position >= named
                || card.used_thousandths > u64::from(WHOLE_CARD)
                || card.used_memory_mib > u128::from(card.memory_mib)
        })
    }

    /// The sorts of pods that hold cards of the node.
    pub(crate) fn sorts(&self) -> impl Iterator<Item = Sort> + '_ {
        self.sorts.iter().map(|(sort, _)| *sort)
    }

    /// The taken part of each card, in words.
    pub(crate) fn describe(&self) -> Vec<alloc::string::String> {
        let cards = self.cards.iter().enumerate();
        cards
            .filter(|(_, card)| card.used_thousandths > 0)
            .map(|(index, card)| {
                let Card {
                    used_thousandths,
                    used_memory_mib,
                    ..
                } = card;
                alloc::format!(
                    "{used_thousandths} thousandths and {used_memory_mib} MiB of card {index} taken"
                )
            })
            .collect()
    }
}
