//! What Kubernetes takes for a label key or value. A required node affinity may hold others (they
//! were valid once), and a term with one selects nothing.

/// The longest label value, and the longest name in a label key.
const NAME_MAX: usize = 63;

/// The longest prefix of a label key.
const PREFIX_MAX: usize = 253;

/// Whether the text is a label key: a name, optionally behind a DNS subdomain and a slash.
pub(super) fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(key),
    }
}

/// Whether the text is a label value: empty, or a name.
pub(super) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= NAME_MAX && is_word(text, inside, |byte| byte.is_ascii_alphanumeric())
}

fn is_subdomain(text: &str) -> bool {
    let end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= PREFIX_MAX
        && text
            .split('.')
            .all(|part| is_word(part, |byte| end(byte) || byte == b'-', end))
}

/// Not empty, all bytes allowed, and the first and last of the stricter kind.
fn is_word(text: &str, inside: impl Fn(u8) -> bool, end: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => end(*only),
        [first, .., last] => end(*first) && end(*last) && text.bytes().all(inside),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_label_key, is_label_value};
    use std::string::String;

    #[test]
    fn label_values_are_those_of_kubernetes() {
        for good in ["", "a", "A-b_c.9", "007", &"x".repeat(63)] {
            assert!(is_label_value(good), "{good}");
        }
        for bad in [
            "-5",
            "5-",
            "_",
            ".a",
            "a b",
            "a/b",
            "é",
            "+5",
            &"x".repeat(64),
        ] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }

    #[test]
    fn label_keys_are_those_of_kubernetes() {
        let longest = String::from("a.") + &"b".repeat(251) + "/" + &"x".repeat(63);
        for good in ["a", "A_b.c", "nvidia.com/gpu.product", "x-1.y/Z", &longest] {
            assert!(is_label_key(good), "{good}");
        }
        let too_long = String::from("a") + &longest;
        for bad in [
            "", "/", "a/", "/a", "a/b/c", "A.b/c", "a..b/c", "-a/b", "a_b/c", &too_long,
        ] {
            assert!(!is_label_key(bad), "{bad}");
        }
    }
}
