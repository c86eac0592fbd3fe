use super::{Sources, serve};
use crate::comparer::Comparer;
use crate::driver::{Clock, Health, Inbox, Question, Reports, WatchState};
use crate::serve::Metrics;
use gpu_batch_policies::event::Kind;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

struct Fixture {
    sources: Sources,
    client: kube::Client,
}

impl Fixture {
    async fn start() -> Self {
        let clock = Clock::start();
        let sources = Sources {
            inbox: Arc::new(Inbox::default()),
            health: Arc::new(Health::new(clock.now_ms())),
            metrics: Arc::new(Metrics::new()),
            clock,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let config = kube::Config::new(url.parse().unwrap());
        let client = crate::connection::client(&config).unwrap();
        let comparer = Comparer {
            sources: sources.clone(),
            client: client.clone(),
            scheduler_name: "gpu-batch".to_owned(),
        };
        tokio::spawn(serve(listener, comparer));
        Self { sources, client }
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
    let health = &fixture.sources.health;
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
}

#[tokio::test]
async fn a_loop_that_does_not_turn_is_unhealthy() {
    let fixture = Fixture::start().await;
    assert_eq!(fixture.get("/healthz").await.0, 200);
    fixture.sources.health.turned(0, true, true);
    assert_eq!(fixture.get("/healthz").await.0, 503);
}

#[tokio::test]
async fn metrics_and_audit_ask_the_driver() {
    let fixture = Fixture::start().await;
    let inbox = Arc::clone(&fixture.sources.inbox);
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
                    Question::Inventory(_) => panic!("nobody compares here"),
                }
            }
        }
    });
    let (status, body) = fixture.get("/metrics").await;
    assert_eq!(status, 200);
    assert!(body.contains("process_resident_memory_bytes"), "{body}");
    assert_eq!(fixture.get("/debug/audit").await, (200, "ok\n".to_owned()));
    let broken = (500, "I1 is broken\n".to_owned());
    assert_eq!(fixture.get("/debug/audit").await, broken);
    driver.join().unwrap();
}
