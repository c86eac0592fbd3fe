//! Files of objects that a command reads instead of asking a scheduler: the options for them.

use super::Failure;
use super::cluster::ClusterArgs;
use super::plan::{World, world};
use super::scheduler::SchedulerArgs;
use std::path::PathBuf;

/// Files of objects, and the configuration under which they are planned.
#[derive(Debug, clap::Args)]
pub(super) struct FilesArgs {
    /// Instead of a scheduler: a file of Kubernetes objects, a folder of such files, or - for
    /// standard input; over the cluster, where --context or --kubeconfig names one
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..,
          conflicts_with_all = SchedulerArgs::ADDRESS)]
    filename: Vec<PathBuf>,
    /// With files, the configuration file (see `gpu-batch config --print-defaults`)
    #[arg(long, value_name = "FILE", requires = "filename")]
    config: Option<PathBuf>,
}

impl FilesArgs {
    /// Whether a file is named.
    pub(super) fn are_named(&self) -> bool {
        !self.filename.is_empty()
    }

    /// Reads the cluster, if one is named, and the files over it, as [`world`] does.
    pub(super) fn world(&self, cluster: &ClusterArgs) -> Result<World, Failure> {
        world(&self.filename, self.config.as_deref(), cluster)
    }
}
