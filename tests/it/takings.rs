//! Gangs that wait take room from others, on the real control plane: who is evicted and in what
//! order, who gets the room, and what all who are concerned are told.
//!
//! Most victims have a finalizer that the test removes: until then they keep their room, as pods do
//! that take long to save their work.

mod disturbed;
mod interrupted;
mod kube_scheduler;
mod time_lines;

use std::time::Duration;

use gpu_batch::lab::local::{CONTROLLERS, Options};
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, stays, until};
use crate::diary::Diary;
use crate::work::{condition, ensure};

/// What keeps a pod that is evicted where it is.
const FINALIZER: &str = "example.com/saves-its-work";

/// How long it is looked at whether something stays as it is: longer than a leader takes between
/// two looks for plans.
const A_WHILE: Duration = Duration::from_secs(3);

/// The real controllers make pods of Jobs anew and count what budgets allow.
const WITH_CONTROLLERS: Options = Options {
    kwok: true,
    controllers: CONTROLLERS,
    kube_scheduler: false,
    native_gangs: false,
    audit: false,
};

/// The classes of priority.
const CLASSES: [(&str, i32); 4] = [
    ("low", 1_000),
    ("middle", 5_000),
    ("high", 10_000),
    ("top", 20_000),
];

/// A control plane with the custom resources and the classes of priority, and without a scheduler.
async fn begin(namespace: &str, options: Options) -> Option<Cluster> {
    let cluster = cluster::own(namespace, options).await?;
    cluster.define_kinds().await;
    classes(&cluster).await;
    Some(cluster)
}

/// The control plane that most tests share, with the classes of priority.
async fn begin_shared(namespace: &str) -> Option<Cluster> {
    let cluster = cluster::shared(namespace).await?;
    classes(&cluster).await;
    Some(cluster)
}

/// Creates the classes of priority that are not there yet.
async fn classes(cluster: &Cluster) {
    for (name, value) in CLASSES {
        let created = cluster
            .try_create(&json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name}, "value": value,
            }))
            .await;
        if let Err(message) = created {
            assert!(message.contains("already exists"), "{message}");
        }
    }
}

/// What is said of a pod of low priority that stays for a while when it is evicted.
fn slow() -> Value {
    slow_of("low")
}

/// Such a pod of another class of priority.
fn slow_of(class: &str) -> Value {
    json!({"metadata": {"finalizers": [FINALIZER]}, "spec": {"priorityClassName": class}})
}

/// A pod that fills a node, stays for a while when it is evicted, and runs now.
async fn full(cluster: &Cluster, name: &str, class: &str) {
    let pod = cluster.pod(name, 8, &slow_of(class));
    cluster.create(&pod).await;
    run(cluster, &[name.to_owned()]).await;
}

/// Two queues that have a quota of 4 GPUs each.
async fn two_queues(cluster: &Cluster) {
    for queue in ["a", "b"] {
        let gpus = json!([{"name": "nvidia.com/gpu", "quota": "4"}]);
        cluster.queue(queue, &json!({"resources": gpus})).await;
    }
}

/// A gang of high priority of the queue `default`; returns the names of its members.
async fn high_gang(cluster: &Cluster, name: &str, members: usize, gpus: u32) -> Vec<String> {
    gang_of("high", cluster, name, members, gpus).await
}

/// Such a gang of another class of priority.
async fn gang_of(
    class: &str,
    cluster: &Cluster,
    name: &str,
    members: usize,
    gpus: u32,
) -> Vec<String> {
    let spec = json!({"minMember": members, "priorityClassName": class});
    cluster.group(name, &spec).await;
    let class = json!({"spec": {"priorityClassName": class}});
    cluster.members(name, members, gpus, &class).await
}

/// Waits until a pod that waits is nominated to a node.
async fn is_nominated(cluster: &Cluster, pod: &str, node: &str) {
    until(pod, async || {
        let pod = cluster.get(&cluster.pod_path(pod)).await?;
        let status = &pod["status"];
        ensure(status["nominatedNodeName"] == node, status)
    })
    .await;
}

async fn run(cluster: &Cluster, pods: &[String]) {
    cluster.bound(pods).await;
    for pod in pods {
        until(pod, async || {
            let pod = cluster.get(&cluster.pod_path(pod)).await?;
            ensure(pod["status"]["phase"] == "Running", &pod["status"])
        })
        .await;
    }
}

