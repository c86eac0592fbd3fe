//! The real kube-scheduler with gpu-batch as its extender.

mod gangs;
mod secured;

use std::net::TcpListener;
use std::time::Duration;

use gpu_batch::lab::local::{Options, Program, SchedulerProcess};
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, stays, until};
use crate::harness;
use crate::work::{condition, ensure, patched};

/// Fake kubelets; kube-scheduler starts when the test has an address for its extender.
const OPTIONS: Options = Options {
    kwok: true,
    controllers: &[],
    kube_scheduler: false,
    native_gangs: false,
    audit: false,
};

/// How long it is looked at whether something stays as it is.
const A_WHILE: Duration = Duration::from_secs(3);

/// A control plane of the test's own with kube-scheduler, and the configuration of the extender
/// that kube-scheduler asks.
async fn begin(namespace: &str, ignorable: bool) -> Option<(Cluster, String)> {
    let mut cluster = cluster::own(namespace, OPTIONS).await?;
    let binaries = harness::binaries_of(vec![Program::KubeScheduler]).await?;
    cluster.define_kinds().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let configuration = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{
            "urlPrefix": format!("http://{address}/"),
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "preemptVerb": "preempt",
            "bindVerb": "bind",
            "weight": 100,
            "nodeCacheCapable": true,
            "httpTimeout": "1s",
            "ignorable": ignorable,
        }],
    });
    let control_plane = cluster.control_plane();
    control_plane
        .start_kube_scheduler(&binaries, &configuration)
        .unwrap();
    Some((
        cluster,
        format!("extender: {{serveAddress: '{address}'}}\n"),
    ))
}

/// A pod of kube-scheduler with so many GPUs, which names a queue.
async fn pod(cluster: &Cluster, name: &str, gpus: u32, patch: &Value) -> String {
    let extended = json!({
        "metadata": {"labels": {"gpu-batch.io/queue": cluster.namespace}},
        "spec": {"schedulerName": "default-scheduler"},
    });
    let pod = cluster.pod(name, gpus, &patched(extended, patch));
    cluster.create(&pod).await;
    name.to_owned()
}

/// A queue with the name of the test, and a limit on GPUs.
async fn limited(cluster: &Cluster, limit: u32) {
    let resources = json!([{
        "name": "nvidia.com/gpu", "quota": limit.to_string(), "limit": limit.to_string(),
    }]);
    let name = cluster.namespace.clone();
    cluster.queue(&name, &json!({"resources": resources})).await;
}

/// Waits until kube-scheduler says of a pod that it has no node, in words that contain `words`.
async fn is_refused(cluster: &Cluster, name: &str, words: &str) {
    until(name, async || {
        let pod = cluster.get(&cluster.pod_path(name)).await?;
        let said = condition(&pod, "PodScheduled")["message"].as_str();
        ensure(
            said.is_some_and(|said| said.contains(words)),
            &pod["status"],
        )
    })
    .await;
}

