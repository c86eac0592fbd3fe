use super::unknown;
use crate::kube::convert::keys;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn said(metadata: Value) -> Vec<String> {
    let unknown = unknown(&serde_json::from_value(metadata).unwrap());
    let in_words = |problem: &gpu_batch_policies::facts::Problem| {
        format!("{}: {}", problem.field, problem.message)
    };
    unknown.iter().map(in_words).collect()
}

fn check(place: &str, key: &str, expected: &str) {
    let full = format!("gpu-batch.io/{key}");
    let said = said(json!({place: {&full: "3"}}));
    assert_eq!(said, [format!("metadata.{place}[{full}]: {expected}")]);
}

#[test]
fn a_key_in_the_wrong_place_is_told_with_the_right_one() {
    let label = "is a label: as an annotation it means nothing";
    check("annotations", "queue", label);
    check("annotations", "pod-group", label);
    let annotation = "is an annotation: as a label it means nothing";
    check("labels", "min-member", annotation);
    check("labels", "preemptible", annotation);
}

#[test]
fn a_misspelt_key_is_told_with_the_nearest_one() {
    let meant = |name: &str| format!("means nothing; did you mean the {name}?");
    for place in ["labels", "annotations"] {
        for (key, name) in [
            ("podgroup", "label gpu-batch.io/pod-group"),
            ("pod_group", "label gpu-batch.io/pod-group"),
            ("Queue", "label gpu-batch.io/queue"),
            ("sub-group", "label gpu-batch.io/subgroup"),
            ("minmember", "annotation gpu-batch.io/min-member"),
            ("min-members", "annotation gpu-batch.io/min-member"),
            ("preemptable", "annotation gpu-batch.io/preemptible"),
            (
                "topology-require",
                "annotation gpu-batch.io/topology-required",
            ),
        ] {
            check(place, key, &meant(name));
        }
        check(
            place,
            "x",
            "means nothing; docs/labels.md lists the keys that do",
        );
        check(
            place,
            "",
            "means nothing; docs/labels.md lists the keys that do",
        );
    }
}

#[test]
fn keys_that_mean_something_and_those_of_others_are_no_news() {
    let all = |names: &[&str]| -> Value {
        names
            .iter()
            .map(|name| (name.to_string(), json!("1")))
            .collect()
    };
    let metadata = json!({
        "labels": all(&keys::LABELS),
        "annotations": all(&keys::ANNOTATIONS),
    });
    assert_eq!(said(metadata), Vec::<String>::new());
    let others = json!({"example.com/queue": "a", "queue": "a", "gpu-batch.io.example/queue": "a"});
    assert_eq!(
        said(json!({"labels": others, "annotations": others})),
        Vec::<String>::new()
    );
}

#[test]
fn however_many_there_are_little_is_told() {
    let many = |_| (0..1_000).map(|n| (format!("gpu-batch.io/{n:0200}"), json!("1")));
    let labels: Value = many(()).collect();
    let said = said(json!({"labels": labels}));
    assert_eq!(said.len(), crate::kube::convert::limits::PROBLEMS);
}

#[test]
fn one_page_lists_every_key() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/labels.md");
    let page = std::fs::read_to_string(path).unwrap();
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `gpu-batch.io/"));
    let rows = rows.map(|row| row.split_once('`').unwrap().0);
    let listed: BTreeSet<String> = rows.map(|key| format!("gpu-batch.io/{key}")).collect();
    let known = keys::LABELS.iter().chain(&keys::ANNOTATIONS);
    let known: BTreeSet<String> = known.map(ToString::to_string).collect();
    assert_eq!(listed, known, "docs/labels.md, then the program");
}
