//! The best combination of cards for one container: all are tried, without those that cannot become
//! better than the best one so far. Of very many no more than [`STEPS_MAX`] are begun.

use super::Fitting;
use super::links::Links;
use super::room::{Further, Positions, parts_of_one};
use smallvec::SmallVec;

/// How many cards are added to combinations before the best one so far is taken. All combinations
/// of 16 cards take fewer.
const STEPS_MAX: u32 = 1 << 16;

/// What a combination is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Criterion {
    /// Good links among the cards; then few good ones to others with room.
    Links,
    /// Few cells.
    Cells,
    /// Low costs.
    Cost,
}

/// How bad a combination is: the first number counts first.
type Key = [i64; 5];

/// A part of a card that the container may get.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    position: usize,
    cell: u32,
    cost: i64,
    /// The scores of its links to all cards with room.
    degree: i64,
    /// How many parts of cards of its cell the container might get.
    crowd: i64,
    /// Whether further pods can use the part.
    is_needed: bool,
    /// Instances of MIG have no links.
    is_cut: bool,
}

/// Sums over the cards that were chosen so far.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    links: i64,
    degree: i64,
    cells: i64,
    cost: i64,
    crowd: i64,
    needed: u64,
}

/// A search for the best combination of `count` cards.
#[derive(Debug)]
pub(super) struct Combinations<'a> {
    order: &'a [Criterion],
    links: Option<&'a Links>,
    count: u16,
    /// All cards with room.
    all: &'a [Fitting],
    /// Those among which is looked now, in the order of their costs.
    candidates: SmallVec<[Candidate; 8]>,
    /// How many parts the further pods can do without.
    spare: u64,
    /// The best link of two candidates, and the least of what each adds.
    most_link: i64,
    least: Sums,
    chosen: SmallVec<[usize; 8]>,
    best: Option<(Key, Positions)>,
    steps: u32,
}

impl<'a> Combinations<'a> {
    pub(super) fn new(
        order: &'a [Criterion],
        links: Option<&'a Links>,
        count: u16,
        all: &'a [Fitting],
    ) -> Self {
        Self {
            order,
            links,
            count,
            all,
            candidates: SmallVec::new(),
            spare: 0,
            most_link: 0,
            least: Sums::default(),
            chosen: SmallVec::new(),
            best: None,
            steps: STEPS_MAX,
        }
    }

    /// The positions of the best combination that was found; none, if there is none.
    pub(super) fn positions(self) -> Positions {
        self.best
            .map(|(_, positions)| positions)
            .unwrap_or_default()
    }

    /// Looks for a combination of these cards alone, some of all, that is better than what was
    /// found before. It leaves room for as many further pods on these as any other.
    pub(super) fn look_among(&mut self, cards: &[Fitting]) {
        if parts_of_one(cards) < self.count.into() {
            return;
        }
        let further = Further::of(cards, self.count);
        self.spare = further.spare;
        self.candidates.clear();
        for card in cards {
            let candidate = self.candidate(card, further.need(card));
            let most = card.parts().min(self.count.into());
            self.candidates.extend((0..most).map(|_| candidate));
        }
        let least = |of: fn(&Candidate) -> i64| self.candidates.iter().map(of).min().unwrap_or(0);
        self.least = Sums {
            degree: least(|card| card.degree),
            crowd: least(|card| card.crowd),
            ..Sums::default()
        };
        let pairs = self.candidates.iter().enumerate().flat_map(|(index, one)| {
            let others = self.candidates[index + 1..].iter();
            others.map(|other| self.link(one, other))
        });
        self.most_link = pairs.max().unwrap_or(0);
        self.add_to(0, Sums::default());
    }

