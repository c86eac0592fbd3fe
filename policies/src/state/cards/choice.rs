//! Which of the cards with room a container gets.
//!
//! A choice leaves room for as many further pods of the kind as any other would. Of those that do,
//! the one is taken that the placement likes best.

use super::combination::{Combinations, Criterion};
use super::links::Links;
use super::room::{Further, Positions, parts_of_one};
use super::{Fitting, is_bound};
use crate::facts::{CardOrder, CardTerms};
use smallvec::SmallVec;

/// What counts in the choice of a container's cards.
#[derive(Debug)]
pub(super) struct Liking<'a> {
    /// All have to be in one cell.
    in_one_cell: bool,
    /// The first thing counts first.
    order: SmallVec<[Criterion; 3]>,
    links: Option<&'a Links>,
}

impl<'a> Liking<'a> {
    /// What counts for a container that asks for `count` cards of a node with these links. For
    /// several cards links count before what they cost, unless the pod says otherwise; for one only
    /// if the pod says so.
    pub(super) fn of(terms: Option<&CardTerms>, count: u16, links: Option<&'a Links>) -> Self {
        let mut order: SmallVec<[Criterion; 3]> = SmallVec::new();
        let mut add = |criterion: Criterion, counts: bool| {
            if counts && !order.contains(&criterion) {
                order.push(criterion);
            }
        };
        for said in terms.iter().flat_map(|terms| &terms.order) {
            match said {
                CardOrder::Binpack | CardOrder::Spread => add(Criterion::Cost, true),
                CardOrder::Numa => add(Criterion::Cells, count > 1),
                CardOrder::Links => add(Criterion::Links, links.is_some()),
            }
        }
        add(Criterion::Links, links.is_some() && count > 1);
        add(Criterion::Cost, true);
        Self {
            in_one_cell: is_bound(terms) && count > 1,
            order,
            links,
        }
    }

    /// Whether more counts than what each card costs.
    pub(super) fn is_about_combinations(&self) -> bool {
        *self.order != [Criterion::Cost]
    }

    /// The positions of the `count` cards that a container gets of these, which come in the order
    /// of their costs. None, if there are too few.
    pub(super) fn choose(&self, cards: &[Fitting], count: u16) -> Positions {
        if !self.in_one_cell && !self.is_about_combinations() {
            return first_that_spoil_nothing(cards, count);
        }
        let mut best = Combinations::new(&self.order, self.links, count, cards);
        match self.in_one_cell {
            false => best.look_among(cards),
            true => cells(cards).iter().for_each(|cell| best.look_among(cell)),
        }
        best.positions()
    }
}

/// The cards of each cell, in the order in which they come.
fn cells(cards: &[Fitting]) -> SmallVec<[CellCards; 2]> {
    let mut cells: SmallVec<[CellCards; 2]> = SmallVec::new();
    for card in cards {
        match cells.iter_mut().find(|cell| cell[0].cell == card.cell) {
            Some(cell) => cell.push(*card),
            None => cells.push(SmallVec::from_slice(&[*card])),
        }
    }
    cells
}

/// The cards of each cell that has enough of them for a container, the best cell first: that where
/// `count` of them cost the least, then that with the fewest others. The cards of a cell stay in
/// their order, which is that of their costs.
pub(super) fn cells_by_cost(cards: &[Fitting], count: u16) -> SmallVec<[CellCards; 2]> {
    let mut cells = cells(cards);
    cells.retain(|cell| parts_of_one(cell) >= u64::from(count));
    cells.sort_by_key(|cell| {
        let parts = cell.iter().flat_map(|card| {
            let most = card.parts().min(count.into());
            (0..most).map(|_| u128::from(card.cost))
        });
        let cost: u128 = parts.take(count.into()).sum();
        (cost, parts_of_one(cell), cell[0].cell)
    });
    cells
}

/// The cards of one cell that have room.
pub(super) type CellCards = SmallVec<[Fitting; 8]>;

/// The positions of the first `count` of these cards, except where that would leave room for fewer
/// further pods than another choice: then fewer of the cards are taken that have little room. A
/// card of which a container may have several parts is taken as often as it has room.
fn first_that_spoil_nothing(cards: &[Fitting], count: u16) -> Positions {
    let further = Further::of(cards, count);
    let mut spare = further.spare;
    let mut chosen = Positions::new();
    for card in cards {
        let is_needed = further.need(card);
        for _ in 0..card.parts() {
            if chosen.len() == usize::from(count) || is_needed && spare == 0 {
                break;
            }
            spare -= u64::from(is_needed);
            chosen.push(card.position);
        }
    }
    chosen
}
