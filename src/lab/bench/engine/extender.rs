//! What kube-scheduler waits for when it asks its extender about a pod: its cycle stands still.

use super::facts::{node, pod, running, shape};
use super::policy;
use super::session::Session;
use crate::lab::bench::{Bound, Row, milliseconds, quantile};
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::{NodeFacts, PodFacts};
use std::sync::Arc;

/// How many nodes there are, all of which kube-scheduler names.
const NODES: usize = 5_000;
/// How many pods run on each.
const PODS_PER_NODE: usize = 10;
/// For how many pods it is asked, one after the other.
const ASKED: usize = 1_000;
/// How many nodes are in a rack, and in a block.
const RACK: usize = 10;
const BLOCK: usize = 100;

/// For each pod the nodes are filtered and ordered, and the pod is bound to the best one, so that
/// no table stays as it is from one pod to the next.
pub(super) fn measure() -> Vec<Row> {
    let place = |number| [0, number / BLOCK, number / RACK];
    let nodes = (0..NODES).map(|number| node(number, 8, place(number)));
    let nodes: Vec<NodeFacts> = nodes.collect();
    let names: Vec<Box<str>> = nodes.iter().map(|node| node.name.clone()).collect();
    let small = Arc::new(shape(1_000, 4, 0));
    let runs = (0..NODES * PODS_PER_NODE).map(|number| {
        let mut pod = running(pod(number, &small), &nodes[number % NODES]);
        pod.queue = Some(policy::team(number));
        Object::Pod(pod)
    });
    let world = nodes.iter().cloned().map(Object::Node).chain(runs);
    let mut session = Session::with_policy(64, world);
    let listed = session.plan(Session::listed());
    session.settle(listed.commands);
    let mut took = [Vec::new(), Vec::new()];
    for number in 0..ASKED {
        let asked = asked_for(number);
        let uid = asked.uid;
        session.now_ms += 1;
        session.plan(vec![Object::Pod(asked).into()]);
        let (first, filtering) = session.filter(uid, &names);
        let (best, scoring) = session.score(uid, &names);
        took[0].push(filtering);
        took[1].push(scoring);
        assert!(first, "there is room on every node");
        let bound = session.plan(vec![Event::BindAsked {
            pod: uid,
            node: names[best].clone(),
        }]);
        session.settle(bound.commands);
    }
    assert_eq!(session.binds, ASKED, "each pod is bound as it is asked");
    let scenario = format!(
        "{NODES} node names, {} pods run, {ASKED} pods of a GPU one after the other",
        NODES * PODS_PER_NODE
    );
    let [filtering, scoring] = took.map(|took| {
        let mut took: Vec<f64> = took.into_iter().map(milliseconds).collect();
        [0.5, 0.99].map(|part| quantile(&mut took, part))
    });
    let row = |name, value| Row::new(name, scenario.clone(), value, "ms");
    let target = |row: Row| row.against(Bound::AtMost, 5.0, "target; HTTP and JSON come on top");
    vec![
        row("filtering nodes, median", filtering[0]),
        target(row("filtering nodes, p99", filtering[1])),
        row("ordering nodes, median", scoring[0]),
        row("ordering nodes, p99", scoring[1]),
    ]
}

/// A pod that kube-scheduler places, of one of five shapes.
fn asked_for(number: usize) -> PodFacts {
    let shape = Arc::new(shape(1_000 * (1 + number as u64 % 5), 8, 1));
    let mut pod = pod(NODES * PODS_PER_NODE + number, &shape);
    pod.queue = Some(policy::team(number));
    pod.extended = true;
    pod
}
