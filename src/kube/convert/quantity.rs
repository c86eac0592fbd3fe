//! Kubernetes quantities, exactly, in integers.

use gpu_batch_policies::facts::{AMOUNT_MAX, Amount};

/// An amount in thousandths of a unit, rounded up: the API server's own precision. Sums are made of
/// these and rounded once at the end, as kube-scheduler does.
pub(crate) type Thousandths = u128;

/// An amount in billionths of a unit, rounded up: as much as a quantity can tell. The API server
/// reads these, and rounds what it stores up to [`Thousandths`].
pub(crate) type Billionths = u128;

/// How many [`Billionths`] a thousandth has.
pub(super) const BILLIONTHS_PER_THOUSANDTH: Billionths = 1_000_000;

/// Larger than every amount by far, and so small that sums of a pod's containers in thousandths
/// cannot overflow: 1.5 MB hold fewer than 2^21 quantities.
const BILLIONTHS_MAX: Billionths = (1 << 100) * BILLIONTHS_PER_THOUSANDTH;

/// A decimal point that is moved by more steps than this has a certain outcome: the largest amount
/// has 37 digits, and what is below a billionth is rounded up to one.
const MAX_SHIFT: i64 = 64;

/// Why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuantityError {
    #[error("is not a quantity; write it like 8, 500m or 16Gi")]
    Malformed,
    #[error("is negative")]
    Negative,
    #[error("is larger than 2^55 - 1 base units")]
    TooLarge,
}

/// Reads a quantity: `[+-]digits[.digits]` and a suffix of `n u m k M G T P E`, of `Ki Mi Gi Ti Pi
/// Ei`, or of an exponent (`e3`, `E-3`).
///
/// As in Kubernetes, the least bit counts: `0.1n` of something is rounded up, not down to nothing.
pub(crate) fn thousandths(text: &str) -> Result<Thousandths, QuantityError> {
    billionths(text).map(|amount| amount.div_ceil(BILLIONTHS_PER_THOUSANDTH))
}

/// Reads a quantity before it is rounded to thousandths.
pub(super) fn billionths(text: &str) -> Result<Billionths, QuantityError> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, rest) = digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(QuantityError::Malformed);
    }
    let unit = Unit::parse(suffix).ok_or(QuantityError::Malformed)?;
    let amount = unit.apply(whole, fraction);
    if negative && amount > 0 {
        return Err(QuantityError::Negative);
    }
    Ok(amount)
}

/// An amount of a resource in its base unit: thousandths of `cpu`, whole units of everything else,
/// rounded up. [`QuantityError::TooLarge`] above [`AMOUNT_MAX`].
pub(super) fn base_units(
    resource: &str,
    thousandths: Thousandths,
) -> Result<Amount, QuantityError> {
    let amount = if resource == "cpu" {
        thousandths
    } else {
        thousandths.div_ceil(1_000)
    };
    in_range(amount)
}

/// A number of base units as an amount. [`QuantityError::TooLarge`] above [`AMOUNT_MAX`].
pub(super) fn in_range(units: u128) -> Result<Amount, QuantityError> {
    match Amount::try_from(units) {
        Ok(amount) if amount <= AMOUNT_MAX => Ok(amount),
        _ => Err(QuantityError::TooLarge),
    }
}

/// Reads a quantity of a resource into its base unit.
pub(crate) fn amount(resource: &str, text: &str) -> Result<Amount, QuantityError> {
    thousandths(text).and_then(|amount| base_units(resource, amount))
}

/// Splits the leading decimal digits off.
fn digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// What a suffix multiplies by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A power of ten.
    Decimal(i64),
    /// A power of two.
    Binary(u32),
}

impl Unit {
    fn parse(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            _ => Self::Decimal(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
        })
    }

    /// `whole.fraction` times the unit, in billionths, rounded up; at most [`BILLIONTHS_MAX`].
    fn apply(self, whole: &str, fraction: &str) -> Billionths {
        let (exponent, multiplier) = match self {
            Self::Decimal(exponent) => (exponent.saturating_add(9), 1),
            Self::Binary(exponent) => (9, 1 << exponent),
        };
        let whole = whole.trim_start_matches('0');
        let small = fraction.trim_start_matches('0');
        let (digits, point) = if whole.is_empty() {
            (small.to_owned(), -length(fraction) + length(small))
        } else {
            (format!("{whole}{fraction}"), length(whole))
        };
        // How many of the digits, the first of which is not zero, stand before the moved point.
        let point = point.saturating_add(exponent);
        if digits.is_empty() {
            return 0;
        }
        if point > MAX_SHIFT {
            return BILLIONTHS_MAX;
        }
        let before = usize::try_from(point).unwrap_or(0);
        let (head, tail) = digits.split_at(before.min(digits.len()));
        let missing = std::iter::repeat_n(b'0', before - head.len());
        let units = head.bytes().chain(missing).fold(0, |units: u128, byte| {
            (units * 10 + digit(byte)).min(BILLIONTHS_MAX)
        });
        // Rounding up at each digit, from the last to the first, is rounding up once at the end:
        // ceil((a + x) / n) = ceil((a + ceil(x)) / n) for whole a and n.
        let mut rest = tail.bytes().rev().fold(0, |rest: u128, byte| {
            (digit(byte) * multiplier + rest).div_ceil(10)
        });
        for _ in 0..point.saturating_neg().clamp(0, MAX_SHIFT) {
            rest = rest.div_ceil(10);
        }
        let amount = units.saturating_mul(multiplier).saturating_add(rest);
        amount.min(BILLIONTHS_MAX)
    }
}

fn digit(byte: u8) -> u128 {
    u128::from(byte.wrapping_sub(b'0'))
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
