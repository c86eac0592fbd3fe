//! What pods would rather have orders the nodes, and keeps no pod waiting.

use gpu_batch_policies::facts::{
    CONTROLLER, LabelSelector, MatchOperator, MatchRequirement, NodeFacts, NodeImage,
    NodeSelectorTerm, OwnerReference, Placement, PodFacts, PodLabels, PodSelection, Preferences,
    PreferredImages, PreferredNodes, PreferredPods, SpreadRule, Taint, TaintEffect, Toleration,
    TolerationOperator, Uid,
};
use gpu_batch_testing::{Sketch, World, gang, names, node, pod, topology};
use std::sync::Arc;

/// Pods that prefer something.
fn prefer(pods: Sketch<PodFacts>, add: impl Fn(&mut Preferences)) -> Sketch<PodFacts> {
    pods.shape(|shape| {
        let mut preferences = shape.preferences.take().unwrap_or_default();
        preferences.namespace = "default".into();
        add(&mut preferences);
        shape.preferences = Some(preferences);
    })
}

/// Pods that prefer nodes with a label of this value.
fn prefer_nodes(pods: Sketch<PodFacts>, weight: u32, key: &str, value: &str) -> Sketch<PodFacts> {
    let requirement = MatchRequirement {
        key: key.into(),
        operator: MatchOperator::In,
        values: vec![value.into()],
    };
    let term = NodeSelectorTerm {
        match_expressions: vec![requirement],
        match_fields: Vec::new(),
    };
    prefer(pods, |preferences| {
        let term = term.clone();
        preferences.nodes.push(PreferredNodes { weight, term });
    })
}

fn of_app(app: &str) -> LabelSelector {
    LabelSelector {
        match_labels: vec![("app".into(), app.into())],
        match_expressions: Vec::new(),
    }
}

fn app(pods: Sketch<PodFacts>, app: &str) -> Sketch<PodFacts> {
    pods.with(|pod| {
        pod.labels = PodLabels {
            implied: 0,
            stated: Some(Arc::new(vec![("app".into(), app.into())])),
        };
    })
}

/// Pods of an app that prefer to share their `key` with others of it, or not to: then the weight is
/// negative.
fn prefer_pods(pods: Sketch<PodFacts>, weight: i32, of: &str, key: &str) -> Sketch<PodFacts> {
    prefer(pods, |preferences| {
        preferences.pods.push(PreferredPods {
            weight,
            topology_key: key.into(),
            selection: PodSelection {
                namespaces: vec!["default".into()],
                namespace_selector: None,
                labels: Some(of_app(of)),
            },
        });
    })
}

fn tainted(node: Sketch<NodeFacts>, key: &str) -> Sketch<NodeFacts> {
    node.with(|node| {
        node.taints.push(Taint {
            key: key.into(),
            value: "".into(),
            effect: TaintEffect::PreferNoSchedule,
        });
    })
}

/// Nodes of 8 GPUs, two in each rack: `n0 n1` in `r0`, `n2 n3` in `r1`, and so on.
fn racks(racks: usize) -> World {
    let mut world = World::of(topology("default", "rack"));
    for number in 0..2 * racks {
        let rack = format!("r{}", number / 2);
        let name = format!("n{number}");
        world.apply(node(&name, 8).label("rack", &rack).label("host", &name));
    }
    world
}

#[test]
fn a_pod_goes_where_it_prefers_to_be_before_its_placement_says_where() {
    let mut world = racks(2);
    // By the placement, n0 is the fullest node and the best.
    world.then(pod("a", 4).on("n0"));
    world.then(prefer_nodes(pod("p", 1), 1, "rack", "r1"));
    assert_eq!(world.places("p"), "n2");
    // Among nodes that are preferred alike, the placement decides.
    world.then(prefer_nodes(pod("q", 1), 1, "rack", "r1"));
    assert_eq!(world.places("q"), "n2");
    // The sum of the weights counts.
    let torn = prefer_nodes(pod("r", 1), 2, "rack", "r1");
    world.then(prefer_nodes(torn, 3, "host", "n1"));
    assert_eq!(world.places("r"), "n1");
    // What is preferred and full keeps no pod waiting.
    world.then(prefer_nodes(pod("s", 8), 100, "host", "n0"));
    assert_eq!(world.places("s"), "n3");
}

