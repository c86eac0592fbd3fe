//! The scheduler as a process of its own, whose memory can be read and which can be killed.

use super::cluster::{Cluster, NAMESPACE, SCHEDULER};
use anyhow::{Context, ensure};
use http::Request;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// How often it is asked for something.
const POLL: Duration = Duration::from_millis(20);

/// How long it may take to say where it listens, and to be ready.
const PATIENCE: Duration = Duration::from_secs(300);

/// What it logs before the address it listens on.
const BEFORE_ADDRESS: &str = "health and metrics on ";

/// A running `gpu-batch run`. Dropping it kills it.
pub(super) struct Process {
    child: Child,
    /// Its configuration and its log.
    folder: TempDir,
    pages: kube::Client,
}

/// Memory of a process in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// What it holds now (`VmRSS`).
    pub(super) resident: u64,
    /// The most that it ever held (`VmHWM`).
    pub(super) peak: u64,
}

impl Process {
    /// Starts `executable`, a `gpu-batch`, and waits until it listens; it lists the world then.
    pub(super) async fn start(executable: &Path, cluster: &Cluster) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let configuration = folder.path().join("gpu-batch.yaml");
        let text = format!(
            "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
             schedulerName: {SCHEDULER}\nserveAddress: 127.0.0.1:0\n\
             leaderElection: {{namespace: {NAMESPACE}, name: {SCHEDULER}, identity: bench}}\n"
        );
        fs::write(&configuration, text).context("cannot write the configuration")?;
        let log = folder.path().join("log");
        let mut command = Command::new(executable);
        command
            .arg("run")
            .arg("--config")
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).context("cannot write the log")?)
            .kill_on_drop(true);
        if let Some(kubeconfig) = &cluster.kubeconfig {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        let child = command.spawn().context("cannot start the scheduler")?;
        let address = address_in(&log).await?;
        let pages = kube::Config::new(format!("http://{address}").parse()?);
        Ok(Self {
            child,
            folder,
            pages: crate::connection::client(&pages)?,
        })
    }

    /// A page that it serves: the answer, whatever its status.
    pub(super) async fn page(&self, path: &str) -> anyhow::Result<(http::StatusCode, String)> {
        let request = Request::get(path).body(kube::client::Body::empty())?;
        let answer = self.pages.send(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect_bytes().await?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Waits until it has listed everything.
    pub(super) async fn ready(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !self.page("/readyz").await?.0.is_success() {
            ensure!(begun.elapsed() < PATIENCE, "the scheduler is not ready");
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// What it holds now, and the most that it ever held.
    pub(super) fn memory(&self) -> anyhow::Result<Memory> {
        let id = self.child.id().with_context(|| {
            let log = fs::read_to_string(self.folder.path().join("log"));
            format!("the scheduler has ended:\n{}", log.unwrap_or_default())
        })?;
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

    /// Kills it with SIGKILL and waits until it is gone.
    pub(super) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("cannot end the scheduler")
    }
}

/// Waits until the log names the address that it serves on.
async fn address_in(log: &Path) -> anyhow::Result<String> {
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(log).context("cannot read the log")?;
        let line = text.lines().find_map(|l| l.split_once(BEFORE_ADDRESS));
        if let Some((_, address)) = line.filter(|_| text.ends_with('\n')) {
            return Ok(address.trim().to_owned());
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "the scheduler does not start:\n{text}"
        );
        tokio::time::sleep(POLL).await;
    }
}