    fn candidate(&self, card: &Fitting, is_needed: bool) -> Candidate {
        let degree = |links: &Links| -> i64 {
            let others = self.all.iter().filter(|other| other.loss.is_none());
            let scores = others.map(|other| links.score(card.position, other.position));
            scores.map(i64::from).sum()
        };
        let is_cut = card.loss.is_some();
        let in_cell = self.all.iter().filter(|other| other.cell == card.cell);
        let crowd: u64 = in_cell.map(Fitting::parts).sum();
        Candidate {
            position: card.position,
            cell: card.cell,
            cost: i64::try_from(card.cost).unwrap_or(i64::MAX),
            degree: self.links.filter(|_| !is_cut).map_or(0, degree),
            crowd: i64::try_from(crowd).unwrap_or(i64::MAX),
            is_needed,
            is_cut,
        }
    }

    fn link(&self, one: &Candidate, other: &Candidate) -> i64 {
        let links = self.links.filter(|_| !one.is_cut && !other.is_cut);
        links.map_or(0, |links| links.score(one.position, other.position).into())
    }

    /// Tries all ways to complete the chosen cards with candidates from one on.
    fn add_to(&mut self, from: usize, sums: Sums) {
        let missing = usize::from(self.count) - self.chosen.len();
        if missing == 0 {
            let key = self.key(&sums);
            if self.is_better(&key) {
                let chosen = self.chosen.iter();
                let positions = chosen.map(|index| self.candidates[*index].position);
                self.best = Some((key, positions.collect()));
            }
            return;
        }
        let Some(last) = self.candidates.len().checked_sub(missing) else {
            return;
        };
        for next in from..=last {
            let card = self.candidates[next];
            // What was in vain with a part of a card is in vain with another part of it.
            let is_tried = next > from && self.candidates[next - 1].position == card.position;
            if is_tried || card.is_needed && sums.needed == self.spare {
                continue;
            }
            if self.steps == 0 {
                return;
            }
            self.steps -= 1;
            let with = self.with(sums, &card);
            let best_key = self.key(&self.at_least(with, missing - 1, next));
            if self.is_better(&best_key) {
                self.chosen.push(next);
                self.add_to(next + 1, with);
                self.chosen.pop();
            }
        }
    }

    /// Whether a combination with this key is better than the best one so far.
    fn is_better(&self, key: &Key) -> bool {
        let best = self.best.as_ref();
        best.is_none_or(|(best, _)| key < best)
    }

    /// The sums with one more card.
    fn with(&self, sums: Sums, card: &Candidate) -> Sums {
        let chosen = self.chosen.iter().map(|index| &self.candidates[*index]);
        let links: i64 = chosen.clone().map(|other| self.link(other, card)).sum();
        let is_new = chosen.clone().all(|other| other.cell != card.cell);
        Sums {
            links: sums.links + links,
            degree: sums.degree + card.degree,
            cells: sums.cells + i64::from(is_new),
            cost: sums.cost.saturating_add(card.cost),
            crowd: sums.crowd.saturating_add(card.crowd),
            needed: sums.needed + u64::from(card.is_needed),
        }
    }

    /// Sums that no completion is better than: with so many more cards, of candidates behind the
    /// last one.
    fn at_least(&self, sums: Sums, more: usize, last: usize) -> Sums {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let (more, chosen) = (number(more), number(self.chosen.len() + 1));
        let pairs = more * chosen + more * (more - 1) / 2;
        let next = self.candidates.get(last + 1);
        Sums {
            links: sums.links + pairs * self.most_link,
            degree: sums.degree + more * self.least.degree,
            cost: sums
                .cost
                .saturating_add(more * next.map_or(0, |next| next.cost)),
            crowd: sums.crowd + more * self.least.crowd,
            ..sums
        }
    }

    /// How bad a combination with these sums is. Of equally good ones one is better that takes from
    /// cells where little is left, so that the others stay whole.
    fn key(&self, sums: &Sums) -> Key {
        let mut key = Key::default();
        let mut places = key.iter_mut();
        let mut put = |amount: i64| {
            if let Some(place) = places.next() {
                *place = amount;
            }
        };
        for criterion in self.order {
            match criterion {
                Criterion::Links => {
                    put(-sums.links);
                    put(sums.degree);
                }
                Criterion::Cells => put(sums.cells),
                Criterion::Cost => put(sums.cost),
            }
        }
        put(sums.crowd);
        key
    }
}
