//! Requests for the lease that elects the leader.

use super::classify::{classify, message};
use super::exchange::{Answer, ExchangeError, Request};
use crate::handles::health::LeaseTrouble;
use crate::kube::format::micros;
use gpu_batch_policies::event::Outcome;
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::lease::{LeaseCall, LeaseSeen};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

const NONE_LEADS: &str = "until it can, no scheduler leads";
const THROTTLED: &str = "the API server throttles requests (429): look at its load and at the \
    FlowSchemas of its priority and fairness; until it takes this one, no \
    scheduler leads";

/// A Lease object, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseName {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
}

#[derive(Deserialize)]
struct Lease {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: Option<Box<str>>,
    lease_duration_seconds: Option<u32>,
    lease_transitions: Option<u32>,
    acquire_time: Option<Box<str>>,
}

/// When the holder took the lease, in Unix milliseconds, if the answer says so.
pub(super) fn acquired_ms(answer: &Answer) -> Option<UnixMs> {
    let lease: Lease = serde_json::from_slice(&answer.body).ok()?;
    let acquired: Timestamp = lease.spec.acquire_time?.parse().ok()?;
    acquired.as_millisecond().try_into().ok()
}

/// Why the lease cannot be written, and what to do; `said`: the words of the API server. `None`:
/// the outcome is no trouble.
pub(super) fn trouble(lease: &LeaseName, outcome: &Outcome, said: &str) -> Option<LeaseTrouble> {
    let LeaseName { namespace, name } = lease;
    type Of = fn(String) -> LeaseTrouble;
    let (trouble, message, what): (Of, _, _) = match outcome {
        Outcome::Refused { message } => (LeaseTrouble::Refused, &**message, remedy(lease, message)),
        Outcome::Unknown { message } => (LeaseTrouble::Unserved, &**message, NONE_LEADS.into()),
        Outcome::Throttled { .. } => (LeaseTrouble::Throttled, said, THROTTLED.into()),
        _ => return None,
    };
    Some(trouble(format!(
        "the Lease {namespace}/{name} cannot be written: {message}; {what}"
    )))
}

fn remedy(lease: &LeaseName, refusal: &str) -> String {
    let namespace = &lease.namespace;
    if refusal == format!("namespaces \"{namespace}\" not found") {
        return format!(
            "`kubectl create namespace {namespace}` makes it; leaderElection.namespace in the \
             configuration names another one"
        );
    }
    match refusal.contains("is forbidden") {
        true => "the Role of `deploy/rbac.yaml` allows it".to_owned(),
        false => NONE_LEADS.to_owned(),
    }
}

/// The request that reads or writes the lease. A replacement carries the expected resourceVersion,
/// so it fails with a conflict if the lease has changed. `acquired_ms`: when the holder took the
/// lease; a renewal keeps it, also after the process was restarted.
pub(super) fn request(
    lease: &LeaseName,
    request: &LeaseCall,
    acquired_ms: UnixMs,
    now_ms: UnixMs,
) -> Request {
    let LeaseName { namespace, name } = lease;
    let collection = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let object = format!("{collection}/{name}");
    let LeaseCall::Write {
        resource_version,
        holder,
        transitions,
        acquire: _,
        duration_ms,
    } = request
    else {
        return Request::get(object);
    };
    let mut body = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "holderIdentity": holder,
            // The API server wants at least one second.
            "leaseDurationSeconds": duration_ms.div_ceil(1_000).max(1),
            "leaseTransitions": transitions,
            "acquireTime": micros(if acquired_ms == 0 { now_ms } else { acquired_ms }),
            "renewTime": micros(now_ms),
        },
    });
    match resource_version {
        None => Request::post(collection, &body),
        Some(version) => {
            body["metadata"]["resourceVersion"] = json!(version);
            Request::put(object, &body)
        }
    }
}

pub(super) fn outcome(request: &LeaseCall, answer: Result<Answer, ExchangeError>) -> Outcome {
    match (classify(&answer), answer) {
        (Outcome::NotFound, _) if *request == LeaseCall::Read => Outcome::Lease(LeaseSeen {
            resource_version: None,
            holder: "".into(),
            transitions: 0,
            duration_ms: 0,
        }),
        (Outcome::Done, Ok(answer)) => match serde_json::from_slice::<Lease>(&answer.body) {
            Ok(lease) => Outcome::Lease(LeaseSeen {
                resource_version: Some(lease.metadata.resource_version),
                holder: lease.spec.holder_identity.unwrap_or_default(),
                transitions: lease.spec.lease_transitions.unwrap_or(0),
                duration_ms: u64::from(lease.spec.lease_duration_seconds.unwrap_or(0)) * 1_000,
            }),
            Err(error) => Outcome::Unknown {
                message: format!("the lease that was answered cannot be read: {error}").into(),
            },
        },
        // A lease that is to be created cannot be missing itself: its namespace is. No process can
        // lead then, and users must hear of it.
        (Outcome::NotFound, Ok(answer)) if creates(request) => Outcome::Refused {
            message: message(&answer).into(),
        },
        (outcome, _) => outcome,
    }
}

fn creates(request: &LeaseCall) -> bool {
    let LeaseCall::Write {
        resource_version, ..
    } = request
    else {
        return false;
    };
    resource_version.is_none()
}
