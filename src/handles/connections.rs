//! Accepts connections, so many at a time.
//!
//! Not used: `axum::serve`, which waits for a slow client without a bound.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::warn;

/// How many connections one listener has at a time: far below the number of files that a process
/// may open, which requests to the API server need too. Further connections wait in the system's
/// queue.
pub(crate) const CONNECTIONS_MAX: usize = 256;
/// How long to wait when the system has no more connections to give.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Answers on every connection until the task is cancelled, which ends all connections. `answer`
/// bounds how long it takes. `of`: whose connections they are, for the log.
pub(crate) async fn accept<F>(
    listener: TcpListener,
    of: &str,
    answer: impl Fn(TcpStream, SocketAddr) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let answered = answer(stream, peer);
                connections.spawn(async move {
                    let _permit = permit;
                    answered.await;
                });
            }
            Err(error) => {
                warn!("failed to accept a connection of {of}: {error}");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}
