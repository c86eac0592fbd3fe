//! The cards of one node: what is taken of each, and by which sorts of pods.
//!
//! Where a node names its cards, their use is counted in slots, thousandths of a card and MiB. A
//! Txn chooses cards (`ClusterState::choose_cards`) and gives them back; the Bind command carries
//! them.
//!
//! A card in MIG mode is cut into instances, and only their places count.
//!
//! Source of what fits beside what: `Fit` of HAMi's scheduler.

mod choice;
mod combination;
mod links;
mod mig;
mod room;
mod several;
mod shortage;
mod used;

use crate::facts::{
    CardFacts, CardLink, CardModes, CardNeed, CardPart, CardTerms, MigInstance, WHOLE_CARD,
};
use crate::filter::CardShortage;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use choice::Liking;
use core::hash::{Hash, Hasher};
use links::Links;
use mig::MigModel;
pub(crate) use mig::MigModels;
use room::{Fits, pods_that_fit};
pub(crate) use several::{Held, merged};
use smallvec::SmallVec;
use used::Used;

/// The cards of a node. Pods may hold cards that the node does not name, or not any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cards {
    /// In the order of their ids.
    cards: SmallVec<[Card; 8]>,
    /// How many of the cards the node names.
    named: usize,
    /// The free part of each card, in thousandths of a card; `None`: the node does not name it.
    /// This is kept apart from the cards, since placements look at it on every node.
    free: SmallVec<[Option<u16>; 8]>,
    /// The free parts of all named cards together, in thousandths of a card.
    free_thousandths: u64,
    /// How well the named cards are connected; `None`: nobody says so.
    links: Option<Box<Links>>,
    /// How many pods of each sort hold cards of the node; sorted, none zero.
    sorts: SmallVec<[(Sort, u32); 2]>,
    /// How many pods got their cards from HAMi's own scheduler. While there are any, nobody else
    /// may give cards away.
    by_hami: u32,
}

/// One card.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Card {
    id: Box<str>,
    /// The GPU model, in small letters; empty: it has no name, or the node does not name the card.
    model: Box<str>,
    /// What the card has; `None`: pods hold it, but the node does not name it.
    size: Option<Size>,
    used: Used,
}

/// What a card has to give.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Size {
    memory_mib: u64,
    thousandths: u32,
    slots: u32,
    /// The NUMA node.
    cell: u32,
    is_open: bool,
    /// What the card can be cut into; `None`: it is not in MIG mode.
    mig: Option<Arc<MigModel>>,
}

/// The sort of a pod in the eyes of GPU clustering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// The pod holds parts of cards.
    Share,
    /// The pod holds this many whole cards.
    Whole(u16),
}

/// A card on which a pod fits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fitting {
    /// The card's place among those that the node names, in the order of their ids.
    pub(crate) position: usize,
    /// The free part of the card, in thousandths of a card.
    pub(crate) free: u16,
    /// The NUMA node of the card.
    pub(crate) cell: u32,
    /// How much a placement would rather have another card, below 2^55: it takes the cards with the
    /// least first, and of equal ones those that come first.
    pub(crate) cost: u64,
    /// How many pods of the sort fit on it, and whether a container may have several parts of it.
    fits: Fits,
    /// Of a card in MIG mode: how many places for later instances one more costs.
    pub(crate) loss: Option<u16>,
}

/// What a container asks of each of its cards.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    need: &'a CardNeed,
    /// Whether the card has to be idle: no pod may hold a part of it.
    idle: bool,
}

impl<'a> Asked<'a> {
    fn new(need: &'a CardNeed, terms: Option<&CardTerms>) -> Self {
        let idle = terms.is_some_and(|terms| terms.idle);
        Self { need, idle }
    }
}

impl Fitting {
    fn new(position: usize, size: &Size, used: Used, asked: Asked<'_>) -> Self {
        let need = asked.need;
        let chosen = size.mig.as_ref();
        let chosen = chosen.map(|model| model.choose(used.occupied(), need));
        Self {
            position,
            free: narrowed(size.free_thousandths(used)),
            cell: size.cell,
            cost: 0,
            fits: size.fits_of(used, asked),
            loss: chosen.map(|chosen| chosen.map_or(0, |chosen| chosen.loss)),
        }
    }
}

