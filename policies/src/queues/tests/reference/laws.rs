//! What holds of fair shares in every world: the laws in docs/fair-shares.md ("What is proved").
//! They are judged of the exact shares of the reference, without tolerance; `compared` judges that
//! the tree's shares are those of the reference.

use super::past::counted_weights;
use super::random::{Size, Style, random_use, random_world};
use super::world::{Entry, World};
use super::{ROOT, fair_shares, whole};
use crate::facts::QueueFacts;
use fastrand::Rng;
use num_rational::BigRational;
use num_traits::{One, Zero};
use std::format;
use std::string::String;
use std::vec::Vec;

/// How many leaves of a world get an equal sibling.
const TWINS: usize = 6;

type Shares = Vec<Vec<BigRational>>;

/// How many small worlds are judged. Most small worlds show a mistake as well as large ones do.
const SMALL: u64 = 200;

/// Queues, keys and style of a large world. The digits of exact fractions, and with them the time,
/// grow with all that leaves compete for.
type Large = (usize, usize, Style);

/// Large worlds in which queues name some of the keys.
const LARGE: [Large; 3] = [
    (200, 6, Style::Wild),
    (60, 2, Style::Contested),
    (24, 6, Style::Contested),
];

/// Large worlds for laws that make every queue name every key.
const DENSE: [Large; 3] = [
    (200, 2, Style::Wild),
    (30, 6, Style::Wild),
    (12, 6, Style::Contested),
];

/// Judges random worlds of both styles: small ones with up to so many keys, and large ones. Past
/// use counts in half of the small worlds and in all large ones. A failure names the seed.
fn for_all(keys: usize, large: [Large; 3], judge: impl Fn(&mut Rng, World) -> Result<(), String>) {
    for seed in 0..SMALL {
        let mut random = Rng::with_seed(seed);
        let size = Size {
            queues: random.usize(1..14),
            depth: random.usize(1..6),
            keys: random.usize(1..=keys),
        };
        let style = if seed % 3 == 0 {
            Style::Wild
        } else {
            Style::Contested
        };
        check(seed, (size, style), &mut random, &judge);
    }
    for (seed, (queues, most_keys, style)) in (SMALL..).zip(large) {
        let size = Size {
            queues,
            depth: 6,
            keys: if keys == 1 { 1 } else { most_keys },
        };
        check(seed, (size, style), &mut Rng::with_seed(seed), &judge);
    }
}

fn check(
    seed: u64,
    (size, style): (Size, Style),
    random: &mut Rng,
    judge: &impl Fn(&mut Rng, World) -> Result<(), String>,
) {
    let mut world = random_world(random, size, style);
    if seed % 2 == 1 || seed >= SMALL {
        random_use(random, &mut world);
    }
    if let Err(problem) = judge(random, world) {
        panic!("seed {seed}, {size:?}, {style:?}: {problem}");
    }
}

/// The part of a leaf's demand that it could run with these amounts of each key.
fn useful(wants: &[u64], has: &[BigRational]) -> BigRational {
    let wanted = wants.iter().zip(has).filter(|(wanted, _)| **wanted > 0);
    let parts = wanted.map(|(wanted, has)| has / whole(*wanted));
    parts.fold(BigRational::one(), BigRational::min)
}

#[test]
fn pareto_efficiency() {
    for_all(3, LARGE, |_, world| {
        let shares = fair_shares(&world);
        for leaf in world.leaves() {
            let stopped = |key: usize| {
                let reached = |q: usize| {
                    let bound = world.bound(q, key);
                    bound.is_some_and(|bound| shares[q][key] == whole(bound))
                };
                world.path(leaf).any(reached)
            };
            // A model that is used up stops only members that can run on no other: each part of
            // which no key is used up must be met.
            let stops = |part: &[u64]| (0..part.len()).any(|key| part[key] > 0 && stopped(key));
            let parts = world.queues[leaf].wants.iter();
            let open: Vec<_> = parts.filter(|part| !stops(part)).collect();
            let wanted = |key: usize| open.iter().map(|part| part[key]).sum();
            if (0..world.keys()).any(|key| shares[leaf][key] < whole(wanted(key))) {
                return Err(format!("{} could have more", World::name(leaf)));
            }
        }
        Ok(())
    });
}

/// What a queue and the queues below it could use of the first key within their limits.
fn usable(world: &World, q: usize) -> u64 {
    let below: u64 = match &world.queues[q] {
        leaf if leaf.children.is_empty() => world.wants_of(q)[0],
        inner => inner
            .children
            .iter()
            .map(|&child| usable(world, child))
            .sum(),
    };
    below.min(world.bound(q, 0).unwrap_or(u64::MAX))
}

