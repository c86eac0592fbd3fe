//! Checks what users are told of objects: in the status, and in an event.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rows::{Expectation, Row};
use crate::cluster::Cluster;
use crate::work::{condition, ensure};

/// How long anything may take. Machines of CI are slow.
const PATIENCE: Duration = Duration::from_secs(40);

impl Cluster {
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
pub(super) async fn all_is_said(cluster: &Cluster, rows: &[Row]) {
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
        "Queue" if condition["status"] == "True" => "Ready".to_owned(),
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
    let says_nothing = reason == "Ready";
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
    let about_it = |(of, note): &(&Value, &str)| **of == **reason && speaks(note);
    let right = match says_nothing {
        // A quota of what no node has is news, and not wrong.
        true => notes.iter().all(|(of, _)| **of == "ResourceNotFound"),
        false => notes.iter().any(about_it),
    };
    ensure(right, ("events", notes))
}
