//! Worlds in which claims get volumes that exist: disks of nodes and of zones, and volumes that
//! every node reaches. Disks come later, go, and are taken by others. All of it is drawn from a
//! sequence of its own.

use super::Arrival;
use super::volumes::go;
use crate::cluster::{Cluster, Recipe};
use crate::random::Random;
use crate::volumes::{claim, disk, label_is};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    AccessModes, ClaimUse, NodeFacts, StorageClassFacts, StorageFacts, UnixMs,
};

/// The class of all disks, which makes no volumes.
const CLASS: &str = "disks";

/// The label with the name of each node.
const HOST: &str = "kubernetes.io/hostname";

/// Gives disks to nodes, and to the members of most gangs claims that want them.
pub(crate) fn equip(
    cluster: &mut Cluster,
    arrivals: &mut Vec<(UnixMs, Arrival)>,
    random: &mut Random,
    (start_ms, span_ms): (UnixMs, u64),
) {
    let class = StorageClassFacts {
        name: CLASS.into(),
        provisioner: "kubernetes.io/no-provisioner".into(),
        waits: true,
        topologies: None,
    };
    cluster.put(Object::Storage(StorageFacts::Class(class)), start_ms);
    let mut more = Vec::new();
    let nodes: Vec<NodeFacts> = cluster.nodes().cloned().collect();
    for mut node in nodes {
        let name = node.name.clone();
        for number in 0..random.below(5) {
            let terms = vec![label_is(HOST, &name)];
            let size = random.between(1, 2);
            let volume = disk(&format!("{name}-{number}"), CLASS, size, Some(terms));
            let made_ms = match random.percent(75) {
                true => start_ms,
                false => start_ms + random.below(span_ms),
            };
            let volume = Object::Storage(StorageFacts::Volume(volume));
            more.push((made_ms, Arrival::Stored(Box::new(volume))));
        }
        node.labels.push((HOST.into(), name));
        node.labels.sort();
        cluster.put(Object::Node(node), start_ms);
    }
    for number in 0..random.below(6) {
        let zone = random.percent(70).then(|| vec![label_is("zone", "z0")]);
        let volume = disk(
            &format!("shared-{number}"),
            CLASS,
            random.between(1, 3),
            zone,
        );
        let volume = Object::Storage(StorageFacts::Volume(volume));
        more.push((start_ms, Arrival::Stored(Box::new(volume))));
    }
    for (at_ms, arrival) in arrivals.iter_mut() {
        if let Arrival::Gang(_, recipes) = arrival
            && random.percent(65)
        {
            more.extend(give(recipes, (*at_ms, start_ms), random));
        }
    }
    for _ in 0..random.below(5) {
        let at_ms = start_ms + random.below(span_ms);
        let number = random.next_u64();
        more.push(match random.percent(40) {
            true => (at_ms, Arrival::VolumeGone(number)),
            false => (at_ms, Arrival::VolumeTaken(number)),
        });
    }
    arrivals.extend(more);
    arrivals.sort_by_key(|(at_ms, _)| *at_ms);
}

/// Gives most members of a gang, which comes at a time, claims that want disks. Returns the claims,
/// each with the time when it is made.
fn give(
    recipes: &mut [Recipe],
    (at_ms, start_ms): (UnixMs, UnixMs),
    random: &mut Random,
) -> Vec<(UnixMs, Arrival)> {
    let mut made = Vec::new();
    for recipe in recipes {
        for number in 0..random.below(3) {
            let name = format!("{}-disk-{number}", recipe.pod.name);
            let mut claim = claim(&name, CLASS, AccessModes::ONE_NODE);
            claim.size = Some(random.between(1, 2) << 30);
            recipe.pod.claims.push(ClaimUse {
                name: name.into(),
                is_ephemeral: false,
            });
            let made_ms = at_ms.saturating_sub(random.below(2_000)).max(start_ms);
            let object = Object::Storage(StorageFacts::Claim(claim));
            if random.percent(10) {
                go(&mut made, &object, made_ms, random);
            }
            made.push((made_ms, Arrival::Stored(Box::new(object))));
        }
    }
    made
}
