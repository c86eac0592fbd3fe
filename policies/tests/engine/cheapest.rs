//! Eviction plans where many gangs stand on several nodes each: the cheapest set is hard to find
//! there, and the plans break fewer gangs than taking the node with the fewest, again and again.

use fastrand::Rng;
use gpu_batch_policies::explain::EvictionPlan;
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{World, gang, node, pod, quota};
use std::collections::{BTreeMap, BTreeSet};

/// On each of so many nodes two gangs have four GPUs each; a gang stands on two to four nodes. By
/// node, the gangs there.
fn shared_nodes(nodes: usize, random: &mut Rng) -> Vec<Vec<usize>> {
    let mut slots: Vec<usize> = (0..nodes).flat_map(|node| [node, node]).collect();
    random.shuffle(&mut slots);
    let mut on_node = vec![Vec::new(); nodes];
    let mut number = 0;
    while !slots.is_empty() {
        let size = random.usize(2..=4).min(slots.len());
        for node in slots.split_off(slots.len() - size) {
            on_node[node].push(number);
        }
        number += 1;
    }
    on_node
}

/// The gangs that leave if the node with the fewest gangs more is taken, so many times.
fn by_nodes(on_node: &[Vec<usize>], mut wanted: usize) -> usize {
    let mut left = BTreeSet::new();
    let mut nodes: BTreeSet<usize> = (0..on_node.len()).collect();
    while wanted > 0 {
        let more = |node: &usize| {
            let gangs: BTreeSet<&usize> = on_node[*node].iter().collect();
            gangs
                .into_iter()
                .filter(|gang| !left.contains(*gang))
                .count()
        };
        let node = *nodes.iter().min_by_key(|node| more(node)).unwrap();
        nodes.remove(&node);
        left.extend(on_node[node].iter().copied());
        wanted -= 1;
    }
    left.len()
}

fn plan(on_node: &[Vec<usize>], wanted: usize) -> EvictionPlan {
    let mut evictions = Settings::default().evictions;
    evictions.in_flight = 0;
    let mut world = World::with(Settings {
        evictions,
        ..Settings::default()
    });
    let gpus = on_node.len() as u64 * 8;
    world.then(quota("a", gpus));
    let mut sizes: BTreeMap<usize, u32> = BTreeMap::new();
    for (number, gangs) in on_node.iter().enumerate() {
        let at = format!("n{number:04}");
        world.apply(node(&at, 8));
        for of in gangs {
            let size = sizes.entry(*of).or_default();
            world.apply(
                pod(&format!("g{of}-{size}"), 4)
                    .of(&format!("g{of}"))
                    .on(&at),
            );
            *size += 1;
        }
    }
    for (of, size) in sizes {
        world.apply(gang(&format!("g{of}"), size).queue("a"));
    }
    let members: Vec<String> = (0..wanted).map(|member| format!("p-{member}")).collect();
    let waiting = pod(&members.join(" "), 8).of("p");
    world.apply(gang("p", u32::try_from(wanted).unwrap()).queue("a"));
    world.apply(waiting.with(|pod| pod.priority = 100));
    world.settle();
    world.engine.set_evictions(Settings::default().evictions);
    world.explain("p").eviction.unwrap().unwrap()
}

#[test]
fn of_gangs_on_several_nodes_fewer_leave_than_by_taking_node_after_node() {
    let (mut leave, mut by_node) = (0, 0);
    for seed in 0..12 {
        let on_node = shared_nodes(60, &mut Rng::with_seed(seed));
        let found = plan(&on_node, 8);
        let most = by_nodes(&on_node, 8) as u64;
        println!(
            "{seed}: {} of at least {}, by nodes {most}",
            found.gangs_broken, found.gangs_broken_at_least
        );
        leave += found.gangs_broken;
        by_node += most;
    }
    assert!(leave < by_node, "{leave} gangs, and {by_node} by nodes");
}
