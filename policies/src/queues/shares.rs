//! Shares: exact fractions, the dominant one, and the rescaling of hierarchical DRF.

use super::GovernedId;
use super::ledger::Ledger;
use super::node::{Node, Terms};
use crate::facts::{AMOUNT_MAX, Amount};
use core::cmp::Ordering;

/// An amount over something, compared exactly: amounts are below 2^55 and denominators at most
/// 2^55 x 2^16, so a cross product is below 2^126.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fraction {
    amount: Amount,
    over: u128,
}

impl Fraction {
    pub(super) const ZERO: Self = Self { amount: 0, over: 1 };

    /// `amount / (total x weight)`. Nothing divided by nothing is 0; something divided by nothing
    /// is as large as a fraction of that amount can be.
    pub(super) fn new(amount: Amount, total: Amount, weight: u16) -> Self {
        let total = u128::from(total.clamp(1, AMOUNT_MAX));
        Self {
            amount: amount.min(AMOUNT_MAX),
            over: total * u128::from(weight.max(1)),
        }
    }

    /// The largest amount that, in the place of this fraction's own, makes it no larger than
    /// `other`: at most 2^126 before the division.
    fn lowered_to(self, other: Self) -> Amount {
        let amount = u128::from(other.amount) * self.over / other.over;
        Amount::try_from(amount).map_or(self.amount, |amount| amount.min(self.amount))
    }

    /// In millionths, rounded down.
    pub(super) fn millionths(self) -> u64 {
        let millionths = u128::from(self.amount) * 1_000_000 / self.over;
        u64::try_from(millionths).unwrap_or(u64::MAX)
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = u128::from(self.amount) * other.over;
        left.cmp(&(u128::from(other.amount) * self.over))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Fraction {}

/// The largest weighted share of a queue over the keys that count. A weight of 0 counts as 1 here;
/// the order puts such queues last by another rule.
pub(super) fn dominant(
    node: &Node,
    ledger: &Ledger,
    counts: impl Fn(GovernedId) -> bool,
    amount_of: impl Fn(GovernedId, &Terms) -> Amount,
) -> Fraction {
    node.terms
        .iter()
        .filter(|(key, _)| counts(*key))
        .map(|(key, terms)| {
            Fraction::new(amount_of(*key, terms), ledger.capacity(*key), terms.weight)
        })
        .max()
        .unwrap_or(Fraction::ZERO)
}

/// One child of an inner queue that still demands something, for the rescaling.
pub(super) struct ChildUse<'a> {
    /// What it uses, by key; rescaled itself if it is an inner queue.
    pub used: &'a [Amount],
    /// What it holds, by key.
    pub held: &'a [Amount],
    /// Its dominant share.
    pub share: Fraction,
    /// The part of the share that is within its quota.
    pub quota_share: Fraction,
}

/// Lowers an inner queue's use by what one of its children has beyond its turn.
///
/// Hierarchical DRF (Bhattacharya et al., SoCC 2013) judges an inner queue as if each child that
/// still demands something were no further than the one that is served next, whose share is
/// `front`: a child that has run ahead on a resource which nobody else wants must not keep its
/// siblings from theirs. What a child has within its quota is not ahead of its turn. Children that
/// are blocked count in full, and nobody is ever scaled up.
pub(super) fn rescale(total: &mut [Amount], child: &ChildUse<'_>, front: Fraction) {
    let target = front.max(child.quota_share);
    let lowered = (child.share > target).then(|| child.share.lowered_to(target));
    for ((total, &used), &held) in total.iter_mut().zip(child.used).zip(child.held) {
        let counted = match lowered {
            Some(amount) => scaled(used, amount, child.share.amount),
            None => used,
        };
        *total = total.saturating_sub(held.saturating_sub(counted));
    }
}

/// `amount x part / whole`, rounded down.
fn scaled(amount: Amount, part: Amount, whole: Amount) -> Amount {
    let product = u128::from(amount) * u128::from(part) / u128::from(whole.max(1));
    Amount::try_from(product).unwrap_or(amount)
}
