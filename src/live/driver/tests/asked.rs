//! Binds and questions of kube-scheduler, in the whole loop, against an API server that says yes.

use super::poison::{PATIENCE, asked, list, node};
use super::{driver, driver_at};
use crate::handles::inbox::{OfNodes, OfVictims};
use crate::handles::{Clock, Handles};
use crate::kube::connection::fake::FakeApi;
use crate::kube::convert::{Converter, Document, from_value};
use crate::live::driver::Ended;
use crate::live::recording::{JournalFile, Recording};
use axum::response::{IntoResponse, Response};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::extender::{BindAnswer, NodeAnswer, Unanswered};
use gpu_batch_policies::facts::Uid;
use gpu_batch_policies::settings::Settings;
use gpu_batch_simulator::journal::{Reader, replay};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const POD: &str = "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234";

fn uid() -> Uid {
    Uid::parse(POD).unwrap()
}

fn place() -> OwnedSemaphorePermit {
    Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap()
}

/// A node, a queue and a pod of the queue that kube-scheduler places.
fn world() -> Vec<Object> {
    let queue = json!({
        "apiVersion": "gpu-batch.io/v1alpha1", "kind": "Queue", "metadata": {"name": "a"},
        "spec": {"resources": [{"name": "nvidia.com/gpu", "quota": "8"}]},
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "p", "namespace": "vision", "uid": POD,
            "labels": {"gpu-batch.io/queue": "a"},
        },
        "spec": {"schedulerName": "default-scheduler", "containers": [
            {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
        ]},
    });
    let now_ms = Clock::start().now_ms();
    let converter = Converter::new("gpu-batch", now_ms);
    let mut converter = converter.with_extended(Some("default-scheduler"));
    let read = |object: Value| match from_value(object, &mut converter) {
        Ok(Document::Object(object)) => *object,
        other => panic!("{other:?}"),
    };
    [node(), queue, pod].into_iter().map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_bound_as_kube_scheduler_asks_and_the_asker_hears_of_it() {
    let api = FakeApi::start(|_| -> Response { axum::Json(json!({})).into_response() }).await;
    let (mut driver, _relisted) = driver_at(&api.config);
    let handles: Handles = driver.handles.clone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let file = JournalFile::create(&path, 1 << 20).unwrap();
    let recording = Recording::start(file, &Settings::default(), &handles.metrics);
    driver.recording = Some(recording.unwrap());
    list(&handles.inbox, &world()).await;
    let running = std::thread::spawn(move || driver.run());
    let nodes = || OfNodes {
        pod: uid(),
        nodes: ["n1".into(), "n2".into()].into(),
    };
    let mut filtered = handles.filter(nodes()).await.unwrap();
    while filtered == Err(Unanswered::NotLeading) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        filtered = handles.filter(nodes()).await.unwrap();
    }
    let unknown = NodeAnswer::Hopeless("gpu-batch has not seen the node".into());
    assert_eq!(filtered, Ok(vec![NodeAnswer::Fits, unknown]));
    let scores = handles.score(nodes()).await.unwrap().unwrap();
    assert!(scores[0] > scores[1], "{scores:?}");
    let groups = [vec![], vec![Uid(7)]].into();
    let victims = OfVictims { pod: uid(), groups };
    assert_eq!(
        handles.victims(victims).await.unwrap(),
        Ok(vec![true, true])
    );

    let refused = handles.bind(uid(), "n2".into(), place()).await.unwrap();
    assert!(matches!(refused, Ok(BindAnswer::Refused(_))), "{refused:?}");
    let bound = handles.bind(uid(), "n1".into(), place());
    let bound = tokio::time::timeout(PATIENCE, bound)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(bound, Ok(BindAnswer::Bound));
    let binding = "/api/v1/namespaces/vision/pods/p/binding";
    asked(&api, "bind", |asked| asked.path.starts_with(binding)).await;
    handles.inbox.stop();
    assert!(matches!(running.join().unwrap(), Ended::Stopped));

    // The questions are not in the journal, and the binds are: what followed follows again.
    let journal = std::fs::File::open(path).unwrap();
    let replayed = replay(&mut Reader::new(journal).unwrap());
    assert_eq!(replayed.difference, None);
    assert!(replayed.damage.is_none(), "{:?}", replayed.damage);
    assert!(replayed.commands > 0);
}

#[tokio::test]
async fn who_waits_for_a_bind_is_told_when_the_engine_is_replaced_and_forgotten_when_gone() {
    let (mut driver, _relisted) = driver();
    let inbox = Arc::clone(&driver.handles.inbox);
    let handles = driver.handles.clone();
    let waiting = tokio::spawn(async move { handles.bind(uid(), "n1".into(), place()).await });
    let wait_for_it = || {
        let mut batch = inbox.take(Duration::from_secs(5), true);
        batch.questions.pop()
    };
    let mut question = None;
    while question.is_none() {
        tokio::task::yield_now().await;
        question = inbox.take(Duration::ZERO, true).questions.pop();
    }
    let Some(super::Question::Bind(asker)) = question else {
        panic!("{question:?}");
    };
    driver.binds.add(asker);
    assert!(driver.recover(&"boom"));
    assert_eq!(waiting.await.unwrap(), None);

    let places = Arc::new(Semaphore::new(1));
    let place = Arc::clone(&places).try_acquire_owned().unwrap();
    drop(
        tokio::time::timeout(
            Duration::ZERO,
            driver.handles.bind(uid(), "n1".into(), place),
        )
        .await,
    );
    driver.answer(wait_for_it().into_iter().collect()).unwrap();
    assert_eq!(places.available_permits(), 1);
}
