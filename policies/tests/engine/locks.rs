//! Pods that get cards of a node of HAMi take turns under the lock on its cards.

use gpu_batch_policies::command::Action;
use gpu_batch_policies::event::{Event, Outcome};
use gpu_batch_policies::facts::{
    CardEntries, CardLock, CardMemory, CardNeed, CardPart, CardTerms, ContainerCards,
    ContainerRole, HAMI_REGISTER, MatchOperator, NodeFacts, PodFacts,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{Sketch, To, World, conflict, gang, lost, node, pod, refused, throttled};

const MINUTE_MS: u64 = 60_000;

/// A node of HAMi with two cards of 1000 MiB, each with ten slots.
fn hami(names: &str) -> Sketch<NodeFacts> {
    node(names, 20).cards(2, 1_000).with(|node| {
        node.annotations = vec![(HAMI_REGISTER.into(), "".into())];
        node.labels.push(("host".into(), node.name.clone()));
        for card in &mut node.cards {
            card.slots = 10;
        }
    })
}

/// Pods that ask for a part of a card on this node.
fn sharing_on(names: &str, node: &str) -> Sketch<PodFacts> {
    sharing(names).needs("host", MatchOperator::In, &[node])
}

/// Pods that ask for a part of a card.
fn sharing(names: &str) -> Sketch<PodFacts> {
    let part = CardNeed::new(1, 100, CardMemory::Percent(10));
    pod(names, 1).cards(part)
}

/// A world in which plugins give pods their cards when the test says so.
fn slow_world() -> World {
    let mut world = World::new();
    world.is_plugin_slow = true;
    world
}

fn lock(text: &str, holder: Option<&str>, at_ms: Option<u64>) -> Option<CardLock> {
    Some(CardLock {
        value: text.into(),
        holder: holder.map(|name| ("default".into(), name.into())),
        at_ms,
    })
}

/// The node that the API server has for a pod.
fn bound<'a>(world: &'a World, pod: &str) -> Option<&'a str> {
    world.stored(pod).node.as_deref()
}

fn holder(world: &World) -> Option<&str> {
    let holder = world.lock("n1")?.holder.as_ref()?;
    Some(&holder.1)
}

#[test]
fn a_pod_is_bound_under_the_lock_and_told_its_cards() {
    let mut world = slow_world();
    world.then((
        hami("n1"),
        sharing("a").with(|pod| {
            pod.card_entries = CardEntries {
                before: 1,
                between: Vec::new(),
                after: 2,
            };
        }),
    ));
    assert_eq!(world.lock_requests, ["a locks n1"]);
    assert_eq!(
        (bound(&world, "a"), holder(&world)),
        (Some("n1"), Some("a"))
    );
    let bind = world.last_bind.clone().unwrap();
    let assignment = bind.assignment.unwrap();
    let none = Vec::new;
    assert_eq!(
        assignment.entries,
        [none(), bind.cards.clone(), none(), none()]
    );
    assert_eq!(assignment.at_ms, world.now_ms);
    let parts = bind.cards.iter();
    let parts = parts.map(|part| (&*part.card, part.slots, part.thousandths, part.memory_mib));
    assert_eq!(parts.collect::<Vec<_>>(), [("0", 1, 100, 100)]);
}

/// A pod with an init container, a container without cards, and two with some.
#[test]
fn each_container_is_told_its_own_cards() {
    let need = |count, power, mib| CardNeed::new(count, power, CardMemory::Mib(mib)).unwrap();
    let container = |role, need| ContainerCards { role, need };
    let mut world = slow_world();
    world.then((
        hami("n1"),
        sharing("a")
            .card_terms(CardTerms {
                containers: vec![
                    container(ContainerRole::Init, need(1, 700, 300)),
                    container(ContainerRole::Main, need(2, 300, 500)),
                    container(ContainerRole::Main, need(1, 400, 500)),
                ],
                ..CardTerms::default()
            })
            .with(|pod| {
                pod.card_entries = CardEntries {
                    before: 0,
                    between: vec![1, 0],
                    after: 0,
                };
            }),
    ));
    let bind = world.last_bind.clone().unwrap();
    let entries = bind.assignment.unwrap().entries;
    let entries: Vec<Vec<_>> = entries
        .iter()
        .map(|parts| {
            let parts = parts.iter();
            let told = |part: &CardPart| (part.slots, part.thousandths, part.memory_mib);
            parts.map(told).collect()
        })
        .collect();
    let two = vec![(1, 300, 500); 2];
    assert_eq!(
        entries,
        [vec![(1, 700, 300)], vec![], two, vec![(1, 400, 500)]]
    );
    // Of each card the pod holds what it uses at most at a time.
    let held = bind.cards.iter();
    let held: Vec<_> = held
        .map(|part| (part.slots, part.thousandths, part.memory_mib))
        .collect();
    assert!(held.contains(&(2, 700, 1_000)), "{held:?}");
    assert_eq!(held.iter().map(|it| it.2).sum::<u64>(), 1_500);
}

