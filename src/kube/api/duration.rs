//! Durations in our own kinds and in the configuration.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

/// A length of time as users write it: `90s`, `10m`, `2h30m`, `500ms` or `0`.
///
/// Whole hours, minutes, seconds and milliseconds, larger units first, each at most once. It is
/// what Go's `time.ParseDuration` reads, less fractions, days and surprises. No duration is longer
/// than a hundred years ([`MAX_HOURS`]), and numbers of minutes or seconds that should be written
/// in hours are refused too: so every sum that the API server makes fits into its type for
/// durations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub String);

/// A [`Duration`] that may have a minus in front.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SignedDuration(pub String);

/// How long something is said to run: a [`Duration`] longer than nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Runtime(pub String);

/// Text that is not a [`Duration`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDuration {
    /// The text is not written like a duration.
    #[error("`{0}` is not a duration; write it like 90s, 10m or 2h30m")]
    Unreadable(String),
    /// The duration is longer than [`MAX_HOURS`], or should be written in hours.
    #[error("`{0}` is too long; write it in hours, at most {MAX_HOURS}h, which is a hundred years")]
    TooLong(String),
    /// The duration is 0, where a [`Runtime`] is read.
    #[error("`{0}` must be longer than 0s")]
    Nothing(String),
}

/// The longest duration, in hours: a hundred years.
pub(super) const MAX_HOURS: u64 = 876_000;
const MAX_MS: u64 = MAX_HOURS * 3_600_000;

/// The units, largest first, as they must be written; with their milliseconds, and the digits that
/// may stand before them. A duration with all digits is less than 2^63 nanoseconds, beyond which
/// the API server cannot tell whether a duration is too long.
const UNITS: [(&str, u64, usize); 4] = [
    ("h", 3_600_000, 6),
    ("m", 60_000, 7),
    ("s", 1_000, 9),
    ("ms", 1, 9),
];
/// A pattern for `2h30m` and all other durations, for the API server; together with [`MAX_HOURS`]
/// it accepts what [`parse_duration_ms`] reads.
const PATTERN: &str = "(0|([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?)";
/// A pattern for durations with any number of digits.
const WRITTEN: &str = "(0|([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)";
/// In characters: more than the longest duration has, with its sign.
const MAX_LENGTH: u32 = 45;

/// Reads a [`Duration`], in milliseconds.
///
/// # Errors
/// [`InvalidDuration`], which says how durations are written and how long they may be.
pub(crate) fn parse_duration_ms(text: &str) -> Result<u64, InvalidDuration> {
    if text == "0" {
        return Ok(0);
    }
    let unreadable = || InvalidDuration::Unreadable(text.to_owned());
    let length = parse(text).ok_or_else(unreadable)?;
    let length = length.filter(|milliseconds| *milliseconds <= MAX_MS);
    length.ok_or_else(|| InvalidDuration::TooLong(text.to_owned()))
}

/// Reads a [`SignedDuration`], in milliseconds.
///
/// # Errors
/// As [`parse_duration_ms`].
pub(crate) fn parse_signed_duration_ms(text: &str) -> Result<i64, InvalidDuration> {
    let (sign, length) = match text.strip_prefix('-') {
        Some(length) => (-1, length),
        None => (1, text),
    };
    let milliseconds = parse_duration_ms(length).map_err(|error| match error {
        InvalidDuration::TooLong(_) => InvalidDuration::TooLong(text.to_owned()),
        _ => InvalidDuration::Unreadable(text.to_owned()),
    })?;
    let milliseconds = i64::try_from(milliseconds);
    let milliseconds = milliseconds.map_err(|_| InvalidDuration::TooLong(text.to_owned()))?;
    Ok(sign * milliseconds)
}

/// Reads a [`Runtime`], in milliseconds.
///
/// # Errors
/// As [`parse_duration_ms`], and [`InvalidDuration::Nothing`].
pub(crate) fn parse_runtime_ms(text: &str) -> Result<u64, InvalidDuration> {
    match parse_duration_ms(text)? {
        0 => Err(InvalidDuration::Nothing(text.to_owned())),
        milliseconds => Ok(milliseconds),
    }
}