impl Sort {
    pub(crate) fn of(request: &CardNeed) -> Self {
        match request.is_fraction() {
            true => Self::Share,
            false => Self::Whole(request.count()),
        }
    }

    fn of_parts(parts: &[CardPart]) -> Self {
        let is_whole = |part: &CardPart| part.thousandths >= u32::from(WHOLE_CARD);
        match parts.iter().all(is_whole) {
            true => Self::Whole(u16::try_from(parts.len()).unwrap_or(u16::MAX)),
            false => Self::Share,
        }
    }
}

impl Size {
    fn of(facts: &CardFacts, models: &mut MigModels) -> Self {
        Self {
            memory_mib: facts.memory_mib,
            thousandths: facts.thousandths,
            slots: facts.slots,
            cell: facts.numa,
            is_open: facts.closed.is_none(),
            mig: models.get(&facts.profiles),
        }
    }

    /// Whether this is more than another size, of anything.
    fn exceeds(&self, before: Option<&Self>) -> bool {
        let Some(before) = before else { return true };
        self.memory_mib > before.memory_mib
            || self.thousandths > before.thousandths
            || self.slots > before.slots
            || self.is_open && !before.is_open
            || self.cell != before.cell
            || self.mig != before.mig
    }

    /// Whether a card of this size is as good as one of another, apart from where it is attached.
    fn is_like(&self, other: &Self) -> bool {
        let Self {
            memory_mib,
            thousandths,
            slots,
            cell: _,
            is_open,
            mig,
        } = self;
        *memory_mib == other.memory_mib
            && *thousandths == other.thousandths
            && *slots == other.slots
            && *is_open == other.is_open
            && *mig == other.mig
    }

    /// Of a card in MIG mode, what instances can still have.
    fn free_thousandths(&self, used: Used) -> u64 {
        match &self.mig {
            _ if !self.is_open => 0,
            Some(model) => model.power(used.occupied()).into(),
            None => u64::from(self.thousandths).saturating_sub(used.thousandths),
        }
    }

    /// How many times what a request asks of one card fits beside what is used.
    fn fits(&self, used: Used, request: &CardNeed) -> u64 {
        if let Some(model) = &self.mig {
            return match self.is_open {
                true => model.count(used.occupied(), request),
                false => 0,
            };
        }
        let rooms = self.rooms(used, request);
        // tests plant bugs here: room-on-a-card
        rooms.iter().map(|(_, room)| *room).min().unwrap_or(0)
    }

    /// As [`Size::fits`], and whether a container may have several parts of the card: instances
    /// are several parts, unless the card has to be idle.
    fn fits_of(&self, used: Used, asked: Asked<'_>) -> Fits {
        let fits = self.fits(used, asked.need);
        match asked.idle {
            false => (fits, self.mig.is_some()),
            true if used.slots > 0 => (0, false),
            true => (fits.min(1), false),
        }
    }

    /// The cell of the card, beside [`Size::fits_of`].
    fn fits_in_cell(&self, used: Used, asked: Asked<'_>) -> (u32, Fits) {
        (self.cell, self.fits_of(used, asked))
    }

    /// What a request takes of the card beside what is used, and the instance if the card is in MIG
    /// mode. There is room for it.
    fn device(&self, used: Used, need: &CardNeed) -> (Used, Option<MigInstance>) {
        let chosen = self.mig.as_ref();
        let chosen = chosen.and_then(|model| model.choose(used.occupied(), need));
        match chosen {
            Some(chosen) => {
                let instance = MigInstance {
                    placement: chosen.placement,
                    profile: chosen.profile.name.clone(),
                };
                (
                    Used::of_instance(chosen.profile, chosen.placement),
                    Some(instance),
                )
            }
            None => (Used::of_share(need, self.memory_mib), None),
        }
    }

