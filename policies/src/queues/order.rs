//! Which leaf is served next.
//!
//! Every inner queue (and the root) keeps its *candidates*, the children that have a gang to be
//! tried, in a priority queue. A child is judged by the gang that it would send: its own if it is a
//! leaf, else that of its first candidate. Changes only mark queues; their keys are computed when
//! the next leaf is asked for, deepest first, so each queue on a changed path is computed once:
//!
//! ```text
//! charge ──> mark leaf ──> (next_leaf) leaf's key ──> parent's front, use and key ──> ... ──> root
//! ```
//!
//! The cost of a change is, at each queue on its path, O(log siblings) for the queue itself and
//! O(candidates below it x keys) for its rescaled use. Where quotas below it are larger than what
//! it holds, candidates with such a quota that hold something get new keys, too: fewer than there
//! are units in that quota, because they hold less than it together.
//!
//! There are several such orders, one for each *line-up*: another set of candidates, all held to
//! the same books. Whoever asks for one set and then for another finds both as they were left.

mod standing;

pub use standing::{Claim, DecidedBy, DominantShare, Level, QuotaClaim, Sibling};

use super::ledger::Matrix;
use super::node::Node;
use super::shares::{ChildUse, Fraction, dominant, rescale};
use super::tree::Structure;
use super::{Demand, GovernedId, QueueId, QueueTree, View};
use crate::facts::{Amount, UnixMs};
use alloc::{sync::Arc, vec, vec::Vec};
use core::cmp::{Ordering, Reverse};
use core::hash::BuildHasherDefault;
use priority_queue::PriorityQueue;
use rustc_hash::FxHasher;
use smallvec::SmallVec;

/// Where a candidate stands among its siblings; the smallest is served first.
#[derive(Debug, Clone)]
struct Key {
    /// Held over quota, of a queue that has quota left.
    quota_used: Option<Fraction>,
    priority: i32,
    /// Its weight is 0 for something that its gang asks for.
    weightless: bool,
    /// The weighted dominant share.
    share: Fraction,
    created_ms: UnixMs,
    name: Arc<str>,
    /// The part of the share that is within quota. Takes no part in the order.
    quota_share: Fraction,
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_quota = match (&self.quota_used, &other.quota_used) {
            (Some(left), Some(right)) => left.cmp(right),
            (left, right) => left.is_none().cmp(&right.is_none()),
        };
        by_quota
            .then_with(|| other.priority.cmp(&self.priority))
            .then_with(|| self.weightless.cmp(&other.weightless))
            .then_with(|| self.share.cmp(&other.share))
            .then_with(|| self.created_ms.cmp(&other.created_ms))
            .then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

type Candidates = PriorityQueue<QueueId, Reverse<Key>, BuildHasherDefault<FxHasher>>;

/// A set of candidates that is kept in its order. The first one always exists; each further one
/// exists from its first candidate on, until the hierarchy is built anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineUp(u8);

impl LineUp {
    /// The one that always exists.
    pub const FIRST: Self = Self(0);

    /// The line-up of a number.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The work of an order.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) keys: u64,
    pub(super) children: u64,
}

/// The order of one line-up.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// What the next gang of each leaf asks for; `None`: there is none to be tried.
    pub(super) heads: Vec<Option<Demand>>,
    /// Of each inner queue and the root.
    candidates: Vec<Candidates>,
    /// The leaf that each queue would send.
    sends: Vec<Option<QueueId>>,
    /// The rescaled use of each inner queue that is a candidate.
    used: Matrix,
    /// What each inner queue held when the keys of its children were computed.
    seen: Matrix,
    /// Marked queues by depth, and whether each queue is marked.
    marked: Vec<Vec<QueueId>>,
    is_marked: Vec<bool>,
    /// How many keys were computed, and how many children were looked at for them.
    #[cfg(test)]
    pub(super) counted: Counted,
}

impl Order {
    /// Forgets everything.
    pub(super) fn reset(&mut self, structure: &Structure, keys: usize) {
        let queues = structure.len();
        *self = Self {
            heads: vec![None; queues],
            candidates: (0..queues).map(|_| Candidates::default()).collect(),
            sends: vec![None; queues],
            used: Matrix::new(queues, keys),
            seen: Matrix::new(queues, keys),
            marked: Vec::new(),
            is_marked: vec![false; queues],
            #[cfg(test)]
            counted: Counted::default(),
        };
    }

    /// Takes in single queues that have come or gone.
    pub(super) fn grow(&mut self, structure: &Structure) {
        let queues = structure.len().max(self.heads.len());
        self.heads.resize(queues, None);
        self.candidates.resize_with(queues, Candidates::default);
        self.sends.resize(queues, None);
        self.used.grow(queues);
        self.seen.grow(queues);
        self.is_marked.resize(queues, false);
    }

    /// Marks one queue: something that its key depends on has changed.
    pub(super) fn mark(&mut self, structure: &Structure, queue: QueueId) {
        let node = structure.node(queue);
        if !node.exists || core::mem::replace(&mut self.is_marked[queue.index()], true) {
            return;
        }
        if self.marked.len() <= node.depth {
            self.marked.resize_with(node.depth + 1, Vec::new);
        }
        self.marked[node.depth].push(queue);
    }

