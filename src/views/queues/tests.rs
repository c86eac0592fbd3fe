//! The tree as it is drawn, and a cluster's objects as views.

use super::*;
use serde_json::json;

fn view(parent: Option<&str>) -> QueueView {
    QueueView {
        parent: parent.map(str::to_owned),
        ready: Some(true),
        dominant_share: "0".to_owned(),
        ..QueueView::default()
    }
}

/// The first column of the drawn tree, without its heading.
fn check(parents: &[(&str, Option<&str>)], expected: &[&str]) {
    let views = parents
        .iter()
        .map(|(name, parent)| ((*name).to_owned(), view(*parent)));
    let drawn = draw(&views.collect(), Screen::Plain);
    let names: Vec<&str> = drawn
        .lines()
        .skip(1)
        .map(|line| line.split("  yes").next().unwrap().trim_end())
        .collect();
    assert_eq!(names, expected, "{drawn}");
}

#[test]
fn children_stand_below_their_parents() {
    check(
        &[
            ("a", Some("top")),
            ("b", Some("top")),
            ("c", Some("a")),
            ("d", None),
            ("top", None),
        ],
        &["d", "top", "├─ a", "│  └─ c", "└─ b"],
    );
}

#[test]
fn queues_of_a_cycle_or_without_their_parent_are_drawn_once() {
    check(&[("a", Some("b")), ("b", Some("a"))], &["a", "└─ b"]);
    check(&[("a", Some("a")), ("b", Some("gone"))], &["b", "a"]);
}

#[test]
fn a_cluster_s_queue_shows_its_spec_and_what_the_scheduler_wrote() {
    let queue: api::Queue = serde_json::from_value(json!({
        "apiVersion": "gpu-batch.io/v1alpha1", "kind": "Queue", "metadata": {"name": "team"},
        "spec": {"parent": "gone", "resources": [
            {"name": "nvidia.com/gpu", "quota": "8", "limit": "16"},
            {"name": "nvidia.com/gpu", "product": "H100", "quota": "4"},
        ]},
        "status": {
            "conditions": [{"type": "Ready", "status": "False", "reason": "ParentNotFound",
                "message": "the parent gone does not exist",
                "lastTransitionTime": "2026-11-21T10:00:00Z"}],
            "allocated": {"nvidia.com/gpu": "2"}, "requested": {"nvidia.com/gpu": "7"},
            "pastUse": {"until": "2026-11-21T10:00:00Z", "average": {"nvidia.com/gpu": "1500m"}},
            "podGroups": {"pending": 3, "running": 1},
        },
    }))
    .unwrap();
    let view = QueueView::of_object(queue);
    assert_eq!(view.ready, Some(false));
    assert_eq!(
        view.note(),
        "ParentNotFound: the parent gone does not exist"
    );
    assert_eq!(view.limit["nvidia.com/gpu"], "16");
    assert_eq!(view.quota["nvidia.com/gpu@H100"], "4");
    assert_eq!((view.pod_groups.pending, view.pod_groups.running), (3, 1));
    let drawn = draw(&BTreeMap::from([("team".to_owned(), view)]), Screen::Plain);
    let second = drawn.lines().find(|line| line.contains("@H100"));
    assert_eq!(
        second.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")),
        Some("nvidia.com/gpu@H100 0 0 4 - 0 0".to_owned())
    );
    let first = drawn.lines().nth(1).unwrap_or_default();
    let first: Vec<&str> = first.split_whitespace().collect();
    assert_eq!(
        first[..9].join(" "),
        "team no nvidia.com/gpu 2 7 8 16 0 1.5"
    );
}

#[test]
fn a_ready_queue_shows_what_the_scheduler_says_of_its_entries() {
    let message = "no node has example.com/fpga";
    let queue: api::Queue = serde_json::from_value(json!({
        "apiVersion": "gpu-batch.io/v1alpha1", "kind": "Queue", "metadata": {"name": "team"},
        "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True",
            "reason": "Ready", "message": message,
            "lastTransitionTime": "2026-11-21T10:00:00Z"}]},
    }))
    .unwrap();
    let view = QueueView::of_object(queue);
    assert_eq!((view.ready, view.reason.as_deref()), (Some(true), None));
    assert_eq!(view.note(), message);
}
