//! Gangs of Kubernetes itself (`scheduling.k8s.io/v1alpha2`) that ask for this scheduler.

use gpu_batch::lab::local::Options;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::work::{condition, ensure};

impl Cluster {
    pub(crate) async fn native_group(&self, name: &str, spec: &Value) {
        self.create(&json!({
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": spec,
        }))
        .await;
    }

    /// The pods `NAME-0`, ... of a native group.
    pub(crate) async fn native_members(&self, group: &str, count: usize, gpus: u32) -> Vec<String> {
        let names: Vec<String> = (0..count).map(|i| format!("{group}-{i}")).collect();
        let patch = json!({"spec": {"schedulingGroup": {"podGroupName": group}}});
        for name in &names {
            self.create(&self.pod(name, gpus, &patch)).await;
        }
        names
    }

    /// Waits for the condition PodGroupScheduled of a native group; returns its message.
    pub(crate) async fn native_when(&self, name: &str, status: &str, reason: &str) -> String {
        let path = format!(
            "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/podgroups/{name}",
            self.namespace
        );
        until(name, async || {
            let group = self.get(&path).await?;
            let condition = condition(&group, "PodGroupScheduled");
            let as_wanted = condition["status"] == status && condition["reason"] == reason;
            ensure(as_wanted, &group["status"])?;
            Ok(condition["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }
}

#[tokio::test]
async fn native_groups_are_gangs_with_their_topology_and_their_condition() {
    let options = Options {
        native_gangs: true,
        ..Options::default()
    };
    let Some(cluster) = cluster::own("native", options).await else {
        return;
    };
    cluster.define_kinds().await;
    let nodes = cluster.nodes(["a", "a", "b", "b", "b"]).await;
    let scheduler = cluster.scheduler("").await;
    let gang = |count: u32, constraints: Value| {
        json!({
            "schedulingPolicy": {"gang": {"minCount": count}},
            "schedulingConstraints": constraints,
        })
    };
    let rack = json!({"topology": [{"key": "example.com/rack"}]});

    cluster.native_group("four", &gang(4, rack.clone())).await;
    let four = cluster.native_members("four", 4, 8).await;
    let message = cluster.native_when("four", "False", "DoesNotFit").await;
    assert!(message.starts_with("4 members"), "{message}");
    cluster.pod_waits(&four[0], "Unschedulable").await;
    cluster.none_bound(&four).await.unwrap();

    cluster.native_group("three", &gang(3, rack)).await;
    let three = cluster.native_members("three", 3, 8).await;
    let mut used = cluster.bound(&three).await;
    used.sort();
    assert_eq!(used, nodes[2..]);
    cluster.native_when("three", "True", "Scheduled").await;

    let basic = json!({"schedulingPolicy": {"basic": {}}});
    cluster.native_group("basic", &basic).await;
    let basic = cluster.native_members("basic", 3, 8).await;
    until("two of three, each by itself", async || {
        let mut bound = 0;
        for pod in &basic {
            bound += usize::from(cluster.node_of(pod).await.is_some());
        }
        ensure(bound == 2, bound)
    })
    .await;

    cluster.group("ours", &json!({"minMember": 1})).await;
    let both = json!({
        "metadata": {"labels": {"gpu-batch.io/pod-group": "ours"}},
        "spec": {"schedulingGroup": {"podGroupName": "three"}},
    });
    cluster.create(&cluster.pod("both", 1, &both)).await;
    let said = cluster.pod_waits("both", "ConflictingGroups").await;
    assert!(said.contains("both"), "{said}");
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
    scheduler.stop().await.unwrap();
}
