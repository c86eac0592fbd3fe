//! Times, averages and shares as Kubernetes writes them and users read them.

use gpu_batch_policies::facts::{UnixMs, quantity};
use jiff::Timestamp;

/// As `metav1.Time`: whole seconds.
pub(crate) fn seconds(time_ms: UnixMs) -> String {
    timestamp(time_ms)
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

/// As `metav1.MicroTime`: always six digits.
pub(crate) fn micros(time_ms: UnixMs) -> String {
    timestamp(time_ms)
        .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
        .to_string()
}

/// Times beyond what can be written (the year 9999) become the last one that can.
fn timestamp(time_ms: UnixMs) -> Timestamp {
    i64::try_from(time_ms)
        .ok()
        .and_then(|time_ms| Timestamp::from_millisecond(time_ms).ok())
        .unwrap_or(Timestamp::MAX)
}

/// An average in thousandths of base units: to a thousandth of what is counted in pieces, to whole
/// base units of everything else.
pub(crate) fn average(resource: &str, thousandths: u64) -> String {
    let counted = resource.contains('/');
    if counted && !thousandths.is_multiple_of(1_000) {
        return format!("{thousandths}m");
    }
    quantity(resource, thousandths.saturating_add(500) / 1_000)
}

/// Millionths as a decimal fraction without trailing zeros: `0.42`.
pub(crate) fn share(millionths: u64) -> String {
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{average, micros, seconds, share};

    #[test]
    fn times_are_written_as_kubernetes_writes_them() {
        assert_eq!(seconds(1_795_255_200_999), "2026-11-21T10:00:00Z");
        assert_eq!(micros(1_795_255_200_999), "2026-11-21T10:00:00.999000Z");
        assert_eq!(seconds(0), "1970-01-01T00:00:00Z");
        assert_eq!(&seconds(u64::MAX)[..4], "9999");
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
