//! What the log and `/readyz` are told of answers.

use super::{Fixture, answer, bind, lease, write_lease};
use axum::body::Body;
use axum::response::IntoResponse;
use gpu_batch_policies::command::Action;
use gpu_batch_policies::lease::LeaseCall;
use serde_json::{Value, json};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

const PATIENCE: Duration = Duration::from_secs(5);

/// A subscriber that hears nothing. While a log is the only subscriber there is, a message that
/// another test is the first to give is switched off for the log, too: `tracing` then asks only the
/// thread of that test.
static DEAF: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));

/// What this program has told its log in this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Listens for as long as the guard lives.
    fn listen() -> (Self, DefaultGuard) {
        LazyLock::force(&DEAF);
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .without_time()
            .with_level(false)
            .with_target(false)
            .with_ansi(false)
            .with_env_filter("gpu_batch=info")
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}

fn said(message: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "message": message})
}

#[tokio::test]
async fn a_binding_that_fails_is_told_with_its_pod_and_node() {
    for (status, told) in [
        (403, "bind of vision/train-0 to n1 was refused: not today"),
        (
            500,
            "bind of vision/train-0 to n1 ended with an unknown outcome after ",
        ),
    ] {
        let (log, _listening) = Log::listen();
        let fixture = Fixture::start(move |_| answer(status, &said("not today"))).await;
        fixture.outcome(bind(), PATIENCE).await;
        let lines = log.lines();
        assert!(
            lines.len() == 1 && lines[0].starts_with(told),
            "{told}: {lines:?}"
        );
    }
}

#[tokio::test]
async fn a_webhook_that_denies_with_401_does_not_doubt_who_we_are() {
    let denied = "admission webhook \"hook.example.com\" denied the request: not today";
    for (message, is_outage) in [(denied, false), ("Unauthorized", true)] {
        let (log, _listening) = Log::listen();
        let fixture = Fixture::start(move |_| answer(401, &said(message))).await;
        fixture.outcome(bind(), PATIENCE).await;
        let lines = log.lines();
        assert_eq!(fixture.handles.health.outage().is_some(), is_outage);
        let doubts = lines.iter().any(|line| line.contains("who we are (401)"));
        assert_eq!(doubts, is_outage, "{lines:?}");
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}

#[tokio::test]
async fn a_lease_that_is_throttled_is_told_once_until_it_is_written() {
    let (log, _listening) = Log::listen();
    let calm = Arc::new(AtomicBool::new(false));
    let is_calm = Arc::clone(&calm);
    let (body, _) = lease();
    let fixture = Fixture::start(move |_| match is_calm.load(Ordering::Relaxed) {
        true => answer(200, &body),
        false => answer(429, &said("too many requests, please try again later")),
    })
    .await;
    let read = Action::Lease(LeaseCall::Read);
    let (create, renew) = (write_lease(None, true), write_lease(Some("11"), false));
    for action in [&read, &create, &renew, &read] {
        fixture.outcome(action.clone(), PATIENCE).await;
    }
    let told = "the Lease sys/gb cannot be written: too many requests, please try again later; \
                the API server throttles";
    let lines = log.lines();
    assert!(
        lines.len() == 1 && lines[0].starts_with(told),
        "{told}: {lines:?}"
    );
    let health = &fixture.handles.health;
    assert!(health.missing().contains(&lines[0]), "on /readyz");
    assert_eq!(health.lease_trouble().as_ref(), Some(&lines[0]));

    calm.store(true, Ordering::Relaxed);
    fixture.outcome(renew, PATIENCE).await;
    assert_eq!(log.lines()[1..], ["the Lease can be written now"]);
    assert_eq!(health.lease_trouble(), None);
}

/// What etcd does to requests for the lease when it pauses: most are not answered in time, some
/// with an error of the API server. Other requests are answered all the while.
#[tokio::test]
async fn a_lease_without_an_answer_is_told_once_until_the_lease_is_answered() {
    let (log, _listening) = Log::listen();
    let mode = Arc::new(Mutex::new("silent"));
    let is = Arc::clone(&mode);
    let (body, _) = lease();
    let fixture = Fixture::start(move |asked| {
        let silence = futures::stream::pending::<Result<Vec<u8>, io::Error>>();
        match *is.lock().unwrap() {
            _ if !asked.path.contains("/leases") => answer(201, &json!({})),
            "silent" => Body::from_stream(silence).into_response(),
            "failing" => answer(500, &said("etcdserver: request timed out")),
            _ => answer(200, &body),
        }
    })
    .await;
    let renew = write_lease(Some("11"), false);
    for now in ["silent", "failing", "silent", "failing"] {
        *mode.lock().unwrap() = now;
        fixture
            .outcome(renew.clone(), Duration::from_millis(200))
            .await;
        fixture.outcome(bind(), PATIENCE).await;
    }
    let told = "the Lease sys/gb cannot be written: the API server has not answered within ";
    let lines = log.lines();
    assert!(
        lines.len() == 1 && lines[0].starts_with(told),
        "{told}: {lines:?}"
    );
    let health = &fixture.handles.health;
    assert_eq!(health.outage(), None, "other requests are answered");
    assert!(health.lease_trouble().is_some());

    *mode.lock().unwrap() = "well";
    fixture.outcome(renew, PATIENCE).await;
    assert_eq!(log.lines()[1..], ["the Lease can be written now"]);
    assert_eq!(health.lease_trouble(), None);
}