    /// Marks all queues that have candidates: something has changed that all keys depend on.
    pub(super) fn mark_all(&mut self, structure: &Structure) {
        for index in 0..self.sends.len() {
            if self.sends[index].is_some() {
                let id = u32::try_from(index).unwrap_or(u32::MAX);
                self.mark(structure, QueueId(id));
            }
        }
    }

    /// Brings the keys of all marked queues, and of those above them, up to date.
    fn settle(&mut self, view: View<'_>) {
        for depth in (1..self.marked.len()).rev() {
            let mut marked = core::mem::take(&mut self.marked[depth]);
            for id in marked.drain(..) {
                self.is_marked[id.index()] = false;
                let parent = view.structure.parent_id(id);
                self.settle_key(view, id, parent);
                for sibling in self.weighed_otherwise(view, parent) {
                    self.settle_key(view, sibling, parent);
                }
                self.mark(view.structure, parent);
            }
            self.marked[depth] = marked;
        }
        self.sends[0] = self.sends_of_front(QueueId::ROOT);
    }

    fn settle_key(&mut self, view: View<'_>, id: QueueId, parent: QueueId) {
        #[cfg(test)]
        {
            self.counted.keys += 1;
            self.counted.children += self.candidates[id.index()].len() as u64;
        }
        let key = self.key(view, id);
        let siblings = &mut self.candidates[parent.index()];
        match key {
            Some(key) => drop(siblings.push(id, Reverse(key))),
            None => drop(siblings.remove(&id)),
        }
    }

    /// The candidates below an inner queue whose quotas weigh otherwise since what it holds has
    /// changed: those that are larger than it held then, or holds now. Who holds nothing has used
    /// nothing of a quota, however much that weighs.
    fn weighed_otherwise(&mut self, view: View<'_>, parent: QueueId) -> SmallVec<[QueueId; 8]> {
        let (before, now) = (self.seen.row(parent), view.ledger.allocated.row(parent));
        if parent == QueueId::ROOT || before == now {
            return SmallVec::new();
        }
        let larger = |id: &&QueueId| {
            let allocated = view.ledger.allocated.row(**id);
            let mut terms = view.structure.node(**id).terms.iter();
            terms.any(|(key, terms)| {
                let (before, now) = (before[key.index()], now[key.index()]);
                allocated[key.index()] > 0 && before != now && terms.quota > before.min(now)
            })
        };
        let candidates = self.candidates[parent.index()].iter().map(|(id, _)| id);
        let found = candidates.filter(larger).copied().collect();
        self.seen.row_mut(parent).copy_from_slice(now);
        found
    }

    /// The child that an inner queue serves next.
    fn front(&self, queue: QueueId) -> Option<(QueueId, &Key)> {
        let (id, Reverse(key)) = self.candidates[queue.index()].peek()?;
        Some((*id, key))
    }

    fn sends_of_front(&self, queue: QueueId) -> Option<QueueId> {
        let (front, _) = self.front(queue)?;
        self.sends[front.index()]
    }

    /// Computes what the queue would send, its use and its key; `None`: it is no candidate.
    fn key(&mut self, view: View<'_>, id: QueueId) -> Option<Key> {
        let node = view.structure.node(id);
        let sends = if node.is_leaf() {
            self.heads[id.index()].as_ref().map(|_| id)
        } else {
            self.sends_of_front(id)
        };
        self.sends[id.index()] = sends;
        let sends = sends?;
        if !node.is_leaf() {
            let used = self.rescaled(view, id);
            self.used.row_mut(id).copy_from_slice(&used);
        }
        let head = self.heads[sends.index()].as_ref()?;
        let asks = |key| head.iter().any(|(asked, _)| *asked == key);
        // A leaf's share is that of everything it holds. An inner queue's is that of what its next
        // gang asks for: a resource that is not at stake, but that other children of it hold much
        // of, must not keep that gang waiting. Where the gang asks for nothing that is divided,
        // everything counts.
        let all = node.is_leaf() || !node.terms.iter().any(|(key, _)| asks(*key));
        let counts = |key| all || asks(key);
        let used = self.used(view, id);
        Some(Key {
            quota_used: quota_used(view, node, view.ledger.allocated.row(id), asks),
            priority: node.priority,
            weightless: node
                .terms
                .iter()
                .any(|(key, terms)| terms.weight == 0 && asks(*key)),
            share: dominant(node, view.ledger, counts, |key, _| used[key.index()]),
            created_ms: node.created_ms,
            name: Arc::clone(&node.name),
            quota_share: dominant(node, view.ledger, counts, |key, terms| {
                used[key.index()].min(terms.quota)
            }),
        })
    }

    /// What a candidate uses, by key: what a leaf holds, the rescaled use of an inner queue.
    fn used<'a>(&'a self, view: View<'a>, id: QueueId) -> &'a [Amount] {
        if view.structure.node(id).is_leaf() {
            view.ledger.allocated.row(id)
        } else {
            self.used.row(id)
        }
    }

