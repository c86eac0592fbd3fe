//! An API server for tests that answers as it is told and remembers what it was asked.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::Response;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// A request as the API server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) content_type: String,
    /// Which forms of an answer are welcome.
    pub(crate) accepts: String,
    pub(crate) body: serde_json::Value,
}

type Answer = dyn Fn(&Asked) -> Response + Send + Sync;

/// The server; it ends with the test's runtime.
pub(crate) struct FakeApi {
    pub(crate) config: kube::Config,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Clone)]
struct Shared {
    answer: Arc<Answer>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FakeApi {
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::default();
        let shared = Shared {
            answer: Arc::new(answer),
            asked: Arc::clone(&asked),
        };
        let router = Router::new().fallback(handle).with_state(shared);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            config: kube::Config::new(url.parse().unwrap()),
            asked,
        }
    }

    /// Everything that was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn handle(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text_of = |name| {
        let value = headers.get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or_default().to_owned()
    };
    let asked = Asked {
        method,
        path: uri.to_string(),
        content_type: text_of(header::CONTENT_TYPE),
        accepts: text_of(header::ACCEPT),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    shared.asked.lock().unwrap().push(asked.clone());
    (shared.answer)(&asked)
}
