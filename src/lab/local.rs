//! A local control plane: the real etcd and kube-apiserver as plain processes, with fake GPU nodes.
//!
//! The demo, `bench live` and the integration tests run on it. Nothing is installed and nothing
//! needs root: the programs are built once from source with Go ([`binaries`]), started on free
//! ports of the loopback interface with their data in a temporary folder ([`control_plane`]), and
//! no program outlives the process that started it, however that process ends.
//!
//! ```text
//!   Binaries::find_or_build --> ControlPlane::start --> client() --> nodes::create
//!       (once, minutes)             (seconds)
//! ```

pub mod nodes;

mod binaries;
mod certificates;
mod command_lines;
mod control_plane;
mod process;
mod scheduler;

#[cfg(test)]
mod answers;

pub use binaries::{Binaries, Program, cache_folder};
pub use command_lines::{CONTROLLERS, Options};
pub use control_plane::ControlPlane;
pub use nodes::GpuNode;
pub use scheduler::SchedulerProcess;

use std::path::PathBuf;
use std::process::ExitStatus;

/// Why there is no local control plane.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Something has to be built, and Go is not installed.
    #[error(
        "Go {version} or newer is needed to build a local Kubernetes, once; 'go' is not on PATH. \
         Install Go, or set KUBEBUILDER_ASSETS to a folder that holds {missing}"
    )]
    GoMissing {
        /// The lowest version of Go that will do.
        version: &'static str,
        /// The programs that were looked for and not found, separated by commas.
        missing: String,
    },
    /// The build was started and failed.
    #[error("cannot build the local Kubernetes:\n{output}")]
    Build {
        /// The last lines that the build wrote.
        output: String,
    },
    /// A program of the control plane ended although nobody stopped it.
    #[error("{program} ended ({status}); its log ends with:\n{log}")]
    Ended {
        /// The program.
        program: Program,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// The API server runs and does not become ready.
    #[error(
        "the API server was not ready after {waited_s} s ({last_answer}); its log ends with:\n{log}"
    )]
    NotReady {
        /// How long it was given, in seconds.
        waited_s: u64,
        /// The last answer of the API server.
        last_answer: String,
        /// The last lines of its log.
        log: String,
    },
    /// A file or a process could not be handled.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action that failed, as a verb.
        action: &'static str,
        /// The file or program.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Keys and certificates could not be made.
    #[error("cannot make the certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    /// No client could be made for the API server.
    #[error("cannot make a client for the local API server: {0}")]
    Client(String),
}

impl LocalError {
    /// For `map_err`: the error of doing `action` on `path`.
    fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
