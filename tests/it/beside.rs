//! gpu-batch and kube-scheduler, each with pods of its own, on the nodes of one cluster.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gpu_batch::lab::local::Options;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster};
use crate::diary::Diary;
use crate::work::{condition, patched};

const OPTIONS: Options = Options {
    kwok: true,
    controllers: &[],
    kube_scheduler: true,
    native_gangs: false,
    audit: false,
};

const NODES: usize = 500;
/// How many pods each scheduler gets, half of them after the first ones have begun to end.
const PODS: usize = 2_000;
/// What a node of the tests has.
const GPUS: usize = 8;
/// How long all may take.
const PATIENCE: Duration = Duration::from_secs(180);
/// How many requests the test sends at a time.
const AT_ONCE: usize = 32;

/// The schedulers. Each of their pods asks for one GPU.
const SIDES: [&str; 2] = ["gpu-batch", "default-scheduler"];

/// Pods of both schedulers with these numbers; every third one ends after two seconds.
async fn create(cluster: &Cluster, numbers: std::ops::Range<usize>) {
    use futures::StreamExt;
    let pods = numbers.flat_map(|number| SIDES.map(|side| (number, side)));
    let created = pods.map(async |(number, side)| {
        let patch = json!({"spec": {"schedulerName": side}});
        let ends = json!({"metadata": {"annotations": {"gpu-batch.io/sim-run-seconds": "2"}}});
        let patch = if number % 3 == 0 {
            patched(patch, &ends)
        } else {
            patch
        };
        cluster
            .create(&cluster.pod(&format!("{side}-{number}"), 1, &patch))
            .await;
    });
    let mut created = futures::stream::iter(created).buffer_unordered(AT_ONCE);
    while created.next().await.is_some() {}
}

/// What one look at the cluster shows.
#[derive(Debug, Default)]
struct Look {
    /// How many pods of each scheduler have a node.
    bound: BTreeMap<String, usize>,
    /// The pods beyond what a node has, which came last.
    too_many: Vec<Value>,
}

async fn look(cluster: &Cluster) -> Result<Look, String> {
    let path = format!("/api/v1/namespaces/{}/pods", cluster.namespace);
    let mut on_nodes: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut look = Look::default();
    for pod in cluster.list(&path).await? {
        let phase = pod["status"]["phase"].as_str();
        let (Some(node), false) = (pod["spec"]["nodeName"].as_str(), phase == Some("Failed"))
        else {
            continue;
        };
        let side = pod["spec"]["schedulerName"].as_str().unwrap_or_default();
        *look.bound.entry(side.to_owned()).or_default() += 1;
        if phase != Some("Succeeded") {
            on_nodes.entry(node.to_owned()).or_default().push(pod);
        }
    }
    for mut pods in on_nodes.into_values() {
        let since = |pod: &Value| condition(pod, "PodScheduled")["lastTransitionTime"].to_string();
        pods.sort_by_key(since);
        look.too_many.extend(pods.into_iter().skip(GPUS));
    }
    Ok(look)
}

/// What kubelets do with a pod for which they have no room, and controllers after that: the pod is
/// gone, and another one is there. `conflicts`: how many were refused before.
async fn refuse(cluster: &Cluster, pods: &[Value], conflicts: usize) {
    for (pod, number) in pods.iter().zip(conflicts..) {
        let name = pod["metadata"]["name"].as_str().unwrap();
        cluster.delete(&cluster.pod_path(name)).await;
        let side = pod["spec"]["schedulerName"].as_str().unwrap();
        let patch = json!({"spec": {"schedulerName": side}});
        cluster
            .create(&cluster.pod(&format!("again-{number}"), 1, &patch))
            .await;
    }
}

/// Two schedulers that do not ask each other may choose the last GPU of a node at the same time.
/// Then the kubelet refuses a pod, its controller makes another one, and nobody is evicted for it.
#[tokio::test]
async fn two_schedulers_on_the_same_nodes_place_all_their_pods_and_evict_none() {
    let Some(cluster) = cluster::own("beside", OPTIONS).await else {
        return;
    };
    cluster.define_kinds().await;
    let nodes = (0..NODES).map(|number| cluster.node(&format!("n{number}"), "r1"));
    cluster.add_nodes(nodes).await;
    let scheduler = cluster.scheduler("").await;
    let diary = Diary::start(&cluster).await;
    let begun = Instant::now();
    create(&cluster, 0..PODS / 2).await;
    // Meanwhile the first ones end.
    tokio::time::sleep(Duration::from_secs(2)).await;
    create(&cluster, PODS / 2..PODS).await;
    let all = BTreeMap::from(SIDES.map(|side| (side.to_owned(), PODS)));
    let mut conflicts = 0;
    loop {
        let look = look(&cluster).await.unwrap();
        if look.too_many.is_empty() && look.bound == all {
            break;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{:?}, {conflicts} conflicts",
            look.bound
        );
        refuse(&cluster, &look.too_many, conflicts).await;
        conflicts += look.too_many.len();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    eprintln!(
        "{} pods of each of two schedulers were placed {:.1?} after the first came; {conflicts} \
         found their node full",
        PODS,
        begun.elapsed()
    );
    assert!(diary.evicted().is_empty());
    assert!(diary.evicted_for("PreemptionByScheduler").is_empty());
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
    let compared = crate::http::get(scheduler.address(), "/debug/compare").await;
    assert_eq!(compared, (200, "ok\n".to_owned()));
}