#[test]
fn pods_of_a_node_take_turns_and_nodes_do_not_wait_for_each_other() {
    let mut world = slow_world();
    world.then((
        hami("n1 n2"),
        gang("g", 4),
        sharing_on("a b", "n1").of("g"),
        sharing_on("c d", "n2").of("g"),
    ));
    assert_eq!(world.binds, 2);
    let first = holder(&world).unwrap().to_owned();
    world.serve(&first);
    world.settle();
    assert_eq!(world.binds, 3);
    assert_ne!(holder(&world), Some(&*first));
    let second = holder(&world).unwrap().to_owned();
    world.serve("c");
    world.serve("d");
    world.serve(&second);
    world.settle();
    assert_eq!(world.places("a b c d"), "n1 n1 n2 n2");
    assert_eq!(world.lock_requests.len(), 4);
}

#[test]
fn other_pods_need_no_lock() {
    let mut world = slow_world();
    world.then((hami("n1"), pod("cpu", 0)));
    world.then((
        node("n2", 0).cards(1, 0),
        pod("own", 0).cards(CardNeed::whole(1, 0)),
    ));
    assert_eq!(world.places("cpu own"), "n1 n2");
    assert_eq!(world.last_bind.as_ref().unwrap().assignment, None);
    assert!(world.lock_requests.is_empty());
}

#[test]
fn a_plugin_that_never_releases_holds_the_next_pod_up_for_five_minutes() {
    let mut world = slow_world();
    world.then((hami("n1"), sharing("a")));
    world.then(sharing("b"));
    world.later(5 * MINUTE_MS - 1_000);
    assert_eq!((bound(&world, "a"), bound(&world, "b")), (Some("n1"), None));
    world.later(1_000);
    assert_eq!(bound(&world, "b"), Some("n1"));
    assert_eq!(holder(&world), Some("b"));
}

/// The annotation `hami.io/bind-phase` of such a pod says `allocating` for as long as it is there.
#[test]
fn a_pod_that_is_never_served_keeps_its_cards_and_the_lock_no_longer_than_it_lives() {
    type Goes = fn(&mut World);
    let cases: [Goes; 3] = [
        |world| world.delete("a"),
        // The kubelet has rejected it, say.
        |world| world.fail("a"),
        |world| world.end("a"),
    ];
    for (case, goes) in cases.into_iter().enumerate() {
        for has_new_leader in [false, true] {
            let most = CardNeed::new(2, 0, CardMemory::Percent(60));
            let mut world = slow_world();
            world.then((hami("n1"), pod("a", 2).cards(most)));
            assert_eq!(holder(&world), Some("a"));
            world.then(pod("b", 2).cards(most));
            assert_eq!(world.reason("pod/b"), Some(Reason::DoesNotFit));
            if has_new_leader {
                world.take_over();
            }
            goes(&mut world);
            world.settle();
            assert_eq!(world.reason("pod/b"), None, "case {case}");
            assert_eq!(bound(&world, "b"), Some("n1"), "case {case}");
            assert_eq!(holder(&world), Some("b"), "case {case}");
        }
    }
}

