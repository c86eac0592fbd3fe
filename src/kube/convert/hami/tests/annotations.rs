use super::with_problems;
use crate::kube::convert::hami::asked as asked_of_cards;
use crate::kube::convert::problems::shortened;
use crate::kube::objects::Pod;
use gpu_batch_policies::facts::{CardEntries, CardMemory, CardNeed, CardTerms};
use serde_json::{Value, json};

/// What a pod with annotations and containers asks of cards, or its problem, as users see it.
fn asked(annotations: &Value, spec: &Value) -> Result<Option<(CardNeed, CardEntries)>, String> {
    let pod = json!({"metadata": {"annotations": annotations}, "spec": spec});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let (found, problems) = with_problems(|problems| asked_of_cards(&pod, problems));
    let need = found.map(|found| {
        let expected = CardTerms {
            modes: found.terms.modes,
            ..CardTerms::default()
        };
        assert_eq!(found.terms, expected);
        (found.need.unwrap(), found.entries)
    });
    if problems.is_empty() {
        return Ok(need);
    }
    assert_eq!(
        (need, problems.len()),
        (None, 1),
        "{annotations}: {problems:?}"
    );
    assert!(problems[0].message.len() < 250, "cut: {problems:?}");
    Err(format!("{}: {}", problems[0].field, problems[0].message))
}

fn container(limits: &Value) -> Value {
    json!({"name": "main", "resources": {"limits": limits}})
}

fn with_cards(count: u64) -> Value {
    json!({"containers": [container(&json!({"nvidia.com/gpu": count.to_string()}))]})
}

fn ours(annotations: &[(&str, &str)]) -> Value {
    let ours = |(name, value): &(&str, &str)| (format!("gpu-batch.io/gpu-{name}"), json!(value));
    annotations.iter().map(ours).collect()
}

/// Checks annotations of a pod whose one container asks for two cards.
fn check(annotations: &Value, power_percent: u64, memory: CardMemory) {
    let (found, entries) = asked(annotations, &with_cards(2)).unwrap().unwrap();
    let expected = CardNeed::new(2, 10 * power_percent, memory).unwrap();
    assert_eq!(found, expected, "{annotations}");
    assert_eq!(entries, CardEntries::default());
}

fn refused(annotations: &Value, spec: &Value, expected: &str) {
    let found = asked(annotations, spec);
    assert_eq!(found, Err(expected.to_owned()), "{annotations}");
}

#[test]
fn a_fraction_is_of_memory_and_power_unless_cores_say_otherwise() {
    for (text, percent) in [
        ("0.5", 50),
        (".5", 50),
        ("0.50", 50),
        ("00.500", 50),
        ("0.07", 7),
        ("0.01", 1),
        ("0.99", 99),
        ("0.3", 30),
    ] {
        let memory = CardMemory::Percent(percent);
        check(&ours(&[("fraction", text)]), percent.into(), memory);
        check(&json!({"gpu-fraction": text}), percent.into(), memory);
        check(&ours(&[("fraction", text), ("cores", "70")]), 70, memory);
        check(&ours(&[("fraction", text), ("cores", "0")]), 0, memory);
    }
}

#[test]
fn memory_is_in_whole_mib_and_leaves_power_to_others_unless_cores_say_otherwise() {
    for (text, mib) in [
        ("20Gi", 20_480),
        ("1Mi", 1),
        ("1048577", 2),
        ("1.5Gi", 1_536),
        ("20G", 19_074),
        ("2047Ti", 2_146_435_072),
    ] {
        let memory = CardMemory::Mib(mib);
        check(&ours(&[("memory", text)]), 0, memory);
        check(&ours(&[("memory", text), ("cores", "30")]), 30, memory);
    }
    check(&json!({"gpu-memory": "2000"}), 0, CardMemory::Mib(2_000));
}

#[test]
fn cores_alone_are_power_with_all_memory_as_with_hami() {
    check(&ours(&[("cores", "30")]), 30, CardMemory::Percent(100));
    check(&ours(&[("cores", "0")]), 0, CardMemory::Percent(100));
}

