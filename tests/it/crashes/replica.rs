//! A scheduler as a process of its own, to be stopped and killed.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::proxy::Proxy;
use crate::cluster::{Cluster, until};
use crate::http;
use crate::work::ensure;

/// Binds that may be under way together: few, so that a fault comes amid binding.
pub(super) const ACTIONS: usize = 4;

/// A running `gpu-batch run`. Dropping it kills it.
pub(super) struct Replica {
    child: Child,
    folder: TempDir,
}

impl Replica {
    /// Starts a replica that signs the Lease so, and reaches the API server through the proxy if
    /// there is one.
    pub(super) async fn start(cluster: &Cluster, identity: &str, proxy: Option<&Proxy>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let configuration = folder.path().join("gpu-batch.yaml");
        let namespace = &cluster.namespace;
        let text = format!(
            "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
             serveAddress: 127.0.0.1:0\ninFlight: {{actions: {ACTIONS}}}\n\
             leaderElection: {{namespace: {namespace}, identity: {identity}}}\n"
        );
        fs::write(&configuration, text).unwrap();
        let kubeconfig = proxy.map_or(&cluster.kubeconfig, Proxy::kubeconfig);
        let log = File::create(folder.path().join("log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
            .arg("run")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--config")
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    pub(super) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill(Pid::from_raw(id), signal).unwrap();
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub(super) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// A page that it serves; the status 0 while it serves none.
    pub(super) async fn page(&self, path: &str) -> (u16, String) {
        let log: PathBuf = self.folder.path().join("log");
        let log = fs::read_to_string(log).unwrap();
        let line = log
            .lines()
            .find_map(|l| l.split_once("health and metrics on "));
        match line.and_then(|(_, address)| address.parse::<SocketAddr>().ok()) {
            Some(address) => http::get(address, path).await,
            None => (0, log),
        }
    }

    /// Waits until it says that it is ready, in this role.
    pub(super) async fn ready(&self, role: &str) {
        let page = format!("ok: {role}\n");
        until(role, async || {
            let answer = self.page("/readyz").await;
            ensure(answer == (200, page.clone()), &answer)
        })
        .await;
    }

    /// How many commands it counts whose labels contain this.
    pub(super) async fn commands(&self, labels: &str) -> u64 {
        let (status, page) = self.page("/metrics").await;
        assert_eq!(status, 200, "{page}");
        let samples = page
            .lines()
            .filter(|line| line.starts_with("gpu_batch_commands_total{") && line.contains(labels));
        let values = samples.map(|line| line.rsplit(' ').next().unwrap());
        values.map(|value| value.parse::<u64>().unwrap()).sum()
    }
}
