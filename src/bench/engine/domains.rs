//! A topology of very many domains.

use super::facts::{group_name, node, pod, pod_group, shape, topology};
use super::session::Session;
use crate::bench::{Bound, Row, median, milliseconds};
use gpu_batch_policies::event::Object;
use std::sync::Arc;

const NODES: usize = 19_200;
const RACKS: usize = 9_600;
const REPEATS: usize = 7;

/// A gang that must share one of 9,600 racks, and one that must share one of 96 blocks and should
/// be in as few racks as possible.
pub(super) fn measure() -> Vec<Row> {
    [("rack", 2), ("block", 128)]
        .into_iter()
        .map(|(level, members)| {
            let scenario = format!(
                "{members} pods of 8 GPUs, required {level}, {RACKS} racks in 96 blocks, {NODES} nodes"
            );
            let runs = (0..REPEATS).map(|_| one_run(level, members)).collect();
            Row::new("many topology domains", scenario, median(runs), "ms").against(
                Bound::AtMost,
                5.0,
                "target; Volcano takes 5.5 minutes (volcano#5811)",
            )
        })
        .collect()
}

fn one_run(level: &str, members: u32) -> f64 {
    let shape = Arc::new(shape(64_000, 1024, 8));
    let nodes = (0..NODES).map(|number| {
        let place = [0, number / (NODES / 96), number / (NODES / RACKS)];
        Object::Node(node(number, 8, place))
    });
    let world = nodes.chain([
        Object::Topology(topology()),
        Object::PodGroup(pod_group(0, members, Some(level))),
    ]);
    let mut session = Session::new(members, world);
    let waiting = session.plan(Session::listed());
    session.settle(waiting.commands);
    let arrivals = (0..members).map(|number| {
        let mut pod = pod(number as usize, &shape);
        pod.pod_group = Some(group_name(0));
        Object::Pod(pod).into()
    });
    session.now_ms += 1;
    let planned = session.plan(arrivals.collect());
    assert_eq!(session.binds, members as usize, "the gang is bound whole");
    milliseconds(planned.took)
}
