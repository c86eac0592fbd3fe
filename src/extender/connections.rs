//! Connections of kube-scheduler, which keeps them alive: their number, their age and the time
//! until a client has shown who it is are bounded, and none is cut off in the middle of a request.

use super::credentials::{Credentials, Keyring};
use crate::handles::connections;
use axum::Router;
use axum::http::header::{CONNECTION, WWW_AUTHENTICATE};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::debug;

/// How long a client may take to show who it is.
pub(super) const INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may wait for its next request: longer than the 90 seconds after which
/// kube-scheduler closes it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How old a connection may get. The next one shows credentials that are valid then.
pub(super) const AGE_MAX: Duration = Duration::from_secs(600);
/// How long the last request of an old connection may take.
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest head of a request, in bytes.
const HEAD_MAX_BYTES: usize = 64 * 1_024;

/// Answers on every connection until the task is cancelled, which ends all connections.
pub(super) async fn accept(
    listener: TcpListener,
    keyring: Keyring,
    router: Router,
    age_max: Duration,
) {
    let answer = |stream, _| answer(stream, keyring.now(), router.clone(), age_max);
    connections::accept(listener, "kube-scheduler", answer).await;
}

async fn answer(
    stream: TcpStream,
    credentials: Arc<Credentials>,
    router: Router,
    age_max: Duration,
) {
    // Answers are written at once; without this, the system may wait for more of them.
    if let Err(error) = stream.set_nodelay(true) {
        debug!("a connection ended: {error}");
        return;
    }
    let Some(acceptor) = credentials.acceptor() else {
        return talk(stream, credentials, false, router, age_max).await;
    };
    match timeout(INTRODUCTION_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            let trusted = stream.get_ref().1.peer_certificates().is_some();
            talk(stream, credentials, trusted, router, age_max).await;
        }
        Ok(Err(error)) => debug!("refused a connection to the extender: {error}"),
        Err(_) => debug!("closed a connection that began with nothing"),
    }
}

/// Answers all requests of a connection. `trusted`: the client has shown a certificate; if not,
/// each request has to show who asks, and the first one soon.
async fn talk<S>(
    stream: S,
    credentials: Arc<Credentials>,
    trusted: bool,
    router: Router,
    age_max: Duration,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let introduced = AtomicBool::new(trusted);
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request: Request<Incoming>| {
        let admitted = trusted || credentials.admits(request.headers());
        introduced.fetch_or(admitted, Ordering::Relaxed);
        let answer = admitted.then(|| router.call(request));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => Ok(stranger()),
            }
        }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_buf_size(HEAD_MAX_BYTES);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service));
    let old_at = Instant::now() + age_max;
    if !trusted {
        match timeout(INTRODUCTION_TIMEOUT.min(age_max), connection.as_mut()).await {
            Ok(ended) => return tell(ended),
            Err(_) if introduced.load(Ordering::Relaxed) => {}
            Err(_) => return debug!("closed a connection of somebody who did not say who it is"),
        }
    }
    match timeout_at(old_at, connection.as_mut()).await {
        Ok(ended) => return tell(ended),
        // A request that is under way is answered, and no other one.
        Err(_) => connection.as_mut().graceful_shutdown(),
    }
    match timeout(LAST_REQUEST_TIMEOUT, connection).await {
        Ok(ended) => tell(ended),
        Err(_) => debug!("closed an old connection whose last request did not end"),
    }
}

/// Logs how a connection ended. The error is the client's: it went away, was too slow, or does not
/// speak HTTP.
fn tell(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        debug!("a connection ended: {error}");
    }
}

/// The response to somebody who may not ask. The body of the request stays unread.
fn stranger() -> Response {
    let why = "the extender needs a client certificate of its authority, or its token; where it \
               needs neither, ask for it as http://localhost:PORT or http://127.0.0.1:PORT\n";
    let head = [(CONNECTION, "close"), (WWW_AUTHENTICATE, "Basic")];
    (StatusCode::UNAUTHORIZED, head, why).into_response()
}
