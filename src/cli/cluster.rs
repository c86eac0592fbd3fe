//! Which cluster a command reaches: the same options for all of them, as kubectl has them.

use super::Failure;
use crate::connection::{self, ConnectionError, Named};
use std::path::PathBuf;

/// The namespace of names that have none, where neither an option nor a context says one.
const DEFAULT_NAMESPACE: &str = "default";

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

    /// How the cluster is named.
    pub(super) fn named(&self) -> Named {
        Named {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }

    /// Whether a cluster is named.
    pub(super) fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Finds the cluster. The API server is not asked.
    ///
    /// # Errors
    /// [`Failure::BadInput`] if what is named cannot be read, or nothing is found.
    pub(super) async fn config(&self) -> Result<kube::Config, Failure> {
        self.named().config().await.map_err(bad)
    }

    /// Finds out whether what is named can be used. The API server is not asked.
    ///
    /// # Errors
    /// As [`Self::config`] and [`Self::client`].
    pub(super) async fn check(&self) -> Result<(), Failure> {
        Self::client(&self.config().await?).map(drop)
    }

    /// Makes a client for the cluster.
    ///
    /// # Errors
    /// [`Failure::BadInput`] if the certificates or the like cannot be used.
    pub(super) fn client(config: &kube::Config) -> Result<kube::Client, Failure> {
        connection::client(config).map_err(bad)
    }

    /// The namespace of a name that has none: the one that is named, else that of the context of
    /// `config`, else `default`.
    pub(super) fn namespace_in<'a>(&'a self, config: Option<&'a kube::Config>) -> &'a str {
        let of_context = config.map(|config| config.default_namespace.as_str());
        let named = self.namespace.as_deref().or(of_context);
        named.unwrap_or(DEFAULT_NAMESPACE)
    }
}

fn bad(error: ConnectionError) -> Failure {
    Failure::BadInput(error.into())
}
