use super::differences;
use crate::kube::connection::{self, fake::FakeApi};
use crate::live::config::Configuration;
use crate::live::scheduler::Scheduler;
use axum::body::Body;
use axum::response::IntoResponse;
use futures::stream;
use gpu_batch_policies::report::Inventory;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn what_is_missing_or_other_on_either_side_differs() {
    let inventory = |lines: &[(&str, &str)]| -> Inventory {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        lines.iter().map(owned).collect()
    };
    let known = inventory(&[("pod a", "on n1"), ("pod b", "ended"), ("pod c", "on n2")]);
    let listed = inventory(&[("pod a", "on n1"), ("pod c", "on n3"), ("pod d", "ended")]);
    let found: Vec<String> = differences(&known, &listed).into_iter().collect();
    let expected = [
        "pod b: ended here, unknown at the API server",
        "pod c: on n2 here, on n3 at the API server",
        "pod d: unknown here, ended at the API server",
    ];
    assert_eq!(found, expected);
    assert!(differences(&known, &known).is_empty());
}

const STAYS: &str = "00000000-0000-0000-0000-000000000001";
const WENT: &str = "00000000-0000-0000-0000-000000000002";
const CAME: &str = "00000000-0000-0000-0000-000000000003";

fn node(name: &str, gpus: u32) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "status": {"allocatable": {"nvidia.com/gpu": gpus.to_string(), "pods": "110"}},
    })
}

fn pod(name: &str, uid: &str, node: &str) -> Value {
    let limits = json!({"nvidia.com/gpu": "2"});
    json!({
        "metadata": {"name": name, "namespace": "ml", "uid": uid, "resourceVersion": "1"},
        "spec": {
            "schedulerName": "gpu-batch", "nodeName": node,
            "containers": [{"name": "c", "resources": {"limits": limits, "requests": limits}}],
        },
        "status": {"phase": "Running"},
    })
}

/// An API server whose watches say nothing, and whose lists change once `later` is set: as if the
/// events in between had been lost on the way.
async fn silent_api(later: Arc<AtomicBool>) -> FakeApi {
    FakeApi::start(move |asked| {
        let later = later.load(Ordering::Relaxed);
        if asked.path.contains("watch=true") {
            let silence = stream::pending::<Result<Vec<u8>, Infallible>>();
            return Body::from_stream(silence).into_response();
        }
        let items = match asked.path.split('?').next().unwrap() {
            "/api/v1/nodes" => vec![node("n1", 8), node("n2", if later { 4 } else { 8 })],
            "/api/v1/pods" if later => vec![pod("stays", STAYS, "n1"), pod("came", CAME, "n2")],
            "/api/v1/pods" => vec![pod("stays", STAYS, "n1"), pod("went", WENT, "n1")],
            _ => vec![],
        };
        let list = json!({"metadata": {"resourceVersion": "5"}, "items": items});
        list.to_string().into_response()
    })
    .await
}

#[tokio::test]
async fn lost_events_are_found() {
    let later = Arc::new(AtomicBool::new(false));
    let api = silent_api(Arc::clone(&later)).await;
    let text = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
                serveAddress: 127.0.0.1:0\nleaderElection: {enabled: false}\n";
    let configuration = Configuration::parse(text, "the test's").unwrap();
    let scheduler = Scheduler::start(&api.config, configuration).await.unwrap();
    let url = format!("http://{}", scheduler.address());
    let pages = connection::client(&kube::Config::new(url.parse().unwrap())).unwrap();
    let page = async |path: &str| {
        let request = http::Request::get(path).body(kube::client::Body::empty());
        let answer = pages.send(request.unwrap()).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    while page("/readyz").await.0 != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    // What stays as it was is not reported. (A second answer would be the first one again.)
    later.store(true, Ordering::Relaxed);
    let (status, body) = page("/debug/compare").await;
    let expected = [
        "node n1: 2 of 110 pods taken, 4 of 8 nvidia.com/gpu taken here, \
         1 of 110 pods taken, 2 of 8 nvidia.com/gpu taken at the API server",
        "node n2: 0 of 110 pods taken, 0 of 8 nvidia.com/gpu taken here, \
         1 of 110 pods taken, 2 of 4 nvidia.com/gpu taken at the API server",
        &format!("pod ml/came {CAME}: unknown here, on n2 at the API server"),
        &format!("pod ml/went {WENT}: on n1 here, unknown at the API server"),
    ];
    assert_eq!(body.lines().collect::<Vec<_>>(), expected);
    assert_eq!(status, 500);
}
