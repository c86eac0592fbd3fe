use super::parse;
use gpu_batch_policies::facts::ConditionStatus;
use gpu_batch_policies::settings::{Health, HealthRule, Sign};

fn condition(kind: &str, status: ConditionStatus) -> Sign {
    Sign::Condition {
        kind: kind.into(),
        status,
    }
}

fn of_file(text: &str) -> Health {
    parse(text).unwrap().settings.health
}

fn rule_of<'a>(health: &'a Health, sign: &Sign) -> Option<&'a HealthRule> {
    let mut rules = health.rules.iter().filter(|rule| rule.sign == *sign);
    let rule = rules.next();
    assert_eq!(rules.next(), None, "one rule for each sign");
    rule
}

#[test]
fn rules_of_the_file_stand_for_the_defaults_that_they_name() {
    let health = of_file(
        "health:\n  recoveryPeriod: 5m\n  rules:\n  \
         - {condition: GpuMemWatch, action: evict, after: 10m}\n  \
         - {condition: AcceleratedHardwareReady, status: False, action: ignore}\n  \
         - {condition: CardsBurn, status: unknown, action: noNewWork}\n  \
         - {taint: example.com/bad, action: evict, after: 0s}\n",
    );
    assert_eq!(health.recovery_ms, 300_000);
    let after = |sign| rule_of(&health, &sign).map(|rule| rule.evict_after_ms);
    let bad = ConditionStatus::True;
    assert_eq!(after(condition("GpuMemWatch", bad)), Some(Some(600_000)));
    let ready = "AcceleratedHardwareReady";
    assert_eq!(after(condition(ready, ConditionStatus::False)), None);
    let unknown = condition("CardsBurn", ConditionStatus::Unknown);
    assert_eq!(after(unknown), Some(None));
    let key = "example.com/bad".into();
    assert_eq!(after(Sign::Taint { key }), Some(Some(0)));
    assert_eq!(after(condition("GpuSmWatch", bad)), Some(None));
    assert_eq!(health.rules.len(), Health::default().rules.len() + 1);
}

#[test]
fn by_default_every_known_sign_closes_and_none_evicts() {
    let health = of_file("");
    assert_eq!(health, Health::default());
    assert_eq!(of_file("health: {rules: []}"), health);
    assert_eq!(health.rules.len(), 26);
    assert!(
        health
            .rules
            .iter()
            .all(|rule| rule.evict_after_ms.is_none())
    );
}

/// Tools that write YAML take `True` for a truth value.
#[test]
fn a_status_may_be_a_truth_value() {
    for status in ["True", "true", "'True'"] {
        let text =
            format!("health: {{rules: [{{condition: A, status: {status}, action: noNewWork}}]}}");
        let health = of_file(&text);
        let sign = condition("A", ConditionStatus::True);
        assert!(rule_of(&health, &sign).is_some(), "{status}");
    }
}

/// A rule, and a part of the message.
const WRONG: &[(&str, &str)] = &[
    (
        "action: evict",
        "health.rules[1]: must have either a condition or a taint",
    ),
    (
        "condition: A, taint: b, action: noNewWork",
        "health.rules[1]: must have either a condition or a taint",
    ),
    (
        "condition: A, action: evict",
        "health.rules[1].after: must be given, as in 10m",
    ),
    (
        "condition: A, action: evict, after: soon",
        "health.rules[1].after: `soon` is not a duration",
    ),
    (
        "condition: A, action: noNewWork, after: 10m",
        "health.rules[1].after: is for action: evict alone",
    ),
    (
        "condition: A, action: drain",
        "health.rules[1].action: must be noNewWork, evict or ignore",
    ),
    ("condition: A", "health.rules[1].action: must be noNewWork"),
    (
        "condition: A, status: Bad, action: noNewWork",
        "health.rules[1].status: must be True, False or Unknown",
    ),
    (
        "taint: a, status: True, action: noNewWork",
        "health.rules[1].status: must not be given for a taint",
    ),
    (
        "condition: CardsReady, action: noNewWork",
        "health.rules[1].status: must be given: CardsReady is bad when it is False",
    ),
    (
        "condition: 'a b', action: noNewWork",
        "health.rules[1].condition: must be of letters",
    ),
    (
        "taint: '', action: noNewWork",
        "health.rules[1].taint: must be of letters",
    ),
    (
        "condition: GpuMemWatch, action: noNewWork",
        "health.rules[1]: the condition GpuMemWatch has another rule already",
    ),
    (
        "conditions: [A], action: noNewWork",
        "health.rules[1].conditions: there is no such key; did you mean condition?",
    ),
    (
        "condition: {a: b}, action: noNewWork",
        "health.rules[1].condition: must be a text",
    ),
];

#[test]
fn what_is_wrong_with_a_rule_is_named_with_its_place() {
    for (rule, expected) in WRONG {
        let text =
            format!("health: {{rules: [{{condition: GpuMemWatch, action: ignore}}, {{{rule}}}]}}");
        let message = parse(&text).expect_err(rule).to_string();
        assert!(message.contains(expected), "{rule}:\n{message}");
    }
    for (text, expected) in [
        (
            "health: {rules: all}",
            "health.rules: must be a list, not \"all\"",
        ),
        (
            "health: {recoveryPeriod: -1s}",
            "health.recoveryPeriod: `-1s` is not a duration",
        ),
        (
            "timeSlicing: {failRequestsGreaterThanOne: 1}",
            "timeSlicing.failRequestsGreaterThanOne: must be true or false, not 1",
        ),
    ] {
        let message = parse(text).expect_err(text).to_string();
        assert!(message.contains(expected), "{text}:\n{message}");
    }
}
