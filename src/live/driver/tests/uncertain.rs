//! To stop while it is uncertain whether a pod was bound.

use super::driver_at;
use super::poison::{PATIENCE, asked, facts, gang, list, node};
use crate::kube::connection::fake::FakeApi;
use crate::live::driver::{Ended, Standing};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::lease::LeaseSettings;
use gpu_batch_policies::settings::{Leadership, Settings};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A leader asks the API server what became of a binding with an unknown outcome. A process that
/// does not lead never asks, so it has nothing to wait for.
#[tokio::test(flavor = "multi_thread")]
async fn without_leadership_nobody_waits_for_what_is_uncertain() {
    let lost = AtomicBool::new(false);
    let api = FakeApi::start(move |asked| {
        if asked.path.contains("/leases") {
            let holder = match lost.load(Ordering::Relaxed) {
                true => "other",
                false => "me",
            };
            let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15});
            let metadata = json!({"resourceVersion": "1"});
            return axum::Json(json!({"metadata": metadata, "spec": spec})).into_response();
        }
        if asked.path.contains("/pods/") {
            lost.store(true, Ordering::Relaxed);
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        axum::Json(json!({})).into_response()
    })
    .await;
    let (mut driver, _relisted) = driver_at(&api.config);
    let settings = Settings {
        leadership: Leadership::Elected(LeaseSettings {
            identity: "me".into(),
            duration_ms: 15_000,
            renew_deadline_ms: 10_000,
            retry_ms: 100,
        }),
        ..Settings::default()
    };
    driver.standing = Standing::new(&settings, String::new());
    driver.engine = Engine::new(settings);
    let (inbox, health) = (
        Arc::clone(&driver.handles.inbox),
        Arc::clone(&driver.handles.health),
    );
    list(&inbox, &facts([vec![node()], gang("train", 2)].concat())).await;
    let running = std::thread::spawn(move || driver.run());
    asked(&api, "bind", |asked| asked.path.contains("/binding")).await;
    let start = Instant::now();
    while health.is_leader() {
        assert!(start.elapsed() < PATIENCE, "it leads still");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let stopping = Instant::now();
    inbox.stop();
    let ended = tokio::task::spawn_blocking(|| running.join())
        .await
        .unwrap();
    let took = stopping.elapsed();
    assert!(matches!(ended, Ok(Ended::Stopped)));
    assert!(took < Duration::from_secs(4), "{took:?}");
}
