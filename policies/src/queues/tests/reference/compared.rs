//! Random worlds, in which the tree must give every queue what the reference gives it.
//!
//! The one tolerance is a base unit for each level, because amounts are cut to whole units at each.
//! Past use needs no tolerance of its own: tree and reference begin with equal averages, and an
//! adjusted weight is rounded by a part of 2^-45, of amounts that are below 2^43 here.

use super::random::{Size, Style, random_world};
use super::world::World;
use super::{fair_shares, whole};
use fastrand::Rng;
use std::format;

fn check(seed: u64, size: Size, style: Style) {
    let world = random_world(&mut Rng::with_seed(seed), size, style);
    compare(&world, &format!("seed {seed}, {size:?}, {style:?}"));
}

pub(super) fn compare(world: &World, what: &str) {
    let expected = fair_shares(world);
    let found = world.shares(&mut world.tree());
    for q in world.indices().skip(1) {
        for key in 0..world.keys() {
            let (expected, found) = (&expected[q][key], whole(found[q][key]));
            let off = if *expected > found {
                expected - &found
            } else {
                &found - expected
            };
            // One base unit for each level.
            assert!(
                off <= whole(world.level(q) as u64),
                "{what}: {} has {found} of {}, and should have {}",
                World::name(q),
                world.names[key],
                expected.to_integer(),
            );
        }
    }
}

#[test]
fn in_small_trees_every_queue_has_what_the_reference_says() {
    for seed in 0..500 {
        let mut random = Rng::with_seed(seed);
        let size = Size {
            queues: random.usize(1..13),
            depth: random.usize(1..5),
            keys: random.usize(1..4),
        };
        check(seed, size, Style::Contested);
        check(seed, size, Style::Wild);
    }
}

#[test]
fn where_more_is_promised_than_there_is_at_every_level_the_reference_agrees() {
    for seed in 0..300 {
        let mut random = Rng::with_seed(seed);
        let size = Size {
            queues: random.usize(2..30),
            depth: random.usize(2..7),
            keys: random.usize(1..4),
        };
        check(seed, size, Style::Promised);
    }
}

#[test]
fn in_large_trees_every_queue_has_what_the_reference_says() {
    let size = |queues| Size {
        queues,
        depth: 6,
        keys: 6,
    };
    for seed in 0..3 {
        check(seed, size(200), Style::Wild);
        check(seed, size(40), Style::Contested);
        check(
            seed,
            Size {
                keys: 2,
                ..size(100)
            },
            Style::Contested,
        );
    }
}

#[test]
fn in_slices_shares_are_the_same() {
    for seed in 0..60 {
        let size = Size {
            queues: 30,
            depth: 5,
            keys: 3,
        };
        let world = random_world(&mut Rng::with_seed(seed), size, Style::Contested);
        let expected = world.shares(&mut world.tree());
        let mut sliced = world.tree();
        let mut slices = 0;
        while !sliced.divide(&mut 0, 1 + seed * 10) {
            slices += 1;
            // What changes during a division belongs to the next.
            if slices == 2 {
                sliced.want("q001", &[(crate::queues::tests::GPU, 1)]);
            }
        }
        assert!(seed > 5 || slices > 10, "seed {seed}: {slices} slices");
        let last = world.last_shares(&sliced);
        assert_eq!(last, expected, "seed {seed}");
        assert!(slices < 2 || sliced.divided_version() != Some(sliced.shares_version()));
    }
}
