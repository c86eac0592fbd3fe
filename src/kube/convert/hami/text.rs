//! Annotations as HAMi's code, which is Go, reads them.

use crate::kube::convert::limits;
use crate::kube::convert::problems::in_plain_words;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A text that is not too long to be read.
pub(super) fn limited(text: &str) -> Result<&str, String> {
    match text.len() > limits::ANNOTATION_TEXT {
        true => Err(format!("is more than {} bytes", limits::ANNOTATION_TEXT)),
        false => Ok(text),
    }
}

/// Reads an annotation in JSON by way of a `Value`: where an object has two fields of one name, Go
/// takes the last one, as a `Value` does, and serde refuses.
pub(super) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let read = serde_json::from_str::<Value>(text).and_then(serde_json::from_value);
    read.map_err(|error| in_plain_words(&error.to_string()))
}

/// True or false; `None`: neither. Source: `strconv.ParseBool`.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}
