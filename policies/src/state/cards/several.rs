//! Cards for pods of which several containers ask for some, or one that does not run beside others.
//!
//! An init container uses cards before the others, beside the sidecars that come before it, so of
//! each card a pod holds the most that is used at a time. Containers that run together may use the
//! same card, as far as it has room for both.
//!
//! Source: `calcScore` of HAMi's scheduler, which serves the containers in their order and never
//! goes back on a choice. Here a choice that leaves a later container without cards is taken back:
//! the search is exact while it has no more than [`STEPS_MAX`] steps, and then gives up. Its first
//! descent is HAMi's. HAMi counts a sidecar as an init container; here it stays. So does an
//! instance of MIG: it is the container's alone, whatever runs when.

use super::choice::{Liking, cells_by_cost};
use super::links::Links;
use super::room::parts_of_one;
use super::{Asked, CardShortage, Cards, Fitting, Size, Used, is_bound, pods_on};
use crate::facts::{CardNeed, CardPart, CardTerms, ContainerCards, ContainerRole, MigInstance};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Deref;
use smallvec::SmallVec;

/// The most choices of a card that a search makes.
const STEPS_MAX: u32 = 8_192;
/// The most cards that the containers of a pod may ask for in sum, and how many containers may ask:
/// a search goes as deep.
const ASKED_MAX: usize = 256;
/// How many times a search looks for the best combination of cards for a container. Later, when it
/// has gone back on choices often, the order of their costs will do.
const COMBINED_MAX: u32 = 64;
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

    /// What one container holds, device by device.
    pub(super) fn of_container(devices: Vec<CardPart>) -> Self {
        let is_simple = devices.is_sorted_by(|one, next| one.card < next.card);
        if is_simple {
            return Self::new(devices.into(), false);
        }
        Self {
            parts: merged(devices.clone()).into(),
            containers: Some(Box::new(Containers(Vec::from([devices])))),
            by_hami: false,
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

/// Parts of cards, each card once, in the order of their ids: what each holds in all.
pub(crate) fn merged(mut parts: Vec<CardPart>) -> Vec<CardPart> {
    parts.sort_unstable();
    parts.dedup_by(|next, part| {
        let is_same = next.card == part.card;
        if is_same {
            part.slots = part.slots.saturating_add(next.slots);
            part.thousandths = part.thousandths.saturating_add(next.thousandths);
            part.memory_mib = part.memory_mib.saturating_add(next.memory_mib);
            part.instances.append(&mut next.instances);
            part.instances.sort_unstable();
        }
        is_same
    });
    parts
}

/// A card that will do: its place among those that the node names, what it has, and what is used.
#[derive(Debug, Clone, Copy)]
struct Room<'a> {
    position: usize,
    size: &'a Size,
    used: Used,
}

/// The cards of a node that will do.
type Rooms<'a> = SmallVec<[Room<'a>; 8]>;

/// A card of a container: its position among the rooms, and what the container has of it.
#[derive(Debug, Clone)]
struct Device {
    room: usize,
    used: Used,
    instance: Option<MigInstance>,
}

/// The cards of one container.
type Chosen = SmallVec<[Device; 2]>;

/// A search for the cards of one pod.
struct Search<'a, Price> {
    rooms: Rooms<'a>,
    terms: &'a CardTerms,
    /// Says what the cards with room for a container cost: the cheapest are tried first.
    price: Price,
    /// How often the best combination of cards is still looked for.
    combined: u32,
    links: Option<&'a Links>,
    chosen: Vec<Chosen>,
    /// Of each room, what is used of it when a container begins.
    before: Vec<SmallVec<[Used; 8]>>,
    steps: u32,
}

