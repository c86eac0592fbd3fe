//! Rules for the keys and values of labels, and for the names of objects.

use crate::kube::convert::problems::Problems;
use crate::kube::objects::Pairs;
use std::fmt;

/// The longest name, without its prefix, and the longest value of a label.
const LABEL_MAX: usize = 63;
/// The longest prefix of a name, and the longest name of a node.
const PREFIX_MAX: usize = 253;

pub(super) const NOT_A_KEY: &str = "is not a key: at most 63 letters, digits, `-`, `_` and `.`, \
                                    with a letter or digit at both ends, after a domain and `/` \
                                    if there is one";
const NOT_A_VALUE: &str = "is not a value of a label: at most 63 letters, digits, `-`, `_` and \
                           `.`, with a letter or digit at both ends";
const NOT_A_NODE: &str = "cannot be the name of a node: at most 253 small letters, digits, `-` \
                          and `.`, with a letter or digit at both ends of each part";

/// Labels, or what is asked of them.
pub(super) fn pairs(pairs: &Pairs<Box<str>>, field: &str, problems: &mut Problems) {
    for (key, value) in pairs.iter() {
        is_key_of(key, field, problems);
        is_value_of(value, format_args!("{field}[{key}]"), problems);
    }
}

/// Checks the key of a label.
pub(super) fn is_key_of(key: &str, field: impl fmt::Display, problems: &mut Problems) {
    if !is_key(key) {
        problems.push(field, format_args!("`{key}` {NOT_A_KEY}"));
    }
}

/// Checks the value of a label.
pub(super) fn is_value_of(value: &str, field: impl fmt::Display, problems: &mut Problems) {
    if !value.is_empty() && !is_name(value) {
        problems.push(field, format_args!("`{value}` {NOT_A_VALUE}"));
    }
}

/// Checks the name of a node.
pub(super) fn is_node_of(name: &str, field: impl fmt::Display, problems: &mut Problems) {
    if !is_subdomain(name) {
        problems.push(field, format_args!("`{name}` {NOT_A_NODE}"));
    }
}

/// Whether a text is a qualified name, as labels and resources have.
pub(super) fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_name(text),
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
    }
}

fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = [text.bytes().next(), text.bytes().next_back()];
    let ends_well = |byte: &Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.len() <= LABEL_MAX && ends.iter().all(ends_well) && text.bytes().all(is_inner)
}

fn is_subdomain(text: &str) -> bool {
    let is_outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let ends = [part.bytes().next(), part.bytes().next_back()];
        let ends_well = ends.iter().all(|byte| byte.is_some_and(is_outer));
        ends_well && part.bytes().all(|byte| is_outer(byte) || byte == b'-')
    };
    text.len() <= PREFIX_MAX && text.split('.').all(is_part)
}
