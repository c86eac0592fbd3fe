use super::{Shared, Watcher};
use crate::handles::Handles;
use crate::handles::inbox::Reports;
use crate::kube::connection::{self, fake::FakeApi};
use crate::kube::convert::{Converter, Watched};
use crate::kube::objects::{Namespace, Node, Pod, Queue, protobuf};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use gpu_batch_policies::event::{Event, Kind, Listing, Object, ObjectKey};
use gpu_batch_policies::facts::Uid;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// One answer of the API server.
enum Answer {
    /// A page of a list: version, token of the next page, names.
    Page(&'static str, &'static str, &'static [&'static str]),
    /// A page of whatever.
    Items(&'static str, Value),
    /// This text.
    Text(String),
    /// This in the binary form, with this code.
    Binary(u16, &'static [u8]),
    /// A watch that says this and ends.
    Ends(Vec<Value>),
    /// A watch that says this and stays open.
    Stays(Vec<Value>),
    /// A failure.
    Status(u16, &'static str),
}
use Answer::{Binary, Ends, Items, Page, Status, Stays, Text};

fn object(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": version}})
}

fn line(change: &str, object: Value) -> Value {
    json!({"type": change, "object": object})
}

fn bookmark(version: &str) -> Value {
    line("BOOKMARK", object("", version))
}

fn status(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "message": message})
}

fn respond(answer: Answer) -> Response {
    let lines = |lines: Vec<Value>| {
        stream::iter(lines).map(|line| Ok::<_, std::io::Error>(format!("{line}\n")))
    };
    match answer {
        Page(version, token, names) => {
            let items: Vec<Value> = names.iter().map(|name| object(name, "1")).collect();
            let metadata = json!({"resourceVersion": version, "continue": token});
            json!({"metadata": metadata, "items": items})
                .to_string()
                .into_response()
        }
        Items(version, items) => {
            let list = json!({"metadata": {"resourceVersion": version}, "items": items});
            list.to_string().into_response()
        }
        Text(text) => text.into_response(),
        Binary(code, body) => {
            let code = http::StatusCode::from_u16(code).unwrap();
            let content_type = [(http::header::CONTENT_TYPE, protobuf::CONTENT_TYPE)];
            (code, content_type, body).into_response()
        }
        Ends(said) => Body::from_stream(lines(said)).into_response(),
        Stays(said) => Body::from_stream(lines(said).chain(stream::pending())).into_response(),
        Status(code, message) => {
            let code_of = http::StatusCode::from_u16(code).unwrap();
            (code_of, status(code, message).to_string()).into_response()
        }
    }
}

struct Fixture {
    api: FakeApi,
    handles: Handles,
    relist: watch::Sender<u64>,
}

impl Fixture {
    /// Watches a kind on an API server that gives these answers in turn, and then is silent.
    async fn start<T: Watched>(answers: Vec<Answer>) -> Self {
        let answers = Mutex::new(VecDeque::from(answers));
        let api = FakeApi::start(move |_| {
            let answer = answers.lock().unwrap().pop_front();
            respond(answer.unwrap_or(Stays(vec![])))
        })
        .await;
        let (relist, relisted) = watch::channel(0);
        let fixture = Self {
            handles: Handles::new(String::new()),
            relist,
            api,
        };
        let shared = Shared {
            client: connection::client(&fixture.api.config).unwrap(),
            handles: fixture.handles.clone(),
            relist: relisted,
        };
        let converter = Converter::new("gpu-batch", shared.handles.clock.now_ms());
        tokio::spawn(Watcher::<T>::new(shared, converter).run());
        fixture
    }

