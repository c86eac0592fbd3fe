//! From a request to a question for the loop, and from its answer to a response.

use super::api::{
    BindAnswered, BindAsked, Filtered, MetaPod, Named, NodeList, NodesAsked, Scored, Victims,
    VictimsAllowed, VictimsAsked, read,
};
use crate::handles::Handles;
use crate::handles::inbox::{Answer, OfNodes, OfVictims};
use crate::kube::convert::named_uid;
use crate::views::table::printable;
use axum::body::{Bytes, HttpBody};
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use gpu_batch_policies::extender::{BindAnswer, NodeAnswer, Unanswered};
use gpu_batch_policies::facts::Uid;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

/// The longest body, in bytes: 5,000 whole nodes are about 25 MB.
pub(super) const BODY_MAX_BYTES: usize = 64 << 20;
/// The longest body of a bind, which has names only, in bytes.
const BIND_MAX_BYTES: usize = 64 << 10;
/// How many long bodies are in memory at a time. kube-scheduler asks for one pod after the other.
const LONG_BODIES_MAX: usize = 4;
/// How many binds may wait for their outcomes.
pub(super) const BINDS_MAX: usize = 1_024;
/// How long a body may take to arrive.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may take: less than the five seconds after which kube-scheduler gives up, so
/// that it hears why.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a pod may be unknown here: kube-scheduler may have heard of it first.
const UNSEEN_MAX: Duration = Duration::from_millis(500);
/// How soon a pod that is unknown is asked about again.
const UNSEEN_RETRY: Duration = Duration::from_millis(5);

/// What all requests share.
#[derive(Clone)]
struct Shared {
    handles: Handles,
    long_bodies: Arc<Semaphore>,
    binds: Arc<Semaphore>,
}

/// A request that is not answered: the status code and why. kube-scheduler never shows why, so it
/// is logged here.
struct Refusal(StatusCode, String);

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoAnswer {
    /// The loop does not answer in time, or has begun anew.
    Silent,
    /// The engine has none.
    Unanswered(Unanswered),
}

/// The four paths.
pub(super) fn router(handles: Handles) -> Router {
    let shared = Shared {
        handles,
        long_bodies: Arc::new(Semaphore::new(LONG_BODIES_MAX)),
        binds: Arc::new(Semaphore::new(BINDS_MAX)),
    };
    Router::new()
        .route("/filter", post(filter))
        .route("/prioritize", post(prioritize))
        .route("/preempt", post(preempt))
        .layer(DefaultBodyLimit::max(BODY_MAX_BYTES))
        .merge(
            Router::new()
                .route("/bind", post(bind))
                .layer(DefaultBodyLimit::max(BIND_MAX_BYTES)),
        )
        .with_state(shared)
}

async fn filter(State(shared): State<Shared>, request: Request) -> Result<Response, Refusal> {
    let _room = shared.room().await;
    let body = body(request, BODY_MAX_BYTES).await?;
    let asked: NodesAsked<'_> = read(&body)?;
    let (question, whole) = question(asked)?;
    let answers = patient(|| shared.handles.filter(question.clone())).await;
    let answers = match answers {
        Ok(answers) => answers,
        Err(why) => {
            let error = why.to_string();
            let told = Json(Filtered {
                error,
                ..Filtered::default()
            });
            return Ok(why.closing(told.into_response()));
        }
    };
    let mut filtered = Filtered::default();
    let mut fitting = Vec::new();
    for (place, (node, answer)) in question.nodes.iter().zip(answers).enumerate() {
        match answer {
            NodeAnswer::Fits => fitting.push(place),
            NodeAnswer::Refused(why) => drop(filtered.failed_nodes.insert(node, why)),
            NodeAnswer::Hopeless(why) => {
                filtered.failed_and_unresolvable_nodes.insert(node, why);
            }
        }
    }
    match whole {
        Some(nodes) => {
            let items = fitting.into_iter().map(|place| nodes[place]).collect();
            filtered.nodes = Some(NodeList { items: Some(items) });
        }
        None => {
            let names = fitting.into_iter().map(|place| &*question.nodes[place]);
            filtered.node_names = Some(names.collect());
        }
    }
    Ok(Json(filtered).into_response())
}

