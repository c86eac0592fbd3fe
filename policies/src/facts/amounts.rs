//! Amounts and labels: lists by name, and how to look into them.

use alloc::{boxed::Box, format, string::String, string::ToString, vec::Vec};

/// An amount of a resource in its base unit: thousandths of a core for `cpu`, bytes for `memory`,
/// `ephemeral-storage` and `hugepages-*`, whole pieces for everything else.
///
/// The base unit of `nvidia.com/gpu` is a piece on nodes and in requests of pods, and a thousandth
/// of a card ([`CARD`]) in everything that queues hold, ask for or are promised.
///
/// Always at most [`AMOUNT_MAX`], so that one product with a weight fits a `u128`.
pub type Amount = u64;

/// The largest amount: 2^55 - 1. Conversion reports larger ones as a problem.
pub const AMOUNT_MAX: Amount = (1 << 55) - 1;

/// The resource of whole GPUs, or of what a node offers in their place. Only this resource counts
/// for GPU models.
pub const GPU: &str = "nvidia.com/gpu";

/// A whole card in the books of queues, which keep cards in thousandths.
pub const CARD: Amount = 1_000;

/// How many of the units in which queues keep a resource (or `resource@product`) make one whole:
/// cores and cards are kept in thousandths, everything else in its base unit.
#[must_use]
pub fn queue_unit(key: &str) -> Amount {
    match plain(key) {
        "cpu" => 1_000,
        GPU => CARD,
        _ => 1,
    }
}

/// An amount of a resource (or of `resource@product`) in the unit in which queues keep it, as a
/// Kubernetes quantity, exactly: `8` or `500m` GPUs, everything else as [`quantity`] writes it.
#[must_use]
pub fn queue_quantity(key: &str, amount: Amount) -> String {
    match plain(key) {
        GPU => of_thousandths(amount),
        _ => quantity(key, amount),
    }
}

/// The name of a resource without the model.
fn plain(key: &str) -> &str {
    key.split_once('@').map_or(key, |(resource, _)| resource)
}

fn of_thousandths(amount: Amount) -> String {
    if amount.is_multiple_of(1_000) {
        (amount / 1_000).to_string()
    } else {
        format!("{amount}m")
    }
}

/// An amount of a resource (or of `resource@product`) as a Kubernetes quantity, exactly: `1500m`
/// cores, `512Gi` of memory, `8` GPUs.
#[must_use]
pub fn quantity(resource: &str, amount: Amount) -> String {
    let resource = plain(resource);
    if resource == "cpu" {
        return of_thousandths(amount);
    }
    let bytes =
        matches!(resource, "memory" | "ephemeral-storage") || resource.starts_with("hugepages-");
    if !bytes || amount == 0 {
        return amount.to_string();
    }
    ["Ti", "Gi", "Mi", "Ki"]
        .into_iter()
        .zip([40, 30, 20, 10])
        .find(|&(_, bits)| amount.is_multiple_of(1 << bits))
        .map_or_else(
            || amount.to_string(),
            |(suffix, bits)| format!("{}{suffix}", amount >> bits),
        )
}

/// A sum as an amount; a sum that an [`Amount`] cannot hold counts as the largest one. Sums
/// themselves are kept in 128 bits, so that to take an amount off again restores the sum exactly.
pub(crate) fn saturated(sum: u128) -> Amount {
    Amount::try_from(sum).unwrap_or(Amount::MAX)
}

/// Amounts by resource name, each in the base unit of its resource (see [`Amount`]); sorted by
/// name, each name once, no zero.
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

/// The amount of a resource, in its base unit; 0 where it is absent.
#[must_use]
pub fn amount(amounts: &Amounts, resource: &str) -> Amount {
    match amounts.binary_search_by(|(name, _)| (**name).cmp(resource)) {
        Ok(position) => amounts[position].1,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{quantity, queue_quantity, queue_unit};

    #[test]
    fn amounts_are_exact_quantities() {
        for (resource, value, expected) in [
            ("cpu", 0, "0"),
            ("cpu", 2_000, "2"),
            ("cpu", 1_500, "1500m"),
            ("memory", 0, "0"),
            ("memory", 1_000, "1000"),
            ("memory", 1 << 10, "1Ki"),
            ("memory", 3 << 29, "1536Mi"),
            ("memory", 1 << 39, "512Gi"),
            ("hugepages-2Mi", 4 << 20, "4Mi"),
            ("nvidia.com/gpu", 1_024, "1024"),
            ("nvidia.com/gpu@NVIDIA-H100-80GB-HBM3", 8, "8"),
        ] {
            assert_eq!(quantity(resource, value), expected, "{resource}");
        }
    }

    #[test]
    fn queues_count_cards_in_thousandths() {
        for (key, unit, value, expected) in [
            ("nvidia.com/gpu", 1_000, 0, "0"),
            ("nvidia.com/gpu", 1_000, 8_000, "8"),
            ("nvidia.com/gpu@H100", 1_000, 2_500, "2500m"),
            ("nvidia.com/mig-1g.10gb", 1, 8, "8"),
            ("cpu", 1_000, 1_500, "1500m"),
            ("memory", 1, 1 << 30, "1Gi"),
        ] {
            assert_eq!(queue_unit(key), unit, "{key}");
            assert_eq!(queue_quantity(key, value), expected, "{key}");
        }
    }
}
