//! The configuration that is in force.

use crate::config::InForce;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;

pub(super) fn page(in_force: Arc<InForce>) -> Router {
    Router::new()
        .route("/debug/configuration", get(configuration))
        .with_state(in_force)
}

async fn configuration(State(in_force): State<Arc<InForce>>) -> Response {
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
