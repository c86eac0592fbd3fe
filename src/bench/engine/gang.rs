//! One large gang in a domain of its own.

use super::facts::{group_name, node, pod, pod_group, shape, topology};
use super::session::Session;
use crate::bench::{Bound, Row, median, milliseconds};
use gpu_batch_policies::event::{Event, Object};
use std::sync::Arc;

const NODES: usize = 5_000;
const MEMBERS: u32 = 512;
const REPEATS: usize = 11;

/// 512 pods of 8 GPUs that must share a zone: 5 zones of 1,000 nodes, blocks of 100, racks of 10.
pub(super) fn measure() -> Vec<Row> {
    let scenario =
        format!("{MEMBERS} pods of 8 GPUs, required zone above block and rack, {NODES} nodes");
    let runs: Vec<[f64; 2]> = (0..REPEATS).map(|_| one_run()).collect();
    let of = |which: usize| median(runs.iter().map(|run| run[which]).collect());
    vec![
        Row::new("placing a gang", scenario.clone(), of(0), "ms").against(
            Bound::AtMost,
            2.0,
            "target; from the last pod's arrival until the binds are issued",
        ),
        Row::new("placing a gang, binds answered", scenario, of(1), "ms"),
    ]
}

fn one_run() -> [f64; 2] {
    let shape = Arc::new(shape(64_000, 1024, 8));
    let nodes = (0..NODES).map(|number| {
        let place = [number / 1000, number / 100, number / 10];
        Object::Node(node(number, 8, place))
    });
    let member = |number: u32| {
        let mut pod = pod(number as usize, &shape);
        pod.pod_group = Some(group_name(0));
        Object::Pod(pod)
    };
    let world = nodes
        .chain([
            Object::Topology(topology()),
            Object::PodGroup(pod_group(0, MEMBERS, Some("zone"))),
        ])
        .chain((1..MEMBERS).map(member));
    let mut session = Session::new(MEMBERS, world);
    let waiting = session.plan(Session::listed());
    session.settle(waiting.commands);
    session.now_ms += 1;
    let planned = session.plan(vec![Event::from(member(0))]);
    assert_eq!(session.binds, MEMBERS as usize, "the gang is bound whole");
    let answered = session.settle(planned.commands);
    [
        milliseconds(planned.took),
        milliseconds(planned.took + answered),
    ]
}
