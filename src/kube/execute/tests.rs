mod nodes;
mod telling;

use super::fixtures::{TEN_O_CLOCK_MS, answered, bind_of, gang_patch_of, write_lease};
use super::{Executor, LeaseName, Stamp, request};
use crate::handles::Handles;
use crate::kube::api;
use crate::kube::connection::fake::{Asked, FakeApi};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use gpu_batch_policies::command::{
    Action, Announcement, CommandId, Evict, EvictionCause, KeepVolume, Lift, ObjectReference,
    PodReference, SelectNode, StatusPatch,
};
use gpu_batch_policies::event::{Outcome, PodSeen};
use gpu_batch_policies::facts::{ClaimReference, GroupSource, Uid};
use gpu_batch_policies::lease::{LeaseCall, LeaseSeen};
use gpu_batch_policies::status::{QueueFault, QueueStatus};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const UID: &str = "00000000-0000-0000-0000-0000000000a1";

struct Fixture {
    api: FakeApi,
    executor: Arc<Executor>,
    handles: Handles,
}

impl Fixture {
    async fn start(answer: impl Fn(&Asked) -> Response + Send + Sync + 'static) -> Self {
        let api = FakeApi::start(answer).await;
        let handles = Handles::new(String::new());
        Self {
            executor: executor(&api.config, &handles),
            api,
            handles,
        }
    }

    async fn outcome(&self, action: Action, deadline: Duration) -> Outcome {
        answered(&self.executor, &self.handles, action, deadline).await
    }
}

fn executor(config: &kube::Config, handles: &Handles) -> Arc<Executor> {
    let lease = LeaseName {
        namespace: "sys".to_owned(),
        name: "gb".to_owned(),
    };
    Arc::new(Executor::new(config, lease, "me".to_owned(), "gpu-batch", handles).unwrap())
}

async fn check(action: Action, status: u16, body: Value, expected: Outcome) -> Asked {
    let fixture = Fixture::start(move |_| answer(status, &body)).await;
    let outcome = fixture.outcome(action, Duration::from_secs(5)).await;
    assert_eq!(outcome, expected);
    let asked = fixture.api.asked();
    assert_eq!(asked.len(), 1, "one command is one request");
    asked[0].clone()
}

fn answer(status: u16, body: &Value) -> Response {
    let mut response = body.to_string().into_response();
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
    if status == 429 {
        response
            .headers_mut()
            .insert("retry-after", "9".parse().unwrap());
    }
    response
}

fn pod() -> PodReference {
    PodReference {
        namespace: "vision".into(),
        name: "train-0".into(),
        uid: Uid::parse(UID).unwrap(),
    }
}

fn bind() -> Action {
    bind_of(&pod())
}

#[tokio::test]
async fn a_request_is_sent_once_whatever_the_answer() {
    let throttled = Outcome::Throttled {
        retry_after_ms: 9_000,
    };
    check(bind(), 429, json!({}), throttled).await;
    for status in [500, 502, 503, 504] {
        let body = json!({"kind": "Status", "message": "etcdserver: request timed out"});
        let message = "etcdserver: request timed out".into();
        check(bind(), status, body, Outcome::Unknown { message }).await;
    }
    let body = json!({"kind": "Status", "message": "the object has been modified"});
    let message = "the object has been modified".into();
    check(bind(), 409, body, Outcome::Conflict { message }).await;
}

#[tokio::test]
async fn a_request_without_an_answer_ends_as_unknown_at_its_deadline() {
    let silence = || futures::stream::pending::<Result<Vec<u8>, std::io::Error>>();
    let fixture = Fixture::start(move |_| Body::from_stream(silence()).into_response()).await;
    let outcome = fixture.outcome(bind(), Duration::from_millis(50)).await;
    assert!(is_unknown(&outcome, "not answered within"), "{outcome:?}");
}

#[tokio::test]
async fn a_command_whose_time_is_over_is_never_sent() {
    let fixture = Fixture::start(|_| answer(201, &json!({}))).await;
    // The first opens a connection, on which the second could be sent at once.
    assert_eq!(
        fixture.outcome(bind(), Duration::from_secs(5)).await,
        Outcome::Done
    );
    let late = fixture.outcome(bind(), Duration::ZERO).await;
    assert!(is_unknown(&late, "its time was over"), "{late:?}");
    assert_eq!(fixture.api.asked().len(), 1);
}

