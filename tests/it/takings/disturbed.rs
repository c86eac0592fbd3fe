//! What changes between the first eviction of a plan and the last one: budgets and nodes that come.

use gpu_batch::lab::local::Options;
use serde_json::{Value, json};

use super::interrupted::{ONE_A_SECOND, asked, full_nodes, names};
use super::{A_WHILE, WITH_CONTROLLERS, begin, evictions, high_gang, let_go, name_of};
use crate::cluster::{Cluster, stays, until};
use crate::diary::Diary;
use crate::work::ensure;

/// Scenario S12: free nodes come after the evictions were decided and before they were sent; here
/// after the first of five instead of two, for the sake of slow machines.
#[tokio::test]
async fn nodes_that_come_amid_evictions_are_used_and_nobody_else_is_evicted() {
    let Some(cluster) = begin("grown", WITH_CONTROLLERS).await else {
        return;
    };
    cluster.nodes(["r1"; 5]).await;
    let scheduler = cluster.scheduler(ONE_A_SECOND).await;
    full_nodes(&cluster, &names("running", 5)).await;
    let diary = Diary::start(&cluster).await;
    let members = high_gang(&cluster, "urgent", 5, 8).await;
    evictions(&diary, 1).await;
    let new: Vec<_> = names("new", 5)
        .iter()
        .map(|name| cluster.node(name, "r1"))
        .collect();
    let mut wanted: Vec<String> = new.iter().map(|node| node.name.clone()).collect();
    cluster.add_nodes(new).await;
    let mut nodes = cluster.bound(&members).await;
    nodes.sort();
    wanted.sort();
    assert_eq!(nodes, wanted);
    let evicted = diary.evicted();
    assert!(evicted.len() < 5, "{evicted:?}");
    stays("nobody else is evicted", A_WHILE, async || {
        ensure(diary.evicted() == evicted, diary.evicted())
    })
    .await;
    for pod in &evicted {
        // The object of the pod says why, although nobody needs its room any more.
        cluster.event("Pod", pod, "Preempted").await;
        let_go(&cluster, pod).await;
    }
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}

/// The pod of a Job that counts.
async fn pod_of(cluster: &Cluster, job: &str, count: impl Fn(&Value) -> bool) -> String {
    name_of(&cluster.job_pods(job, 1, count).await[0])
}

/// A disruption budget that keeps the pods of all these Jobs.
async fn keep_jobs(cluster: &Cluster, jobs: &[String]) {
    let of_jobs = json!([{"key": "job-name", "operator": "In", "values": jobs}]);
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "made-now"},
        "spec": {"minAvailable": jobs.len(), "selector": {"matchExpressions": of_jobs}},
    });
    cluster.create(&budget).await;
    let path = format!("{}/made-now", cluster.collection(&budget));
    until("the budget counts the pods", async || {
        let status = cluster.get(&path).await?["status"].clone();
        ensure(status["currentHealthy"] == jobs.len(), status)
    })
    .await;
}

/// Scenario S06: an eviction in the middle of a plan is refused by a budget that has just been
/// made. The victims are pods of real Jobs, six instead of four, for the sake of slow machines, and
/// the budget keeps all that are still there after the second eviction.
#[tokio::test]
async fn a_budget_that_comes_amid_evictions_ends_the_plan_and_all_come_back() {
    let options = Options {
        audit: true,
        ..WITH_CONTROLLERS
    };
    let Some(cluster) = begin("budgeted", options).await else {
        return;
    };
    cluster.nodes(["r1"; 6]).await;
    let scheduler = cluster.scheduler(ONE_A_SECOND).await;
    let jobs = names("work", 6);
    let low = json!({"spec": {"template": {"spec": {"priorityClassName": "low"}}}});
    let is_running = |pod: &Value| pod["status"]["phase"] == "Running";
    let mut pods = Vec::new();
    for job in &jobs {
        cluster.job(job, 1, 8, &low).await;
        pods.push(pod_of(&cluster, job, is_running).await);
    }
    let diary = Diary::start(&cluster).await;
    let members = high_gang(&cluster, "urgent", 6, 8).await;
    let before = evictions(&diary, 2).await;
    let rest = jobs.iter().zip(&pods);
    let rest = rest.filter(|(_, pod)| !before.contains(pod));
    let rest: Vec<String> = rest.map(|(job, _)| job.clone()).collect();
    keep_jobs(&cluster, &rest).await;

    let group = cluster
        .event("PodGroup", "urgent", "EvictionPlanFailed")
        .await;
    assert!(group.contains("budget"), "{group}");
    cluster.group_waits("urgent", "DoesNotFit").await;
    for job in &jobs {
        pod_of(&cluster, job, is_running).await;
    }
    cluster.group_waits("urgent", "DoesNotFit").await;
    cluster.none_bound(&members).await.unwrap();
    let evicted = diary.evicted();
    assert!(evicted.len() < 6, "{evicted:?}");
    // One more may have been refused by the API server.
    let asked = asked(&cluster);
    assert!(asked <= evicted.len() + 1, "{asked}: {evicted:?}");
    assert_eq!(scheduler.audit().await.unwrap(), Vec::<String>::new());
}
