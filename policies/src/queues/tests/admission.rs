use super::*;
use crate::facts::{LabelSelector, Labels, MatchOperator, SelectorRequirement};
use crate::reason::Reason;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

fn requires(key: &str, operator: MatchOperator, values: &[&str]) -> LabelSelector {
    LabelSelector {
        match_labels: Vec::new(),
        match_expressions: vec![SelectorRequirement {
            key: key.into(),
            operator,
            values: values.iter().map(|value| (*value).into()).collect(),
        }],
    }
}

fn selecting(name: &str, parent: &str, selector: LabelSelector) -> QueueFacts {
    QueueFacts {
        namespace_selector: Some(selector),
        ..queue(name, parent)
    }
}

fn closed(name: &str, parent: &str) -> QueueFacts {
    QueueFacts {
        closed: true,
        ..queue(name, parent)
    }
}

fn refusal(tree: &QueueTree, name: &str, labels: Option<&Labels>) -> Option<(Reason, String)> {
    let refusal = tree.admit(name, "team", labels).err()?;
    Some((refusal.reason, refusal.message))
}

#[test]
fn each_refusal_names_its_reason_and_the_queue_whose_rule_it_is() {
    let in_team = LabelSelector {
        match_labels: labels(&[("team", "vision")]),
        match_expressions: Vec::new(),
    };
    let tree = tree(vec![
        queue("open", ""),
        queue("parent", ""),
        queue("child", "parent"),
        closed("shut", ""),
        closed("shut parent", ""),
        queue("below shut", "shut parent"),
        selecting("chosen", "", in_team.clone()),
        selecting("choosing", "", in_team),
        queue("below choosing", "choosing"),
        selecting("any", "", LabelSelector::default()),
        queue("orphan", "nobody"),
    ]);
    let vision = labels(&[("a", "b"), ("team", "vision")]);
    let speech = labels(&[("team", "speech")]);
    let check = |name: &str, labels: Option<&Labels>, expected: Option<(Reason, &str)>| {
        let refusal = refusal(&tree, name, labels);
        match (&refusal, expected) {
            (None, None) => assert!(tree.admit(name, "team", labels) == Ok(tree.at(name))),
            (Some((reason, message)), Some((expected, words))) => {
                assert_eq!(*reason, expected, "{name}");
                assert!(message.contains(words), "{name}: {message}");
            }
            _ => panic!("{name}: {refusal:?}, not {expected:?}"),
        }
    };
    let not_allowed = Reason::NamespaceNotAllowed;
    check("open", None, None);
    check("default", None, None);
    check("child", Some(&speech), None);
    check("any", None, None);
    check(
        "nowhere",
        None,
        Some((Reason::QueueNotFound, "nowhere does not exist")),
    );
    check(
        "orphan",
        None,
        Some((Reason::QueueNotFound, "ParentNotFound: the parent nobody")),
    );
    check(
        "parent",
        None,
        Some((Reason::QueueNotLeaf, "parent has children")),
    );
    check("shut", None, Some((Reason::QueueClosed, "shut is closed")));
    check(
        "below shut",
        None,
        Some((Reason::QueueClosed, "shut parent is closed")),
    );
    check("chosen", Some(&vision), None);
    check(
        "chosen",
        Some(&speech),
        Some((not_allowed, "chosen does not take")),
    );
    check("chosen", None, Some((not_allowed, "of the namespace team")));
    check("below choosing", Some(&vision), None);
    check(
        "below choosing",
        Some(&speech),
        Some((not_allowed, "choosing does not take")),
    );
}

#[test]
fn the_default_queue_can_be_forbidden_and_comes_back() {
    let mut tree = tree(vec![closed("default", "")]);
    let reason = |tree: &QueueTree| refusal(tree, "default", None).map(|(reason, _)| reason);
    assert_eq!(reason(&tree), Some(Reason::QueueClosed));
    tree.apply(queue("child", "default"));
    tree.refresh(6);
    assert_eq!(reason(&tree), Some(Reason::QueueNotLeaf));
    tree.replace(Vec::new());
    tree.refresh(7);
    assert_eq!(reason(&tree), None);
}

#[test]
fn selectors_mean_what_they_mean_in_kubernetes() {
    let check = |operator, values: &[&str], present: &[(&str, &str)], expected: bool| {
        let selector = requires("team", operator, values);
        let tree = tree(vec![selecting("q", "", selector)]);
        let admitted = tree.admit("q", "ns", Some(&labels(present))).is_ok();
        assert_eq!(admitted, expected, "{operator:?} {values:?} of {present:?}");
    };
    let (a, b, none) = (
        &[("team", "a")][..],
        &[("team", "b")][..],
        &[("other", "a")][..],
    );
    use MatchOperator::{DoesNotExist, Exists, Gt, In, Lt, NotIn};
    check(In, &["a", "c"], a, true);
    check(In, &["a", "c"], b, false);
    check(In, &["a", "c"], none, false);
    check(NotIn, &["a"], a, false);
    check(NotIn, &["a"], b, true);
    check(NotIn, &["a"], none, true);
    check(Exists, &[], a, true);
    check(Exists, &[], none, false);
    check(DoesNotExist, &[], a, false);
    check(DoesNotExist, &[], none, true);
    check(Gt, &["1"], &[("team", "2")], false);
    check(Lt, &["3"], &[("team", "2")], false);
}
