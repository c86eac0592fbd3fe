//! Worlds in which HAMi shares the cards of some nodes, and pods ask for parts of cards. All of it
//! is drawn from a sequence of its own, so that other worlds are not changed by this module.
//!
//! Each part is a quarter of a card's computing power and memory, and a card has as many slots or
//! more, so that [`PARTS`] pods fit on it. The cards of some nodes are in MIG mode and have as many
//! places for instances.

use super::Arrival;
use crate::cluster::Cluster;
use crate::objects::GPU;
use crate::random::Random;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    Amounts, CardEntries, CardFacts, CardMemory, CardModes, CardNeed, CardTerms, ContainerCards,
    ContainerRole, HAMI_REGISTER, MigProfile, NodeFacts, PodFacts, UnixMs, amount,
};
use std::sync::Arc;

/// How many parts of a card there are.
pub(crate) const PARTS: u32 = 4;

/// Lets HAMi share the cards of some nodes, but not of all with GPUs, and the pods of half of all
/// gangs ask for parts.
pub(crate) fn share(
    cluster: &mut Cluster,
    arrivals: &mut [(UnixMs, Arrival)],
    random: &mut Random,
    now_ms: UnixMs,
) {
    let with_gpus = cluster
        .nodes()
        .filter(|node| amount(&node.allocatable, GPU) > 0);
    let nodes: Vec<NodeFacts> = with_gpus.skip(1).cloned().collect();
    for node in nodes {
        if random.percent(70) {
            let profiles = if random.percent(40) {
                profiles()
            } else {
                Vec::new()
            };
            let node = shared(node, PARTS + random.pick(&[0, 1, 2]), &profiles);
            cluster.put(Object::Node(node.clone()), now_ms);
            cluster.put_status(Object::Node(node), now_ms);
        }
    }
    for (_, arrival) in arrivals {
        if let Arrival::Gang(_, recipes) = arrival
            && random.percent(50)
        {
            let modes = *random.pick(&[CardModes::Shared, CardModes::Mig, CardModes::Any]);
            for recipe in recipes {
                ask_for_a_part(&mut recipe.pod, modes, random);
            }
        }
    }
}

/// The node as HAMi's device plugin registers it.
fn shared(mut node: NodeFacts, slots: u32, profiles: &[MigProfile]) -> NodeFacts {
    let cards = amount(&node.allocatable, GPU);
    node.annotations = vec![(HAMI_REGISTER.into(), "".into())];
    let card = |number| CardFacts {
        slots,
        profiles: profiles.to_vec(),
        ..CardFacts::new(format!("GPU-{number}"), 1_000)
    };
    node.cards = (0..cards).map(card).collect();
    for amounts in [&mut node.allocatable, &mut node.capacity] {
        set_gpus(amounts, cards * u64::from(slots));
    }
    node
}

/// The profiles of a card with four memory slices.
fn profiles() -> Vec<MigProfile> {
    let profile = |size: u8, starts: &[u8]| {
        let (memory_mib, thousandths) = (250 * u64::from(size), 250 * u32::from(size));
        MigProfile::new(&format!("{size}g"), memory_mib, thousandths, size, starts)
    };
    vec![
        profile(1, &[0, 1, 2, 3]),
        profile(2, &[0, 2]),
        profile(4, &[0]),
    ]
}

fn ask_for_a_part(pod: &mut PodFacts, modes: CardModes, random: &mut Random) {
    if amount(&pod.shape.requests, GPU) == 0 {
        return;
    }
    let shape = Arc::make_mut(&mut pod.shape);
    set_gpus(&mut shape.requests, 1);
    set_gpus(&mut shape.largest_container, 1);
    shape.cards = CardNeed::new(1, 250, CardMemory::Percent(25));
    let terms = CardTerms {
        modes,
        ..CardTerms::default()
    };
    shape.card_terms = terms.boxed();
    pod.card_entries = CardEntries {
        before: u32::from(random.percent(20)),
        between: Vec::new(),
        after: u32::from(random.percent(20)),
    };
    if random.percent(25) {
        ask_in_several_containers(pod, modes);
    }
}

/// Lets two containers ask; and an init container before them, which uses what they use later,
/// unless that may be an instance.
fn ask_in_several_containers(pod: &mut PodFacts, modes: CardModes) {
    let shape = Arc::make_mut(&mut pod.shape);
    set_gpus(&mut shape.requests, 2);
    let container = |role| {
        Some(ContainerCards {
            role,
            need: shape.cards?,
        })
    };
    let roles = match modes {
        CardModes::Shared => &[
            ContainerRole::Init,
            ContainerRole::Main,
            ContainerRole::Main,
        ][..],
        CardModes::Mig | CardModes::Any => &[ContainerRole::Main, ContainerRole::Main],
    };
    let terms = CardTerms {
        containers: roles.iter().copied().filter_map(container).collect(),
        modes,
        ..CardTerms::default()
    };
    shape.card_terms = terms.boxed();
    pod.card_entries.between = roles.iter().skip(1).map(|_| 1).collect();
}

/// Changes the amount of GPUs, where there are any.
fn set_gpus(amounts: &mut Amounts, gpus: u64) {
    for (name, amount) in amounts {
        if **name == *GPU {
            *amount = gpus;
        }
    }
}