#[tokio::test]
async fn a_lost_connection_ends_as_unknown() {
    let mut fixture = Fixture::start(|_| answer(201, &json!({}))).await;
    // A port at which no server listens.
    let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    fixture.executor = executor(&nowhere, &fixture.handles);
    let outcome = fixture.outcome(bind(), Duration::from_secs(5)).await;
    let told = "there was no answer: nothing listens there";
    assert!(is_unknown(&outcome, told), "{outcome:?}");
}

fn is_unknown(outcome: &Outcome, told: &str) -> bool {
    matches!(outcome, Outcome::Unknown { message } if message.contains(told))
}

#[tokio::test]
async fn a_binding_names_the_uid_and_records_queue_and_group() {
    let asked = check(bind(), 201, json!({}), Outcome::Done).await;
    assert_eq!(asked.method, "POST");
    assert_eq!(asked.path, "/api/v1/namespaces/vision/pods/train-0/binding");
    assert_eq!(asked.content_type, "application/json");
    let expected = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {
            "namespace": "vision", "name": "train-0", "uid": UID,
            "annotations": {
                "gpu-batch.io/bound-queue": "team",
                "gpu-batch.io/bound-podgroup": "train",
                "gpu-batch.io/bound-minimum": "2/3",
            },
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    });
    assert_eq!(asked.body, expected);
}

#[tokio::test]
async fn an_eviction_names_the_uid() {
    let evict = Action::Evict(Evict {
        pod: pod(),
        cause: EvictionCause::Stale,
        beneficiary: None,
    });
    let asked = check(evict, 201, json!({}), Outcome::Done).await;
    assert_eq!(
        asked.path,
        "/api/v1/namespaces/vision/pods/train-0/eviction"
    );
    assert_eq!(asked.body["deleteOptions"]["preconditions"]["uid"], UID);
}

#[tokio::test]
async fn an_observation_looks_at_uid_and_node() {
    let other = "00000000-0000-0000-0000-0000000000a2";
    for (status, body, expected) in [
        (404, json!({}), PodSeen::Gone),
        (200, json!({"metadata": {"uid": other}}), PodSeen::Gone),
        (200, json!({"metadata": {"uid": UID}}), PodSeen::Unbound),
        (
            200,
            json!({"metadata": {"uid": UID}, "spec": {"nodeName": "n1"}}),
            PodSeen::Bound("n1".into()),
        ),
    ] {
        let asked = check(
            Action::Observe(pod()),
            status,
            body,
            Outcome::Observed(expected),
        )
        .await;
        assert_eq!(asked.path, "/api/v1/namespaces/vision/pods/train-0");
    }
    let message = "the API server answered 503 Service Unavailable".into();
    let unknown = Outcome::Unknown { message };
    check(Action::Observe(pod()), 503, json!({}), unknown).await;
}

fn gang_patch(source: GroupSource) -> Action {
    gang_patch_of(source, "vision", Uid::parse(UID).unwrap())
}

#[tokio::test]
async fn the_status_of_a_pod_group_is_replaced_under_its_uid() {
    let asked = check(
        gang_patch(GroupSource::GpuBatch),
        200,
        json!({}),
        Outcome::Done,
    )
    .await;
    assert_eq!(asked.method, "PATCH");
    assert_eq!(
        asked.path,
        "/apis/gpu-batch.io/v1alpha1/namespaces/vision/podgroups/train/status"
    );
    assert_eq!(asked.content_type, "application/json-patch+json");
    assert_eq!(
        asked.body[0],
        json!({"op": "test", "path": "/metadata/uid", "value": UID})
    );
    let expected = json!({
        "observedGeneration": 3,
        "phase": "Pending",
        "reason": "OverLimit",
        "message": "the queue team is at its limit",
        "estimatedStart": "2026-11-21T11:00:00Z",
        "scheduler": "gpu-batch",
        "members": {
            "expected": 8, "created": 8, "bound": 0, "running": 0, "succeeded": 0, "failed": 0,
        },
        "conditions": [{
            "type": "PodGroupScheduled", "status": "False", "reason": "OverLimit",
            "message": "the queue team is at its limit", "observedGeneration": 3,
            "lastTransitionTime": "2026-11-21T10:00:00Z",
        }],
    });
    assert_eq!(asked.body[1]["value"], expected);
    // What the schema does not know, the API server would drop.
    let typed: api::PodGroupStatus = serde_json::from_value(expected.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), expected);
}

