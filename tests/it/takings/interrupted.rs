//! What may happen while a gang takes room.

use std::path::Path;

use gpu_batch::lab::local::{Options, SchedulerProcess};
use gpu_batch::live::Scheduler;
use serde_json::json;

use super::{A_WHILE, WITH_CONTROLLERS, begin, evictions, high_gang, is_gone, let_go, run, slow};
use crate::cluster::{Cluster, stays, until};
use crate::diary::Diary;
use crate::http::get;
use crate::work::ensure;

/// Evictions that come one a second, so that something happens between them.
pub(super) const ONE_A_SECOND: &str = "evictions: {inFlight: 50, perSecond: 1}\n";

/// Racks for so many nodes.
const RACKS: [&str; 6] = ["r1"; 6];

/// Pods of low priority that fill a node each.
pub(super) async fn full_nodes(cluster: &Cluster, names: &[String]) {
    for name in names {
        cluster.create(&cluster.pod(name, 8, &slow())).await;
    }
    run(cluster, names).await;
}

pub(super) fn names(prefix: &str, count: usize) -> Vec<String> {
    let names = (0..count).map(|number| format!("{prefix}-{number}"));
    names.collect()
}

/// A scheduler that leads under this name as soon as nobody else does.
fn process(cluster: &Cluster, identity: &str) -> SchedulerProcess {
    let configuration = format!(
        "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
         serveAddress: 127.0.0.1:0\n{ONE_A_SECOND}\
         leaderElection: {{namespace: {}, identity: {identity}, leaseDuration: 5s, \
         renewDeadline: 3s, retryPeriod: 500ms}}\nrequestDeadline: 1s\n",
        cluster.namespace
    );
    let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    SchedulerProcess::start(executable, &cluster.kubeconfig, &configuration).unwrap()
}

/// Scenario S05: the leader dies after the nominations and the first of the evictions, here of four
/// instead of two, so that it dies before the last one on a slow machine, too.
#[tokio::test]
async fn the_successor_of_a_leader_that_is_killed_amid_evictions_evicts_the_same_pods() {
    let Some(cluster) = begin("succession", WITH_CONTROLLERS).await else {
        return;
    };
    cluster.nodes(RACKS).await;
    let first = process(&cluster, "a");
    // These have lost more when they are evicted, however long all of them run.
    let older = names("older", 2);
    full_nodes(&cluster, &older).await;
    tokio::time::sleep(A_WHILE).await;
    let younger = names("younger", 4);
    full_nodes(&cluster, &younger).await;
    let diary = Diary::start(&cluster).await;
    let standby = process(&cluster, "b");
    let members = high_gang(&cluster, "urgent", 4, 8).await;
    evictions(&diary, 1).await;
    drop(first);
    let before = diary.evicted();
    assert!(before.len() < 4, "killed too late: {before:?}");
    assert_eq!(evictions(&diary, 4).await, younger, "{}", standby.log());
    let said = cluster.group_waits("urgent", "WaitingForEviction").await;
    assert!(said.to_string().contains("for 4 pods"), "{said:#}");
    stays("the others run on", A_WHILE, async || {
        ensure(diary.evicted().len() == 4, diary.evicted())
    })
    .await;
    for pod in &younger {
        let_go(&cluster, pod).await;
    }
    cluster.bound(&members).await;
    run(&cluster, &older).await;
    assert_eq!(diary.evicted().len(), 4, "{:?}", diary.evicted());
}

/// Scenario S03: the beneficiary is deleted between the nominations and the evictions, here after
/// the first of six instead of two, for the sake of slow machines.
#[tokio::test]
async fn nobody_is_evicted_any_more_for_a_gang_that_is_deleted() {
    let Some(cluster) = begin("deleted", WITH_CONTROLLERS).await else {
        return;
    };
    cluster.nodes(RACKS).await;
    let scheduler = cluster.scheduler(ONE_A_SECOND).await;
    let running = names("running", RACKS.len());
    full_nodes(&cluster, &running).await;
    let diary = Diary::start(&cluster).await;
    let members = high_gang(&cluster, "urgent", RACKS.len(), 8).await;
    evictions(&diary, 1).await;
    cluster.delete(&cluster.group_path("urgent")).await;
    for member in &members {
        cluster.delete(&cluster.pod_path(member)).await;
    }
    for member in &members {
        diary.gone(member).await;
    }
    stays("nobody else is evicted", A_WHILE, async || {
        // An eviction may have been under way.
        let after = diary.evicted_after(&members[5]);
        ensure(after.len() <= 1, after)
    })
    .await;
    let evicted = evictions(&diary, 1).await;
    assert!(evicted.len() < 5, "{evicted:?}");
    let freed = cluster.node_of(&evicted[0]).await.unwrap();
    let_go(&cluster, &evicted[0]).await;
    is_gone(&cluster, &evicted[0]).await;
    cluster.create(&cluster.pod("late", 8, &slow())).await;
    assert_eq!(cluster.bound(&["late".to_owned()]).await, [freed]);
    assert_eq!(diary.evicted().len(), evicted.len());
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}