#[test]
fn taints_that_ask_pods_to_go_elsewhere_count_unless_they_are_tolerated() {
    let mut world = World::of((tainted(node("a", 8), "x"), node("b", 8)));
    world.then(pod("p", 1));
    assert_eq!(world.places("p"), "b");
    let toleration = Toleration {
        key: "x".into(),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect: None,
    };
    world.then(pod("q", 8).shape(|shape| shape.tolerations.push(toleration.clone())));
    assert_eq!(world.places("q"), "a");
    // A taint that goes away keeps no pod away any more.
    let mut world = World::of((tainted(node("a", 8), "x"), node("b", 8)));
    world.then(node("a", 8));
    world.then(pod("p", 1));
    assert_eq!(world.places("p"), "a");
    world.then(tainted(node("a", 8), "y"));
    world.then(pod("q", 1));
    assert_eq!(world.places("q"), "b");
}

#[test]
fn preferences_about_pods_hold_both_ways_whoever_placed_the_pods() {
    for foreign in [false, true] {
        let made = |pods: Sketch<PodFacts>| if foreign { pods.foreign() } else { pods };
        let mut world = racks(2);
        world.apply(made(app(pod("db", 1), "db").on("n2")));
        world.then(prefer_pods(app(pod("web", 1), "web"), 5, "db", "rack"));
        assert_eq!(world.places("web"), "n2", "near, foreign: {foreign}");
        world.then(prefer_pods(app(pod("far", 1), "web"), -5, "db", "rack"));
        assert_eq!(world.places("far"), "n0", "far, foreign: {foreign}");

        let mut world = racks(2);
        let drawing = prefer_pods(app(pod("db", 1), "db"), 5, "web", "rack");
        world.apply(made(drawing.on("n2")));
        world.then(app(pod("web", 1), "web"));
        assert_eq!(world.places("web"), "n2", "drawn, foreign: {foreign}");
        world.then(app(pod("other", 1), "other"));
        assert_eq!(
            world.places("other"),
            "n2",
            "the fullest, foreign: {foreign}"
        );
        let sending = prefer_pods(app(pod("x", 1), "x"), -5, "web", "host");
        world.apply(made(sending.on("n2")));
        world.then(app(pod("sent", 1), "web"));
        assert_eq!(world.places("sent"), "n3", "sent away, foreign: {foreign}");
    }
}

#[test]
fn pods_spread_if_they_can() {
    let rule = SpreadRule {
        topology_key: "rack".into(),
        max_skew: 1,
        min_domains: 1,
        labels: Some(of_app("web")),
        selects_own_labels: true,
        honors_affinity: true,
        honors_taints: false,
    };
    let mut world = racks(3);
    for number in 0..3 {
        let pods = app(pod(&format!("p{number}"), 1), "web");
        world.then(prefer(pods, |preferences| {
            preferences.spread.push(rule.clone());
        }));
    }
    let mut places = world.nodes_of("p0 p1 p2");
    places.sort();
    assert_eq!(places, ["n0", "n2", "n4"]);
    // With one rack left, the fourth joins the others there.
    for (name, gpus, node) in [
        ("a", 7, "n0"),
        ("b", 8, "n1"),
        ("c", 7, "n2"),
        ("d", 8, "n3"),
    ] {
        world.apply(pod(name, gpus).on(node));
    }
    let pods = app(pod("q", 8), "web");
    world.then(prefer(pods, |preferences| {
        preferences.spread.push(rule.clone());
    }));
    assert_eq!(world.places("q"), "n5");
}

#[test]
fn members_go_where_they_prefer_inside_the_domain_that_was_chosen() {
    // The required domain is chosen first: only r0 has room.
    let mut world = racks(2);
    world.apply((pod("a", 4).on("n2"), pod("b", 8).on("n3")));
    let members = names("p", 3);
    let torn = prefer_nodes(pod(&members, 4), 9, "host", "n2");
    let members_of = prefer_nodes(torn, 1, "host", "n1").of("g");
    world.then((gang("g", 3).required("rack"), members_of));
    let places = world.nodes_of(&members);
    let on = |name: &str| places.iter().filter(|place| *place == name).count();
    assert_eq!((on("n0"), on("n1")), (1, 2));
    // The level that is only implied comes after what pods say.
    let mut world = racks(2);
    let members = names("p", 4);
    let members_of = prefer_nodes(pod(&members, 3), 9, "rack", "r1").of("g");
    world.then((gang("g", 4), members_of));
    assert_eq!(world.nodes_of(&members), ["n2", "n2", "n3", "n3"]);
}

