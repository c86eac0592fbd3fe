//! What only the inside of the engine can show. Everything else is in `policies/tests/engine`.

mod cards;
mod names;
mod what_if;

use super::Engine;
use crate::event::{Event, Object};
use crate::facts::{
    Amounts, CardFacts, CardNeed, NodeFacts, PodFacts, PodGroupFacts, PodShape, Uid, UnixMs,
};
use crate::place::SLICE_STEPS;
use crate::settings::Settings;
use alloc::{format, sync::Arc, vec::Vec};

const NOW_MS: UnixMs = 1_800_000_000_000;

/// Amounts by name, which are in order already.
fn amounts(amounts: &[(&str, u64)]) -> Amounts {
    let some = amounts.iter().filter(|(_, amount)| *amount > 0);
    some.map(|(name, amount)| ((*name).into(), *amount))
        .collect()
}

fn node(number: u32, gpus: u64) -> NodeFacts {
    let resources = amounts(&[("cpu", 100_000), ("nvidia.com/gpu", gpus), ("pods", 110)]);
    NodeFacts::new(Uid(1), &format!("n{number}"), resources)
}

fn pod(number: u32, gpus: u64) -> PodFacts {
    let shape = PodShape {
        requests: amounts(&[("cpu", 1_000), ("nvidia.com/gpu", gpus), ("pods", 1)]),
        ..PodShape::default()
    };
    let (uid, name) = (Uid(u128::from(number) + 10), format!("p{number}"));
    PodFacts::new(uid, "default", &name, Arc::new(shape))
}

/// A card with 100 MiB of memory.
fn card(number: u32) -> CardFacts {
    CardFacts::new(format!("{number}"), 100)
}

/// A pod that asks for cards.
fn asking(number: u32, cards: CardNeed) -> PodFacts {
    let pod = pod(number, 0);
    let shape = PodShape {
        cards: Some(cards),
        ..(*pod.shape).clone()
    };
    PodFacts {
        shape: Arc::new(shape),
        ..pod
    }
}

/// The sizes are even and fill all but three of 505 GPUs, and an odd node is never full: it takes a
/// long search to see that there is no place.
#[test]
fn no_step_searches_for_more_than_a_slice() {
    let sizes = (14..=46).step_by(2).filter(|size| *size != 18).chain([10]);
    let pods: Vec<Object> = (0..)
        .zip(sizes)
        .map(|(number, gpus)| {
            Object::Pod(PodFacts {
                pod_group: Some("g".into()),
                ..pod(number, gpus)
            })
        })
        .collect();
    let minimum = u32::try_from(pods.len()).unwrap();
    let gang = PodGroupFacts::new(Uid(2), "default", "g", minimum);
    let nodes = (0..5).map(|number| Object::Node(node(number, 101)));
    let mut engine = Engine::new(Settings::default());
    let mut events = Event::lists(nodes.chain([Object::PodGroup(gang)]).chain(pods));
    let mut slices = 0;
    while !events.is_empty() {
        let before = engine.planner.allowance_left_at(NOW_MS);
        drop(engine.step(NOW_MS, events));
        let searched = before - engine.planner.allowance_left_at(NOW_MS);
        assert!(searched <= SLICE_STEPS, "{searched} steps in one slice");
        slices += usize::from(searched > 0);
        let goes_on = engine.next_deadline() == Some(NOW_MS);
        events = goes_on.then_some(Event::Continue).into_iter().collect();
    }
    assert!(slices > 1, "{slices}");
}
