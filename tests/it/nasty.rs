//! Nonsense of every sort, applied to a real API server while the scheduler runs: the API server
//! refuses it with the field, or the scheduler says in the object and in an event why it waits.
//! Everything else goes on.
//!
//! The tables are in `nasty/*.yaml`. In a second round the rules of the custom resources are taken
//! away, as if they were of another version: the scheduler never trusts them.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use gpu_batch::api;
use gpu_batch::driver::Scheduler;
use gpu_batch::local::Options;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::http;
use crate::work::{condition, ensure, patched};

/// How long anything may take. Machines of CI are slow.
const PATIENCE: Duration = Duration::from_secs(40);

/// A row of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// What is nasty about it.
    nasty: String,
    /// Merge patches of whole objects. A second Node of one name changes the status of the first.
    apply: Vec<Value>,
    /// A part of what the API server says of the last object; absent: it takes all of them.
    refused: Option<String>,
    /// What is said of whom. Empty: nothing, it only must do no harm.
    #[serde(default)]
    expect: Vec<Expectation>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    /// `KIND/NAME` or `KIND/NAMESPACE/NAME`.
    on: String,
    /// The reason in its status; `Bound`: a pod that gets a node.
    reason: String,
    /// A part of the message.
    #[serde(default)]
    says: String,
    /// Of the event, where it is another word.
    event_reason: Option<String>,
    /// Whether there is an event on this object: a gang has one, its pods have none.
    #[serde(default = "yes")]
    event: bool,
}

fn yes() -> bool {
    true
}

fn table<T: for<'de> Deserialize<'de>>(file: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let rows = serde_saphyr::from_str(&text);
    rows.unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Rows that are too large to be written down.
fn floods() -> Vec<Row> {
    let labels: serde_json::Map<String, Value> = (0..10_000)
        .map(|number| (format!("example.com/label-{number}"), json!("🦀".len())))
        .map(|(key, value)| (key, json!(value.to_string())))
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
fn crabs() -> Row {
    let crabs = "🦀".repeat(250_000);
    let group =
        json!({"kind": "PodGroup", "metadata": {"name": "crabs"}, "spec": {"bogus": crabs}});
    serde_json::from_value(json!({
        "nasty": "a megabyte of crabs",
        "apply": [group],
        "expect": [{"on": "PodGroup/crabs", "reason": "Unsupported", "says": "spec.bogus"}],
    }))
    .unwrap()
}

/// A PodGroup so deep that no reader here can read it; the API server can.
async fn check_depth(cluster: &Cluster) {
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    let (opened, closed) = ("{\"a\":".repeat(500), "}".repeat(500));
    write!(
        file,
        r#"{{"apiVersion": "gpu-batch.io/v1alpha1", "kind": "PodGroup",
            "metadata": {{"name": "deep", "namespace": "nasty"}}, "spec": {opened}1{closed}}}"#
    )
    .unwrap();
    let path = file.path().to_str().unwrap();
    cluster.kubectl(&["create", "-f", path]).await;
    let said = cluster.event("PodGroup", "deep", "InvalidSpec").await;
    assert_eq!(said, "spec: is not an object that can be read");
}

/// Those of `tests/data/bad_manifests.yaml` in which a scheduler sees no harm.
const HARMLESS: [&str; 1] = [""];

#[tokio::test]
async fn nonsense_is_refused_or_says_why_it_waits_and_everything_else_goes_on() {
    let options = Options {
        native_gangs: true,
        ..Options::default()
    };
    let Some(cluster) = cluster::own("nasty", options).await else {
        return;
    };
    cluster.define_kinds().await;
    let two = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nasty-two"}});
    cluster.create(&two).await;
    cluster.nodes(["r1", "r1", "r1", "r1"]).await;
    let scheduler = cluster.scheduler("").await;

    let mut rows: Vec<Row> = floods();
    for family in ["queues", "groups", "pods", "nodes"] {
        rows.extend(table::<Row>(&format!("tests/it/nasty/{family}.yaml")));
    }
    cluster.apply_rows(&rows).await;
    check_rows(&cluster, &rows).await;
    let mut count = rows.len();

    cluster.open_definitions().await;
    let mut rows: Vec<Row> = table("tests/it/nasty/open.yaml");
    rows.push(crabs());
    cluster.apply_rows(&rows).await;
    count += check_bad_manifests(&cluster).await;
    check_rows(&cluster, &rows).await;
    check_depth(&cluster).await;
    count += rows.len() + 1;
    eprintln!("{count} rows");
    assert!(count >= 150, "{count}");

    check_health(&cluster, scheduler).await;
}