impl<Price: FnMut(&mut [Fitting])> Search<'_, Price> {
    /// Chooses cards for a container and all that follow. Which cards an init container gets is
    /// open until the others have theirs.
    fn place(&mut self, container: usize) -> bool {
        let Some(ContainerCards { role, need }) = self.terms.containers.get(container).copied()
        else {
            return true;
        };
        let groups = self.groups(need);
        if groups.is_empty() {
            return false;
        }
        self.chosen.push(Chosen::new());
        let used = self.rooms.iter().map(|room| room.used).collect();
        self.before.push(used);
        let is_placed = match self.terms.stays(role) {
            false => self.place(container + 1),
            true => groups.iter().any(|group| self.pick(container, group, 0)),
        };
        if !is_placed {
            self.chosen.pop();
            self.before.pop();
        }
        is_placed
    }

    /// Chooses the rest of a container's cards from these, from one on.
    fn pick(&mut self, container: usize, fitting: &[Fit], from: usize) -> bool {
        let need = self.terms.containers[container].need;
        let missing = usize::from(need.count()) - self.chosen[container].len();
        if missing == 0 {
            return self.place(container + 1);
        }
        for next in from..fitting.len() {
            if most(&fitting[next..]) < missing as u64 {
                break;
            }
            let (card, several) = (fitting[next].room, fitting[next].most > 1);
            let is_twin = |twin: usize| {
                let (one, other) = (&self.rooms[twin], &self.rooms[card]);
                one.size.is_like(other.size) && one.used == other.used
            };
            // What was in vain with a card is in vain with one just like it.
            if next > from && is_twin(fitting[next - 1].room) {
                continue;
            }
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            let used = self.rooms[card].used;
            let device = self.rooms[card].take(card, need);
            self.chosen[container].push(device);
            let again = several && self.rooms[card].fits(need) > 0;
            if again && self.pick(container, fitting, next)
                || self.pick(container, fitting, next + 1)
            {
                return true;
            }
            self.chosen[container].pop();
            self.rooms[card].used = used;
        }
        false
    }

    /// The rooms with room for a container beside what is used now, in the order in which they are
    /// tried, where there are enough of them: all, or if the container has to get all its cards in
    /// one cell, those of each cell that has enough.
    fn groups(&mut self, need: CardNeed) -> SmallVec<[Group; 1]> {
        let asked = Asked::new(&need, Some(self.terms));
        let rooms = self.rooms.iter();
        let fitting = rooms.map(|room| Fitting::new(room.position, room.size, room.used, asked));
        let mut fitting: SmallVec<[Fitting; 8]> = fitting.filter(|card| card.fits.0 > 0).collect();
        (self.price)(&mut fitting);
        fitting.sort_by_key(|card| card.cost);
        let mut groups = match is_bound(Some(self.terms)) {
            true => cells_by_cost(&fitting, need.count()),
            false => {
                let are_enough = parts_of_one(&fitting) >= u64::from(need.count());
                are_enough.then(|| fitting.clone()).into_iter().collect()
            }
        };
        let liking = Liking::of(Some(self.terms), need.count(), self.links);
        if self.combined > 0 && liking.is_about_combinations() {
            self.combined -= 1;
            let best = liking.choose(&fitting, need.count());
            let is_other = |card: &Fitting| !best.contains(&card.position);
            groups.sort_by_key(|group| group.iter().all(is_other));
            for group in &mut groups {
                group.sort_by_key(is_other);
            }
        }
        let rooms = &self.rooms;
        let fit = |card: &Fitting| Fit {
            room: rooms.partition_point(|room| room.position < card.position),
            most: card.parts(),
        };
        let groups = groups.iter();
        groups
            .map(|group| group.iter().map(fit).collect())
            .collect()
    }

    /// What the pod holds of each room at most. Init containers get cards that the pod holds
    /// anyway, if they can.
    fn footprint(&mut self) -> SmallVec<[Used; 8]> {
        let none = || core::iter::repeat_n(Used::default(), self.rooms.len());
        let (mut held, mut sidecars): (SmallVec<[Used; 8]>, SmallVec<[Used; 8]>) =
            (none().collect(), none().collect());
        for device in self.chosen.iter().flatten() {
            held[device.room].raise_by(device.used);
        }
        for (index, container) in self.terms.containers.iter().enumerate() {
            let stays = self.terms.stays(container.role);
            if !stays {
                let more = |device: &Device| {
                    let mut with = sidecars[device.room];
                    with.raise_by(device.used);
                    held[device.room].lacks(with)
                };
                self.chosen[index] = self.least(index, container.need, more);
            }
            for Device { room, used, .. } in &self.chosen[index] {
                let mut with = sidecars[*room];
                with.raise_by(*used);
                match container.role {
                    // tests plant bugs here: cards-of-an-init-container
                    ContainerRole::Init if !stays => held[*room] = held[*room].max(with),
                    ContainerRole::Sidecar => sidecars[*room] = with,
                    ContainerRole::Init | ContainerRole::Main => {}
                }
            }
        }
        held
    }

    /// The cards of an init container that make the pod hold the least more than it holds anyway.
    /// `more`: how much more a card makes it hold.
    fn least(
        &mut self,
        index: usize,
        need: CardNeed,
        more: impl Fn(&Device) -> (u64, u64, u128),
    ) -> Chosen {
        let groups = self.groups_before(index, need).into_iter();
        let choices = groups.map(|group| {
            let devices = group.iter();
            let devices = devices.map(|fit| self.rooms[fit.room].device(fit.room, need));
            let mut devices: SmallVec<[Device; 8]> = devices.collect();
            devices.sort_by_key(&more);
            devices.truncate(need.count().into());
            devices
        });
        let in_all = |devices: &SmallVec<[Device; 8]>| {
            let more = devices.iter().map(&more);
            more.fold((0, 0, 0), |sum, more| {
                (sum.0 + more.0, sum.1 + more.1, sum.2 + more.2)
            })
        };
        let least = choices.min_by_key(in_all);
        least.into_iter().flatten().collect()
    }

    /// The groups of rooms that had enough room for a container when it begins.
    fn groups_before(&mut self, container: usize, need: CardNeed) -> SmallVec<[Group; 1]> {
        let mut now: SmallVec<[Used; 8]> = SmallVec::new();
        for (room, before) in self.rooms.iter_mut().zip(&self.before[container]) {
            now.push(core::mem::replace(&mut room.used, *before));
        }
        let groups = self.groups(need);
        for (room, now) in self.rooms.iter_mut().zip(now) {
            room.used = now;
        }
        groups
    }
}

