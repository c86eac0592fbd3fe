//! Ages as kubectl shows them, the older the rougher; and amounts rounded for people, while JSON
//! has them exactly.

use crate::kube::convert::quantity::thousandths;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// A unit: its milliseconds and its letter.
type Unit = (u64, char);

/// For ages below the first number, the one or two units in which they are shown.
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

/// Units of bytes, the largest first.
const BYTES: [(&str, u32); 5] = [("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
/// From this number of a unit on, a larger unit is used, even if the amount is rounded then.
const UNITS_MAX: u128 = 10_000;

/// An age as kubectl shows it: `90s`, `5m30s`, `3h`, `12d`.
#[must_use]
pub(crate) fn age(milliseconds: u64) -> String {
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

/// A Kubernetes quantity of a resource (`resource` or `resource@product`) as a plain number: `1.5`
/// CPUs, `11.99` GPUs, `100Gi` of memory; rounded where more digits would be needed. Text that is
/// no quantity stays as it is.
pub(crate) fn readable(resource: &str, quantity: &str) -> String {
    let Ok(amount) = thousandths(quantity) else {
        return quantity.to_owned();
    };
    let resource = resource.split('@').next().unwrap_or(resource);
    let of_bytes = ["memory", "ephemeral-storage"].contains(&resource);
    if of_bytes || resource.starts_with("hugepages-") {
        return bytes(amount);
    }
    // A thousandth of a CPU can be asked for; of other resources only averages have fractions.
    let digits = if resource == "cpu" { 3 } else { 2 };
    match decimal(amount, 1_000, digits) {
        (text, _) if text == "0" && amount > 0 => decimal(amount, 1_000, 3).0,
        (text, _) => text,
    }
}

fn bytes(amount: u128) -> String {
    let units = || {
        let at_least_one = |(_, bits): &(&str, u32)| amount >= 1_000 << bits;
        BYTES.into_iter().filter(at_least_one)
    };
    let written = units().map(|(suffix, bits)| {
        let (text, exact) = decimal(amount, 1_000 << bits, 2);
        let few = amount >> bits < UNITS_MAX * 1_000;
        (format!("{text}{suffix}"), exact && few)
    });
    let exact = written.clone().find(|(_, exact)| *exact);
    let rounded = || written.clone().next();
    let text = exact.or_else(rounded).map(|(text, _)| text);
    text.unwrap_or_else(|| decimal(amount, 1_000, 0).0)
}

/// A fraction with at most this many digits after the point, and whether the text is exact.
fn decimal(amount: u128, over: u128, digits: u32) -> (String, bool) {
    let scale = 10_u128.pow(digits);
    let scaled = amount.saturating_mul(scale);
    let rounded = scaled.saturating_add(over / 2) / over;
    let (whole, rest) = (rounded / scale, rounded % scale);
    let text = match rest {
        0 => whole.to_string(),
        rest => {
            let text = format!("{whole}.{rest:0width$}", width = digits as usize);
            text.trim_end_matches('0').to_owned()
        }
    };
    (text, scaled.is_multiple_of(over))
}

#[cfg(test)]
mod tests {
    use super::{DAY, HOUR, MINUTE, SECOND, YEAR, age, readable};

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

    #[test]
    fn amounts_are_plain_numbers_in_the_unit_that_suits_them() {
        for (resource, quantity, expected) in [
            ("nvidia.com/gpu", "8", "8"),
            ("nvidia.com/gpu", "11994m", "11.99"),
            ("nvidia.com/gpu@H100", "2500m", "2.5"),
            ("nvidia.com/gpu", "3m", "0.003"),
            ("nvidia.com/gpu", "0", "0"),
            ("nvidia.com/gpu", "1999999m", "2000"),
            ("cpu", "1500m", "1.5"),
            ("cpu", "96", "96"),
            ("cpu", "333m", "0.333"),
            ("memory", "107374182400", "100Gi"),
            ("memory", "107374182399", "100Gi"),
            ("memory", "1025Gi", "1025Gi"),
            ("memory", "1536Gi", "1.5Ti"),
            ("memory", "1000", "1000"),
            ("memory", "1500m", "2"),
            ("memory", "36028797018963967", "32Pi"),
            ("hugepages-2Mi", "3Gi", "3Gi"),
            ("ephemeral-storage", "1048577", "1Mi"),
            ("memory", "a lot", "a lot"),
        ] {
            assert_eq!(
                readable(resource, quantity),
                expected,
                "{quantity} {resource}"
            );
        }
    }
}