async fn prioritize(State(shared): State<Shared>, request: Request) -> Result<Response, Refusal> {
    let _room = shared.room().await;
    let body = body(request, BODY_MAX_BYTES).await?;
    let (question, _) = question(read(&body)?)?;
    let scores = match patient(|| shared.handles.score(question.clone())).await {
        Ok(scores) => scores,
        Err(why) => return Ok(why.unavailable()),
    };
    let nodes = question.nodes.iter().zip(scores);
    let scored = nodes.map(|(node, score)| Scored { host: node, score });
    Ok(Json(scored.collect::<Vec<_>>()).into_response())
}

async fn preempt(State(shared): State<Shared>, request: Request) -> Result<Response, Refusal> {
    let _room = shared.room().await;
    let body = body(request, BODY_MAX_BYTES).await?;
    let asked: VictimsAsked = read(&body)?;
    let pod = identity(&asked.pod.metadata.uid)?;
    let victims = asked.victims()?;
    let groups = victims.values().map(|victims| {
        let pods = victims.pods.iter().flatten();
        pods.map(|MetaPod { uid }| identity(uid)).collect()
    });
    let groups = groups.collect::<Result<Vec<Vec<Uid>>, Refusal>>()?.into();
    let question = OfVictims { pod, groups };
    let allowed = match patient(|| shared.handles.victims(question.clone())).await {
        Ok(allowed) => allowed,
        Err(why) => return Ok(why.unavailable()),
    };
    let allowed = victims
        .into_iter()
        .zip(allowed)
        .filter(|(_, allowed)| *allowed);
    let node_name_to_meta_victims: BTreeMap<Box<str>, Victims<MetaPod>> =
        allowed.map(|(victims, _)| victims).collect();
    let told = VictimsAllowed {
        node_name_to_meta_victims,
    };
    Ok(Json(told).into_response())
}

async fn bind(State(shared): State<Shared>, request: Request) -> Result<Response, Refusal> {
    let told = |error: String| Json(BindAnswered { error }).into_response();
    let Ok(place) = Arc::clone(&shared.binds).try_acquire_owned() else {
        return Ok(told(format!(
            "{BINDS_MAX} binds wait for their outcomes already; ask again"
        )));
    };
    let body = body(request, BIND_MAX_BYTES).await?;
    let asked: BindAsked = read(&body)?;
    let pod = identity(&asked.pod_uid)?;
    let bound = shared.handles.bind(pod, asked.node, place);
    Ok(match timeout(ANSWER_TIMEOUT, bound).await {
        Ok(Some(Ok(BindAnswer::Bound))) => told(String::new()),
        Ok(Some(Ok(BindAnswer::Refused(why)))) => told(why.into()),
        Ok(Some(Ok(BindAnswer::UnderWay))) | Err(_) => {
            let seconds = ANSWER_TIMEOUT.as_secs();
            told(format!(
                "the outcome of the bind is not known after {seconds} s"
            ))
        }
        Ok(Some(Err(why))) => {
            let why = NoAnswer::Unanswered(why);
            why.closing(told(why.to_string()))
        }
        Ok(None) => told(NoAnswer::Silent.to_string()),
    })
}

impl Shared {
    /// Waits until there is room for one more long body.
    async fn room(&self) -> Option<SemaphorePermit<'_>> {
        self.long_bodies.acquire().await.ok()
    }
}

