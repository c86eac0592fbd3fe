//! Kubernetes' own scheduler on the nodes of this one, with its own preemption: it makes room for
//! pods of its own, and evicts pods of ours.

use gpu_batch::lab::local::Options;
use serde_json::{Value, json};

use super::{
    A_WHILE, FINALIZER, WITH_CONTROLLERS, begin, gang_of, high_gang, is_nominated, let_go, run,
};
use crate::cluster::{Cluster, stays, until};
use crate::diary::Diary;
use crate::work::{condition, ensure, patched};

/// What a node of the tests has.
const GPUS: u64 = 8;

async fn begin_with_both(namespace: &str) -> Option<Cluster> {
    let options = Options {
        kube_scheduler: true,
        ..WITH_CONTROLLERS
    };
    begin(namespace, options).await
}

/// A pod of kube-scheduler that fills a node, of a class of priority.
async fn theirs(cluster: &Cluster, name: &str, class: &str, patch: &Value) {
    let foreign = json!({"spec": {
        "schedulerName": "default-scheduler", "priorityClassName": class,
    }});
    let pod = cluster.pod(name, 8, &patched(foreign, patch));
    cluster.create(&pod).await;
}

/// Room that kube-scheduler makes for a pod of its own, which it has nominated, is not for gangs of
/// lower or equal priority, however soon they see it.
#[tokio::test]
async fn gangs_do_not_take_the_room_that_kube_scheduler_makes_for_its_own_pods() {
    let Some(cluster) = begin_with_both("nominated").await else {
        return;
    };
    let [node] = cluster.nodes(["r1"]).await;
    let scheduler = cluster.scheduler("").await;
    let diary = Diary::start(&cluster).await;
    let slow = json!({"metadata": {"finalizers": [FINALIZER]}});
    theirs(&cluster, "theirs-0", "low", &slow).await;
    run(&cluster, &["theirs-0".to_owned()]).await;
    let lower = gang_of("middle", &cluster, "lower", 2, 4).await;
    let equal = high_gang(&cluster, "equal", 2, 4).await;
    for gang in ["lower", "equal"] {
        cluster.group_waits(gang, "DoesNotFit").await;
    }
    let ours = [&lower[..], &equal[..]].concat();

    theirs(&cluster, "theirs-1", "high", &slow).await;
    is_nominated(&cluster, "theirs-1", &node).await;
    stays("all wait", A_WHILE, async || {
        cluster.none_bound(&ours).await
    })
    .await;
    let_go(&cluster, "theirs-0").await;
    run(&cluster, &["theirs-1".to_owned()]).await;
    cluster.none_bound(&ours).await.unwrap();

    // When that pod is gone, the room is for the gang that is first.
    cluster.delete(&cluster.pod_path("theirs-1")).await;
    let_go(&cluster, "theirs-1").await;
    run(&cluster, &equal).await;
    cluster.none_bound(&lower).await.unwrap();
    assert_eq!(diary.overfilled(GPUS), None);
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}

/// A gang of two pods with a node each, which the Deployment controller makes anew at once.
async fn gang_of_a_deployment(cluster: &Cluster) {
    let spec = json!({
        "minMember": 2, "priorityClassName": "middle", "stalenessGracePeriod": "4s",
    });
    cluster.group("train", &spec).await;
    let spec = json!({"restartPolicy": "Always", "priorityClassName": "middle"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "train"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "train"}},
            "template": {
                "metadata": {"labels": {"app": "train", "gpu-batch.io/pod-group": "train"}},
                "spec": patched(cluster.pod_template(8), &spec),
            },
        },
    });
    cluster.create(&deployment).await;
    is_whole(cluster).await;
}

/// Waits until all members of the gang run.
async fn is_whole(cluster: &Cluster) {
    cluster
        .group_when("train", |status| {
            status["members"]["running"] == 2 && status["members"]["created"] == 2
        })
        .await;
}

/// Waits until kube-scheduler has evicted a member for a pod of its own, which runs then.
async fn is_preempted_for(cluster: &Cluster, name: &str, diary: &Diary) {
    let before = diary.evicted_for("PreemptionByScheduler");
    theirs(cluster, name, "high", &json!({})).await;
    run(cluster, &[name.to_owned()]).await;
    until("a member is preempted", async || {
        let evicted = diary.evicted_for("PreemptionByScheduler");
        ensure(evicted.len() == before.len() + 1, evicted)
    })
    .await;
}

/// A gang of which kube-scheduler evicts a member comes back whole while there is room elsewhere;
/// where there is none, it is evicted whole after its grace, and starts whole when there is.
#[tokio::test]
async fn a_gang_that_kube_scheduler_preempts_comes_back_whole_or_is_unwound() {
    let Some(cluster) = begin_with_both("preempted").await else {
        return;
    };
    cluster.nodes(["r1"; 2]).await;
    let scheduler = cluster.scheduler("").await;
    let diary = Diary::start(&cluster).await;
    gang_of_a_deployment(&cluster).await;
    is_preempted_for(&cluster, "theirs-1", &diary).await;
    cluster.add_node(cluster.node("n3", "r1")).await;
    is_whole(&cluster).await;

    is_preempted_for(&cluster, "theirs-2", &diary).await;
    let said = cluster.event("PodGroup", "train", "Stale").await;
    assert!(said.contains("evicted"), "{said}");
    let group = cluster.group_waits("train", "DoesNotFit").await;
    assert_eq!(group["status"]["members"]["bound"], 0, "{group:#}");
    stays("none starts alone", A_WHILE, async || {
        let group = cluster.get(&cluster.group_path("train")).await?;
        ensure(group["status"]["members"]["bound"] == 0, &group["status"])
    })
    .await;
    cluster.delete(&cluster.pod_path("theirs-2")).await;
    is_whole(&cluster).await;
    let theirs = cluster.get(&cluster.pod_path("theirs-1")).await.unwrap();
    assert_eq!(condition(&theirs, "DisruptionTarget"), &Value::Null);
    assert_eq!(diary.overfilled(GPUS), None);
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}
