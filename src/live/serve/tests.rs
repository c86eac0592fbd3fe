use super::{LastComparison, compare, pages, serve};
use crate::handles::Handles;
use crate::handles::health::{LeaseTrouble, WatchState};
use crate::handles::inbox::{Question, Reports};
use crate::live::comparer::Comparer;
use crate::live::config::{Configuration, InForce};
use axum::extract::State;
use gpu_batch_policies::event::Kind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct Fixture {
    handles: Handles,
    address: SocketAddr,
    client: kube::Client,
}

impl Fixture {
    async fn start() -> Self {
        Self::serving(|listener, comparer, in_force| {
            tokio::spawn(serve(listener, comparer, in_force));
        })
        .await
    }

    /// The pages that whoever reaches the port may ask for, and no others.
    async fn for_strangers() -> Self {
        Self::serving(|listener, comparer, in_force| {
            let pages = pages(comparer, in_force);
            tokio::spawn(axum::serve(listener, pages.everybody).into_future());
        })
        .await
    }

    async fn serving(serve: impl FnOnce(TcpListener, Comparer, Arc<InForce>)) -> Self {
        let handles = Handles::new(String::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}");
        let config = kube::Config::new(url.parse().unwrap());
        let client = crate::kube::connection::client(&config).unwrap();
        let comparer = Comparer {
            handles: handles.clone(),
            client: client.clone(),
            scheduler_name: "gpu-batch".to_owned(),
            extended: None,
        };
        let configuration = Configuration::load(None).unwrap();
        let in_force = Arc::new(InForce::new(configuration.file));
        serve(listener, comparer, in_force);
        Self {
            handles,
            address,
            client,
        }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let request = http::Request::get(path)
            .body(kube::client::Body::empty())
            .unwrap();
        let response = self.client.send(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect_bytes().await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

#[tokio::test]
async fn readiness_names_what_is_missing() {
    let fixture = Fixture::start().await;
    let health = &fixture.handles.health;
    for kind in Kind::ALL {
        health.set(kind, WatchState::Watching);
    }
    health.set(Kind::NativePodGroup, WatchState::NotServed);
    let forbidden = "jobs.batch is forbidden: User \"x\" cannot list".to_owned();
    health.set(Kind::Job, WatchState::Failing(forbidden));
    health.turned(0, true, false);
    let (status, body) = fixture.get("/readyz").await;
    assert_eq!(status, 503);
    assert_eq!(
        body,
        "Job: jobs.batch is forbidden: User \"x\" cannot list\n"
    );

    health.set(Kind::Job, WatchState::Watching);
    assert_eq!(
        fixture.get("/readyz").await,
        (200, "ok: standby\n".to_owned())
    );
    health.turned(0, true, true);
    assert_eq!(
        fixture.get("/readyz").await,
        (200, "ok: leader\n".to_owned())
    );
    health.turned(0, false, true);
    assert_eq!(fixture.get("/readyz").await.0, 503);
    health.turned(0, true, false);
    let missing = "namespaces \"x\" not found".to_owned();
    health.lease_failed(LeaseTrouble::Refused(missing));
    assert_eq!(
        fixture.get("/readyz").await,
        (503, "namespaces \"x\" not found\n".to_owned())
    );
    health.lease_served();
    assert_eq!(fixture.get("/readyz").await.0, 200);
}

#[tokio::test]
async fn a_loop_that_does_not_turn_is_unhealthy() {
    let fixture = Fixture::start().await;
    assert_eq!(fixture.get("/healthz").await.0, 200);
    fixture.handles.health.turned(0, true, true);
    assert_eq!(fixture.get("/healthz").await.0, 503);
}

#[tokio::test]
async fn metrics_and_audit_ask_the_driver() {
    let fixture = Fixture::start().await;
    let inbox = Arc::clone(&fixture.handles.inbox);
    let driver = std::thread::spawn(move || {
        let mut answered = 0;
        while answered < 3 {
            for question in inbox.take(Duration::from_secs(5), false).questions {
                answered += 1;
                match question {
                    Question::Reports(asker) => {
                        asker.send(Arc::new(Reports::default())).unwrap();
                    }
                    Question::Audit(asker) if answered == 2 => asker.send(vec![]).unwrap(),
                    Question::Audit(asker) => asker.send(vec!["I1 is broken".into()]).unwrap(),
                    other => panic!("nobody asks {other:?} here"),
                }
            }
        }
    });
    let (status, body) = fixture.get("/metrics").await;
    assert_eq!(status, 200);
    assert!(body.contains("process_resident_memory_bytes"), "{body}");
    // The second is at most a second old: whoever asks often costs the loop no more.
    for _ in 0..2 {
        assert_eq!(fixture.get("/debug/audit").await, (200, "ok\n".to_owned()));
    }
    tokio::time::sleep(super::AUDIT_MAX_AGE).await;
    let broken = (500, "I1 is broken\n".to_owned());
    assert_eq!(fixture.get("/debug/audit").await, broken);
    driver.join().unwrap();
}

#[tokio::test]
async fn gangs_are_told_to_this_machine_by_the_one_that_leads() {
    let fixture = Fixture::start().await;
    let inbox = Arc::clone(&fixture.handles.inbox);
    let driver = std::thread::spawn(move || {
        for is_leader in [false, true] {
            let question = inbox.take(Duration::from_secs(5), false).questions.pop();
            let Some(Question::Reports(asker)) = question else {
                panic!("nobody asks {question:?} here");
            };
            let reports = Reports {
                taken_ms: 1_000,
                is_synced: true,
                is_leader,
                ..Reports::default()
            };
            asker.send(Arc::new(reports)).unwrap();
        }
    });
    let (status, body) = fixture.get("/gangs").await;
    assert_eq!(status, 503);
    assert!(body.contains("does not lead"), "{body}");
    let (status, body) = fixture.get("/gangs").await;
    assert_eq!(status, 200);
    assert_eq!(body, r#"{"at":"1970-01-01T00:00:01Z","gangs":[]}"#);
    driver.join().unwrap();
}

#[tokio::test]
async fn strangers_are_told_nothing_of_gangs() {
    let fixture = Fixture::for_strangers().await;
    assert_eq!(fixture.get("/healthz").await.0, 200);
    for page in ["/gangs", "/explain/podgroup/a/b", "/explain/pod/a/b"] {
        assert_eq!(fixture.get(page).await, (404, String::new()), "{page}");
    }
}

impl Fixture {
    /// The answer to these bytes until the server closes the connection, or resets it because it
    /// did not read them all.
    async fn answer_to(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut answer = String::new();
        stream.write_all(bytes).await.unwrap();
        let closed = stream.read_to_string(&mut answer);
        let closed = tokio::time::timeout(Duration::from_secs(30), closed).await;
        // A reset is an end too.
        let _ = closed.expect("the connection is closed");
        answer
    }
}

#[tokio::test]
async fn slow_clients_hold_nobody_up() {
    let fixture = Fixture::start().await;
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: ")
            .await
            .unwrap();
        slow.push(stream);
    }
    assert_eq!(fixture.get("/healthz").await.0, 200);
    // One that never ends its request is not waited for.
    let answer = fixture.answer_to(b"GET /healthz HTTP/1.1\r\nHost: ").await;
    assert!(!answer.contains("200"), "{answer}");
    drop(slow);
}

#[tokio::test]
async fn long_heads_are_refused() {
    let fixture = Fixture::start().await;
    let request = |length| format!("GET /healthz HTTP/1.0\r\nx: {}\r\n\r\n", "x".repeat(length));
    let answer = fixture.answer_to(request(1_000).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    let answer = fixture.answer_to(request(30_000).as_bytes()).await;
    assert!(!answer.contains(" 200 "), "{answer}");
}

#[tokio::test]
async fn pages_are_only_read() {
    let fixture = Fixture::start().await;
    for (request, status) in [
        (
            "POST /debug/audit HTTP/1.0\r\ncontent-length: 100000000\r\n\r\n",
            "405",
        ),
        ("DELETE /metrics HTTP/1.0\r\n\r\n", "405"),
        ("GET /debug/pprof HTTP/1.0\r\n\r\n", "404"),
        ("GET /../etc/passwd HTTP/1.0\r\n\r\n", "404"),
        (
            "GET /explain/pod/a/b HTTP/1.1\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n",
            "421",
        ),
        ("GET /explain/pod/a/b HTTP/1.0\r\n\r\n", "421"),
        ("hello\r\n\r\n", "400"),
    ] {
        let answer = fixture.answer_to(request.as_bytes()).await;
        assert_eq!(
            answer.split(' ').nth(1),
            Some(status),
            "{request}: {answer}"
        );
    }
}

#[tokio::test]
async fn whoever_compares_often_costs_the_api_server_no_more() {
    let fixture = Fixture::start().await;
    let lists = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&lists);
    let api_server = axum::Router::new().fallback(move || async move {
        counted.fetch_add(1, Ordering::SeqCst);
        (http::StatusCode::FORBIDDEN, "no lists")
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, api_server).into_future());
    let client = crate::kube::connection::client(&kube::Config::new(url.parse().unwrap())).unwrap();
    let comparer = Comparer {
        handles: fixture.handles.clone(),
        client,
        scheduler_name: "gpu-batch".to_owned(),
        extended: None,
    };
    let state = (comparer, LastComparison::default());
    for _ in 0..3 {
        let answer = compare(State(state.clone())).await;
        assert_eq!(answer.status(), http::StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(lists.load(Ordering::SeqCst), 1);
}
