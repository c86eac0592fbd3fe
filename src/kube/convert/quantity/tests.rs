use super::*;
use proptest::prelude::*;

fn amount(resource: &str, text: &str) -> Result<Amount, QuantityError> {
    thousandths(text).and_then(|amount| base_units(resource, amount))
}

fn check(resource: &str, text: &str, expected: Result<Amount, QuantityError>) {
    assert_eq!(amount(resource, text), expected, "{resource}: {text:?}");
}

#[test]
fn every_suffix_is_exact() {
    for (text, expected) in [
        ("0", 0),
        ("0n", 0),
        ("0Ki", 0),
        ("0.000", 0),
        ("-0", 0),
        ("1", 1),
        ("+1", 1),
        ("007", 7),
        ("8k", 8_000),
        ("7M", 7_000_000),
        ("6G", 6_000_000_000),
        ("5T", 5_000_000_000_000),
        ("2P", 2_000_000_000_000_000),
        ("0.01E", 10_000_000_000_000_000),
        ("1Ki", 1 << 10),
        ("7Mi", 7 << 20),
        ("6Gi", 6 << 30),
        ("5Ti", 5 << 40),
        ("4Pi", 4 << 50),
        ("0.01Ei", 11_529_215_046_068_470),
        ("1e3", 1_000),
        ("1E3", 1_000),
        ("1E6", 1_000_000),
        ("1.3E+6", 1_300_000),
        ("1.2e3", 1_200),
        ("50000E-3", 50),
        ("100.035k", 100_035),
        ("7.123456M", 7_123_456),
        ("6.987654321G", 6_987_654_321),
        ("0.5Mi", 512 << 10),
        ("1.5Gi", 1_536 << 20),
        (".5k", 500),
        ("1.", 1),
        ("1.G", 1_000_000_000),
        ("0.0000000000000000000000000000000000000001e40", 1),
        (
            "0.00000000000000000000000000000000000000000000000000000000000000000001e68",
            1,
        ),
        ("36028797018963967", AMOUNT_MAX),
        (
            "0000000000000000000000000000000000000000000000000000000000000000000000009",
            9,
        ),
    ] {
        check("memory", text, Ok(expected));
    }
}

#[test]
fn what_is_not_whole_is_rounded_up_once() {
    for (resource, text, expected) in [
        ("cpu", "1", 1_000),
        ("cpu", "0.5", 500),
        ("cpu", "250m", 250),
        ("cpu", "2k", 2_000_000),
        ("cpu", "1Ki", 1_024_000),
        ("cpu", "0.0001", 1),
        ("cpu", "1.0001", 1_001),
        ("cpu", "1n", 1),
        ("cpu", "999999u", 1_000),
        ("cpu", "1e-30", 1),
        ("cpu", "1e-999999999999999999", 1),
        ("memory", "1m", 1),
        ("memory", "1001m", 2),
        ("memory", "0.1Ki", 103),
        ("memory", "100.035Ki", 102_436),
        ("memory", "0.05Gi", 53_687_092),
        ("memory", "0.000000000001Ki", 1),
        ("memory", "0.9999999999999999999999999999Ki", 1_024),
        ("nvidia.com/gpu", "1500m", 2),
        ("nvidia.com/gpu", "0.1n", 1),
    ] {
        check(resource, text, Ok(expected));
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    for text in [
        "",
        "+",
        "-",
        ".",
        "Ki",
        "m",
        "1.1.M",
        "1+1.0M",
        "0.1mi",
        "0.1am",
        "aoeu",
        ".5i",
        "1i",
        "-3.01i",
        "-3.01e-",
        "1e",
        "1e+",
        "1E++3",
        "1e3.5",
        "1e3k",
        " 1",
        "1 ",
        "1 Gi",
        "--1",
        "0x10",
        "1_000",
        "1,5",
        "NaN",
        "inf",
        "1e99999999999999999999",
        "\u{661}",
        "1K",
        "1KI",
        "1gi",
        "🦀",
    ] {
        check("memory", text, Err(QuantityError::Malformed));
    }
    for text in ["-1", "-0.1n", "-1e30", "-9Ei"] {
        check("memory", text, Err(QuantityError::Negative));
    }
    for text in [
        "36028797018963968",
        "1e100",
        "1e999999999999999999",
        "9Ei",
        "12E",
        "32Pi",
    ] {
        check("memory", text, Err(QuantityError::TooLarge));
    }
    check("cpu", "36028797018963.968", Err(QuantityError::TooLarge));
}

/// The obvious way: a fraction of big numbers, for inputs that fit it.
fn reference(whole: u64, fraction: &str, binary: Option<u32>, exponent: i32) -> u128 {
    let digits: u128 = format!("{whole}{fraction}").parse().unwrap();
    let multiplier = binary.map_or(1, |binary| 1 << binary);
    let power = exponent + 3 - i32::try_from(fraction.len()).unwrap();
    let ten = 10u128.pow(power.unsigned_abs());
    if power >= 0 {
        digits * multiplier * ten
    } else {
        (digits * multiplier).div_ceil(ten)
    }
}

proptest! {
    #[test]
    fn decimals_equal_the_fraction_rounded_up(
        whole in 0u64..1_000_000,
        fraction in "[0-9]{0,9}",
        exponent in -12i32..12,
    ) {
        let text = format!("{whole}.{fraction}e{exponent}");
        prop_assert_eq!(
            thousandths(&text),
            Ok(reference(whole, &fraction, None, exponent))
        );
    }

    #[test]
    fn binary_multiples_equal_the_fraction_rounded_up(
        whole in 0u64..1_000_000,
        fraction in "[0-9]{0,12}",
        unit in 1usize..5,
    ) {
        let text = format!("{whole}.{fraction}{}", ["", "Ki", "Mi", "Gi", "Ti"][unit]);
        let binary = u32::try_from(unit * 10).unwrap();
        prop_assert_eq!(
            thousandths(&text),
            Ok(reference(whole, &fraction, Some(binary), 0))
        );
    }

    #[test]
    fn no_text_panics(text in "[-+.0-9eEinumkMGTPKi]{0,40}|.*") {
        let _ = amount("cpu", &text);
    }
}
