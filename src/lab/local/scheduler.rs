//! The scheduler as a separate process, which can be stopped and killed and whose memory can be
//! read.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::process::Processes;
use super::{LocalError, Program};
use crate::kube::connection::Named;

/// The name of the scheduler's configuration file.
const CONFIGURATION: &str = "gpu-batch.yaml";
/// The words in the scheduler's log before the address on which it serves.
const BEFORE_ADDRESS: &str = "health and metrics on ";

/// A `gpu-batch run` that ends when this is dropped, or when this process ends in whatever way.
///
/// Dropping this kills the scheduler with SIGKILL and blocks for some milliseconds.
#[derive(Debug)]
pub struct SchedulerProcess {
    processes: Processes,
}

impl SchedulerProcess {
    /// Starts `executable`, which is a `gpu-batch`, for the cluster of `kubeconfig`.
    /// `configuration` is the text of its configuration file. Paths may be relative.
    ///
    /// # Errors
    /// [`LocalError::Io`] if the scheduler cannot be started. It is no error here if the scheduler
    /// ends at once: then it never has an address, and [`SchedulerProcess::log`] says why.
    pub fn start(
        executable: &Path,
        kubeconfig: &Path,
        configuration: &str,
    ) -> Result<Self, LocalError> {
        Self::start_with(executable, kubeconfig, configuration, &[])
    }

    /// Starts a scheduler as [`SchedulerProcess::start`] does, with more arguments. Paths in them
    /// must be absolute.
    ///
    /// # Errors
    /// As [`SchedulerProcess::start`].
    pub fn start_with(
        executable: &Path,
        kubeconfig: &Path,
        configuration: &str,
        arguments: &[String],
    ) -> Result<Self, LocalError> {
        let named = Named {
            kubeconfig: Some(kubeconfig.to_owned()),
            context: None,
        };
        Self::start_named(executable, &named, configuration, arguments)
    }

    /// Starts a scheduler as [`SchedulerProcess::start_with`] does, for a cluster that is named in
    /// any way.
    ///
    /// # Errors
    /// As [`SchedulerProcess::start`].
    pub(crate) fn start_named(
        executable: &Path,
        cluster: &Named,
        configuration: &str,
        arguments: &[String],
    ) -> Result<Self, LocalError> {
        let absolute = |path: &Path| -> Result<PathBuf, LocalError> {
            std::path::absolute(path).map_err(LocalError::io("find", path))
        };
        let mut processes = Processes::new()?;
        let file = processes.folder().join(CONFIGURATION);
        fs::write(&file, configuration).map_err(LocalError::io("write", &file))?;
        let mut all = vec!["run".into(), format!("--config={}", file.display())];
        if let Some(kubeconfig) = &cluster.kubeconfig {
            all.push(format!("--kubeconfig={}", absolute(kubeconfig)?.display()));
        }
        let context = cluster.context.iter();
        all.extend(context.map(|context| format!("--context={context}")));
        all.extend_from_slice(arguments);
        processes.start(Program::GpuBatch, absolute(executable)?, all)?;
        Ok(Self { processes })
    }

    /// Writes the configuration file anew; the scheduler follows within seconds.
    ///
    /// # Errors
    /// [`LocalError::Io`] if the file cannot be written.
    pub fn configure(&self, configuration: &str) -> Result<(), LocalError> {
        let file = self.processes.folder().join(CONFIGURATION);
        fs::write(&file, configuration).map_err(LocalError::io("write", &file))
    }

    /// The scheduler's process id; `None` if it has ended.
    pub fn id(&mut self) -> Option<u32> {
        // Without this, a scheduler that has ended would count as running.
        self.processes.ended();
        self.processes.id(Program::GpuBatch)
    }

    /// Where the scheduler serves health and metrics now; `None` until its log says so.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        address_in(&self.log())
    }

    /// Everything that the scheduler has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.processes.log(Program::GpuBatch)
    }

    /// Stops the scheduler with SIGSTOP.
    pub fn pause(&mut self) {
        self.processes.pause(Program::GpuBatch);
    }

    /// Lets the scheduler go on after [`SchedulerProcess::pause`].
    pub fn resume(&mut self) {
        self.processes.resume(Program::GpuBatch);
    }
}

/// Where a scheduler with this log serves health and metrics now; `None` until the log says so.
pub(super) fn address_in(log: &str) -> Option<SocketAddr> {
    // The last line may be incomplete.
    let (lines, _) = log.rsplit_once('\n')?;
    let (_, address) = lines
        .lines()
        .rev()
        .find_map(|line| line.split_once(BEFORE_ADDRESS))?;
    address.parse().ok()
}