#[test]
fn group_guarantee_of_quotas_at_every_level() {
    for_all(1, LARGE, |_, mut world| {
        // Raises quotas and the capacity, bottom up, so that parents can keep the quotas of their
        // children.
        for q in world.indices().rev() {
            let children = world.queues[q].children.clone();
            let promised: u64 = children.iter().map(|&child| world.quota(child, 0)).sum();
            if q == ROOT {
                world.capacity[0] = world.capacity[0].max(promised);
            } else if let Some(entry) = world.queues[q].entries.first_mut() {
                entry.quota = entry.quota.max(promised);
                entry.limit = entry.limit.map(|limit| limit.max(entry.quota));
            } else if promised > 0 {
                world.queues[q].entries.push(Entry {
                    key: 0,
                    quota: promised,
                    limit: None,
                    weight: 1,
                });
            }
        }
        let shares = fair_shares(&world);
        for q in world.indices().skip(1) {
            let promised = world.quota(q, 0).min(usable(&world, q));
            if shares[q][0] < whole(promised) {
                return Err(format!("{} has not got its {promised}", World::name(q)));
            }
        }
        Ok(())
    });
}

/// Quotas are multiples of this, so that exact fractions stay short.
const QUOTA_UNIT: u64 = 60;

/// Large worlds in which all promises are kept; smaller ones, because each quota ends at a moment
/// of its own.
const PROMISED: [Large; 3] = [
    (60, 1, Style::Wild),
    (30, 2, Style::Wild),
    (14, 6, Style::Wild),
];

/// Gives every queue quotas of every key that its parent can keep.
fn promise(random: &mut Rng, world: &mut World) {
    for q in world.indices().rev() {
        let children = world.queues[q].children.clone();
        let below = |key: usize| children.iter().map(|&child| world.quota(child, key)).sum();
        let promised: Vec<u64> = (0..world.keys()).map(below).collect();
        if q == ROOT {
            for (capacity, promised) in world.capacity.iter_mut().zip(promised) {
                *capacity = promised.max(*capacity);
            }
            return;
        }
        let entry = |(key, promised): (usize, u64)| {
            let quota = promised + random.u64(0..4) * QUOTA_UNIT;
            Entry {
                key,
                quota,
                limit: world.limit(q, key).map(|limit| limit.max(quota)),
                weight: world.weight(q, key),
            }
        };
        world.queues[q].entries = promised.into_iter().enumerate().map(entry).collect();
    }
}

#[test]
fn group_guarantee_of_quotas_of_several_resources() {
    for_all(3, PROMISED, |random, mut world| {
        promise(random, &mut world);
        let shares = fair_shares(&world);
        for leaf in world.leaves() {
            let wants = &world.wants_of(leaf);
            let quotas: Vec<_> = (0..world.keys())
                .map(|key| whole(world.quota(leaf, key)))
                .collect();
            let (has, promised) = (useful(wants, &shares[leaf]), useful(wants, &quotas));
            if has < promised {
                let name = World::name(leaf);
                return Err(format!(
                    "{name} could run {promised} in its quotas, and {has} runs"
                ));
            }
        }
        Ok(())
    });
}

#[test]
fn group_guarantee_of_weights_at_every_level() {
    for_all(3, DENSE, |random, mut world| {
        // Weights alone divide everything here.
        for q in world.indices().skip(1) {
            let weight = random.u16(1..10);
            let entry = |key| Entry {
                key,
                quota: 0,
                limit: None,
                weight,
            };
            world.queues[q].entries = (0..world.keys()).map(entry).collect();
            world.queues[q].priority = 0;
        }
        let shares = fair_shares(&world);
        let weights = counted_weights(&world);
        for leaf in world.leaves() {
            let wants = &world.wants_of(leaf);
            if useful(wants, &shares[leaf]).is_one() {
                continue;
            }
            let mut guaranteed = BigRational::one();
            for q in world.path(leaf).filter(|&q| q != ROOT) {
                let siblings = &world.queues[world.queues[q].parent].children;
                // Past use may let a weight count for something else with each key, and the key
                // that decides the queue's level may be another than the key that is used up.
                let all = |key: usize| -> BigRational {
                    siblings.iter().map(|&it| &weights[it][key]).sum()
                };
                let most = (0..world.keys()).map(all).max().expect("a key");
                guaranteed *= weights[q].iter().min().expect("a key") / most;
            }
            let share = |key: usize| &shares[leaf][key] / whole(world.capacity[key].max(1));
            let dominant = (0..world.keys()).map(share).max().expect("a key");
            let gone = (0..world.keys()).any(|key| wants[key] > 0 && world.capacity[key] == 0);
            if dominant < guaranteed && !gone {
                let name = World::name(leaf);
                return Err(format!("{name} has {dominant}, below {guaranteed}"));
            }
        }
        Ok(())
    });
}

