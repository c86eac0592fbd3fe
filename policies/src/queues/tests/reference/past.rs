//! Past use: what docs/fair-shares.md says of it, in exact fractions.
//!
//! What a queue held counts half as much one half-life later; each minute takes an equal part of it
//! away. So what was held from one time to another counts for the difference of two powers of a
//! half, and the whole past for the sum of such differences. The weight of a queue is multiplied by
//! its part of its siblings' weights over its part of what they have used, by 4 at most and by a
//! quarter at least. Queues of weight 0 take no part in that.

use super::random::{Size, Style, random_use, random_world};
use super::world::World;
use super::{ROOT, compared, whole};
use crate::facts::CARD;
use crate::queues::QueueTree;
use crate::queues::past::GRID_MS;
use fastrand::Rng;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use std::vec::Vec;

/// A year, in minutes.
const YEAR: u64 = 365 * 24 * 60;
/// How many bits powers are worked out to.
const BITS: u32 = 256;

/// What every weight counts for, by queue and key; 1 for a weight of 0.
pub(super) fn counted_weights(world: &World) -> Vec<Vec<BigRational>> {
    let of = |q| (0..world.keys()).map(move |key| counted_weight(world, q, key));
    world.indices().map(|q| of(q).collect()).collect()
}

fn counted_weight(world: &World, q: usize, key: usize) -> BigRational {
    let weight = world.weight(q, key);
    if weight == 0 || q == ROOT {
        return BigRational::one();
    }
    let weight = whole(weight.into());
    let parent = world.queues[q].parent;
    let siblings = world.queues[parent].children.iter().copied();
    let siblings: Vec<usize> = siblings
        .filter(|&sibling| world.weight(sibling, key) > 0)
        .collect();
    let used: u64 = siblings.iter().map(|&it| world.used(it, key)).sum();
    if used == 0 {
        return weight;
    }
    let weights: u64 = siblings
        .iter()
        .map(|&it| u64::from(world.weight(it, key)))
        .sum();
    // The idle queues below the root, which are not part of the world, have weights, too.
    let weights = weights
        + if parent == ROOT {
            World::IDLE_AT_ROOT
        } else {
            0
        };
    let most = whole(4);
    let own = world.used(q, key);
    if own == 0 {
        return weight * most;
    }
    let factor = &weight / whole(weights) / (whole(own) / whole(used));
    weight * factor.clamp(most.recip(), most)
}

/// `2^-(part / whole)`, by the series of the exponential function.
fn halved(part: u64, whole_: u64) -> BigRational {
    let one = BigInt::one() << BITS;
    let terms = 1..=BITS;
    let ln_2: BigInt = terms.map(|n| (&one >> n) / n).sum();
    let exponent = ln_2 * (part % whole_) / whole_;
    let (mut power, mut term) = (one.clone(), one.clone());
    for n in 1..BITS {
        term = (-term * &exponent / n) >> BITS;
        power += &term;
    }
    BigRational::new(power, one << (part / whole_))
}

/// For how many minutes a queue held an amount, and the amount; the oldest first.
type History = Vec<(u64, u64)>;

/// The decayed average of a history, in thousandths of a unit.
fn average(history: &History, half_life: u64) -> BigRational {
    let mut ago: u64 = history.iter().map(|(minutes, _)| minutes).sum();
    let mut sum = BigRational::zero();
    for (minutes, held) in history {
        let began = halved(ago, half_life);
        ago -= minutes;
        sum += (halved(ago, half_life) - began) * whole(*held) * whole(1_000);
    }
    sum
}

fn random_minutes(random: &mut Rng, half_life: u64) -> u64 {
    match random.u32(0..4) {
        0 => random.u64(1..4),
        1 => random.u64(1..=2 * half_life),
        _ => random.u64(1..=half_life.min(500)),
    }
}

/// Lets leaves hold random amounts for random times, each counted at once. Returns what every queue
/// has held.
fn live(random: &mut Rng, world: &World, tree: &mut QueueTree, half_life: u64) -> Vec<History> {
    let mut histories: Vec<History> = world.indices().map(|_| Vec::new()).collect();
    let mut now = 0;
    for _ in 0..random.u32(1..5) {
        let minutes = random_minutes(random, half_life);
        let mut holds: Vec<u64> = world.indices().map(|_| 0).collect();
        for leaf in world.leaves() {
            let held = match random.u32(0..6) {
                0..=2 => random.u64(0..50),
                3 => random.u64(0..1 << 40),
                _ => 0,
            };
            for q in world.path(leaf) {
                holds[q] += held;
            }
            tree.hold(&World::name(leaf), &[(world.names[0], held)]);
        }
        now += minutes;
        tree.count_use(now * GRID_MS);
        for leaf in world.leaves() {
            let held = tree.demand(&[(world.names[0], holds[leaf])]);
            tree.release(tree.at(&World::name(leaf)), &held, true);
        }
        for (history, held) in histories.iter_mut().zip(holds) {
            history.push((minutes, held));
        }
    }
    histories
}

