//! Worlds in which HAMi shares the cards of some nodes, and pods ask for parts of cards. All of it
//! is drawn from a sequence of its own, so that other worlds are not changed by this module.
//!
//! In half of these worlds each part is a quarter of a card's computing power and memory, and a
//! card has as many slots or more, so that four pods fit on it. The cards of some nodes are in MIG
//! mode and have as many places for instances.
//!
//! In the other half gangs ask for parts of different sizes ([`PARTS`]), of cards that have as many
//! slots or fewer, or that are cut as those of an H100 are: what is still free decides which places
//! fit beside each other. Queues have limits in parts of cards.

use super::Arrival;
use crate::cluster::Cluster;
use crate::objects::GPU;
use crate::random::Random;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    Amounts, CardEntries, CardFacts, CardMemory, CardModes, CardNeed, CardTerms, ContainerCards,
    ContainerRole, HAMI_REGISTER, MigProfile, NodeFacts, PodFacts, PodShape, QueueFacts,
    QueueResource, UnixMs, amount,
};
use std::sync::Arc;

/// What pods ask for of a card, which has 1,000 MiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// The computing power, in thousandths of a card.
    pub(crate) thousandths: u16,
    pub(crate) memory: CardMemory,
    /// What the part counts for in queues, in thousandths of a card: as much on a card that
    /// containers share as on one that is cut into instances.
    pub(crate) counted: u64,
}

/// The parts by computing power, memory in hundredths and in MiB, and what they count for. They
/// have one, two, four and eight of eight memory slices.
const PARTS: [(u16, u32, u64, u64); 4] = [
    (125, 12, 120, 125),
    (250, 25, 240, 250),
    (400, 50, 500, 500),
    (1_000, 100, 1_000, 1_000),
];
/// The place of a quarter of a card among the parts.
const QUARTER: usize = 1;
/// The least that a part counts for, in thousandths of a card.
const LEAST: u64 = 125;

impl Part {
    fn new(number: usize, in_mib: bool) -> Self {
        let (thousandths, percent, memory_mib, counted) = PARTS[number];
        Self {
            thousandths,
            memory: match in_mib {
                true => CardMemory::Mib(memory_mib),
                false => CardMemory::Percent(percent),
            },
            counted,
        }
    }

    /// What a pod asks for of each card; `None`: of no part of one.
    pub(crate) fn of(shape: &PodShape) -> Option<Self> {
        let need = shape.cards?;
        let power = need.thousandths();
        let number = PARTS.iter().position(|part| part.0 == power)?;
        Some(Self::new(
            number,
            matches!(need.memory(), CardMemory::Mib(_)),
        ))
    }
}

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
    // Nothing is drawn for it, so that the worlds of one size are those that they were before.
    let is_fine = random.clone().next_u64().is_multiple_of(2);
    for node in nodes {
        if random.percent(70) {
            let is_cut = random.percent(40);
            let profiles = match is_cut {
                true if is_fine => eighths(),
                true => quarters(),
                false => Vec::new(),
            };
            let slots = match is_cut {
                true if is_fine => 7,
                _ => 4 + random.pick(&[0, 1, 2]),
            };
            let node = shared(node, slots, &profiles);
            cluster.put(Object::Node(node.clone()), now_ms);
            cluster.put_status(Object::Node(node), now_ms);
        }
    }
    for (_, arrival) in arrivals {
        if let Arrival::Gang(_, recipes) = arrival
            && random.percent(50)
        {
            let modes = *random.pick(&[CardModes::Shared, CardModes::Mig, CardModes::Any]);
            let part = match is_fine {
                true => Part::new(*random.pick(&[0, 1, 2, 3]), random.percent(30)),
                false => Part::new(QUARTER, false),
            };
            for recipe in recipes {
                ask_for_a_part(&mut recipe.pod, part, modes, random);
            }
        }
    }
    if is_fine {
        limit(cluster, random, now_ms);
    }
}

/// Gives the GPUs of queues limits and quotas in parts of cards.
fn limit(cluster: &mut Cluster, random: &mut Random, now_ms: UnixMs) {
    let queues = cluster.api.objects(Kind::Queue);
    let queues = queues.filter_map(|stored| match &stored.object {
        Object::Queue(facts) => Some(facts.clone()),
        _ => None,
    });
    for mut facts in queues.collect::<Vec<QueueFacts>>() {
        let entries = facts.resources.iter_mut();
        for entry in entries.filter(|entry| *entry.name == *GPU) {
            *entry = QueueResource {
                quota: random.below(8) * LEAST,
                limit: random.percent(70).then(|| random.between(8, 40) * LEAST),
                ..entry.clone()
            };
        }
        cluster.put(Object::Queue(facts), now_ms);
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
fn quarters() -> Vec<MigProfile> {
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

/// The profiles of a card with eight memory slices, as an H100 has them. Small instances have a
/// little less memory than their slices.
fn eighths() -> Vec<MigProfile> {
    vec![
        MigProfile::new("1g", 120, 142, 1, &[0, 1, 2, 3, 4, 5, 6]),
        MigProfile::new("2g", 240, 285, 2, &[0, 2, 4]),
        MigProfile::new("3g", 500, 428, 4, &[0, 4]),
        MigProfile::new("7g", 1_000, 1_000, 8, &[0]),
    ]
}

fn ask_for_a_part(pod: &mut PodFacts, part: Part, modes: CardModes, random: &mut Random) {
    if amount(&pod.shape.requests, GPU) == 0 {
        return;
    }
    let shape = Arc::make_mut(&mut pod.shape);
    set_gpus(&mut shape.requests, 1);
    set_gpus(&mut shape.largest_container, 1);
    shape.cards = CardNeed::new(1, part.thousandths.into(), part.memory);
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
