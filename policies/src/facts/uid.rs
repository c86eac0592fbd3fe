//! UIDs as numbers.

use core::fmt;

/// The identity of one object's life.
///
/// The API server's UIDs are UUIDs, so 128 bits hold them and [`fmt::Display`] gives back the very
/// text that the API server wrote. Objects from files may have no UID; conversion derives one from
/// kind, namespace and name, and such an object can never be sent to a real API server.
///
/// The trap: a pod that is deleted and created again under the same name has *another* UID. Never
/// identify a pod by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u128);

impl Uid {
    /// Reads a UUID in the canonical form (8-4-4-4-12 lower-case hex digits); `None` otherwise.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return None;
        }
        let mut value = 0u128;
        for (position, byte) in bytes.iter().enumerate() {
            let digit = match byte {
                b'-' if matches!(position, 8 | 13 | 18 | 23) => continue,
                _ if matches!(position, 8 | 13 | 18 | 23) => return None,
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            value = value << 4 | u128::from(digit);
        }
        Some(Self(value))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |shift: u32, bits: u32| (self.0 >> shift) & ((1u128 << bits) - 1);
        write!(
            formatter,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(96, 32),
            part(80, 16),
            part(64, 16),
            part(48, 16),
            part(0, 48)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Uid;
    use alloc::string::ToString;

    #[test]
    fn a_uuid_survives_the_round_trip() {
        let text = "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234";
        assert_eq!(Uid::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn what_is_not_canonical_is_refused() {
        for text in [
            "",
            "0B9F6F0C-13a7-4f5e-8a2b-00ff00aa1234",
            "0b9f6f0c13a74f5e8a2b00ff00aa1234",
            "0b9f6f0c-13a7-4f5e-8a2b0-0ff00aa1234",
        ] {
            assert_eq!(Uid::parse(text), None, "{text}");
        }
    }
}
