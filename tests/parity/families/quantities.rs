//! Quantities: the same amounts in many words, and amounts next to each other.

use serde_json::{Value, json};

use super::draw::Draw;

const CPU: &[&str] = &[
    "0", "1m", "100m", "0.1", "250m", "0.25", "500m", "1", "1000m", "1.0", "1e0", "+1", "1001m",
    "1500m", "1.5", "2", "2e0", "20e-1", "2E0", "1k", ".5", "m", "-", "e3", "1.",
];

const MEMORY: &[&str] = &[
    "0",
    "1",
    "100m",
    "1m",
    "0.5",
    "512Mi",
    "0.5Gi",
    "536870912",
    "536870913",
    "536870912000m",
    "536870912001m",
    "1Gi",
    "1024Mi",
    "1048576Ki",
    "1G",
    "1e9",
    "1073741824",
    "1073741823.5",
    "1.5Gi",
    "1536Mi",
    "2Gi",
    "1Ti",
    "30P",
    "1e12",
    ".1Gi",
    "107374182.4",
    "107374183",
];

const COUNTS: &[&str] = &[
    "0", "1", "2", "3", "4", "1000m", "2e0", "4k", "1.0", "0m", "2000m",
];

/// Amounts below a thousandth, which are rounded up. Where a pod has resources as a whole, the API
/// server adds before it rounds, and then compares with what it has rounded: some such pods are
/// refused for a difference of a thousandth, so they get none of these.
const FINE: &[&str] = &[
    "1n",
    "999999999n",
    "0.0005",
    "1.0001",
    "1500.1m",
    "1000000u",
    "1e-4",
];

/// An amount of cpu, perhaps below a thousandth.
pub(crate) fn fine_cpu(draw: &mut Draw) -> Value {
    match draw.below(6) {
        0 => json!(draw.pick(FINE)),
        _ => cpu(draw),
    }
}

/// An amount of cpu, as text or as a number.
pub(crate) fn cpu(draw: &mut Draw) -> Value {
    match draw.below(10) {
        0 => json!(draw.below(3)),
        1 => draw.pick(&[json!(0.5), Value::Null, json!(" 1 ")]).clone(),
        _ => json!(draw.pick(CPU)),
    }
}

/// An amount of memory, of hugepages or of disk.
pub(crate) fn bytes(draw: &mut Draw) -> Value {
    match draw.below(16) {
        0 => json!(1_073_741_824),
        1 => json!(0),
        _ => json!(draw.pick(MEMORY)),
    }
}

/// A number of devices.
pub(crate) fn count(draw: &mut Draw) -> Value {
    match draw.below(6) {
        0 => json!(draw.below(4)),
        _ => json!(draw.pick(COUNTS)),
    }
}

/// A text that is no quantity, or a quantity that no pod may ask for.
pub(crate) fn wrong(draw: &mut Draw) -> Value {
    let wrong = [
        json!("-1"),
        json!("-1m"),
        json!("1x"),
        json!(""),
        json!("1 Gi"),
        json!("1gi"),
        json!("1K"),
        json!("0x10"),
        json!("1e"),
        json!("Ei"),
        json!("1.2.3"),
        json!("one"),
        json!("1_000"),
        json!("1e1.5"),
        json!("NaN"),
        json!("٣"),
        json!(true),
        json!(-1),
        json!({"a": 1}),
        json!(["1"]),
        json!("1mi"),
        json!("1ki"),
        json!("500mm"),
        json!("1i"),
        json!("--1"),
    ];
    draw.pick(&wrong).clone()
}
