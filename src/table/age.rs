//! Ages as kubectl shows them: the older, the rougher.

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// A unit: its milliseconds and its letter.
type Unit = (u64, char);

/// Ages, and the one or two units in which ages below each of them are shown.
const STEPS: [(u64, Unit, Option<Unit>); 8] = [
    (2 * MINUTE, (SECOND, 's'), None),
    (10 * MINUTE, (MINUTE, 'm'), Some((SECOND, 's'))),
    (3 * HOUR, (MINUTE, 'm'), None),
    (8 * HOUR, (HOUR, 'h'), Some((MINUTE, 'm'))),
    (2 * DAY, (HOUR, 'h'), None),
    (8 * DAY, (DAY, 'd'), Some((HOUR, 'h'))),
    (2 * YEAR, (DAY, 'd'), None),
    (u64::MAX, (YEAR, 'y'), Some((DAY, 'd'))),
];

/// An age as kubectl shows it: `90s`, `5m30s`, `3h`, `12d`.
#[must_use]
pub fn age(milliseconds: u64) -> String {
    let (_, (unit, name), smaller) = STEPS
        .into_iter()
        .find(|(below, ..)| milliseconds < *below)
        .unwrap_or(STEPS[STEPS.len() - 1]);
    let mut text = format!("{}{name}", milliseconds / unit);
    if let Some((smaller, name)) = smaller {
        let rest = milliseconds % unit / smaller;
        if rest > 0 {
            text.push_str(&format!("{rest}{name}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{DAY, HOUR, MINUTE, SECOND, YEAR, age};

    #[test]
    fn the_older_the_rougher() {
        for (milliseconds, text) in [
            (0, "0s"),
            (119 * SECOND, "119s"),
            (5 * MINUTE + 30 * SECOND, "5m30s"),
            (5 * MINUTE, "5m"),
            (90 * MINUTE + 59 * SECOND, "90m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + MINUTE, "3h1m"),
            (47 * HOUR, "47h"),
            (2 * DAY + HOUR, "2d1h"),
            (400 * DAY, "400d"),
            (2 * YEAR + DAY, "2y1d"),
        ] {
            assert_eq!(age(milliseconds), text);
        }
    }
}
