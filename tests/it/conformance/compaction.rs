//! Changes that were compacted are gone, in the model and on an API server that cannot answer from
//! memory.
//!
//! A running API server still has recent changes in its watch cache, so it is restarted, as in an
//! upgrade; then it asks etcd.

use gpu_batch::lab::local::{Options, Program};
use gpu_batch_policies::event::Kind;
use gpu_batch_simulator::api_server::{Answer, Expected, Request, Version};
use gpu_batch_simulator::random::Random;
use kube::{Client, Config};
use serde_json::{Value, json};

use super::objects::{self, Place};
use super::sequence::Operation;
use super::{Run, prepare};
use crate::cluster;

const ID: &str = "compacted";
const LIST: Request = Request::List {
    kind: Kind::Pod,
    at: None,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_compacted_is_gone_in_the_model_and_on_the_real_api_server() {
    let Some(mut cluster) = cluster::own("compaction", Options::default()).await else {
        return;
    };
    let client = cluster.client().clone();
    prepare(&client, [ID.to_owned()]).await;
    let mut run = Run::new(client, Place::new(ID));
    let random = &mut Random::new(1);
    let name = run.place.name(Kind::Pod, random);
    let pod = objects::object(name.clone(), &run.place, random);
    ask(&mut run, LIST).await;
    ask(&mut run, Request::Create(pod.clone())).await;
    ask(&mut run, LIST).await;
    let (expected, grace_s) = (Expected::default(), Some(0));
    let delete = Request::Delete {
        name,
        expected,
        grace_s,
    };
    ask(&mut run, delete).await;
    ask(&mut run, LIST).await;

    let compacted = run.model.revision();
    let real = run.comparison.names.real_version(compacted);
    run.model.compact(compacted);
    let control_plane = cluster.control_plane();
    compact(&control_plane.etcd_url(), real).await;
    control_plane.restart(Program::KubeApiserver).await.unwrap();

    // Of the deletion's two writes only the second has been seen.
    for version in [0, 1] {
        assert_eq!(listed(&mut run, version).await, Answer::Gone, "{version}");
        assert_eq!(watched(&mut run, version).await, Answer::Gone, "{version}");
    }
    // The revision itself is still there.
    let there = listed(&mut run, compacted).await;
    assert!(matches!(there, Answer::Listed { .. }), "{there:?}");
    // And so is everything after the restart.
    ask(&mut run, LIST).await;
    ask(&mut run, Request::Create(pod)).await;
    let changes = watched(&mut run, compacted + 1).await;
    assert!(matches!(changes, Answer::Changes { .. }), "{changes:?}");
}

/// Carries out a request on both.
async fn ask(run: &mut Run, request: Request) -> Answer {
    let answer = run.step(&Operation::Ask(request)).await;
    answer.unwrap_or_else(|difference| panic!("{difference}"))
}

async fn listed(run: &mut Run, version: Version) -> Answer {
    let kind = Kind::Pod;
    let at = Some(version);
    ask(run, Request::List { kind, at }).await
}

async fn watched(run: &mut Run, after: Version) -> Answer {
    let kind = Kind::Pod;
    ask(run, Request::Watch { kind, after }).await
}

/// Has etcd forget what was before a revision, through its JSON gateway.
async fn compact(etcd_url: &str, revision: Version) {
    let etcd = Client::try_from(Config::new(etcd_url.parse().unwrap())).unwrap();
    let body = json!({"revision": revision.to_string(), "physical": true}).to_string();
    let request = http::Request::post("/v3/kv/compaction").body(body.into_bytes());
    let answer: Value = etcd.request(request.unwrap()).await.unwrap();
    assert!(answer["header"]["revision"].is_string(), "{answer}");
}
