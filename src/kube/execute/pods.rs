//! Requests about one pod: its gate, its binding, its eviction, and what has become of it.

use super::classify::classify;
use super::exchange::{Answer, ExchangeError, Request, STRATEGIC_MERGE_PATCH};
use crate::kube::convert::{NODE_OF_CARDS, OF_BINDINGS, OF_LIFTING, annotations_of_cards};
use crate::kube::format::micros;
use gpu_batch_policies::command::{Bind, EvictionCause, Lift, PodReference};
use gpu_batch_policies::event::{Outcome, PodSeen};
use gpu_batch_policies::facts::{GANG_GATE, UnixMs};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// The most bytes in the value of a label.
const LABEL_MAX: usize = 63;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: BindingMetadata<'a>,
    target: Target<'a>,
}

#[derive(Serialize)]
struct BindingMetadata<'a> {
    namespace: &'a str,
    name: &'a str,
    /// A precondition: another pod of the same name is not bound.
    uid: String,
    /// Annotations that the API server adds to the pod in the same write.
    annotations: BTreeMap<&'static str, String>,
    /// Labels that it adds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'static str, &'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target<'a> {
    api_version: &'static str,
    kind: &'static str,
    name: &'a str,
}

/// The request that binds a pod to its node.
pub(super) fn bind(bind: &Bind) -> Request {
    let (namespace, name) = (&*bind.pod.namespace, &*bind.pod.name);
    Request::post(
        format!("/api/v1/namespaces/{namespace}/pods/{name}/binding"),
        &Binding {
            api_version: "v1",
            kind: "Binding",
            metadata: BindingMetadata {
                namespace,
                name,
                uid: bind.pod.uid.to_string(),
                annotations: annotations(bind),
                labels: labels(bind),
            },
            target: Target {
                api_version: "v1",
                kind: "Node",
                name: &bind.node,
            },
        },
    )
}

fn annotations(bind: &Bind) -> BTreeMap<&'static str, String> {
    let queue = (!bind.queue.is_empty()).then(|| bind.queue.to_string());
    let pod_group = bind.pod_group.as_deref().map(str::to_owned);
    let written: [_; OF_BINDINGS.len()] = [queue, pod_group, minimum(&bind.minima)];
    let named = OF_BINDINGS.into_iter().zip(written);
    let named = named.filter_map(|(name, value)| Some((name, value?)));
    let of_cards = bind.assignment.as_ref();
    let of_cards = of_cards
        .map(|assignment| annotations_of_cards(&bind.node, &assignment.entries, assignment.at_ms));
    named.chain(of_cards.into_iter().flatten()).collect()
}

/// The label by which HAMi's monitor finds a pod. No value of a label is longer.
fn labels(bind: &Bind) -> BTreeMap<&'static str, &str> {
    let node = bind.assignment.as_ref().map(|_| &*bind.node);
    let node = node.filter(|node| node.len() <= LABEL_MAX);
    node.map(|node| (NODE_OF_CARDS, node)).into_iter().collect()
}

/// The minima as an annotation: `3`, or with sub-groups `2/1/3`, from the gang's down to the
/// leaf's.
fn minimum(minima: &[u32]) -> Option<String> {
    let words: Vec<String> = minima.iter().map(u32::to_string).collect();
    (!words.is_empty()).then(|| words.join("/"))
}

/// Why a pod was evicted, for the log; the Kubernetes event on its group says it with the numbers.
pub(super) fn why_evicted(cause: EvictionCause) -> &'static str {
    match cause {
        EvictionCause::Stale => {
            "its gang lost members and stayed below its minimum for its grace period"
        }
        EvictionCause::Unwind => {
            "its gang was bound in part, and the rest of its minimum has no place"
        }
        EvictionCause::Reclaim => {
            "its queue holds more than is its own, and another queue claims what is its own"
        }
        EvictionCause::Preempt => "a gang of higher priority of the same queue takes its room",
        EvictionCause::Consolidate => "it has another place, and its gang makes room by moving",
        EvictionCause::CardFailed => "its gang runs on a node of which GPUs have failed",
    }
}

/// The request that evicts a pod: an Eviction, so that the API server respects disruption budgets.
pub(super) fn evict(pod: &PodReference) -> Request {
    let (namespace, name) = (&*pod.namespace, &*pod.name);
    Request::post(
        format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"),
        &json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": {"preconditions": {"uid": pod.uid.to_string()}},
        }),
    )
}

/// The request that lifts the gate of a pod. A gate that is gone already is no error, so the
/// request may be repeated. The time makes each lifting a change of the pod: a change lets
/// kube-scheduler try a pod again that it has found no node for.
pub(super) fn lift(lift: &Lift, now_ms: UnixMs) -> Request {
    let (namespace, name) = (&*lift.pod.namespace, &*lift.pod.name);
    let [node, at] = OF_LIFTING;
    Request::patch(
        format!("/api/v1/namespaces/{namespace}/pods/{name}"),
        STRATEGIC_MERGE_PATCH,
        &json!({
            "metadata": {
                "uid": lift.pod.uid.to_string(),
                "annotations": {node: lift.node, at: micros(now_ms)},
            },
            "spec": {"schedulingGates": [{"$patch": "delete", "name": GANG_GATE}]},
        }),
    )
}

/// The fields of a pod that are read back.
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

/// The request that reads a pod back. Without a resourceVersion this is a quorum read: the API
/// server answers with what etcd has.
pub(super) fn observe(pod: &PodReference) -> Request {
    let (namespace, name) = (&*pod.namespace, &*pod.name);
    Request::get(format!("/api/v1/namespaces/{namespace}/pods/{name}"))
}

/// What an answer says of the pod that was read back.
pub(super) fn observed(pod: &PodReference, answer: Result<Answer, ExchangeError>) -> Outcome {
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
