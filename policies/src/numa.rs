//! NUMA: whether the kubelet of a node would align a pod, and which cells the pod would get.
//!
//! The rules are those of the kubelet's Topology Manager (v1.36) with the hints that its CPU,
//! memory and device managers give. A resource prefers the fewest cells that could hold what is
//! asked if all were empty. A pod is admitted if there is one set of cells that every resource
//! prefers and has enough free in; with the policy `single-numa-node`, one cell. Of several sets
//! the kubelet takes that with the lowest numbers. A resource that no cell lists is not aligned.
//!
//! What a pod takes of a single cell is exact. Of a set of several the kubelet decides how much
//! comes from each; all that could be taken of each counts as taken. Options of the policies, such
//! as to prefer close cells, or to give out whole cores, are not in the objects and are not known.

mod cells;
mod explained;
#[cfg(test)]
mod tests;

pub(crate) use cells::{CellShare, Cells};

use crate::facts::{AlignmentPolicy, Amount, NodeFacts, NumaFacts, Problem, amount, quantity};
use alloc::{collections::BTreeMap, format};

/// Whether what an object says of the cells cannot be true of the node that has its name: the
/// cells have more of a resource than the node.
pub(crate) fn contradiction(facts: &NumaFacts, node: &NodeFacts) -> Option<Problem> {
    let mut sums: BTreeMap<&str, u128> = BTreeMap::new();
    for resource in facts.cells.iter().flat_map(|cell| &cell.resources) {
        *sums.entry(&resource.name).or_default() += u128::from(resource.allocatable);
    }
    let has = |name: &str| {
        let of_all = amount(&node.allocatable, name);
        // The kubelet keeps parts of these for the system, of which exporters may know less.
        match name.contains('/') {
            true => of_all,
            false => of_all.max(amount(&node.capacity, name)),
        }
    };
    let (name, sum) = sums
        .into_iter()
        .find(|(name, sum)| *sum > has(name).into())?;
    let sum = quantity(name, Amount::try_from(sum).unwrap_or(Amount::MAX));
    let has = quantity(name, has(name));
    Some(Problem {
        field: "zones".into(),
        message: format!(
            "the zones have {sum} {name} and the node has {has}; the zones of the node are ignored"
        )
        .into(),
    })
}

/// The cells of a node as the kubelet's Topology Manager sees them; `None`: it rejects no pods, or
/// it is not known what it does.
pub(crate) fn read(facts: &NumaFacts, node: &NodeFacts) -> Option<Cells> {
    let is_known = facts.problems.is_empty() && contradiction(facts, node).is_none();
    let rejects = facts.policy.rejects() && !facts.cells.is_empty();
    (is_known && rejects).then(|| Cells::new(facts))
}

/// How a sentence says in how many cells something must be.
pub(crate) fn places(policy: AlignmentPolicy) -> &'static str {
    match policy {
        AlignmentPolicy::Restricted => "in as few NUMA nodes as can have it",
        AlignmentPolicy::None | AlignmentPolicy::BestEffort | AlignmentPolicy::SingleCell => {
            "in a single NUMA node"
        }
    }
}
