//! Beside the real kube-scheduler: both bind equal pods in one world, one after the other; and in
//! that world the answers of the extender, with HTTP and JSON.
//!
//! ```text
//!   nodes -> pods that run -> for each shape, REPEATS times:
//!       create pods -> bare binder    -> delete
//!       create pods -> kube-scheduler -> delete
//!       create pods -> gpu-batch      -> delete
//!   -> the extender is asked about pods
//! ```
//!
//! All pods wait before a scheduler starts, and a rate counts from the first bind to the last: how
//! long lists take is measured elsewhere, and no scheduler waits for pods to be created. The shapes
//! are those of kube-scheduler's own benchmark, scheduler_perf.

mod binds;
mod filter;
mod shapes;

use super::cluster::Cluster;
use super::objects::{self, NAMESPACE, Post, SCHEDULER, node_name, post_all};
use super::run::{Begun, configuration, wait_a_moment};
use crate::kube::connection;
use crate::lab::bench::{Bound, Row, median};
use crate::live::Scheduler;
use binds::Binds;
use serde_json::json;
use shapes::Shape;

/// How large the world is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World {
    /// Nodes, in three zones.
    pub nodes: usize,
    /// Pods that run, of another scheduler.
    pub running: usize,
    /// Pods of one shape that wait. At most one on a node, where the shape keeps them apart.
    pub waiting: usize,
}

/// The world that the documentation describes.
pub(crate) const BIG: World = World {
    nodes: 5_000,
    running: 50_000,
    waiting: 500,
};

const REPEATS: usize = 3;

/// Pods whose requests are formed at once.
const BATCH: usize = 5_000;

/// The `schedulerName` of pods that kube-scheduler binds.
const PEER: &str = "default-scheduler";

/// By which factor gpu-batch is to be faster than kube-scheduler, unless the bare binder is slower.
const PLAIN_FACTOR: f64 = 2.0;
const RELATIONAL_FACTOR: f64 = 5.0;

/// The rates of one repetition, in pods a second.
#[derive(Debug, Clone, Copy)]
struct Rates {
    bare: f64,
    peer: f64,
    own: f64,
}

/// Measures on a local control plane.
///
/// # Errors
/// If there is no control plane, or the API server refuses something.
pub(crate) async fn measure(world: World) -> anyhow::Result<Vec<Row>> {
    let mut cluster = Cluster::with_kube_scheduler().await?;
    fill(&cluster, world).await?;
    let mut rows = Vec::new();
    for shape in Shape::ALL {
        let mut rates = Vec::new();
        for _ in 0..REPEATS {
            let measured = repetition(&mut cluster, world, shape).await?;
            tracing::info!("{}: {measured:?}", shape.name());
            rates.push(measured);
        }
        rows.extend(report(world, shape, &rates));
    }
    rows.extend(filter::measure(&cluster, world).await?);
    Ok(rows)
}

fn report(world: World, shape: Shape, rates: &[Rates]) -> [Row; 2] {
    let of = |rate: &dyn Fn(&Rates) -> f64| median(rates.iter().map(rate).collect());
    let World {
        nodes,
        running,
        waiting,
    } = world;
    let name = shape.name();
    let scenario = format!("{waiting} pods {name}, {nodes} nodes, {running} pods running");
    let factor = match shape {
        Shape::Plain => PLAIN_FACTOR,
        _ => RELATIONAL_FACTOR,
    };
    let least = |rates: &Rates| rates.own / (factor * rates.peer).min(rates.bare);
    [
        Row::new("rate of binds", &scenario, of(&|rates| rates.own), "pods/s")
            .beside(of(&|rates| rates.peer), "reference: kube-scheduler"),
        Row::new("rate over what it is to be", &scenario, of(&least), "x").against(
            Bound::AtLeast,
            1.0,
            match shape {
                Shape::Plain => "2 times kube-scheduler's, or the bare binder's",
                _ => "5 times kube-scheduler's, or the bare binder's",
            },
        ),
    ]
}

/// Creates the nodes and the pods that run.
async fn fill(cluster: &Cluster, world: World) -> anyhow::Result<()> {
    let node = |number| {
        let mut post = objects::node(number);
        let zone = format!("zone-{}", number % 3);
        post.body["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!(zone);
        post
    };
    cluster.create((0..world.nodes).map(node).collect()).await?;
    let numbers: Vec<usize> = (0..world.running).collect();
    for batch in numbers.chunks(BATCH) {
        let pods = batch.iter().map(|number| {
            let mut post = objects::plain_pod(&format!("running-{number}"), 0);
            post.body["metadata"]["labels"] = json!({"app": "running"});
            post.body["spec"]["schedulerName"] = json!(PEER);
            post.body["spec"]["nodeName"] = json!(node_name(number % world.nodes));
            post
        });
        cluster.create(pods.collect()).await?;
        tracing::info!("{} of {} pods run", batch[0] + batch.len(), world.running);
    }
    Ok(())
}

async fn repetition(cluster: &mut Cluster, world: World, shape: Shape) -> anyhow::Result<Rates> {
    let bare = {
        create(cluster, world, shape, SCHEDULER).await?;
        let binds = Binds::watch(cluster).await?;
        let at_a_time = configuration()?.settings.in_flight.actions;
        let client = connection::client(&cluster.config)?;
        let bindings = (0..world.waiting).map(|number| binding(number, number % world.nodes));
        post_all(&client, bindings.collect(), at_a_time).await?;
        let rate = binds.rate(world.waiting).await?;
        clear(cluster).await?;
        rate
    };
    let peer = {
        create(cluster, world, shape, PEER).await?;
        let binds = Binds::watch(cluster).await?;
        cluster.start_kube_scheduler()?;
        let rate = binds.rate(world.waiting).await;
        cluster.stop_kube_scheduler();
        clear(cluster).await?;
        rate?
    };
    let own = {
        create(cluster, world, shape, SCHEDULER).await?;
        let binds = Binds::watch(cluster).await?;
        let scheduler = Scheduler::start(&cluster.config, configuration()?).await?;
        let rate = binds.rate(world.waiting).await;
        scheduler.stop().await?;
        clear(cluster).await?;
        rate?
    };
    Ok(Rates { bare, peer, own })
}

/// Creates the pods of a shape that wait for a scheduler.
async fn create(
    cluster: &Cluster,
    world: World,
    shape: Shape,
    scheduler: &str,
) -> anyhow::Result<()> {
    let pods = (0..world.waiting).map(|number| shape.pod(&pod_name(number), number, scheduler));
    cluster.create(pods.collect()).await
}

/// Removes the pods of a shape, and waits until they are gone.
async fn clear(cluster: &Cluster) -> anyhow::Result<()> {
    let pods = format!(
        "/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={}",
        shapes::SELECTOR
    );
    cluster.delete(&pods).await?;
    let begun = Begun::now();
    while cluster.get(&format!("{pods}&limit=1")).await?["items"][0].is_object() {
        wait_a_moment(&begun, "the pods are not gone").await?;
    }
    Ok(())
}

fn pod_name(number: usize) -> String {
    format!("waiting-{number}")
}

fn binding(number: usize, node: usize) -> Post {
    objects::binding(&pod_name(number), node)
}
