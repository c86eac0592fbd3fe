//! Many single pods at once.

use super::facts::{node, pod, shape};
use super::policy;
use super::session::Session;
use crate::lab::bench::row::over_sizes;
use crate::lab::bench::{Bound, Row, as_f64, median};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{Placement, PodShape};
use gpu_batch_policies::settings::Settings;
use std::sync::Arc;
use std::time::Duration;

/// Numbers of nodes; the target is for the last number.
const SIZES: [usize; 3] = [2_500, 5_000, 10_000];
const PODS_PER_NODE: usize = 10;
const SHAPES: usize = 50;
const REPEATS: usize = 3;

/// Ten pods of one GPU for each node: on nodes of 16 GPUs all of them fit; on nodes of 8 the last
/// fifth is refused.
pub(super) fn measure() -> Vec<Row> {
    let settings = policy::settings();
    let fragmentation = Settings {
        gpu_placement: Placement::Fragmentation,
        ..settings.clone()
    };
    [
        (16, "binpack", &settings),
        (8, "binpack", &settings),
        (16, "fragmentation", &fragmentation),
    ]
    .into_iter()
    .flat_map(|(gpus, placement, settings)| {
        over_sizes(SIZES, |nodes| at_size(nodes, gpus, placement, settings))
    })
    .collect()
}

fn at_size(nodes: usize, gpus: usize, placement: &str, settings: &Settings) -> Vec<Row> {
    let pods = nodes * PODS_PER_NODE;
    let placed = pods.min(nodes * gpus);
    let scenario = format!(
        "{pods} one-GPU pods of {SHAPES} shapes, {nodes} nodes of {gpus} GPUs, {placed} fit, {placement}"
    );
    let runs: Vec<[Duration; 2]> = (0..REPEATS)
        .map(|_| one_run(nodes, gpus, settings))
        .collect();
    let rate = |which: usize| {
        let rates = runs
            .iter()
            .map(|run| as_f64(pods) / run[which].as_secs_f64());
        median(rates.collect())
    };
    let placing = Row::new("placing single pods", scenario.clone(), rate(0), "pods/s");
    let target = nodes == SIZES[SIZES.len() - 1] && placement == "binpack";
    vec![
        match target {
            true => placing.against(
                Bound::AtLeast,
                200_000.0,
                "target; looking at every pod and its queue, and a place for it or a reason",
            ),
            false => placing,
        },
        Row::new(
            "placing and binding single pods",
            scenario,
            rate(1),
            "pods/s",
        ),
    ]
}

/// The time until all pods are decided, and the time until all binds are sent, answered and
/// reported.
fn one_run(nodes: usize, gpus: usize, settings: &Settings) -> [Duration; 2] {
    let pods = nodes * PODS_PER_NODE;
    let shapes: Vec<Arc<PodShape>> = (0..SHAPES).map(one_gpu_shape).map(Arc::new).collect();
    let node = |number| Object::Node(node(number, gpus as u64, [0, 0, number / 16]));
    let single = |number: usize| {
        let mut pod = pod(number, &shapes[number % SHAPES]);
        pod.queue = Some(policy::team(number));
        Object::Pod(pod)
    };
    let world = policy::objects()
        .chain((0..nodes).map(node))
        .chain((0..pods).map(single));
    let mut session = Session::begin(settings.clone(), 128, world);
    let planned = session.plan(Session::listed());
    let answered = session.settle(planned.commands);
    let placed = pods.min(nodes * gpus);
    assert_eq!(session.binds, placed, "every pod with room is bound");
    [planned.took, planned.took + answered]
}

/// A shape of one GPU, with different CPU and memory; every tenth shape is tied to a pool of nodes.
fn one_gpu_shape(number: usize) -> PodShape {
    let (millicpu, gib) = (1000 + 100 * (number as u64 % 10), 1 + number as u64 / 10);
    let mut shape = shape(millicpu, gib, 1);
    if number.is_multiple_of(10) {
        let pool = format!("pool-{}", number / 10 % 4);
        shape.node_selector = vec![("pool".into(), pool.into())];
    }
    shape
}