/// Lets a pod that is evicted leave.
async fn let_go(cluster: &Cluster, pod: &str) {
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
    let request = http::Request::patch(cluster.pod_path(pod))
        .header("Content-Type", "application/strategic-merge-patch+json")
        .body(serde_json::to_vec(&patch).unwrap());
    cluster.send(request.unwrap()).await.unwrap();
}

async fn is_gone(cluster: &Cluster, pod: &str) {
    until(pod, async || {
        let pod = cluster.get(&cluster.pod_path(pod)).await;
        ensure(pod.is_err(), pod)
    })
    .await;
}

/// Waits until so many pods were evicted, and returns their names.
async fn evictions(diary: &Diary, count: usize) -> Vec<String> {
    until("evictions", async || {
        let evicted = diary.evicted();
        ensure(evicted.len() >= count, &evicted)?;
        Ok(evicted.into_iter().collect())
    })
    .await
}

fn name_of(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().unwrap().to_owned()
}

/// A Job whose pods stay for a while when they are evicted, and do not count as failed then.
fn slow_job() -> Value {
    let evicted = json!({"type": "DisruptionTarget", "status": "True"});
    let rules = json!([{"action": "Ignore", "onPodConditions": [evicted]}]);
    json!({"spec": {"podFailurePolicy": {"rules": rules}, "template": slow()}})
}

#[tokio::test]
async fn a_gang_of_higher_priority_takes_the_room_of_jobs_whose_pods_come_back() {
    let Some(cluster) = begin("preempt", WITH_CONTROLLERS).await else {
        return;
    };
    let [node] = cluster.nodes(["r1"]).await;
    let scheduler = cluster.scheduler("").await;
    let jobs = ["sweep-a", "sweep-b", "sweep-c", "sweep-d"];
    let is_running = |pod: &Value| pod["status"]["phase"] == "Running";
    let mut victims = Vec::new();
    for job in jobs {
        cluster.job(job, 1, 2, &slow_job()).await;
        victims.push(name_of(&cluster.job_pods(job, 1, is_running).await[0]));
    }
    let diary = Diary::start(&cluster).await;
    let members = high_gang(&cluster, "urgent", 2, 4).await;

    let group = cluster.group_waits("urgent", "WaitingForEviction").await;
    let said = condition(&group, "PodGroupScheduled")["message"].clone();
    let said = said.as_str().unwrap();
    let named = format!("for 4 pods to leave: preempt/{}, ", victims[0]);
    assert!(said.contains(&named) && said.contains("1 more"), "{said}");
    for member in &members {
        cluster.pod_waits(member, "WaitingForEviction").await;
    }
    assert_eq!(evictions(&diary, 4).await, victims);
    let nominated = diary.nominated_before_evictions(&members);
    assert_eq!(nominated, [Some(node.clone()), Some(node.clone())]);
    for victim in &victims {
        let said = cluster.event("Pod", victim, "Preempted").await;
        let why = "so that the gang preempt/urgent of higher priority (10000) of its queue can";
        assert!(said.contains(why) && said.contains("2 GPUs"), "{said}");
    }
    stays("nobody starts yet", A_WHILE, async || {
        cluster.none_bound(&members).await
    })
    .await;
    for victim in &victims {
        // As its kubelet does at the end of its grace period.
        cluster.set_phase(victim, "Failed").await;
        let_go(&cluster, victim).await;
    }
    assert_eq!(cluster.bound(&members).await, [node.clone(), node]);
    cluster
        .group_when("urgent", |status| status["phase"] == "Running")
        .await;
    come_back_and_wait(&cluster, jobs, &victims).await;
    assert_eq!(diary.evicted().into_iter().collect::<Vec<_>>(), victims);
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}

/// Each Job makes its pod anew, which waits, and no Job has failed.
async fn come_back_and_wait(cluster: &Cluster, jobs: [&str; 4], victims: &[String]) {
    let is_new = |pod: &Value| !victims.contains(&name_of(pod));
    for job in jobs {
        let pod = name_of(&cluster.job_pods(job, 1, is_new).await[0]);
        let said = cluster.pod_waits(&pod, "Unschedulable").await;
        assert!(said.starts_with("DoesNotFit: "), "{said}");
        let path = format!("/apis/batch/v1/namespaces/{}/jobs/{job}", cluster.namespace);
        let job = cluster.get(&path).await.unwrap();
        assert_eq!(job["status"]["failed"], Value::Null, "{job:#}");
        assert_eq!(condition(&job, "Failed"), &Value::Null, "{job:#}");
    }
}

