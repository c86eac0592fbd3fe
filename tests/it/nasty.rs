//! Nonsense of every sort, applied to a real API server while the scheduler runs: the API server
//! refuses it with the field, or the scheduler says in the object and in an event why it waits.
//! Everything else goes on.
//!
//! The tables are in `nasty/*.yaml`. In a second round the rules of the custom resources are taken
//! away, as if they were of another version: the scheduler never trusts them.

mod check;
mod rows;

use std::io::Write;
use std::time::{Duration, Instant};

use gpu_batch::kube::api;
use gpu_batch::lab::local::Options;
use gpu_batch::live::Scheduler;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::http;
use crate::work::{ensure, patched};
use rows::Row;

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

    let mut rows = rows::floods();
    for family in ["queues", "groups", "pods", "nodes"] {
        rows.extend(rows::table(&format!("{family}.yaml")));
    }
    cluster.check(&rows).await;
    let mut count = rows.len();

    cluster.open_definitions().await;
    let mut rows = rows::table("open.yaml");
    rows.push(rows::crabs());
    rows.extend(rows::breakers());
    cluster.check(&rows).await;
    check_depth(&cluster).await;
    count += rows.len() + 1;
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
    // All of it came as news, in JSON. A list, in the binary form, says the same.
    until("the same world in a list", async || {
        let (status, page) = http::get(scheduler.address(), "/debug/compare").await;
        ensure(status == 200, page)
    })
    .await;
    scheduler.stop().await.unwrap();
}

impl Cluster {
    /// The whole object of a row.
    fn whole(&self, row: &Value) -> Value {
        let kind = row["kind"].as_str().unwrap();
        let version = match kind {
            "Pod" | "Node" | "Namespace" => "v1",
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

    /// Applies all rows, and then waits until all is said that is to be said.
    async fn check(&self, rows: &[Row]) {
        let mut complaints = Vec::new();
        for row in rows {
            let either = row.refused.is_some() == row.expect.is_empty();
            assert!(either, "{}: is it refused, or what is expected?", row.nasty);
            complaints.extend(self.apply_row(row).await.err());
        }
        assert!(complaints.is_empty(), "{complaints:#?}");
        check::all_is_said(self, rows).await;
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
            self.opened(kind).await;
        }
    }

    /// Waits until the scheduler sees what the rules would have refused. An open watch still goes
    /// through the old definition for a while.
    async fn opened(&self, kind: &str) {
        let mut number = 0;
        until(kind, async || {
            number += 1;
            let name = format!("probe-{number}");
            let probe = json!({"kind": kind, "metadata": {"name": name}, "spec": {"a": [1]}});
            self.try_create(&self.whole(&probe)).await?;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let events = self.list("/apis/events.k8s.io/v1/events").await?;
            let is_said = events.iter().any(|event| {
                let note = event["note"].as_str().unwrap_or_default();
                event["regarding"]["kind"] == kind && note.starts_with("spec.a")
            });
            ensure(is_said, kind)
        })
        .await;
    }
}