    /// How many times what a request asks of one card fits beside what is used, by slots, computing
    /// power and memory.
    fn rooms(&self, used: Used, request: &CardNeed) -> [(CardShortage, u64); 3] {
        let slots = match self.is_open {
            true => u64::from(self.slots).saturating_sub(used.slots),
            false => 0,
        };
        let power = match request.thousandths() {
            // A card that is computed on with all its power has none left to share.
            0 if self.thousandths > 0 && used.thousandths >= self.thousandths.into() => 0,
            0 => slots,
            WHOLE_CARD if self.thousandths == u32::from(WHOLE_CARD) && used.slots > 0 => 0,
            thousandths => self.free_thousandths(used) / u64::from(thousandths),
        };
        let memory = match request.memory().of_card(self.memory_mib) {
            0 => slots,
            memory_mib => {
                let used_mib = u64::try_from(used.memory_mib).unwrap_or(u64::MAX);
                self.memory_mib.saturating_sub(used_mib) / memory_mib
            }
        };
        [
            (CardShortage::Slots, slots),
            (CardShortage::Power, power),
            (CardShortage::Memory, memory),
        ]
    }

    /// Whether pods hold more than the card has.
    fn is_exceeded_by(&self, used: Used) -> bool {
        match self.mig {
            Some(_) => used.is_overlapping(),
            None => {
                used.thousandths > self.thousandths.into()
                    || used.memory_mib > self.memory_mib.into()
                    || used.slots > self.slots.into()
            }
        }
    }

    /// Whether a pod cannot have what it holds of the card, of which so much is used.
    fn fails(&self, used: Used, part: &CardPart) -> bool {
        let is_cut = part.instances.is_empty() == self.mig.is_none();
        !self.is_open || !is_cut || self.is_exceeded_by(used)
    }
}

impl Cards {
    /// Replaces the cards that the node names. Returns whether they are more, or any has more of
    /// anything.
    pub(crate) fn set(
        &mut self,
        facts: &[CardFacts],
        links: &[CardLink],
        models: &mut MigModels,
    ) -> bool {
        let named = self.cards.iter().filter(|card| card.size.is_some());
        let before: SmallVec<[Card; 8]> = named.cloned().collect();
        for card in &mut self.cards {
            card.model = "".into();
            card.size = None;
        }
        let mut grew = false;
        for one in facts {
            let size = Size::of(one, models);
            let model = one.model.to_ascii_lowercase().into_boxed_str();
            let known = before.binary_search_by(|card| card.id.cmp(&one.id));
            let known = known.ok().map(|position| &before[position]);
            grew |= size.exceeds(known.and_then(|card| card.size.as_ref()));
            grew |= known.is_some_and(|card| card.model != model);
            let position = self.enter(&one.id);
            self.cards[position].model = model;
            self.cards[position].size = Some(size);
        }
        self.named = self.cards.iter().filter(|card| card.size.is_some()).count();
        self.forget_unused();
        self.sum_up();
        self.links = self.read_links(facts, links);
        grew
    }

    /// How well the named cards are connected. `links` are about these cards.
    fn read_links(&self, facts: &[CardFacts], links: &[CardLink]) -> Option<Box<Links>> {
        let ids: SmallVec<[&str; 8]> = self.named().map(|(id, ..)| id).collect();
        let position = |place: u16| {
            let card = facts.get(usize::from(place))?;
            ids.binary_search(&&*card.id).ok()
        };
        let known = links
            .iter()
            .filter_map(|link| Some((position(link.one)?, position(link.other)?, link.score)));
        Links::new(self.named, known).map(Box::new)
    }

    /// The position of a card, which is entered if it is not known.
    fn enter(&mut self, id: &str) -> usize {
        let known = self.cards.binary_search_by(|card| (*card.id).cmp(id));
        known.unwrap_or_else(|position| {
            let card = Card {
                id: id.into(),
                model: "".into(),
                size: None,
                used: Used::default(),
            };
            self.cards.insert(position, card);
            position
        })
    }