#[test]
fn members_that_prefer_to_be_apart_are_and_all_are_placed() {
    for count in [3, 6, 16] {
        let mut world = racks(2);
        let members = names("p", count);
        let apart = prefer_pods(app(pod(&members, 2), "g"), -1, "g", "host").of("g");
        world.then((gang("g", u32::try_from(count).unwrap()), apart));
        let places = world.nodes_of(&members);
        let on = |name: &str| places.iter().filter(|place| *place == name).count();
        let mut counts = ["n0", "n1", "n2", "n3"].map(on);
        counts.sort_unstable();
        assert!(counts[3] - counts[0] <= 1, "{counts:?} of {count}");
    }
}

#[test]
fn preferences_never_cost_a_gang_its_place() {
    // One by one, the small pods would take the node that the large one needs.
    let mut world = World::of((node("a", 8).label("best", "y"), node("b", 4)));
    let small = prefer_nodes(pod("s0 s1", 2), 5, "best", "y").of("g");
    let large = pod("l", 8).of("g");
    world.then((gang("g", 3), small, large));
    assert_eq!(world.places("s0 s1 l"), "b b a");
}

#[test]
fn every_placement_follows_preferences() {
    let placements = [
        Placement::Binpack,
        Placement::Spread,
        Placement::BestFit,
        Placement::Fragmentation,
        Placement::Random { seed: 3 },
        Placement::Consolidated,
    ];
    for placement in placements {
        for count in [1, 2, 5] {
            let mut world = racks(3);
            let members = names("p", count);
            let members_of = prefer_nodes(pod(&members, 2), 9, "rack", "r1").of("g");
            let of = gang("g", u32::try_from(count).unwrap()).placed(placement);
            world.then((of, members_of));
            let places = world.nodes_of(&members);
            let all_there = places.iter().all(|place| ["n2", "n3"].contains(&&**place));
            assert!(all_there, "{placement:?} {count}: {places:?}");
        }
    }
}

/// A node that has an image of so many GiB.
fn with_image(node: Sketch<NodeFacts>, image: &str, gib: u64) -> Sketch<NodeFacts> {
    node.with(|node| {
        node.images.push(NodeImage {
            name: image.into(),
            size_bytes: gib << 30,
        });
    })
}

#[test]
fn pods_go_where_their_images_are_if_the_cluster_prefers_that() {
    let wants = |name: &str, image: &str| {
        prefer(pod(name, 1), |preferences| {
            preferences.images = Some(PreferredImages {
                names: vec![image.into()],
                containers: 1,
            });
        })
    };
    let mut world = World::of((node("a", 8), with_image(node("b", 8), "x:v1", 1)));
    world.apply(with_image(with_image(node("c", 8), "x:v1", 1), "y:v1", 2));
    world.then(pod("p", 1));
    assert_eq!(world.places("p"), "a", "without preferences");
    world.then(wants("q", "x:v1"));
    assert_eq!(world.places("q"), "b");
    world.then(wants("r", "y:v1"));
    assert_eq!(world.places("r"), "c");
    // The image goes from one node to another, and nodes go.
    world.apply((with_image(node("a", 8), "y:v1", 2), node("c", 8)));
    world.then(wants("s", "y:v1"));
    assert_eq!(world.places("s"), "a");
    world.then(wants("t", "z:v1"));
    assert_eq!(
        world.places("t"),
        "a",
        "nobody has it: as without preferences"
    );
}

#[test]
fn pods_of_a_controller_spread_if_the_cluster_has_them_and_nodes_without_the_label_count() {
    let owner = |number: u128| OwnerReference {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: "web".into(),
        uid: Uid(number),
    };
    let of = |name: &str, number: u128| {
        let same = LabelSelector {
            match_labels: vec![(CONTROLLER.into(), Uid(number).to_string().into())],
            match_expressions: Vec::new(),
        };
        let rules = [("rack", 5), ("host", 3)].map(|(key, max_skew)| SpreadRule {
            topology_key: key.into(),
            max_skew,
            min_domains: 1,
            labels: Some(same.clone()),
            selects_own_labels: true,
            honors_affinity: true,
            honors_taints: false,
        });
        let pods = prefer(pod(name, 1), |preferences| {
            preferences.spread = rules.to_vec();
            preferences.spread_is_default = true;
        });
        pods.with(|pod| pod.owner = Some(owner(number)))
    };
    let mut world = racks(2);
    world.then((of("a", 1), of("b", 1)));
    let mut places = world.nodes_of("a b");
    places.sort();
    assert_eq!(places, ["n0", "n2"]);
    // Pods of another controller do not count.
    world.then(of("c", 2));
    assert_eq!(world.places("c"), "n0");
    // A node without any of the labels is crowded by nothing.
    world.apply(node("bare", 8));
    world.then(of("d", 1));
    assert_eq!(world.places("d"), "bare");
}
