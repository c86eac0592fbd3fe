//! Pods with parts of cards, on fake nodes of HAMi: the time until all are bound, beside the time
//! that the API server needs for the same requests alone.
//!
//! ```text
//!   for each pod, one pod of a node at a time:
//!       lock of the node, binding              by the scheduler, or the bare sequence
//!       phase of the pod, lock taken away      by the plugin
//! ```
//!
//! The plugin is one for all nodes. It does what HAMi's device plugin does when a kubelet has asked
//! it for the cards of a pod: no kubelet takes time here.

mod plugin;

use super::REPEATS;
use super::cluster::Cluster;
use super::objects::{self, NAMESPACE, Post, node_name, post_all, send};
use super::run::{Begun, Run, configuration, wait_a_moment};
use crate::kube::connection::{self, Named};
use crate::kube::convert::{CARD_LOCK, annotations_of_cards, written_card_lock};
use crate::lab::bench::engine::facts::START_MS;
use crate::lab::bench::{Row, as_f64, median};
use crate::live::Scheduler;
use gpu_batch_policies::facts::CardPart;
use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use plugin::Plugin;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How large the cluster is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World {
    pub nodes: usize,
    /// Pods of half a card, of which all fit.
    pub pods: usize,
}

/// The world that the documentation describes.
pub(crate) const BIG: World = World {
    nodes: 400,
    pods: 2_000,
};

const CARDS: usize = 8;
const SLOTS: usize = 10;
const MEMORY_MIB: u64 = 81_559;

/// Measures on a local control plane, or on the user's cluster.
///
/// # Errors
/// If there is no cluster, or the API server refuses something.
pub(crate) async fn measure(world: World, named: Option<&Named>) -> anyhow::Result<Vec<Row>> {
    let cluster = Cluster::start(named, world.nodes).await?;
    let measured = runs(&cluster, world).await;
    cluster.remove().await?;
    let (bare, own): (Vec<Run>, Vec<Run>) = measured?.into_iter().unzip();
    let World { nodes, pods } = world;
    let scenario = format!("{pods} pods of half a card, {nodes} nodes of HAMi with {CARDS} cards");
    let of = |runs: &[Run], part: &dyn Fn(&Run) -> f64| median(runs.iter().map(part).collect());
    let row = |name, unit, part: &dyn Fn(&Run) -> f64| {
        Row::new(name, scenario.clone(), of(&own, part), unit)
            .beside(of(&bare, part), "reference: the same requests alone")
    };
    let rate = |run: &Run| as_f64(pods) / run.took;
    Ok(vec![
        row("rate from start to last bind", "pods/s", &rate),
        row("processor time of API server and etcd", "s", &|run| {
            run.used.control_plane
        }),
        row("processor time of its own", "s", &|run| run.used.own),
    ])
}

async fn runs(cluster: &Cluster, world: World) -> anyhow::Result<Vec<(Run, Run)>> {
    for number in 0..world.nodes {
        let node = format!("/api/v1/nodes/{}", node_name(number));
        cluster.merge(&node, &cards(number)).await?;
        let status = json!({"status": slots()});
        cluster.merge(&format!("{node}/status"), &status).await?;
    }
    let mut runs = Vec::new();
    for _ in 0..REPEATS {
        let pair = (
            requests_alone(cluster, world).await?,
            scheduled(cluster, world).await?,
        );
        tracing::info!("cards: {pair:?}");
        runs.push(pair);
    }
    Ok(runs)
}

async fn create(cluster: &Cluster, world: World) -> anyhow::Result<()> {
    cluster.create((0..world.pods).map(pod).collect()).await
}

