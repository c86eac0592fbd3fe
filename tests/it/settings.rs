//! The configuration file changes while the scheduler runs.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use gpu_batch::lab::local::SchedulerProcess;
use serde_json::json;
use tokio::process::Command;

use crate::cluster::{self, Cluster, TEST_LABEL};
use crate::http;
use crate::work::ensure;

const HEAD: &str = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
     schedulerName: settled\nserveAddress: 127.0.0.1:0\nleaderElection: {enabled: false}\n";

/// The node on which the scheduler of the tests' usual name puts a new pod of one GPU.
async fn placed(cluster: &Cluster, name: &str) -> String {
    placed_by(cluster, "settled", name).await
}

/// The node on which a scheduler puts a new pod of one GPU.
async fn placed_by(cluster: &Cluster, scheduler: &str, name: &str) -> String {
    cluster
        .create(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "schedulerName": scheduler,
                "nodeSelector": {TEST_LABEL: cluster.namespace},
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "c", "image": "none",
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                }],
            },
        }))
        .await;
    cluster::until("bound pod", async || {
        let node = cluster.node_of(name).await;
        node.ok_or_else(|| format!("{name} has no node"))
    })
    .await
}

/// What the page says of the configuration once it has this status and these words.
async fn page(address: SocketAddr, status: u16, says: &str) -> String {
    cluster::until(says, async || {
        let (found, body) = http::get(address, "/debug/configuration").await;
        ensure(found == status && body.contains(says), (found, &body))?;
        Ok(body)
    })
    .await
}

#[tokio::test]
async fn a_changed_configuration_takes_effect_and_a_wrong_one_is_refused_whole() {
    let Some(cluster) = cluster::shared("settings").await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("session.journal");
    let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    let arguments = [format!("--record={}", journal.display())];
    let scheduler =
        SchedulerProcess::start_with(executable, &cluster.kubeconfig, HEAD, &arguments).unwrap();
    cluster.nodes(["r1", "r2"]).await;
    let first = placed(&cluster, "a").await;
    assert_eq!(placed(&cluster, "b").await, first, "binpack");
    let address = scheduler.address().unwrap();
    page(address, 200, "placement: binpack").await;

    scheduler
        .configure(&format!("{HEAD}placement: spread\nretryAfter: soon\n"))
        .unwrap();
    let refused = page(address, 500, "retryAfter").await;
    assert!(refused.contains("placement: binpack"), "{refused}");
    scheduler
        .configure(&format!("{HEAD}placement: spread\n").replace("settled", "other"))
        .unwrap();
    page(
        address,
        500,
        "schedulerName: cannot change while a session is recorded",
    )
    .await;
    let (_, metrics) = http::get(address, "/metrics").await;
    assert!(
        metrics.contains("gpu_batch_configuration_refused 1"),
        "{metrics}"
    );
    assert_eq!(
        placed(&cluster, "c").await,
        first,
        "nothing of it is in force"
    );

    scheduler
        .configure(&format!("{HEAD}placement: spread\nlog: {{level: error}}\n"))
        .unwrap();
    page(address, 200, "placement: spread").await;
    assert_ne!(placed(&cluster, "d").await, first, "spread");
    let log = scheduler.log();
    let changed = "the configuration has changed: log.level, placement";
    assert!(log.contains(changed), "{log}");
    // Now only errors are logged, until the news of the next change has been.
    scheduler.configure(HEAD).unwrap();
    page(address, 200, "placement: binpack").await;
    let log = scheduler.log();
    assert_eq!(
        log.matches("the configuration has changed").count(),
        1,
        "{log}"
    );
    let (_, metrics) = http::get(address, "/metrics").await;
    for line in [
        "gpu_batch_configuration_refused 0",
        "gpu_batch_configuration_changes_total{result=\"applied\"} 2",
        "gpu_batch_configuration_changes_total{result=\"refused\"} 2",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }

    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    drop(scheduler);
    let mut replay = Command::new(executable);
    replay.arg("replay").arg(&journal).stdin(Stdio::null());
    let replayed = replay.kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&replayed.stdout).into_owned();
    assert!(said.contains("no difference"), "{said}");
}

/// The name, the address, the lease, and the looks of the log.
#[tokio::test]
async fn a_scheduler_begins_anew_where_it_was_built_around_what_changes() {
    let Some(cluster) = cluster::shared("anew").await else {
        return;
    };
    let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    let first = HEAD.replace("settled", "first");
    let scheduler =
        SchedulerProcess::start_with(executable, &cluster.kubeconfig, &first, &[]).unwrap();
    cluster.nodes(["r1"]).await;
    placed_by(&cluster, "first", "a").await;
    let address = scheduler.address().unwrap();

    let somebody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = somebody.local_addr().unwrap().to_string();
    let occupied = HEAD
        .replace("settled", "second")
        .replace("127.0.0.1:0", &taken);
    scheduler.configure(&occupied).unwrap();
    let says = format!("serveAddress: cannot listen on {taken}: ");
    page(address, 500, &says).await;
    drop(somebody);

    let lease = format!(
        "{{enabled: true, namespace: {}, name: anew}}",
        cluster.namespace
    );
    let second = occupied.replace("{enabled: false}", &lease);
    scheduler
        .configure(&format!("{second}log: {{format: json}}\n"))
        .unwrap();
    placed_by(&cluster, "second", "b").await;
    page(taken.parse().unwrap(), 200, "schedulerName: second").await;
    let log = scheduler.log();
    let last = log.lines().last().unwrap();
    assert!(last.starts_with('{') && last.ends_with('}'), "{log}");
    assert!(log.contains("beginning anew"), "{log}");
    // It holds the new lease, and lets go of it before it begins anew once more.
    scheduler
        .configure(&first.replace("127.0.0.1:0", &taken))
        .unwrap();
    placed_by(&cluster, "first", "c").await;
    let (status, audit) = http::get(taken.parse().unwrap(), "/debug/audit").await;
    assert_eq!(status, 200, "{audit}");
}
