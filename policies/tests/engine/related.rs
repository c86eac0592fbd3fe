//! Pods with rules about other pods: affinity, anti-affinity, and spread.

use gpu_batch_policies::facts::{
    LabelSelector, PodFacts, PodLabels, PodSelection, PodTerm, Relations, SpreadRule,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{Sketch, World, gang, names, node, pod};
use proptest::prelude::*;
use std::sync::Arc;

/// Pods that carry the label `app` with this value.
fn app(sketch: Sketch<PodFacts>, app: &str) -> Sketch<PodFacts> {
    sketch.with(|pod| {
        pod.labels = PodLabels {
            implied: 0,
            stated: Some(Arc::new(vec![("app".into(), app.into())])),
        };
    })
}

fn of_app(app: &str) -> LabelSelector {
    LabelSelector {
        match_labels: vec![("app".into(), app.into())],
        match_expressions: Vec::new(),
    }
}

/// A term that selects pods of an app; `itself`: they have the term themselves.
fn term(key: &str, app: &str, itself: bool) -> PodTerm {
    PodTerm {
        topology_key: key.into(),
        selection: PodSelection {
            namespaces: vec!["default".into()],
            namespace_selector: None,
            labels: Some(of_app(app)),
        },
        selects_own_labels: itself,
    }
}

fn spread(key: &str, app: &str, max_skew: u32) -> SpreadRule {
    SpreadRule {
        topology_key: key.into(),
        max_skew,
        min_domains: 1,
        labels: Some(of_app(app)),
        selects_own_labels: true,
        honors_affinity: true,
        honors_taints: false,
    }
}

fn rules(sketch: Sketch<PodFacts>, rules: impl Fn(&mut Relations)) -> Sketch<PodFacts> {
    sketch.shape(|shape| {
        let mut relations = shape.relations.take().unwrap_or_default();
        rules(&mut relations);
        relations.namespace = "default".into();
        shape.relations = Some(relations);
    })
}

/// Pods of an app that keep others of it off their `key`.
fn apart(pods: &str, gpus: u64, of: &str, key: &str) -> Sketch<PodFacts> {
    let pods = app(pod(pods, gpus), of);
    rules(pods, |rules| rules.anti_affinity.push(term(key, of, true)))
}

/// Pods of an app that must share their `key` with each other.
fn together(pods: &str, gpus: u64, of: &str, key: &str) -> Sketch<PodFacts> {
    let pods = app(pod(pods, gpus), of);
    rules(pods, |rules| rules.affinity.push(term(key, of, true)))
}

/// Nodes of 8 GPUs, two in each rack: `n0 n1` in `r0`, `n2 n3` in `r1`, and so on.
fn racks(racks: usize) -> World {
    let mut world = World::new();
    for number in 0..2 * racks {
        let name = format!("n{number}");
        let rack = format!("r{}", number / 2);
        world.apply(node(&name, 8).label("rack", &rack).label("host", &name));
    }
    world
}

fn racks_of(world: &World, pods: &str) -> Vec<usize> {
    let places = world.places(pods);
    let of = |place: &str| place[1..].parse::<usize>().expect("the pod has a place") / 2;
    let mut racks: Vec<usize> = places.split(' ').map(of).collect();
    racks.sort_unstable();
    racks
}

#[test]
fn a_pod_keeps_away_from_pods_that_run_whoever_placed_them() {
    for foreign in [false, true] {
        let mut world = racks(1);
        let first = apart("x", 1, "web", "host").on("n1");
        world.apply(if foreign { first.foreign() } else { first });
        // The rule of the pod that runs holds for one without a rule of its own.
        world.then(app(pod("y", 1), "web"));
        assert_eq!(world.places("y"), "n0", "foreign: {foreign}");
        world.then(app(pod("z", 1), "other"));
        assert_eq!(world.places("z"), "n0", "foreign: {foreign}");
    }
}

#[test]
fn a_gang_of_one_pod_for_each_node_or_rack_is_exact() {
    for (key, places, minimum) in [("host", 6, 6), ("rack", 3, 3)] {
        let mut world = racks(3);
        let pods = names("p", places);
        world.then((gang("g", minimum), apart(&pods, 1, "g", key).of("g")));
        let mut taken: Vec<String> = world.places(&pods).split(' ').map(String::from).collect();
        if key == "rack" {
            assert_eq!(racks_of(&world, &pods), [0, 1, 2]);
        }
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), places, "{key}");

        let mut world = racks(3);
        let pods = names("p", places + 1);
        world.then((gang("g", minimum + 1), apart(&pods, 1, "g", key).of("g")));
        assert_eq!(world.reason("g"), Some(Reason::DoesNotFit), "{key}");
    }
}

