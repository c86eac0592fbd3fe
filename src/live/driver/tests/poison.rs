//! A gang that makes the engine panic, in the whole loop, against an API server that says yes.

use super::driver_at;
use crate::handles::inbox::{self, Explained, Inbox};
use crate::handles::{Clock, Handles};
use crate::kube::connection::fake::{Asked, FakeApi};
use crate::kube::convert::{Converter, Document, from_value};
use crate::live::driver::Ended;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use gpu_batch_policies::event::{Event, Object};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn node() -> Value {
    let resources = json!({"cpu": "64", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "status": {"allocatable": resources, "capacity": resources},
    })
}

/// A PodGroup with so many pods, long since created.
pub(super) fn gang(name: &str, pods: usize) -> Vec<Value> {
    let meta = |name: &str, labels: Value| {
        json!({
            "name": name, "namespace": "vision", "labels": labels,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        })
    };
    let group = json!({
        "apiVersion": "gpu-batch.io/v1alpha1", "kind": "PodGroup",
        "metadata": meta(name, json!({})), "spec": {"minMember": 2},
    });
    let label = json!({"gpu-batch.io/pod-group": name});
    let pod = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": meta(&format!("{name}-{number}"), label.clone()),
            "spec": {"schedulerName": "gpu-batch", "containers": [
                {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
            ]},
        })
    };
    std::iter::once(group).chain((0..pods).map(pod)).collect()
}

pub(super) fn facts(objects: Vec<Value>) -> Vec<Object> {
    let mut converter = Converter::new("gpu-batch", Clock::start().now_ms());
    let read = |object| match from_value(object, &mut converter) {
        Ok(Document::Object(object)) => *object,
        other => panic!("{other:?}"),
    };
    objects.into_iter().map(read).collect()
}

/// Lists the world, as the watches do at the start and after a panic.
pub(super) async fn list(inbox: &Inbox, objects: &[Object]) {
    for list in Event::lists(objects.iter().cloned()) {
        inbox.watched(list).await;
    }
}

/// The last request that is wanted, as soon as there is one.
pub(super) async fn asked(api: &FakeApi, what: &str, wanted: impl Fn(&Asked) -> bool) -> Asked {
    let start = Instant::now();
    loop {
        if let Some(asked) = api.asked().into_iter().rev().find(&wanted) {
            return asked;
        }
        assert!(start.elapsed() < PATIENCE, "no {what}: {:#?}", api.asked());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_that_makes_the_engine_panic_is_left_alone_and_says_why_and_others_go_on() {
    let api = FakeApi::start(|_| -> Response { axum::Json(json!({})).into_response() }).await;
    let (mut driver, mut relisted) = driver_at(&api.config);
    driver.engine.plant_panic("vision/poison");
    let Handles { inbox, metrics, .. } = driver.handles.clone();
    let world = [vec![node()], gang("healthy", 2), gang("poison", 2)];
    list(&inbox, &facts(world.concat())).await;
    let running = std::thread::spawn(move || driver.run());

    tokio::time::timeout(PATIENCE, relisted.changed())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(metrics.panics.get(), 1);
    list(&inbox, &facts(world.concat())).await;
    for pod in ["healthy-0", "healthy-1"] {
        let path = format!("/api/v1/namespaces/vision/pods/{pod}/binding");
        asked(&api, pod, |asked| asked.path.starts_with(&path)).await;
    }
    let says = "handling this gang made the scheduler panic: planted for vision/poison; it is left \
                alone until its PodGroup or its pods change, or the scheduler restarts";
    let status = asked(&api, "status", |asked| {
        asked.path.ends_with("/podgroups/poison/status")
    })
    .await;
    let status = &status.body[1]["value"];
    assert_eq!(status["reason"], "Unsupported");
    assert_eq!(status["phase"], "Pending");
    assert_eq!(status["conditions"][0]["message"], says);
    let condition = asked(&api, "condition", |asked| {
        asked.path.ends_with("/pods/poison-1/status")
    })
    .await;
    let condition = &condition.body["status"]["conditions"][0];
    assert_eq!(condition["reason"], "Unsupported");
    assert_eq!(condition["message"], says);
    let event = asked(&api, "event", |asked| {
        let regarding = &asked.body["regarding"];
        asked.method == Method::POST
            && asked.body["reason"] == "Unsupported"
            && regarding["kind"] == "PodGroup"
    })
    .await;
    assert_eq!(event.body["regarding"]["name"], "poison");
    assert_eq!(event.body["note"], says);

    // Another pod may make the difference: it is tried once more, and then never again.
    for object in facts(gang("poison", 3)) {
        inbox.watched(object.into()).await;
    }
    tokio::time::timeout(PATIENCE, relisted.changed())
        .await
        .unwrap()
        .unwrap();
    for pods in [3, 4] {
        let world = [vec![node()], gang("poison", pods), gang("late", 2)];
        list(&inbox, &facts(world.concat())).await;
        let path = format!("/pods/poison-{}/", pods - 1);
        asked(&api, "condition", |asked| {
            let message = asked.body["status"]["conditions"][0]["message"].as_str();
            let last = "alone until the scheduler restarts";
            asked.path.contains(&path) && message.is_some_and(|message| message.ends_with(last))
        })
        .await;
    }
    asked(&api, "bind", |asked| asked.path.contains("/late-1/binding")).await;
    assert_eq!(metrics.panics.get(), 2);
    let bound = |asked: &Asked| asked.path.contains("/poison-") && asked.path.contains("/binding");
    assert!(!api.asked().iter().any(bound));
    inbox.stop();
    let ended = tokio::task::spawn_blocking(|| running.join())
        .await
        .unwrap();
    assert!(matches!(ended, Ok(Ended::Stopped)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_makes_the_engine_panic_is_not_answered_and_all_others_are() {
    let api = FakeApi::start(|_| -> Response { axum::Json(json!({})).into_response() }).await;
    let (mut driver, mut relisted) = driver_at(&api.config);
    // One of two members exists, so the gang is never tried.
    driver.engine.plant_panic("vision/poison");
    let handles = driver.handles.clone();
    let world = [vec![node()], gang("healthy", 2), gang("poison", 1)];
    list(&handles.inbox, &facts(world.concat())).await;
    let running = std::thread::spawn(move || driver.run());
    let explain = |name: &str| handles.explain(inbox::Asked::Gang(name.to_owned()));

    assert!(explain("vision/poison").await.is_none());
    tokio::time::timeout(PATIENCE, relisted.changed())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(handles.metrics.panics.get(), 1);
    list(&handles.inbox, &facts(world.concat())).await;
    let healthy = explain("vision/healthy").await;
    assert!(matches!(healthy, Some(Explained::Explanation(_))));
    handles.inbox.stop();
    let ended = tokio::task::spawn_blocking(|| running.join())
        .await
        .unwrap();
    assert!(matches!(ended, Ok(Ended::Stopped)));
}
