//! Amounts and labels: lists by name, and how to look into them.

use alloc::{boxed::Box, vec::Vec};

/// An amount of a resource in its base unit: thousandths of a core for `cpu`, bytes for `memory`,
/// `ephemeral-storage` and `hugepages-*`, whole pieces for everything else.
///
/// Always at most [`AMOUNT_MAX`], so that one product with a weight fits a `u128`.
pub type Amount = u64;

/// The largest amount: 2^55 - 1. Conversion reports larger ones as a problem.
pub const AMOUNT_MAX: Amount = (1 << 55) - 1;

/// A sum of amounts as one: what is above what an amount holds counts as that much. Sums themselves
/// are kept in 128 bits, so that whatever is taken off again leaves what was there before.
#[must_use]
pub(crate) fn saturated(sum: u128) -> Amount {
    Amount::try_from(sum).unwrap_or(Amount::MAX)
}

/// Amounts by resource name, sorted by name, each name once, no zero.
pub type Amounts = Vec<(Box<str>, Amount)>;

/// Labels or annotations, sorted by key, each key once.
pub type Labels = Vec<(Box<str>, Box<str>)>;

/// The value of a label (or annotation); `None` where the key is absent.
#[must_use]
pub fn label<'labels>(labels: &'labels Labels, key: &str) -> Option<&'labels str> {
    let position = labels
        .binary_search_by(|(name, _)| (**name).cmp(key))
        .ok()?;
    Some(&labels[position].1)
}

/// The amount of a resource; 0 where it is absent.
#[must_use]
pub fn amount(amounts: &Amounts, resource: &str) -> Amount {
    match amounts.binary_search_by(|(name, _)| (**name).cmp(resource)) {
        Ok(position) => amounts[position].1,
        Err(_) => 0,
    }
}
