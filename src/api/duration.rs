//! Durations in our own kinds and in the configuration.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A length of time as users write it: `90s`, `10m`, `2h30m`, `500ms` or `0`.
///
/// Whole hours, minutes, seconds and milliseconds, larger units first, each at most once and with
/// at most nine digits. It is what Go's `time.ParseDuration` reads, less fractions, days and
/// surprises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub String);

/// A [`Duration`] that may have a minus in front.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SignedDuration(pub String);

/// Text that is not a [`Duration`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration; write it like 90s, 10m or 2h30m")]
pub struct InvalidDuration(String);

/// Largest first, as they must be written.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const MAX_DIGITS: usize = 9;
/// `2h30m` and all others, for the API server; the same language as [`parse_duration_ms`].
const PATTERN: &str = "(0|([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?)";
/// Longer than the longest duration by one.
const MAX_LENGTH: u32 = 45;

/// Reads a [`Duration`], in milliseconds.
///
/// # Errors
/// [`InvalidDuration`], which says how durations are written.
pub fn parse_duration_ms(text: &str) -> Result<u64, InvalidDuration> {
    let milliseconds = if text == "0" { Some(0) } else { parse(text) };
    milliseconds.ok_or_else(|| InvalidDuration(text.to_owned()))
}

/// Reads a [`SignedDuration`], in milliseconds.
///
/// # Errors
/// [`InvalidDuration`], which says how durations are written.
pub fn parse_signed_duration_ms(text: &str) -> Result<i64, InvalidDuration> {
    let (negative, length) = match text.strip_prefix('-') {
        Some(length) => (true, length),
        None => (false, text),
    };
    let milliseconds = parse_duration_ms(length)
        .ok()
        .and_then(|milliseconds| i64::try_from(milliseconds).ok())
        .ok_or_else(|| InvalidDuration(text.to_owned()))?;
    Ok(if negative {
        -milliseconds
    } else {
        milliseconds
    })
}

fn parse(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut units = UNITS.as_slice();
    let mut total = 0_u64;
    while !rest.is_empty() || units.len() == UNITS.len() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        if digits > MAX_DIGITS {
            return None;
        }
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail
            .find(|character: char| !character.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let index = units.iter().position(|&(name, _)| name == unit)?;
        let milliseconds = number.parse::<u64>().ok()?.checked_mul(units[index].1)?;
        total = total.checked_add(milliseconds)?;
        units = &units[index + 1..];
        rest = tail;
    }
    Some(total)
}

/// Writes a [`Duration`] in the shortest way: 90,000 ms are `1m30s`.
#[must_use]
pub fn format_duration_ms(milliseconds: u64) -> String {
    if milliseconds == 0 {
        return "0s".to_owned();
    }
    let mut rest = milliseconds;
    let mut text = String::new();
    for (name, unit) in UNITS {
        let count = rest / unit;
        rest %= unit;
        if count > 0 {
            text.push_str(&format!("{count}{name}"));
        }
    }
    text
}

impl Duration {
    /// The length in milliseconds.
    ///
    /// # Errors
    /// [`InvalidDuration`], where the API server did not check it.
    pub fn milliseconds(&self) -> Result<u64, InvalidDuration> {
        parse_duration_ms(&self.0)
    }
}

impl SignedDuration {
    /// The length in milliseconds.
    ///
    /// # Errors
    /// [`InvalidDuration`], where the API server did not check it.
    pub fn milliseconds(&self) -> Result<i64, InvalidDuration> {
        parse_signed_duration_ms(&self.0)
    }
}

fn schema(sign: &str, message: &str) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": MAX_LENGTH,
        "x-kubernetes-validations": [{
            "rule": format!("self.matches('^{sign}{PATTERN}$') && self.matches('[0-9]')"),
            "message": message,
        }],
    })
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema(
            "",
            "must be a duration such as 90s, 10m or 2h30m, and not negative",
        )
    }
}

impl JsonSchema for SignedDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SignedDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema("-?", "must be a duration such as 90s, 10m or -1s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_whole_units_largest_first() {
        for (text, expected) in [
            ("0", Some(0)),
            ("0s", Some(0)),
            ("90s", Some(90_000)),
            ("10m", Some(600_000)),
            ("2h30m", Some(9_000_000)),
            ("1h1m1s1ms", Some(3_661_001)),
            ("500ms", Some(500)),
            ("999999999h", Some(3_599_999_996_400_000)),
            ("", None),
            ("h", None),
            ("10", None),
            ("30m2h", None),
            ("1m1m", None),
            ("1.5h", None),
            ("-1s", None),
            ("+1s", None),
            ("1d", None),
            ("1 h", None),
            ("1h ", None),
            ("00", None),
            ("1234567890s", None),
            ("1s\u{663}m", None),
        ] {
            assert_eq!(parse_duration_ms(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_signed_duration_may_have_one_minus() {
        for (text, expected) in [
            ("60s", Some(60_000)),
            ("-1s", Some(-1_000)),
            ("-0", Some(0)),
            ("--1s", None),
            ("-", None),
        ] {
            assert_eq!(parse_signed_duration_ms(text).ok(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(milliseconds in 0..3_599_999_999_999_999_u64) {
            let text = format_duration_ms(milliseconds);
            prop_assert_eq!(parse_duration_ms(&text), Ok(milliseconds));
        }

        #[test]
        fn no_text_panics(text in "[-0-9hms.]{0,20}|.*") {
            let _ = parse_signed_duration_ms(&text);
        }
    }
}