    /// Removes cards that are neither named nor held.
    fn forget_unused(&mut self) {
        let is_needed = |card: &mut Card| card.size.is_some() || card.used != Used::default();
        if self.cards.len() > self.named {
            self.cards.retain(is_needed);
        }
    }

    /// Takes what a pod holds, whether there is enough or not.
    pub(crate) fn take(&mut self, parts: &Held) {
        self.by_hami += u32::from(parts.is_by_hami());
        for part in parts.iter() {
            let position = self.enter(&part.card);
            self.cards[position].used.add(part);
        }
        self.forget_unused();
        self.sum_up();
        if parts.is_empty() {
            return;
        }
        match self.sort_position(parts) {
            Ok(position) => self.sorts[position].1 += 1,
            Err(position) => self.sorts.insert(position, (Sort::of_parts(parts), 1)),
        }
    }

    /// The exact reverse of [`Cards::take`].
    pub(crate) fn give_back(&mut self, parts: &Held) {
        self.by_hami -= u32::from(parts.is_by_hami());
        for part in parts.iter() {
            let known = self.cards.binary_search_by(|card| card.id.cmp(&part.card));
            if let Ok(position) = known {
                self.cards[position].used.remove(part);
            }
        }
        self.forget_unused();
        self.sum_up();
        if parts.is_empty() {
            return;
        }
        if let Ok(position) = self.sort_position(parts) {
            self.sorts[position].1 -= 1;
            if self.sorts[position].1 == 0 {
                self.sorts.remove(position);
            }
        }
    }

    /// Notes what is free of each card.
    fn sum_up(&mut self) {
        self.free.clear();
        self.free_thousandths = 0;
        for card in &self.cards {
            let size = card.size.as_ref();
            let free = size.map(|size| size.free_thousandths(card.used));
            self.free_thousandths += free.unwrap_or(0);
            self.free.push(free.map(narrowed));
        }
    }

    fn sort_position(&self, parts: &[CardPart]) -> Result<usize, usize> {
        let sort = Sort::of_parts(parts);
        self.sorts.binary_search_by_key(&sort, |(sort, _)| *sort)
    }

    /// Whether the node names no cards.
    pub(crate) fn is_empty(&self) -> bool {
        self.named == 0
    }

    /// Whether any card has more power to give away than a whole card has.
    pub(crate) fn stretches_power(&self) -> bool {
        self.named()
            .any(|(_, size, _)| size.thousandths > WHOLE_CARD.into())
    }

