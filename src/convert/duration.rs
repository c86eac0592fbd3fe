//! Durations as Go writes them: `90s`, `10m`, `2h30m`, `1.5h`, `250ms`, `-1s`.

use super::limits;

/// Why a text is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum DurationError {
    #[error("is not a duration; write it like 90s, 10m or 2h30m")]
    Malformed,
    #[error("is longer than 100 years")]
    TooLong,
}

const NANOSECONDS: [(&str, u128); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("ms", 1_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];
const NANOSECONDS_IN_MS: u128 = 1_000_000;

/// Reads a duration in milliseconds; parts of one count as one.
pub(super) fn milliseconds(text: &str) -> Result<i64, DurationError> {
    let (negative, length) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let nanoseconds = if length == "0" {
        0
    } else {
        nanoseconds(length)?
    };
    let milliseconds = i64::try_from(nanoseconds.div_ceil(NANOSECONDS_IN_MS))
        .ok()
        .filter(|milliseconds| *milliseconds <= limits::DURATION_MS)
        .ok_or(DurationError::TooLong)?;
    Ok(if negative {
        -milliseconds
    } else {
        milliseconds
    })
}

fn nanoseconds(text: &str) -> Result<u128, DurationError> {
    let mut rest = text;
    let mut total = 0u128;
    loop {
        let number_end = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .ok_or(DurationError::Malformed)?;
        let (number, tail) = rest.split_at(number_end);
        let (unit, nanoseconds) = NANOSECONDS
            .into_iter()
            .find(|(unit, _)| tail.starts_with(unit))
            .ok_or(DurationError::Malformed)?;
        total = total.saturating_add(part(number, nanoseconds)?);
        rest = &tail[unit.len()..];
        if rest.is_empty() {
            return Ok(total);
        }
    }
}

/// `number` times a unit, rounded down to a nanosecond.
fn part(number: &str, unit: u128) -> Result<u128, DurationError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(DurationError::Malformed);
    }
    let whole = whole.bytes().fold(0u128, |value, byte| {
        value.saturating_mul(10).saturating_add(digit(byte))
    });
    let fraction = fraction
        .bytes()
        .rev()
        .fold(0, |rest, byte| (digit(byte) * unit + rest) / 10);
    Ok(whole.saturating_mul(unit).saturating_add(fraction))
}

fn digit(byte: u8) -> u128 {
    u128::from(byte.wrapping_sub(b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("0s", Ok(0)),
            ("-0", Ok(0)),
            ("90s", Ok(90_000)),
            ("10m", Ok(600_000)),
            ("2h30m", Ok(9_000_000)),
            ("30m2h", Ok(9_000_000)),
            ("1h15m30.918s", Ok(4_530_918)),
            ("1.5h", Ok(5_400_000)),
            (".5s", Ok(500)),
            ("5.s", Ok(5_000)),
            ("250ms", Ok(250)),
            ("1us", Ok(1)),
            ("1\u{b5}s", Ok(1)),
            ("1000000ns", Ok(1)),
            ("1000001ns", Ok(2)),
            ("-1s", Ok(-1_000)),
            ("+1s", Ok(1_000)),
            ("876000h", Ok(limits::DURATION_MS)),
            ("876000h1ms", Err(DurationError::TooLong)),
            (
                "99999999999999999999999999999999999999999h",
                Err(DurationError::TooLong),
            ),
            ("", Err(DurationError::Malformed)),
            ("-", Err(DurationError::Malformed)),
            ("s", Err(DurationError::Malformed)),
            (".s", Err(DurationError::Malformed)),
            ("1", Err(DurationError::Malformed)),
            ("00", Err(DurationError::Malformed)),
            ("1d", Err(DurationError::Malformed)),
            ("1.2.3s", Err(DurationError::Malformed)),
            ("1s2", Err(DurationError::Malformed)),
            ("1 s", Err(DurationError::Malformed)),
            ("--1s", Err(DurationError::Malformed)),
            ("1h-1s", Err(DurationError::Malformed)),
            ("\u{661}s", Err(DurationError::Malformed)),
        ] {
            assert_eq!(milliseconds(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-+.0-9hmsnu\u{b5}]{0,40}|.*") {
            let _ = milliseconds(&text);
        }
    }
}
