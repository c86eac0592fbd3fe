//! `health`: from the rules as they are written to those that hold.

use super::Problems;
use crate::live::config::file::{HealthFile, HealthRuleFile};
use gpu_batch_policies::facts::ConditionStatus;
use gpu_batch_policies::settings::{Health, HealthRule, Sign};

/// How many rules a file may have: each node is held against all of them.
const RULES_MAX: usize = 1_000;

/// What follows from a sign, as it is written.
enum Action {
    Ignore,
    NoNewWork,
    Evict { after_ms: u64 },
}

/// The rules of the file, and the default rules for signs that the file does not name.
pub(super) fn check(file: &HealthFile, problems: &mut Problems) -> Health {
    problems.require(
        file.rules.len() <= RULES_MAX,
        "health.rules",
        format_args!("must be at most {RULES_MAX}"),
    );
    let mut named: Vec<Sign> = Vec::new();
    let mut rules = Vec::new();
    for (index, rule) in file.rules.iter().take(RULES_MAX).enumerate() {
        let key = format!("health.rules[{index}]");
        let sign = sign(&key, rule, problems);
        let action = action(&key, rule, problems);
        let Some(sign) = sign else {
            continue;
        };
        if named.contains(&sign) {
            problems.add(&key, format_args!("{sign} has another rule already"));
        }
        let evict_after_ms = match action {
            Action::Ignore | Action::NoNewWork => None,
            Action::Evict { after_ms } => Some(after_ms),
        };
        if !matches!(action, Action::Ignore) {
            rules.push(HealthRule {
                sign: sign.clone(),
                evict_after_ms,
            });
        }
        named.push(sign);
    }
    let defaults = Health::default().rules.into_iter();
    rules.extend(defaults.filter(|rule| !named.contains(&rule.sign)));
    Health {
        rules,
        recovery_ms: problems.value("health.recoveryPeriod", file.recovery_period.milliseconds()),
    }
}

/// The sign that a rule names; `None`: a problem is noted.
fn sign(key: &str, rule: &HealthRuleFile, problems: &mut Problems) -> Option<Sign> {
    match (&rule.condition, &rule.taint) {
        (Some(kind), None) => {
            let is_name = is_name(kind);
            problems.require(is_name, &format!("{key}.condition"), NAME);
            let status = status(key, kind, rule.status.as_deref(), problems)?;
            is_name.then(|| Sign::Condition {
                kind: kind.as_str().into(),
                status,
            })
        }
        (None, Some(taint)) => {
            let is_name = is_name(taint);
            problems.require(is_name, &format!("{key}.taint"), NAME);
            let status = format!("{key}.status");
            problems.require(
                rule.status.is_none(),
                &status,
                "must not be given for a taint",
            );
            is_name.then(|| Sign::Taint {
                key: taint.as_str().into(),
            })
        }
        _ => {
            problems.add(key, "must have either a condition or a taint");
            None
        }
    }
}

const NAME: &str = "must be of letters, digits, -, _, . and /, at most 316 of them";

/// Whether the text may be the type of a condition, or the key of a taint.
fn is_name(text: &str) -> bool {
    let may_be_in = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    (1..=316).contains(&text.len()) && text.bytes().all(may_be_in)
}

/// The bad status of a condition; `None`: a problem is noted.
fn status(
    key: &str,
    kind: &str,
    written: Option<&str>,
    problems: &mut Problems,
) -> Option<ConditionStatus> {
    let key = format!("{key}.status");
    let Some(written) = written else {
        // With the default every node that is well would be closed.
        if kind.ends_with("Ready") {
            problems.add(
                &key,
                format_args!("must be given: {kind} is bad when it is False, by its name"),
            );
            return None;
        }
        return Some(ConditionStatus::True);
    };
    let mut known = ConditionStatus::ALL.into_iter();
    // YAML and the tools that write it take True for a truth value, and may write it as true.
    let status = known.find(|known| known.as_str().eq_ignore_ascii_case(written));
    problems.require(status.is_some(), &key, "must be True, False or Unknown");
    status
}

fn action(key: &str, rule: &HealthRuleFile, problems: &mut Problems) -> Action {
    let after = rule.after.as_ref();
    let after_key = format!("{key}.after");
    let needless = "is for action: evict alone";
    match &*rule.action {
        "evict" => {
            problems.require(after.is_some(), &after_key, "must be given, as in 10m");
            let after_ms = after.map(|after| problems.value(&after_key, after.milliseconds()));
            Action::Evict {
                after_ms: after_ms.unwrap_or_default(),
            }
        }
        "noNewWork" => {
            problems.require(after.is_none(), &after_key, needless);
            Action::NoNewWork
        }
        "ignore" => {
            problems.require(after.is_none(), &after_key, needless);
            Action::Ignore
        }
        _ => {
            problems.add(
                &format!("{key}.action"),
                "must be noNewWork, evict or ignore",
            );
            Action::NoNewWork
        }
    }
}
