//! What the cheapest choice costs, held against all choices.

use super::{AllCosts, Changed};
use crate::plan::victims::cost::{Cost, Loss};
use crate::plan::victims::node_costs::{NodeCosts, Step};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;
use smallvec::smallvec;

/// So large that no table is made.
const MANY: u64 = 50_000;

fn cost(gangs: u64, gpu_seconds: u64) -> Cost {
    let mut cost = Cost::new(
        1,
        None,
        Loss {
            gpu_seconds,
            ..Loss::default()
        },
    );
    for _ in 0..gangs {
        cost.add(&Cost::new(1, Some((0, true)), Loss::default()));
    }
    cost
}

/// The costs of a node with units that have room for so many pods each, and cost so much.
/// `first`: the number of the first unit.
fn node(free: u64, units: &[(u64, u64, u64)], scale: u64, first: usize) -> NodeCosts {
    let zero = cost(0, 0);
    let mut steps = Vec::from([Step {
        fits: free * scale,
        cost: zero.clone(),
        units: smallvec![],
    }]);
    for (index, (room, gangs, seconds)) in units.iter().enumerate() {
        let last = &steps[steps.len() - 1];
        let mut dearer = last.cost.clone();
        dearer.add(&cost(*gangs, *seconds));
        let mut with = last.units.clone();
        with.push(first + index);
        let step = Step {
            fits: last.fits + room * scale,
            cost: dearer,
            units: with,
        };
        steps.push(step);
    }
    NodeCosts {
        steps,
        is_exact: true,
    }
}

/// What the cheapest of all choices costs.
fn least_of_all(nodes: &[NodeCosts], count: u64, base: &Cost) -> Option<Cost> {
    let Some((node, rest)) = nodes.split_first() else {
        return (count == 0).then(|| base.clone());
    };
    let choices = node.steps.iter().filter_map(|step| {
        let mut with = base.clone();
        with.add(&step.cost);
        least_of_all(rest, count.saturating_sub(step.fits), &with)
    });
    choices.min()
}

/// A node as it is drawn: for how many pods it has room, and its units, each with how many it
/// frees room for, and what its leaving costs.
type Drawn = (u64, Vec<(u64, u64, u64)>);

fn drawn() -> impl Strategy<Value = Drawn> {
    let unit = (1..4u64, 0..2u64, 1..9u64);
    (0..3u64, prop::collection::vec(unit, 0..4))
}

fn nodes(world: &[Drawn], scale: u64) -> Vec<NodeCosts> {
    let nodes = world.iter().enumerate();
    nodes
        .map(|(index, (free, units))| node(*free, units, scale, 10 * index))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// With a table the cost is that of the cheapest choice, without one it is no more; the units
    /// make enough room.
    #[test]
    fn no_choice_costs_less(
        before in prop::collection::vec(drawn(), 1..5),
        changes in prop::collection::btree_map(0..4usize, drawn(), 0..4),
        count in 0..16u64,
        has_table in any::<bool>(),
    ) {
        let scale = if has_table { 1 } else { MANY };
        let count = count * scale;
        let mut after = before.clone();
        for (index, node) in changes.iter().filter(|(index, _)| **index < before.len()) {
            after[*index] = node.clone();
        }
        let all = AllCosts::new(nodes(&before, scale), count);
        let now = nodes(&after, scale);
        let base = cost(1, 5);
        let least = least_of_all(&now, count, &base);
        let changed: Changed = nodes(&after, scale)
            .into_iter()
            .enumerate()
            .filter(|(index, _)| changes.contains_key(index))
            .collect();
        let mut work = 0;
        let found = all.cheapest(&changed, &base, &mut work);
        prop_assert_eq!(found.is_some(), least.is_some());
        let (Some(found), Some(least)) = (found, least) else {
            return Ok(());
        };
        if has_table {
            prop_assert_eq!(&found.cost, &least);
        }
        prop_assert!(found.cost <= least);
        let (mut fits, mut costs) = (0, base.clone());
        for node in &now {
            let taken = |step: &&Step| step.units.iter().all(|unit| found.units.contains(unit));
            let step = node.steps.iter().rfind(taken);
            let step = step.expect("nobody leaves in the first step");
            fits += step.fits;
            costs.add(&step.cost);
        }
        prop_assert!(fits >= count);
        prop_assert!(costs >= least);
    }
}

/// A branch has fewer steps than the first one where a unit is decided: what is a table for the one
/// need not be a table for the other.
#[test]
fn a_branch_with_fewer_steps_still_finds_the_cheapest_choice() {
    let count = 10_000;
    let drawn = [(0, vec![(1, 1, 1), (1, 1, 1)]), (0, vec![(1, 1, 1)])];
    let all = AllCosts::new(nodes(&drawn, count), count);
    let changed = Changed::from([(0, node(0, &[], count, 0))]);
    let found = all.cheapest(&changed, &cost(0, 0), &mut 0).unwrap();
    assert_eq!(found.units, [10]);
}