/// A disruption budget that allows nothing, for one pod.
async fn keep(cluster: &Cluster, pod: &str) {
    let label = json!({"metadata": {"labels": {"kept": pod}}});
    cluster.merge(&cluster.pod_path(pod), &label).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": pod},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"kept": pod}}},
    });
    cluster.create(&budget).await;
    let path = format!("{}/{pod}", cluster.collection(&budget));
    until("the budget counts the pod", async || {
        let status = cluster.get(&path).await?["status"].clone();
        let counts = status["currentHealthy"] == 1 && status["disruptionsAllowed"] == 0;
        ensure(counts, status)
    })
    .await;
}

/// How many evictions the API server was asked for, whatever it answered.
pub(super) fn asked(cluster: &Cluster) -> usize {
    let log = cluster.audit_log();
    let evictions = log.iter().filter(|event| {
        event["objectRef"]["subresource"] == "eviction"
            && !event["requestURI"].as_str().unwrap().contains("dryRun")
    });
    evictions.count()
}

/// How many commands a scheduler has sent.
async fn commands(scheduler: &Scheduler) -> u64 {
    let (status, page) = get(scheduler.address(), "/metrics").await;
    assert_eq!(status, 200, "{page}");
    let samples = page.lines();
    let samples = samples.filter(|line| line.starts_with("gpu_batch_commands_total{"));
    let values = samples.map(|line| line.rsplit(' ').next().unwrap());
    values.map(|value| value.parse::<u64>().unwrap()).sum()
}

/// The API server refuses to evict this pod, and says so from now on.
async fn refuse(cluster: &Cluster, pod: &str) {
    let name = "no-evictions";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods/eviction"],
            }]},
            "validations": [{
                "expression": format!("request.name != '{pod}'"),
                "message": "its owner must agree",
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    for (plural, object) in [("policies", &policy), ("policybindings", &binding)] {
        let group = "/apis/admissionregistration.k8s.io/v1";
        let request = http::Request::post(format!("{group}/validatingadmission{plural}"));
        let request = request.body(serde_json::to_vec(object).unwrap()).unwrap();
        cluster.send(request).await.unwrap();
    }
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod},
    });
    until("the policy is in force", async || {
        let path = format!("{}/eviction?dryRun=All", cluster.pod_path(pod));
        let request = http::Request::post(path).body(serde_json::to_vec(&eviction).unwrap());
        let answer = cluster.send(request.unwrap()).await;
        ensure(answer.is_err(), &answer)
    })
    .await;
}

#[tokio::test]
async fn pods_that_must_not_be_evicted_are_not_and_nobody_asks_all_the_time() {
    let options = Options {
        audit: true,
        ..WITH_CONTROLLERS
    };
    let Some(cluster) = begin("kept", options).await else {
        return;
    };
    cluster.nodes(["r1"; 3]).await;
    let scheduler = cluster.scheduler("").await;
    let running = ["older", "younger", "youngest"].map(str::to_owned);
    for pod in &running {
        full_nodes(&cluster, std::slice::from_ref(pod)).await;
        tokio::time::sleep(A_WHILE).await;
    }
    // Without the budget it would be the cheapest.
    keep(&cluster, "youngest").await;
    let diary = Diary::start(&cluster).await;
    let members = high_gang(&cluster, "urgent", 1, 8).await;
    assert_eq!(evictions(&diary, 1).await, ["younger"]);
    let_go(&cluster, "younger").await;
    cluster.bound(&members).await;
    assert_eq!(asked(&cluster), 1);

    refuse(&cluster, "older").await;
    let more = high_gang(&cluster, "more", 1, 8).await;
    let said = cluster
        .event("PodGroup", "more", "EvictionPlanFailed")
        .await;
    assert!(said.contains("its owner must agree"), "{said}");
    cluster.group_waits("more", "DoesNotFit").await;
    let before = commands(&scheduler).await;
    stays("few requests", 2 * A_WHILE, async || {
        let sent = commands(&scheduler).await - before;
        ensure(sent < 40 && asked(&cluster) <= 5, (sent, asked(&cluster)))
    })
    .await;
    let sent = commands(&scheduler).await - before;
    eprintln!("{} evictions asked for, {sent} commands", asked(&cluster));
    cluster.none_bound(&more).await.unwrap();
    assert_eq!(diary.evicted().len(), 1, "{:?}", diary.evicted());
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}
