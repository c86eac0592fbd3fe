//! Cards for pods of which several containers ask for some, or one that does not run beside others.
//!
//! An init container uses cards before the others, beside the sidecars that come before it, so of
//! each card a pod holds the most that is used at a time. Containers that run together may use the
//! same card, as far as it has room for both.
//!
//! Source: `calcScore` of HAMi's scheduler, which serves the containers in their order and never
//! goes back on a choice. Here a choice that leaves a later container without cards is taken back:
//! the search is exact while it has no more than [`STEPS_MAX`] steps, and then gives up. Its first
//! descent is HAMi's. HAMi counts a sidecar as an init container; here it stays.

use super::{CardShortage, Cards, Fitting, Size, Used};
use crate::facts::{CardNeed, CardPart, CardTerms, ContainerCards, ContainerRole};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Deref;
use smallvec::SmallVec;

/// The most choices of a card that a search makes.
const STEPS_MAX: u32 = 8_192;
/// The most cards that the containers of a pod may ask for in sum, and how many containers may ask:
/// a search goes as deep.
const ASKED_MAX: usize = 256;
/// The most pods that are counted on a node.
const COUNTED_MAX: u64 = 128;

/// What a pod holds of cards: of each the most that it uses at a time, in the order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Held {
    parts: Box<[CardPart]>,
    /// What each container gets that asks for cards; `None`: one gets all parts, or it is not known
    /// who has which.
    containers: Option<Box<Containers>>,
    /// HAMi's own scheduler has given them.
    by_hami: bool,
}

/// What each container gets.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Containers(Vec<Vec<CardPart>>);

impl Held {
    /// What one container holds, or nobody knows which. `by_hami`: HAMi's own scheduler has given
    /// it.
    pub(crate) fn new(parts: Box<[CardPart]>, by_hami: bool) -> Self {
        Self {
            parts,
            containers: None,
            by_hami,
        }
    }

    pub(super) fn is_by_hami(&self) -> bool {
        self.by_hami && !self.parts.is_empty()
    }

    /// What each container gets that asks for cards, init containers first.
    pub(crate) fn by_container(&self) -> Vec<Vec<CardPart>> {
        match &self.containers {
            Some(containers) => containers.0.clone(),
            None => Vec::from([self.parts.to_vec()]),
        }
    }
}

impl Deref for Held {
    type Target = [CardPart];

    fn deref(&self) -> &[CardPart] {
        &self.parts
    }
}

/// A card that will do: its place among those that the node names, what it has, and what is used.
#[derive(Debug, Clone, Copy)]
struct Room {
    position: usize,
    size: Size,
    used: Used,
}

/// The cards of one container, as positions among the rooms.
type Chosen = SmallVec<[usize; 2]>;

/// A search for the cards of one pod.
struct Search<'a, Sort> {
    rooms: SmallVec<[Room; 8]>,
    containers: &'a [ContainerCards],
    /// Brings the cards with room for a container in the order in which they are tried.
    sort: Sort,
    chosen: Vec<Chosen>,
    /// Of each room, what is used of it when a container begins.
    before: Vec<SmallVec<[Used; 8]>>,
    steps: u32,
}