#[tokio::test]
async fn pods_of_kube_scheduler_keep_to_the_limit_and_the_placement_of_their_queue() {
    let Some((cluster, extender)) = begin("extended", false).await else {
        return;
    };
    cluster.nodes(["r1"; 3]).await;
    limited(&cluster, 8).await;
    let scheduler = cluster.scheduler(&extender).await;
    let first = pod(&cluster, "p-0", 4, &json!({})).await;
    let second = pod(&cluster, "p-1", 4, &json!({})).await;
    let nodes = cluster.bound(&[first.clone(), second]).await;
    // kube-scheduler alone would spread them.
    assert_eq!(nodes[0], nodes[1]);
    let bound = cluster.get(&cluster.pod_path("p-0")).await.unwrap();
    let queue = &bound["metadata"]["annotations"]["gpu-batch.io/bound-queue"];
    assert_eq!(queue, "extended");

    let third = pod(&cluster, "p-2", 4, &json!({})).await;
    is_refused(
        &cluster,
        &third,
        "the limit of the queue extended is 8 of nvidia.com/gpu",
    )
    .await;
    // A pod that names no queue is not held to one.
    let other = json!({"spec": {"schedulerName": "default-scheduler"}});
    cluster.create(&cluster.pod("q", 4, &other)).await;
    cluster.bound(&["q".to_owned()]).await;
    stays("the third waits", A_WHILE, async || {
        cluster.none_bound(std::slice::from_ref(&third)).await
    })
    .await;
    cluster.delete(&cluster.pod_path(&first)).await;
    cluster.bound(&[third]).await;
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn however_many_pods_come_at_once_no_queue_exceeds_its_limit() {
    let Some((cluster, extender)) = begin("crowded", false).await else {
        return;
    };
    cluster.nodes(["r1"; 8]).await;
    limited(&cluster, 40).await;
    let scheduler = cluster.scheduler(&extender).await;
    let names: Vec<String> = (0..60).map(|number| format!("p-{number}")).collect();
    for name in &names {
        pod(&cluster, name, 1, &json!({})).await;
    }
    let bound = async || {
        let path = cluster.collection(&json!({"apiVersion": "v1", "kind": "Pod"}));
        let pods = cluster.list(&path).await.unwrap();
        let bound = pods
            .iter()
            .filter(|pod| pod["spec"]["nodeName"].is_string());
        bound.count()
    };
    until("40 are bound", async || {
        let bound = bound().await;
        ensure(bound == 40, bound)
    })
    .await;
    stays("no more are", A_WHILE, async || {
        let bound = bound().await;
        ensure(bound == 40, bound)
    })
    .await;
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}

/// One node is full of a gang of two, another of a single pod: for a pod that needs half a node,
/// kube-scheduler alone might evict one member of the gang.
#[tokio::test]
async fn kube_schedulers_own_preemption_breaks_no_gang() {
    let Some((cluster, extender)) = begin("preempting", false).await else {
        return;
    };
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "high"}, "value": 1_000,
    });
    cluster.create(&class).await;
    let [first, second] = cluster.nodes(["r1"; 2]).await;
    limited(&cluster, 64).await;
    let scheduler = cluster.scheduler(&extender).await;
    let queue = cluster.namespace.clone();
    let spec = json!({"minMember": 2, "queue": queue});
    cluster.group("train", &spec).await;
    let on = |node: &str| json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}});
    let member = json!({"metadata": {"labels": {"gpu-batch.io/pod-group": "train"}}});
    let mut members = Vec::new();
    for name in ["train-0", "train-1"] {
        cluster
            .create(&cluster.pod(name, 4, &patched(member.clone(), &on(&first))))
            .await;
        members.push(name.to_owned());
    }
    cluster.bound(&members).await;
    let single = pod(&cluster, "single", 8, &on(&second)).await;
    cluster.bound(&[single]).await;

    let high = json!({"spec": {"priorityClassName": "high"}});
    let high = pod(&cluster, "high", 4, &high).await;
    assert_eq!(cluster.bound(&[high]).await, [second]);
    assert_eq!(cluster.bound(&members).await, [first.clone(), first]);
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}

async fn process(cluster: &Cluster, extender: &str) -> SchedulerProcess {
    let text = format!(
        "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\nserveAddress: 127.0.0.1:0\n\
         leaderElection: {{enabled: false}}\n{extender}"
    );
    let program = env!("CARGO_BIN_EXE_gpu-batch").as_ref();
    SchedulerProcess::start(program, &cluster.kubeconfig, &text).unwrap()
}

#[tokio::test]
async fn pods_wait_while_the_extender_is_away_or_silent() {
    let Some((cluster, extender)) = begin("away", false).await else {
        return;
    };
    cluster.nodes(["r1"; 2]).await;
    limited(&cluster, 2).await;
    let early = pod(&cluster, "early", 1, &json!({})).await;
    is_refused(&cluster, &early, "connection refused").await;
    let mut scheduler = process(&cluster, &extender).await;
    cluster.bound(&[early]).await;

    scheduler.pause();
    let late = pod(&cluster, "late", 1, &json!({})).await;
    is_refused(&cluster, &late, "deadline exceeded").await;
    cluster
        .none_bound(std::slice::from_ref(&late))
        .await
        .unwrap();
    scheduler.resume();
    cluster.bound(&[late]).await;
    // A new process knows from the API server what the old one has bound.
    drop(scheduler);
    let _scheduler = process(&cluster, &extender).await;
    let last = pod(&cluster, "last", 1, &json!({})).await;
    is_refused(
        &cluster,
        &last,
        "the limit of the queue away is 2 of nvidia.com/gpu",
    )
    .await;
}

#[tokio::test]
async fn kube_scheduler_goes_on_alone_where_the_extender_is_ignorable() {
    let Some((cluster, extender)) = begin("ignored", true).await else {
        return;
    };
    cluster.nodes(["r1"; 2]).await;
    limited(&cluster, 2).await;
    let pods = [
        pod(&cluster, "p-0", 2, &json!({})).await,
        pod(&cluster, "p-1", 2, &json!({})).await,
    ];
    cluster.bound(&pods).await;
    let scheduler = cluster.scheduler(&extender).await;
    // Before, its answers are errors, which kube-scheduler ignores, too.
    until("it decides", async || {
        ensure(scheduler.is_ready(), "not ready")
    })
    .await;
    let third = pod(&cluster, "p-2", 1, &json!({})).await;
    is_refused(
        &cluster,
        &third,
        "the limit of the queue ignored is 2 of nvidia.com/gpu",
    )
    .await;
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}
