//! Which leaf is served next.
//!
//! Every inner queue (and the root) keeps its *candidates*, the children that have a gang to be
//! tried, in a priority queue. A child is judged by the gang that it would send: a leaf by its own
//! next gang, an inner queue by that of its first candidate. Changes only mark queues. Keys are
//! computed when the next leaf is asked for, deepest first, so that each queue on a changed path is
//! computed once:
//!
//! ```text
//! charge ──> mark leaf ──> (next_leaf) leaf's key ──> parent's front, use and key ──> ... ──> root
//! ```
//!
//! A change costs, at each queue on its path, O(log siblings) for the queue itself and O(candidates
//! below it x keys) for its rescaled use. Candidates whose quota is larger than what their parent
//! holds get new keys, too, if they hold something. They are fewer than the units of such a quota,
//! because together they hold no more than their parent does.
//!
//! Each *line-up* is a set of candidates with an order of its own. All line-ups are judged by one
//! ledger, and using one of them leaves the others as they are.

mod standing;

pub use standing::{ComparedBy, DecidedBy, DecidingQuota, DominantShare, Level, Sibling};

use super::ledger::Matrix;
use super::node::{Node, Terms};
use super::shares::{ChildUse, Fraction, dominant, rescale};
use super::tree::Structure;
use super::{Demand, GovernedId, QueueId, QueueTree, View, amount_in};
use crate::facts::{Amount, UnixMs};
use alloc::{sync::Arc, vec, vec::Vec};
use core::cmp::{Ordering, Reverse};
use core::hash::BuildHasherDefault;
use priority_queue::PriorityQueue;
use rustc_hash::FxHasher;
use smallvec::SmallVec;

/// Where a candidate stands among its siblings; the smallest key is served first.
#[derive(Debug, Clone)]
struct Key {
    /// The part of its quota that the queue has used; `None`: its gang would not leave it within
    /// quota.
    quota_used: Option<QuotaUse>,
    priority: i32,
    /// Whether the queue's weight is 0 for a key that its gang asks for.
    weightless: bool,
    /// The dominant share over the weight.
    share: Fraction,
    /// The dominant share over the weight after the start of the gang.
    share_after: Fraction,
    created_ms: UnixMs,
    name: Arc<str>,
    /// The part of `share` that is within quota. Takes no part in the order.
    quota_share: Fraction,
}

/// Which part of its quota a queue has used: the largest part of any key that its next gang asks
/// for. Queues that have used equal parts are compared by what they would have used after the
/// start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QuotaUse {
    used: Fraction,
    /// The largest part of any of these quotas, as they are written, after the start of the gang.
    after: Fraction,
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
            .then_with(|| self.share_after.cmp(&other.share_after))
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

impl Key {
    /// Whether this key comes before another one by something that the start or the end of a gang
    /// seldom turns round: it stays within its quota and the other queue already holds more than
    /// its own, or by priority, or by a weight of 0. How much each of the two uses of its quota, or
    /// of what there is, does not count.
    fn lastingly_precedes(&self, other: &Self) -> bool {
        let is_owed = self.quota_used.is_some() && other.quota_share < other.share;
        let is_equal = self.quota_used == other.quota_used;
        let by_rank = (other.priority, self.weightless) < (self.priority, other.weightless);
        is_owed || (is_equal && by_rank)
    }
}

type Candidates = PriorityQueue<QueueId, Reverse<Key>, BuildHasherDefault<FxHasher>>;

/// A set of candidates that is kept in order. [`LineUp::FIRST`] always exists; another line-up
/// exists from its first candidate on, until the hierarchy is built anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineUp(u8);

impl LineUp {
    /// The line-up that always exists.
    pub(crate) const FIRST: Self = Self(0);

    /// The line-up of this number.
    pub(crate) const fn new(number: u8) -> Self {
        Self(number)
    }

    /// The number of the line-up.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How many keys an order has computed, and how many children it looked at for them.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) keys: u64,
    pub(super) children: u64,
}

/// The order of one line-up.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// What the next gang of each leaf asks for; `None`: the leaf has no gang to be tried.
    pub(super) heads: Vec<Option<Demand>>,
    /// The candidates of each inner queue and of the root.
    candidates: Vec<Candidates>,
    /// The leaf whose gang each queue would send.
    sends: Vec<Option<QueueId>>,
    /// The rescaled use of each inner queue that is a candidate.
    used: Matrix,
    /// What each inner queue held when the keys of its children were last computed.
    seen: Matrix,
    /// The marked queues by depth, and whether each queue is marked.
    marked: Vec<Vec<QueueId>>,
    is_marked: Vec<bool>,
    #[cfg(test)]
    pub(super) counted: Counted,
}

