//! What keeps a pod from the cards of a node, for the sentence that its owner reads.

use super::{Asked, Card, Cards, Fits, Size, Used, is_bound, modes_of, pods_on, pods_that_fit};
use crate::facts::{CardModes, CardNeed, CardRule, CardTerms, MIG_SLICES};
use crate::filter::CardShortage;
use smallvec::SmallVec;

impl Cards {
    pub(super) fn shortage_of_one(
        &self,
        request: &CardNeed,
        terms: Option<&CardTerms>,
    ) -> CardShortage {
        if let Some(shortage) = self.ruled_out(request, terms) {
            return shortage;
        }
        if self.is_scattered(request, terms) {
            return CardShortage::CellRoom;
        }
        if self.are_in_use(request, terms) {
            return CardShortage::Idle;
        }
        let is_shared = |(_, (_, size, _)): (_, (_, &Size, _))| size.mig.is_none();
        if !self.allowed(terms).any(is_shared) {
            return self.shortage_of_places(request, terms);
        }
        let rooms = self.allowed(terms);
        let rooms = rooms.map(|(_, (_, size, used))| match size.mig {
            None => (size.cell, size.rooms(used, request)),
            Some(_) => {
                let places = (CardShortage::Place, size.fits(used, request));
                (size.cell, [places; 3])
            }
        });
        let rooms: SmallVec<[_; 8]> = rooms.collect();
        let alone = [
            CardShortage::Memory,
            CardShortage::Power,
            CardShortage::Slots,
        ];
        let would_do = |shortage: &CardShortage| {
            let would_fit = rooms.iter().filter(|(_, rooms)| {
                let others = rooms.iter().filter(|(of, _)| of != shortage);
                others.map(|(_, room)| *room).min() > Some(0)
            });
            let one_each = would_fit.map(|(cell, _)| (*cell, (1, false)));
            pods_on(one_each, request.count(), terms) > 0
        };
        alone
            .into_iter()
            .find(would_do)
            .unwrap_or(CardShortage::Room)
    }

    /// What open cards in MIG mode lack: profiles, or places.
    fn shortage_of_places(&self, request: &CardNeed, terms: Option<&CardTerms>) -> CardShortage {
        let open = self.allowed(terms);
        let open = open.filter(|(_, (_, size, _))| size.is_open);
        let asked = Asked::new(request, terms);
        let idle: SmallVec<[(u32, Fits); 8]> = open
            .map(|(_, (_, size, _))| size.fits_in_cell(Used::default(), asked))
            .collect();
        if idle.is_empty() {
            return CardShortage::Room;
        }
        match pods_on(idle.into_iter(), request.count(), terms) {
            0 => CardShortage::Profile,
            _ => CardShortage::Place,
        }
    }

    /// Whether there is room enough, but in several cells, where one has to have all of it.
    fn is_scattered(&self, request: &CardNeed, terms: Option<&CardTerms>) -> bool {
        let fits = self.allowed(terms);
        let asked = Asked::new(request, terms);
        let fits = fits.map(|(_, (_, size, used))| size.fits_of(used, asked));
        is_bound(terms) && pods_that_fit(fits, request.count()) > 0
    }

    /// Whether there is room enough, but pods hold parts of cards that have to be idle.
    fn are_in_use(&self, request: &CardNeed, terms: Option<&CardTerms>) -> bool {
        let shared = Asked {
            need: request,
            idle: false,
        };
        let fits = self.allowed(terms);
        let fits = fits.map(|(_, (_, size, used))| size.fits_in_cell(used, shared));
        Asked::new(request, terms).idle && pods_on(fits, request.count(), terms) > 0
    }

    /// What the first rule wants that, with those before it, leaves too few of the node's cards;
    /// `None`: the rules leave enough, or the node has too few anyway.
    fn ruled_out(&self, request: &CardNeed, terms: Option<&CardTerms>) -> Option<CardShortage> {
        let count = u64::from(request.count());
        let named = self.cards.iter().filter(|card| card.size.is_some());
        let mut cards: SmallVec<[&Card; 8]> = named.collect();
        if devices(cards.iter().copied()) < count {
            return None;
        }
        let modes = modes_of(terms);
        let is_mig = |card: &Card| card.size.as_ref().is_some_and(|size| size.mig.is_some());
        cards.retain(|card| modes.allow(is_mig(card)));
        if devices(cards.iter().copied()) < count {
            return Some(match modes {
                CardModes::Mig => CardShortage::Mig,
                CardModes::Shared | CardModes::Any => CardShortage::Shared,
            });
        }
        let mut rules = terms?.rules.iter();
        let rule = rules.find(|rule| {
            cards.retain(|card| rule.allows(&card.id, &card.model));
            devices(cards.iter().copied()) < count
        });
        let ruled = rule.map(CardRule::annotation).map(CardShortage::Ruled);
        let cell_of = |card: &Card| card.size.as_ref().map(|size| size.cell);
        let in_cell = |cell: Option<u32>| {
            let cards = cards.iter().filter(|card| cell_of(card) == cell);
            devices(cards.copied())
        };
        let mut cells = cards.iter().map(|card| in_cell(cell_of(card)));
        let is_apart = is_bound(terms) && cells.all(|devices| devices < count);
        ruled.or(is_apart.then_some(CardShortage::Cell))
    }
}

/// How many devices a container can have of these cards at most.
fn devices<'a>(cards: impl IntoIterator<Item = &'a Card>) -> u64 {
    let most = |card: &Card| match &card.size {
        Some(size) if size.mig.is_some() => u64::from(MIG_SLICES),
        _ => 1,
    };
    cards.into_iter().map(most).sum()
}
