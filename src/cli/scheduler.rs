//! Which running scheduler a command asks, and how it is reached.

use super::Failure;
use super::cluster::ClusterArgs;
use crate::config::LeaseName;
use crate::connection;
use crate::leader::{self, LeaderError, Page};
use anyhow::anyhow;
use http::{Request, StatusCode, Uri};
use kube::client::Body;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The address at which a scheduler on this machine answers by default.
const HERE: &str = "http://127.0.0.1:8080";
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// What can be done where the way through the API server does not lead to the scheduler.
const OTHERWISE: &str = "name another Lease with --lease, another cluster with --kubeconfig or \
                         --context, or the scheduler's address with --server";

/// The scheduler that is asked: the one that leads in a cluster, or one by its address.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SchedulerArgs {
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// The Lease of the scheduler, which names the pod that is asked through the API server
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "gpu-batch/gpu-batch",
          conflicts_with = "server", help_heading = "Cluster", value_parser = lease)]
    lease: LeaseName,
    /// Where the scheduler serves its pages, as in http://127.0.0.1:8080; no cluster is asked
    #[arg(long, value_name = "URL", conflicts_with_all = ClusterArgs::NAMING,
          help_heading = "Cluster", value_parser = address)]
    server: Option<Uri>,
}

impl SchedulerArgs {
    /// The ids of the options that say where a scheduler is asked, for those that conflict with
    /// them.
    pub(super) const ADDRESS: [&'static str; 2] = ["lease", "server"];

    /// Finds out where to ask. Nobody is asked yet.
    ///
    /// # Errors
    /// [`Failure::BadInput`] if what is named cannot be used, or no cluster is found.
    pub(super) async fn find(&self) -> Result<Scheduler<'_>, Failure> {
        let place = match &self.server {
            Some(server) => Place::At(server),
            None => Place::In(&self.lease, Box::new(self.cluster.config().await?)),
        };
        let config = match &place {
            Place::At(_) => None,
            Place::In(_, config) => Some(&**config),
        };
        let namespace = self.cluster.namespace_in(config).to_owned();
        Ok(Scheduler { namespace, place })
    }
}

/// A scheduler that can be asked.
pub(super) struct Scheduler<'a> {
    /// The namespace of a name that has none.
    pub(super) namespace: String,
    place: Place<'a>,
}

/// Where a scheduler is asked.
enum Place<'a> {
    /// At its address.
    At(&'a Uri),
    /// In a cluster, where it holds a Lease.
    In(&'a LeaseName, Box<kube::Config>),
}

impl Scheduler<'_> {
    /// Asks the scheduler for a page, and reads the answer.
    ///
    /// # Errors
    /// [`Failure::Failed`] if nobody answers or the scheduler refuses, [`Failure::BadInput`] if it
    /// says that there is no such thing.
    pub(super) async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let (lease, config) = match &self.place {
            Place::At(server) => return directly(server, path).await,
            Place::In(lease, config) => (lease, config),
        };
        let client = ClusterArgs::client(config)?;
        let page = tokio::time::timeout(TIMEOUT, leader::page(&client, lease, path)).await;
        match page.unwrap_or_else(|_| Err(LeaderError::NoAnswer(too_long()))) {
            Ok(page) => read("the scheduler that leads", &page),
            Err(LeaderError::NoPod { holder, .. }) if runs_here(&holder) => {
                directly(&Uri::from_static(HERE), path).await
            }
            Err(error) => Err(in_words(&error, lease, config).into()),
        }
    }
}