    /// The rescaled use of an inner queue, from its candidates, who are all up to date.
    ///
    /// Blocked children are not looked at: all below them is blocked too, so what they use is what
    /// they hold, and that is part of what their parent holds.
    fn rescaled(&self, view: View<'_>, id: QueueId) -> SmallVec<[Amount; 8]> {
        let mut total = SmallVec::from_slice(view.ledger.allocated.row(id));
        let Some((_, front)) = self.front(id) else {
            return total;
        };
        for (&child, Reverse(key)) in &self.candidates[id.index()] {
            let child = ChildUse {
                used: self.used(view, child),
                allocated: view.ledger.allocated.row(child),
                share: key.share,
                quota_share: key.quota_share,
            };
            rescale(&mut total, &child, front.share);
        }
        total
    }
}

/// How much of its quota a queue has used, by the largest ratio of held to quota among the keys
/// that its next gang asks for; `None`: it has no quota left for that gang.
///
/// Quota is left if *every* divided key that the gang asks for has some left: a quota of 0 (also
/// that of a queue without an entry) is never left, and a gang that asks for nothing that is
/// divided has none. A quota above what the parent has weighs as much as that: of the root what
/// there is, of an inner queue what it holds. So quotas that promise more than there is are filled
/// as they are divided (`filling`), at every level.
fn quota_used(
    view: View<'_>,
    node: &Node,
    allocated: &[Amount],
    asks: impl Fn(GovernedId) -> bool,
) -> Option<Fraction> {
    quotas(view, node, allocated, asks)
        .map(|quota| quota.used())
        .reduce(|most, next| Some(most?.max(next?)))
        .flatten()
}

/// One of the quotas of a queue that decide over what its next gang asks for.
struct Quota {
    key: GovernedId,
    allocated: Amount,
    quota: Amount,
    /// The amount that the quota weighs as.
    counts_as: Amount,
}

impl Quota {
    /// Which part is used; `None`: nothing is left.
    fn used(&self) -> Option<Fraction> {
        (self.allocated < self.quota).then(|| Fraction::new(self.allocated, self.counts_as))
    }
}

fn quotas(
    view: View<'_>,
    node: &Node,
    allocated: &[Amount],
    asks: impl Fn(GovernedId) -> bool,
) -> impl Iterator<Item = Quota> {
    node.quota_terms(view.keys, asks).map(move |(key, terms)| {
        let parent_amount = match node.parent {
            Some(parent) if parent != QueueId::ROOT => {
                view.ledger.allocated.row(parent)[key.index()]
            }
            _ => terms.reach.min(view.ledger.capacity(*key)),
        };
        Quota {
            key: *key,
            allocated: allocated[key.index()],
            quota: terms.quota,
            counts_as: terms.quota.min(parent_amount),
        }
    })
}

impl QueueTree {
    /// Tells what the next gang of a leaf asks for, of the keys that are governed (there may be
    /// none of them); `None`: the leaf has no gang to be tried. A leaf without a candidate counts
    /// as *blocked* in the hierarchical shares, so a gang that has been refused, and that nothing
    /// has happened to since, is no candidate. Only leaves have candidates.
    pub fn set_candidate(&mut self, line_up: LineUp, leaf: QueueId, head: Option<Demand>) {
        while self.orders.len() <= line_up.index() {
            let mut order = Order::default();
            order.reset(&self.structure, self.keys.interned());
            self.orders.push(order);
        }
        let order = &mut self.orders[line_up.index()];
        let node = self.structure.node(leaf);
        if node.exists && node.is_leaf() && order.heads[leaf.index()] != head {
            order.heads[leaf.index()] = head;
            order.mark(&self.structure, leaf);
        }
    }

    /// The leaf whose candidate is to be tried next; `None`: there is no candidate.
    ///
    /// At each queue from the root down, the children that have a candidate are compared: those
    /// with quota left come first, by the smallest part of it used; then the higher priority;
    /// then weight 0 comes last; then the smaller dominant share over weight; then the older one,
    /// then the name.
    #[must_use]
    pub fn next_leaf(&mut self, line_up: LineUp) -> Option<QueueId> {
        let order = self.orders.get_mut(line_up.index())?;
        order.settle(View {
            structure: &self.structure,
            keys: &self.keys,
            ledger: &self.ledger,
        });
        order.sends[0]
    }

    /// Something has changed that the keys of one queue depend on, in every line-up.
    pub(super) fn mark(&mut self, queue: QueueId) {
        for order in &mut self.orders {
            order.mark(&self.structure, queue);
        }
    }

    /// Takes a queue out of every line-up: it has gone, or is no leaf any more.
    pub(super) fn forget_candidate(&mut self, queue: QueueId, parent: QueueId) {
        for order in &mut self.orders {
            order.heads[queue.index()] = None;
            order.sends[queue.index()] = None;
            order.candidates[parent.index()].remove(&queue);
        }
    }

    /// Something has changed that all keys depend on.
    pub(super) fn mark_all(&mut self) {
        for order in &mut self.orders {
            order.mark_all(&self.structure);
        }
    }
}
