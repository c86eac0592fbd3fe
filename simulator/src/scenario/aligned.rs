//! Worlds in which some kubelets give containers GPUs of one NUMA node each, or of as few as they
//! can, and reject pods for which that is not possible. Exporters say what the NUMA nodes have.

use super::{Arrival, NONE};
use crate::cluster::Cluster;
use crate::objects::{GPU, amounts};
use crate::random::Random;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    AlignedContainer, AlignmentPolicy, AlignmentScope, CellResource, ContainerRole, NodeFacts,
    NumaCell, NumaFacts, PodFacts, UnixMs, amount,
};
use std::sync::Arc;

/// Lets most nodes with GPUs have two NUMA nodes and a kubelet that rejects pods, and pods ask for
/// GPUs in one container or two.
pub(crate) fn align(
    cluster: &mut Cluster,
    arrivals: &mut [(UnixMs, Arrival)],
    random: &mut Random,
    now_ms: UnixMs,
) {
    let nodes: Vec<NodeFacts> = cluster.nodes().cloned().collect();
    for node in nodes {
        let gpus = amount(&node.allocatable, GPU);
        if gpus > 1 && random.percent(80) {
            let policies = [AlignmentPolicy::SingleCell, AlignmentPolicy::Restricted];
            let facts = NumaFacts {
                name: node.name,
                uid: NONE,
                policy: *random.pick(&policies),
                scope: *random.pick(&AlignmentScope::ALL),
                cells: vec![cell(0, gpus / 2), cell(1, gpus - gpus / 2)],
                problems: Vec::new(),
            };
            cluster.put(Object::Numa(facts), now_ms);
        }
    }
    for (_, arrival) in arrivals {
        if let Arrival::Gang(_, recipes) = arrival {
            for recipe in recipes {
                ask_in_containers(&mut recipe.pod, random);
            }
        }
    }
}

fn cell(number: u16, gpus: u64) -> NumaCell {
    NumaCell {
        number,
        resources: vec![CellResource {
            name: GPU.into(),
            capacity: gpus,
            allocatable: gpus,
            available: gpus,
        }],
    }
}

fn ask_in_containers(pod: &mut PodFacts, random: &mut Random) {
    let gpus = amount(&pod.shape.requests, GPU);
    let first = match gpus {
        2.. if random.percent(30) => gpus / 2,
        _ => gpus,
    };
    let containers = [first, gpus - first].into_iter().filter(|gpus| *gpus > 0);
    let containers = containers.map(|gpus| AlignedContainer {
        role: ContainerRole::Main,
        amounts: amounts(&[(GPU, gpus)]),
    });
    Arc::make_mut(&mut pod.shape).aligned = containers.collect();
}
