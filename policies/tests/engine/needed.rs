//! Which gangs a plan evicts: each of them is needed, and where there is a set of such gangs, it is
//! found.

use gpu_batch_policies::facts::{HostPort, PodFacts, Protocol};
use gpu_batch_testing::{Sketch, World, gang, leaf, node, pod, queue, quota, topology};

/// The pods take this port of their nodes.
pub(crate) fn with_port(pods: Sketch<PodFacts>, port: u16) -> Sketch<PodFacts> {
    pods.shape(move |shape| {
        shape.host_ports = vec![HostPort {
            port,
            protocol: Protocol::Tcp,
            host_ip: "".into(),
        }];
    })
}

fn low(names: &str, gpus: u64) -> Sketch<PodFacts> {
    pod(names, gpus).queue("a")
}

fn urgent(pods: Sketch<PodFacts>) -> Sketch<PodFacts> {
    pods.with(|pod| pod.priority = 100)
}

fn sorted(world: &World) -> Vec<&str> {
    let mut evicted: Vec<&str> = world.evicted.iter().map(|name| &**name).collect();
    evicted.sort_unstable();
    evicted
}

/// Each of four nodes has a pod with the port 80 and two with other ports; the gang wants the port
/// 80 of three nodes. Counting room knows of no ports.
#[test]
fn only_pods_whose_host_ports_are_wanted_leave() {
    let mut world = World::with_grace(30);
    world.then((node("n1 n2 n3 n4", 8), quota("a", 32)));
    for at in 1..=4 {
        let on = format!("n{at}");
        world.then((
            with_port(low(&format!("x{at}"), 1), 80).on(&on),
            with_port(low(&format!("y{at}"), 1), 81).on(&on),
            with_port(low(&format!("z{at}"), 1), 82).on(&on),
        ));
    }
    let wanting = with_port(pod("p-0 p-1 p-2", 1), 80).of("p");
    world.then((gang("p", 3).queue("a"), urgent(wanting)));
    world.run(2_000);
    let evicted = sorted(&world);
    assert_eq!(evicted.len(), 3, "{evicted:?}");
    assert!(
        evicted.iter().all(|name| name.starts_with('x')),
        "{evicted:?}"
    );
}

/// The claimant has no ports. Its two sub-groups require a rack each, so counting errs.
#[test]
fn pods_with_host_ports_stay_where_their_room_is_not_wanted() {
    let mut world = World::with_grace(30);
    world.then((topology("default", "rack"), quota("a", 64)));
    for at in 0..4 {
        for rack in ["r0", "r1"] {
            let name = format!("{rack}-{at}");
            world.then((
                node(&name, 8).label("rack", rack),
                with_port(low(&format!("x-{name}"), 8), 29_500).on(&name),
            ));
        }
    }
    let slices = [
        leaf("one", "", 2).required("rack"),
        leaf("two", "", 2).required("rack"),
    ];
    world.then((
        gang("p", 1).queue("a").sub_groups(slices),
        urgent(pod("a-0 a-1", 8).of_leaf("p", "one")),
        urgent(pod("b-0 b-1", 8).of_leaf("p", "two")),
    ));
    world.run(2_000);
    let evicted = sorted(&world);
    assert_eq!(evicted.len(), 4, "{evicted:?}");
}

/// Each of ten departments holds one GPU more than its quota, and their teams have no quota of
/// their own. Of 30 nodes only the last one, where gangs have run for longest, holds one pod of a
/// department at the most.
#[test]
fn a_quota_is_obtained_from_many_queues_that_give_little() {
    let mut world = World::with_grace(30);
    world.then(quota("a", 8));
    let mut held = [0; 10];
    for at in 0..30 {
        let name = format!("n{at}");
        world.then(node(&name, 8));
        for place in 0..8_usize {
            let shift = usize::from(at < 29 && place > 0);
            let of = (at + place - shift) % 10;
            held[of] += 1;
            let pods = pod(&format!("v{at}-{place}"), 1).queue(&format!("team{of}"));
            let earlier_ms = if at == 29 { 3_600_000 } else { 0 };
            world.then(pods.on(&name).with(|pod| {
                pod.bound_ms = pod.bound_ms.map(|at_ms| at_ms - earlier_ms);
            }));
        }
    }
    for (of, held) in held.into_iter().enumerate() {
        let department = format!("department{of}");
        let team = queue(&format!("team{of}")).parent(&department);
        world.then((quota(&department, held - 1), team));
    }
    world.then(pod("p", 8).queue("a"));
    world.run(5_000);
    let evicted = sorted(&world);
    assert_eq!(evicted.len(), 8, "{evicted:?}");
    assert!(
        evicted.iter().all(|name| name.starts_with("v29-")),
        "{evicted:?}"
    );
}

/// The queue `b` holds its quota. Then its parent is gone, and comes back without a quota.
#[test]
fn gangs_of_a_queue_that_is_not_ready_any_more_are_nobodys_victims() {
    let mut world = World::new();
    world.then((
        node("n1", 8),
        (quota("top", 8), quota("a", 8)),
        quota("b", 8).parent("top"),
        pod("v", 8).queue("b").on("n1"),
    ));
    world.lose_queue("top");
    world.then(pod("p", 8).queue("a"));
    world.run(10_000);
    assert_eq!(sorted(&world), [""; 0]);
    world.then(quota("top", 0));
    world.run(10_000);
    assert_eq!(sorted(&world), ["v"]);
}

/// The gang holds 2 members that it needs, 2 of a sub-group that it can go without, and one beyond
/// the minimum of that sub-group. What a claim for so many GPUs takes of it.
fn taken_of_an_optional_sub_group(gpus: u64) -> Vec<String> {
    let mut world = World::with_grace(30);
    world.then((
        node("n1", 5),
        quota("a", gpus),
        queue("b"),
        gang("x", 1)
            .queue("b")
            .at_least(1)
            .sub_groups([leaf("needed", "", 2), leaf("optional", "", 2)]),
        pod("x-0 x-1", 1).of_leaf("x", "needed").on("n1"),
        pod("x-2 x-3 x-4", 1).of_leaf("x", "optional").on("n1"),
    ));
    // The newest members leave first.
    for (minutes, name) in (1..).zip(["x-4", "x-3", "x-2", "x-1", "x-0"]) {
        world.change(name, |pod| {
            pod.bound_ms = pod.bound_ms.map(|at_ms| at_ms - minutes * 60_000);
        });
    }
    world.settle();
    world.then(pod("p", gpus).queue("a"));
    world.run(2_000);
    sorted(&world).into_iter().map(Into::into).collect()
}

#[test]
fn a_sub_group_that_its_gang_can_go_without_leaves_as_a_whole() {
    assert_eq!(taken_of_an_optional_sub_group(1), ["x-4"]);
    assert_eq!(taken_of_an_optional_sub_group(2), ["x-2", "x-3", "x-4"]);
    assert_eq!(taken_of_an_optional_sub_group(3), ["x-2", "x-3", "x-4"]);
}
