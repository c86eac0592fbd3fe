//! The keys that differ between two files, and the keys for which the scheduler begins anew.

use super::ConfigurationFile;
use serde_json::Value;

/// Keys around which the running scheduler was built, with all keys below them. Their documentation
/// says that the scheduler begins anew.
const FOUNDATIONS: [&str; 6] = [
    "schedulerName",
    "serveAddress",
    "extender",
    "leaderElection",
    "health.rules",
    "preferences",
];

/// The keys whose values differ, in the order of their names: `placement`, `inFlight.actions`.
pub(super) fn changed_keys(one: &ConfigurationFile, other: &ConfigurationFile) -> Vec<String> {
    let value = |file| serde_json::to_value(file).unwrap_or_default();
    let mut keys = Vec::new();
    compare("", &value(one), &value(other), &mut keys);
    keys
}

fn compare(key: &str, one: &Value, other: &Value, keys: &mut Vec<String>) {
    if one == other {
        return;
    }
    // A placement is one word, or one word each for GPU and CPU work.
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            for (name, value) in one {
                let key = match key {
                    "" => name.clone(),
                    key => format!("{key}.{name}"),
                };
                compare(&key, value, &other[name], keys);
            }
        }
        _ => keys.push(key.to_owned()),
    }
}

/// Whether the scheduler begins anew when this key has changed.
pub(super) fn begins_anew(key: &str) -> bool {
    FOUNDATIONS.iter().any(|foundation| {
        let rest = key.strip_prefix(foundation);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{EVERY_KEY, parse};
    use super::{begins_anew, changed_keys};
    use crate::live::config::{Configuration, print_defaults};

    #[test]
    fn changes_are_named_by_their_keys() {
        let defaults = parse("").unwrap().file;
        let other = parse("placement: {gpu: spread, cpu: binpack}\ninFlight: {actions: 1}");
        let keys = changed_keys(&defaults, &other.unwrap().file);
        assert_eq!(keys, ["inFlight.actions", "placement"]);
        assert!(changed_keys(&defaults, &defaults).is_empty());
    }

    /// Everything for which the scheduler does not begin anew reaches the engine or the log, and
    /// everything for which it does says so.
    #[test]
    fn each_key_takes_effect_or_says_that_the_scheduler_begins_anew() {
        let defaults = parse("").unwrap();
        let other = parse(EVERY_KEY).unwrap();
        let text = print_defaults().unwrap();
        let keys = changed_keys(&defaults.file, &other.file);
        assert!(keys.len() >= 27, "{keys:?}");
        for key in keys {
            let top = key.split('.').next().unwrap();
            let comment = |name: &str| {
                let key = format!("{name}:");
                let lines: Vec<&str> = text.lines().map(str::trim).collect();
                let at = lines
                    .iter()
                    .position(|line| line.starts_with(&key))
                    .unwrap();
                let comments = lines[..at].iter().rev();
                let comments = comments.take_while(|line| line.starts_with('#'));
                comments.copied().collect::<Vec<_>>().join(" ")
            };
            let told = [top, key.rsplit('.').next().unwrap()].map(comment);
            let says = told.iter().any(|comment| comment.contains("begins anew"));
            assert_eq!(begins_anew(&key), says, "{key}: {told:?}");
            if !begins_anew(&key) {
                let changed = only(&defaults, &other, &key);
                let same = changed.settings == defaults.settings
                    && changed.log_format == defaults.log_format
                    && changed.log_level == defaults.log_level;
                assert!(!same, "{key} has no effect");
            }
        }
    }

    /// The defaults with one key of the other.
    fn only(defaults: &Configuration, other: &Configuration, key: &str) -> Configuration {
        let mut file = serde_json::to_value(&defaults.file).unwrap();
        let other = serde_json::to_value(&other.file).unwrap();
        let pointer = format!("/{}", key.replace('.', "/"));
        *file.pointer_mut(&pointer).unwrap() = other.pointer(&pointer).unwrap().clone();
        Configuration::parse(&file.to_string(), "one key").unwrap()
    }
}
