//! A scheduler as a process of its own, to be stopped and killed.

use std::path::Path;

use gpu_batch::lab::local::SchedulerProcess;

use super::proxy::Proxy;
use crate::cluster::{Cluster, until};
use crate::http;
use crate::work::ensure;

/// Binds that may be under way together: few, so that a fault comes amid binding.
pub(super) const ACTIONS: usize = 4;

/// A running `gpu-batch run`. Dropping it kills it.
pub(super) struct Replica {
    scheduler: SchedulerProcess,
}

impl Replica {
    /// Starts a replica that signs the Lease so, and reaches the API server through the proxy if
    /// there is one.
    pub(super) fn start(cluster: &Cluster, identity: &str, proxy: Option<&Proxy>) -> Self {
        let namespace = &cluster.namespace;
        let configuration = format!(
            "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
             serveAddress: 127.0.0.1:0\ninFlight: {{actions: {ACTIONS}}}\n\
             leaderElection: {{namespace: {namespace}, identity: {identity}}}\n"
        );
        let kubeconfig = proxy.map_or(&*cluster.kubeconfig, Proxy::kubeconfig);
        let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
        let scheduler = SchedulerProcess::start(executable, kubeconfig, &configuration).unwrap();
        Self { scheduler }
    }

    /// Stops it as SIGSTOP does.
    pub(super) fn pause(&mut self) {
        self.scheduler.pause();
    }

    /// Lets it go on.
    pub(super) fn resume(&mut self) {
        self.scheduler.resume();
    }

    /// A page that it serves; the status 0 while it serves none.
    pub(super) async fn page(&self, path: &str) -> (u16, String) {
        match self.scheduler.address() {
            Some(address) => http::get(address, path).await,
            None => (0, self.scheduler.log()),
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
