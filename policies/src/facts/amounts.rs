//! Amounts and labels: lists by name, and how to look into them.

use alloc::{boxed::Box, format, string::String, string::ToString, vec::Vec};

/// An amount of a resource in its base unit: thousandths of a core for `cpu`, bytes for `memory`,
/// `ephemeral-storage` and `hugepages-*`, whole pieces for everything else.
///
/// Always at most [`AMOUNT_MAX`], so that one product with a weight fits a `u128`.
pub type Amount = u64;

/// The largest amount: 2^55 - 1. Conversion reports larger ones as a problem.
pub const AMOUNT_MAX: Amount = (1 << 55) - 1;

/// An amount of a resource (or of `resource@product`) as a Kubernetes quantity, exactly: `1500m`
/// cores, `512Gi` of memory, `8` GPUs.
#[must_use]
pub fn quantity(resource: &str, amount: Amount) -> String {
    let resource = resource.split('@').next().unwrap_or(resource);
    if resource == "cpu" {
        return if amount.is_multiple_of(1_000) {
            (amount / 1_000).to_string()
        } else {
            format!("{amount}m")
        };
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
    use super::quantity;

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
}