impl<Sort: FnMut(&mut [Fitting])> Search<'_, Sort> {
    /// Chooses cards for a container and all that follow. Which cards an init container gets is
    /// open until the others have theirs.
    fn place(&mut self, container: usize) -> bool {
        let Some(ContainerCards { role, need }) = self.containers.get(container).copied() else {
            return true;
        };
        let fitting = self.fitting(need);
        if fitting.len() < usize::from(need.count()) {
            return false;
        }
        self.chosen.push(Chosen::new());
        let used = self.rooms.iter().map(|room| room.used).collect();
        self.before.push(used);
        let is_placed = match role {
            ContainerRole::Init => self.place(container + 1),
            ContainerRole::Sidecar | ContainerRole::Main => self.pick(container, &fitting, 0),
        };
        if !is_placed {
            self.chosen.pop();
            self.before.pop();
        }
        is_placed
    }

    /// Chooses the rest of a container's cards from these, from one on.
    fn pick(&mut self, container: usize, fitting: &[usize], from: usize) -> bool {
        let need = self.containers[container].need;
        let missing = usize::from(need.count()) - self.chosen[container].len();
        if missing == 0 {
            return self.place(container + 1);
        }
        for next in from..=fitting.len().saturating_sub(missing) {
            let card = fitting[next];
            let is_twin = |twin: usize| {
                let (one, other) = (&self.rooms[twin], &self.rooms[card]);
                one.size == other.size && one.used == other.used
            };
            // What was in vain with a card is in vain with one just like it.
            if next > from && is_twin(fitting[next - 1]) {
                continue;
            }
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            let used = self.rooms[card].used;
            self.rooms[card].take(need);
            self.chosen[container].push(card);
            if self.pick(container, fitting, next + 1) {
                return true;
            }
            self.chosen[container].pop();
            self.rooms[card].used = used;
        }
        false
    }

    /// The rooms with room for a container beside what is used now, in the order in which they are
    /// tried.
    fn fitting(&mut self, need: CardNeed) -> SmallVec<[usize; 8]> {
        let rooms = self.rooms.iter().enumerate();
        let fitting = rooms.map(|(position, room)| Fitting {
            position,
            free: super::free_of(room.size, room.used),
            fits: room.size.fits(room.used, &need),
        });
        let mut fitting: SmallVec<[Fitting; 8]> = fitting.filter(|card| card.fits > 0).collect();
        (self.sort)(&mut fitting);
        fitting.iter().map(|card| card.position).collect()
    }

    /// What the pod holds of each room at most. Init containers get cards that the pod holds
    /// anyway, if they can.
    fn footprint(&mut self) -> SmallVec<[Used; 8]> {
        let none = || core::iter::repeat_n(Used::default(), self.rooms.len());
        let (mut held, mut sidecars): (SmallVec<[Used; 8]>, SmallVec<[Used; 8]>) =
            (none().collect(), none().collect());
        for (container, chosen) in self.containers.iter().zip(&self.chosen) {
            for room in chosen {
                let part = self.rooms[*room].part(container.need);
                held[*room].raise_by(part);
            }
        }
        for (index, container) in self.containers.iter().enumerate() {
            if container.role == ContainerRole::Init {
                let free = self.fitting_before(index, container.need);
                let more = |room: &usize| {
                    let mut with = sidecars[*room];
                    with.raise_by(self.rooms[*room].part(container.need));
                    held[*room].lacks(with)
                };
                let mut free: SmallVec<[usize; 8]> = free;
                free.sort_by_key(more);
                free.truncate(container.need.count().into());
                self.chosen[index] = free.into_iter().collect();
            }
            for room in &self.chosen[index] {
                let mut with = sidecars[*room];
                with.raise_by(self.rooms[*room].part(container.need));
                match container.role {
                    ContainerRole::Init => held[*room] = held[*room].max(with),
                    ContainerRole::Sidecar => sidecars[*room] = with,
                    ContainerRole::Main => {}
                }
            }
        }
        held
    }

    /// The rooms that had room for a container when it begins.
    fn fitting_before(&mut self, container: usize, need: CardNeed) -> SmallVec<[usize; 8]> {
        let mut now: SmallVec<[Used; 8]> = SmallVec::new();
        for (room, before) in self.rooms.iter_mut().zip(&self.before[container]) {
            now.push(core::mem::replace(&mut room.used, *before));
        }
        let fitting = self.fitting(need);
        for (room, now) in self.rooms.iter_mut().zip(now) {
            room.used = now;
        }
        fitting
    }
}

impl Room {
    /// What one device of a container takes of the card.
    fn part(&self, need: CardNeed) -> Used {
        Used {
            memory_mib: need.memory().of_card(self.size.memory_mib).into(),
            thousandths: need.thousandths().into(),
            slots: 1,
        }
    }

    fn take(&mut self, need: CardNeed) {
        let part = self.part(need);
        self.used.raise_by(part);
    }
}

impl Used {
    fn raise_by(&mut self, part: Self) {
        self.memory_mib += part.memory_mib;
        self.thousandths += part.thousandths;
        self.slots += part.slots;
    }

    fn max(self, other: Self) -> Self {
        Self {
            memory_mib: self.memory_mib.max(other.memory_mib),
            thousandths: self.thousandths.max(other.thousandths),
            slots: self.slots.max(other.slots),
        }
    }

    /// How much of another amount is not in this one.
    fn lacks(self, other: Self) -> (u64, u64, u128) {
        (
            other.slots.saturating_sub(self.slots),
            other.thousandths.saturating_sub(self.thousandths),
            other.memory_mib.saturating_sub(self.memory_mib),
        )
    }
}

/// The order in which cards are tried where only their number counts: the tightest first.
fn tightest_first(fitting: &mut [Fitting]) {
    fitting.sort_by_key(|card| (card.free, card.fits));
}

impl Cards {
    fn rooms(&self, terms: &CardTerms) -> SmallVec<[Room; 8]> {
        let allowed = self.allowed(Some(terms));
        let rooms = allowed.map(|(position, (_, size, used))| Room {
            position,
            size,
            used,
        });
        rooms.collect()
    }

    /// How many pods fit whose containers ask for these cards, if one is placed after the other;
    /// no more than `most` are counted. Perhaps more would fit if they were placed otherwise.
    pub(super) fn pods_with_several(&self, terms: &CardTerms, most: u64) -> u64 {
        count(self.rooms(terms), terms, most)
    }