/// The requests of both sides in their order, for the pods of each node one after the other, and
/// for all nodes side by side. The scheduler's requests are no more at a time than its own.
async fn requests_alone(cluster: &Cluster, world: World) -> anyhow::Result<Run> {
    create(cluster, world).await?;
    let at_a_time = configuration()?.settings.in_flight.actions;
    let begun = Begun::now();
    let client = connection::client(&cluster.config)?;
    let permits = Arc::new(Semaphore::new(at_a_time as usize));
    let mut nodes = JoinSet::new();
    for node in 0..world.nodes {
        let (client, permits) = (client.clone(), Arc::clone(&permits));
        nodes.spawn(async move {
            for pod in (node..world.pods).step_by(world.nodes) {
                let permit = permits.acquire().await?;
                bind(&client, pod, node).await?;
                drop(permit);
                plugin::serve(&client, &pod_name(pod), &node_name(node)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(node) = nodes.join_next().await {
        node??;
    }
    let run = begun.end();
    cluster.clear().await?;
    Ok(run)
}

/// Takes the lock of a node and binds a pod to it.
async fn bind(client: &Client, pod: usize, node: usize) -> anyhow::Result<()> {
    let (name, node_name) = (pod_name(pod), node_name(node));
    let path = format!("/metadata/annotations/{}", CARD_LOCK.replace('/', "~1"));
    let lock = json!([
        {"op": "test", "path": path, "value": null},
        {"op": "add", "path": path, "value": written_card_lock(START_MS, NAMESPACE, &name)},
    ]);
    let request = Request::patch(format!("/api/v1/nodes/{node_name}"));
    let request = request.header(CONTENT_TYPE, "application/json-patch+json");
    send(client, request, serde_json::to_vec(&lock)?).await?;
    let part = CardPart {
        card: card_id(node, pod % CARDS).into(),
        slots: 1,
        thousandths: 500,
        memory_mib: MEMORY_MIB / 2,
        instances: Vec::new(),
    };
    let mut binding = objects::binding(&name, node);
    let annotations = annotations_of_cards(&node_name, &[vec![part]], START_MS);
    binding.body["metadata"]["annotations"] = annotations.into_iter().collect();
    post_all(client, vec![binding], 1).await
}

async fn scheduled(cluster: &Cluster, world: World) -> anyhow::Result<Run> {
    create(cluster, world).await?;
    let plugin = Plugin::start(&cluster.config)?;
    let begun = Begun::now();
    let scheduler = Scheduler::start(&cluster.config, configuration()?).await?;
    let run = until_bound(&scheduler, world, begun).await;
    scheduler.stop().await?;
    plugin.stop().await?;
    cluster.clear().await?;
    run
}

async fn until_bound(scheduler: &Scheduler, world: World, begun: Begun) -> anyhow::Result<Run> {
    loop {
        let bound = scheduler.binds();
        if bound >= world.pods as u64 {
            return Ok(begun.end());
        }
        let lacks = format!("only {bound} of {} pods are bound", world.pods);
        wait_a_moment(&begun, &lacks).await?;
    }
}

fn pod_name(number: usize) -> String {
    format!("part-{number}")
}

/// A pod of half a card.
fn pod(number: usize) -> Post {
    let mut post = objects::plain_pod(&pod_name(number), 1);
    let limits = &mut post.body["spec"]["containers"][0]["resources"]["limits"];
    limits["nvidia.com/gpumem-percentage"] = json!("50");
    limits["nvidia.com/gpucores"] = json!("50");
    post
}

fn card_id(node: usize, card: usize) -> String {
    format!("GPU-{node}-{card}")
}

/// What HAMi's device plugin writes on a node.
fn cards(node: usize) -> Value {
    let card = |number| {
        json!({
            "id": card_id(node, number), "count": SLOTS, "devmem": MEMORY_MIB, "devcore": 100,
            "type": "NVIDIA-NVIDIA H100 80GB HBM3", "mode": "hami-core", "health": true,
        })
    };
    let cards: Vec<Value> = (0..CARDS).map(card).collect();
    let register = Value::from(cards).to_string();
    json!({"metadata": {"annotations": {"hami.io/node-nvidia-register": register}}})
}

/// The amounts that the node offers with it: slots of all cards.
fn slots() -> Value {
    let amounts = json!({"nvidia.com/gpu": (CARDS * SLOTS).to_string()});
    json!({"capacity": amounts, "allocatable": amounts})
}
