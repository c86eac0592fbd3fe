//! What would be fair: the order of [`next_leaf`](super::QueueTree::next_leaf), from an empty
//! cluster, with infinitely small units of what each leaf wants.
//!
//! With infinitely small units all siblings whose turn it is are served at once, so that they stay
//! level; amounts grow on straight lines from one event to the next. An event is: a leaf has all
//! that it wants; a limit is reached or a resource is gone; a queue's quota is used up; a waiting
//! sibling is level with those that are served; another key becomes a queue's dominant one.
//!
//! ```text
//! empty ──> who is served, how fast (bottom up, top down) ──> nobody ──> whole units, trimmed
//!                ^                                │
//!                └── grow until the next event <──┘
//! ```
//!
//! Shares need no rescaling here: from empty nobody gets ahead of its turn, except within quota or
//! by priority, and that counts in full.
//!
//! Exact fractions would double their digits at each event, so amounts are kept in
//! [`Number`]s of 64 significant bits, and what is within 2^-52 counts as level. At the end amounts
//! are cut to whole base units, level by level, so that children never exceed their parent.
//!
//! An event costs O(siblings x keys) at each queue on its path, and there are about two of them for
//! each leaf.

mod flow;
mod number;

use super::ledger::Matrix;
use super::{QueueId, View};
use flow::Filling;

/// The fair shares of all queues, by queue and key; the root's are those of its children together.
pub(super) fn fair_shares(view: View<'_>) -> Matrix {
    let wanted = wanted(view);
    let mut parent_amount = most_per_parent(view);
    let divide = |parent_amount: &Matrix| {
        let filling = Filling::run(view, &wanted, parent_amount);
        whole_units(view, &wanted, &filling)
    };
    let mut shares = divide(&parent_amount);
    for depth in 1..view.structure.depth {
        if lower_over_committed(view, depth, &wanted, &shares, &mut parent_amount) {
            shares = divide(&parent_amount);
        }
    }
    shares
}

/// What each queue wants: a leaf all that its gangs hold and ask for, the others what their leaves
/// want.
fn wanted(view: View<'_>) -> Matrix {
    let mut wanted = Matrix::new(view.structure.len(), view.ledger.keys());
    for &id in view.structure.top_down.iter().rev() {
        if view.structure.node(id).is_leaf() {
            let held = view.ledger.held.row(id);
            let requested = view.ledger.requested.row(id);
            for (key, wanted) in wanted.row_mut(id).iter_mut().enumerate() {
                *wanted = held[key].saturating_add(requested[key]);
            }
        }
        let parent = view.structure.parent_id(id);
        for key in 0..view.ledger.keys() {
            let sum = wanted.row(parent)[key].saturating_add(wanted.row(id)[key]);
            wanted.row_mut(parent)[key] = sum;
        }
    }
    wanted
}

/// The most that each parent can have: its limit, those above it and the capacity.
fn most_per_parent(view: View<'_>) -> Matrix {
    let mut most = Matrix::new(view.structure.len(), view.ledger.keys());
    for id in view.structure.with_root() {
        for key in view.structure.divided_below(id) {
            let capacity = view.ledger.capacity(key);
            most.row_mut(id)[key.index()] = view.structure.reach(id, key).min(capacity);
        }
    }
    most
}

/// Sets what a parent of one level has where its children's quotas, as far as wanted, are more than
/// that. Says whether anything changed.
///
/// What a parent has follows from the divisions above it, so the levels are settled one after the
/// other from the top.
fn lower_over_committed(
    view: View<'_>,
    depth: usize,
    wanted: &Matrix,
    shares: &Matrix,
    parent_amount: &mut Matrix,
) -> bool {
    let mut changed = false;
    let of_level = |id: &&QueueId| view.structure.node(**id).depth == depth;
    for &id in view.structure.top_down.iter().filter(of_level) {
        for key in view.structure.divided_below(id) {
            let has = shares.row(id)[key.index()];
            let claims = view.structure.node(id).children.iter().map(|&child| {
                let terms = view.structure.node(child).terms_of(key);
                let quota = terms.map_or(0, |terms| terms.quota);
                u128::from(quota.min(wanted.row(child)[key.index()]))
            });
            let amount = &mut parent_amount.row_mut(id)[key.index()];
            if claims.sum::<u128>() > u128::from(has) && *amount != has {
                *amount = has;
                changed = true;
            }
        }
    }
    changed
}

/// Cuts amounts to whole base units, parents first, and holds them to what must never be exceeded:
/// the capacity, limits, what is wanted, and the parent's amount. What rounding would give to
/// children beyond that, the last of them does without.
fn whole_units(view: View<'_>, wanted: &Matrix, filling: &Filling<'_>) -> Matrix {
    let mut shares = Matrix::new(view.structure.len(), view.ledger.keys());
    for key in view.ledger.all_keys() {
        let at = key.index();
        let whole = |id: QueueId| filling.amount(id, at).floor().min(wanted.row(id)[at]);
        shares.row_mut(QueueId::ROOT)[at] = whole(QueueId::ROOT).min(view.ledger.capacity(key));
        for id in view.structure.with_root() {
            let mut left = shares.row(id)[at];
            for &child in &view.structure.node(id).children {
                let terms = view.structure.node(child).terms_of(key);
                let limit = terms.and_then(|terms| terms.limit).unwrap_or(left);
                let amount = whole(child).min(limit).min(left);
                shares.row_mut(child)[at] = amount;
                left -= amount;
            }
        }
    }
    shares
}