/// Reads a duration in milliseconds. `None`: the text is not a duration. `Some(None)`: a duration
/// with too many digits.
fn parse(text: &str) -> Option<Option<u64>> {
    let mut rest = text;
    let mut units = UNITS.as_slice();
    let mut total = Some(0_u64);
    while !rest.is_empty() || units.len() == UNITS.len() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail
            .find(|character: char| !character.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let index = units.iter().position(|&(name, ..)| name == unit)?;
        let (_, milliseconds, most_digits) = units[index];
        if digits == 0 {
            return None;
        }
        let number = number.parse::<u64>().ok().filter(|_| digits <= most_digits);
        total = total
            .zip(number)
            .and_then(|(total, number)| number.checked_mul(milliseconds)?.checked_add(total));
        units = &units[index + 1..];
        rest = tail;
    }
    Some(total)
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

/// The schema of a text; `length` is a CEL expression for the text without its sign.
fn schema(sign: &str, length: &str, message: &str) -> Schema {
    let written = format!("self.matches('^{sign}{WRITTEN}$') && self.matches('[0-9]')");
    // The first rule refuses a text that is not written like a duration; CEL could not tell how
    // long a duration of too many digits is.
    let short = format!("self.matches('^{sign}{PATTERN}$')");
    let short = format!("{short} && duration({length}) <= duration('{MAX_HOURS}h')");
    json_schema!({
        "type": "string",
        "maxLength": MAX_LENGTH,
        "x-kubernetes-validations": [
            {"rule": written, "message": message},
            {
                "rule": format!("!({written}) || ({short})"),
                "message": format!(
                    "is too long: write it in hours, at most {MAX_HOURS}h, which is a hundred years"
                ),
            },
        ],
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
        let message = "must be a duration such as 90s, 10m or 2h30m, and not negative";
        schema("", "self", message)
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
        let message = "must be a duration such as 90s, 10m or -1s";
        schema("-?", "self.replace('-', '')", message)
    }
}

impl JsonSchema for Runtime {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Runtime".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Duration::json_schema(generator);
        if let Some(Value::Array(rules)) = schema.get_mut("x-kubernetes-validations") {
            rules.push(json!({
                "rule": "self.matches('[1-9]')",
                "message": "must be longer than 0s",
            }));
        }
        schema
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
            ("876000h", Some(MAX_MS)),
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

    #[test]
    fn what_is_too_long_says_so_and_not_that_it_is_written_wrongly() {
        for text in [
            "876000h1ms",
            "876001h",
            "8766000h",
            "999999999999999999999h",
            "10000000m",
            "875999h60m1s",
            "1234567890s",
        ] {
            let told = parse_duration_ms(text).unwrap_err().to_string();
            assert!(
                told.starts_with(&format!("`{text}` is too long;")),
                "{told}"
            );
            let negative = format!("-{text}");
            let told = parse_signed_duration_ms(&negative).unwrap_err().to_string();
            assert!(
                told.starts_with(&format!("`{negative}` is too long;")),
                "{told}"
            );
        }
    }

    #[test]
    fn a_runtime_is_longer_than_nothing() {
        assert_eq!(parse_runtime_ms("1ms"), Ok(1));
        for text in ["0", "0s", "0h0m"] {
            let told = parse_runtime_ms(text).unwrap_err().to_string();
            assert_eq!(told, format!("`{text}` must be longer than 0s"));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(milliseconds in 0..=MAX_MS) {
            let text = gpu_batch_policies::facts::duration(milliseconds);
            prop_assert_eq!(parse_duration_ms(&text), Ok(milliseconds));
        }

        #[test]
        fn no_text_panics(text in "[-0-9hms.]{0,20}|.*") {
            let _ = parse_signed_duration_ms(&text);
        }
    }
}
