//! Why gangs wait, for whoever is on this machine.

use super::{Sources, not_leading, silent};
use crate::driver::{Asked, Explained};
use crate::explain::ExplanationView;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long it is at least from one explanation to the next: each looks at all nodes and gangs.
const EXPLANATION_INTERVAL: Duration = Duration::from_millis(100);

/// When the last explanation was asked for. Held while one is made, so that there is one at a time.
type LastExplanation = Arc<Mutex<Option<Instant>>>;

type Shared = (Sources, LastExplanation);

pub(super) fn pages(sources: Sources) -> Router {
    Router::new()
        .route("/explain/podgroup/{*name}", get(of_gang))
        .route("/explain/pod/{*name}", get(of_pod))
        .with_state((sources, LastExplanation::default()))
}

async fn of_gang(State(shared): State<Shared>, Path(name): Path<String>) -> Response {
    explain(shared, Asked::Gang(name)).await
}

async fn of_pod(State(shared): State<Shared>, Path(name): Path<String>) -> Response {
    explain(shared, Asked::Pod(name)).await
}

async fn explain((sources, last): Shared, asked: Asked) -> Response {
    let mut last = last.lock().await;
    if let Some(last) = *last {
        tokio::time::sleep_until(last + EXPLANATION_INTERVAL).await;
    }
    *last = Some(Instant::now());
    match sources.explain(asked).await {
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
