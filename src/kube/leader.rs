//! The scheduler that leads, asked through the API server.
//!
//! ```text
//!   Lease --holder--> Pod --port `http`--> pods/portforward --kubelet--> the pod's loopback
//! ```
//!
//! The API server knows who the user is and says whether the user may do this, and the kubelet
//! connects inside the pod. So the pages that are only for the pod's own machine stay closed to
//! others, and the scheduler needs no rights and sees no credentials. Not used: the subresource
//! `proxy`, which connects to the pod's address as any other pod could, without saying who the user
//! is; the scheduler could not tell users and other pods apart.

use crate::kube::connection::{obstacle, reason};
use crate::kube::execute::LeaseName;
use axum::body::{Body, to_bytes};
use http::{Request, StatusCode, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{ApiResource, Object};
use kube::{Api, Client};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::error::Error;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

/// The name of the port on which a scheduler's container serves its pages.
const PORT_NAME: &str = "http";
/// The port where no container names one [`PORT_NAME`].
const PORT: u16 = 8080;
/// The largest page that is read; in the longest page a gang takes less than 1 KiB.
const PAGE_MAX_BYTES: usize = 256 << 20;

/// A pod of which only the ports are read, so that decoders of all other fields are not compiled
/// in.
type Ports = Object<Option<PodSpec>, IgnoredAny>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PodSpec {
    containers: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Container {
    ports: Vec<ContainerPort>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerPort {
    name: Option<String>,
    container_port: u16,
}

/// The answer of the scheduler to a request for one of its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// The HTTP status.
    pub status: StatusCode,
    /// The body.
    pub text: String,
}

/// Why the scheduler that leads cannot be asked.
#[derive(Debug, Error)]
pub(crate) enum LeaderError {
    /// The API server does not answer, or in a way that makes no sense.
    #[error("{0}")]
    NoAnswer(String),
    /// Kubernetes denies the request: the user lacks a right.
    #[error("{0}")]
    Forbidden(String),
    /// The API server cannot pass the request on, e.g. because it does not reach the kubelet.
    #[error("the API server does not get through: {0}")]
    Failed(String),
    /// There is no such Lease.
    #[error("there is no Lease {name} in the namespace {namespace}")]
    NoLease {
        /// The namespace of the Lease.
        namespace: String,
        /// The name of the Lease.
        name: String,
    },
    /// The Lease has no holder: no scheduler leads.
    #[error("no scheduler leads: no process holds the Lease {name} in the namespace {namespace}")]
    NobodyLeads {
        /// The namespace of the Lease.
        namespace: String,
        /// The name of the Lease.
        name: String,
    },
    /// The holder of the Lease is no pod in the Lease's namespace.
    #[error("the scheduler that leads, {holder}, is not a pod of the namespace {namespace}")]
    NoPod {
        /// The holder that the Lease names.
        holder: String,
        /// The namespace of the Lease.
        namespace: String,
    },
    /// The connection to the pod is open, and the scheduler in it does not answer.
    #[error("the scheduler in the pod {pod} does not answer: {because}")]
    Silent {
        /// The name of the pod.
        pod: String,
        /// The reason why no answer came.
        because: String,
    },
}

/// Asks the holder of a Lease, which is a pod in the Lease's namespace, for a page.
///
/// # Errors
/// If the API server does not let the user through, or the scheduler does not answer. A page that
/// says that something is wrong is no error.
pub(crate) async fn page(
    client: &Client,
    lease: &LeaseName,
    path: &str,
) -> Result<Page, LeaderError> {
    let LeaseName { namespace, name } = lease;
    let leases = Api::<Lease>::namespaced(client.clone(), namespace);
    let found = leases.get_opt(name).await.map_err(failed)?;
    let (namespace, name) = (namespace.clone(), name.clone());
    let Some(found) = found else {
        return Err(LeaderError::NoLease { namespace, name });
    };
    let holder = found.spec.and_then(|spec| spec.holder_identity);
    let Some(holder) = holder.filter(|holder| !holder.is_empty()) else {
        return Err(LeaderError::NobodyLeads { namespace, name });
    };
    let pod = if may_be_a_pod(&holder) {
        let pod = ApiResource::erase::<Pod>(&());
        let pods = Api::<Ports>::namespaced_with(client.clone(), &namespace, &pod);
        pods.get_opt(&holder).await.map_err(failed)?
    } else {
        None
    };
    let Some(pod) = pod else {
        return Err(LeaderError::NoPod { holder, namespace });
    };
    let port = port(&pod);
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let mut forwarder = pods.portforward(&holder, &[port]).await.map_err(failed)?;
    let silent = |because| LeaderError::Silent {
        pod: holder.clone(),
        because,
    };
    let taken = forwarder.take_stream(port).zip(forwarder.take_error(port));
    let Some((stream, told)) = taken else {
        return Err(silent("its port was not forwarded".to_owned()));
    };
    tokio::select! {
        // First what the kubelet says: it explains why the connection ends.
        biased;
        Some(message) = told => Err(silent(message)),
        page = ask(stream, path) => page.map_err(silent),
    }
}

/// Whether a holder can be the name of a pod, so that its path can mean nothing else of the API.
fn may_be_a_pod(holder: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    holder.chars().all(fits) && holder.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn port(pod: &Ports) -> u16 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| &container.ports);
    let named = ports.find(|port| port.name.as_deref() == Some(PORT_NAME));
    named.map_or(PORT, |port| port.container_port)
}

/// Sends one request over an open connection.
async fn ask<S>(stream: S, path: &str) -> Result<Page, String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let broken = |error: &dyn Error| reason(error);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(&error))?;
    tokio::spawn(connection);
    let request = Request::get(path)
        .header(header::HOST, "localhost")
        .body(Body::empty())
        .map_err(|error| broken(&error))?;
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(|error| broken(&error))?;
    let status = answer.status();
    let body = to_bytes(Body::new(answer.into_body()), PAGE_MAX_BYTES).await;
    let body = body.map_err(|error| broken(&error))?;
    Ok(Page {
        status,
        text: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn failed(error: kube::Error) -> LeaderError {
    match error {
        kube::Error::Api(status) if [401, 403].contains(&status.code) => {
            LeaderError::Forbidden(status.message.clone())
        }
        kube::Error::Api(status) => LeaderError::Failed(status.message.clone()),
        error => LeaderError::NoAnswer(obstacle(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::{PORT, Ports, may_be_a_pod, port};
    use serde_json::json;

    #[test]
    fn a_holder_that_cannot_be_a_pod_is_not_looked_up() {
        for (holder, may_be) in [
            ("gpu-batch-7d4b9c-x2x9k", true),
            ("host.example.com", true),
            ("host_3f2a", false),
            ("../secrets/x", false),
            ("..", false),
            ("a?watch=true", false),
        ] {
            assert_eq!(may_be_a_pod(holder), may_be, "{holder}");
        }
    }

    #[test]
    fn the_port_is_that_of_the_name_http() {
        let pod = |ports| -> Ports {
            let containers = json!([{"name": "sidecar"}, {"name": "c", "ports": ports}]);
            let pod = json!({"metadata": {}, "spec": {"containers": containers}});
            serde_json::from_value(pod).unwrap()
        };
        let named = json!([{"containerPort": 1}, {"name": "http", "containerPort": 9090}]);
        assert_eq!(port(&pod(named)), 9090);
        assert_eq!(port(&pod(json!([{"containerPort": 1}]))), PORT);
    }
}
