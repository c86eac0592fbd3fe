//! Connections that nobody can use to hold up the scheduler: the time and the memory of each, and
//! their number, are bounded. And which clients are on this machine: they are shown more.

use crate::handles::{connections, loopback};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tracing::debug;

/// How long the head of a request may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may last, whatever happens on it. Scrapers connect again.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest head of a request, in bytes. No page reads a body.
const HEAD_MAX_BYTES: usize = 16 * 1_024;

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
    let answer = |stream, peer| answer(stream, pages.of(peer));
    connections::accept(listener, "a client", answer).await;
}

async fn answer(stream: TcpStream, router: Router) {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_MAX_BYTES);
    let service = TowerToHyperService::new(router);
    let answered = server.serve_connection(TokioIo::new(stream), service);
    match timeout(CONNECTION_TIMEOUT, answered).await {
        Ok(Ok(())) => {}
        // The error is the client's: it went away, was too slow, or does not speak HTTP.
        Ok(Err(error)) => debug!("a connection ended: {error}"),
        Err(_) => debug!("closed a connection that lasted {CONNECTION_TIMEOUT:?}"),
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