/// Lets a world have a past, compares what its statuses tell of that with the exact averages, and
/// what a restarted tree divides with the reference.
///
/// The queues hold GPUs. An average use is told in thousandths of a card, to the nearest. Each
/// minute rounds the average down by less than 2^-20 of a thousandth. With a half-life of a year up
/// to 800,000 of these losses remain: less than one thousandth together. The part that a minute
/// leaves is a product of up to 62 roots of 62 bits each, right to a part of 2^-56. With a
/// half-life of a year, a minute takes away a part of 2^-20, which is so right to a part of 2^-36.
fn check(seed: u64, size: Size, half_life: u64) {
    let mut random = Rng::with_seed(seed);
    let mut world = random_world(&mut random, size, Style::Contested);
    world.half_life = Some(half_life);
    let mut tree = world.tree();
    let histories = live(&mut random, &world, &mut tree, half_life);
    for q in world.indices().skip(1) {
        let told = tree.status(tree.at(&World::name(q))).past_use;
        let averages = told.map_or_else(Vec::new, |past| past.averages);
        let told = averages.first().map_or(0, |(_, thousandths)| *thousandths);
        let exact = average(&histories[q], half_life) / whole(CARD);
        let off = (whole(told) - &exact).abs();
        assert!(
            off <= whole(2) + &exact / whole(1 << 36),
            "seed {seed}, {size:?}, half-life {half_life}: {} tells {told}, and has used {}",
            World::name(q),
            exact.to_integer(),
        );
        world.queues[q].used = std::vec![told];
    }
    compared::compare(
        &world,
        &std::format!("seed {seed}, {size:?}, after a restart"),
    );
}

#[test]
fn what_is_told_of_the_past_is_what_was_and_weights_are_adjusted_by_it() {
    for seed in 0..120 {
        let mut random = Rng::with_seed(!seed);
        let size = Size {
            queues: random.usize(1..20),
            depth: random.usize(1..7),
            keys: random.usize(1..4),
        };
        let some = random.u64(1..=YEAR);
        let half_life = [1, 2, 60, 7 * 24 * 60, YEAR, some];
        check(seed, size, half_life[random.usize(0..half_life.len())]);
    }
}

#[test]
fn in_small_trees_with_a_past_every_queue_has_what_the_reference_says() {
    for seed in 0..400 {
        let mut random = Rng::with_seed(seed);
        let size = Size {
            queues: random.usize(1..13),
            depth: random.usize(1..7),
            keys: random.usize(1..4),
        };
        for style in [Style::Contested, Style::Wild, Style::Promised] {
            let mut world = random_world(&mut Rng::with_seed(seed), size, style);
            random_use(&mut random, &mut world);
            compared::compare(&world, &std::format!("seed {seed}, {size:?}, {style:?}"));
        }
    }
}

#[test]
fn in_large_trees_with_a_past_every_queue_has_what_the_reference_says() {
    let sizes = [
        (200, 6, Style::Wild),
        (40, 6, Style::Contested),
        (100, 2, Style::Contested),
    ];
    for seed in 0..2 {
        for (queues, keys, style) in sizes {
            let size = Size {
                queues,
                depth: 6,
                keys,
            };
            let mut random = Rng::with_seed(seed);
            let mut world = random_world(&mut random, size, style);
            random_use(&mut random, &mut world);
            compared::compare(&world, &std::format!("seed {seed}, {size:?}, {style:?}"));
        }
    }
}

/// Judges the reference itself, where the answer is plain.
#[test]
fn powers_of_a_half_are_what_they_are() {
    assert_eq!(halved(0, 7), BigRational::one());
    assert_eq!(halved(21, 7), whole(8).recip());
    let near = |found: &BigRational, expected: &BigRational| {
        let off = (found - expected).abs();
        assert!(off < BigRational::new(1.into(), BigInt::one() << 240));
    };
    let root = halved(1, 2);
    near(&(&root * &root), &whole(2).recip());
    let minute = halved(1, YEAR);
    let day = halved(24 * 60, YEAR);
    near(&num_traits::pow(minute, 24 * 60), &day);
}