/// Reads the body of a request, which is bounded in length and time.
async fn body(request: Request, bytes_max: usize) -> Result<Bytes, Refusal> {
    // Pages on the web can make a browser send a body to this machine, but not as this type.
    let content_type = request.headers().get(CONTENT_TYPE);
    let is_json = content_type.is_some_and(|it| it.as_bytes().starts_with(b"application/json"));
    if !is_json {
        let why = "the Content-Type must be application/json".to_owned();
        return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let too_long = || {
        let why = format!("the body is longer than {bytes_max} bytes");
        Refusal(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    let bytes = usize::try_from(request.body().size_hint().lower());
    if bytes.is_ok_and(|bytes| bytes > bytes_max) {
        return Err(too_long());
    }
    match timeout(BODY_TIMEOUT, Bytes::from_request(request, &())).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => Err(too_long()),
        Ok(Err(error)) => Err(Refusal(error.status(), error.body_text())),
        Err(_) => {
            let why = format!(
                "the body did not arrive within {} s",
                BODY_TIMEOUT.as_secs()
            );
            Err(Refusal(StatusCode::REQUEST_TIMEOUT, why))
        }
    }
}

/// The question about nodes; and the nodes as they came, if they came whole.
fn question(asked: NodesAsked<'_>) -> Result<(OfNodes, Option<Vec<&RawValue>>), Refusal> {
    let pod = identity(&asked.pod.metadata.uid)?;
    if let Some(names) = asked.node_names {
        let nodes = names.into();
        return Ok((OfNodes { pod, nodes }, None));
    }
    let nodes = asked.nodes.ok_or("neither Nodes nor NodeNames is set")?;
    let whole = nodes.items.unwrap_or_default();
    let named = whole.iter().map(|node| {
        let node: Named = serde_json::from_str(node.get())
            .map_err(|error| format!("a node has no metadata.name: {error}"))?;
        Ok(node.metadata.name.into())
    });
    let nodes = named.collect::<Result<Vec<Box<str>>, Refusal>>()?.into();
    Ok((OfNodes { pod, nodes }, Some(whole)))
}

/// What the engine calls a pod, as the watches do.
fn identity(uid: &str) -> Result<Uid, Refusal> {
    match uid {
        "" => Err("a pod has no UID".into()),
        uid => Ok(named_uid("Pod", "", "", uid)),
    }
}

/// Asks until the pod is known, for as long as it may be unknown.
async fn patient<T, F>(ask: impl Fn() -> F) -> Result<T, NoAnswer>
where
    F: Future<Output = Option<Answer<T>>>,
{
    let known_by = Instant::now() + UNSEEN_MAX;
    loop {
        match timeout(ANSWER_TIMEOUT, ask()).await {
            Ok(Some(Ok(answer))) => return Ok(answer),
            Ok(Some(Err(Unanswered::PodNotSeen))) if Instant::now() < known_by => {
                sleep(UNSEEN_RETRY).await;
            }
            Ok(Some(Err(why))) => return Err(NoAnswer::Unanswered(why)),
            Ok(None) | Err(_) => return Err(NoAnswer::Silent),
        }
    }
}

impl NoAnswer {
    /// A response that has no other place for the reason.
    fn unavailable(self) -> Response {
        self.closing((StatusCode::SERVICE_UNAVAILABLE, format!("{self}\n")).into_response())
    }

    /// Ends the connection after a response of a replica that does not lead: the next one may reach
    /// the replica that does.
    fn closing(self, mut response: Response) -> Response {
        if self == Self::Unanswered(Unanswered::NotLeading) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => formatter.write_str("gpu-batch does not answer; ask again"),
            Self::Unanswered(why) => why.fmt(formatter),
        }
    }
}

impl<T: Into<String>> From<T> for Refusal {
    /// A body that cannot be used.
    fn from(why: T) -> Self {
        Self(StatusCode::BAD_REQUEST, why.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(status, why) = self;
        warn!("refused a request to the extender: {}", printable(&why));
        (status, format!("{why}\n")).into_response()
    }
}