impl Order {
    /// Takes all candidates out, and makes room for these queues and so many keys.
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

    /// Makes room for the queues of an edited hierarchy; the candidates stay.
    pub(super) fn grow(&mut self, structure: &Structure) {
        let queues = structure.len().max(self.heads.len());
        self.heads.resize(queues, None);
        self.candidates.resize_with(queues, Candidates::default);
        self.sends.resize(queues, None);
        self.used.grow(queues);
        self.seen.grow(queues);
        self.is_marked.resize(queues, false);
    }

    /// Marks a queue: something that its key depends on has changed.
    pub(super) fn mark(&mut self, structure: &Structure, queue: QueueId) {
        if self.is_marked[queue.index()] {
            return;
        }
        let node = structure.node(queue);
        if !node.exists {
            return;
        }
        self.is_marked[queue.index()] = true;
        if self.marked.len() <= node.depth {
            self.marked.resize_with(node.depth + 1, Vec::new);
        }
        self.marked[node.depth].push(queue);
    }

    /// Marks all queues that have candidates: something that all keys depend on has changed.
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

    /// The candidates of an inner queue that need new keys because the amounts that this queue
    /// holds have changed. A quota counts for no more than the parent holds, so a quota larger than
    /// what the parent held before, or holds now, counts for something else. A candidate that holds
    /// nothing of a resource needs no new key: the used part of its quota is 0 in any case.
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

    /// Whether the front of the queue at which the ways to the candidates part, if there are just
    /// two of them, comes before the other one lastingly.
    fn first_is_lasting(&self) -> bool {
        let mut at = QueueId::ROOT;
        loop {
            let Some((front, key)) = self.front(at) else {
                return false;
            };
            let mut others = self.candidates[at.index()].iter();
            if let Some((_, Reverse(other))) = others.find(|(id, _)| **id != front) {
                return key.lastingly_precedes(other);
            }
            at = front;
        }
    }

    fn sends_of_front(&self, queue: QueueId) -> Option<QueueId> {
        let (front, _) = self.front(queue)?;
        self.sends[front.index()]
    }

    /// Computes what the queue would send, its use and its key; `None`: the queue is no candidate.
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
        let asked = |key| amount_in(head, key);
        let asks = |key| asked(key) > 0;
        // A leaf's share is that of everything that the leaf holds. An inner queue's share is that
        // of what its next gang asks for: a resource that the gang does not need, but that other
        // children hold much of, must not keep the gang waiting. If the gang asks for nothing that
        // is divided, everything counts.
        let all = node.is_leaf() || !node.terms.iter().any(|(key, _)| asks(*key));
        let counts = |key| all || asks(key);
        let used = self.used(view, id);
        Some(Key {
            quota_used: quota_used(view, node, view.ledger.allocated.row(id), asked),
            priority: node.priority,
            weightless: node
                .terms
                .iter()
                .any(|(key, terms)| terms.weight == 0 && asks(*key)),
            share: dominant(node, view.ledger, counts, |key, _| used[key.index()]),
            share_after: dominant(node, view.ledger, counts, |key, _| {
                used[key.index()].saturating_add(asked(key))
            }),
            created_ms: node.created_ms,
            name: Arc::clone(&node.name),
            quota_share: dominant(node, view.ledger, counts, |key, terms| {
                used[key.index()].min(terms.quota)
            }),
        })
    }

    /// What a candidate uses, by key: for a leaf what it holds, for an inner queue its rescaled
    /// use.
    fn used<'a>(&'a self, view: View<'a>, id: QueueId) -> &'a [Amount] {
        if view.structure.node(id).is_leaf() {
            view.ledger.allocated.row(id)
        } else {
            self.used.row(id)
        }
    }

    /// The rescaled use of an inner queue, from its candidates, which must be up to date.
    ///
    /// Blocked children are not looked at: all queues below them are blocked, too, so what they use
    /// is what they hold, and that is part of what their parent holds.
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
            rescale(&mut total, &child, front.share, &view.ledger.grains);
        }
        total
    }
}

/// The part of its quota that a queue has used: the largest ratio of held to quota among the keys
/// that its next gang asks for; `None`: the gang would not leave the queue within quota.
///
/// A gang leaves its queue within quota if *every* divided key that it asks for stays within its
/// quota: a start beyond that could be taken back at once. A quota of 0 (also that of a queue
/// without an entry) holds no gang, and a gang that asks for nothing that is divided is within no
/// quota. For the part that is used, a quota counts for no more than the parent has: below the root
/// for what there is, elsewhere for what the parent holds. So quotas that promise more than there
/// is are filled in the proportions in which `filling` divides them, at every level.
fn quota_used(
    view: View<'_>,
    node: &Node,
    allocated: &[Amount],
    asked: impl Fn(GovernedId) -> Amount,
) -> Option<QuotaUse> {
    let most = |one: QuotaUse, other: QuotaUse| QuotaUse {
        used: one.used.max(other.used),
        after: one.after.max(other.after),
    };
    quotas(view, node, allocated, asked)
        .map(|quota| quota.used())
        .reduce(|one, other| Some(most(one?, other?)))
        .flatten()
}

