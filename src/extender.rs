//! gpu-batch as an extender of kube-scheduler: pods that kube-scheduler places, in queues of ours.
//!
//! ```text
//!  kube-scheduler --POST /filter, /prioritize, /preempt--> questions --+
//!                 --POST /bind--> Event::BindAsked, and an asker ------+--> handles::inbox
//! ```
//!
//! | path | what is asked | an error is told |
//! |---|---|---|
//! | `/filter` | which nodes a pod may have | in `Error`, with status 200 |
//! | `/prioritize` | which of them are better | with a status code |
//! | `/preempt` | on which nodes pods may be evicted for it | with a status code |
//! | `/bind` | to bind it to a node | in `Error`, with status 200 |
//!
//! Nothing is decided here: the engine answers, see [`gpu_batch_policies::extender`]. [`api`] has
//! what is sent, [`answers`] asks the loop, [`credentials`] says who may ask, [`connections`]
//! bounds what that costs, and [`setup`] prints what kube-scheduler has to be told.

mod answers;
mod api;
mod connections;
mod credentials;
pub(crate) mod setup;

use crate::handles::Handles;
use credentials::Keyring;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpListener;

/// How kube-scheduler reaches its extender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtenderSettings {
    /// Where kube-scheduler asks.
    pub serve_address: SocketAddr,
    /// The `schedulerName` of kube-scheduler.
    pub scheduler_name: String,
    /// What the extender and kube-scheduler know each other by.
    pub files: ExtenderFiles,
}

/// What the extender and kube-scheduler know each other by. Without a certificate, HTTP is plain;
/// with neither an authority nor a token, everybody who reaches the address may ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtenderFiles {
    /// The certificates with which the extender answers, and the private key of the first.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The authority that has signed the certificates of those who may ask.
    pub client_authority: Option<PathBuf>,
    /// The secret of those who may ask.
    pub token: Option<PathBuf>,
}

/// A file of [`ExtenderFiles`] that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot use {}: {problem}", .path.display())]
pub struct UnusableFile {
    /// The file.
    pub path: PathBuf,
    /// Why the file cannot be used.
    pub problem: String,
}

impl ExtenderFiles {
    /// Whether the files can be used now.
    ///
    /// # Errors
    /// The first file that cannot.
    pub(crate) fn check(&self) -> Result<(), UnusableFile> {
        credentials::Credentials::read(self).map(drop)
    }
}

/// An extender that is ready to serve.
pub(crate) struct Extender {
    handles: Handles,
    keyring: Keyring,
    /// How old a connection may get.
    age_max: Duration,
}

impl Extender {
    /// Reads the files.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub(crate) fn new(files: ExtenderFiles, handles: Handles) -> Result<Self, UnusableFile> {
        let keyring = Keyring::new(files)?;
        Ok(Self {
            handles,
            keyring,
            age_max: connections::AGE_MAX,
        })
    }

    /// Serves until the task is cancelled.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let router = answers::router(self.handles);
        connections::accept(listener, self.keyring, router, self.age_max).await;
    }
}

#[cfg(test)]
mod tests;
