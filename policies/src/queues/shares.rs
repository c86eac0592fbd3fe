//! Shares: exact fractions, the dominant one, and the rescaling of hierarchical DRF.

use super::GovernedId;
use super::grain::Grains;
use super::ledger::Ledger;
use super::node::{Node, Terms};
use crate::facts::{AMOUNT_MAX, Amount};
use alloc::{format, string::String};
use core::cmp::Ordering;

/// An amount over a denominator, compared exactly. Amounts are below 2^55 and denominators (a total
/// times a weight) below 2^119, so a cross product needs more than 128 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fraction {
    amount: Amount,
    denominator: u128,
}

impl Fraction {
    pub(super) const ZERO: Self = Self {
        amount: 0,
        denominator: 1,
    };

    /// `amount / total`. Nothing divided by nothing is 0; an amount divided by nothing is that
    /// amount.
    pub(super) fn new(amount: Amount, total: Amount) -> Self {
        Self {
            amount: amount.min(AMOUNT_MAX),
            denominator: u128::from(total.clamp(1, AMOUNT_MAX)),
        }
    }

    /// `amount / (total x weight)`, the weight in parts of [`WEIGHT_ONE`](super::node::WEIGHT_ONE).
    /// To be compared only with other weighted fractions.
    pub(super) fn weighted(amount: Amount, total: Amount, weight: u64) -> Self {
        let Self {
            amount,
            denominator,
        } = Self::new(amount, total);
        let denominator = denominator * u128::from(weight.max(1));
        Self {
            amount,
            denominator,
        }
    }

    /// The largest amount that makes this fraction no larger than `other`, if it replaces this
    /// fraction's own. `other` must be smaller than this fraction.
    fn lowered_to(self, other: Self) -> Amount {
        if self.denominator == other.denominator {
            return other.amount;
        }
        let quotient = match u128::from(other.amount).checked_mul(self.denominator) {
            Some(product) => product / other.denominator,
            None => long_quotient(product(other.amount, self.denominator), other.denominator),
        };
        Amount::try_from(quotient).map_or(self.amount, |amount| amount.min(self.amount))
    }

    /// `times` times the fraction, rounded down to so many digits after the point and without zeros
    /// at the end.
    pub(super) fn decimal(self, times: u64, digits: usize) -> String {
        let amount = u128::from(self.amount) * u128::from(times);
        let mut text = format!("{}.", amount / self.denominator);
        let mut rest = amount % self.denominator;
        for _ in 0..digits {
            // Denominators are below 2^119.
            rest *= 10;
            text.push_str(&format!("{}", rest / self.denominator));
            rest %= self.denominator;
        }
        text.trim_end_matches('0').trim_end_matches('.').into()
    }

    /// The fraction in millionths, rounded down.
    pub(super) fn millionths(self) -> u64 {
        let millionths = u128::from(self.amount) * 1_000_000 / self.denominator;
        u64::try_from(millionths).unwrap_or(u64::MAX)
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        // Siblings mostly have one weight, and shares of one resource.
        if self.denominator == other.denominator {
            return self.amount.cmp(&other.amount);
        }
        product(self.amount, other.denominator).cmp(&product(other.amount, self.denominator))
    }
}

/// The product, of up to 192 bits, in two parts: all bits but the last 64, and the last 64.
fn product(amount: Amount, denominator: u128) -> (u128, u128) {
    const LAST: u128 = u64::MAX as u128;
    let amount = u128::from(amount);
    let low = amount * (denominator & LAST);
    (amount * (denominator >> 64) + (low >> 64), low & LAST)
}

/// The quotient of a [`product`] and a divisor below 2^127 that is larger than the product's first
/// part, bit by bit.
fn long_quotient((high, low): (u128, u128), divisor: u128) -> u128 {
    let (mut rest, mut quotient) = (high, 0);
    for bit in (0..64).rev() {
        rest = rest << 1 | (low >> bit & 1);
        quotient <<= 1;
        if rest >= divisor {
            rest -= divisor;
            quotient |= 1;
        }
    }
    quotient
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

/// An amount of a key over what there is, times a weight, in grains of the key: where nothing is
/// divided, an amount over nothing is the number of its grains.
pub(super) fn share(ledger: &Ledger, key: GovernedId, amount: Amount, weight: u64) -> Fraction {
    let grain = ledger.grains.of(key);
    Fraction::weighted(amount / grain, ledger.capacity(key) / grain, weight)
}

/// The largest weighted share of a queue over the keys that count.
pub(super) fn dominant(
    node: &Node,
    ledger: &Ledger,
    counts: impl Fn(GovernedId) -> bool,
    amount_of: impl Fn(GovernedId, &Terms) -> Amount,
) -> Fraction {
    node.terms
        .iter()
        .filter(|(key, _)| counts(*key))
        .map(|(key, terms)| share(ledger, *key, amount_of(*key, terms), terms.divisor()))
        .max()
        .unwrap_or(Fraction::ZERO)
}

/// One child of an inner queue that has a gang to be tried, for the rescaling.
pub(super) struct ChildUse<'a> {
    /// The amounts that the child uses, by key; rescaled if the child is an inner queue.
    pub used: &'a [Amount],
    /// The amounts that the child holds, by key.
    pub allocated: &'a [Amount],
    /// The child's dominant share.
    pub share: Fraction,
    /// The part of the share that is within the child's quota.
    pub quota_share: Fraction,
}

