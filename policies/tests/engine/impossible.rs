//! What `explain` says of a gang for which no evictions make room: which claim, limit, domain or
//! host port is in the way.

use crate::needed::with_port;
use gpu_batch_policies::facts::MatchOperator;
use gpu_batch_testing::{World, amounts, gang, node, pod, queue, quota, topology};

/// Why there is no plan for the gang `p`; it is proved.
fn why_none(world: &mut World) -> String {
    let none = world.explain("p").eviction.unwrap().unwrap_err();
    assert!(none.is_proved, "{none:?}");
    none.message
}

/// Why no plan was found for the gang `p`.
fn why_not_found(world: &mut World) -> String {
    let none = world.explain("p").eviction.unwrap().unwrap_err();
    none.message
}

const EVEN_WITHOUT_ALL: &str =
    "it could not start even without all gangs that may be evicted for it";

#[test]
fn explain_says_how_much_a_queue_may_claim_before_it_says_that_room_is_short() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1 n2", 8),
        (quota("a", 4), quota("b", 4)),
        pod("v1", 8).queue("b").on("n1"),
        pod("v2", 8).queue("b").on("n2"),
        gang("p", 2).queue("a"),
        pod("p-0 p-1", 8).of("p"),
    ));
    let claims = "its queue may claim 8 more nvidia.com/gpu by its quota and fair share, and it \
                  asks for 16";
    assert_eq!(why_none(&mut world), claims);
    let remedy = "a quota of 16 nvidia.com/gpu for the queue a: up to its quota a queue may take \
                  back what other queues hold beyond theirs";
    let remedies = world.explain("p").remedies;
    assert!(remedies.iter().any(|one| one == remedy), "{remedies:?}");
}

/// The queue may claim the GPUs that the gang asks for, and not the cores.
#[test]
fn explain_names_the_quota_of_cpu_that_a_queue_lacks() {
    let mut world = World::with_grace(30);
    let quotas = |name: &str| quota(name, 4).entry("cpu", None, (1_000, None), 1);
    let of_60_cores = |name: &str| {
        let requests = amounts(&[("cpu", 60_000), ("nvidia.com/gpu", 4), ("pods", 1)]);
        pod(name, 4).shape(move |shape| shape.requests = requests.clone())
    };
    world.then((
        node("n1", 8),
        (quotas("a"), quotas("b")),
        of_60_cores("v1").queue("b").on("n1"),
        gang("p", 1).queue("a"),
        of_60_cores("p-0").of("p"),
    ));
    let remedies = world.explain("p").remedies;
    let remedy = "a quota of 60 cpu for the queue a: ";
    let why = why_none(&mut world);
    assert!(
        remedies.iter().any(|one| one.starts_with(remedy)),
        "{why} {remedies:?}"
    );
}

#[test]
fn the_domain_that_comes_nearest_is_named() {
    let mut world = World::with_grace(30);
    world.then((
        topology("default", "rack"),
        node("n1", 8).label("rack", "r1"),
        node("n2", 8).label("rack", "r2"),
        quota("a", 16),
        pod("x", 8).queue("a").on("n1"),
        gang("p", 2).queue("a").required("rack"),
        pod("p-0 p-1", 8).of("p").with(|pod| pod.priority = 100),
    ));
    let left = "2 members with 8 nvidia.com/gpu each do not fit in one rack: r1 comes nearest with \
                room for 1; of 2 nodes, 2 had room";
    assert_eq!(why_none(&mut world), format!("{EVEN_WITHOUT_ALL}: {left}"));
}

#[test]
fn the_limit_that_is_in_the_way_is_named() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1", 16),
        queue("a").limit(8),
        pod("x", 4)
            .queue("a")
            .on("n1")
            .with(|pod| pod.priority = 100),
        pod("y", 4).queue("a").on("n1"),
        gang("p", 1).queue("a"),
        pod("p-0", 8).of("p").with(|pod| pod.priority = 100),
    ));
    let claims = "its queue may claim 4 more nvidia.com/gpu by its quota and fair share, and it \
                  asks for 8";
    let left = "the limit of the queue a is 8 of nvidia.com/gpu; 4 are held and 8 more asked for";
    let expected = format!("{claims}; {EVEN_WITHOUT_ALL}: {left}");
    assert_eq!(why_none(&mut world), expected);
}