#[tokio::test]
async fn of_a_native_group_only_one_condition_is_merged() {
    let asked = check(
        gang_patch(GroupSource::Native),
        200,
        json!({}),
        Outcome::Done,
    )
    .await;
    assert_eq!(
        asked.path,
        "/apis/scheduling.k8s.io/v1alpha2/namespaces/vision/podgroups/train/status"
    );
    assert_eq!(asked.content_type, "application/strategic-merge-patch+json");
    assert_eq!(asked.body["metadata"], json!({"uid": UID}));
    let status = asked.body["status"].as_object().unwrap();
    assert_eq!(status.len(), 1);
    assert_eq!(status["conditions"][0]["type"], "PodGroupScheduled");
}

#[tokio::test]
async fn the_status_of_a_queue_is_written_in_quantities() {
    let patch = Action::PatchStatus(StatusPatch::Queue {
        name: "team".into(),
        uid: Uid::parse(UID).unwrap(),
        status: QueueStatus {
            fault: Some((QueueFault::Cycle, "a is its own ancestor".into())),
            allocated: vec![("cpu".into(), 1_500), ("memory".into(), 1 << 40)],
            dominant_share_millionths: 420_000,
            pending: 3,
            ..QueueStatus::default()
        },
    });
    let asked = check(patch, 200, json!({}), Outcome::Done).await;
    assert_eq!(asked.path, "/apis/gpu-batch.io/v1alpha1/queues/team/status");
    let status = &asked.body[1]["value"];
    assert_eq!(
        status["allocated"],
        json!({"cpu": "1500m", "memory": "1Ti"})
    );
    assert_eq!(status["dominantShare"], "0.42");
    assert_eq!(status["podGroups"], json!({"pending": 3, "running": 0}));
    assert_eq!(status["scheduler"], "gpu-batch");
    assert_eq!(status["conditions"][0]["status"], "False");
    assert_eq!(status["conditions"][0]["reason"], "Cycle");
    let typed: api::QueueStatus = serde_json::from_value(status.clone()).unwrap();
    let mut known = serde_json::to_value(typed).unwrap();
    for empty in ["fairShare", "requested"] {
        known[empty] = json!({});
    }
    assert_eq!(known, *status);
}

#[tokio::test]
async fn a_waiting_pod_gets_its_condition() {
    let patch = Action::PatchStatus(StatusPatch::Unscheduled {
        pod: pod(),
        reason: "Unschedulable".into(),
        message: "0/3 nodes".into(),
        since_ms: TEN_O_CLOCK_MS,
    });
    let asked = check(patch, 200, json!({}), Outcome::Done).await;
    assert_eq!(asked.path, "/api/v1/namespaces/vision/pods/train-0/status");
    let expected = json!({
        "metadata": {"uid": UID},
        "status": {"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes", "lastTransitionTime": "2026-11-21T10:00:00Z",
        }]},
    });
    assert_eq!(asked.body, expected);
}

#[tokio::test]
async fn a_nomination_is_merged_or_taken_away_under_the_uid_of_the_pod() {
    for (node, expected) in [(Some("n1"), json!("n1")), (None, Value::Null)] {
        let patch = Action::PatchStatus(StatusPatch::Nominated {
            pod: pod(),
            node: node.map(Into::into),
        });
        let asked = check(patch, 200, json!({}), Outcome::Done).await;
        assert_eq!(asked.method, "PATCH");
        assert_eq!(asked.path, "/api/v1/namespaces/vision/pods/train-0/status");
        assert_eq!(asked.content_type, "application/strategic-merge-patch+json");
        let expected = json!({
            "metadata": {"uid": UID},
            "status": {"nominatedNodeName": expected},
        });
        assert_eq!(asked.body, expected);
    }
}