/// Lowers an inner queue's use by what one of its children has beyond its turn.
///
/// Hierarchical DRF (Bhattacharya et al., SoCC 2013) judges an inner queue as if no child that
/// still demands something had a larger share than `front`, that of the child that is served next:
/// a child that has run ahead on a resource which no sibling wants must not keep its siblings from
/// theirs. What a child has within its quota is not ahead of its turn. Blocked children count in
/// full, and no child is ever scaled up.
pub(super) fn rescale(
    total: &mut [Amount],
    child: &ChildUse<'_>,
    front: Fraction,
    grains: &Grains,
) {
    let target = front.max(child.quota_share);
    let lowered = (child.share > target).then(|| child.share.lowered_to(target));
    let keys = GovernedId::first(total.len());
    let amounts = child.used.iter().zip(child.allocated);
    for ((total, key), (&used, &allocated)) in total.iter_mut().zip(keys).zip(amounts) {
        let counted = match lowered {
            Some(amount) => {
                let grain = grains.of(key);
                scaled(used / grain, amount, child.share.amount) * grain
            }
            None => used,
        };
        *total = total.saturating_sub(allocated.saturating_sub(counted));
    }
}

/// `amount x part / whole`, rounded down.
fn scaled(amount: Amount, part: Amount, whole: Amount) -> Amount {
    // Dividing 128 bits takes ten times as long.
    if let Some(product) = amount.checked_mul(part) {
        return product / whole.max(1);
    }
    let product = u128::from(amount) * u128::from(part) / u128::from(whole.max(1));
    Amount::try_from(product).unwrap_or(amount)
}

#[cfg(test)]
mod tests {
    use super::Fraction;
    use crate::facts::AMOUNT_MAX;
    use alloc::format;
    use num_rational::BigRational;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(digits, bits)| digits >> bits)
    }

    fn exact(fraction: Fraction) -> BigRational {
        BigRational::new(fraction.amount.into(), fraction.denominator.into())
    }

    #[test]
    fn as_many_digits_are_written_as_are_asked_for() {
        let third = Fraction::new(1, 3);
        assert_eq!(third.decimal(1, 6), "0.333333");
        assert_eq!(third.decimal(6, 6), "2");
        assert_eq!(third.decimal(1, 30), format!("0.{}", "3".repeat(30)));
        assert_eq!(Fraction::ZERO.decimal(1, 6), "0");
        assert_eq!(Fraction::new(5, 4).decimal(1, 6), "1.25");
        let least = Fraction::weighted(1, AMOUNT_MAX, u64::MAX);
        assert!(
            least
                .decimal(u64::MAX, 20)
                .starts_with("0.0000000000000000")
        );
    }

    proptest! {
        #[test]
        fn fractions_of_any_size_are_compared_and_lowered_exactly(
            one in (number(), number(), number()),
            other in (number(), number(), number()),
            alike in any::<bool>(),
        ) {
            let other = match alike {
                true => (other.0, one.1, one.2),
                false => other,
            };
            let weighted = |(amount, total, weight)| Fraction::weighted(amount, total, weight);
            let (one, other) = (weighted(one), weighted(other));
            prop_assert_eq!(one.cmp(&other), exact(one).cmp(&exact(other)));
            let (large, small) = if one < other { (other, one) } else { (one, other) };
            let lowered = large.lowered_to(small);
            let with = |amount: u64| exact(Fraction { amount, ..large });
            prop_assert!(with(lowered) <= exact(small));
            prop_assert!(lowered >= AMOUNT_MAX || with(lowered + 1) > exact(small) || one == other);
        }
    }
}
