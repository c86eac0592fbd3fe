//! One of several schedulers works, and each tells how it is.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use gpu_batch::lab::local::{Options, SchedulerProcess};
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, stays, until};
use crate::http;
use crate::work::ensure;

const ELECTION: &str = "leaderElection: {namespace: leaders, identity: IDENTITY}\n";

/// The sample of a leader, not its help.
const LEADS: &str = "\ngpu_batch_leader 1\n";

/// What users write into their objects and no page may tell.
const USER_DATA: &str = "users-own-business";

/// A pod that has it wherever users write freely, and as an annotation of ours that is read.
fn with_user_data(runtime: &str) -> Value {
    json!({
        "metadata": {
            "labels": {"example.com/experiment": USER_DATA},
            "annotations": {
                "example.com/experiment": USER_DATA,
                "gpu-batch.io/expected-runtime": runtime,
            },
        },
        "spec": {"containers": [{
            "name": "c",
            "image": "none",
            "command": [USER_DATA],
            "env": [{"name": "TOKEN", "value": USER_DATA}],
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
        }]},
    })
}

#[tokio::test]
async fn the_metrics_count_what_was_done_but_name_no_pod() {
    let Some(cluster) = cluster::own("measured", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    cluster.nodes(["r1"]).await;
    let scheduler = cluster.scheduler("").await;
    for (name, runtime) in [("measured-pod", "1h"), ("measured-nonsense", USER_DATA)] {
        cluster
            .create(&cluster.pod(name, 1, &with_user_data(runtime)))
            .await;
    }
    cluster.bound(&["measured-pod".to_owned()]).await;
    cluster.pod_waits("measured-nonsense", "InvalidSpec").await;
    let address = scheduler.address();
    assert_eq!(
        http::get(address, "/healthz").await,
        (200, "ok\n".to_owned())
    );
    assert_eq!(http::get(address, "/readyz").await.0, 200);
    assert_eq!(http::get(address, "/debug/audit").await.0, 200);
    let wanted = [
        LEADS,
        "action=\"bind\",outcome=\"done\"} 1",
        "gpu_batch_queue_allocated{queue=\"default\",resource=\"nvidia.com/gpu\"} 1",
    ];
    // Copies of the state are at most a second old.
    let page = until("metrics", async || {
        let (status, page) = http::get(address, "/metrics").await;
        assert_eq!(status, 200);
        ensure(wanted.iter().all(|sample| page.contains(sample)), &page)?;
        Ok(page)
    })
    .await;
    http::check_open_metrics(&page);
    assert!(!page.contains("measured-"), "{page}");
    for path in [
        "healthz",
        "readyz",
        "metrics",
        "debug/audit",
        "debug/compare",
    ] {
        let (status, page) = http::get(address, &format!("/{path}")).await;
        assert_eq!(status, 200, "{path}: {page}");
        assert!(!page.contains(USER_DATA), "{path}: {page}");
    }
    scheduler.stop().await.unwrap();
}

async fn leads(address: SocketAddr) -> Result<(), String> {
    let (_, page) = http::get(address, "/metrics").await;
    ensure(page.contains(LEADS), address)
}

#[tokio::test]
async fn one_of_two_schedulers_works_and_the_other_takes_over_at_once() {
    let Some(cluster) = cluster::own("leaders", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    cluster.nodes(["r1"]).await;
    let first = cluster.scheduler(&ELECTION.replace("IDENTITY", "a")).await;
    until("the first leads", async || leads(first.address()).await).await;
    let second = cluster.scheduler(&ELECTION.replace("IDENTITY", "b")).await;
    until("the second is ready", async || {
        let (status, page) = http::get(second.address(), "/readyz").await;
        ensure(status == 200, page)
    })
    .await;
    cluster.create(&cluster.pod("one", 1, &json!({}))).await;
    cluster.bound(&["one".to_owned()]).await;
    assert!(leads(second.address()).await.is_err());

    let stopped = Instant::now();
    first.stop().await.unwrap();
    cluster.create(&cluster.pod("two", 1, &json!({}))).await;
    cluster.bound(&["two".to_owned()]).await;
    let pause = stopped.elapsed();
    eprintln!("handed over and bound after {pause:?}");
    // A look at the Lease every 2 s, and the rest.
    assert!(pause < Duration::from_secs(5), "{pause:?}");
    until("the second leads", async || leads(second.address()).await).await;
    second.stop().await.unwrap();
}

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/host/leases";

/// A process whose configuration says this of leader election.
fn process(cluster: &Cluster, election: &str) -> SchedulerProcess {
    let configuration = format!(
        "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
         serveAddress: 127.0.0.1:0\nleaderElection: {election}\n"
    );
    let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    SchedulerProcess::start(executable, &cluster.kubeconfig, &configuration).unwrap()
}

async fn role(scheduler: &SchedulerProcess) -> String {
    match scheduler.address() {
        Some(address) => http::get(address, "/readyz").await.1,
        None => scheduler.log(),
    }
}

#[tokio::test]
async fn two_processes_on_one_host_are_two_and_one_that_restarts_is_one() {
    let Some(cluster) = cluster::own("host", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    cluster.nodes(["r1"]).await;
    let both = [(); 2].map(|()| process(&cluster, "{namespace: host}"));
    until("one leads, the other waits", async || {
        let mut roles = [role(&both[0]).await, role(&both[1]).await];
        roles.sort();
        ensure(roles == ["ok: leader\n", "ok: standby\n"], &roles)
    })
    .await;
    // 16 GPUs of work for a node of 8.
    for name in ["one", "two"] {
        cluster.create(&cluster.pod(name, 8, &json!({}))).await;
    }
    until("one pod is bound, and the other waits", async || {
        let nodes = [cluster.node_of("one").await, cluster.node_of("two").await];
        ensure(nodes.iter().flatten().count() > 0, &nodes)
    })
    .await;
    stays("one pod waits", Duration::from_secs(3), async || {
        let nodes = [cluster.node_of("one").await, cluster.node_of("two").await];
        ensure(nodes.iter().flatten().count() == 1, &nodes)
    })
    .await;
    drop(both);
    a_restarted_holder_has_held_the_lease_all_along(&cluster).await;
}

/// The time of acquisition is that of the holder, not of its process, as client-go writes it.
async fn a_restarted_holder_has_held_the_lease_all_along(cluster: &Cluster) {
    let path = format!("{LEASES}/again");
    let held = async |scheduler: &SchedulerProcess| {
        until("the Lease is held", async || {
            let role = role(scheduler).await;
            ensure(role == "ok: leader\n", &role)?;
            Ok(cluster.get(&path).await?["spec"].clone())
        })
        .await
    };
    let first = process(cluster, "{namespace: host, name: again, identity: a}");
    let taken = held(&first).await;
    assert_eq!(taken["acquireTime"], taken["renewTime"], "{taken}");
    drop(first);
    let second = process(cluster, "{namespace: host, name: again, identity: a}");
    let kept = held(&second).await;
    assert_ne!(kept["renewTime"], taken["renewTime"]);
    assert_eq!(kept["acquireTime"], taken["acquireTime"], "{kept}");
    assert_eq!(kept["leaseTransitions"], taken["leaseTransitions"]);
    drop(second);
    let other = process(cluster, "{namespace: host, name: again, identity: b}");
    let changed = held(&other).await;
    let times = [&changed["acquireTime"], &kept["renewTime"]].map(|time| time.as_str().unwrap());
    assert!(times[0] > times[1], "{changed}");
}
