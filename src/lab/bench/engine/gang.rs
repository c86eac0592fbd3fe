//! One large gang in a domain of its own.

use super::facts::{group_name, node, pod, pod_group, shape};
use super::policy;
use super::session::{Session, Stepped};
use crate::lab::bench::row::over_sizes;
use crate::lab::bench::{Bound, Row, median, milliseconds};
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::PodShape;
use std::sync::Arc;

/// Numbers of nodes; the target is for the last number.
const SIZES: [usize; 3] = [1_250, 2_500, 5_000];
const ZONES: usize = 5;
const MEMBERS_OF_LARGEST: usize = 512;
const REPEATS: usize = 11;

/// 512 pods of 8 GPUs that must share a zone: 5 zones of 1,000 nodes, blocks of 100, racks of 10.
/// With fewer nodes the gang and the zones are smaller in proportion.
pub(super) fn measure() -> Vec<Row> {
    over_sizes(SIZES, at_size)
}

fn at_size(nodes: usize) -> Vec<Row> {
    let largest = SIZES[SIZES.len() - 1];
    let members = MEMBERS_OF_LARGEST * nodes / largest;
    let scenario =
        format!("{members} pods of 8 GPUs, required zone above block and rack, {nodes} nodes");
    let runs: Vec<[f64; 2]> = (0..REPEATS).map(|_| one_run(nodes, members)).collect();
    let of = |which: usize| median(runs.iter().map(|run| run[which]).collect());
    let placing = Row::new("placing a gang", scenario.clone(), of(0), "ms");
    vec![
        match nodes == largest {
            true => placing.against(
                Bound::AtMost,
                2.0,
                "target; from the last pod's arrival until the binds are issued",
            ),
            false => placing,
        },
        Row::new("placing a gang, binds answered", scenario, of(1), "ms"),
    ]
}

fn one_run(nodes: usize, members: usize) -> [f64; 2] {
    let nodes = (0..nodes).map(|number| {
        let place = [number / (nodes / ZONES), number / 100, number / 10];
        Object::Node(node(number, 8, place))
    });
    let shape = Arc::new(shape(64_000, 1024, 8));
    let (mut session, planned) = completed(nodes, &shape, members, Some("zone"));
    assert_eq!(session.binds, members, "the gang is bound whole");
    let answered = session.settle(planned.commands);
    [
        milliseconds(planned.took),
        milliseconds(planned.took + answered),
    ]
}

/// A session in which a gang of pods of one shape has waited for its last pod, and what was planned
/// when that came. `required`: the level of which the gang must share a domain.
pub(super) fn completed(
    world: impl Iterator<Item = Object>,
    shape: &Arc<PodShape>,
    members: usize,
    required: Option<&str>,
) -> (Session, Stepped) {
    let minimum = u32::try_from(members).unwrap_or(u32::MAX);
    let mut group = pod_group(0, minimum, required);
    group.queue = Some(policy::team(0));
    let member = |number: usize| {
        let mut pod = pod(number, shape);
        pod.pod_group = Some(group_name(0));
        Object::Pod(pod)
    };
    let world = world
        .chain([Object::PodGroup(group)])
        .chain((1..members).map(member));
    let mut session = Session::with_policy(minimum, world);
    let waiting = session.plan(Session::listed());
    session.settle(waiting.commands);
    session.now_ms += 1;
    let planned = session.plan(vec![Event::from(member(0))]);
    (session, planned)
}