/// A room in which there is room for a container, and for how many of its devices.
#[derive(Debug, Clone, Copy)]
struct Fit {
    room: usize,
    most: u64,
}

/// Rooms of which a container gets some.
type Group = SmallVec<[Fit; 8]>;

/// For how many devices of a container there is room.
fn most(fitting: &[Fit]) -> u64 {
    fitting.iter().map(|fit| fit.most).sum()
}

impl Room<'_> {
    fn fits(&self, need: CardNeed) -> u64 {
        self.size.fits(self.used, &need)
    }

    /// What one device of a container takes of the card, which is at this position.
    fn device(&self, room: usize, need: CardNeed) -> Device {
        let (used, instance) = self.size.device(self.used, &need);
        Device {
            room,
            used,
            instance,
        }
    }

    fn take(&mut self, room: usize, need: CardNeed) -> Device {
        let device = self.device(room, need);
        self.used.raise_by(device.used);
        device
    }
}

/// What cards cost where only their number counts: the tightest the least.
fn tightest_first(fitting: &mut [Fitting]) {
    for card in fitting {
        card.cost = u64::from(card.free) << 32 | card.fits.0.min(u32::MAX.into());
    }
}

impl Cards {
    fn rooms<'a>(&'a self, terms: &'a CardTerms) -> Rooms<'a> {
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

    /// What a pod gets whose containers ask for these cards. It fits. Those that cost the least by
    /// `price` are tried first, unless that would leave room for fewer further pods.
    pub(crate) fn hold_several(
        &self,
        terms: &CardTerms,
        price: impl FnMut(&mut [Fitting]),
    ) -> Held {
        let rooms = self.rooms(terms);
        let further = count(rooms.clone(), terms, COUNTED_MAX).saturating_sub(1);
        let links = self.links.as_deref();
        if let Some((held, left)) =
            self.held_after(rooms.clone(), terms, price, (COMBINED_MAX, links))
            && count(left, terms, further) == further
        {
            return held;
        }
        let found = self.held_after(rooms, terms, tightest_first, (0, None));
        found.map(|(held, _)| held).unwrap_or_default()
    }

    /// What a pod gets, and the rooms that are left then.
    fn held_after<'a>(
        &'a self,
        rooms: Rooms<'a>,
        terms: &'a CardTerms,
        price: impl FnMut(&mut [Fitting]),
        combining: Combining<'a>,
    ) -> Option<(Held, Rooms<'a>)> {
        let (chosen, taken) = search(rooms.clone(), terms, price, combining)?;
        let ids: SmallVec<[&str; 8]> = self.named().map(|(id, ..)| id).collect();
        let id_of = |room: usize| ids[rooms[room].position];
        let instances = |of: usize| {
            let all = chosen
                .iter()
                .flatten()
                .filter(move |device| device.room == of);
            all.filter_map(|device| device.instance.clone())
        };
        let held = taken.iter().enumerate();
        let held = held.filter(|(_, used)| **used != Used::default());
        let held = held.map(|(room, used)| used.part(id_of(room), instances(room)));
        let parts = held.collect();
        let containers = chosen.into_iter().map(|mut devices| {
            devices.sort_by_key(|device| device.room);
            let parts = devices.into_iter();
            let parts = parts.map(|device| device.used.part(id_of(device.room), device.instance));
            parts.collect()
        });
        let held = Held {
            parts,
            containers: Some(Box::new(Containers(containers.collect()))),
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
            let asked = Asked::new(&container.need, Some(terms));
            let fits = rooms.map(|room| room.size.fits_in_cell(room.used, asked));
            pods_on(fits, container.need.count(), Some(terms)) == 0
        };
        let lacking = containers.find(alone);
        lacking.map_or(CardShortage::Room, |one| {
            self.shortage_of_one(&one.need, Some(terms))
        })
    }
}

