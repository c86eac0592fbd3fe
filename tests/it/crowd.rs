//! Many gangs at once: what the API server holds in the end is checked without the scheduler.

use std::collections::BTreeMap;

use gpu_batch::lab::local::Options;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::work::ensure;

const GANGS: usize = 40;
const RACKS: [&str; 5] = ["r0", "r1", "r2", "r3", "r4"];
const NODES_OF_A_RACK: usize = 10;

/// Members and GPUs of each of gang number `number`.
fn shape(number: usize) -> (usize, u32) {
    [
        (2, 8),
        (9, 4),
        (3, 1),
        (4, 8),
        (1, 2),
        (16, 1),
        (5, 3),
        (11, 8),
    ][number % 8]
}

#[tokio::test]
async fn forty_gangs_at_once_are_each_whole_or_wait_and_no_node_holds_too_much() {
    let Some(cluster) = cluster::own("crowd", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    for rack in RACKS {
        for number in 0..NODES_OF_A_RACK {
            let name = format!("{rack}-{number}");
            cluster.add_node(cluster.node(&name, rack)).await;
        }
    }
    cluster.racks("default").await;
    let scheduler = cluster.scheduler("").await;
    for number in 0..GANGS {
        let (members, gpus) = shape(number);
        let required = if number % 3 == 0 { "rack" } else { "zone" };
        let spec = json!({"minMember": members, "topology": {"required": required}});
        let name = format!("g{number}");
        cluster.group(&name, &spec).await;
        cluster.members(&name, members, gpus, &json!({})).await;
    }
    until("rest", async || {
        let reports = scheduler.reports().await.unwrap();
        let busy = |status: &gpu_batch_policies::status::PodGroupStatus| {
            status.phase == gpu_batch_policies::status::Phase::Binding
                || (!status.scheduled && status.reason.is_none())
        };
        let busy = reports
            .gangs
            .iter()
            .filter(|gang| busy(&gang.status))
            .count();
        let members = (0..GANGS).map(|number| shape(number).0).sum::<usize>();
        let created: u32 = reports.gangs.iter().map(|g| g.status.members.created).sum();
        ensure(busy == 0 && created as usize == members, (busy, created))
    })
    .await;
    check_what_is_bound(&cluster).await;
    let violations = scheduler.audit().await.unwrap();
    assert!(violations.is_empty(), "{violations:?}");
    let compared = crate::http::get(scheduler.address(), "/debug/compare").await;
    assert_eq!(compared, (200, "ok\n".to_owned()));
    scheduler.stop().await.unwrap();
}

#[tokio::test]
async fn a_scheduler_that_is_stopped_leaves_no_gang_half_bound() {
    let Some(cluster) = cluster::own("stopped", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    cluster
        .nodes(["r1", "r1", "r1", "r1", "r1", "r1", "r1", "r1"])
        .await;
    let groups = ["a", "b", "c", "d"];
    for group in groups {
        cluster.group(group, &json!({"minMember": 16})).await;
        cluster.members(group, 16, 1, &json!({})).await;
    }
    // Four requests at a time, so that the stop comes between those of one gang.
    let scheduler = cluster.scheduler("inFlight: {actions: 4}\n").await;
    let path = "/api/v1/namespaces/stopped/pods";
    until("a first binding", async || {
        let pods = cluster.list(path).await?;
        let bound = pods.iter().any(|pod| pod["spec"]["nodeName"].is_string());
        ensure(bound, pods.len())
    })
    .await;
    scheduler.stop().await.unwrap();
    let pods = cluster.list(path).await.unwrap();
    for group in groups {
        let label = |pod: &&Value| pod["metadata"]["labels"]["gpu-batch.io/pod-group"] == group;
        let members = pods.iter().filter(label);
        let bound = members
            .filter(|pod| pod["spec"]["nodeName"].is_string())
            .count();
        eprintln!("{bound} of 16 members of {group} are bound");
        assert!(
            bound == 0 || bound == 16,
            "{bound} of 16 members of {group}"
        );
    }
}

async fn check_what_is_bound(cluster: &Cluster) {
    let path = "/api/v1/namespaces/crowd/pods";
    let pods = cluster.list(path).await.unwrap();
    let mut bound: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut held: BTreeMap<&str, u64> = BTreeMap::new();
    for pod in &pods {
        let Some(node) = pod["spec"]["nodeName"].as_str() else {
            continue;
        };
        let gang = pod["metadata"]["labels"]["gpu-batch.io/pod-group"].as_str();
        bound.entry(gang.unwrap()).or_default().push(node);
        *held.entry(node).or_default() += gpus_of(pod);
    }
    for (node, gpus) in &held {
        assert!(*gpus <= 8, "{gpus} GPUs are taken on {node}");
    }
    for number in 0..GANGS {
        let name = format!("g{number}");
        let nodes = bound.get(&*name).map_or(&[][..], Vec::as_slice);
        let (members, _) = shape(number);
        let whole = nodes.is_empty() || nodes.len() == members;
        assert!(whole, "{} of {members} members of {name}", nodes.len());
        let mut racks: Vec<_> = nodes.iter().map(|node| node.split('-').nth(1)).collect();
        racks.sort_unstable();
        racks.dedup();
        let together = number % 3 != 0 || racks.len() <= 1;
        assert!(together, "{name} must be in one rack: {nodes:?}");
    }
    let whole = bound.len();
    eprintln!("{whole} of {GANGS} gangs run on {} nodes", held.len());
    // 1 - 4 of 10 such shapes never fit; the others keep the cluster nearly full.
    let total: u64 = held.values().sum();
    assert!(total >= 320, "only {total} of 400 GPUs are taken");
    bound_once(cluster, &pods).await;
}

/// Each bound pod has exactly one event that says so.
async fn bound_once(cluster: &Cluster, pods: &[Value]) {
    let path = "/apis/events.k8s.io/v1/namespaces/crowd/events";
    until("one event for each bound pod", async || {
        let mut events: BTreeMap<String, usize> = BTreeMap::new();
        for event in cluster.list(path).await? {
            if event["reason"] == "Scheduled" {
                let name = event["regarding"]["name"].as_str().unwrap().to_owned();
                *events.entry(name).or_default() += 1;
            }
        }
        for pod in pods {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let expected = usize::from(pod["spec"]["nodeName"].is_string());
            let found = events.get(name).copied().unwrap_or(0);
            assert!(found <= expected, "{found} bindings of {name}");
            ensure(found == expected, name)?;
        }
        Ok(())
    })
    .await;
}

fn gpus_of(pod: &Value) -> u64 {
    let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
    limits["nvidia.com/gpu"].as_str().unwrap().parse().unwrap()
}
