//! From the text of a file to its fields.
//!
//! What cannot be read is said in the words of the file: the key, what stands there, and what may
//! stand there. The library's own messages are about its types, so a text that it refuses is looked
//! at once more here.

use super::check::numbers;
use super::file::{ConfigurationFile, HealthRuleFile};
use crate::kube::api::{PLACEMENT_NAMES, parse_signed_duration_ms};
use crate::live::log::LogFormat;
use gpu_batch_policies::names::suggestion;
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::{DuplicateKeyPolicy, Error, UserMessageFormatter};
use std::io;

/// Reads a file: the fields that can be read, and the problems of all others, with the keys and
/// what is allowed.
///
/// # Errors
/// The problems that keep the whole file from being read.
pub(super) fn read(text: &str) -> Result<(ConfigurationFile, Vec<String>), Vec<String>> {
    let error = match serde_saphyr::from_str(text) {
        Ok(file) => return Ok((file, texts_for_numbers(text))),
        Err(error) => error,
    };
    let mut misfits = Vec::new();
    let value = match serde_saphyr::from_str(text) {
        Ok(value) => value,
        Err(error) if matches!(error.without_snippet(), Error::DuplicateMappingKey { .. }) => {
            misfits.extend(keys_there_twice(text));
            let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
            let value = serde_saphyr::from_str_with_options(text, options);
            value.map_err(|error| vec![syntax(&error)])?
        }
        Err(error) => return Err(vec![syntax(&error)]),
    };
    let before = misfits.len();
    let template = template();
    let fitting = fitting("", value, &template, &mut misfits);
    if let ([only], 0) = (misfits.as_mut_slice(), before) {
        *only = at(&error, only);
    }
    match fitting.map(serde_json::from_value) {
        _ if misfits.is_empty() => Err(vec![in_its_words(&error)]),
        Some(Ok(file)) => Ok((file, misfits)),
        _ => Err(misfits),
    }
}

/// A file with every key, to which texts are compared.
fn template() -> Value {
    let mut file = ConfigurationFile::default();
    file.health.rules = vec![HealthRuleFile::with_every_key()];
    serde_json::to_value(file).unwrap_or_default()
}

/// The keys at which a text stands where a number is wanted, as in `"8"`: the library takes it for
/// the number.
fn texts_for_numbers(text: &str) -> Vec<String> {
    fn find(key: &str, value: Value, template: &Value, misfits: &mut Vec<String>) {
        match (value, template) {
            (Value::Object(values), Value::Object(templates)) => {
                for (name, value) in values {
                    if let Some(template) = templates.get(&name) {
                        find(&below(key, &name), value, template, misfits);
                    }
                }
            }
            (value @ Value::String(_), Value::Number(_)) => {
                fitting(key, value, template, misfits);
            }
            _ => {}
        }
    }
    let mut misfits = Vec::new();
    let template = template();
    if let Ok(value) = serde_saphyr::from_str(text) {
        find("", value, &template, &mut misfits);
    }
    misfits
}

/// The name of a key below another one.
fn below(key: &str, name: &str) -> String {
    match key {
        "" => name.to_owned(),
        key => format!("{key}.{name}"),
    }
}

/// Every key that is there twice. The library tells of one at a time: the line of each is taken out
/// of the text, with what stands below it, before the next one is looked for.
fn keys_there_twice(text: &str) -> Vec<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut told = Vec::new();
    while let Err(error) = serde_saphyr::from_str::<Value>(&lines.join("\n")) {
        let is_duplicate = matches!(error.without_snippet(), Error::DuplicateMappingKey { .. });
        let line = error
            .location()
            .and_then(|location| usize::try_from(location.line()).ok());
        let line = line.and_then(|line| line.checked_sub(1));
        let is_there = |line: &usize| lines.get(*line).is_some_and(|line| !line.trim().is_empty());
        let Some(line) = line.filter(|line| is_duplicate && is_there(line)) else {
            break;
        };
        told.push(syntax(&error));
        let indent = |line: &str| line.len() - line.trim_start().len();
        let depth = indent(lines[line]);
        let below = lines[line + 1..].iter();
        let below = below.take_while(|below| below.trim().is_empty() || indent(below) > depth);
        let end = line + 1 + below.count();
        lines[line..end].fill("");
    }
    told
}

/// Why a file cannot be opened, and what to do.
pub(super) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; `gpu-batch config --print-defaults` \
                                    prints one to begin with"
            .to_owned(),
        io::ErrorKind::IsADirectory => "this is a folder; name the file in it".to_owned(),
        io::ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
        io::ErrorKind::InvalidData => "this is not text in UTF-8".to_owned(),
        _ => error.to_string(),
    }
}

fn at(error: &Error, problem: &str) -> String {
    match error.location().map(|location| location.line()) {
        Some(line) if line > 0 => format!("{problem} (line {line})"),
        _ => problem.to_owned(),
    }
}

