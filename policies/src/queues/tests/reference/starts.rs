//! What whole gangs get, instead of infinitely small units.

use super::fair_shares;
use super::random::{Size, Style, random_use, random_world};
use super::world::{Entry, World};
use crate::queues::LineUp;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::vec::Vec;

/// Starts gangs of leaves that want gangs without end, until none fits. Siblings that are equal,
/// with equal gangs, must never differ by more than one gang.
fn check(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let size = Size {
        queues: random.usize(1..12),
        depth: random.usize(1..5),
        keys: random.usize(1..=3),
    };
    let mut world = random_world(&mut random, size, Style::Contested);
    if seed % 2 == 1 {
        random_use(&mut random, &mut world);
    }
    for leaf in world.leaves().collect::<Vec<_>>() {
        let mut gang: Vec<u64> = (0..world.keys()).map(|_| random.u64(0..40)).collect();
        for (key, plain) in world.plain.iter().enumerate() {
            if let Some(plain) = *plain {
                gang[plain] = gang[plain].max(gang[key]);
            }
        }
        gang[0] = gang[0].max(1);
        world.queues[leaf].wants = [gang].into();
        if random.bool() {
            let it = world.queues[leaf].clone();
            let twin = world.add(it.parent, it.entries, &it.wants[0]);
            world.queues[twin].priority = it.priority;
            world.queues[twin].used = it.used;
        }
    }
    let mut tree = world.tree();
    let mut left = world.capacity.clone();
    let mut gangs: BTreeMap<usize, u64> = world.leaves().map(|leaf| (leaf, 0)).collect();
    let names: Vec<_> = world
        .leaves()
        .map(|q| (q, tree.at(&World::name(q))))
        .collect();
    loop {
        for &(leaf, id) in &names {
            let wants = &world.queues[leaf].wants[0];
            let asked: Vec<_> = world
                .names
                .iter()
                .copied()
                .zip(wants.iter().copied())
                .collect();
            let demand: Vec<_> = asked.into_iter().filter(|(_, it)| *it > 0).collect();
            let demand = tree.demand(&demand);
            let room = wants.iter().zip(&left).all(|(wanted, left)| wanted <= left);
            let fits = room && tree.room(id, &demand).is_ok();
            tree.set_candidate(LineUp::FIRST, id, fits.then_some(demand));
        }
        let Some(next) = tree.next_leaf(LineUp::FIRST) else {
            break;
        };
        let (leaf, _) = *names.iter().find(|(_, id)| *id == next).expect("a leaf");
        for (left, wanted) in left.iter_mut().zip(&world.queues[leaf].wants[0]) {
            *left -= wanted;
        }
        let demand = tree.order_head(next);
        tree.charge(next, &demand, true);
        *gangs.entry(leaf).or_default() += 1;
        for one in world.leaves() {
            for other in world.leaves().filter(|&other| equal(&world, one, other)) {
                let (one_has, other_has) = (gangs[&one], gangs[&other]);
                assert!(
                    one_has.abs_diff(other_has) <= 1,
                    "seed {seed}: {} has {one_has} gangs, its equal {} has {other_has}",
                    World::name(one),
                    World::name(other),
                );
            }
        }
    }
}

fn equal(world: &World, one: usize, other: usize) -> bool {
    let (one, other) = (&world.queues[one], &world.queues[other]);
    one.parent == other.parent
        && one.wants == other.wants
        && one.priority == other.priority
        && one.used == other.used
        && one.entries == other.entries
}

#[test]
fn equal_siblings_differ_by_at_most_one_gang() {
    for seed in 0..300 {
        check(seed);
    }
}

/// Starts gangs of one GPU until no GPU is left. Returns by how many GPUs any queue is off what the
/// reference divides, at most.
fn off_by(world: &World) -> u64 {
    let mut tree = world.tree();
    let unit = tree.demand(&[(world.names[0], 1)]);
    let leaves: Vec<_> = world
        .leaves()
        .map(|q| (q, tree.at(&World::name(q))))
        .collect();
    for &(_, id) in &leaves {
        tree.set_candidate(LineUp::FIRST, id, Some(unit.clone()));
    }
    let mut has: Vec<u64> = world.indices().map(|_| 0).collect();
    for _ in 0..world.capacity[0] {
        let next = tree.next_leaf(LineUp::FIRST).expect("all want more");
        tree.charge(next, &unit, true);
        let (leaf, _) = leaves.iter().find(|(_, id)| *id == next).expect("a leaf");
        for q in world.path(*leaf) {
            has[q] += 1;
        }
    }
    let divided = fair_shares(world);
    let off = world.indices().map(|q| {
        let share = u64::try_from(divided[q][0].round().to_integer()).expect("an amount");
        share.abs_diff(has[q])
    });
    off.max().unwrap_or(0)
}

/// A tree in which every leaf wants everything, and quotas promise more than there is.
fn promised(seed: u64) -> World {
    let mut random = Rng::with_seed(seed);
    let mut world = World::new(&[random.u64(50..600)]);
    let all = world.capacity[0];
    for _ in 0..random.usize(2..20) {
        let parent = random.usize(0..world.queues.len());
        let entry = Entry {
            key: 0,
            quota: random.u64(all / 4..=all),
            limit: None,
            weight: 1,
        };
        world.add(parent, [entry].into(), &[all]);
    }
    world
}

#[test]
fn gangs_start_as_over_committed_quotas_are_divided() {
    for seed in 0..60 {
        let world = promised(seed);
        let off = off_by(&world);
        // Half a GPU for each level, and one that cannot be divided evenly.
        assert!(
            off <= 1 + world.depth() as u64 / 2,
            "seed {seed}, {} levels: off by {off}",
            world.depth()
        );
    }
}