#[test]
fn a_host_port_that_is_short_is_named() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1", 8),
        quota("a", 8),
        with_port(pod("k", 0), 80).foreign().on("n1"),
        pod("y", 8).queue("a").on("n1"),
        gang("p", 1).queue("a"),
        with_port(pod("p-0", 8), 80)
            .of("p")
            .with(|pod| pod.priority = 100),
    ));
    let left = "1 member with 8 nvidia.com/gpu does not fit in the cluster: of 1 node, 1 didn't have \
                free ports for the requested pod ports";
    assert_eq!(why_none(&mut world), format!("{EVEN_WITHOUT_ALL}: {left}"));
}

/// To take `x` and `y` leaves `org` within its quota. To take `v`, which is one gang, is cheaper;
/// it is protected, and has no other place.
#[test]
fn a_bound_that_is_in_the_way_is_told_before_gangs_that_cannot_move() {
    let mut world = World::with_grace(30);
    let owned = |name: &str, gpus, queue: &str| pod(name, gpus).queue(queue).owned_by(name);
    world.then((
        (node("n1 n3", 8).label("disk", "fast"), node("n2", 8)),
        (quota("a c", 8), quota("org", 6), queue("b").parent("org")),
        (owned("x", 4, "b").on("n1"), owned("y", 4, "b").on("n1")),
        pod("z", 2).queue("b").on("n2"),
        pod("u", 6)
            .on("n2")
            .with(|pod| pod.hints.preemptible = Some(false)),
        owned("v", 8, "c").on("n3"),
        gang("p", 1).queue("a"),
        pod("p-0", 8)
            .of("p")
            .needs("disk", MatchOperator::In, &["fast"]),
    ));
    let gives = "the queue b would give what is within its bound";
    assert_eq!(why_not_found(&mut world), gives);
}

/// `x` is over the quota of its queue, and would leave; `y` has no other place.
#[test]
fn a_gang_that_would_leave_is_not_told_to_stay() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1", 8),
        node("n2", 8).cordoned(),
        (quota("a", 8), queue("b"), quota("c", 4)),
        pod("x", 4).queue("b").on("n1"),
        pod("y", 4).queue("c").owned_by("y").on("n1"),
        gang("p", 1).queue("a"),
        pod("p-0", 8).of("p"),
    ));
    let stays = "there is too little room for it and for the gangs that would have to move for it \
                 (within the quota of its own queue: default/pod/y)";
    assert_eq!(why_not_found(&mut world), stays);
}

/// The queue `b` holds more than its quota of 2. The gang's queue may claim its fair share of 3
/// only, and within the one of 5 `b` stays.
#[test]
fn the_bound_that_keeps_a_gang_is_named() {
    let mut world = World::with_grace(30);
    let gpu = "nvidia.com/gpu";
    world.then((
        (node("n1", 7).label("disk", "fast"), node("n2", 1)),
        queue("a").entry(gpu, None, (2, None), 1),
        queue("b").entry(gpu, None, (2, None), 3),
        pod("x", 5).queue("b").on("n1"),
        pod("y", 2).queue("a").on("n1"),
        gang("p", 1).queue("a"),
        pod("p-0", 1)
            .of("p")
            .needs("disk", MatchOperator::In, &["fast"]),
    ));
    let stays = "no gang that runs may be evicted for it (of a queue that holds no more than its \
                 fair share: default/pod/x; of no lower priority in its queue: default/pod/y)";
    assert_eq!(why_none(&mut world), stays);
}

/// As above, and `b` is below `org`, which holds no more than its quota.
#[test]
fn a_queue_above_that_keeps_a_gang_is_told_apart() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1", 8),
        node("n2", 8).cordoned(),
        (quota("a org", 8), queue("b").parent("org")),
        pod("x", 8).queue("b").on("n1"),
        gang("p", 1).queue("a"),
        pod("p-0", 8).of("p"),
    ));
    let stays = "no gang that runs may be evicted for it (below a queue that holds no more than its \
                 quota: default/pod/x)";
    assert_eq!(why_none(&mut world), stays);
}
