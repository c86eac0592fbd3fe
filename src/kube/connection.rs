//! The connection to the API server: one way to find it, one way to make a client, and what its
//! errors mean.

use crate::handles::health::Outage;
use kube::client::AuthError;
use kube::config::{InferConfigError, Kubeconfig, KubeconfigError};
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Why there is no connection. Each message has the whole reason in it, because the libraries below
/// repeat themselves when their errors are printed as a chain.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// The kubeconfig that was asked for cannot be used.
    #[error("cannot use the kubeconfig: {0}")]
    Kubeconfig(String),
    /// There is neither a kubeconfig nor a service account.
    #[error("cannot find a cluster: {0}")]
    NotFound(String),
    /// The client cannot be made, e.g. because a certificate cannot be read.
    #[error("cannot make a client for the API server: {0}")]
    Client(String),
}

impl From<KubeconfigError> for ConnectionError {
    fn from(error: KubeconfigError) -> Self {
        Self::Kubeconfig(reason(&error))
    }
}

impl From<InferConfigError> for ConnectionError {
    fn from(error: InferConfigError) -> Self {
        Self::NotFound(reason(&error))
    }
}

impl From<kube::Error> for ConnectionError {
    fn from(error: kube::Error) -> Self {
        Self::Client(reason(&error))
    }
}

/// An error and its causes in one line, without what is said twice.
pub(crate) fn reason(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// Why a request was not answered, for people: the innermost cause alone, because the errors around
/// it only pass it on.
pub(crate) fn obstacle(error: &kube::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => "nothing listens there".to_owned(),
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof) => {
            "the connection was broken off".to_owned()
        }
        Some(io::ErrorKind::TimedOut) => "it does not answer".to_owned(),
        _ if cause.to_string().contains("lookup address") => {
            "there is no host of that name".to_owned()
        }
        _ => cause.to_string(),
    }
}

/// The outage that an error shows; `None`: only this one request has failed.
pub(crate) fn outage(error: &kube::Error) -> Option<Outage> {
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            Some(Outage::Unauthorized(status.message.clone()))
        }
        kube::Error::Auth(error) => Some(Outage::Unauthorized(reason(error))),
        kube::Error::Service(_) | kube::Error::HyperError(_) => {
            if let Some(error) = find::<AuthError>(error) {
                return Some(Outage::Unauthorized(reason(error)));
            }
            let words = obstacle(error);
            Some(match words.contains("certificate") {
                true => Outage::Untrusted(words),
                false => Outage::Unreachable(words),
            })
        }
        _ => None,
    }
}

/// The error of type `E` among an error and its causes.
fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut error = Some(error);
    while let Some(one) = error {
        if let Some(found) = one.downcast_ref() {
            return Some(found);
        }
        error = one.source();
    }
    None
}

/// How long the API server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How a cluster is named: a kubeconfig, a context of it, both or neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// The kubeconfig; `None`: the user's.
    pub kubeconfig: Option<PathBuf>,
    /// The context; `None`: the current one.
    pub context: Option<String>,
}

impl Named {
    /// Finds the cluster.
    ///
    /// # Errors
    /// As [`config`].
    pub(crate) async fn config(&self) -> Result<kube::Config, ConnectionError> {
        config(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }
}

/// Finds the cluster: the kubeconfig that is named; else, if only a context is named, that context
/// of the user's kubeconfig; else the user's current context; else the pod's service account.
///
/// # Errors
/// If what is named cannot be read, or nothing is found. The API server is not asked.
pub async fn config(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<kube::Config, ConnectionError> {
    let options = kube::config::KubeConfigOptions {
        context: context.map(str::to_owned),
        ..Default::default()
    };
    match kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path)?;
            Ok(kube::Config::from_custom_kubeconfig(file, &options).await?)
        }
        None if context.is_some() => Ok(kube::Config::from_kubeconfig(&options).await?),
        None => Ok(kube::Config::infer().await?),
    }
}

/// Makes a client that sends each request exactly once, and asks no proxy for a server on this
/// machine.
///
/// kube would repeat a request after 429, 503 and 504, up to 15 times, binds and evictions
/// included, long after the engine has given the request up; an eviction that a disruption budget
/// forbids *is* a 429. The engine alone decides what is repeated. Each client has connections of
/// its own (HTTP/1.1, one for each request that is under way), so a request on one client never
/// waits for a request on another.
///
/// # Errors
/// If the configuration cannot be used, e.g. because of its certificates.
pub fn client(config: &kube::Config) -> Result<kube::Client, ConnectionError> {
    let mut config = config.clone();
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    if matches!(
        config.cluster_url.host(),
        Some("localhost" | "127.0.0.1" | "[::1]")
    ) {
        config.proxy_url = None;
    }
    Ok(kube::Client::try_from(config)?)
}

#[cfg(test)]
pub(crate) mod fake;
