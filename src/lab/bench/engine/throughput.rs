//! Many single pods at once.

use super::facts::{node, pod, shape};
use super::policy;
use super::session::Session;
use crate::lab::bench::row::over_sizes;
use crate::lab::bench::{Bound, Row, as_f64, median};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{NodeFacts, Placement, PodShape};
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
        "{pods} one-GPU pods of {SHAPES} shapes, {nodes} nodes of {gpus} GPUs, {placed} fit, \
         {placement}"
    );
    let shapes: Vec<Arc<PodShape>> = (0..SHAPES).map(one_gpu_shape).map(Arc::new).collect();
    let work = Work {
        nodes,
        node: &|number| node(number, gpus as u64, [0, 0, number / 16]),
        shapes: &shapes,
        pods,
        placed,
    };
    let [placing, answered] = work.rates(settings);
    let placing = Row::new("placing single pods", scenario.clone(), placing, "pods/s");
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
            answered,
            "pods/s",
        ),
    ]
}

/// Single pods that wait, and the nodes of a cluster that is empty.
pub(super) struct Work<'a> {
    pub(super) nodes: usize,
    /// The node with a number.
    pub(super) node: &'a dyn Fn(usize) -> NodeFacts,
    /// The shapes that the pods have in turn.
    pub(super) shapes: &'a [Arc<PodShape>],
    pub(super) pods: usize,
    /// How many of the pods fit.
    pub(super) placed: usize,
}

impl Work<'_> {
    /// How many pods a second are decided; and decided with the answers to all that was sent.
    pub(super) fn rates(&self, settings: &Settings) -> [f64; 2] {
        let runs: Vec<[Duration; 2]> = (0..REPEATS).map(|_| self.run(settings)).collect();
        [0, 1].map(|which| {
            let rates = runs
                .iter()
                .map(|run| as_f64(self.pods) / run[which].as_secs_f64());
            median(rates.collect())
        })
    }

    /// The time until all pods are decided, and the time until all binds are sent, answered and
    /// reported.
    fn run(&self, settings: &Settings) -> [Duration; 2] {
        let node = |number| Object::Node((self.node)(number));
        let single = |number: usize| {
            let mut pod = pod(number, &self.shapes[number % self.shapes.len()]);
            pod.queue = Some(policy::team(number));
            Object::Pod(pod)
        };
        let world = policy::objects()
            .chain((0..self.nodes).map(node))
            .chain((0..self.pods).map(single));
        let mut session = Session::begin(settings.clone(), 128, world);
        let planned = session.plan(Session::listed());
        let answered = session.settle(planned.commands);
        assert_eq!(session.binds, self.placed, "every pod with room is bound");
        [planned.took, planned.took + answered]
    }
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
