mod bounds;
mod guarded;

use super::{Extender, ExtenderFiles};
use crate::handles::Handles;
use crate::handles::inbox::Question;
use axum::body::{Body, to_bytes};
use gpu_batch_policies::extender::{BindAnswer, NodeAnswer, Unanswered};
use gpu_batch_policies::facts::Uid;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

const POD: &str = "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234";

/// How the loop of these tests answers.
#[derive(Default)]
struct Rules {
    stands_by: AtomicBool,
    /// So many questions come before the pod is seen.
    unseen: AtomicU64,
    /// How long the loop takes, in milliseconds.
    delay_ms: AtomicU64,
    /// The pods that were asked about.
    asked: Mutex<Vec<Uid>>,
}

/// An extender in front of a loop that answers by rules.
struct Fixture {
    handles: Handles,
    address: SocketAddr,
    rules: Arc<Rules>,
}

impl Fixture {
    async fn open() -> Self {
        Self::start(ExtenderFiles::default(), Duration::from_secs(60)).await
    }

    async fn start(files: ExtenderFiles, age_max: Duration) -> Self {
        let handles = Handles::new(String::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut extender = Extender::new(files, handles.clone()).unwrap();
        extender.age_max = age_max;
        tokio::spawn(extender.serve(listener));
        let rules = Arc::new(Rules::default());
        std::thread::spawn({
            let (rules, inbox) = (Arc::clone(&rules), Arc::clone(&handles.inbox));
            move || {
                let mut kept = Vec::new();
                loop {
                    let batch = inbox.take(Duration::from_secs(60), false);
                    if batch.stopping {
                        return;
                    }
                    for question in batch.questions {
                        kept.extend(rules.answer(question));
                    }
                }
            }
        });
        Self {
            handles,
            address,
            rules,
        }
    }

    async fn client(&self) -> Client {
        Client::on(TcpStream::connect(self.address).await.unwrap()).await
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.handles.inbox.stop();
    }
}

impl Rules {
    /// Answers a question, or gives it back if it gets no answer.
    fn answer(&self, question: Question) -> Option<Question> {
        let delay_ms = self.delay_ms.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(delay_ms));
        let count_down = |unseen: u64| unseen.checked_sub(1);
        let is_unseen = self
            .unseen
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, count_down)
            .is_ok();
        let trouble = match self.stands_by.load(Ordering::Relaxed) {
            true => Err(Unanswered::NotLeading),
            false if is_unseen => Err(Unanswered::PodNotSeen),
            false => Ok(()),
        };
        let note = |pod| self.asked.lock().unwrap().push(pod);
        match question {
            Question::Filter(of, asker) => {
                note(of.pod);
                let judge = |node: &str| match node.split('-').next() {
                    Some("free") => NodeAnswer::Fits,
                    Some("full") => NodeAnswer::Refused("no room".into()),
                    _ => NodeAnswer::Hopeless("held".into()),
                };
                let answer = trouble.map(|()| of.nodes.iter().map(|node| judge(node)).collect());
                drop(asker.send(answer));
            }
            Question::Score(of, asker) => {
                note(of.pod);
                let score = |place: usize| u8::try_from(place % 11).unwrap();
                let answer = trouble.map(|()| (0..of.nodes.len()).map(score).collect());
                drop(asker.send(answer));
            }
            Question::Victims(of, asker) => {
                note(of.pod);
                let allow = |group: &Vec<Uid>| group.len() == 1;
                drop(asker.send(trouble.map(|()| of.groups.iter().map(allow).collect())));
            }
            Question::Bind(bind) => {
                note(bind.pod);
                let answer = match &*bind.node {
                    "never" => return Some(Question::Bind(bind)),
                    "gone" => return None,
                    "full" => BindAnswer::Refused("no room".into()),
                    _ => BindAnswer::Bound,
                };
                drop(bind.asker.send(trouble.map(|()| answer)));
            }
            other => panic!("nobody asks {other:?} here"),
        }
        None
    }
}