/// A healthy gang still starts, and the scheduler has nothing to hide.
async fn check_health(cluster: &Cluster, scheduler: Scheduler) {
    let start = Instant::now();
    cluster.group("healthy", &json!({"minMember": 2})).await;
    let pods = cluster.members("healthy", 2, 8, &json!({})).await;
    cluster.bound(&pods).await;
    let took = start.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
    assert!(scheduler.is_ready());
    let (status, page) = http::get(scheduler.address(), "/metrics").await;
    assert_eq!(status, 200);
    assert!(page.contains("gpu_batch_panics_total 0"), "{page}");
    scheduler.stop().await.unwrap();
}

impl Cluster {
    /// The whole object of a row.
    fn whole(&self, row: &Value) -> Value {
        let kind = row["kind"].as_str().unwrap();
        let version = match kind {
            "Pod" | "Node" => "v1",
            _ => "gpu-batch.io/v1alpha1",
        };
        let base = match kind {
            "Pod" => self.pod("", 1, &json!({})),
            "Node" => json!({"spec": {"taints": [{"key": "nasty", "effect": "PreferNoSchedule"}]}}),
            _ => json!({}),
        };
        let mut object = patched(json!({"apiVersion": version}), &patched(base, row));
        if let Some(gpus) = object.as_object_mut().unwrap().remove("gpus") {
            let limits = &mut object["spec"]["containers"][0]["resources"]["limits"];
            limits["nvidia.com/gpu"] = gpus;
        }
        object
    }

    /// Applies a row; the error says in what the API server did not do as expected.
    async fn apply_row(&self, row: &Row) -> Result<(), String> {
        let Row { nasty, .. } = row;
        for (number, object) in row.apply.iter().enumerate() {
            let object = self.whole(object);
            let last = number + 1 == row.apply.len();
            match (&row.refused, self.create_or_shrink(&object).await) {
                (Some(refused), Err(said)) if last && said.contains(refused) => {}
                (Some(_), Ok(_)) if last => return Err(format!("{nasty}: it was taken")),
                (_, Err(said)) => return Err(format!("{nasty}: {said}")),
                (_, Ok(_)) => {}
            }
        }
        Ok(())
    }

    /// Creates an object; of a Node that is there already, changes the status.
    async fn create_or_shrink(&self, object: &Value) -> Result<Value, String> {
        let created = self.try_create(object).await;
        let exists = |said: &String| said.contains("already exists");
        if object["kind"] != "Node" || !created.as_ref().is_err_and(exists) {
            return created;
        }
        // The watches have no order between them: the pod on the node is to be seen first.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("/api/v1/nodes/{name}/status");
        let status = json!({"status": object["status"]});
        self.try_merge(&path, &status).await
    }

    async fn apply_rows(&self, rows: &[Row]) {
        let mut complaints = Vec::new();
        for row in rows {
            complaints.extend(self.apply_row(row).await.err());
        }
        assert!(complaints.is_empty(), "{complaints:#?}");
    }