    /// The free part of each named card, in thousandths of a card.
    pub(crate) fn free(&self) -> impl Iterator<Item = u16> + '_ {
        self.free.iter().copied().flatten()
    }

    /// The free parts of all named cards together, in thousandths of a card.
    pub(crate) fn free_thousandths(&self) -> u64 {
        self.free_thousandths
    }

    /// The cards that will do and have room for what a request asks of one card. `terms`: what the
    /// pod says of cards beside the request.
    pub(crate) fn fitting<'a>(
        &'a self,
        request: CardNeed,
        terms: Option<&'a CardTerms>,
    ) -> impl Iterator<Item = Fitting> + 'a {
        let cards = self.with_free(request.thousandths(), terms);
        let fitting = cards.map(move |(position, (_, size, used))| {
            Fitting::new(position, size, used, Asked::new(&request, terms))
        });
        fitting.filter(|card| card.fits.0 > 0)
    }

    /// What a container that asks for cards gets. The pod fits. `cards`: those with room, in the
    /// order of their costs.
    pub(crate) fn hold_one(
        &self,
        need: &CardNeed,
        terms: Option<&CardTerms>,
        cards: &[Fitting],
    ) -> Held {
        let liking = Liking::of(terms, need.count(), self.links.as_deref());
        self.parts(need, &liking.choose(cards, need.count()))
    }

    /// The parts that a container gets on the cards at these positions, in the order of their ids.
    /// A card in MIG mode may be there several times.
    pub(crate) fn parts(&self, request: &CardNeed, positions: &[usize]) -> Held {
        let mut devices = Vec::with_capacity(positions.len());
        for (position, (id, size, mut used)) in self.named().enumerate() {
            for _ in positions.iter().filter(|chosen| **chosen == position) {
                let (device, instance) = size.device(used, request);
                used.raise_by(device);
                devices.push(device.part(id, instance));
            }
        }
        Held::of_container(devices)
    }

    /// Each named card: its id, what it has, and what is used of it.
    fn named(&self) -> impl Iterator<Item = (&str, &Size, Used)> {
        let cards = self.cards.iter();
        cards.filter_map(|card| Some((&*card.id, card.size.as_ref()?, card.used)))
    }

    /// The named cards that a pod allows, each with its place among all named ones.
    fn allowed<'a>(
        &'a self,
        terms: Option<&'a CardTerms>,
    ) -> impl Iterator<Item = (usize, (&'a str, &'a Size, Used))> {
        self.with_free(0, terms)
    }

    /// The named cards that a pod allows and of which at least this part is free, in thousandths of
    /// a card.
    fn with_free<'a>(
        &'a self,
        least: u16,
        terms: Option<&'a CardTerms>,
    ) -> impl Iterator<Item = (usize, (&'a str, &'a Size, Used))> {
        let modes = modes_of(terms);
        let rules = terms.map_or(&[][..], |terms| &terms.rules);
        let cards = self.cards.iter().zip(&self.free);
        let named = cards.filter_map(|(card, free)| Some((card, (*free)?)));
        let free = named
            .enumerate()
            .filter(move |(_, (_, free))| *free >= least);
        free.filter_map(move |(position, (card, _))| {
            let (size, mut rules) = (card.size.as_ref()?, rules.iter());
            let is_allowed = modes.allow(size.mig.is_some())
                && rules.all(|rule| rule.allows(&card.id, &card.model));
            is_allowed.then_some((position, (&*card.id, size, card.used)))
        })
    }

    /// How many more pods with this request fit beside the pods on the node. Where several
    /// containers ask, no more than `most` are counted, see [`Cards::pods_with_several`].
    pub(crate) fn multiplicity(
        &self,
        request: &CardNeed,
        terms: Option<&CardTerms>,
        most: u64,
    ) -> u64 {
        if self.by_hami > 0 {
            return 0;
        }
        if let Some(terms) = terms.filter(|terms| !terms.containers.is_empty()) {
            return self.pods_with_several(terms, most);
        }
        let cards = self.with_free(request.thousandths(), terms);
        let asked = Asked::new(request, terms);
        let fits = cards.map(|(_, (_, size, used))| size.fits_in_cell(used, asked));
        pods_on(fits, request.count(), terms)
    }

    /// The most that one card with a need counts for in queues, in thousandths of a card, among
    /// those that the pod allows and that could hold it; `None`: there are none. A card in MIG mode
    /// counts by the memory slices of the smallest profile that is large enough.
    pub(crate) fn counted(&self, need: &CardNeed, terms: Option<&CardTerms>) -> Option<u64> {
        let cards = self.allowed(terms);
        let counted = cards.filter_map(|(_, (_, size, _))| match &size.mig {
            Some(model) => model.counted(need),
            None if need.memory().of_card(size.memory_mib) > size.memory_mib => None,
            None => Some(need.counted(Some(size.memory_mib))),
        });
        counted.max()
    }

    /// How many pods with this request would fit if no pod were on the node.
    pub(crate) fn multiplicity_empty(&self, request: &CardNeed, terms: Option<&CardTerms>) -> u64 {
        if let Some(terms) = terms.filter(|terms| !terms.containers.is_empty()) {
            return self.pods_with_several_empty(terms);
        }
        let (fits, asked) = (self.allowed(terms), Asked::new(request, terms));
        let fits = fits.map(|(_, (_, size, _))| size.fits_in_cell(Used::default(), asked));
        pods_on(fits, request.count(), terms)
    }

    /// The shortage that keeps a pod with this request from a node without room for one: more of
    /// this alone would let the pod in.
    pub(crate) fn shortage(&self, request: &CardNeed, terms: Option<&CardTerms>) -> CardShortage {
        match terms {
            _ if self.by_hami > 0 => CardShortage::OwnScheduler,
            Some(terms) if !terms.containers.is_empty() => self.shortage_of_several(terms),
            _ => self.shortage_of_one(request, terms),
        }
    }

    /// Whether a pod cannot have what it holds: a card is closed or not named, more is taken of it
    /// than it has, or HAMi's own scheduler gives the cards away.
    pub(crate) fn fail(&self, parts: &[CardPart]) -> bool {
        let is_given_by_others = self.by_hami > 0 && !parts.is_empty();
        let mut parts = parts.iter();
        is_given_by_others
            || parts.any(|part| {
                let known = self.cards.binary_search_by(|card| card.id.cmp(&part.card));
                let card = known.ok().map(|position| &self.cards[position]);
                let size = card.and_then(|card| Some((card.size.as_ref()?, card.used)));
                size.is_none_or(|(size, used)| size.fails(used, part))
            })
    }

    /// Adds what is free of each named card to a hash.
    pub(crate) fn hash_room(&self, hasher: &mut impl Hasher) {
        for card in self.cards.iter().filter(|card| card.size.is_some()) {
            (&card.id, &card.model, &card.size, card.used).hash(hasher);
        }
    }

    /// Each named card, in the order of their ids: whether pods hold parts of it, and whether it
    /// has room for what one of these requests asks of one card.
    pub(crate) fn openings<'a>(
        &'a self,
        requests: &'a [CardNeed],
    ) -> impl Iterator<Item = (bool, bool)> + 'a {
        self.named().map(|(_, size, used)| {
            let mut requests = requests.iter();
            let has_room = requests.any(|request| size.fits(used, request) > 0);
            (used.slots > 0, has_room)
        })
    }

    /// The sorts of pods that hold cards of the node.
    pub(crate) fn sorts(&self) -> impl Iterator<Item = Sort> + '_ {
        self.sorts.iter().map(|(sort, _)| *sort)
    }

    /// The taken part of each card, in words.
    pub(crate) fn describe(&self) -> Vec<String> {
        let used = self.cards.iter().filter(|card| card.used.slots > 0);
        let describe = |card: &Card| {
            let (id, used) = (&card.id, card.used);
            let (thousandths, memory_mib) = (used.thousandths, used.memory_mib);
            alloc::format!("{thousandths} thousandths and {memory_mib} MiB of card {id} taken")
        };
        used.map(describe).collect()
    }
}