#[test]
fn what_is_said_twice_alike_is_said() {
    let half = CardMemory::Percent(50);
    check(
        &json!({"gpu-fraction": "0.50", "gpu-batch.io/gpu-fraction": "0.5"}),
        50,
        half,
    );
    let memory = json!({"gpu-memory": "20480", "gpu-batch.io/gpu-memory": "20Gi"});
    check(&memory, 0, CardMemory::Mib(20_480));
    let kai = json!({
        "gpu-fraction": "0.5", "gpu-fraction-num-devices": "2",
        "gpu-fraction-container-name": "main",
    });
    check(&kai, 50, half);
    for slice in ["any", "shared"] {
        check(&ours(&[("fraction", "0.5"), ("slice", slice)]), 50, half);
    }

    let by_both = json!({"containers": [container(&json!({
        "nvidia.com/gpu": "1", "nvidia.com/gpumem": "20480", "nvidia.com/gpucores": "30",
    }))]});
    let need = CardNeed::new(1, 300, CardMemory::Mib(20_480)).unwrap();
    let same = ours(&[("memory", "20Gi"), ("cores", "30")]);
    for annotations in [same, ours(&[("slice", "shared")]), json!({})] {
        let found = asked(&annotations, &by_both).unwrap().unwrap();
        assert_eq!(found.0, need, "{annotations}");
    }
    let other = ours(&[("memory", "20Gi")]);
    refused(
        &other,
        &by_both,
        "metadata.annotations[gpu-batch.io/gpu-memory]: asks for another part than \
         spec.containers[0].resources; write one of them",
    );
}

#[test]
fn a_fraction_that_hami_cannot_give_is_told_with_one_that_it_can() {
    let no_part = |text| format!("`{text}` is no part of a card; write it like 0.5");
    let outside = |text| format!("`{text}` is not between 0 and 1; write it like 0.5");
    let finer = |text, better| format!("`{text}` is finer than a hundredth; write {better}");
    let whole = |text| {
        format!(
            "`{text}` is a whole card; for whole cards of HAMi write instead \
             `nvidia.com/gpumem-percentage: 100` in the limits"
        )
    };
    let mut cases: Vec<(&str, String)> = Vec::new();
    for text in [
        "", ".", "-0.5", "+0.5", "NaN", "inf", "50%", "0,5", "1e-1", "0.5.5", " 0.5",
    ] {
        cases.push((text, no_part(text)));
    }
    cases.extend(["0", "0.0", "00", "1.5", "2", "10", "1.01"].map(|text| (text, outside(text))));
    cases.extend(["1", "1.0", "01."].map(|text| (text, whole(text))));
    cases.push(("0.125", finer("0.125", "0.12 or 0.13")));
    cases.push(("0.3333", finer("0.3333", "0.33 or 0.34")));
    cases.push(("0.001", finer("0.001", "0.01")));
    cases.push(("0.999", finer("0.999", "0.99")));
    for key in ["gpu-batch.io/gpu-fraction", "gpu-fraction"] {
        for (text, problem) in &cases {
            let expected = format!("metadata.annotations[{key}]: {problem}");
            refused(&json!({key: text}), &with_cards(1), &expected);
        }
    }
}

#[test]
fn amounts_that_mean_nothing_are_told_with_their_form() {
    let memory = "gpu-batch.io/gpu-memory";
    let no_amount = "is no amount of memory; write it like 20Gi or 500Mi";
    let small = "is less than 1Mi; write it like 20Gi or 500Mi";
    let no_mib = "is no whole number of MiB such as 2000; gpu-batch.io/gpu-memory takes 20Gi, too";
    let no_percent = "is no whole number from 0 to 100";
    let no_slice = "is none of any, mig and shared";
    for (key, text, problem) in [
        (memory, "20GB", no_amount),
        (memory, "", no_amount),
        (memory, "-1Gi", no_amount),
        (memory, "NaN", no_amount),
        // Taken over from KAI's annotation without its unit.
        (memory, "2000", small),
        (memory, "0", small),
        (
            memory,
            "2Pi",
            "is more than 2147483647Mi, the most that HAMi reads",
        ),
        (
            memory,
            "1e999",
            "is more than 2147483647Mi, the most that HAMi reads",
        ),
        ("gpu-memory", "20Gi", no_mib),
        ("gpu-memory", "0", no_mib),
        ("gpu-memory", "2147483648", no_mib),
        ("gpu-batch.io/gpu-cores", "101", no_percent),
        ("gpu-batch.io/gpu-cores", "-1", no_percent),
        ("gpu-batch.io/gpu-cores", "30%", no_percent),
        ("gpu-batch.io/gpu-slice", "Shared", no_slice),
        ("gpu-batch.io/gpu-slice", "", no_slice),
        (
            "gpu-fraction-num-devices",
            "0",
            "is no whole number from 1 to 256",
        ),
    ] {
        let expected = format!("metadata.annotations[{key}]: `{text}` {problem}");
        refused(&json!({key: text}), &with_cards(1), &expected);
    }
    let long = "9".repeat(10_000);
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"annotations": {"gpu-fraction": long, memory: long}},
    }))
    .unwrap();
    let (_, problems) = with_problems(|problems| asked_of_cards(&pod, problems));
    assert_eq!(problems.len(), 2);
    assert!(
        problems
            .iter()
            .all(|it| *it.message == *shortened(&it.message, 260))
    );
}

