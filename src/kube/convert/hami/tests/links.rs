use super::{annotations, cases, list, with_problems};
use crate::kube::convert::hami::links::links;
use gpu_batch_policies::facts::{CardFacts, CardLink, Problem};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn read(text: &str, cards: &[CardFacts]) -> (Vec<CardLink>, Vec<Problem>) {
    let annotations = annotations(&json!({"hami.io/node-nvidia-score": text}));
    with_problems(|problems| links(&annotations, cards, problems))
}

fn cards(ids: impl IntoIterator<Item: AsRef<str>>) -> Vec<CardFacts> {
    let ids: BTreeSet<String> = ids.into_iter().map(|id| id.as_ref().to_owned()).collect();
    ids.into_iter().map(|id| CardFacts::new(id, 1)).collect()
}

#[test]
fn links_are_those_that_hami_reads_as_far_as_they_hold_both_ways() {
    let (mut read_alike, mut refused, mut partly) = (0, 0, 0);
    for case in cases("codec", Some("pair-scores")) {
        let text = case["input"]["value"].as_str().unwrap();
        let Some(entries) = case["answer"]["scores"].as_array() else {
            let (links, problems) = read(text, &cards(["GPU-a", "GPU-b"]));
            assert_eq!((links.len(), problems.len()), (0, 1), "{case}");
            refused += 1;
            continue;
        };
        let mut scores: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut ids: Vec<&str> = Vec::new();
        for entry in entries {
            let one = entry["uuid"].as_str().unwrap_or_default();
            ids.push(one);
            for (other, score) in entry["score"].as_object().into_iter().flatten() {
                ids.push(other);
                scores.insert((one, other), score.as_u64().unwrap_or(0));
            }
        }
        let cards = cards(&ids);
        let back = |pair: &(&str, &str)| scores.get(&(pair.1, pair.0)).copied().unwrap_or(0);
        let holds = |(pair, score): &(&(&str, &str), &u64)| back(pair) == **score;
        let expected = scores.iter().filter(holds);
        let expected = expected.filter(|(pair, score)| pair.0 < pair.1 && **score > 0);
        let place = |id: &str| cards.iter().position(|card| *card.id == *id).unwrap();
        let expected = expected.map(|(pair, score)| (place(pair.0), place(pair.1), *score));
        let (links, problems) = read(text, &cards);
        let found = links.iter().map(|link| {
            let [one, other] = [link.one, link.other].map(usize::from);
            (one, other, u64::from(link.score))
        });
        assert_eq!(
            found.collect::<Vec<_>>(),
            expected.collect::<Vec<_>>(),
            "{case}"
        );
        let is_whole = scores.iter().all(|it| holds(&it));
        assert_eq!(
            problems.len(),
            usize::from(!is_whole),
            "{case}: {problems:?}"
        );
        read_alike += usize::from(is_whole);
        partly += usize::from(!is_whole);
    }
    println!("{read_alike} lists read whole, {partly} in part, {refused} refused");
    assert!(read_alike > 20 && partly > 10 && refused > 5);
}

#[test]
fn what_makes_no_sense_is_no_link_and_a_problem_of_the_node() {
    let list_of = |entries: Value| entries.to_string();
    let good = |others: Value| {
        let mut all = json!([
            {"uuid": "GPU-a", "score": {"GPU-b": 100}},
            {"uuid": "GPU-b", "score": {"GPU-a": 100}},
        ]);
        all.as_array_mut().unwrap().extend(list(&others).cloned());
        list_of(all)
    };
    let with_b = |score: Value| {
        list_of(json!([
            {"uuid": "GPU-a", "score": {"GPU-b": 100, "GPU-c": score}},
            {"uuid": "GPU-b", "score": {"GPU-a": 100}},
            {"uuid": "GPU-c", "score": {"GPU-a": score}},
        ]))
    };
    for (text, count, expected) in [
        (good(json!([])), 1, None),
        (
            good(json!([{"uuid": "GPU-c"}, {"uuid": "GPU-b", "score": null}])),
            0,
            Some("lists the card GPU-b twice"),
        ),
        (
            good(json!([{"uuid": "GPU-x", "score": {"GPU-a": 3}}])),
            1,
            Some("names the card `GPU-x`, which is not among the cards of the node"),
        ),
        (
            good(json!([{"uuid": "GPU-c", "score": {"GPU-a": 3}}])),
            1,
            Some("gives 1 pairs of cards, such as GPU-c and GPU-a, no score that holds both ways"),
        ),
        (
            with_b(json!(1e30)),
            1,
            Some("gives the cards GPU-a and GPU-c the score 1e+30, and 0 to 1000000 make sense"),
        ),
        (
            with_b(json!(-1)),
            1,
            Some("gives the cards GPU-a and GPU-c the score -1, and 0 to 1000000 make sense"),
        ),
        (
            with_b(json!(u64::MAX)),
            1,
            Some(
                "gives the cards GPU-a and GPU-c the score 18446744073709551615, and 0 to 1000000 \
             make sense",
            ),
        ),
        (with_b(Value::Null), 1, None),
        (good(json!([]))[..30].to_owned(), 0, Some("")),
        ("{}".to_owned(), 0, Some("")),
        ("[null]".to_owned(), 0, Some("")),
        ("x".repeat(70_000), 0, Some("is more than 65536 bytes")),
        (String::new(), 0, Some("")),
    ] {
        check(&text, count, expected);
    }
}

/// `expected`: what the problem says, nothing where any sentence will do; `None`: there is none.
fn check(text: &str, count: usize, expected: Option<&str>) {
    let (links, problems) = read(text, &cards(["GPU-a", "GPU-b", "GPU-c"]));
    assert_eq!(links.len(), count, "{text}");
    assert_eq!(
        problems.len(),
        usize::from(expected.is_some()),
        "{text}: {problems:?}"
    );
    for problem in &problems {
        let expected = expected.unwrap();
        let field = "metadata.annotations[hami.io/node-nvidia-score]";
        assert_eq!(&*problem.field, field);
        assert!(
            expected.is_empty() || expected == &*problem.message,
            "{problem:?}"
        );
    }
}

#[test]
fn without_cards_there_is_nothing_to_say_about_links() {
    assert_eq!(read("nonsense", &[]).1, []);
    let cards = cards(["GPU-a", "GPU-b", "GPU-c"]);
    let (found, problems) =
        with_problems(|problems| links(&annotations(&json!({})), &cards, problems));
    assert!(found.is_empty() && problems.is_empty());
}
