//! Which running scheduler a command asks, and how it is reached.

use super::Failure;
use super::options::ClusterArgs;
use crate::kube::connection;
use crate::kube::execute::LeaseName;
use crate::kube::leader::{self, LeaderError, Page};
use crate::live::config::is_of_this_machine;
use anyhow::anyhow;
use http::{Request, StatusCode, Uri};
use kube::client::Body;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The address at which a scheduler on this machine answers by default.
const HERE: &str = "http://127.0.0.1:8080";
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// What a user can do where the way through the API server does not lead to the scheduler.
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
    /// The ids of the options that say where a scheduler is asked, for options that conflict with
    /// them.
    pub(super) const ADDRESS: [&'static str; 2] = ["lease", "server"];

    /// Finds out where to ask; sends no request yet.
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
    /// The namespace of names that have none.
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
    /// [`Failure::Failed`] if there is no answer or the scheduler refuses, [`Failure::BadInput`] if
    /// it answers that there is no such gang or pod.
    pub(super) async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        match &self.place {
            Place::At(server) => {
                let page = directly(server, path).await.map_err(|failure| {
                    failure.and("without --server, the one that leads in the cluster is asked")
                })?;
                read(&base(server), &page)
            }
            Place::In(lease, config) => {
                in_cluster((lease, config), &Uri::from_static(HERE), path).await
            }
        }
    }
}

/// Asks the scheduler that leads in a cluster. `here`: the address at which a scheduler of this
/// machine is asked if the Lease names one, because the API server does not lead to it.
async fn in_cluster<T: DeserializeOwned>(
    (lease, config): (&LeaseName, &kube::Config),
    here: &Uri,
    path: &str,
) -> Result<T, Failure> {
    let client = ClusterArgs::client(config)?;
    let page = tokio::time::timeout(TIMEOUT, leader::page(&client, lease, path)).await;
    match page.unwrap_or_else(|_| Err(LeaderError::NoAnswer(too_long()))) {
        Ok(page) => read("the scheduler that leads", &page),
        Err(LeaderError::NoPod { holder, .. }) if is_of_this_machine(&holder) => {
            let address = base(here);
            let answer = directly(here, path).await;
            let answer = answer.and_then(|page| read(&address, &page));
            answer.map_err(|failure| {
                failure.and(&format!(
                    "the Lease names {holder}, which runs on this machine, so {address} was \
                     asked; name another address with --server"
                ))
            })
        }
        Err(error) => Err(in_words(&error, lease, config).into()),
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
            "{error}; users who are bound to the Role {name}-explain in the namespace {namespace} \
             may ask the scheduler"
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

/// Asks a scheduler by its address.
async fn directly(server: &Uri, path: &str) -> Result<Page, Failure> {
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
    answer
        .map_err(|obstacle| anyhow!("no scheduler answers at {}: {obstacle}", base(server)).into())
}

/// An address as users write it, without a slash at its end.
fn base(server: &Uri) -> String {
    server.to_string().trim_end_matches('/').to_owned()
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

/// Reads the address at which a scheduler serves its pages. The client panics on one without a
/// scheme.
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

#[cfg(test)]
mod tests {
    use super::{Failure, StatusCode, in_cluster};
    use crate::kube::connection::fake::FakeApi;
    use crate::kube::execute::LeaseName;
    use crate::live::config::Configuration;
    use axum::response::{IntoResponse, Response};
    use gpu_batch_policies::settings::Leadership;
    use serde_json::{Value, json};

    /// A cluster whose Lease names a holder that is no pod.
    async fn cluster(holder: String) -> FakeApi {
        FakeApi::start(move |asked| -> Response {
            let lease = asked.path.contains("/leases/");
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                "reason": "NotFound", "message": "no such pod", "code": 404});
            let found = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                               "metadata": {"name": "l", "namespace": "n"},
                               "spec": {"holderIdentity": holder}});
            match lease {
                true => axum::Json(found).into_response(),
                false => (StatusCode::NOT_FOUND, axum::Json(status)).into_response(),
            }
        })
        .await
    }

    /// Asks for `holder`'s gangs while another program listens on this machine: the error that is
    /// printed, how often that program was asked, and its address.
    async fn told(holder: &str) -> (String, usize, String) {
        let other =
            FakeApi::start(|_| (StatusCode::NOT_FOUND, "404 page not found").into_response());
        let (api, other) = (cluster(holder.to_owned()).await, other.await);
        let lease = LeaseName {
            namespace: "n".to_owned(),
            name: "l".to_owned(),
        };
        let here = other.config.cluster_url.clone();
        let answer = in_cluster::<Value>((&lease, &api.config), &here, "/gangs").await;
        let (Failure::Failed(error) | Failure::BadInput(error)) = answer.unwrap_err();
        let address = super::base(&here);
        (format!("{error:#}"), other.asked().len(), address)
    }

    #[tokio::test]
    async fn a_program_of_this_machine_is_asked_only_for_a_scheduler_of_this_machine() {
        let configuration = Configuration::load(None).unwrap();
        let Leadership::Elected(lease) = configuration.settings.leadership else {
            panic!("replicas elect one by default");
        };
        let holder = lease.identity;
        let (said, asked, address) = told(&holder).await;
        let expected = format!(
            "404 page not found; the Lease names {holder}, which runs on this machine, so {address} \
             was asked; name another address with --server"
        );
        assert_eq!((&*said, asked), (&*expected, 1));

        let (host, _) = holder.rsplit_once('_').unwrap();
        for other in [host.to_owned(), format!("{host}2_000000000000002f")] {
            let (said, asked, _) = told(&other).await;
            assert_eq!(asked, 0, "{other}");
            assert!(said.contains("ask it on its own machine"), "{said}");
        }
    }
}
