//! Times as Kubernetes writes them.

use gpu_batch_policies::facts::UnixMs;
use jiff::Timestamp;

/// As `metav1.Time`: whole seconds.
pub(crate) fn seconds(time_ms: UnixMs) -> String {
    timestamp(time_ms)
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

/// As `metav1.MicroTime`: always six digits.
pub(super) fn micros(time_ms: UnixMs) -> String {
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

#[cfg(test)]
mod tests {
    use super::{micros, seconds};

    #[test]
    fn times_are_written_as_kubernetes_writes_them() {
        assert_eq!(seconds(1_795_255_200_999), "2026-11-21T10:00:00Z");
        assert_eq!(micros(1_795_255_200_999), "2026-11-21T10:00:00.999000Z");
        assert_eq!(seconds(0), "1970-01-01T00:00:00Z");
        assert_eq!(&seconds(u64::MAX)[..4], "9999");
    }
}
