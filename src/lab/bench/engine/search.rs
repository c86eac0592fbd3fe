//! Gangs of several shapes for which packing finds no place: how long the search for a place holds
//! up everything else at a time, and in all.

use super::facts::{group_name, node, pod, pod_group, running, shape};
use super::session::Session;
use crate::lab::bench::{Bound, Row, milliseconds};
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::PodShape;
use std::sync::Arc;
use std::time::Duration;

/// A cluster, and a gang that is one member too large for it.
struct Case {
    scenario: &'static str,
    nodes: usize,
    /// The pod that runs on a node, by the node's number.
    runs: fn(usize) -> PodShape,
    /// How many members there are of each shape, and their thousandths of a CPU and GPUs.
    members: &'static [(usize, [u64; 2])],
}

/// In the first case the search ends at its bound, in the second counting proves that there is no
/// place.
const CASES: [Case; 2] = [
    Case {
        scenario: "801 pods of 3, 4 and 5 GPUs, 500 nodes with 7 free, one pod too many",
        nodes: 500,
        runs: |_| shape(1_000, 1, 1),
        members: &[(200, [1_000, 5]), (200, [1_000, 4]), (401, [1_000, 3])],
    },
    Case {
        scenario: "600 pods of 2 shapes, 5000 nodes, 390 of them with room for one pod or two",
        nodes: 5_000,
        runs: |number| match number {
            0..390 => shape(128_000 - (24_000 + 1_000 * (number as u64 * 7 % 32)), 1, 7),
            _ => shape(128_000, 1, 8),
        },
        members: &[(300, [16_000, 1]), (300, [24_000, 0])],
    },
];

pub(super) fn measure() -> Vec<Row> {
    CASES.iter().flat_map(at).collect()
}

fn at(case: &Case) -> [Row; 3] {
    let slices = slices(case);
    let longest = slices.iter().max().copied().unwrap_or_default();
    let total: Duration = slices.iter().sum();
    let row = |name, value, unit| Row::new(name, case.scenario, value, unit);
    [
        row("searching for a gang's place", milliseconds(total), "ms"),
        row("slices of a search", slices.len() as f64, "slices"),
        row(
            "one slice of a search, longest",
            milliseconds(longest),
            "ms",
        )
        .against(Bound::AtMost, 5.0, "target"),
    ]
}

/// How long each step took, from the arrival of the last member on.
fn slices(case: &Case) -> Vec<Duration> {
    let all: usize = case.members.iter().map(|(pods, _)| pods).sum();
    let shapes = case.members.iter().flat_map(|(pods, [millicpu, gpus])| {
        let shape = Arc::new(shape(*millicpu, 1, *gpus));
        (0..*pods).map(move |_| Arc::clone(&shape))
    });
    let members = shapes.enumerate().map(|(number, shape)| {
        let mut pod = pod(number, &shape);
        pod.pod_group = Some(group_name(0));
        Object::Pod(pod)
    });
    let mut members: Vec<Object> = members.collect();
    let Some(last) = members.pop() else {
        return Vec::new();
    };
    let nodes = (0..case.nodes).flat_map(|number| {
        let node = node(number, 8, [0; 3]);
        let runs = pod(all + number, &Arc::new((case.runs)(number)));
        [Object::Pod(running(runs, &node)), Object::Node(node)]
    });
    let minimum = u32::try_from(all).unwrap_or(u32::MAX);
    let group = Object::PodGroup(pod_group(0, minimum, None));
    let mut session = Session::new(minimum, nodes.chain([group]).chain(members));
    let waiting = session.plan(Session::listed());
    session.settle(waiting.commands);
    session.now_ms += 1;
    let mut slices = vec![session.step(vec![Event::from(last)]).took];
    while session.is_unfinished() {
        slices.push(session.step(vec![Event::Continue]).took);
    }
    assert_eq!(session.binds, 0, "the gang does not fit");
    slices
}