    /// Takes the rules of the custom resources away.
    async fn open_definitions(&self) {
        for crd in api::crds() {
            let mut crd = serde_json::to_value(crd).unwrap();
            let version = crd["spec"]["versions"][0].as_object_mut().unwrap();
            version.remove("selectableFields");
            version["schema"] = json!({"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }});
            let path = format!(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
                crd["metadata"]["name"].as_str().unwrap()
            );
            self.merge(
                &path,
                &json!({"spec": {"versions": crd["spec"]["versions"]}}),
            )
            .await;
        }
        for kind in ["Queue", "PodGroup", "Topology"] {
            let probe = json!({"kind": kind, "metadata": {"name": "probe"}, "spec": {"a": [1]}});
            let probe = self.whole(&probe);
            until(kind, async || self.try_create(&probe).await.map(drop)).await;
        }
    }

    fn path_of(&self, on: &str) -> (String, String, String, String) {
        let parts: Vec<&str> = on.split('/').collect();
        let (kind, name) = (parts[0], parts[parts.len() - 1]);
        let mut meta = json!({"name": name});
        if parts.len() == 3 {
            meta["namespace"] = json!(parts[1]);
        }
        let object = self.whole(&json!({"kind": kind, "metadata": meta}));
        let collection = self.collection(&object);
        let namespace = match kind {
            "Pod" | "PodGroup" if parts.len() == 3 => parts[1],
            "Pod" | "PodGroup" => &self.namespace,
            _ => "default",
        };
        (
            kind.into(),
            namespace.into(),
            name.into(),
            format!("{collection}/{name}"),
        )
    }
}

/// Waits until everything that is to be said has been said.
async fn check_rows(cluster: &Cluster, rows: &[Row]) {
    let start = Instant::now();
    loop {
        let mut complaints = Vec::new();
        let events = cluster.list("/apis/events.k8s.io/v1/events").await.unwrap();
        for row in rows {
            for expectation in &row.expect {
                let checked = check(cluster, expectation, &events).await;
                let complaint = |seen| format!("{}: {expectation:?}: {seen}", row.nasty);
                complaints.extend(checked.map_err(complaint).err());
            }
        }
        if complaints.is_empty() {
            return;
        }
        let late = start.elapsed() > PATIENCE;
        assert!(!late, "not within {PATIENCE:?}: {complaints:#?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// What the status of an object says: reason and message.
fn said(kind: &str, object: &Value) -> (String, String) {
    let condition = match kind {
        "Pod" => condition(object, "PodScheduled"),
        "PodGroup" => condition(object, "PodGroupScheduled"),
        _ => condition(object, "Ready"),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let reason = match kind {
        "Queue" if condition["status"] != "False" => String::new(),
        "Pod" if object["spec"]["nodeName"].is_string() => "Bound".to_owned(),
        _ => text(&condition["reason"]),
    };
    (reason, text(&condition["message"]))
}

async fn check(cluster: &Cluster, expected: &Expectation, events: &[Value]) -> Result<(), String> {
    let Expectation {
        on, reason, says, ..
    } = expected;
    let (kind, namespace, name, path) = cluster.path_of(on);
    // The API server itself writes the condition of a gated pod.
    let speaks = |message: &str| message.contains(says) || reason == "SchedulingGated";
    if matches!(&*kind, "Queue" | "PodGroup" | "Pod") {
        let object = cluster.get(&path).await?;
        let (now, message) = said(&kind, &object);
        let right = now == *reason && (reason == "Bound" || speaks(&message));
        ensure(right, (now, message))?;
    }
    if !expected.event || reason == "Bound" {
        return Ok(());
    }
    let reason = expected.event_reason.as_ref().unwrap_or(reason);
    let about = events.iter().filter(|event| {
        let regarding = &event["regarding"];
        event["metadata"]["namespace"] == *namespace
            && regarding["kind"] == *kind
            && regarding["name"] == *name
    });
    let notes: Vec<_> = about
        .map(|event| (&event["reason"], event["note"].as_str().unwrap_or_default()))
        .collect();
    let right = notes
        .iter()
        .any(|(of, note)| **of == **reason && speaks(note));
    ensure(right, ("events", notes))
}

/// What the rules refuse, where there are none: the scheduler holds it and says so.
async fn check_bad_manifests(cluster: &Cluster) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bad_manifests.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let fresh = |object: &&Value| object["metadata"]["annotations"]["before"].is_null();
    let objects: Vec<&Value> = objects.iter().filter(fresh).collect();
    for object in &objects {
        cluster.create(object).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    for object in &objects {
        let name = object["metadata"]["name"].as_str().unwrap();
        let kind = object["kind"].as_str().unwrap();
        let (_, _, _, path) = cluster.path_of(&format!("{kind}/{name}"));
        let object = cluster.get(&path).await.unwrap();
        eprintln!("{kind}/{name}: {:?}", said(kind, &object));
    }
    let _ = HARMLESS;
    objects.len()
}
