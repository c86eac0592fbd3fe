//! Connections that nobody can use to hold up the scheduler: the time and the memory of each, and
//! their number, are bounded. And which clients are on this machine: they are shown more.
//!
//! Not used: `axum::serve`, which waits for a slow client without a bound.

use crate::handles::loopback;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::{debug, warn};

/// Far below the number of files that a process may open, which requests to the API server need
/// too. Further connections wait in the system's queue.
const CONNECTIONS_MAX: usize = 256;
/// How long the head of a request may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may last, whatever happens on it. Scrapers connect again.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest head of a request, in bytes. No page reads a body.
const HEAD_MAX_BYTES: usize = 16 * 1_024;
/// How long to wait when the system has no more connections to give.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The answer to a request that names another host.
const REFUSED: &str = "this page is for this machine alone: ask for it as http://localhost:PORT or \
                       http://127.0.0.1:PORT\n";

/// The pages, by where the client is.
pub(super) struct Pages {
    /// For every client that reaches the port.
    pub(super) everybody: Router,
    /// For clients on this machine: its users, and users whom Kubernetes forwards to it.
    pub(super) local: Router,
}

impl Pages {
    fn of(&self, peer: SocketAddr) -> Router {
        let local = peer.ip().to_canonical().is_loopback();
        if local { &self.local } else { &self.everybody }.clone()
    }
}

/// Answers on every connection until the task is cancelled, which ends all connections.
pub(super) async fn accept(listener: TcpListener, pages: Pages) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let answered = answer(stream, pages.of(peer));
                connections.spawn(async move {
                    let _permit = permit;
                    if tokio::time::timeout(CONNECTION_TIMEOUT, answered)
                        .await
                        .is_err()
                    {
                        debug!("closed a connection that lasted {CONNECTION_TIMEOUT:?}");
                    }
                });
            }
            Err(error) => {
                warn!("failed to accept a connection: {error}");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(stream: TcpStream, router: Router) {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_MAX_BYTES);
    let service = TowerToHyperService::new(router);
    // The error is the client's: it went away, was too slow, or does not speak HTTP.
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        debug!("a connection ended: {error}");
    }
}

/// Answers only requests that name the loopback interface, by name or address.
pub(super) async fn must_be_loopback(request: Request, next: Next) -> Response {
    if loopback::is_named(request.headers()) {
        next.run(request).await
    } else {
        (StatusCode::MISDIRECTED_REQUEST, REFUSED).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;
    use axum::Router;
    use axum::routing::get;

    #[test]
    fn what_is_for_this_machine_is_for_no_other() {
        let pages = Pages {
            everybody: Router::new(),
            local: Router::new().route("/local", get(|| async {})),
        };
        let cases = [
            ("127.0.0.1:80", true),
            ("[::1]:80", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("10.0.0.1:80", false),
            ("[::ffff:10.0.0.1]:80", false),
            ("[fd00::1]:80", false),
        ];
        for (peer, local) in cases {
            let router = pages.of(peer.parse().unwrap());
            assert_eq!(router.has_routes(), local, "{peer}");
        }
    }
}