#[test]
fn envy_freeness_between_equal_siblings() {
    for_all(3, LARGE, |random, mut world| {
        let mut leaves: Vec<usize> = world.leaves().collect();
        random.shuffle(&mut leaves);
        leaves.truncate(TWINS);
        let twins: Vec<(usize, usize)> = leaves
            .into_iter()
            .map(|one| {
                let equal = world.queues[one].clone();
                let wants: Vec<u64> = (0..world.keys()).map(|_| random.u64(0..900)).collect();
                let other = world.add(equal.parent, equal.entries, &wants);
                world.queues[other].priority = equal.priority;
                world.queues[other].used = equal.used;
                (one, other)
            })
            .collect();
        let shares = fair_shares(&world);
        let both = twins
            .into_iter()
            .flat_map(|(one, other)| [(one, other), (other, one)]);
        // A sibling that wants several models may have got some of one model while there was any,
        // and then of others: so much of both that a sibling equal to it, which can run on one
        // model alone, would rather have that.
        let is_mixed = |q: usize| world.queues[q].wants.len() > 1;
        for (one, other) in both.filter(|(_, other)| !is_mixed(*other)) {
            let wants = &world.wants_of(one);
            if useful(wants, &shares[other]) > useful(wants, &shares[one]) {
                let (one, other) = (World::name(one), World::name(other));
                return Err(format!("{one} would rather have what {other} has"));
            }
        }
        Ok(())
    });
}

#[test]
fn no_gain_from_inflated_demand() {
    for_all(3, LARGE, |random, mut world| {
        let shares = fair_shares(&world);
        let leaves: Vec<usize> = world.leaves().collect();
        let liar = leaves[random.usize(0..leaves.len())];
        let wants = world.wants_of(liar);
        let times = random.u64(2..50);
        for amount in world.queues[liar].wants.iter_mut().flatten() {
            *amount *= times;
        }
        let inflated = fair_shares(&world);
        if useful(&wants, &inflated[liar]) > useful(&wants, &shares[liar]) {
            return Err(format!(
                "{} gains by asking {times} times",
                World::name(liar)
            ));
        }
        Ok(())
    });
}

#[test]
fn independence_of_the_order_in_which_queues_are_told() {
    for_all(3, LARGE, |random, world| {
        let expected = world.shares(&mut world.tree());
        let mut definitions = world.definitions();
        random.shuffle(&mut definitions);
        // Past use of a key that no queue names is forgotten, so the queue that names all keys
        // comes first.
        let names_all = |facts: &QueueFacts| facts.resources.len() == world.keys();
        definitions.sort_by_key(|facts| !names_all(facts));
        let mut tree = world.empty_tree();
        for facts in definitions {
            tree.apply(facts);
            tree.refresh(5);
        }
        world.fill(&mut tree);
        if world.shares(&mut tree) != expected {
            return Err(String::from("shares depend on the order"));
        }
        Ok(())
    });
}

#[test]
fn monotonicity_in_capacity_with_a_single_resource() {
    for_all(1, LARGE, |random, mut world| {
        let before: Shares = fair_shares(&world);
        world.capacity[0] += random.u64(1..200);
        let after: Shares = fair_shares(&world);
        for q in world.indices() {
            if after[q][0] < before[q][0] {
                let (before, after) = (&before[q][0], &after[q][0]);
                return Err(format!("{} falls from {before} to {after}", World::name(q)));
            }
        }
        Ok(())
    });
}

#[test]
fn nobody_has_more_than_wanted_allowed_or_there() {
    for_all(3, LARGE, |_, world| {
        let shares = fair_shares(&world);
        for q in world.indices() {
            let (wants, most) = (world.wants_of(q), world.most(q));
            for key in 0..world.keys() {
                let below = world.queues[q].children.iter();
                let sum = below.fold(BigRational::zero(), |sum, &q| sum + &shares[q][key]);
                let is_sum = world.is_leaf(q) || sum == shares[q][key];
                if shares[q][key] > whole(wants[key].min(most[key])) || !is_sum {
                    return Err(format!("{} has too much", World::name(q)));
                }
            }
        }
        Ok(())
    });
}
