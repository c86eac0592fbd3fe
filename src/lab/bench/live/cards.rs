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
use super::objects::{self, NAMESPACE, Post, node_name, post_all};
use super::run::{Begun, Run, configuration, until_bound};
use crate::kube::connection::{self, Named};
use crate::kube::convert::annotations_of_cards;
use crate::kube::execute::{exchange, lock_cards};
use crate::lab::bench::engine::facts::START_MS;
use crate::lab::bench::{Row, as_f64, median};
use crate::live::Scheduler;
use anyhow::ensure;
use gpu_batch_policies::command::{LockCards, OwnCardLock};
use gpu_batch_policies::facts::{CardPart, HAMI_REGISTER};
use kube::Client;
use plugin::Plugin;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const NODES: usize = 400;
/// Pods of half a card, of which all fit.
const PODS: usize = 2_000;

const CARDS: usize = 8;
const SLOTS: usize = 10;
const MEMORY_MIB: u64 = 81_559;

/// Measures on a local control plane, or on the user's cluster.
///
/// # Errors
/// If there is no cluster, or the API server refuses something.
pub(super) async fn measure(named: Option<&Named>) -> anyhow::Result<Vec<Row>> {
    let cluster = Cluster::start(named, NODES).await?;
    let measured = runs(&cluster).await;
    cluster.remove().await?;
    let (bare, own): (Vec<Run>, Vec<Run>) = measured?.into_iter().unzip();
    let scenario = format!("{PODS} pods of half a card, {NODES} nodes of HAMi with {CARDS} cards");
    let of = |runs: &[Run], part: &dyn Fn(&Run) -> f64| median(runs.iter().map(part).collect());
    let row = |name, unit, part: &dyn Fn(&Run) -> f64| {
        Row::new(name, scenario.clone(), of(&own, part), unit)
            .beside(of(&bare, part), "reference: the same requests alone")
    };
    let rate = |run: &Run| as_f64(PODS) / run.took;
    Ok(vec![
        row("rate from start to last bind", "pods/s", &rate),
        row("processor time of API server and etcd", "s", &|run| {
            run.used.control_plane
        }),
        row("processor time of its own", "s", &|run| run.used.own),
    ])
}

async fn runs(cluster: &Cluster) -> anyhow::Result<Vec<(Run, Run)>> {
    for number in 0..NODES {
        let node = format!("/api/v1/nodes/{}", node_name(number));
        cluster.merge(&node, &cards(number)).await?;
        let status = json!({"status": slots()});
        cluster.merge(&format!("{node}/status"), &status).await?;
    }
    let mut runs = Vec::new();
    for _ in 0..REPEATS {
        let pair = (requests_alone(cluster).await?, scheduled(cluster).await?);
        tracing::info!("cards: {pair:?}");
        runs.push(pair);
    }
    Ok(runs)
}

async fn create(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.create((0..PODS).map(pod).collect()).await
}

/// The requests of scheduler and plugin without deciding: those for the pods of a node one after
/// the other, those of all nodes side by side. As many pods are being locked and bound at a time as
/// the scheduler has requests under way.
async fn requests_alone(cluster: &Cluster) -> anyhow::Result<Run> {
    create(cluster).await?;
    let at_a_time = configuration()?.settings.in_flight.actions;
    let begun = Begun::now();
    let client = connection::client(&cluster.config)?;
    let permits = Arc::new(Semaphore::new(at_a_time as usize));
    let mut nodes = JoinSet::new();
    for node in 0..NODES {
        let (client, permits) = (client.clone(), Arc::clone(&permits));
        nodes.spawn(async move {
            for pod in (node..PODS).step_by(NODES) {
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
    let lock = lock_cards(&LockCards {
        node: node_name.as_str().into(),
        lock: OwnCardLock {
            namespace: NAMESPACE.into(),
            name: name.as_str().into(),
            at_ms: START_MS,
        },
        seen: None,
    });
    let answer = exchange(client, lock).await?;
    let status = answer.status;
    ensure!(status.is_success(), "cannot lock {node_name}: {status}");
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

async fn scheduled(cluster: &Cluster) -> anyhow::Result<Run> {
    create(cluster).await?;
    let plugin = Plugin::start(&cluster.config)?;
    let begun = Begun::now();
    let scheduler = Scheduler::start(&cluster.config, configuration()?).await?;
    let run = until_bound(&scheduler, PODS, begun).await;
    scheduler.stop().await?;
    plugin.stop().await?;
    cluster.clear().await?;
    run
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
    json!({"metadata": {"annotations": {HAMI_REGISTER: register}}})
}

/// The amounts that the node offers with it: slots of all cards.
fn slots() -> Value {
    let amounts = json!({"nvidia.com/gpu": (CARDS * SLOTS).to_string()});
    json!({"capacity": amounts, "allocatable": amounts})
}
