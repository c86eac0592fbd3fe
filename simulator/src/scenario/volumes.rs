//! Worlds in which pods have volumes: claims that are bound and claims that wait for a pod, for one
//! node or one pod, shared, and made for a pod; limits of nodes; claims, classes and volumes that
//! go. All of it is drawn from a sequence of its own, so that other worlds are not changed by this
//! module.

use super::Arrival;
use crate::api_server::Name;
use crate::cluster::{Cluster, Recipe};
use crate::random::Random;
use crate::volumes::{DRIVER, claim, zone_is};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    AccessModes, ClaimFacts, ClaimUse, CsiNodeFacts, StorageClassFacts, StorageFacts, UnixMs,
};

/// The name that the ephemeral volume of a pod has in it.
const SCRATCH: &str = "scratch";
/// The classes: one makes volumes on every node, one only in a zone, and one before there is a pod.
const CLASSES: [&str; 3] = ["anywhere", "zone", "at-once"];

/// How the members of a gang use claims.
#[derive(Debug, Clone, Copy)]
enum Use {
    /// Each member has a claim of its own.
    Own,
    /// All members have one claim.
    Shared,
    /// All members have one claim, which one pod alone may use.
    OnePod,
    /// A claim is made for each pod.
    Ephemeral,
}

/// Gives volumes to the members of most gangs, and limits to nodes.
pub(crate) fn furnish(
    cluster: &mut Cluster,
    arrivals: &mut Vec<(UnixMs, Arrival)>,
    random: &mut Random,
    (start_ms, span_ms): (UnixMs, u64),
) {
    for facts in CLASSES.map(class) {
        cluster.put(Object::Storage(StorageFacts::Class(facts)), start_ms);
    }
    limit(cluster, random, start_ms);
    let mut more = Vec::new();
    for (at_ms, arrival) in arrivals.iter_mut() {
        let Arrival::Gang(_, recipes) = arrival else {
            continue;
        };
        if random.percent(65) {
            let uses = [Use::Own, Use::Own, Use::Shared, Use::OnePod, Use::Ephemeral];
            let claims = give(recipes, *random.pick(&uses), random);
            for claim in claims {
                let early_ms = at_ms.saturating_sub(random.below(2_000)).max(start_ms);
                let late_ms = *at_ms + random.below(5_000);
                let made_ms = if random.percent(80) {
                    early_ms
                } else {
                    late_ms
                };
                let object = Object::Storage(StorageFacts::Claim(claim));
                if random.percent(15) {
                    go(&mut more, &object, made_ms, random);
                }
                more.push((made_ms, Arrival::Stored(Box::new(object))));
            }
        }
    }
    if random.percent(20) {
        let name: &str = random.pick::<&str>(&CLASSES);
        let facts = StorageFacts::Class(class(name));
        let at_ms = start_ms + random.below(span_ms);
        go(&mut more, &Object::Storage(facts), at_ms, random);
    }
    for _ in 0..random.below(3) {
        let at_ms = start_ms + random.below(span_ms);
        more.push((at_ms, Arrival::VolumeGone(random.next_u64())));
    }
    arrivals.extend(more);
    arrivals.sort_by_key(|(at_ms, _)| *at_ms);
}

/// Lets an object go some time after it was made. Most come back.
pub(super) fn go(
    arrivals: &mut Vec<(UnixMs, Arrival)>,
    object: &Object,
    made_ms: UnixMs,
    random: &mut Random,
) {
    let gone_ms = made_ms + random.between(200, 10_000);
    arrivals.push((gone_ms, Arrival::Gone(Name::of(object))));
    if random.percent(75) {
        let back_ms = gone_ms + random.between(100, 10_000);
        arrivals.push((back_ms, Arrival::Stored(Box::new(object.clone()))));
    }
}

/// Gives volumes to the members of a gang. Returns the claims that are to be made for them.
fn give(recipes: &mut [Recipe], way: Use, random: &mut Random) -> Vec<ClaimFacts> {
    let class = *random.pick(&CLASSES);
    let is_bound = random.percent(25);
    let mut claims: Vec<ClaimFacts> = Vec::new();
    let Some(first) = recipes.first().map(|recipe| recipe.pod.name.clone()) else {
        return claims;
    };
    for recipe in recipes {
        if random.percent(20) {
            continue;
        }
        let pod = &mut recipe.pod;
        let (name, access) = match way {
            Use::Own => (format!("{}-data", pod.name), AccessModes::ONE_NODE),
            Use::Shared => (format!("{first}-shared"), AccessModes::MANY),
            Use::OnePod => (format!("{first}-one"), AccessModes::ONE_POD),
            Use::Ephemeral => (format!("{}-{SCRATCH}", pod.name), AccessModes::ONE_NODE),
        };
        let is_ephemeral = matches!(way, Use::Ephemeral);
        let name: Box<str> = name.into();
        pod.claims = vec![ClaimUse {
            name: name.clone(),
            is_ephemeral,
        }];
        // The name of the claim is made of that of the pod.
        recipe.same_name |= is_ephemeral;
        if !is_ephemeral && claims.iter().all(|claim| claim.name != name) {
            let mut claim = claim(&name, class, access);
            // A provisioner makes the volume of a claim with a node at once.
            claim.selected_node = is_bound.then(|| format!("n{}", random.below(3)).into());
            claims.push(claim);
        }
    }
    claims
}

/// Limits how many volumes can be attached to nodes, in half of the worlds.
fn limit(cluster: &mut Cluster, random: &mut Random, now_ms: UnixMs) {
    if random.percent(50) {
        return;
    }
    let names: Vec<Box<str>> = cluster.nodes().map(|node| node.name.clone()).collect();
    for name in names {
        let most = u32::try_from(random.between(1, 4)).unwrap_or(1);
        let facts = CsiNodeFacts {
            name,
            drivers: vec![(DRIVER.into(), random.percent(80).then_some(most))],
            migrated: Vec::new(),
        };
        cluster.put(Object::Storage(StorageFacts::CsiNode(facts)), now_ms);
    }
}

fn class(name: &str) -> StorageClassFacts {
    let zone = || vec![zone_is("z0")];
    StorageClassFacts {
        name: name.into(),
        provisioner: DRIVER.into(),
        waits: name != "at-once",
        topologies: (name == "zone").then(zone),
    }
}