#[tokio::test]
async fn the_gate_is_lifted_with_the_node_that_was_chosen() {
    let lift = Action::Lift(Lift {
        pod: pod(),
        node: "n1".into(),
    });
    let mut asked = check(lift, 200, json!({}), Outcome::Done).await;
    assert_eq!(asked.method, "PATCH");
    assert_eq!(asked.path, "/api/v1/namespaces/vision/pods/train-0");
    assert_eq!(asked.content_type, "application/strategic-merge-patch+json");
    let at = asked.body["metadata"]["annotations"]["gpu-batch.io/planned-at"].take();
    assert!(at.is_string(), "{at}");
    let expected = json!({
        "metadata": {"uid": UID, "annotations": {
            "gpu-batch.io/planned-node": "n1", "gpu-batch.io/planned-at": null,
        }},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": "gpu-batch.io/gang"}]},
    });
    assert_eq!(asked.body, expected);
}

#[tokio::test]
async fn a_node_is_selected_for_a_claim_and_the_selection_taken_back() {
    for (node, expected) in [(Some("n1".into()), json!("n1")), (None, json!(null))] {
        let select = Action::SelectNode(SelectNode {
            namespace: "vision".into(),
            name: "data".into(),
            uid: Uid::parse(UID).unwrap(),
            node,
        });
        let asked = check(select, 200, json!({}), Outcome::Done).await;
        assert_eq!(asked.method, "PATCH");
        let path = "/api/v1/namespaces/vision/persistentvolumeclaims/data";
        assert_eq!(asked.path, path);
        assert_eq!(asked.content_type, "application/merge-patch+json");
        let annotations = json!({"volume.kubernetes.io/selected-node": expected});
        let expected = json!({"metadata": {"uid": UID, "annotations": annotations}});
        assert_eq!(asked.body, expected);
    }
}

#[tokio::test]
async fn a_volume_is_kept_for_a_claim_and_freed_as_it_was_seen() {
    let reference = ClaimReference {
        namespace: "vision".into(),
        name: "data".into(),
        uid: Uid::parse(UID),
    };
    let written = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "vision",
        "name": "data", "uid": UID,
    });
    for (claim, reference, by) in [
        (Some(reference), written, json!("yes")),
        (None, json!(null), json!(null)),
    ] {
        let keep = Action::KeepVolume(KeepVolume {
            volume: "disk-1".into(),
            version: "12".into(),
            claim,
        });
        let asked = check(keep, 200, json!({}), Outcome::Done).await;
        assert_eq!(asked.method, "PATCH");
        assert_eq!(asked.path, "/api/v1/persistentvolumes/disk-1");
        assert_eq!(asked.content_type, "application/merge-patch+json");
        let annotations = json!({"pv.kubernetes.io/bound-by-controller": by});
        let expected = json!({
            "metadata": {"resourceVersion": "12", "annotations": annotations},
            "spec": {"claimRef": reference},
        });
        assert_eq!(asked.body, expected);
    }
}

fn lease() -> (Value, Outcome) {
    let body = json!({
        "metadata": {"resourceVersion": "12"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 2},
    });
    let seen = Outcome::Lease(LeaseSeen {
        resource_version: Some("12".into()),
        holder: "me".into(),
        transitions: 2,
        duration_ms: 15_000,
    });
    (body, seen)
}

#[tokio::test]
async fn a_lease_that_is_not_there_is_an_answer() {
    let nothing = Outcome::Lease(LeaseSeen {
        resource_version: None,
        holder: "".into(),
        transitions: 0,
        duration_ms: 0,
    });
    let read = Action::Lease(LeaseCall::Read);
    let asked = check(read.clone(), 404, json!({}), nothing).await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/sys/leases/gb";
    assert_eq!(asked.path, path);
    let (body, seen) = lease();
    check(read, 200, body, seen).await;
}

#[tokio::test]
async fn a_lease_is_replaced_only_at_its_version() {
    let (body, seen) = lease();
    let asked = check(
        write_lease(Some("11"), false),
        200,
        body.clone(),
        seen.clone(),
    )
    .await;
    assert_eq!(asked.method, "PUT");
    let metadata = json!({"namespace": "sys", "name": "gb", "resourceVersion": "11"});
    assert_eq!(asked.body["metadata"], metadata);
    check(
        write_lease(Some("11"), true),
        409,
        json!({"kind": "Status", "message": "the object has been modified"}),
        Outcome::Conflict {
            message: "the object has been modified".into(),
        },
    )
    .await;

    // The namespace is missing, and not the lease, which is to be created.
    let missing = json!({"kind": "Status", "message": "namespaces \"sys\" not found"});
    let refused = Outcome::Refused {
        message: "namespaces \"sys\" not found".into(),
    };
    check(write_lease(None, true), 404, missing, refused).await;
    check(
        write_lease(Some("11"), true),
        404,
        json!({}),
        Outcome::NotFound,
    )
    .await;

    let asked = check(write_lease(None, true), 201, body, seen).await;
    assert_eq!(asked.method, "POST");
    assert_eq!(
        asked.path,
        "/apis/coordination.k8s.io/v1/namespaces/sys/leases"
    );
}

