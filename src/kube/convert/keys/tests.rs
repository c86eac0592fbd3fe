use super::{of_owner, on_native_group, on_pod_group, on_queue, unknown};
use crate::kube::convert::keys;
use crate::kube::objects::Meta;
use gpu_batch_policies::facts::Problem;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn in_words(unknown: &[Problem]) -> Vec<String> {
    let in_words = |problem: &Problem| format!("{}: {}", problem.field, problem.message);
    unknown.iter().map(in_words).collect()
}

fn said(metadata: Value) -> Vec<String> {
    in_words(&unknown(&serde_json::from_value(metadata).unwrap()))
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
fn of_a_key_on_an_owner_it_is_told_where_it_belongs_unless_its_pods_have_it() {
    let keys = |queue: &str| {
        json!({
            "labels": {queue: "a", "gpu-batch.io/preemptible": "false", "example.com/queue": "a"},
            "annotations": {
                "gpu-batch.io/min-members": "2",
                "gpu-batch.io/bound-queue": "a",
                "gpu-batch.io/x": "",
            },
        })
    };
    let owner = |own: Value, pods: Value| {
        in_words(&of_owner(
            &json!({"metadata": own, "spec": {"template": {"metadata": pods}}}),
        ))
    };
    let written = owner(keys("gpu-batch.io/queue"), json!(null));
    let expected = [
        "metadata.labels[gpu-batch.io/preemptible]: means nothing here: write it in \
         spec.template.metadata.annotations",
        "metadata.labels[gpu-batch.io/queue]: means nothing here: write it in \
         spec.template.metadata.labels",
        "metadata.annotations[gpu-batch.io/bound-queue]: means nothing here: only pods have it",
        "metadata.annotations[gpu-batch.io/min-members]: means nothing; if \
         gpu-batch.io/min-member is meant: write it in spec.template.metadata.annotations",
        "metadata.annotations[gpu-batch.io/x]: means nothing; docs/labels.md lists the keys that \
         do",
    ];
    assert_eq!(written, expected);
    let pods = json!({
        "labels": {"gpu-batch.io/queue": "a"},
        "annotations": {"gpu-batch.io/preemptible": "false", "gpu-batch.io/x": ""},
    });
    let but_for_those = [expected[2], expected[3], expected[4]];
    assert_eq!(owner(keys("gpu-batch.io/queue"), pods), but_for_those);
    for nothing in [json!(null), json!({}), json!(5), json!({"labels": 5})] {
        assert_eq!(owner(nothing.clone(), nothing), Vec::<String>::new());
    }
}

#[test]
fn of_a_key_on_a_group_or_queue_it_is_told_which_field_says_it() {
    let check = |on: fn(&Meta) -> Vec<Problem>, place: &str, key: &str, expected: Option<&str>| {
        let full = format!("gpu-batch.io/{key}");
        let meta = serde_json::from_value(json!({place: {&full: "1"}})).unwrap();
        let expected =
            expected.map(|said| format!("metadata.{place}[{full}]: means nothing{said}"));
        assert_eq!(in_words(&on(&meta)), Vec::from_iter(expected), "{key}");
    };
    for (key, of_group, of_native) in [
        (
            "queue",
            ": a PodGroup has spec.queue",
            ": write it as a label",
        ),
        (
            "min-member",
            ": a PodGroup has spec.minMember",
            ": a native PodGroup has spec.schedulingPolicy.gang.minCount",
        ),
        (
            "topology-required",
            ": a PodGroup has spec.topology.required",
            ": only a PodGroup of gpu-batch.io can say it, by spec.topology.required",
        ),
        (
            "pod-group",
            ": write it on its pods, as a label",
            ": write it on its pods, as a label",
        ),
        (
            "last-checkpoint",
            ": write it on its pods, as an annotation",
            ": write it on its pods, as an annotation",
        ),
        (
            "bound-minimum",
            ": only pods have it",
            ": only pods have it",
        ),
    ] {
        let here = |said: &str| format!(" here{said}");
        check(on_pod_group, "annotations", key, Some(&here(of_group)));
        check(on_native_group, "annotations", key, Some(&here(of_native)));
    }
    check(on_native_group, "labels", "queue", None);
    let misspelt = "; if gpu-batch.io/queue is meant: a PodGroup has spec.queue";
    check(on_pod_group, "labels", "qeue", Some(misspelt));
    check(
        on_queue,
        "annotations",
        "placement",
        Some(" here: a Queue has spec.placement"),
    );
    check(
        on_queue,
        "labels",
        "queue",
        Some(" here: only pods have it"),
    );
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
