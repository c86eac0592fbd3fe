use super::{Client, Fixture, bind_of, of_nodes, pod};
use crate::extender::ExtenderFiles;
use crate::extender::answers::{BODY_MAX_BYTES, BODY_TIMEOUT};
use crate::handles::connections::CONNECTIONS_MAX;
use axum::body::Body;
use futures::future::join_all;
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bodies that cannot be used: the path, the body, and a part of what is said.
fn unusable() -> Vec<(&'static str, String, &'static str)> {
    let without_uid = json!({"Pod": {"metadata": {"name": "p"}}, "NodeNames": []});
    let nameless = json!({"Pod": pod(), "Nodes": {"items": [{"spec": {}}]}});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
    let other = "AdmissionReview of admission.k8s.io/v1, not a request of";
    let broken = [
        ("/filter", "{".to_owned(), "EOF while parsing"),
        ("/filter", String::new(), "EOF while parsing"),
        (
            "/filter",
            "[]".to_owned(),
            "not a request of kube-scheduler's extender API v1",
        ),
        (
            "/filter",
            format!("{{\"Pod\":{}", "[".repeat(100_000)),
            "invalid type: sequence",
        ),
        ("/bind", "\u{0}\u{1}".to_owned(), "expected value"),
    ];
    let strange = [
        ("/filter", json!({"NodeNames": []}), "missing field `Pod`"),
        ("/filter", json!({"Pod": null}), "invalid type: null"),
        (
            "/filter",
            json!({"Pod": pod()}),
            "neither Nodes nor NodeNames is set",
        ),
        ("/filter", without_uid, "a pod has no UID"),
        ("/prioritize", nameless, "a node has no metadata.name"),
        ("/prioritize", review, other),
        (
            "/preempt",
            json!({"Pod": pod()}),
            "neither NodeNameToMetaVictims nor",
        ),
        (
            "/bind",
            json!({"PodUID": "", "Node": "n"}),
            "a pod has no UID",
        ),
        ("/bind", json!({"PodUID": "u"}), "missing field `Node`"),
    ];
    let strange = strange.map(|(path, body, says)| (path, body.to_string(), says));
    broken.into_iter().chain(strange).collect()
}

#[tokio::test]
async fn bodies_that_are_broken_or_of_another_api_are_refused_with_what_is_wrong() {
    let fixture = Fixture::open().await;
    let mut client = fixture.client().await;
    for (path, body, says) in unusable() {
        let (status, text) = client.send(path, body.clone()).await.unwrap();
        assert_eq!(status, 400, "{path} {body}: {text}");
        assert!(text.contains(says), "{path} {body}: {text}");
    }
    let noise = vec![0xff; 100];
    assert_eq!(client.send("/filter", noise).await.unwrap().0, 400);
    assert_eq!(client.send("/filters", "{}").await.unwrap().0, 404);
    // The loop was asked nothing, and the connection is as good as before.
    assert!(fixture.rules.asked.lock().unwrap().is_empty());
    let filtered = client.ask("/filter", &of_nodes(&["free-1"])).await;
    assert_eq!(filtered["NodeNames"][0], "free-1");
}

/// What the server says on a connection on which this was written, until it closes it.
async fn raw(fixture: &Fixture, head: &str) -> String {
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said).await;
    said
}

#[tokio::test]
async fn what_a_page_on_the_web_could_make_a_browser_send_is_refused() {
    let fixture = Fixture::open().await;
    for content_type in ["", "Content-Type: text/plain\r\n"] {
        let head = format!(
            "POST /bind HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{content_type}\
             Content-Length: 2\r\n\r\n{{}}"
        );
        let said = raw(&fixture, &head).await;
        assert!(said.starts_with("HTTP/1.1 415"), "{said}");
    }
    // The page's owner has pointed a name of the page at 127.0.0.1.
    let head = "POST /bind HTTP/1.1\r\nHost: evil.example.com\r\n\
                Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let said = raw(&fixture, head).await;
    assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    let said = raw(
        &fixture,
        "GET /bind HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(said.starts_with("HTTP/1.1 405"), "{said}");
}

#[tokio::test]
async fn long_bodies_are_refused_before_they_come_or_where_they_become_too_long() {
    let fixture = Fixture::open().await;
    let too_long = BODY_MAX_BYTES + 1;
    let head = format!(
        "POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {too_long}\r\n\r\n"
    );
    let said = raw(&fixture, &head).await;
    assert!(said.starts_with("HTTP/1.1 413"), "{said}");
    let body = Body::from_stream(futures::stream::repeat_with(|| {
        Ok::<_, std::io::Error>(vec![b' '; 1 << 20])
    }));
    let sent = fixture.client().await.send("/bind", body).await;
    // The server may close the connection before all is sent.
    assert!(
        sent.as_ref().is_err() || sent.as_ref().unwrap().0 == 413,
        "{sent:?}"
    );
    let mut body = of_nodes(&["free-1"]);
    body["Pod"]["metadata"]["annotations"] = json!({"long": "x".repeat(25 << 20)});
    let filtered = fixture.client().await.ask("/filter", &body).await;
    assert_eq!(filtered["NodeNames"], json!(["free-1"]));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let fixture = Fixture::open().await;
    let began = Instant::now();
    let head = "POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 100\r\n\r\n{";
    let slow = (0..4).map(|_| raw(&fixture, head));
    let said = join_all(slow).await;
    assert!(
        said.iter().all(|said| said.starts_with("HTTP/1.1 408")),
        "{said:?}"
    );
    assert!(began.elapsed() < 2 * BODY_TIMEOUT);
}

#[tokio::test]
async fn five_thousand_nodes_are_answered_in_their_order() {
    let fixture = Fixture::open().await;
    let mut client = fixture.client().await;
    let names: Vec<String> = (0..5_000).map(|number| format!("free-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let asked = of_nodes(&names);
    assert_eq!(
        client.ask("/filter", &asked).await["NodeNames"],
        json!(names)
    );
    let scored = client.ask("/prioritize", &asked).await;
    assert_eq!(
        scored[4_999],
        json!({"Host": "free-4999", "Score": 4_999 % 11})
    );
}

#[tokio::test]
async fn more_connections_than_there_may_be_are_served_one_after_the_other() {
    let fixture = Fixture::open().await;
    let clients = (0..CONNECTIONS_MAX + 50).map(|_| async {
        let mut client = fixture.client().await;
        client.ask("/bind", &bind_of("n")).await["Error"].clone()
    });
    let answers = join_all(clients).await;
    assert!(answers.iter().all(|error| error == ""));
}

#[tokio::test]
async fn an_old_connection_ends_after_the_request_that_is_under_way() {
    let age_max = Duration::from_millis(300);
    let fixture = Fixture::start(ExtenderFiles::default(), age_max).await;
    let mut client = fixture.client().await;
    assert_eq!(client.ask("/bind", &bind_of("n")).await["Error"], "");
    fixture.rules.delay_ms.store(600, Ordering::Relaxed);
    assert_eq!(client.ask("/bind", &bind_of("n")).await["Error"], "");
    assert!(
        client
            .send("/bind", bind_of("n").to_string())
            .await
            .is_err()
    );
    // One without a request ends, too.
    let mut idle: Client = fixture.client().await;
    tokio::time::sleep(2 * age_max).await;
    assert!(idle.send("/bind", bind_of("n").to_string()).await.is_err());
}
