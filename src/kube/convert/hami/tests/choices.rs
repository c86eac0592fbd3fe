use super::cases;
use crate::kube::convert::hami::choice::{note_unknown_order, order, rules, unsupported_order};
use crate::kube::convert::problems::Problems;
use crate::kube::objects::Annotations;
use gpu_batch_policies::facts::{CardOrder, CardRule};
use serde_json::json;

/// Whether the rules of one kind allow a card: of models, or of ids.
fn allows(rules: &[CardRule], of_models: bool, id: &str, model: &str) -> bool {
    let mut rules = rules.iter().filter(|rule| {
        let is_of_models = matches!(rule, CardRule::Models(_) | CardRule::NotModels(_));
        is_of_models == of_models
    });
    rules.all(|rule| rule.allows(id, &model.to_ascii_lowercase()))
}

#[test]
fn cards_will_do_that_will_do_for_hami() {
    let cases = cases("codec", Some("match"));
    for case in &cases {
        let annotations: Annotations =
            serde_json::from_value(case["input"]["annotations"].clone()).unwrap();
        let rules = rules(&annotations);
        let text = |key: &str| case["input"][key].as_str().unwrap();
        for (of_models, key) in [(true, "type"), (false, "uuid")] {
            let allowed = allows(&rules, of_models, text("id"), text("type"));
            assert_eq!(json!(allowed), case["answer"][key], "{case}");
        }
    }
    println!("{} cards and rules compared", cases.len());
    assert!(cases.len() > 100);
}

#[test]
fn cards_are_taken_in_the_order_that_is_asked_for_and_unknown_ones_are_told() {
    let spread = Some(CardOrder::Spread);
    let field = "metadata.annotations[hami.io/gpu-scheduler-policy]";
    for (value, expected, is_other, is_told) in [
        ("binpack", Some(CardOrder::Binpack), false, false),
        ("spread", spread, false, false),
        // HAMi does not trim a value without commas.
        (" binpack", spread, false, true),
        ("nonsense", spread, false, true),
        ("", spread, false, true),
        ("topology-aware", spread, true, false),
        ("mutex", spread, true, false),
        ("binpack, numa", spread, true, false),
        ("binpack,spread", spread, true, false),
    ] {
        let annotations = json!({"hami.io/gpu-scheduler-policy": value});
        let annotations: Annotations = serde_json::from_value(annotations).unwrap();
        let mut notes = Problems::default();
        note_unknown_order(&annotations, &mut notes);
        let notes = notes.into_vec();
        assert_eq!(order(&annotations), expected, "{value}");
        let unsupported = unsupported_order(&annotations);
        let of_field = is_other.then(|| format!("{field}: `{value}`"));
        assert_eq!(unsupported, of_field, "{value}");
        assert_eq!(notes.len(), usize::from(is_told), "{value}");
        assert!(notes.iter().all(|note| &*note.field == field), "{notes:?}");
    }
    assert_eq!(order(&Annotations::default()), None);
}
