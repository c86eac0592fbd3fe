//! The scheduler as a process of its own, whose memory can be read and which can be killed.

use super::cluster::Cluster;
use super::objects::{NAMESPACE, SCHEDULER};
use crate::lab::local::SchedulerProcess;
use anyhow::{Context, ensure};
use http::Request;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the process is asked for something.
const POLL: Duration = Duration::from_millis(20);

/// How long the process may take to say where it listens, and to be ready.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running `gpu-batch run`. Dropping it kills it.
pub(super) struct Process {
    scheduler: SchedulerProcess,
    pages: kube::Client,
}

/// Memory of a process in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// The memory that the process holds now (`VmRSS`).
    pub(super) resident: u64,
    /// The most memory that the process ever held (`VmHWM`).
    pub(super) peak: u64,
}

impl Process {
    /// Starts `executable`, a `gpu-batch`, and waits until it listens; then it begins to list the
    /// world.
    pub(super) async fn start(executable: &Path, cluster: &Cluster) -> anyhow::Result<Self> {
        let configuration = format!(
            "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
             schedulerName: {SCHEDULER}\nserveAddress: 127.0.0.1:0\n\
             leaderElection: {{namespace: {NAMESPACE}, name: {SCHEDULER}, identity: bench}}\n"
        );
        let scheduler =
            SchedulerProcess::start_named(executable, &cluster.named, &configuration, &[])?;
        let address = address(&scheduler).await?;
        let pages = kube::Config::new(format!("http://{address}").parse()?);
        let pages = crate::kube::connection::client(&pages)?;
        Ok(Self { scheduler, pages })
    }

    /// A page that the scheduler serves: the answer, whatever its status.
    pub(super) async fn page(&self, path: &str) -> anyhow::Result<(http::StatusCode, String)> {
        let request = Request::get(path).body(kube::client::Body::empty())?;
        let answer = self.pages.send(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect_bytes().await?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Waits until the scheduler has listed everything.
    pub(super) async fn ready(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !self.page("/readyz").await?.0.is_success() {
            ensure!(begun.elapsed() < PATIENCE, "the scheduler is not ready");
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// The memory that the scheduler holds now, and the most that it ever held.
    pub(super) fn memory(&mut self) -> anyhow::Result<Memory> {
        let id = self.scheduler.id();
        let id =
            id.with_context(|| format!("the scheduler has ended:\n{}", self.scheduler.log()))?;
        let text = fs::read_to_string(format!("/proc/{id}/status"))
            .context("memory is read from /proc, which only Linux has")?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let kibibytes = line.and_then(|line| line.split_whitespace().nth(1));
            kibibytes
                .and_then(|number| Some(number.parse::<u64>().ok()? << 10))
                .with_context(|| format!("no {name} in /proc/{id}/status"))
        };
        Ok(Memory {
            resident: bytes("VmRSS")?,
            peak: bytes("VmHWM")?,
        })
    }
}

/// Waits until the scheduler's log names the address on which it serves.
async fn address(scheduler: &SchedulerProcess) -> anyhow::Result<SocketAddr> {
    let begun = Instant::now();
    loop {
        if let Some(address) = scheduler.address() {
            return Ok(address);
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "the scheduler does not start:\n{}",
            scheduler.log()
        );
        tokio::time::sleep(POLL).await;
    }
}