/// The free part of a card, in thousandths, as placements look at it.
fn narrowed(free_thousandths: u64) -> u16 {
    u16::try_from(free_thousandths).unwrap_or(u16::MAX)
}

/// Which cards a pod allows by the way in which they are divided.
fn modes_of(terms: Option<&CardTerms>) -> CardModes {
    terms.map_or(CardModes::default(), |terms| terms.modes)
}

/// How many pods fit that take `count` parts each, of which a pod may have to get all in one cell.
/// `fits`: of each card its cell, and for how many parts it has room.
fn pods_on(fits: impl Iterator<Item = (u32, Fits)>, count: u16, terms: Option<&CardTerms>) -> u64 {
    if !is_bound(terms) || count == 1 {
        return pods_that_fit(fits.map(|(_, fits)| fits), count);
    }
    let mut fits: SmallVec<[(u32, Fits); 8]> = fits.collect();
    fits.sort_unstable();
    let cells = fits.chunk_by(|(cell, _), (next, _)| cell == next);
    let pods = cells.map(|cell| pods_that_fit(cell.iter().map(|(_, fits)| *fits), count));
    pods.sum()
}

/// Whether a container of a pod has to get all its cards in one cell.
fn is_bound(terms: Option<&CardTerms>) -> bool {
    terms.is_some_and(|terms| terms.in_one_cell)
}
