//! The pages that are views: the configuration, all gangs, and why they wait.

use super::{not_leading, silent};
use crate::handles::Handles;
use crate::handles::inbox::{Asked, Explained};
use crate::live::config::InForce;
use crate::views::explain::ExplanationView;
use crate::views::gangs::Gangs;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The shortest time between two explanations: each looks at all nodes and gangs.
const EXPLANATION_INTERVAL: Duration = Duration::from_millis(100);

/// The configuration that is in force.
pub(super) fn configuration(in_force: Arc<InForce>) -> Router {
    Router::new()
        .route("/debug/configuration", get(in_force_now))
        .with_state(in_force)
}

async fn in_force_now(State(in_force): State<Arc<InForce>>) -> Response {
    let (file, refused) = in_force.get();
    let file = match serde_saphyr::to_string(&file) {
        Ok(file) => file,
        Err(error) => {
            return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
        }
    };
    match refused {
        None => file.into_response(),
        Some(problems) => {
            let text = format!("{problems}\n\nIn force is still:\n{file}");
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

/// The page with all gangs, for clients on this machine.
pub(super) fn gangs(handles: Handles) -> Router {
    Router::new()
        .route("/gangs", get(all_gangs))
        .with_state(handles)
}

async fn all_gangs(State(handles): State<Handles>) -> Response {
    match handles.reports().await {
        Some(reports) if reports.is_leader && reports.is_synced => {
            Json(Gangs::of(&reports.gangs, reports.taken_ms)).into_response()
        }
        Some(_) => not_leading(),
        None => silent(),
    }
}

/// When the last explanation was asked for. Locked while one is made, so that there is one at a
/// time.
type LastExplanation = Arc<Mutex<Option<Instant>>>;

/// What the pages of explanations share.
type Shared = (Handles, LastExplanation);

/// The pages that say why gangs wait, for clients on this machine.
pub(super) fn explanations(handles: Handles) -> Router {
    Router::new()
        .route("/explain/podgroup/{*name}", get(of_gang))
        .route("/explain/pod/{*name}", get(of_pod))
        .with_state((handles, LastExplanation::default()))
}

async fn of_gang(State(shared): State<Shared>, Path(name): Path<String>) -> Response {
    explain(shared, Asked::Gang(name)).await
}

async fn of_pod(State(shared): State<Shared>, Path(name): Path<String>) -> Response {
    explain(shared, Asked::Pod(name)).await
}

async fn explain((handles, last): Shared, asked: Asked) -> Response {
    let mut last = last.lock().await;
    if let Some(last) = *last {
        tokio::time::sleep_until(last + EXPLANATION_INTERVAL).await;
    }
    *last = Some(Instant::now());
    match handles.explain(asked).await {
        Some(Explained::Explanation(explanation)) => {
            Json(ExplanationView::from(*explanation)).into_response()
        }
        Some(Explained::NotFound(error)) => {
            (StatusCode::NOT_FOUND, format!("{error}\n")).into_response()
        }
        Some(Explained::NotLeading) => not_leading(),
        None => silent(),
    }
}
