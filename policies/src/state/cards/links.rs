//! How well the cards of a node are connected.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// The score of each pair of cards that a node names. The cards are numbered in the order of their
/// ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Links {
    cards: usize,
    /// By pair, both ways.
    scores: Box<[u32]>,
}

impl Links {
    /// The scores of so many cards, from pairs with their scores; all others are 0. `None`: all
    /// are.
    pub(super) fn new(
        cards: usize,
        pairs: impl Iterator<Item = (usize, usize, u32)>,
    ) -> Option<Self> {
        let mut scores = Vec::new();
        for (one, other, score) in pairs.filter(|(one, other, score)| one != other && *score > 0) {
            scores.resize(cards * cards, 0);
            scores[one * cards + other] = score;
            scores[other * cards + one] = score;
        }
        let scores = scores.into_boxed_slice();
        (!scores.is_empty()).then_some(Self { cards, scores })
    }

    /// The score of two cards.
    pub(super) fn score(&self, one: usize, other: usize) -> u32 {
        let score = self.scores.get(one * self.cards + other);
        score.copied().unwrap_or(0)
    }
}
