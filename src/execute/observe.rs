//! Reading one pod back.

use super::classify::classify;
use super::exchange::{Answer, ExchangeError, Request};
use gpu_batch_policies::command::PodReference;
use gpu_batch_policies::event::{Outcome, PodSeen};
use serde::Deserialize;

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    uid: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<Box<str>>,
}

/// Without a resourceVersion this is a quorum read: the API server answers with what etcd has.
pub(super) fn request(pod: &PodReference) -> Request {
    let (namespace, name) = (&*pod.namespace, &*pod.name);
    Request::get(format!("/api/v1/namespaces/{namespace}/pods/{name}"))
}

pub(super) fn outcome(pod: &PodReference, answer: Result<Answer, ExchangeError>) -> Outcome {
    match (classify(&answer), answer) {
        (Outcome::NotFound, _) => Outcome::Observed(PodSeen::Gone),
        (Outcome::Done, Ok(answer)) => match serde_json::from_slice::<Pod>(&answer.body) {
            Ok(seen) if seen.metadata.uid != pod.uid.to_string() => {
                Outcome::Observed(PodSeen::Gone)
            }
            Ok(seen) => Outcome::Observed(match seen.spec.node_name {
                Some(node) if !node.is_empty() => PodSeen::Bound(node),
                _ => PodSeen::Unbound,
            }),
            Err(error) => Outcome::Unknown {
                message: format!("the pod that was answered cannot be read: {error}").into(),
            },
        },
        (outcome, _) => outcome,
    }
}
