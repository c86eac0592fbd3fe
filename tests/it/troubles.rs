//! What keeps the scheduler from working is told once and with what to do, and it is not ready with
//! the same sentence.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gpu_batch::lab::local::{Options, SchedulerProcess};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::http;
use crate::work::ensure;

/// Long enough for several attempts of everything that is tried again.
const ATTEMPTS: Duration = Duration::from_secs(5);

fn run(kubeconfig: &Path) -> SchedulerProcess {
    let configuration = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
         serveAddress: 127.0.0.1:0\nleaderElection: {namespace: nowhere}\n";
    let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    SchedulerProcess::start(executable, kubeconfig, configuration).unwrap()
}

async fn readyz(scheduler: &SchedulerProcess, status: u16, says: &str) {
    until(says, async || {
        let address = scheduler.address().ok_or_else(|| scheduler.log())?;
        let (found, page) = http::get(address, "/readyz").await;
        ensure(found == status && page.contains(says), (found, page))
    })
    .await;
}

/// SIGTERM ends it at once: there is nothing to wait for.
async fn stops(mut scheduler: SchedulerProcess) {
    let id = i32::try_from(scheduler.id().unwrap()).unwrap();
    let asked = Instant::now();
    kill(Pid::from_raw(id), Signal::SIGTERM).unwrap();
    until("end", async || ensure(scheduler.id().is_none(), id)).await;
    let (took, log) = (asked.elapsed(), scheduler.log());
    assert!(took < Duration::from_secs(3), "{took:?}\n{log}");
    assert!(!log.contains("waiting for 0"), "{log}");
}

#[track_caller]
fn told(log: &str, words: &str, times: usize) {
    assert_eq!(log.matches(words).count(), times, "{words}:\n{log}");
}

#[tokio::test]
async fn whatever_is_in_the_way_is_told_once_and_with_what_to_do() {
    let Some(cluster) = cluster::own("troubles", Options::default()).await else {
        return;
    };
    nothing_is_installed(&cluster).await;
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.crt");
    let stranger = rcgen::generate_simple_self_signed(["stranger".to_owned()]).unwrap();
    std::fs::write(&authority, stranger.cert.pem()).unwrap();
    let file = cluster.kubeconfig.clone();
    let good: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let changed = |change: &dyn Fn(&mut Value)| -> PathBuf {
        let mut config = good.clone();
        change(&mut config);
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, config.to_string()).unwrap();
        path
    };
    let unreachable = |config: &mut Value| {
        config["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
    };
    let unknown = |config: &mut Value| config["users"][0]["user"] = json!({"token": "wrong"});
    let untrusted = |config: &mut Value| {
        let cluster = config["clusters"][0]["cluster"].as_object_mut().unwrap();
        cluster.remove("certificate-authority-data");
        cluster.insert("certificate-authority".to_owned(), json!(authority));
    };
    for (change, says) in [
        (
            &unreachable as &dyn Fn(&mut Value),
            "cannot be reached: nothing listens there",
        ),
        (&unknown, "does not accept who we are (401)"),
        (&untrusted, "is not trusted: invalid peer certificate"),
    ] {
        let scheduler = run(&changed(change));
        readyz(&scheduler, 503, says).await;
        tokio::time::sleep(ATTEMPTS).await;
        let log = scheduler.log();
        told(&log, says, 1);
        // One line says where it looks.
        assert_eq!(log.lines().count(), 2, "{log}");
        stops(scheduler).await;
    }
}

/// No definitions, and no namespace for the Lease; then there are both.
async fn nothing_is_installed(cluster: &Cluster) {
    let scheduler = run(&cluster.kubeconfig);
    let (define, create) = (
        "`gpu-batch crds | kubectl apply -f -`",
        "`kubectl create namespace nowhere`",
    );
    readyz(&scheduler, 503, define).await;
    readyz(&scheduler, 503, create).await;
    tokio::time::sleep(ATTEMPTS).await;
    let log = scheduler.log();
    told(&log, define, 1);
    told(&log, create, 1);
    told(&log, "scheduling for", 0);
    cluster.define_kinds().await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nowhere"}});
    cluster.create(&namespace).await;
    readyz(&scheduler, 200, "ok: leader").await;
    let log = scheduler.log();
    told(&log, "leading: there was no Lease", 1);
    told(&log, "scheduling for", 1);
    stops(scheduler).await;
}

/// A leader that cannot renew says so, and why; one that evicts says what and why.
#[tokio::test]
async fn the_log_says_why_it_leads_no_more_and_why_it_evicts() {
    let Some(cluster) = cluster::own("nowhere", Options::default()).await else {
        return;
    };
    cluster.define_kinds().await;
    cluster.nodes(["r1"]).await;
    let scheduler = run(&cluster.kubeconfig);
    let spec = json!({"minMember": 2, "stalenessGracePeriod": "1s"});
    cluster.group("train", &spec).await;
    let pods = cluster.members("train", 2, 1, &json!({})).await;
    cluster.bound(&pods).await;
    cluster.delete(&cluster.pod_path(&pods[0])).await;
    let evicted = format!(
        "evicted nowhere/{}: its gang lost members and stayed below its minimum",
        pods[1]
    );
    let says = async |words: &str| {
        until(words, async || {
            let log = scheduler.log();
            ensure(log.contains(words), log)
        })
        .await;
    };
    says(&evicted).await;

    let lease = "/apis/coordination.k8s.io/v1/namespaces/nowhere/leases/gpu-batch";
    let other = json!({"spec": {"holderIdentity": "somebody-else"}});
    cluster.merge(lease, &other).await;
    says("not leading any more: somebody-else holds the Lease").await;
    says("leading: somebody-else has not renewed the Lease for 15 s").await;
    told(&scheduler.log(), "scheduling for", 2);
    stops(scheduler).await;
}