/// One connection, as kube-scheduler keeps it.
struct Client {
    sender: SendRequest<Body>,
    authorization: Option<String>,
}

impl Client {
    async fn on(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self {
            sender,
            authorization: None,
        }
    }

    async fn send(&mut self, path: &str, body: impl Into<Body>) -> hyper::Result<(u16, String)> {
        let mut request = http::Request::post(path)
            .header("Host", "localhost")
            .header("Content-Type", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let request = request.body(body.into()).unwrap();
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = Body::new(response.into_body());
        let body = to_bytes(body, usize::MAX).await.unwrap();
        Ok((status, String::from_utf8(body.to_vec()).unwrap()))
    }

    /// Sends a request that is answered with status 200.
    async fn ask(&mut self, path: &str, body: &Value) -> Value {
        let (status, text) = self.send(path, body.to_string()).await.unwrap();
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }
}

/// A pod as kube-scheduler sends it, with fields that are not read.
fn pod() -> Value {
    json!({
        "metadata": {"name": "p", "namespace": "a", "uid": POD, "labels": {"x": "y"}},
        "spec": {"containers": [{"name": "c", "resources": {}}]},
        "status": {},
    })
}

fn of_nodes(names: &[&str]) -> Value {
    json!({"Pod": pod(), "Nodes": null, "NodeNames": names})
}

fn bind_of(node: &str) -> Value {
    json!({"PodName": "p", "PodNamespace": "a", "PodUID": POD, "Node": node})
}

#[tokio::test]
async fn the_four_requests_are_answered_on_one_connection() {
    let fixture = Fixture::open().await;
    let mut client = fixture.client().await;
    let nodes = of_nodes(&["free-1", "full-1", "held-1", "free-2"]);
    let filtered = json!({
        "NodeNames": ["free-1", "free-2"],
        "Nodes": null,
        "FailedNodes": {"full-1": "no room"},
        "FailedAndUnresolvableNodes": {"held-1": "held"},
        "Error": "",
    });
    assert_eq!(client.ask("/filter", &nodes).await, filtered);
    let scored = json!([{"Host": "free-1", "Score": 0}, {"Host": "free-2", "Score": 1}]);
    let nodes = of_nodes(&["free-1", "free-2"]);
    assert_eq!(client.ask("/prioritize", &nodes).await, scored);
    let bound = client.ask("/bind", &bind_of("free-1")).await;
    assert_eq!(bound, json!({"Error": ""}));
    let refused = client.ask("/bind", &bind_of("full")).await;
    assert_eq!(refused, json!({"Error": "no room"}));
    // Where nothing fits, the list is empty and not null, which would mean that it is not set.
    let none = client.ask("/filter", &of_nodes(&[])).await;
    assert_eq!(none["NodeNames"], json!([]));
    let pod = Uid::parse(POD).unwrap();
    assert_eq!(*fixture.rules.asked.lock().unwrap(), [pod; 5]);
}

#[tokio::test]
async fn whole_nodes_are_given_back_as_they_came() {
    let fixture = Fixture::open().await;
    let mut client = fixture.client().await;
    let node = |name: &str| {
        format!(r#"{{"metadata":{{"name":"{name}"}},"é":1e2, "n":123456789012345678901234567890}}"#)
    };
    let (free, full) = (node("free-1"), node("full-1"));
    let body = format!(
        r#"{{"Pod":{},"Nodes":{{"metadata":{{}},"items":[{full},{free}]}}}}"#,
        pod()
    );
    let (status, text) = client.send("/filter", body.clone()).await.unwrap();
    assert_eq!(status, 200, "{text}");
    assert!(
        text.contains(&format!(r#""Nodes":{{"items":[{free}]}}"#)),
        "{text}"
    );
    assert!(text.contains(r#""NodeNames":null"#), "{text}");
    assert!(
        text.contains(r#""FailedNodes":{"full-1":"no room"}"#),
        "{text}"
    );
    let (_, text) = client.send("/prioritize", body).await.unwrap();
    assert!(text.contains(r#"{"Host":"free-1","Score":1}"#), "{text}");
    // A list that Go has never filled.
    let nothing = json!({"Pod": pod(), "Nodes": {"items": null}});
    assert_eq!(
        client.ask("/filter", &nothing).await["Nodes"],
        json!({"items": []})
    );
}

#[tokio::test]
async fn victims_come_in_two_forms_and_only_what_is_allowed_goes_back() {
    let fixture = Fixture::open().await;
    let mut client = fixture.client().await;
    let expected = json!({"NodeNameToMetaVictims": {
        "n1": {"Pods": [{"UID": "u1"}], "NumPDBViolations": 2},
    }});
    let meta = json!({"Pod": pod(), "NodeNameToVictims": null, "NodeNameToMetaVictims": {
        "n1": {"Pods": [{"UID": "u1"}], "NumPDBViolations": 2},
        "n2": {"Pods": [{"UID": "u2"}, {"UID": "u3"}], "NumPDBViolations": 0},
        "n3": {"Pods": null, "NumPDBViolations": 0},
    }});
    assert_eq!(client.ask("/preempt", &meta).await, expected);
    let whole = json!({"Pod": pod(), "NodeNameToMetaVictims": null, "NodeNameToVictims": {
        "n1": {"Pods": [{"metadata": {"uid": "u1"}, "spec": {}}], "NumPDBViolations": 2},
        "n2": {"Pods": [{"metadata": {"uid": "u2"}}, {"metadata": {"uid": "u3"}}]},
    }});
    assert_eq!(client.ask("/preempt", &whole).await, expected);
}

#[tokio::test]
async fn a_pod_that_is_not_seen_yet_is_waited_for_and_not_for_ever() {
    let fixture = Fixture::open().await;
    let mut client = fixture.client().await;
    let nodes = of_nodes(&["free-1"]);
    fixture.rules.unseen.store(5, Ordering::Relaxed);
    let filtered = client.ask("/filter", &nodes).await;
    assert_eq!(filtered["NodeNames"], json!(["free-1"]));
    fixture.rules.unseen.store(u64::MAX, Ordering::Relaxed);
    let began = Instant::now();
    let unseen = "gpu-batch has not seen the pod, or it is gone";
    let filtered = client.ask("/filter", &nodes).await;
    assert_eq!(filtered["Error"], unseen);
    assert!(began.elapsed() >= Duration::from_millis(500));
    for path in ["/prioritize", "/preempt"] {
        let body = json!({"Pod": pod(), "NodeNames": [], "NodeNameToMetaVictims": {}});
        let (status, text) = client.send(path, body.to_string()).await.unwrap();
        assert_eq!((status, text), (503, format!("{unseen}\n")), "{path}");
    }
    assert_eq!(client.ask("/bind", &bind_of("n")).await["Error"], unseen);
}

#[tokio::test]
async fn a_replica_that_stands_by_says_so_and_sends_the_client_to_another_one() {
    let fixture = Fixture::open().await;
    fixture.rules.stands_by.store(true, Ordering::Relaxed);
    let stands_by = "this gpu-batch does not lead, or has not read everything yet";
    for (path, body) in [("/filter", of_nodes(&["n"])), ("/bind", bind_of("n"))] {
        let mut client = fixture.client().await;
        assert_eq!(client.ask(path, &body).await["Error"], stands_by, "{path}");
        assert!(client.send(path, body.to_string()).await.is_err(), "{path}");
    }
}

#[tokio::test]
async fn an_engine_that_is_gone_is_an_error_at_once_and_one_that_does_not_answer_in_time() {
    let fixture = Fixture::open().await;
    let mut client = fixture.client().await;
    let gone = client.ask("/bind", &bind_of("gone")).await;
    assert_eq!(gone["Error"], "gpu-batch does not answer; ask again");
    let began = Instant::now();
    let never = client.ask("/bind", &bind_of("never")).await;
    assert_eq!(
        never["Error"],
        "the outcome of the bind is not known after 4 s"
    );
    let took = began.elapsed();
    assert!(
        took < Duration::from_secs(5),
        "kube-scheduler waits no longer: {took:?}"
    );
}
