//! All gangs, for whoever is on this machine.

use super::{Sources, not_leading, silent};
use crate::gangs::Gangs;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};

pub(super) fn page(sources: Sources) -> Router {
    Router::new()
        .route("/gangs", get(gangs))
        .with_state(sources)
}

async fn gangs(State(sources): State<Sources>) -> Response {
    match sources.reports().await {
        Some(reports) if reports.is_leader && reports.is_synced => {
            Json(Gangs::of(&reports.gangs, reports.taken_ms)).into_response()
        }
        Some(_) => not_leading(),
        None => silent(),
    }
}
