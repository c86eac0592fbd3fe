//! Amounts as tables show them: to be read, not to be reckoned with. JSON has them exactly.

use crate::convert::quantity::thousandths;

/// Units of bytes, the largest first.
const BYTES: [(&str, u32); 5] = [("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
/// More of a unit than this are told in a larger one, if that is not exact either.
const UNITS_MAX: u128 = 10_000;

/// A Kubernetes quantity of a resource (`resource` or `resource@product`) as a plain number: `1.5`
/// CPUs, `11.99` GPUs, `100Gi` of memory; rounded where more digits would be needed. Text that is
/// no quantity stays as it is.
pub fn readable(resource: &str, quantity: &str) -> String {
    let Ok(amount) = thousandths(quantity) else {
        return quantity.to_owned();
    };
    let resource = resource.split('@').next().unwrap_or(resource);
    let of_bytes = ["memory", "ephemeral-storage"].contains(&resource);
    if of_bytes || resource.starts_with("hugepages-") {
        return bytes(amount);
    }
    // A thousandth of a CPU is what can be asked for, and of anything else only averages have parts.
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

/// A fraction with at most so many digits after the point, and whether that is all of it.
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
    use super::readable;

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
