//! Amounts and shares as users read them.

use gpu_batch_policies::facts::Amount;

/// An amount of a resource (or of `resource@product`) as a Kubernetes quantity, exactly: `1500m`
/// cores, `512Gi` of memory, `8` GPUs.
pub(crate) fn amount(resource: &str, amount: Amount) -> String {
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

/// An average in thousandths of base units: to a thousandth of what is counted in pieces, to whole
/// base units of everything else.
pub(crate) fn average(resource: &str, thousandths: u64) -> String {
    let counted = resource.contains('/');
    if counted && !thousandths.is_multiple_of(1_000) {
        return format!("{thousandths}m");
    }
    amount(resource, thousandths.saturating_add(500) / 1_000)
}

/// Millionths as a decimal fraction without trailing zeros: `0.42`.
pub(crate) fn share(millionths: u64) -> String {
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{amount, average, share};

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
            assert_eq!(amount(resource, value), expected, "{resource}");
        }
    }

    #[test]
    fn averages_are_quantities_to_a_thousandth_of_a_piece() {
        for (resource, thousandths, expected) in [
            ("nvidia.com/gpu", 1_500, "1500m"),
            ("nvidia.com/gpu@H100", 2_000, "2"),
            ("cpu", 1_500_400, "1500m"),
            ("memory", 1_000 << 30, "1Gi"),
        ] {
            assert_eq!(average(resource, thousandths), expected, "{resource}");
        }
    }

    #[test]
    fn shares_have_no_trailing_zeros() {
        for (millionths, expected) in [
            (0, "0"),
            (420_000, "0.42"),
            (1_000_000, "1"),
            (1_250_000, "1.25"),
            (333_333, "0.333333"),
            (10, "0.00001"),
        ] {
            assert_eq!(share(millionths), expected);
        }
    }
}
