//! A gang of roles: a leader, and slices that need a rack each.

use super::facts::{group_name, node, pod, pod_group, running, shape};
use super::policy;
use super::session::Session;
use crate::lab::bench::row::over_sizes;
use crate::lab::bench::{Row, median, milliseconds};
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::{
    NodeFacts, PodFacts, PodGroupFacts, PodShape, SubGroupFacts, TopologyConstraint,
};
use std::sync::Arc;

/// Numbers of nodes, in racks of 10 and blocks of 10 racks.
const SIZES: [usize; 3] = [1_250, 2_500, 5_000];
const NODES_IN_RACK: usize = 10;
const RACKS_IN_BLOCK: usize = 10;
const SLICES: usize = 8;
const MEMBERS_OF_SLICE: usize = 8;
const REPEATS: usize = 11;

/// One block for all members, and in it a rack for each of 8 slices of 8 pods of 8 GPUs. In every
/// rack one or two nodes are taken, which leaves room for one slice; in each fifth rack three are
/// taken, which leaves room for none. Where the gang is to be refused, in each third rack three are
/// taken, and no block has eight other racks.
pub(super) fn measure() -> Vec<Row> {
    let worlds = [
        ("placing a gang of roles", 5),
        ("refusing a gang of roles", 3),
    ];
    worlds
        .into_iter()
        .flat_map(|(name, short)| {
            over_sizes(SIZES, |nodes| {
                let scenario = format!(
                    "a leader and {SLICES} slices of {MEMBERS_OF_SLICE} pods of 8 GPUs, required block, \
                     a rack for each slice, {nodes} nodes"
                );
                let fits = short == 5;
                let runs = (0..REPEATS).map(|_| one_run(nodes, short, fits));
                vec![Row::new(name, scenario, median(runs.collect()), "ms")]
            })
        })
        .collect()
}

fn one_run(nodes: usize, short: usize, fits: bool) -> f64 {
    let shapes = [(8_000, 64, 0), (64_000, 1024, 8)]
        .map(|(millicpu, gib, gpus)| Arc::new(shape(millicpu, gib, gpus)));
    let nodes: Vec<NodeFacts> = (0..nodes).map(placed).collect();
    let taken = nodes.iter().enumerate().filter_map(|(number, node)| {
        let rack = number / NODES_IN_RACK;
        let taken = if rack.is_multiple_of(short) {
            3
        } else {
            1 + rack % 2
        };
        (number % NODES_IN_RACK < taken).then(|| foreign(number, &shapes[1], node))
    });
    let taken: Vec<PodFacts> = taken.collect();
    let mut members = members(&shapes);
    let leader = members.next().map(|pod| Event::from(Object::Pod(pod)));
    let world = nodes
        .into_iter()
        .map(Object::Node)
        .chain(taken.into_iter().map(Object::Pod))
        .chain([Object::PodGroup(group())])
        .chain(members.map(Object::Pod));
    let mut session = Session::with_policy(u32::MAX, world);
    let waiting = session.plan(Session::listed());
    session.settle(waiting.commands);
    session.now_ms += 1;
    let planned = session.plan(leader.into_iter().collect());
    let bound = if fits {
        1 + SLICES * MEMBERS_OF_SLICE
    } else {
        0
    };
    assert_eq!(
        session.binds, bound,
        "the gang is bound whole, or not at all"
    );
    milliseconds(planned.took)
}

fn placed(number: usize) -> NodeFacts {
    let rack = number / NODES_IN_RACK;
    let block = rack / RACKS_IN_BLOCK;
    node(number, 8, [block / 10, block, rack])
}

/// A pod of another scheduler that takes a whole node.
fn foreign(number: usize, shape: &Arc<PodShape>, node: &NodeFacts) -> PodFacts {
    let mut pod = pod(1_000_000 + number, shape);
    pod.ours = false;
    running(pod, node)
}

/// The leader and the members of the slices.
fn members(shapes: &[Arc<PodShape>; 2]) -> impl Iterator<Item = PodFacts> {
    (0..=SLICES * MEMBERS_OF_SLICE).map(|number| {
        let slice = number
            .checked_sub(1)
            .map(|member| member / MEMBERS_OF_SLICE);
        let mut pod = pod(number, &shapes[usize::from(slice.is_some())]);
        pod.pod_group = Some(group_name(0));
        pod.sub_group = Some(slice.map_or_else(|| "leader".into(), slice_name));
        pod
    })
}

fn slice_name(number: usize) -> Box<str> {
    format!("slice-{number}").into()
}

fn group() -> PodGroupFacts {
    let leaf = |name: Box<str>, minimum: usize, required: Option<&str>| SubGroupFacts {
        topology: required.map(|level| TopologyConstraint {
            required: Some(level.into()),
            ..TopologyConstraint::default()
        }),
        ..SubGroupFacts::new(&name, "", u32::try_from(minimum).ok())
    };
    let slices = (0..SLICES).map(|number| leaf(slice_name(number), MEMBERS_OF_SLICE, Some("rack")));
    let mut group = pod_group(0, 1, Some("block"));
    group.queue = Some(policy::team(0));
    group.sub_groups = [leaf("leader".into(), 1, None)]
        .into_iter()
        .chain(slices)
        .collect();
    group
}