/// One of the quotas of a queue that decide about what its next gang asks for.
struct Quota {
    key: GovernedId,
    allocated: Amount,
    /// How much more the gang asks for.
    asked: Amount,
    quota: Amount,
    /// What the quota counts for: no more than the parent has.
    counts_as: Amount,
    /// The grain of the key.
    grain: Amount,
}

impl Quota {
    /// The part of the quota that is used; `None`: the gang would exceed the quota.
    fn used(&self) -> Option<QuotaUse> {
        let after = self.allocated.saturating_add(self.asked);
        (after <= self.quota).then(|| QuotaUse {
            used: Fraction::new(self.allocated / self.grain, self.counts_as / self.grain),
            after: Fraction::new(after / self.grain, self.quota / self.grain),
        })
    }
}

fn quotas(
    view: View<'_>,
    node: &Node,
    allocated: &[Amount],
    asked: impl Fn(GovernedId) -> Amount,
) -> impl Iterator<Item = Quota> {
    let terms = node.quota_terms(view.keys, |key| asked(key) > 0);
    let quota = |(key, terms): &(GovernedId, Terms)| {
        let parent_amount = match node.parent {
            Some(parent) if parent != QueueId::ROOT => {
                view.ledger.allocated.row(parent)[key.index()]
            }
            _ => terms.reach.min(view.ledger.capacity(*key)),
        };
        Quota {
            key: *key,
            allocated: allocated[key.index()],
            asked: asked(*key),
            quota: terms.quota,
            counts_as: terms.quota.min(parent_amount),
            grain: view.ledger.grains.of(*key),
        }
    };
    let found: SmallVec<[Quota; 4]> = terms.map(quota).collect();
    found.into_iter()
}

impl QueueTree {
    /// Sets what the next gang of a leaf asks for, of the keys that are governed (it may ask for
    /// none of them); `None`: the leaf has no gang to be tried. Does nothing for a queue that is
    /// not a leaf.
    ///
    /// The trap: a leaf without a candidate counts as *blocked* in the hierarchical shares. So a
    /// gang must not stay a candidate after it was refused, until something happens that may help
    /// it.
    pub(crate) fn set_candidate(&mut self, line_up: LineUp, leaf: QueueId, head: Option<Demand>) {
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
    /// At each queue from the root down, the children that have a candidate are compared: first
    /// come queues that their next gang leaves within quota, by the smallest used part of it, now
    /// and then after the start; then the higher priority; then weights other than 0 before weight
    /// 0; then the smaller dominant share over weight, now and then after the start; then the older
    /// queue, then the name.
    pub(crate) fn next_leaf(&mut self, line_up: LineUp) -> Option<QueueId> {
        let order = self.orders.get_mut(line_up.index())?;
        order.settle(View {
            structure: &self.structure,
            keys: &self.keys,
            ledger: &self.ledger,
        });
        order.sends[0]
    }

    /// Whether the leaf that is served next in a line-up of two, which [`Self::next_leaf`] was
    /// asked for just now, comes before the other one by quota, by priority or by a weight of 0:
    /// then what gangs that start or end take or leave seldom turns the two round.
    pub(crate) fn is_first_lasting(&self, line_up: LineUp) -> bool {
        let order = self.orders.get(line_up.index());
        order.is_some_and(Order::first_is_lasting)
    }

    /// Marks a queue in every line-up: something that its key depends on has changed.
    pub(super) fn mark(&mut self, queue: QueueId) {
        for order in &mut self.orders {
            order.mark(&self.structure, queue);
        }
    }

    /// Takes a queue out of every line-up, because it is deleted or is no leaf any more.
    pub(super) fn forget_candidate(&mut self, queue: QueueId, parent: QueueId) {
        for order in &mut self.orders {
            order.heads[queue.index()] = None;
            order.sends[queue.index()] = None;
            order.candidates[parent.index()].remove(&queue);
        }
    }

    /// Marks all queues in every line-up: something that all keys depend on has changed.
    pub(super) fn mark_all(&mut self) {
        for order in &mut self.orders {
            order.mark_all(&self.structure);
        }
    }
}
