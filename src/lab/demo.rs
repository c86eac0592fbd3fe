//! A cluster with fake GPU nodes and a stream of gangs, scheduled before your eyes.
//!
//! On a local control plane everything but the machines is real: etcd, the API server, the
//! controllers that make pods from Jobs, and the scheduler of this program. The embedded demo has
//! the simulator's model world in place of Kubernetes, and the same engine. What the table shows
//! and the final checks look at comes from an observer that follows the pods by itself.
//!
//! ```text
//!   stream --Jobs, PodGroups--> API server <--watch, bind--> scheduler (driver) --reports--+
//!                               or model world <-----------> engine                        |
//!                                   |                                                      v
//!                                   +--pods--> witness ------books------> table, summary, checks
//! ```

/// Prints a line. A reader that has gone (`| head`) must not keep the demo from clearing up.
macro_rules! say {
    ($($part:tt)*) => {{
        use std::io::Write;
        writeln!(std::io::stdout(), $($part)*).ok();
    }};
}

mod check;
mod cluster;
mod embedded;
mod live;
mod preparation;
mod seen;
mod setting;
mod show;
mod summary;
mod table;
mod witness;
mod workload;

use crate::lab::local::{Binaries, LocalError};
use crate::live::recording::JournalFile;
use anyhow::Context;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What to show.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// How many gangs arrive.
    pub gangs: u32,
    /// How long it should take from the first gang to the end of the last.
    pub length: Duration,
    /// The cluster that the demo runs on.
    pub place: Place,
}

/// What a demo runs on.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// A local control plane, built from source once. Where a build needs Go and there is none, the
    /// demo is embedded instead, and says so.
    Local {
        /// The control plane and a scheduler run on when the demo has ended.
        keep: bool,
    },
    /// A local control plane that runs on with a scheduler, without the demo's queues and gangs.
    Empty {
        /// How many nodes the control plane has.
        nodes: u32,
    },
    /// A cluster for tests that the user has.
    Users(ClusterOfTheUser),
    /// The simulator's model world: no Kubernetes, nothing to build.
    Embedded(Embedded),
}

/// A cluster for tests that the user has.
#[derive(Debug, Clone)]
pub(crate) struct ClusterOfTheUser {
    /// The kubeconfig by which the cluster is reached.
    pub kubeconfig: PathBuf,
    /// The context of the kubeconfig; `None`: the current one.
    pub context: Option<String>,
    /// Whether the user has agreed to what will be created.
    pub confirmed: bool,
}

/// How the model world runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Embedded {
    /// How many seconds pass in the world in one second, at least 1.
    pub speed: u32,
    /// The seed of the faults; `None`: nothing goes wrong.
    pub chaos: Option<u64>,
}

impl Embedded {
    /// For a first look: it takes seconds.
    pub(crate) const QUICK: Self = Self {
        speed: 10,
        chaos: None,
    };
}

/// Runs the demo and prints what it shows, until all gangs have ended, time is up, or the process
/// is interrupted (SIGINT, SIGTERM). Nothing is left running, unless the user wants to keep it. A
/// `journal` records the scheduler.
///
/// # Errors
/// If there is no cluster, if the scheduler ends, or if the final checks find a violation.
pub(crate) fn run(options: &Options, journal: Option<JournalFile>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the asynchronous runtime")?;
    match &options.place {
        Place::Embedded(embedded) => runtime.block_on(embedded::run(options, *embedded, journal)),
        Place::Users(_) => runtime.block_on(live::run(options, None, journal)),
        Place::Empty { nodes } => {
            let binaries = preparation::find_binaries(true)?;
            runtime.block_on(live::leave_empty(*nodes, &binaries))
        }
        Place::Local { keep } => match find_binaries(*keep)? {
            Some(binaries) => runtime.block_on(live::run(options, Some(&binaries), journal)),
            None => runtime.block_on(embedded::run(options, Embedded::QUICK, journal)),
        },
    }
}

/// Finds the programs of the control plane. `None`: they would have to be built, and Go is missing;
/// with `keep` that is an error, because only a real control plane can be kept.
fn find_binaries(keep: bool) -> anyhow::Result<Option<Binaries>> {
    match preparation::find_binaries(keep) {
        Err(error @ LocalError::GoMissing { .. }) if !keep => {
            say!("{error}");
            say!("Until then, this is the embedded demo: a model of Kubernetes, as --embedded.");
            say!();
            Ok(None)
        }
        found => Ok(Some(found?)),
    }
}

/// Waits for SIGINT and SIGTERM. A second signal changes nothing: the end takes only seconds.
struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupt {
    fn new() -> anyhow::Result<Self> {
        let wait_for = |kind| signal(kind).context("failed to wait for signals");
        Ok(Self {
            interrupt: wait_for(SignalKind::interrupt())?,
            terminate: wait_for(SignalKind::terminate())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
