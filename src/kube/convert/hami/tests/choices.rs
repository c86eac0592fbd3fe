use super::cases;
use crate::kube::convert::hami::choice::{
    is_bound_to_numa, is_for_idle_cards, modes, note_unknown_numa_bind, note_unknown_order, order,
    rules, unsupported_mode,
};
use crate::kube::convert::hami::request::asked;
use crate::kube::convert::problems::Problems;
use crate::kube::objects::{Annotations, Pod};
use gpu_batch_policies::facts::{CardModes, CardOrder, CardRule};
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
    let (binpack, spread) = (CardOrder::Binpack, CardOrder::Spread);
    let (numa, links) = (CardOrder::Numa, CardOrder::Links);
    let field = "metadata.annotations[hami.io/gpu-scheduler-policy]";
    for (value, expected, is_idle, is_told) in [
        ("binpack", vec![binpack], false, false),
        ("spread", vec![spread], false, false),
        // HAMi does not trim a value without commas.
        (" binpack", vec![spread], false, true),
        ("nonsense", vec![spread], false, true),
        ("", vec![spread], false, true),
        ("topology-aware", vec![links], false, false),
        ("mutex", vec![], true, false),
        ("numa", vec![numa], false, false),
        ("binpack, numa", vec![binpack, numa], false, false),
        ("numa,spread, numa", vec![numa, spread], false, false),
        ("binpack,topology-aware", vec![links, binpack], false, false),
        ("mutex,topology-aware", vec![links], true, false),
        ("nonsense,numa", vec![numa], false, true),
        (",", vec![], false, true),
    ] {
        let annotations = json!({"hami.io/gpu-scheduler-policy": value});
        let annotations: Annotations = serde_json::from_value(annotations).unwrap();
        let mut notes = Problems::default();
        note_unknown_order(&annotations, &mut notes);
        let notes = notes.into_vec();
        assert_eq!(order(&annotations), expected, "{value}");
        assert_eq!(is_for_idle_cards(&annotations), is_idle, "{value}");
        assert_eq!(notes.len(), usize::from(is_told), "{value}");
        assert!(notes.iter().all(|note| &*note.field == field), "{notes:?}");
    }
    assert_eq!(order(&Annotations::default()), []);
}

#[test]
fn cards_of_one_numa_node_are_asked_for_in_the_words_that_hami_reads() {
    for (value, is_bound, is_told) in [
        ("true", true, false),
        ("True", true, false),
        ("T", true, false),
        ("1", true, false),
        ("false", false, false),
        ("0", false, false),
        ("yes", false, true),
        (" true", false, true),
        ("", false, true),
    ] {
        let annotations = json!({"nvidia.com/numa-bind": value});
        let annotations: Annotations = serde_json::from_value(annotations).unwrap();
        assert_eq!(is_bound_to_numa(&annotations), is_bound, "{value}");
        let mut notes = Problems::default();
        note_unknown_numa_bind(&annotations, &mut notes);
        let notes = notes.into_vec();
        assert_eq!(notes.len(), usize::from(is_told), "{value}");
        let field = "metadata.annotations[nvidia.com/numa-bind]";
        assert!(notes.iter().all(|note| &*note.field == field), "{notes:?}");
    }
    assert!(!is_bound_to_numa(&Annotations::default()));
}

#[test]
fn our_word_and_hamis_say_whether_cards_in_mig_mode_will_do() {
    let (shared, mig, any) = (CardModes::Shared, CardModes::Mig, CardModes::Any);
    let conflict = Err("says another mode of cards than gpu-batch.io/gpu-slice; write one of them");
    for (slice, mode, expected) in [
        (None, None, Ok(None)),
        (Some("shared"), None, Ok(Some(shared))),
        (Some("mig"), None, Ok(Some(mig))),
        (Some("any"), None, Ok(Some(any))),
        (None, Some("hami-core"), Ok(Some(shared))),
        (None, Some("mig"), Ok(Some(mig))),
        (None, Some("hami-core,mig"), Ok(Some(any))),
        (None, Some("mps"), Ok(None)),
        (Some("any"), Some("mig"), Ok(Some(mig))),
        (Some("mig"), Some("mig"), Ok(Some(mig))),
        (Some("mig"), Some("hami-core,mig"), Ok(Some(mig))),
        (Some("mig"), Some("hami-core"), conflict),
        (Some("shared"), Some("mig"), conflict),
    ] {
        let mut annotations = json!({});
        for (key, value) in [
            ("gpu-batch.io/gpu-slice", slice),
            ("nvidia.com/vgpu-mode", mode),
        ] {
            if let Some(value) = value {
                annotations[key] = value.into();
            }
        }
        let annotations: Annotations = serde_json::from_value(annotations).unwrap();
        let found = modes(&annotations);
        assert_eq!(
            found.as_ref().copied().map_err(|error| &**error),
            expected,
            "{slice:?} {mode:?}"
        );
        let is_unsupported = mode == Some("mps");
        assert_eq!(unsupported_mode(&annotations).is_some(), is_unsupported);
    }
}

#[test]
fn a_pod_that_does_not_say_gets_what_hami_or_our_annotations_promise() {
    let (shared, any) = (CardModes::Shared, CardModes::Any);
    for (annotations, limits, expected) in [
        (
            json!({"gpu-batch.io/gpu-fraction": "0.5"}),
            json!({}),
            shared,
        ),
        (json!({"gpu-memory": "2000"}), json!({}), shared),
        (json!({}), json!({"nvidia.com/gpumem": "2000"}), any),
        (
            json!({}),
            json!({"nvidia.com/gpumem-percentage": "100"}),
            shared,
        ),
        (
            json!({}),
            json!({"nvidia.com/gpumem": "1", "nvidia.com/gpucores": "100"}),
            shared,
        ),
        (
            json!({"gpu-batch.io/gpu-slice": "any"}),
            json!({"nvidia.com/gpucores": "100"}),
            any,
        ),
    ] {
        let mut limits = limits;
        limits["nvidia.com/gpu"] = "1".into();
        let pod = json!({"metadata": {"annotations": annotations},
            "spec": {"containers": [{"resources": {"limits": limits}}]}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let found = asked(&pod, &mut Problems::default()).unwrap();
        assert_eq!(found.terms.modes, expected, "{limits}");
    }
}