    /// The next events, exactly so many; lists as the names of their objects.
    async fn events(&self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut events = Vec::new();
        while events.len() < count {
            assert!(Instant::now() < deadline, "only {events:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
            let batch = self.handles.inbox.take(Duration::ZERO, true);
            events.extend(batch.events.iter().map(shorthand));
        }
        assert_eq!(events.len(), count, "{events:?}");
        events
    }

    /// Waits until the watch has asked so often, and returns what it asked.
    async fn asked(&self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let asked = self.api.asked();
            if asked.len() >= count {
                return asked.into_iter().map(|asked| asked.path).collect();
            }
            assert!(Instant::now() < deadline, "only {asked:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn complaint(&self, kind: Kind) -> Option<String> {
        let prefix = format!("{kind:?}: ");
        let missing = self.handles.health.missing();
        missing
            .iter()
            .find_map(|line| Some(line.strip_prefix(&prefix)?.to_owned()))
    }
}

fn shorthand(event: &Event) -> String {
    let name = |object: &Object| match object {
        Object::Namespace(namespace) => namespace.name.to_string(),
        Object::Node(node) => node.name.to_string(),
        Object::Queue(queue) => match queue.problems.first() {
            Some(problem) => format!("{} ({} {})", queue.name, problem.field, problem.message),
            None => queue.name.to_string(),
        },
        other => format!("{other:?}"),
    };
    match event {
        Event::Listed(Listing { objects, .. }) => {
            let names: Vec<String> = objects.iter().map(name).collect();
            format!("listed {}", names.join(" "))
        }
        Event::Applied(object) => format!("applied {}", name(object)),
        Event::Deleted(ObjectKey::Namespace(name) | ObjectKey::Queue(name)) => {
            format!("deleted {name}")
        }
        other => format!("{other:?}"),
    }
}

fn watch_from(version: &str) -> String {
    format!(
        "/api/v1/namespaces?watch=true&allowWatchBookmarks=true&resourceVersion={version}\
         &timeoutSeconds=290"
    )
}

#[tokio::test]
async fn all_pages_are_one_event_and_the_watch_goes_on_from_there() {
    let fixture = Fixture::start::<Namespace>(vec![
        Page("10", "more", &["a", "b"]),
        Page("10", "", &["c"]),
        Stays(vec![
            line("ADDED", object("d", "11")),
            line("MODIFIED", object("a", "12")),
            line("DELETED", object("b", "13")),
        ]),
    ])
    .await;
    let events = fixture.events(4).await;
    assert_eq!(
        events,
        ["listed a b c", "applied d", "applied a", "deleted b"]
    );
    let asked = fixture.asked(3).await;
    assert_eq!(asked[0], "/api/v1/namespaces?limit=1000");
    assert_eq!(asked[1], "/api/v1/namespaces?limit=1000&continue=more");
    assert_eq!(asked[2], watch_from("10"));
    assert_eq!(fixture.complaint(Kind::Namespace), None);
}

#[tokio::test]
async fn a_token_that_comes_before_the_objects_leads_to_the_same_pages() {
    // As the API server writes its own kinds. A label is no token.
    let page = |token: &str, name: &str| {
        let metadata = json!({"resourceVersion": "10", "continue": token});
        let item = json!({"metadata": {"name": name, "labels": {"continue": "x"}}});
        Text(format!(
            "{{\"kind\":\"NamespaceList\",\"metadata\":{metadata},\"items\":[{item}]}}"
        ))
    };
    let answers = vec![page("p2", "a"), page("p3", "b"), page("", "c")];
    let fixture = Fixture::start::<Namespace>(answers).await;
    assert_eq!(fixture.events(1).await, ["listed a b c"]);
    let asked = fixture.asked(4).await;
    assert_eq!(asked[1], "/api/v1/namespaces?limit=1000&continue=p2");
    assert_eq!(asked[2], "/api/v1/namespaces?limit=1000&continue=p3");
    assert_eq!(asked[3], watch_from("10"));
}

#[tokio::test]
async fn a_list_in_the_binary_form_is_read_and_one_that_is_broken_is_asked_for_in_json() {
    // PodList{metadata: {resourceVersion: "10", continue: "p2"}, items: [{metadata: {name: "a"}}]}
    let first = b"k8s\0\x12\x11\x0a\x08\x12\x0210\x1a\x02p2\x12\x05\x0a\x03\x0a\x01a";
    let broken = b"k8s\0\x12\x0b\x0a\x04\x12\x0210\x12\x03\x0a\x07x";
    let answers = vec![
        Binary(200, first),
        Binary(200, broken),
        Page("10", "", &["b"]),
    ];
    let fixture = Fixture::start::<Node>(answers).await;
    assert_eq!(fixture.events(1).await, ["listed a b"]);
    let asked = fixture.asked(4).await;
    assert_eq!(asked[1], "/api/v1/nodes?limit=1000&continue=p2");
    assert_eq!(asked[2], asked[1]);
    let accepted: Vec<String> = fixture.api.asked().into_iter().map(|a| a.accepts).collect();
    let both = "application/vnd.kubernetes.protobuf, application/json";
    assert_eq!(accepted[..3], [both, both, "application/json"]);
}

/// WatchEvent{type: "ADDED", object: Node{metadata: {name: "b", resourceVersion: "11"}}}
const ADDED_B: &[u8] =
    b"\0\0\0\x1a\x0a\x05ADDED\x12\x11\x0a\x0fk8s\0\x12\x09\x0a\x07\x0a\x01b2\x0211";

#[tokio::test]
async fn a_watch_in_the_binary_form_is_read_and_goes_on_in_json_after_a_frame_that_is_broken() {
    let frames = [ADDED_B, b"\0\0\0\x03xyz"].concat().leak();
    let json = Stays(vec![line("ADDED", object("c", "12"))]);
    let answers = vec![Page("10", "", &["a"]), Binary(200, frames), json];
    let fixture = Fixture::start::<Node>(answers).await;
    assert_eq!(
        fixture.events(3).await,
        ["listed a", "applied b", "applied c"]
    );
    let asked = fixture.api.asked();
    let both = "application/vnd.kubernetes.protobuf;stream=watch, application/json";
    assert_eq!(asked[1].accepts, both);
    assert_eq!(asked[2].accepts, "application/json");
    assert!(asked[2].path.contains("resourceVersion=11"), "{asked:?}");
}

#[tokio::test]
async fn a_watch_in_the_binary_form_that_ends_within_a_frame_goes_on_where_it_was() {
    for cut in [&ADDED_B[..3], &ADDED_B[..20], b"\xff\xff\xff\xffx"] {
        let answers = vec![Page("10", "", &[]), Binary(200, cut), Binary(200, ADDED_B)];
        let fixture = Fixture::start::<Node>(answers).await;
        assert_eq!(fixture.events(2).await, ["listed ", "applied b"]);
    }
}

#[tokio::test]
async fn a_lost_history_is_listed_anew_in_the_binary_form() {
    // WatchEvent{type: "ERROR", object: Status{message: "old", code: 410}}
    let gone = b"\0\0\0\x19\x0a\x05ERROR\x12\x10\x0a\x0ek8s\0\x12\x08\x1a\x03old0\x9a\x03";
    let answers = vec![
        Page("10", "", &["a"]),
        Binary(200, gone),
        Page("20", "", &["b"]),
    ];
    let fixture = Fixture::start::<Node>(answers).await;
    fixture.asked(4).await;
    assert_eq!(fixture.events(1).await, ["listed b"]);
}

#[tokio::test]
async fn a_refusal_in_the_binary_form_is_understood() {
    // Status{message: "no", reason: "Forbidden", code: 403}
    let no = b"k8s\0\x12\x12\x1a\x02no\x22\x09Forbidden\x30\x93\x03";
    let fixture = Fixture::start::<Node>(vec![Binary(403, no), Page("10", "", &["a"])]).await;
    fixture.asked(1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(fixture.complaint(Kind::Node).unwrap(), "no (403)");
    assert_eq!(fixture.events(1).await, ["listed a"]);
}

#[tokio::test]
async fn a_list_whose_pages_expire_starts_anew() {
    let fixture = Fixture::start::<Namespace>(vec![
        Page("10", "more", &["a"]),
        Status(410, "the provided continue parameter is too old"),
        Page("20", "", &["b"]),
    ])
    .await;
    assert_eq!(fixture.events(1).await, ["listed b"]);
    assert_eq!(fixture.asked(4).await[3], watch_from("20"));
}

#[tokio::test]
async fn a_watch_that_ends_goes_on_from_its_last_bookmark() {
    let fixture = Fixture::start::<Namespace>(vec![
        Page("10", "", &[]),
        Ends(vec![line("ADDED", object("a", "11")), bookmark("15")]),
    ])
    .await;
    assert_eq!(fixture.events(2).await, ["listed ", "applied a"]);
    assert_eq!(fixture.asked(3).await[2], watch_from("15"));
}

#[tokio::test]
async fn a_lost_history_is_listed_anew() {
    for gone in [
        Status(410, "too old resource version"),
        Ends(vec![line("ERROR", status(410, "too old resource version"))]),
    ] {
        let fixture =
            Fixture::start::<Namespace>(vec![Page("10", "", &["a"]), gone, Page("20", "", &["b"])])
                .await;
        fixture.asked(4).await;
        assert_eq!(fixture.events(1).await, ["listed b"]);
    }
}

#[tokio::test]
async fn a_list_from_the_past_is_refused() {
    let fixture = Fixture::start::<Namespace>(vec![
        Page("10", "", &["a"]),
        Ends(vec![
            line("ADDED", object("b", "19")),
            line("ERROR", status(410, "gone")),
        ]),
        Page("18", "", &["a"]),
        Status(503, "wait"),
        Page("19", "", &["a", "b"]),
    ])
    .await;
    fixture.asked(3).await;
    fixture.events(2).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let complaint = fixture.complaint(Kind::Namespace).unwrap();
    assert!(
        complaint.contains("version 18 is older than version 19"),
        "{complaint}"
    );
    assert_eq!(fixture.events(1).await, ["listed a b"]);
}

#[tokio::test]
async fn a_kind_that_is_not_served_counts_as_listed_empty() {
    let answers = vec![Status(404, "not found"), Status(404, "not found")];
    let fixture = Fixture::start::<Queue>(answers).await;
    assert_eq!(fixture.events(1).await, ["listed "]);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(fixture.complaint(Kind::Queue), None);
    // A new engine has to hear it too.
    fixture.relist.send_modify(|generation| *generation += 1);
    assert_eq!(fixture.events(1).await, ["listed "]);
}

#[tokio::test]
async fn that_a_kind_is_still_not_served_is_no_news() {
    let absent = || Status(404, "the server could not find the requested resource");
    let fixture = Fixture::start::<Queue>(vec![absent(), absent(), Page("7", "", &["a"])]).await;
    // The second is asked after five seconds; the third at once, and then the second has counted.
    fixture.asked(2).await;
    fixture.relist.send_modify(|generation| *generation += 1);
    fixture.asked(3).await;
    let page = fixture.handles.metrics.encode(&Reports::default()).unwrap();
    let counted = page.lines().find(|line| line.contains("not_served"));
    assert!(counted.is_some_and(|line| line.ends_with(" 1")), "{page}");
}

#[tokio::test]
async fn a_kind_that_is_no_longer_served_is_emptied() {
    let fixture = Fixture::start::<Queue>(vec![
        Page("10", "", &["a"]),
        Ends(vec![bookmark("11")]),
        Status(404, "not found"),
    ])
    .await;
    fixture.asked(3).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    // The second list has replaced the first one in the inbox.
    assert_eq!(fixture.events(1).await, ["listed "]);
}

#[tokio::test]
async fn a_missing_permission_is_named() {
    let message = "namespaces is forbidden: User \"x\" cannot list resource \"namespaces\"";
    let fixture = Fixture::start::<Namespace>(vec![
        Status(403, message),
        Page("10", "", &["a"]),
        Stays(vec![]),
    ])
    .await;
    fixture.asked(1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(
        fixture.complaint(Kind::Namespace).unwrap(),
        format!("{message} (403)")
    );
    assert_eq!(fixture.events(1).await, ["listed a"]);
    fixture.asked(3).await;
    assert_eq!(fixture.complaint(Kind::Namespace), None);
}

#[tokio::test]
async fn an_object_that_cannot_be_read_stops_no_other() {
    let broken = json!({"metadata": {"name": 5, "resourceVersion": "12"}});
    let fixture = Fixture::start::<Namespace>(vec![
        Items(
            "10",
            json!([object("a", "1"), broken.clone(), object("b", "2")]),
        ),
        Stays(vec![
            line("ADDED", object("c", "11")),
            line("ADDED", broken),
            line("ADDED", object("d", "13")),
        ]),
    ])
    .await;
    let events = fixture.events(3).await;
    assert_eq!(events, ["listed a b", "applied c", "applied d"]);
}

#[tokio::test]
async fn an_object_that_is_nested_too_deeply_says_so_and_stops_no_other() {
    let deep = |name: &str, version: &str| {
        let mut field = json!(1);
        for _ in 0..500 {
            field = json!({"a": field});
        }
        let mut object = object(name, version);
        // `managedFields` is nested as deeply as the field that somebody has set.
        object["metadata"]["managedFields"] = json!([{"fieldsV1": {"f:spec": field.clone()}}]);
        object["spec"] = field;
        object
    };
    let fixture = Fixture::start::<Queue>(vec![
        Items(
            "10",
            json!([object("a", "1"), deep("b", "2"), object("c", "3")]),
        ),
        Stays(vec![
            line("ADDED", deep("d", "11")),
            line("DELETED", deep("b", "12")),
            line("ADDED", object("e", "13")),
        ]),
    ])
    .await;
    let events = fixture.events(4).await;
    let why = "(spec is not an object that can be read)";
    assert_eq!(events[0], format!("listed a b {why} c"));
    assert_eq!(events[1], format!("applied d {why}"));
    assert_eq!(events[2..], ["deleted b", "applied e"]);
    assert_eq!(fixture.complaint(Kind::Queue), None);
}

#[tokio::test]
async fn everything_is_listed_anew_when_asked_for() {
    let fixture = Fixture::start::<Namespace>(vec![
        Page("10", "", &["a"]),
        Stays(vec![]),
        Page("10", "", &["a"]),
    ])
    .await;
    fixture.events(1).await;
    fixture.asked(2).await;
    fixture.relist.send_modify(|generation| *generation += 1);
    assert_eq!(fixture.events(1).await, ["listed a"]);
}

#[tokio::test]
async fn a_watch_ends_with_its_driver() {
    let mut fixture = Fixture::start::<Namespace>(vec![Page("10", "", &[]), Stays(vec![])]).await;
    fixture.asked(2).await;
    let relist = std::mem::replace(&mut fixture.relist, watch::channel(0).0);
    drop(relist);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(fixture.api.asked().len(), 2);
}

#[tokio::test]
async fn an_ended_pod_of_another_scheduler_is_gone() {
    let uid = "00000000-0000-0000-0000-0000000000a1";
    let ended = json!({
        "metadata": {"name": "p", "namespace": "n", "uid": uid, "resourceVersion": "11"},
        "spec": {"schedulerName": "other", "containers": []},
        "status": {"phase": "Succeeded"},
    });
    let fixture = Fixture::start::<Pod>(vec![
        Items("10", json!([ended.clone()])),
        Stays(vec![line("MODIFIED", ended)]),
    ])
    .await;
    fixture.asked(2).await;
    let deleted = Event::Deleted(ObjectKey::Pod(Uid::parse(uid).unwrap()));
    let expected = ["listed ".to_owned(), format!("{deleted:?}")];
    assert_eq!(fixture.events(2).await, expected);
}