#[test]
fn annotations_that_contradict_each_other_are_told() {
    for (annotations, expected) in [
        (
            ours(&[("fraction", "0.5"), ("memory", "20Gi")]),
            "[gpu-batch.io/gpu-memory]: asks for memory, and gpu-batch.io/gpu-fraction for a part \
             of it; write one",
        ),
        (
            json!({"gpu-fraction": "0.5", "gpu-batch.io/gpu-memory": "20Gi"}),
            "[gpu-batch.io/gpu-memory]: asks for memory, and gpu-fraction for a part of it; write \
             one",
        ),
        (
            json!({"gpu-fraction": "0.5", "gpu-batch.io/gpu-fraction": "0.6"}),
            "[gpu-batch.io/gpu-fraction]: says another amount than gpu-fraction; write one",
        ),
        (
            json!({"gpu-memory": "2000", "gpu-batch.io/gpu-memory": "2Gi"}),
            "[gpu-batch.io/gpu-memory]: says another amount than gpu-memory; write one",
        ),
        (
            json!({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}),
            "[gpu-fraction-num-devices]: is 2, and spec.containers[0] asks for `nvidia.com/gpu: \
             1`; write the same",
        ),
        (
            json!({"gpu-fraction-num-devices": "1"}),
            "[gpu-fraction-num-devices]: counts the cards of gpu-fraction or gpu-memory, and \
             neither is there",
        ),
        (
            json!({"gpu-fraction": "0.5", "gpu-fraction-container-name": "other"}),
            "[gpu-fraction-container-name]: `other` is not spec.containers[0], the container that \
             asks for `nvidia.com/gpu`",
        ),
        (
            ours(&[("slice", "shared")]),
            "[gpu-batch.io/gpu-slice]: says how a card is divided, and nothing asks for a part of \
             one; write gpu-batch.io/gpu-fraction or gpu-batch.io/gpu-memory, too",
        ),
    ] {
        let expected = format!("metadata.annotations{expected}");
        refused(&annotations, &with_cards(1), &expected);
    }
}

#[test]
fn one_container_asks_for_the_cards_of_which_a_part_is_asked_for() {
    let half = ours(&[("fraction", "0.5")]);
    let field = "metadata.annotations[gpu-batch.io/gpu-fraction]";
    let (none, card) = (
        container(&json!({})),
        container(&json!({"nvidia.com/gpu": "1"})),
    );
    let part = container(&json!({"nvidia.com/gpumem": "1000"}));
    let missing = |count: u64| {
        format!(
            "asks for a part of a card, and no container asks for the card; write \
             `nvidia.com/gpu: {count}` in the limits of the container that uses it"
        )
    };
    let several = "is for one container, and several ask for `nvidia.com/gpu`; leave it to one";
    let init = "is not for spec.initContainers[0], an init container; write `nvidia.com/gpu` in \
                another";
    for (spec, problem) in [
        (json!({}), &*missing(1)),
        (json!({"containers": [none]}), &missing(1)),
        (with_cards(0), &missing(1)),
        (json!({"containers": [part]}), &missing(1)),
        (json!({"containers": [card, card]}), several),
        (json!({"containers": [card, part]}), several),
        (json!({"containers": [part, card]}), several),
        (
            json!({"initContainers": [card], "containers": [card]}),
            several,
        ),
        (
            json!({"initContainers": [card], "containers": [none]}),
            init,
        ),
    ] {
        refused(&half, &spec, &format!("{field}: {problem}"));
    }
    let kai = json!({"gpu-memory": "2000", "gpu-fraction-num-devices": "3"});
    let expected = format!("metadata.annotations[gpu-memory]: {}", missing(3));
    refused(&kai, &json!({"containers": [none]}), &expected);

    let spec = json!({"initContainers": [none], "containers": [none, card, none]});
    let (_, CardEntries { before, after, .. }) = asked(&half, &spec).unwrap().unwrap();
    assert_eq!((before, after), (2, 1));

    let mut privileged = card;
    privileged["securityContext"] = json!({"privileged": true});
    refused(
        &half,
        &json!({"containers": [privileged]}),
        "spec.containers[0].securityContext.privileged: is true, so that HAMi could not keep the \
         container to its cards; write false",
    );
    refused(
        &half,
        &with_cards(257),
        "spec.containers[0].resources.limits[nvidia.com/gpu]: `257` is no whole number from 0 to \
         256",
    );
}
