//! Times and spans of time as users read and write them.

use crate::facts::{UnixMs, duration};
use alloc::format;
use alloc::string::String;

/// A time with its date, to the second: `2026-11-26T12:00:00Z`.
pub(crate) fn date_and_time(at_ms: UnixMs) -> String {
    let seconds = at_ms / 1_000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hours, minutes, seconds) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z")
}

/// Year, month and day of a day since 1970-01-01. Years are counted from March on, so that the
/// leap day is the last one of its year, and in periods of 400 years, which are equally long.
fn date(days: u64) -> (u64, u64, u64) {
    let since_march = days + 719_468;
    let (period, day) = (since_march / 146_097, since_march % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = match month {
        0..10 => (month + 3, 0),
        _ => (month - 9, 1),
    };
    (period * 400 + year + next_year, month, day)
}

/// A span of time as it is written in a spec, rounded up to seconds: `2h30m`, `90s` is `1m30s`.
pub(crate) fn span(milliseconds: u64) -> String {
    duration(milliseconds.div_ceil(1_000).saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_795_255_200, "2026-11-21T10:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(date_and_time(seconds * 1_000), expected);
        }
    }

    #[test]
    fn spans_are_written_as_in_a_spec() {
        let cases = [
            (0, "0s"),
            (1, "1s"),
            (90_000, "1m30s"),
            (9_000_000, "2h30m"),
            (172_800_000, "48h"),
        ];
        for (milliseconds, expected) in cases {
            assert_eq!(span(milliseconds), expected);
        }
    }
}
