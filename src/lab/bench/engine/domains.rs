//! A topology of very many domains.

use super::facts::{group_name, node, pod, pod_group, shape};
use super::policy;
use super::session::Session;
use crate::lab::bench::row::over_sizes;
use crate::lab::bench::{Bound, Row, median, milliseconds};
use gpu_batch_policies::event::Object;
use std::sync::Arc;

/// Numbers of racks of two nodes; the target is for the last number.
const SIZES: [usize; 3] = [2_400, 4_800, 9_600];
const NODES_IN_RACK: usize = 2;
const RACKS_IN_BLOCK: usize = 100;
const REPEATS: usize = 7;

/// A gang that must share one of 9,600 racks, and a gang that must share one of 96 blocks and
/// should be in as few racks as possible; then both with fewer racks.
pub(super) fn measure() -> Vec<Row> {
    let gangs = [("rack", 2), ("block", 128)].into_iter();
    gangs
        .flat_map(|(level, members)| over_sizes(SIZES, |racks| at_size(racks, level, members)))
        .collect()
}

fn at_size(racks: usize, level: &str, members: u32) -> Vec<Row> {
    let scenario = format!(
        "{members} pods of 8 GPUs, required {level}, {racks} racks in {} blocks, {} nodes",
        racks / RACKS_IN_BLOCK,
        racks * NODES_IN_RACK
    );
    let runs = (0..REPEATS).map(|_| one_run(racks, level, members));
    let row = Row::new(
        "many topology domains",
        scenario,
        median(runs.collect()),
        "ms",
    );
    vec![match racks == SIZES[SIZES.len() - 1] {
        true => row.against(
            Bound::AtMost,
            5.0,
            "target; Volcano takes 5.5 minutes (volcano#5811)",
        ),
        false => row,
    }]
}

fn one_run(racks: usize, level: &str, members: u32) -> f64 {
    let shape = Arc::new(shape(64_000, 1024, 8));
    let nodes = (0..racks * NODES_IN_RACK).map(|number| {
        let rack = number / NODES_IN_RACK;
        Object::Node(node(number, 8, [0, rack / RACKS_IN_BLOCK, rack]))
    });
    let mut group = pod_group(0, members, Some(level));
    group.queue = Some(policy::team(0));
    let world = nodes.chain([Object::PodGroup(group)]);
    let mut session = Session::with_policy(members, world);
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
