use super::*;
use gpu_batch_policies::command::{Beneficiary, CommandId, Evict, EvictionCause, PodReference};
use gpu_batch_policies::facts::PodShape;
use serde_json::json;
use std::sync::Arc;

/// A world of one pod, which runs.
fn world() -> World {
    let shape = Arc::new(PodShape::default());
    let pod = PodFacts {
        node: Some("n1".into()),
        phase: PodPhase::Running,
        ..PodFacts::new(Uid(1), "default", "a", shape)
    };
    let options = Options {
        settings: Settings::default(),
        now_ms: 1_000,
        cycles: 1,
        evicted: Evicted::Recreate,
    };
    World::new(&[Object::Pod(pod)], options)
}

fn command(action: Action) -> Command {
    Command {
        id: CommandId(1),
        deadline_ms: 0,
        action,
    }
}

fn reference() -> PodReference {
    PodReference {
        namespace: "default".into(),
        name: "a".into(),
        uid: Uid(1),
    }
}

#[test]
fn evictions_are_listed_with_whom_they_are_for() {
    let mut world = world();
    let beneficiary = |is_optimal| {
        Some(Beneficiary {
            gang: "default/b".into(),
            claim: None,
            is_optimal,
        })
    };
    for (cause, beneficiary) in [
        (EvictionCause::Stale, None),
        (EvictionCause::Reclaim, beneficiary(true)),
        (EvictionCause::Consolidate, beneficiary(false)),
    ] {
        let evict = Evict {
            pod: reference(),
            cause,
            beneficiary,
        };
        world.carry_out(command(Action::Evict(evict)), &mut Vec::new());
        world.cycle += 1;
    }
    let expected = json!([
        {"cycle": 1, "pod": "default/a", "cause": "Stale", "for": null, "verdict": null},
        {"cycle": 2, "pod": "default/a", "cause": "Reclaim", "for": "default/b",
         "verdict": "Optimal"},
        {"cycle": 3, "pod": "default/a", "cause": "Consolidate", "for": "default/b",
         "verdict": "Feasible"},
    ]);
    assert_eq!(serde_json::to_value(&world.evictions).unwrap(), expected);
    let leaves_ms = world.now_ms + CYCLE_MS;
    assert_eq!(world.pods[&Uid(1)].deletion_ms, Some(leaves_ms));
    world.pass();
    let mut again = world.pods.values();
    let again = again.next().unwrap();
    assert_eq!((again.deletion_ms, &again.node), (None, &None));
}

#[test]
fn a_nomination_lasts_until_the_pod_is_bound() {
    let mut world = world();
    let nominate = Action::PatchStatus(StatusPatch::Nominated {
        pod: reference(),
        node: Some("n2".into()),
    });
    let mut events = Vec::new();
    world.carry_out(command(nominate), &mut events);
    assert_eq!(events.len(), 2, "the watch tells it, and the outcome");
    assert_eq!(world.pods[&Uid(1)].nominated.as_deref(), Some("n2"));
    let bind = Bind {
        pod: reference(),
        node: "n2".into(),
        cards: Vec::new(),
        assignment: None,
        queue: "default".into(),
        pod_group: None,
        minima: Vec::new(),
    };
    world.carry_out(command(Action::Bind(bind)), &mut events);
    assert_eq!(world.pods[&Uid(1)].nominated, None);
}