    /// As [`Cards::pods_with_several`], if no pod were on the node.
    pub(super) fn pods_with_several_empty(&self, terms: &CardTerms) -> u64 {
        let mut rooms = self.rooms(terms);
        for room in &mut rooms {
            room.used = Used::default();
        }
        count(rooms, terms, COUNTED_MAX)
    }

    /// What a pod gets whose containers ask for these cards. It fits. The cards are tried in the
    /// order that `sort` gives them, unless that would leave room for fewer further pods.
    pub(crate) fn hold_several(&self, terms: &CardTerms, sort: impl FnMut(&mut [Fitting])) -> Held {
        let rooms = self.rooms(terms);
        let further = count(rooms.clone(), terms, COUNTED_MAX).saturating_sub(1);
        if let Some((held, left)) = self.held_after(rooms.clone(), terms, sort)
            && count(left, terms, further) == further
        {
            return held;
        }
        let found = self.held_after(rooms, terms, tightest_first);
        found.map(|(held, _)| held).unwrap_or_default()
    }

    /// What a pod gets, and the rooms that are left then.
    fn held_after(
        &self,
        rooms: SmallVec<[Room; 8]>,
        terms: &CardTerms,
        sort: impl FnMut(&mut [Fitting]),
    ) -> Option<(Held, SmallVec<[Room; 8]>)> {
        let (chosen, taken) = search(rooms.clone(), terms, sort)?;
        let ids: SmallVec<[&str; 8]> = self.named().map(|(id, ..)| id).collect();
        let part = |room: usize, used: Used| CardPart {
            card: ids[rooms[room].position].into(),
            slots: u32::try_from(used.slots).unwrap_or(u32::MAX),
            thousandths: u32::try_from(used.thousandths).unwrap_or(u32::MAX),
            memory_mib: u64::try_from(used.memory_mib).unwrap_or(u64::MAX),
        };
        let containers = terms.containers.iter().zip(chosen);
        let containers = containers.map(|(container, mut chosen)| {
            chosen.sort_unstable();
            let parts = chosen.into_iter();
            let parts = parts.map(|room| part(room, rooms[room].part(container.need)));
            parts.collect()
        });
        let containers = Containers(containers.collect());
        let held = taken.iter().enumerate();
        let held = held.filter(|(_, used)| **used != Used::default());
        let held = Held {
            parts: held.map(|(room, used)| part(room, *used)).collect(),
            containers: Some(Box::new(containers)),
            by_hami: false,
        };
        Some((held, left(rooms, &taken)))
    }

    /// What keeps a pod from the node whose containers ask for these cards: what one of them alone
    /// has too little of, else several things.
    pub(super) fn shortage_of_several(&self, terms: &CardTerms) -> CardShortage {
        let mut containers = terms.containers.iter();
        let alone = |container: &&ContainerCards| {
            let rooms = self.rooms(terms).into_iter();
            let fits = |room: &Room| room.size.fits(room.used, &container.need) > 0;
            rooms.filter(fits).count() < usize::from(container.need.count())
        };
        let lacking = containers.find(alone);
        lacking.map_or(CardShortage::Room, |one| {
            self.shortage_of_one(&one.need, Some(terms))
        })
    }
}

/// How many pods find cards one after the other, up to `most`.
fn count(mut rooms: SmallVec<[Room; 8]>, terms: &CardTerms, most: u64) -> u64 {
    let most = most.min(COUNTED_MAX);
    let mut pods = 0;
    while pods < most
        && let Some((_, taken)) = search(rooms.clone(), terms, tightest_first)
    {
        rooms = left(rooms, &taken);
        pods += 1;
    }
    pods
}

/// The cards of each container of a pod, and what the pod takes of each room.
fn search(
    rooms: SmallVec<[Room; 8]>,
    terms: &CardTerms,
    sort: impl FnMut(&mut [Fitting]),
) -> Option<(Vec<Chosen>, SmallVec<[Used; 8]>)> {
    let containers = &*terms.containers;
    let counts = containers.iter().map(|it| usize::from(it.need.count()));
    if containers.len() > ASKED_MAX || counts.sum::<usize>() > ASKED_MAX {
        return None;
    }
    let mut search = Search {
        rooms,
        containers,
        sort,
        chosen: Vec::new(),
        before: Vec::new(),
        steps: STEPS_MAX,
    };
    let is_placed = search.place(0);
    let taken = is_placed.then(|| search.footprint())?;
    Some((search.chosen, taken))
}

/// The rooms when a pod has taken its parts.
fn left(mut rooms: SmallVec<[Room; 8]>, taken: &[Used]) -> SmallVec<[Room; 8]> {
    for (room, taken) in rooms.iter_mut().zip(taken) {
        room.used.raise_by(*taken);
    }
    rooms
}

#[cfg(test)]
mod tests;
