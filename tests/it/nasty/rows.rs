//! The rows of the tables, those that are too large to be written down, and those that only API
//! servers without rules take.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

/// A row of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// The nasty thing about it.
    pub(super) nasty: String,
    /// Merge patches of whole objects. A second Node of one name changes the status of the first.
    pub(super) apply: Vec<Value>,
    /// A part of what the API server says of the last object; absent: it takes all of them.
    pub(super) refused: Option<String>,
    /// The reasons and messages that objects get; of a row that is refused, none.
    #[serde(default)]
    pub(super) expect: Vec<Expectation>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expectation {
    /// `KIND/NAME` or `KIND/NAMESPACE/NAME`.
    pub(super) on: String,
    /// The reason in its status, and in an event. `Bound`: a pod that gets a node; `Ready`: a Queue
    /// that is, or a Topology of which no event says anything.
    pub(super) reason: String,
    /// A part of the message.
    #[serde(default)]
    pub(super) says: String,
    /// Of the event, where it is another word.
    pub(super) event_reason: Option<String>,
    /// Whether there is an event on this object: a gang has one, its pods have none.
    #[serde(default = "yes")]
    pub(super) event: bool,
}

fn yes() -> bool {
    true
}

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// The rows of a file in this folder.
pub(super) fn table(file: &str) -> Vec<Row> {
    let rows = serde_saphyr::from_str(&read(&format!("tests/it/nasty/{file}")));
    rows.unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Rows that are too large to be written down.
pub(super) fn floods() -> Vec<Row> {
    let labels: serde_json::Map<String, Value> = (0..10_000)
        .map(|number| {
            (
                format!("example.com/label-{number}"),
                json!(number.to_string()),
            )
        })
        .collect();
    let megabyte = "x".repeat(1_000_000);
    let expect = |on: &str, reason: &str, says: &str| {
        let fields = json!([{"on": on, "reason": reason, "says": says}]);
        serde_json::from_value(fields).unwrap()
    };
    let row = |nasty: &str, object: Value, expect: Vec<Expectation>| Row {
        nasty: nasty.to_owned(),
        apply: vec![object],
        refused: None,
        expect,
    };
    let large = json!([{"name": "c", "image": "none", "env": [{"name": "A", "value": megabyte}]}]);
    vec![
        row(
            "a pod of ten thousand labels",
            json!({"kind": "Pod", "metadata": {"name": "flood", "labels": labels}}),
            expect("Pod/flood", "Bound", ""),
        ),
        row(
            "a node of ten thousand labels",
            json!({"kind": "Node", "metadata": {"name": "flood", "labels": labels}}),
            expect(
                "Node/flood",
                "InvalidSpec",
                "metadata.labels: 10000 entries",
            ),
        ),
        // The API server adds one.
        row(
            "a namespace of ten thousand labels",
            json!({"kind": "Namespace", "metadata": {"name": "flood", "labels": labels}}),
            expect(
                "Namespace/flood",
                "InvalidSpec",
                "metadata.labels: 10001 entries",
            ),
        ),
        row(
            "a queue of ten thousand labels",
            json!({"kind": "Queue", "metadata": {"name": "flood", "labels": labels},
                   "spec": {"parent": "gone"}}),
            expect("Queue/flood", "ParentNotFound", "gone"),
        ),
        row(
            "a pod of one megabyte",
            json!({"kind": "Pod", "metadata": {"name": "large"}, "spec": {"containers": large}}),
            expect("Pod/large", "Bound", ""),
        ),
    ]
}

/// A row that only API servers without rules take.
pub(super) fn crabs() -> Row {
    let crabs = "🦀".repeat(250_000);
    let group =
        json!({"kind": "PodGroup", "metadata": {"name": "crabs"}, "spec": {"bogus": crabs}});
    serde_json::from_value(json!({
        "nasty": "a megabyte of crabs",
        "apply": [group],
        "expect": [{"on": "PodGroup/crabs", "reason": "InvalidSpec", "says": "spec.bogus"}],
    }))
    .unwrap()
}

/// What breaks a rule of the definitions, one object a rule. The annotation `scheduler` says what
/// the scheduler makes of it where the rules are missing: a reason, and perhaps a field.
pub(super) fn breakers() -> Vec<Row> {
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(&read("tests/data/bad_manifests.yaml")).unwrap();
    // Some break a rule only as a change of another object.
    let alone = |object: &Value| object["metadata"]["annotations"]["before"].is_null();
    objects.into_iter().filter(alone).map(breaker).collect()
}

fn breaker(object: Value) -> Row {
    let metadata = &object["metadata"];
    let (kind, name) = (&object["kind"], &metadata["name"]);
    let on = match metadata["namespace"].as_str() {
        None => format!("{}/{}", kind.as_str().unwrap(), name.as_str().unwrap()),
        Some(namespace) => format!("PodGroup/{namespace}/{}", name.as_str().unwrap()),
    };
    let made_of_it = metadata["annotations"]["scheduler"].as_str();
    let made_of_it = made_of_it.unwrap_or_else(|| panic!("{on}: no annotation `scheduler`"));
    let (reason, says) = made_of_it.split_once(' ').unwrap_or((made_of_it, ""));
    let expect = Expectation {
        on: on.clone(),
        reason: reason.to_owned(),
        says: says.to_owned(),
        event_reason: None,
        event: true,
    };
    Row {
        nasty: format!("{on} without the rules"),
        apply: vec![object],
        refused: None,
        expect: vec![expect],
    }
}
