//! What a score sees of a node.

use crate::facts::{Amount, WHOLE_CARD};
use crate::ids::ModelId;
use crate::resources::ResourceNames;
use crate::state::kinds::Kind;
use crate::state::node::Node;
use smallvec::SmallVec;

/// How much is free of each card: each amount above 0 once, rising, with how many cards have it.
pub(crate) type Frees = SmallVec<[(u16, u32); 8]>;

/// The free room of a node, as far as scores look at it.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) cpu_milli: Amount,
    pub(crate) frees: Frees,
    /// How many cards the node has, used ones too.
    pub(crate) cards: u32,
    /// The GPU model; `None`: the node names none.
    pub(crate) model: Option<ModelId>,
}

impl View {
    /// The view of a node. If the node does not name its cards, as many whole ones are free as its
    /// free `nvidia.com/gpu`.
    pub(crate) fn of(node: &Node) -> Self {
        let mut view = Self {
            cpu_milli: node.free(ResourceNames::cpu()),
            frees: Frees::new(),
            cards: 0,
            model: node.known.as_ref().and_then(|known| known.model_id),
        };
        if node.cards.is_empty() {
            let count = |amount| u32::try_from(amount).unwrap_or(u32::MAX);
            view.cards = count(node.allocatable(ResourceNames::gpu()));
            view.add(WHOLE_CARD, count(node.free(ResourceNames::gpu())));
        } else {
            for free in node.cards.free() {
                view.cards += 1;
                view.add(free, 1);
            }
        }
        view
    }

    fn add(&mut self, free: u16, cards: u32) {
        if free == 0 || cards == 0 {
            return;
        }
        match self.frees.binary_search_by_key(&free, |(free, _)| *free) {
            Ok(position) => self.frees[position].1 += cards,
            Err(position) => self.frees.insert(position, (free, cards)),
        }
    }

    fn remove(&mut self, free: u16, cards: u32) {
        if let Ok(position) = self.frees.binary_search_by_key(&free, |(free, _)| *free) {
            let left = &mut self.frees[position].1;
            *left = left.saturating_sub(cards);
            if *left == 0 {
                self.frees.remove(position);
            }
        }
    }

    /// The free parts of all cards together, in thousandths.
    pub(crate) fn idle(&self) -> u64 {
        self.frees
            .iter()
            .map(|(free, cards)| u64::from(*free) * u64::from(*cards))
            .sum()
    }

    /// Whether no card is in use.
    pub(crate) fn is_empty(&self) -> bool {
        self.idle() == u64::from(self.cards) * u64::from(WHOLE_CARD)
    }

    /// How much is free of the cards that a pod of the kind may get, in thousandths: one amount for
    /// each choice. `None`: no card will do.
    pub(crate) fn choice(&self, node: &Node, kind: &Kind) -> Option<SmallVec<[u16; 8]>> {
        let whole = SmallVec::from_slice(&[WHOLE_CARD]);
        if self.cpu_milli < kind.pod.cpu_milli || !kind.runs_on(self.model) {
            return None;
        }
        let Some(need) = kind.pod.cards else {
            return Some(whole);
        };
        if !node.cards.is_empty() {
            let fitting = node.cards.fitting(need, None).map(|card| card.free);
            let mut frees: SmallVec<[u16; 8]> = fitting.collect();
            let enough = frees.len() >= usize::from(need.count());
            frees.sort_unstable();
            frees.dedup();
            return enough.then_some(frees);
        }
        let free = self.frees.last().map_or(0, |(_, cards)| *cards);
        (!need.is_fraction() && free >= u32::from(need.count())).then_some(whole)
    }

    /// The room that is left beside one more pod of the kind on a card with `free` free
    /// thousandths.
    pub(crate) fn after(&self, kind: &Kind, free: u16) -> Self {
        let mut after = self.clone();
        after.cpu_milli = after.cpu_milli.saturating_sub(kind.pod.cpu_milli);
        if let Some(need) = kind.pod.cards {
            after.remove(free, need.count().into());
            after.add(free.saturating_sub(need.thousandths()), need.count().into());
        }
        after
    }
}