#[tokio::test]
async fn a_renewal_keeps_the_time_of_acquisition() {
    let (body, _) = lease();
    let fixture = Fixture::start(move |_| answer(200, &body)).await;
    for acquire in [true, false] {
        let write = write_lease(Some("11"), acquire);
        fixture.outcome(write, Duration::from_secs(5)).await;
    }
    let asked = fixture.api.asked();
    let [acquired, renewed] = [0, 1].map(|index| asked[index].body["spec"].clone());
    assert_eq!(acquired["acquireTime"], acquired["renewTime"]);
    assert_eq!(renewed["acquireTime"], acquired["acquireTime"]);
    assert_ne!(renewed["renewTime"], acquired["renewTime"]);
}

#[tokio::test]
async fn a_holder_that_was_restarted_keeps_the_time_of_acquisition() {
    let (mut body, _) = lease();
    body["spec"]["acquireTime"] = json!("2026-11-21T10:00:00.123000Z");
    let fixture = Fixture::start(move |_| answer(200, &body)).await;
    let read = Action::Lease(LeaseCall::Read);
    for action in [read, write_lease(Some("11"), false)] {
        fixture.outcome(action, Duration::from_secs(5)).await;
    }
    let renewed = &fixture.api.asked()[1].body["spec"];
    assert_eq!(renewed["acquireTime"], "2026-11-21T10:00:00.123000Z");
    assert_ne!(renewed["renewTime"], renewed["acquireTime"]);
}

#[tokio::test]
async fn an_event_on_a_cluster_object_goes_to_the_default_namespace() {
    let publish = Action::Publish(Announcement {
        regarding: ObjectReference {
            api_version: "gpu-batch.io/v1alpha1".into(),
            kind: "Queue".into(),
            namespace: "".into(),
            name: "q".repeat(253).into(),
            uid: Uid::parse(UID).unwrap(),
        },
        warning: true,
        reason: "QueueClosed".into(),
        message: "ä".repeat(2_000).into(),
        once: false,
    });
    let asked = check(publish, 201, json!({}), Outcome::Done).await;
    assert_eq!(
        asked.path,
        "/apis/events.k8s.io/v1/namespaces/default/events"
    );
    assert_eq!(asked.body["note"].as_str().unwrap().len(), 1_024);
    assert!(asked.body["metadata"]["name"].as_str().unwrap().len() <= 253);
    assert_eq!(asked.body["type"], "Warning");
}

#[test]
fn what_is_told_once_has_a_name_that_follows_from_what_it_says_of_which_object() {
    let name = |uid: u128, message: &str, command: u64| {
        let publish = Action::Publish(Announcement {
            regarding: ObjectReference {
                api_version: "batch/v1".into(),
                kind: "Job".into(),
                namespace: "vision".into(),
                name: "train".into(),
                uid: Uid(uid),
            },
            warning: true,
            reason: "FailsWhenEvicted".into(),
            message: message.into(),
            once: true,
        });
        let lease = LeaseName {
            namespace: "a".into(),
            name: "b".into(),
        };
        let stamp = Stamp {
            lease: &lease,
            instance: "test",
            scheduler: "gpu-batch",
            id: CommandId(command),
            acquired_ms: 0,
            now_ms: command,
        };
        let request = request(&publish, &stamp);
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        body["metadata"]["name"].as_str().unwrap().to_owned()
    };
    let first = name(1, "it fails", 1);
    assert!(first.starts_with("train."), "{first}");
    assert_eq!(name(1, "it fails", 2), first);
    assert_ne!(name(2, "it fails", 1), first);
    assert_ne!(name(1, "it ends", 1), first);
}
