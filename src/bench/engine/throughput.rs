//! Many single pods at once.

use super::facts::{node, pod, shape};
use super::session::Session;
use crate::bench::{Bound, Row, as_f64, median};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::PodShape;
use std::sync::Arc;
use std::time::Duration;

const NODES: usize = 10_000;
const PODS: usize = 100_000;
const SHAPES: usize = 50;
const REPEATS: usize = 3;

/// 100,000 pods of one GPU: on nodes of 16 GPUs all of them fit; on nodes of 8 the last 20,000 are
/// refused.
pub(super) fn measure() -> Vec<Row> {
    let mut rows = Vec::new();
    for (gpus, placed) in [(16, PODS), (8, NODES * 8)] {
        let scenario = format!(
            "{PODS} one-GPU pods of {SHAPES} shapes, {NODES} nodes of {gpus} GPUs, {placed} fit"
        );
        let runs: Vec<[Duration; 2]> = (0..REPEATS).map(|_| one_run(gpus, placed)).collect();
        let rate = |which: usize| {
            let rates = runs
                .iter()
                .map(|run| as_f64(PODS) / run[which].as_secs_f64());
            median(rates.collect())
        };
        rows.push(
            Row::new("placing single pods", scenario.clone(), rate(0), "pods/s").against(
                Bound::AtLeast,
                200_000.0,
                "target; looking at every pod and its queue, and a place for it or a reason",
            ),
        );
        rows.push(Row::new(
            "placing and binding single pods",
            scenario,
            rate(1),
            "pods/s",
        ));
    }
    rows
}

/// The time until all pods are decided, and until all binds are sent, answered and reported.
fn one_run(gpus: u64, placed: usize) -> [Duration; 2] {
    let shapes: Vec<Arc<PodShape>> = (0..SHAPES).map(one_gpu_shape).map(Arc::new).collect();
    let nodes = (0..NODES).map(|number| Object::Node(node(number, gpus, [0, 0, number / 16])));
    let pods = (0..PODS).map(|number| Object::Pod(pod(number, &shapes[number % SHAPES])));
    let mut session = Session::new(128, nodes.chain(pods));
    let planned = session.plan(Session::listed());
    let answered = session.settle(planned.commands);
    assert_eq!(session.binds, placed, "every pod with room is bound");
    [planned.took, planned.took + answered]
}

/// One GPU, and CPU and memory that differ; every tenth shape is tied to a pool of nodes.
fn one_gpu_shape(number: usize) -> PodShape {
    let (millicpu, gib) = (1000 + 100 * (number as u64 % 10), 1 + number as u64 / 10);
    let mut shape = shape(millicpu, gib, 1);
    if number.is_multiple_of(10) {
        let pool = format!("pool-{}", number / 10 % 4);
        shape.node_selector = vec![("pool".into(), pool.into())];
    }
    shape
}