#[test]
fn a_lock_is_replaced_if_it_is_old_or_its_pod_is_gone_and_else_waited_for() {
    let at_ms = World::new().now_ms;
    let other = pod("other", 0).foreign().on("n2");
    for (lock, waits_ms) in [
        (lock("x", Some("nobody"), Some(at_ms)), 0),
        (lock("x", Some("other"), Some(at_ms - 5 * MINUTE_MS)), 0),
        (
            lock("x", Some("other"), Some(at_ms - 2 * MINUTE_MS)),
            3 * MINUTE_MS,
        ),
        (lock("x", None, Some(at_ms - MINUTE_MS)), 4 * MINUTE_MS),
        // A clock that is ahead.
        (
            lock("x", Some("other"), Some(at_ms + MINUTE_MS)),
            5 * MINUTE_MS,
        ),
    ] {
        let mut world = World::of((hami("n1"), node("n2", 0), other.clone()));
        world.set_lock("n1", lock.clone());
        world.then(sharing("a"));
        assert_eq!(bound(&world, "a").is_some(), waits_ms == 0, "{lock:?}");
        if waits_ms > 0 {
            world.later(waits_ms - 1);
            assert!(bound(&world, "a").is_none(), "{lock:?}");
            world.later(1);
            assert!(bound(&world, "a").is_some(), "{lock:?}");
        }
        assert_eq!(world.binds, 1);
    }
    // A pod that has ended and is still listed is not served any more, on whatever node.
    for goes in [World::fail, World::end] {
        let mut world = World::of((hami("n1"), node("n2", 0)));
        world.apply(pod("other", 0).on("n2"));
        world.set_lock("n1", lock("x", Some("other"), Some(at_ms)));
        world.then(sharing("a"));
        assert!(bound(&world, "a").is_none());
        goes(&mut world, "other");
        world.settle();
        assert!(bound(&world, "a").is_some());
    }
    // It is not waited for any longer than it, or its pod, is there.
    for pod_goes in [false, true] {
        let mut world = World::of((hami("n1"), node("n2", 0), other.clone()));
        world.set_lock("n1", lock("x", Some("other"), Some(at_ms)));
        world.then(sharing("a"));
        assert!(bound(&world, "a").is_none());
        match pod_goes {
            true => world.end("other"),
            false => world.set_lock("n1", None),
        }
        world.settle();
        assert!(bound(&world, "a").is_some());
    }
}

#[test]
fn a_lock_that_cannot_be_read_is_told_and_stays_until_it_is_taken_away() {
    let mut world = World::of(hami("n1"));
    world.set_lock("n1", lock("a lock", None, None));
    world.then(sharing("a"));
    world.later(60 * MINUTE_MS);
    assert!(bound(&world, "a").is_none());
    assert_eq!(world.reason("pod/a"), Some(Reason::BindingFailed));
    assert_eq!(
        world.message("pod/a"),
        "pod a is not bound to node n1: the lock on its cards cannot be read; take the annotation \
         hami.io/mutex.lock away, which says \"a lock\""
    );
    world.set_lock("n1", None);
    world.settle();
    assert!(bound(&world, "a").is_some());
}

#[test]
fn a_request_for_the_lock_may_end_in_any_way() {
    for (outcome, reason) in [
        (refused(), Some(Reason::BindingFailed)),
        (Outcome::NotFound, Some(Reason::BindingFailed)),
        (conflict(), None),
        (throttled(), None),
        (lost(), None),
    ] {
        let mut world = World::of(hami("n1"));
        world.answers(To::LockOf("n1"), outcome.clone());
        world.then(sharing("a"));
        assert_eq!(world.binds, 0, "{outcome:?}");
        if reason.is_some() {
            assert_eq!(world.reason("pod/a"), reason, "{outcome:?}");
        }
        world.run(10_000);
        assert_eq!((world.binds, holder(&world)), (0, None), "{outcome:?}");
        world.answers_again(&To::LockOf("n1"));
        world.later(MINUTE_MS);
        assert!(bound(&world, "a").is_some(), "{outcome:?}");
        assert_eq!(world.lock_requests, ["a locks n1"], "{outcome:?}");
    }
}

/// The answers to requests are lost, and these were carried out.
#[test]
fn a_lock_of_which_the_answer_was_lost_is_known_when_the_watch_shows_it() {
    let mut world = World::new();
    world.apply((hami("n1"), sharing("a")));
    while world.lock("n1").is_none() {
        for command in world.commands() {
            let is_lock = matches!(command.action, Action::LockCards(_));
            let id = command.id;
            world.carry_out(command, Outcome::Done);
            if is_lock {
                let mut answers = world.events.iter_mut();
                let answer =
                    answers.find(|event| matches!(event, Event::Outcome(of, _) if *of == id));
                *answer.unwrap() = Event::Outcome(id, lost());
            }
        }
    }
    world.settle();
    assert!(bound(&world, "a").is_some());
    assert_eq!(world.lock_requests, ["a locks n1"]);
}

