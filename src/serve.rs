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
//! pods and nodes only in the violation of an invariant; whatever else users wrote into their
//! objects never gets there. [`connections`] bounds what that costs. Explanations and the list of
//! gangs name gangs, nodes and their taints, so they are for whoever is on this machine or is let
//! through to it by Kubernetes (`pods/portforward`, see [`crate::leader`]).

mod configuration;
mod connections;
mod explain;
mod gangs;
mod host;
mod metrics;

pub(crate) use metrics::Metrics;

use crate::comparer::Comparer;
use crate::config::InForce;
use crate::driver::{Asked, Clock, Explained, Health, Inbox, Question, Reports};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use connections::Pages;
use gpu_batch_policies::report::Inventory;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, oneshot};
use tokio::time::Instant;

/// The loop is stuck if it has not turned for so long; idle, it turns every five seconds.
const STUCK_AFTER_MS: u64 = 30_000;
/// How long an answer of the driver may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How old the answer of an audit may be: it holds up the loop, whoever asks for it.
const AUDIT_MAX_AGE: Duration = Duration::from_secs(1);
/// How old the answer of a comparison may be: it lists all nodes and pods, whoever asks for it.
const COMPARISON_MAX_AGE: Duration = Duration::from_secs(10);
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the pages are made of.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Clock,
}

impl Sources {
    /// Reports of at most a second ago; `None` if the driver does not answer.
    pub(crate) async fn reports(&self) -> Option<Arc<Reports>> {
        self.ask(Question::Reports).await
    }

    /// Every violated invariant; `None` if the driver does not answer.
    pub(crate) async fn audit(&self) -> Option<Vec<String>> {
        self.ask(Question::Audit).await
    }

    /// Where every pod is and what every node holds; `None` if the driver does not answer.
    pub(crate) async fn inventory(&self) -> Option<Inventory> {
        self.ask(Question::Inventory).await
    }

    /// Why a gang waits; `None` if the driver does not answer.
    pub(crate) async fn explain(&self, asked: Asked) -> Option<Explained> {
        self.ask(|asker| Question::Explain(asked, asker)).await
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.inbox.ask(question(sender));
        tokio::time::timeout(ANSWER_TIMEOUT, receiver)
            .await
            .ok()?
            .ok()
    }
}

/// What the last audit found, and when. Held while one is made, so that there is one at a time.
type LastAudit = Arc<Mutex<Option<(Instant, Vec<String>)>>>;

/// What the last comparison said, and when it began. Held while one runs, so that there is one at a
/// time.
type LastComparison = Arc<Mutex<Option<(Instant, StatusCode, String)>>>;

/// Serves until the task is cancelled.
pub(crate) async fn serve(listener: TcpListener, comparer: Comparer, in_force: Arc<InForce>) {
    connections::accept(listener, pages(comparer, in_force)).await;
}

fn pages(comparer: Comparer, in_force: Arc<InForce>) -> Pages {
    let sources = comparer.sources.clone();
    let audit = Router::new()
        .route("/debug/audit", get(audit))
        .with_state((sources.clone(), LastAudit::default()));
    let compare = Router::new()
        .route("/debug/compare", get(compare))
        .with_state((comparer, LastComparison::default()));
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(sources.clone())
        .merge(configuration::page(in_force))
        .merge(audit)
        .merge(compare);
    let private = gangs::page(sources.clone())
        .merge(explain::pages(sources))
        .route_layer(from_fn(host::must_be_loopback));
    Pages {
        local: router.clone().merge(private),
        everybody: router,
    }
}

async fn healthz(State(sources): State<Sources>) -> Response {
    let silent_ms = sources
        .clock
        .now_ms()
        .saturating_sub(sources.health.last_turn_ms());
    if silent_ms < STUCK_AFTER_MS {
        return "ok\n".into_response();
    }
    let message = format!("the loop has not turned for {silent_ms} ms\n");
    (StatusCode::SERVICE_UNAVAILABLE, message).into_response()
}

async fn readyz(State(sources): State<Sources>) -> Response {
    let missing = sources.health.missing();
    if missing.is_empty() {
        let role = if sources.health.is_leader() {
            "leader"
        } else {
            "standby"
        };
        return format!("ok: {role}\n").into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, lines(&missing)).into_response()
}

async fn metrics(State(sources): State<Sources>) -> Response {
    let Some(reports) = sources.reports().await else {
        return silent();
    };
    match sources.metrics.encode(&reports) {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn audit(State((sources, last)): State<(Sources, LastAudit)>) -> Response {
    let mut last = last.lock().await;
    if last
        .as_ref()
        .is_none_or(|(at, _)| at.elapsed() >= AUDIT_MAX_AGE)
    {
        *last = sources
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

/// Answers for what decides nothing now: it has not read everything, or another one leads.
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
