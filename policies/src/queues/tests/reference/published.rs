//! The examples by which hierarchical DRF was published (Bhattacharya et al., SoCC 2013): they show
//! what simpler rules do wrong.

use super::world::{Entry, World};
use super::{ROOT, fair_shares};
use crate::queues::{LineUp, QueueId, QueueTree};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;

/// What there is of each of two resources.
const ALL: u64 = 120;

/// A queue that takes part in the division of both resources.
fn both() -> Vec<Entry> {
    let entry = |key| Entry {
        key,
        quota: 0,
        limit: None,
        weight: 1,
    };
    [0, 1].map(entry).to_vec()
}

/// A tree of groups and their leaves. Each leaf wants so much of both resources in one unit, and
/// units without end. A group of one leaf is replaced by the leaf.
fn hierarchy(groups: &[&[(u64, u64)]]) -> World {
    let mut world = World::new(&[ALL, ALL]);
    let wants = |(a, b): (u64, u64)| [a * 1000, b * 1000];
    for leaves in groups {
        if let [only] = leaves {
            world.add(ROOT, both(), &wants(*only));
            continue;
        }
        let group = world.add(ROOT, both(), &[]);
        for leaf in *leaves {
            world.add(group, both(), &wants(*leaf));
        }
    }
    world
}

/// Serves units in the order of the queues, as long as they fit.
struct Session<'a> {
    world: &'a World,
    tree: QueueTree,
    leaves: Vec<(usize, QueueId)>,
    left: [u64; 2],
    served: Vec<usize>,
}

impl<'a> Session<'a> {
    fn new(world: &'a World) -> Self {
        let tree = world.tree();
        let leaves = world.leaves().map(|q| (q, tree.at(&World::name(q))));
        Self {
            leaves: leaves.collect(),
            world,
            tree,
            left: [ALL, ALL],
            served: Vec::new(),
        }
    }

    fn unit(&self, q: usize) -> [u64; 2] {
        let wants = self.world.wants_of(q);
        [wants[0] / 1000, wants[1] / 1000]
    }

    fn book(&mut self, q: usize, starts: bool) {
        let (unit, id) = (self.unit(q), self.tree.at(&World::name(q)));
        let amounts = [
            (self.world.names[0], unit[0]),
            (self.world.names[1], unit[1]),
        ];
        let amounts: Vec<_> = amounts.into_iter().filter(|(_, it)| *it > 0).collect();
        let demand = self.tree.demand(&amounts);
        for (left, unit) in self.left.iter_mut().zip(unit) {
            *left = if starts { *left - unit } else { *left + unit };
        }
        if starts {
            self.tree.charge(id, &demand, true);
        } else {
            self.tree.release(id, &demand, true);
        }
    }

    fn serve_all_that_fits(&mut self) {
        loop {
            for (q, id) in self.leaves.clone() {
                let unit = self.unit(q);
                let fits = unit[0] <= self.left[0] && unit[1] <= self.left[1];
                let amounts = [
                    (self.world.names[0], unit[0]),
                    (self.world.names[1], unit[1]),
                ];
                let amounts: Vec<_> = amounts.into_iter().filter(|(_, it)| *it > 0).collect();
                let demand = self.tree.demand(&amounts);
                self.tree
                    .set_candidate(LineUp::FIRST, id, fits.then_some(demand));
            }
            let Some(next) = self.tree.next_leaf(LineUp::FIRST) else {
                return;
            };
            let (q, _) = *self
                .leaves
                .iter()
                .find(|(_, id)| *id == next)
                .expect("a leaf");
            self.book(q, true);
            self.served.push(q);
        }
    }

    fn counts(&self) -> Vec<u64> {
        let count = |leaf| self.served.iter().filter(|&&q| q == leaf).count() as u64;
        self.leaves.iter().map(|(q, _)| count(*q)).collect()
    }
}

/// Compares with what is expected: the fair shares of the reference and of the tree, the units
/// served from an empty cluster, and the mean number of units while random ones end all the time.
fn check(what: &str, groups: &[&[(u64, u64)]], expected: &[u64]) {
    let world = hierarchy(groups);
    let shares = fair_shares(&world);
    let of_reference: Vec<String> = world
        .leaves()
        .map(|q| {
            shares[q]
                .iter()
                .max()
                .map_or_else(String::new, ToString::to_string)
        })
        .collect();
    let of_expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    assert_eq!(of_reference, of_expected, "{what}: the reference");

    let found = world.shares(&mut world.tree());
    for (q, expected) in world.leaves().zip(expected) {
        assert_eq!(found[q].iter().max(), Some(expected), "{what}: shares");
    }
    let mut session = Session::new(&world);
    session.serve_all_that_fits();
    let close = |counts: &[u64]| {
        let pairs = counts.iter().zip(expected);
        pairs
            .map(|(count, expected)| count.abs_diff(*expected))
            .max()
            <= Some(3)
    };
    assert!(
        close(&session.counts()),
        "{what}: from empty {:?}",
        session.counts()
    );

    // A leaf that has run ahead once must not keep that, and no leaf is starved by units that end.
    let mut random = Rng::with_seed(7);
    let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
    let rounds = 4_000;
    for _ in 0..rounds {
        let ends = random.usize(0..session.served.len());
        let q = session.served.swap_remove(ends);
        session.book(q, false);
        session.serve_all_that_fits();
        for (leaf, count) in session.counts().into_iter().enumerate() {
            *sums.entry(leaf).or_default() += count;
        }
    }
    let means: Vec<u64> = sums
        .values()
        .map(|sum| (sum + rounds / 2) / rounds)
        .collect();
    assert!(close(&means), "{what}: over time {means:?}");
}

#[test]
fn a_sibling_of_another_shape_starves_nobody() {
    // The naive rule (dominant share of the plain sum) holds all of the second resource against the
    // group, and gives the first resource to the group's neighbour for ever.
    check("naive", &[&[(1, 0)], &[(1, 0), (0, 1)]], &[60, 60, 120]);
}

#[test]
fn groups_have_their_share_whatever_their_shapes_are() {
    // Collapsed to one level with weights 1/2, 1/4 and 1/4, the first leaf would get two thirds.
    check("collapsed", &[&[(1, 1)], &[(1, 0), (0, 1)]], &[60, 60, 60]);
}

#[test]
fn a_blocked_sibling_does_not_hold_its_group_at_its_own_share() {
    // The leaves that want the first resource are blocked at a third of it. If their groups were
    // rescaled to that third, they would stand still or be served without end.
    check(
        "blocked",
        &[&[(1, 0)], &[(1, 0), (0, 1)], &[(1, 0), (0, 1)]],
        &[40, 40, 60, 40, 60],
    );
    check(
        "blocked, and another group wants both",
        &[&[(1, 0)], &[(1, 0), (0, 1)], &[(1, 1)]],
        &[40, 40, 80, 40],
    );
}