#[test]
fn a_stale_view_costs_one_conflict() {
    let mut world = slow_world();
    world.then((hami("n1"), sharing("a")));
    // The watch has not told of the lock yet.
    let shown = world.lock("n1").cloned();
    world.set_lock("n1", None);
    world.apply(sharing("b"));
    world.answers(To::LockOf("n1"), conflict());
    world.settle();
    world.set_lock("n1", shown);
    world.settle();
    world.answers_again(&To::LockOf("n1"));
    world.run(10_000);
    assert_eq!(bound(&world, "b"), None);
    world.serve("a");
    world.settle();
    assert_eq!(bound(&world, "b"), Some("n1"));
}

#[test]
fn the_lock_is_given_back_if_the_bind_does_not_come() {
    let mut world = slow_world();
    world.answers(To::BindOf("a"), refused());
    world.then((hami("n1"), sharing("a")));
    assert_eq!(world.lock_requests, ["a locks n1", "a unlocks n1"]);
    world.then(sharing("b"));
    assert_eq!(
        (bound(&world, "b"), holder(&world)),
        (Some("n1"), Some("b"))
    );
}

#[test]
fn a_lock_is_given_back_until_that_is_certain() {
    for (outcome, is_repeated) in [
        (lost(), true),
        (throttled(), true),
        (conflict(), false),
        (refused(), false),
        (Outcome::NotFound, false),
    ] {
        let mut world = slow_world();
        world.answers(To::BindOf("a"), refused());
        world.answers(To::UnlockOf("n1"), outcome.clone());
        world.then((hami("n1"), sharing("a")));
        assert_eq!(holder(&world), Some("a"), "{outcome:?}");
        world.delete("a");
        world.answers_again(&To::UnlockOf("n1"));
        world.run(30_000);
        let expected = if is_repeated { None } else { Some("a") };
        assert_eq!(holder(&world), expected, "{outcome:?}");
        world.then(sharing("b"));
        assert!(bound(&world, "b").is_some(), "{outcome:?}");
    }
}

#[test]
fn pods_and_nodes_that_go_leave_no_turn_behind() {
    let mut world = slow_world();
    world.then((hami("n1"), sharing("a")));
    world.then(sharing("b c"));
    world.delete("b");
    world.settle();
    world.serve("a");
    world.settle();
    assert_eq!(
        (bound(&world, "c"), holder(&world)),
        (Some("n1"), Some("c"))
    );
    world.then(sharing("d"));
    world.lose_node("n1");
    world.settle();
    assert!(bound(&world, "d").is_none());
    world.then(hami("n1"));
    assert!(bound(&world, "d").is_some());
}

#[test]
fn the_next_leader_goes_on_with_the_lock_of_a_pod() {
    let mut world = slow_world();
    world.answers(To::BindOf("a"), lost());
    world.apply((hami("n1"), sharing("a")));
    for _ in 0..6 {
        world.step();
    }
    assert_eq!((bound(&world, "a"), holder(&world)), (None, Some("a")));
    world.answers_again(&To::BindOf("a"));
    world.take_over();
    world.settle();
    assert_eq!(bound(&world, "a"), Some("n1"));
    assert_eq!(world.lock_requests, ["a locks n1"]);
}

#[test]
fn the_order_of_a_register_decides_nothing() {
    let mut world = World::new();
    world.apply(hami("n1"));
    world.apply(hami("n2").with(|node| node.cards.reverse()));
    world.then((
        sharing_on("a", "n1"),
        sharing_on("b", "n2"),
        sharing_on("c", "n1"),
        sharing_on("d", "n2"),
    ));
    world.run(1_000);
    assert_eq!(world.cards_of("a"), world.cards_of("b"));
    assert_eq!(world.cards_of("c"), world.cards_of("d"));
    assert_eq!(world.cards_of("d"), ["0"]);
}
