//! Options that several commands have: which cluster they reach, as kubectl has them, and where a
//! session is recorded.

use super::Failure;
use crate::kube::connection::{self, ConnectionError, Named};
use crate::kube::convert::quantity;
use crate::live::recording::JournalFile;
use anyhow::Context;
use std::path::PathBuf;
use tracing::warn;

/// The namespace of names that have none, where neither an option nor a context names one.
const DEFAULT_NAMESPACE: &str = "default";
/// The smallest size of journals, in bytes: less holds hardly a minute of a busy cluster.
const SIZE_MIN: u64 = 1 << 20;

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
    /// The ids of the options that name a cluster, for options that conflict with them.
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

/// Where a session is recorded.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct RecordArgs {
    /// Record everything that the scheduler sees and decides, for `gpu-batch replay`. A journal
    /// that is there already is kept as FILE.1. `demo --embedded` writes it at its end, of the last
    /// scheduler if some have crashed
    #[arg(long = "record", value_name = "FILE")]
    file: Option<PathBuf>,
    /// How large FILE and FILE.1 may be together; when FILE is full, a new one begins
    #[arg(long = "record-size", value_name = "SIZE", default_value = "256Mi",
          requires = "file", value_parser = size)]
    bytes_max: u64,
}

impl RecordArgs {
    /// Checks that a journal may be made at the path. Nothing is changed.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        let checked = JournalFile::check(path).context("--record");
        checked.map_err(Failure::BadInput)
    }

    /// Makes the file, if the session is to be recorded and the file can be made: a failed
    /// recording keeps no scheduler from starting.
    pub(super) fn create_or_warn(&self) -> Option<JournalFile> {
        let path = self.file.as_ref()?;
        let file = JournalFile::create(path, self.bytes_max);
        file.inspect_err(|error| {
            warn!("nothing is recorded, and the scheduler goes on without: --record: {error}");
        })
        .ok()
    }

    /// Makes the file, if the session is to be recorded.
    pub(super) fn create(&self) -> Result<Option<JournalFile>, Failure> {
        let Some(path) = &self.file else {
            return Ok(None);
        };
        let file = JournalFile::create(path, self.bytes_max).context("--record");
        file.map(Some).map_err(Failure::BadInput)
    }
}

fn size(text: &str) -> Result<u64, String> {
    match quantity::amount("bytes", text) {
        Ok(bytes) if bytes >= SIZE_MIN => Ok(bytes),
        Ok(_) => Err("it must be at least 1Mi".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
