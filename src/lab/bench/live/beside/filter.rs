//! How long the extender takes to answer kube-scheduler, from the request to the last byte.

use super::super::cluster::Cluster;
use super::super::objects::{self, Post, node_name};
use super::super::run::{Begun, configuration, wait_a_moment};
use super::{PEER, World};
use crate::extender::{ExtenderFiles, ExtenderSettings};
use crate::kube::connection;
use crate::lab::bench::{Bound, Row, milliseconds, quantile};
use crate::live::Scheduler;
use anyhow::{Context, ensure};
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

/// How often the extender is asked.
const QUESTIONS: usize = 1_000;

/// How many milliseconds 99 of 100 answers may take.
const TARGET_MS: f64 = 5.0;

const QUEUE: &str = "gpu-batch-bench-extended";

/// The pod that is asked about.
const ASKED: &str = "asked-about";

/// Asks on which nodes a pod may run, all nodes being named.
pub(super) async fn measure(cluster: &Cluster, world: World) -> anyhow::Result<Vec<Row>> {
    let queue = objects::queue(QUEUE, 1_000);
    cluster.create(vec![queue, asked_about()]).await?;
    let pod = cluster
        .get(&format!("{}/{ASKED}", objects::pods_path()))
        .await?;
    let mut configuration = configuration()?;
    configuration.extender = Some(ExtenderSettings {
        serve_address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        scheduler_name: PEER.to_owned(),
        files: ExtenderFiles::default(),
    });
    let scheduler = Scheduler::start(&cluster.config, configuration).await?;
    let measured = asked(&scheduler, world, &pod).await;
    scheduler.stop().await?;
    let mut took = measured?;
    let scenario = format!(
        "{} nodes, all of them named, {} pods running",
        world.nodes, world.running
    );
    let row = |name, value| Row::new(name, &scenario, value, "ms");
    Ok(vec![
        row("answer to filter, median", quantile(&mut took, 0.5)),
        row("answer to filter, p99", quantile(&mut took, 0.99)).against(
            Bound::AtMost,
            TARGET_MS,
            "target; with HTTP and JSON",
        ),
    ])
}

/// The milliseconds of each answer.
async fn asked(scheduler: &Scheduler, world: World, pod: &Value) -> anyhow::Result<Vec<f64>> {
    let address = scheduler.extender_address();
    let address = address.context("the scheduler serves no extender")?;
    let client = connection::client(&kube::Config::new(format!("http://{address}").parse()?))?;
    let names: Vec<String> = (0..world.nodes).map(node_name).collect();
    let question = serde_json::to_vec(&json!({"Pod": pod, "NodeNames": names}))?;
    let begun = Begun::now();
    while fitting(&client, &question).await? < world.nodes {
        wait_a_moment(&begun, "the extender does not know all nodes").await?;
    }
    let mut took = Vec::new();
    for _ in 0..QUESTIONS {
        let asked = Instant::now();
        let answer = objects::send(&client, Request::post("/filter"), question.clone()).await?;
        took.push(milliseconds(asked.elapsed()));
        ensure!(!answer.is_empty(), "the extender answers nothing");
    }
    Ok(took)
}

/// How many nodes the extender names as fitting.
async fn fitting(client: &Client, question: &[u8]) -> anyhow::Result<usize> {
    let answer = objects::send(client, Request::post("/filter"), question.to_vec()).await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    Ok(answer["NodeNames"].as_array().map_or(0, Vec::len))
}

/// A pod of the queue that kube-scheduler is to place.
fn asked_about() -> Post {
    let mut post = objects::plain_pod(ASKED, 1);
    post.body["metadata"]["labels"] = json!({"gpu-batch.io/queue": QUEUE});
    post.body["spec"]["schedulerName"] = json!(PEER);
    post
}
