//! What keeps a pod from the cards of a node, for the sentence that its owner reads.

use super::{Card, Cards, Size, Used, modes_of};
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
        let is_shared = |(_, (_, size, _)): (_, (_, &Size, _))| size.mig.is_none();
        if !self.allowed(terms).any(is_shared) {
            return self.shortage_of_places(request, terms);
        }
        let rooms = self.allowed(terms);
        let rooms = rooms.map(|(_, (_, size, used))| match size.mig {
            None => size.rooms(used, request),
            Some(_) => [(CardShortage::Place, size.fits(used, request)); 3],
        });
        let rooms: SmallVec<[_; 8]> = rooms.collect();
        let alone = [
            CardShortage::Memory,
            CardShortage::Power,
            CardShortage::Slots,
        ];
        let would_do = |shortage: &CardShortage| {
            let would_fit = rooms.iter().filter(|rooms| {
                let others = rooms.iter().filter(|(of, _)| of != shortage);
                others.map(|(_, room)| *room).min() > Some(0)
            });
            would_fit.count() >= usize::from(request.count())
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
        let idle: SmallVec<[u64; 8]> = open
            .map(|(_, (_, size, _))| size.fits(Used::default(), request))
            .collect();
        if idle.is_empty() {
            return CardShortage::Room;
        }
        match idle.iter().sum::<u64>() < u64::from(request.count()) {
            true => CardShortage::Profile,
            false => CardShortage::Place,
        }
    }

    /// What the first rule wants that, with those before it, leaves too few of the node's cards;
    /// `None`: the rules leave enough, or the node has too few anyway.
    fn ruled_out(&self, request: &CardNeed, terms: Option<&CardTerms>) -> Option<CardShortage> {
        let count = u64::from(request.count());
        let named = self.cards.iter().filter(|card| card.size.is_some());
        let mut cards: SmallVec<[&Card; 8]> = named.collect();
        if devices(&cards) < count {
            return None;
        }
        let modes = modes_of(terms);
        let is_mig = |card: &Card| card.size.as_ref().is_some_and(|size| size.mig.is_some());
        cards.retain(|card| modes.allow(is_mig(card)));
        if devices(&cards) < count {
            return Some(match modes {
                CardModes::Mig => CardShortage::Mig,
                CardModes::Shared | CardModes::Any => CardShortage::Shared,
            });
        }
        let mut rules = terms?.rules.iter();
        let rule = rules.find(|rule| {
            cards.retain(|card| rule.allows(&card.id, &card.model));
            devices(&cards) < count
        });
        rule.map(CardRule::annotation).map(CardShortage::Ruled)
    }
}

/// How many devices a container can have of these cards at most.
fn devices(cards: &[&Card]) -> u64 {
    let most = |card: &&Card| match &card.size {
        Some(size) if size.mig.is_some() => u64::from(MIG_SLICES),
        _ => 1,
    };
    cards.iter().map(most).sum()
}