#[test]
fn a_gang_that_must_share_a_rack_finds_the_one_with_room() {
    let mut world = racks(3);
    world.apply((pod("a b", 6).on("n0"), pod("c", 6).on("n4")));
    let pods = names("p", 16);
    world.then((gang("g", 16), together(&pods, 1, "g", "rack").of("g")));
    assert_eq!(racks_of(&world, &pods), [1; 16]);
}

#[test]
fn workers_follow_their_leader_into_its_rack() {
    let mut world = racks(2);
    world.apply(pod("a", 7).on("n0"));
    let worker = |pods: &str| {
        let pods = app(pod(pods, 4), "worker").of("g");
        rules(pods, |rules| {
            rules.affinity.push(term("rack", "leader", false));
        })
    };
    let leader = app(pod("leader", 8), "leader").of("g");
    world.then((gang("g", 3), worker("w-0 w-1"), leader));
    assert_eq!(racks_of(&world, "leader w-0 w-1"), [1, 1, 1]);
}

#[test]
fn a_gang_is_spread_as_evenly_as_it_asks() {
    let mut world = racks(3);
    let pods = names("p", 7);
    let members = rules(app(pod(&pods, 1), "g"), |rules| {
        rules.spread.push(spread("rack", "g", 1));
    });
    world.then((gang("g", 7), members.of("g")));
    let racks = racks_of(&world, &pods);
    let counts = [0, 1, 2].map(|rack| racks.iter().filter(|of| **of == rack).count());
    assert_eq!(counts.iter().sum::<usize>(), 7);
    assert!(
        counts.iter().all(|count| (2..=3).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn a_pod_is_tried_again_when_what_its_rules_name_comes_or_goes() {
    let mut world = racks(2);
    let follower = app(pod("f", 1), "f");
    let follower = rules(follower, |rules| {
        rules.affinity.push(term("rack", "db", false));
    });
    world.then(follower);
    assert_eq!(world.reason_of_pod("f"), Some(Reason::DoesNotFit));
    world.then(app(pod("db", 1), "db").foreign().on("n3"));
    assert_eq!(racks_of(&world, "f"), [1]);

    let mut world = racks(1);
    world.apply(app(pod("x", 1), "web").foreign().on("n0"));
    let avoider = rules(app(pod("y", 1), "y"), |rules| {
        rules.anti_affinity.push(term("rack", "web", false));
    });
    world.then(avoider);
    assert_eq!(world.reason_of_pod("y"), Some(Reason::DoesNotFit));
    world.delete("x");
    world.settle();
    assert_ne!(world.places("y"), "-");
}

#[test]
fn two_gangs_that_keep_away_from_each_other_share_no_rack() {
    let mut world = racks(2);
    for (name, other) in [("g", "h"), ("h", "g")] {
        let pods = names(name, 4);
        let members = rules(app(pod(&pods, 1), name), |rules| {
            rules.anti_affinity.push(term("rack", other, false));
        });
        world.apply((gang(name, 4), members.of(name)));
    }
    world.settle();
    let racks = ["g", "h"].map(|name| racks_of(&world, &names(name, 4)));
    assert!(
        racks[0].iter().all(|rack| !racks[1].contains(rack)),
        "{racks:?}"
    );
}

#[test]
fn explain_counts_members_that_keep_each_other_apart_and_says_what_helps() {
    for (key, fits) in [("host", 4), ("rack", 2)] {
        let mut world = racks(2);
        let pods = names("p", 6);
        world.then((gang("g", 6), apart(&pods, 1, "g", key).of("g")));
        let explained = world.explain("g");
        assert_eq!(explained.shortages[0].fits, fits, "{key}");
        let first = &explained.remedies[0];
        assert_eq!(
            first,
            "pods that come or go which its rules about other pods name"
        );
        let none = explained.eviction.unwrap().unwrap_err();
        assert!(
            none.message.contains("takes no room from others"),
            "{}",
            none.message
        );
    }
}

/// A pod of a random world: the app, whom it avoids and whom it follows with which key, and whether
/// it ends later.
type Drawn = (u8, Option<(u8, bool)>, Option<(u8, bool)>, bool);

const RANDOM_APPS: [&str; 3] = ["x", "y", "z"];

fn key_of(is_rack: bool) -> &'static str {
    if is_rack { "rack" } else { "host" }
}

/// Whether two places are in one domain.
fn share(key: &str, one: usize, other: usize) -> bool {
    match key {
        "rack" => one / 2 == other / 2,
        _ => one == other,
    }
}

/// Promises keep such a gang out as they keep any other, and it hears when they end.
#[test]
fn a_gang_behind_a_promise_starts_when_the_promised_gang_is_gone() {
    let mut world = World::new();
    world.apply(node("n1", 4).label("host", "n1"));
    world.apply(pod("r", 3).on("n1").runtime(100_000));
    world.then(pod("a-head", 4).runtime(10_000));
    world.then(apart("b", 1, "web", "host"));
    assert_eq!(world.reason("pod/b"), Some(Reason::Reserved));
    world.delete("a-head");
    world.settle();
    assert_eq!(world.places("b"), "n1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No pod is where a rule forbids it, and at rest no pod waits that some node would take.
    #[test]
    fn pods_follow_their_rules_and_wait_for_nothing_else(
        drawn in proptest::collection::vec(
            (
                0u8..3,
                proptest::option::weighted(0.5, (0u8..3, any::<bool>())),
                proptest::option::weighted(0.3, (0u8..3, any::<bool>())),
                proptest::bool::weighted(0.2),
            ),
            1..14,
        ),
    ) {
        let mut world = racks(2);
        let drawn: Vec<Drawn> = drawn;
        for (number, (own, avoids, follows, _)) in drawn.iter().enumerate() {
            let sketch = app(pod(&format!("p{number}"), 3), RANDOM_APPS[usize::from(*own)]);
            let itself = |of: u8| of == *own;
            let sketch = rules(sketch, |rules| {
                if let Some((of, is_rack)) = *avoids {
                    let of_app = RANDOM_APPS[usize::from(of)];
                    rules.anti_affinity.push(term(key_of(is_rack), of_app, itself(of)));
                }
                if let Some((of, is_rack)) = *follows {
                    let of_app = RANDOM_APPS[usize::from(of)];
                    rules.affinity.push(term(key_of(is_rack), of_app, itself(of)));
                }
            });
            world.then(sketch);
        }
        let mut ended = Vec::new();
        for (number, (.., ends)) in drawn.iter().enumerate() {
            let name = format!("p{number}");
            if *ends && world.is_placed(&name) {
                world.end(&name);
                world.settle();
                ended.push(number);
            }
        }
        world.run(1_000);
        let gone = |number: usize| ended.contains(&number);
        let place = |number: usize| {
            let place = world.places(&format!("p{number}"));
            (!gone(number)).then(|| place.strip_prefix('n')?.parse::<usize>().ok()).flatten()
        };
        let places: Vec<Option<usize>> = (0..drawn.len()).map(place).collect();
        let others = |number: usize| {
            let placed = places.iter().enumerate().filter_map(|(at, place)| Some((at, (*place)?)));
            placed.filter(move |(at, _)| *at != number)
        };
        let lets_in = |number: usize, node: usize| {
            let (own, avoids, follows, _) = drawn[number];
            let avoided = others(number).any(|(other, at)| {
                let mine = avoids.is_some_and(|(of, rack)| {
                    drawn[other].0 == of && share(key_of(rack), at, node)
                });
                let theirs = drawn[other].1.is_some_and(|(of, rack)| {
                    of == own && share(key_of(rack), at, node)
                });
                mine || theirs
            });
            let followed = follows.is_none_or(|(of, rack)| {
                let mut selected = others(number).filter(|(other, _)| drawn[*other].0 == of);
                let any = selected.clone().next().is_some();
                selected.any(|(_, at)| share(key_of(rack), at, node)) || (!any && of == own)
            });
            let used = others(number).filter(|(_, at)| *at == node).count();
            (avoided, followed, used < 2)
        };
        for number in (0..drawn.len()).filter(|number| !gone(*number)) {
            match places[number] {
                Some(node) => prop_assert!(!lets_in(number, node).0, "p{number} on n{node}"),
                None => for node in 0..4 {
                    let verdict = lets_in(number, node);
                    prop_assert!(verdict != (false, true, true), "p{number} waits, n{node}");
                },
            }
        }
    }
}
