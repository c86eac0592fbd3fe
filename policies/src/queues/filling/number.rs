//! Fractions of many digits, without floats.

use crate::facts::Amount;
use core::cmp::Ordering;

/// The power of two of the larger number that two numbers may differ by and still count as equal.
const CLOSE: i32 = -52;

/// A number that is not negative, with 64 significant bits: `mantissa x 2^exponent`.
///
/// Every operation is integer arithmetic and rounds down, so that every machine has equal results.
/// The mantissa of a number other than 0 has its highest bit set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Number {
    mantissa: u64,
    exponent: i32,
}

impl Number {
    pub(super) const ZERO: Self = Self {
        mantissa: 0,
        exponent: 0,
    };
    pub(super) const ONE: Self = Self {
        mantissa: 1 << 63,
        exponent: -63,
    };

    fn normal(value: u128, exponent: i32) -> Self {
        let Some(bits) = value.checked_ilog2() else {
            return Self::ZERO;
        };
        let (mantissa, shift) = if bits > 63 {
            (value >> (bits - 63), bits - 63)
        } else {
            (value << (63 - bits), 0)
        };
        let down = i32::try_from(63u32.saturating_sub(bits)).unwrap_or(0);
        let up = i32::try_from(shift).unwrap_or(0);
        Self {
            mantissa: u64::try_from(mantissa).unwrap_or(u64::MAX),
            exponent: exponent.saturating_add(up - down),
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let (large, small) = if self < other {
            (other, self)
        } else {
            (self, other)
        };
        Self::normal(
            large.wide() + small.aligned(large),
            large.exponent.saturating_sub(62),
        )
    }

    /// The difference; 0 where the other number is larger.
    pub(super) fn minus(self, other: Self) -> Self {
        if self <= other {
            return Self::ZERO;
        }
        Self::normal(
            self.wide() - other.aligned(self),
            self.exponent.saturating_sub(62),
        )
    }

    pub(super) fn times(self, other: Self) -> Self {
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        Self::normal(product, self.exponent.saturating_add(other.exponent))
    }

    /// The quotient; 0 where the other number is 0.
    pub(super) fn divided_by(self, other: Self) -> Self {
        if other.is_zero() {
            return Self::ZERO;
        }
        let quotient = (u128::from(self.mantissa) << 64) / u128::from(other.mantissa);
        let exponent = self.exponent.saturating_sub(other.exponent);
        Self::normal(quotient, exponent.saturating_sub(64))
    }

    /// Whether the number is as large as `other`, or smaller by something negligible.
    pub(super) fn reaches(self, other: Self) -> bool {
        self >= other || other.minus(self).is_negligible_to(other)
    }

    /// Whether the number is at most 2^-52 of `other`: too little to count beside it.
    pub(super) fn is_negligible_to(self, other: Self) -> bool {
        let least = Self {
            exponent: other.exponent.saturating_add(CLOSE),
            ..other
        };
        self <= least
    }

    /// The whole part; a number that is less than about a millionth below a whole one is rounded
    /// up.
    pub(super) fn floor(self) -> Amount {
        let millionth = Self {
            exponent: Self::ONE.exponent - 20,
            ..Self::ONE
        };
        let Self { mantissa, exponent } = self.plus(millionth);
        match exponent {
            0.. => Amount::MAX,
            _ => mantissa.checked_shr(exponent.unsigned_abs()).unwrap_or(0),
        }
    }

    fn wide(self) -> u128 {
        u128::from(self.mantissa) << 62
    }

    /// The result of `wide`, shifted to the exponent of `large`, which must not be smaller.
    fn aligned(self, large: Self) -> u128 {
        if self.is_zero() {
            return 0;
        }
        let distance = large.exponent.saturating_sub(self.exponent);
        self.wide()
            .checked_shr(distance.unsigned_abs())
            .unwrap_or(0)
    }
}

impl From<Amount> for Number {
    fn from(amount: Amount) -> Self {
        Self::normal(u128::from(amount), 0)
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (false, false) => (self.exponent, self.mantissa).cmp(&(other.exponent, other.mantissa)),
            (left, right) => right.cmp(&left),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::Number;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_numbers_are_computed_exactly(a in 0u64..1 << 31, b in 1u64..1 << 31) {
            let (x, y) = (Number::from(a), Number::from(b));
            prop_assert_eq!(x.plus(y).floor(), a + b);
            prop_assert_eq!(x.minus(y).floor(), a.saturating_sub(b));
            prop_assert_eq!(x.times(y).floor(), a * b);
            prop_assert_eq!(x.times(y).divided_by(y).floor(), a);
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x.divided_by(y).floor(), a / b);
        }

        #[test]
        fn thirds_and_the_like_add_up_again(a in 1u64..1 << 40, parts in 1u64..1000) {
            let part = Number::from(a).divided_by(Number::from(parts));
            let sum = (0..parts).fold(Number::ZERO, |sum, _| sum.plus(part));
            prop_assert!(sum.reaches(Number::from(a)) && Number::from(a).reaches(sum));
        }
    }

    #[test]
    fn nothing_is_less_than_anything_and_divides_to_nothing() {
        let tiny = Number::ONE
            .divided_by(Number::from(u64::MAX))
            .divided_by(Number::from(u64::MAX));
        assert!(Number::ZERO < tiny);
        assert_eq!(Number::ONE.divided_by(Number::ZERO), Number::ZERO);
        assert_eq!(tiny.floor(), 0);
        assert_eq!(
            Number::from(u64::MAX).times(Number::from(2)).floor(),
            u64::MAX
        );
        assert!(!tiny.reaches(Number::ONE));
    }
}