/// What the library says, without lines of the text; the message names the place.
fn in_its_words(error: &Error) -> String {
    let words = error.without_snippet();
    words.render_with_formatter(&UserMessageFormatter)
}

/// The sentence for a text that is no valid YAML, so that there are no keys to name.
fn syntax(error: &Error) -> String {
    let problem = match error.without_snippet() {
        Error::MultipleDocuments { .. } => {
            "there is more than one document; a configuration is one, without `---`"
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            return at(error, &format!("{key}: the key is there twice"));
        }
        Error::DuplicateMappingKey { key: None, .. } => "a key is there twice",
        error => return format!("this is not YAML: {}", in_its_words(error)),
    };
    at(error, problem)
}

/// The part of a value that can be read. Notes each key that does not exist, and each value that is
/// of another sort than the default.
fn fitting(key: &str, value: Value, template: &Value, misfits: &mut Vec<String>) -> Option<Value> {
    match (value, template) {
        (Value::Object(values), Value::Object(templates)) => {
            let mut kept = Map::new();
            for (name, value) in values {
                let inner = below(key, &name);
                match templates.get(&name) {
                    Some(template) => {
                        let value = fitting(&inner, value, template, misfits);
                        kept.extend(value.map(|value| (name, value)));
                    }
                    None => misfits.push(no_such_key(&inner, &name, templates)),
                }
            }
            Some(Value::Object(kept))
        }
        (value @ Value::Object(_), _) if key == "placement" => {
            let sorts: Map<String, Value> = ["gpu", "cpu"]
                .map(|sort| (sort.to_owned(), template.clone()))
                .into_iter()
                .collect();
            fitting(key, value, &Value::Object(sorts), misfits)
        }
        (Value::Array(values), Value::Array(templates)) => {
            let mut kept = Vec::new();
            for (index, value) in values.into_iter().enumerate() {
                let inner = format!("{key}[{index}]");
                match templates.first() {
                    Some(template) => kept.extend(fitting(&inner, value, template, misfits)),
                    None => kept.push(value),
                }
            }
            Some(Value::Array(kept))
        }
        (value, template) if !fits(key, &value, template) => {
            let found = match value {
                Value::Array(_) => "a list".to_owned(),
                Value::Object(_) => "keys and values".to_owned(),
                value => value.to_string(),
            };
            let expected = expected(key, template);
            let key = if key.is_empty() { "the file" } else { key };
            misfits.push(format!("{key}: must be {expected}, not {found}"));
            None
        }
        // YAML takes a bare number for text where text is wanted.
        (value @ (Value::Number(_) | Value::Bool(_)), Value::String(_) | Value::Null) => {
            Some(Value::String(value.to_string()))
        }
        (value, _) => Some(value),
    }
}

fn no_such_key(key: &str, name: &str, known: &Map<String, Value>) -> String {
    let names = || known.keys().map(String::as_str);
    let meant = suggestion(name, names());
    let meant = meant.unwrap_or_else(|| {
        let names: Vec<&str> = names().collect();
        format!("there are {}", names.join(", "))
    });
    format!("{key}: there is no such key; {meant}")
}

/// Whether a value is of the same sort as the default. Any scalar can be text.
fn fits(key: &str, value: &Value, template: &Value) -> bool {
    match (value, template) {
        (value, _) if key == "log.format" => LogFormat::deserialize(value).is_ok(),
        (value, Value::Number(_)) => value
            .as_i64()
            .is_some_and(|number| numbers(key).contains(&number)),
        (value, Value::Bool(_)) => value.is_boolean(),
        (value, Value::String(_)) => value.is_string() || value.is_number() || value.is_boolean(),
        (value, Value::Null) => !value.is_object() && !value.is_array(),
        (value, Value::Object(_)) => value.is_object(),
        (value, Value::Array(_)) => value.is_array(),
    }
}

/// The words for the values that are allowed at a key.
fn expected(key: &str, template: &Value) -> String {
    match template {
        _ if key.starts_with("placement") => {
            format!("one of {}", PLACEMENT_NAMES.join(", "))
        }
        _ if key == "log.format" => "text or json".to_owned(),
        _ if matches!(key, "useHalfLife" | "aging") => "a duration such as 24h, or null".to_owned(),
        Value::Number(_) => {
            let range = numbers(key);
            format!("a whole number from {} to {}", range.start(), range.end())
        }
        Value::Bool(_) => "true or false".to_owned(),
        Value::String(default) => match parse_signed_duration_ms(default) {
            Ok(_) => format!("a duration such as {default}"),
            Err(_) => "a text".to_owned(),
        },
        Value::Object(keys) => {
            let keys: Vec<&str> = keys.keys().map(String::as_str).collect();
            format!("keys and values; the keys are {}", keys.join(", "))
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Null => "a text, or null".to_owned(),
    }
}
