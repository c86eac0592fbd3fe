//! Spans of time as users write them.

use alloc::format;
use alloc::string::String;

const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A span of time in the shortest way in which a spec can say it: 90,000 ms are `1m30s`.
#[must_use]
pub fn duration(milliseconds: u64) -> String {
    if milliseconds == 0 {
        return "0s".into();
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