/// Why the scheduler that leads could not be asked, and what can be done.
fn in_words(error: &LeaderError, lease: &LeaseName, config: &kube::Config) -> anyhow::Error {
    let LeaseName { namespace, name } = lease;
    match error {
        LeaderError::NoAnswer(obstacle) => {
            let url = &config.cluster_url;
            anyhow!("the API server does not answer at {url}: {obstacle}; {OTHERWISE}")
        }
        LeaderError::Forbidden(_) => anyhow!(
            "{error}; whoever is bound to the Role {name}-explain in the namespace {namespace} may \
             ask the scheduler"
        ),
        LeaderError::NoLease { .. } => anyhow!("{error}; {OTHERWISE}"),
        LeaderError::Failed(_) | LeaderError::NobodyLeads { .. } | LeaderError::Silent { .. } => {
            anyhow!("{error}; `kubectl get pods -n {namespace}` shows how it is")
        }
        LeaderError::NoPod { .. } => {
            anyhow!("{error}; ask it on its own machine, with --server and the address in its log")
        }
    }
}

/// Whether the holder of a Lease is a process of this machine: such holders are called after it.
fn runs_here(holder: &str) -> bool {
    let host = nix::unistd::gethostname().ok();
    let host = host.and_then(|host| host.into_string().ok());
    host.is_some_and(|host| !host.is_empty() && holder.starts_with(&host))
}

/// Asks a scheduler by its address.
async fn directly<T: DeserializeOwned>(server: &Uri, path: &str) -> Result<T, Failure> {
    let client = connection::client(&kube::Config::new(server.clone()))
        .map_err(|error| Failure::BadInput(error.into()))?;
    let request = Request::get(path).body(Body::empty())?;
    let answer = async {
        let response = client.send(request).await?;
        let status = response.status();
        let body = response.into_body().collect_bytes().await?;
        let text = String::from_utf8_lossy(&body).into_owned();
        Ok(Page { status, text })
    };
    let answer = tokio::time::timeout(TIMEOUT, answer).await;
    let answer = answer.map_or_else(
        |_| Err(too_long()),
        |answer: Result<_, kube::Error>| answer.map_err(|error| connection::obstacle(&error)),
    );
    let server = server.to_string();
    let server = server.trim_end_matches('/');
    let page = answer.map_err(|obstacle| {
        anyhow!(
            "no scheduler answers at {server}: {obstacle}; without --server, the one that leads in \
             the cluster is asked"
        )
    })?;
    read(server, &page)
}

fn read<T: DeserializeOwned>(asked: &str, page: &Page) -> Result<T, Failure> {
    let said = page.text.trim_end();
    match page.status {
        StatusCode::OK => Ok(serde_json::from_str(&page.text)
            .map_err(|_| anyhow!("{asked} answers in a way that this version cannot read"))?),
        StatusCode::NOT_FOUND if said.is_empty() => Err(anyhow!(
            "{asked} has no such page: it is not a gpu-batch scheduler, or one of another version, \
             or it runs on another machine, which it answers only through the API server"
        )
        .into()),
        StatusCode::NOT_FOUND => Err(Failure::BadInput(anyhow!("{said}"))),
        status => Err(anyhow!("{asked} answers {status}: {said}").into()),
    }
}

fn too_long() -> String {
    format!("there was no answer for {} s", TIMEOUT.as_secs())
}

fn lease(text: &str) -> Result<LeaseName, String> {
    match text.split('/').collect::<Vec<_>>()[..] {
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => Ok(LeaseName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }),
        _ => Err("write it as NAMESPACE/NAME".to_owned()),
    }
}

/// Reads where a scheduler serves its pages. The client panics where there is no scheme.
fn address(text: &str) -> Result<Uri, String> {
    let whole = text.parse::<Uri>().ok().filter(|address| {
        let page = address.path_and_query().map_or("", |page| page.as_str());
        matches!(address.scheme_str(), Some("http" | "https"))
            && address.host().is_some_and(|host| !host.is_empty())
            && matches!(page, "" | "/")
    });
    whole.ok_or_else(|| {
        let (_, rest) = text.split_once("://").unwrap_or(("", text));
        let host = rest.split('/').next().filter(|host| !host.is_empty());
        let meant = host.map_or_else(String::new, |host| format!("; did you mean http://{host}?"));
        format!("write it like {HERE}, with http:// and without a page{meant}")
    })
}