#[tokio::test]
async fn a_queue_gets_its_quota_back_from_the_surplus_of_another() {
    let Some(cluster) = begin("reclaim", WITH_CONTROLLERS).await else {
        return;
    };
    two_queues(&cluster).await;
    let [node] = cluster.nodes(["r1"]).await;
    let scheduler = cluster.scheduler("").await;
    let elastic = json!({"minMember": 2, "queue": "b"});
    cluster.group("elastic", &elastic).await;
    let lenders = cluster.members("elastic", 8, 1, &json!({})).await;
    run(&cluster, &lenders).await;
    let diary = Diary::start(&cluster).await;
    let mine = json!({"minMember": 2, "queue": "a"});
    cluster.group("mine", &mine).await;
    let members = cluster.members("mine", 2, 2, &json!({})).await;

    assert_eq!(cluster.bound(&members).await, [node.clone(), node.clone()]);
    let evicted = evictions(&diary, 4).await;
    assert_eq!(evicted.len(), 4, "{evicted:?}");
    let nominated = diary.nominated_before_evictions(&members);
    assert_eq!(nominated, [Some(node.clone()), Some(node)]);
    let why = "so that the gang reclaim/mine of the queue a gets what is its own: \
               the queue b holds 8 of nvidia.com/gpu, its quota is 4; ";
    for pod in &evicted {
        let said = cluster.event("Pod", pod, "Reclaimed").await;
        assert!(said.contains(why) && said.contains("1 GPUs"), "{said}");
    }
    let said = cluster.event("PodGroup", "elastic", "Reclaimed").await;
    assert!(said.contains(why), "{said}");
    let group = cluster
        .group_when("elastic", |status| status["members"]["running"] == 4)
        .await;
    assert_eq!(group["status"]["phase"], "Running", "{group:#}");
    stays("nobody else is evicted", A_WHILE, async || {
        ensure(diary.evicted().len() == 4, diary.evicted())
    })
    .await;
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}

/// Scenario S01: victims take ten minutes to leave, and nobody else gets the room. Here they stay
/// as long as the test looks on, and the pods that come later have no higher priority: by the rules
/// such a pod would preempt members of its own queue.
#[tokio::test]
async fn room_that_is_left_slowly_is_nobody_elses() {
    let Some(cluster) = begin("slowly", WITH_CONTROLLERS).await else {
        return;
    };
    two_queues(&cluster).await;
    let [node] = cluster.nodes(["r1"]).await;
    let scheduler = cluster.scheduler("").await;
    cluster
        .group("elastic", &json!({"minMember": 1, "queue": "b"}))
        .await;
    let lenders = cluster.members("elastic", 8, 1, &slow()).await;
    run(&cluster, &lenders).await;
    let diary = Diary::start(&cluster).await;
    let of = |queue: &str| json!({"metadata": {"labels": {"gpu-batch.io/queue": queue}}});
    let owner = ["owner".to_owned()];
    cluster.create(&cluster.pod(&owner[0], 4, &of("a"))).await;
    let evicted = evictions(&diary, 4).await;
    let nominated = diary.nominated_before_evictions(&owner);
    assert_eq!(nominated, [Some(node.clone())]);
    // Creation times are whole seconds: who comes in the same second may come before it in line.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let others = ["of-a", "of-b"].map(str::to_owned);
    for (name, queue) in [("of-a", "a"), ("of-b", "b")] {
        cluster.create(&cluster.pod(name, 1, &of(queue))).await;
    }
    for pod in &evicted[..2] {
        let_go(&cluster, pod).await;
        is_gone(&cluster, pod).await;
    }
    for pod in &others {
        cluster.pod_waits(pod, "Unschedulable").await;
    }
    let all = [&owner[..], &others[..]].concat();
    stays("the room is kept", A_WHILE, async || {
        cluster.none_bound(&all).await
    })
    .await;
    cluster.pod_waits(&owner[0], "WaitingForEviction").await;
    for pod in &evicted[2..] {
        let_go(&cluster, pod).await;
    }
    assert_eq!(cluster.bound(&owner).await, [node]);
    stays("the others wait", A_WHILE, async || {
        cluster.none_bound(&others).await
    })
    .await;
    assert_eq!(diary.evicted().len(), 4, "{:?}", diary.evicted());
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}