/// How often a search looks for the best combination, and the links that count in it.
type Combining<'a> = (u32, Option<&'a Links>);

/// How many pods find cards one after the other, up to `most`.
fn count<'a>(mut rooms: Rooms<'a>, terms: &'a CardTerms, most: u64) -> u64 {
    let most = most.min(COUNTED_MAX);
    let mut pods = 0;
    while pods < most
        && let Some((_, taken)) = search(rooms.clone(), terms, tightest_first, (0, None))
    {
        rooms = left(rooms, &taken);
        pods += 1;
    }
    pods
}

/// The cards of each container of a pod, and what the pod takes of each room.
fn search<'a>(
    rooms: Rooms<'a>,
    terms: &'a CardTerms,
    price: impl FnMut(&mut [Fitting]),
    (combined, links): Combining<'a>,
) -> Option<(Vec<Chosen>, SmallVec<[Used; 8]>)> {
    let containers = &*terms.containers;
    let counts = containers.iter().map(|it| usize::from(it.need.count()));
    if containers.len() > ASKED_MAX || counts.sum::<usize>() > ASKED_MAX {
        return None;
    }
    let mut search = Search {
        rooms,
        terms,
        price,
        combined,
        links,
        chosen: Vec::new(),
        before: Vec::new(),
        steps: STEPS_MAX,
    };
    let is_placed = search.place(0);
    let taken = is_placed.then(|| search.footprint())?;
    Some((search.chosen, taken))
}

/// The rooms when a pod has taken its parts.
fn left<'a>(mut rooms: Rooms<'a>, taken: &[Used]) -> Rooms<'a> {
    for (room, taken) in rooms.iter_mut().zip(taken) {
        room.used.raise_by(*taken);
    }
    rooms
}

#[cfg(test)]
mod tests;
