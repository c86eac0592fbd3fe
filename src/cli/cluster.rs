//! Which cluster a command reaches: the same options for all of them, as kubectl has them.

use super::Failure;
use crate::connection::{self, ConnectionError};
use std::path::PathBuf;

/// The cluster, and the namespace of names that have none.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ClusterArgs {
    /// The kubeconfig. Without it: $KUBECONFIG, ~/.kube/config, then the pod's service account
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub(super) context: Option<String>,
    /// The namespace of names that have none. Without it: that of the context
    #[arg(short, long, value_name = "NAME", help_heading = "Cluster")]
    pub(super) namespace: Option<String>,
}

impl ClusterArgs {
    /// The ids of the options that name a cluster, for those that conflict with them.
    pub(super) const NAMING: [&'static str; 2] = ["kubeconfig", "context"];

    /// Finds the cluster. The API server is not asked.
    ///
    /// # Errors
    /// [`Failure::BadInput`] if what is named cannot be read, or nothing is found.
    pub(super) async fn config(&self) -> Result<kube::Config, Failure> {
        let found = connection::config(self.kubeconfig.as_deref(), self.context.as_deref());
        found.await.map_err(bad)
    }

    /// Makes a client for the cluster.
    ///
    /// # Errors
    /// [`Failure::BadInput`] if the certificates or the like cannot be used.
    pub(super) fn client(config: &kube::Config) -> Result<kube::Client, Failure> {
        connection::client(config).map_err(bad)
    }
}

fn bad(error: ConnectionError) -> Failure {
    Failure::BadInput(error.into())
}
