//! Health, readiness and metrics over HTTP.
//!
//! | path | answer |
//! |---|---|
//! | `/healthz` | 200 while the loop turns |
//! | `/readyz` | 200 once decisions are made; else 503 and what is missing, a line each |
//! | `/metrics` | OpenMetrics |
//! | `/debug/audit` | every invariant that is violated, a line each; 500 if there is any |
//! | `/debug/compare` | what the engine has otherwise than the API server; 500 if there is any |
//! | `/debug/configuration` | the configuration in force; 500 and why if the file is refused |
//! | `/gangs` | all gangs and why they wait, as JSON; on this machine only |
//! | `/explain/podgroup/NS/NAME` | why it waits, as JSON; on this machine only. Also `pod` |
//!
//! Nothing here touches the engine: the driver is asked for copies, at most one a second of each,
//! and for explanations, at most ten a second. The pages that anybody may ask for name queues, and
//! pods and nodes only in the violation of an invariant; nothing else that users wrote into their
//! objects gets there. [`connections`] bounds what requests cost. Explanations and the list of
//! gangs name gangs, nodes and their taints, so they are only for users of this machine and for
//! users that Kubernetes forwards to it (`pods/portforward`, see [`crate::kube::leader`]).

mod connections;
mod pages;

use super::comparer::Comparer;
use super::config::InForce;
use crate::handles::Handles;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use connections::Pages;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The loop counts as stuck if it has not turned for this long; when idle, it turns every five
/// seconds.
const STUCK_AFTER_MS: u64 = 30_000;
/// How old the answer of an audit may be: each audit holds the loop up.
const AUDIT_MAX_AGE: Duration = Duration::from_secs(1);
/// How old the answer of a comparison may be: each comparison lists all nodes and pods.
const COMPARISON_MAX_AGE: Duration = Duration::from_secs(10);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the last audit found, and when. Locked while an audit runs, so that there is one at a time.
type LastAudit = Arc<Mutex<Option<(Instant, Vec<String>)>>>;

/// What the last comparison said, and when it began. Locked while one runs, so that there is one at
/// a time.
type LastComparison = Arc<Mutex<Option<(Instant, StatusCode, String)>>>;

/// Serves until the task is cancelled.
pub(crate) async fn serve(listener: TcpListener, comparer: Comparer, in_force: Arc<InForce>) {
    connections::accept(listener, pages(comparer, in_force)).await;
}

fn pages(comparer: Comparer, in_force: Arc<InForce>) -> Pages {
    let handles = comparer.handles.clone();
    let audit = Router::new()
        .route("/debug/audit", get(audit))
        .with_state((handles.clone(), LastAudit::default()));
    let compare = Router::new()
        .route("/debug/compare", get(compare))
        .with_state((comparer, LastComparison::default()));
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(handles.clone())
        .merge(pages::configuration(in_force))
        .merge(audit)
        .merge(compare);
    let private = pages::gangs(handles.clone())
        .merge(pages::explanations(handles))
        .route_layer(from_fn(connections::must_be_loopback));
    Pages {
        local: router.clone().merge(private),
        everybody: router,
    }
}

async fn healthz(State(handles): State<Handles>) -> Response {
    let silent_ms = handles
        .clock
        .now_ms()
        .saturating_sub(handles.health.last_turn_ms());
    if silent_ms < STUCK_AFTER_MS {
        return "ok\n".into_response();
    }
    let message = format!("the loop has not turned for {silent_ms} ms\n");
    (StatusCode::SERVICE_UNAVAILABLE, message).into_response()
}

async fn readyz(State(handles): State<Handles>) -> Response {
    let missing = handles.health.missing();
    if missing.is_empty() {
        let role = if handles.health.is_leader() {
            "leader"
        } else {
            "standby"
        };
        return format!("ok: {role}\n").into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, lines(&missing)).into_response()
}

async fn metrics(State(handles): State<Handles>) -> Response {
    let Some(reports) = handles.reports().await else {
        return silent();
    };
    match handles.metrics.encode(&reports) {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn audit(State((handles, last)): State<(Handles, LastAudit)>) -> Response {
    let mut last = last.lock().await;
    if last
        .as_ref()
        .is_none_or(|(at, _)| at.elapsed() >= AUDIT_MAX_AGE)
    {
        *last = handles
            .audit()
            .await
            .map(|violations| (Instant::now(), violations));
    }
    match &*last {
        Some((_, violations)) if violations.is_empty() => "ok\n".into_response(),
        Some((_, violations)) => {
            (StatusCode::INTERNAL_SERVER_ERROR, lines(violations)).into_response()
        }
        None => silent(),
    }
}

async fn compare(State((comparer, last)): State<(Comparer, LastComparison)>) -> Response {
    let mut last = last.lock().await;
    let fresh = |(began, ..): &&(Instant, _, _)| began.elapsed() < COMPARISON_MAX_AGE;
    if let Some((_, status, text)) = last.as_ref().filter(fresh) {
        return (*status, text.clone()).into_response();
    }
    let began = Instant::now();
    // A client that hangs up ends the comparison, and must not begin the next one at once.
    let given_up = "the last comparison was given up\n".to_owned();
    *last = Some((began, StatusCode::SERVICE_UNAVAILABLE, given_up));
    let (status, text) = match comparer.compare().await {
        Ok(differences) if differences.is_empty() => (StatusCode::OK, "ok\n".to_owned()),
        Ok(differences) => (StatusCode::INTERNAL_SERVER_ERROR, lines(&differences)),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    };
    *last = Some((began, status, text.clone()));
    (status, text).into_response()
}

fn silent() -> Response {
    (
        StatusCode::SERVICE_UNAVAILABLE,
        "the loop does not answer\n",
    )
        .into_response()
}

/// The answer of a process that decides nothing now: it has not listed everything, or another
/// leads.
fn not_leading() -> Response {
    let message = "this scheduler does not lead, or has not read everything yet; the Lease names \
                   the one that leads\n";
    (StatusCode::SERVICE_UNAVAILABLE, message).into_response()
}

fn lines(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests;
