//! The cells of one node: what each has, what is taken of it, and what one more pod would get.

use super::places;
use crate::facts::{
    AlignedContainer, AlignmentPolicy, AlignmentScope, Amount, ContainerRole, NumaFacts, PodShape,
    quantity, saturated,
};
use crate::filter::Filter;
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec,
    vec::Vec,
};

/// What a pod takes of one resource of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellShare {
    /// The place in the amounts of the cells.
    at: usize,
    amount: Amount,
}

/// The cells of a node whose kubelet rejects pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cells {
    policy: AlignmentPolicy,
    scope: AlignmentScope,
    /// What any cell lists, sorted.
    resources: Vec<Box<str>>,
    /// How many cells there are. In the amounts, those of the first cell come first.
    count: usize,
    capacity: Vec<Amount>,
    allocatable: Vec<Amount>,
    /// How much of each resource is in use by no pod that is known.
    pub(super) unexplained: Vec<u128>,
    /// How much of each resource is in use, by known pods and others.
    used: Vec<u128>,
}

/// A set of cells, a bit each.
type Set = u32;

/// What one container, or a whole pod, asks of the listed resources.
#[derive(Debug)]
pub(super) struct Need {
    role: ContainerRole,
    /// By the number of the resource; none zero.
    pub(super) amounts: BTreeMap<usize, Amount>,
}

/// What earlier init containers had of a resource, which later containers get again.
#[derive(Debug, Clone, Copy, Default)]
struct Reusable {
    amount: Amount,
    cells: Set,
}

impl Cells {
    /// The cells as an object has them, on which no pod is known.
    pub(super) fn new(facts: &NumaFacts) -> Self {
        let listed = facts.cells.iter().flat_map(|cell| &cell.resources);
        // Where no CPU is given out to containers, exporters may list all of them as reserved.
        let names: BTreeSet<Box<str>> = listed
            .filter(|resource| resource.allocatable > 0)
            .map(|resource| resource.name.clone())
            .collect();
        let resources: Vec<Box<str>> = names.into_iter().collect();
        let size = resources.len() * facts.cells.len();
        let mut cells = Self {
            policy: facts.policy,
            scope: facts.scope,
            count: facts.cells.len(),
            capacity: vec![0; size],
            allocatable: vec![0; size],
            unexplained: vec![0; size],
            used: Vec::new(),
            resources,
        };
        for (cell, facts) in facts.cells.iter().enumerate() {
            for resource in &facts.resources {
                let Ok(number) = cells.resources.binary_search(&resource.name) else {
                    continue;
                };
                let at = cells.at(cell, number);
                // The memory manager counts what pods may have, the others all there is.
                cells.capacity[at] = match is_memory(&resource.name) {
                    true => resource.allocatable,
                    false => resource.capacity,
                };
                cells.allocatable[at] = resource.allocatable;
                let in_use = resource.allocatable.saturating_sub(resource.available);
                cells.unexplained[at] = in_use.into();
            }
        }
        cells.used.clone_from(&cells.unexplained);
        cells
    }

    pub(super) fn at(&self, cell: usize, resource: usize) -> usize {
        cell * self.resources.len() + resource
    }

    pub(super) fn numbers(&self) -> core::ops::Range<usize> {
        0..self.count
    }

    /// The free amounts: of empty cells, or as they are.
    fn free(&self, empty: bool) -> Vec<Amount> {
        let free = |(has, used): (&Amount, &u128)| match empty {
            true => *has,
            false => has.saturating_sub(saturated(*used)),
        };
        self.allocatable.iter().zip(&self.used).map(free).collect()
    }

    /// How many more pods of a shape, `most` at most, the kubelet would admit one after the other.
    /// `empty`: if no pod were on the node.
    pub(crate) fn multiplicity(&self, shape: &PodShape, most: Amount, empty: bool) -> Amount {
        let needs = self.needs(shape);
        if needs.is_empty() {
            return most;
        }
        let mut free = self.free(empty);
        let mut fits = 0;
        while fits < most && self.admit(&mut free, &needs).is_some() {
            fits += 1;
        }
        fits
    }

    /// Whether the kubelet could admit a pod of a shape, whatever else is on the node: whether each
    /// container could get what it asks for of an empty node. What the containers get together is
    /// judged by what is free, because the kubelet may admit a pod beside others that it would
    /// reject on the empty node: where others have the first cells, it begins with better ones.
    ///
    /// # Errors
    /// The resources that too few cells could give together.
    pub(crate) fn verdict(&self, shape: &PodShape) -> Result<(), Filter> {
        let free = self.free(true);
        let reusable = vec![Reusable::default(); self.resources.len()];
        let needs = self.needs(shape);
        let mut chosen = needs.iter().map(|need| self.choose(&free, need, &reusable));
        match chosen.all(|set| set.is_some()) {
            true => Ok(()),
            false => Err(self.refusal(shape, "")),
        }
    }

    /// That too little of what a shape asks for is free together.
    pub(crate) fn lacking(&self, shape: &PodShape) -> Filter {
        self.refusal(shape, "free ")
    }

    fn refusal(&self, shape: &PodShape, free: &str) -> Filter {
        let needs = self.needs(shape);
        let named = |(number, amount): (&usize, &Amount)| {
            let name = &self.resources[*number];
            format!("{} {name}", quantity(name, *amount))
        };
        let asked: Vec<String> = match needs.as_slice() {
            [only] => only.amounts.iter().map(named).collect(),
            several => {
                let numbers = several.iter().flat_map(|need| need.amounts.keys());
                let numbers: BTreeSet<&usize> = numbers.collect();
                let names = numbers.into_iter().map(|it| &*self.resources[*it]);
                vec![format!(
                    "the {} of each container",
                    names.collect::<Vec<_>>().join(" and ")
                )]
            }
        };
        let asked = asked.join(" and ");
        Filter::Alignment(format!("{asked} {free}{}", places(self.policy)).into())
    }

    /// What a shape asks of the listed resources: each container by itself, or all together.
    pub(super) fn needs(&self, shape: &PodShape) -> Vec<Need> {
        let needs = shape.aligned.iter().map(|container| self.need(container));
        let needs = needs.filter(|need| !need.amounts.is_empty());
        match self.scope {
            AlignmentScope::Container => needs.collect(),
            AlignmentScope::Pod => {
                let whole = of_whole_pod(&needs.collect::<Vec<_>>());
                let is_aligned = !whole.amounts.is_empty();
                is_aligned.then_some(whole).into_iter().collect()
            }
        }
    }

    /// What a pod asks for in all.
    pub(super) fn needs_in_all(&self, shape: &PodShape) -> Need {
        let needs = shape.aligned.iter().map(|container| self.need(container));
        of_whole_pod(&needs.collect::<Vec<_>>())
    }

    fn need(&self, container: &AlignedContainer) -> Need {
        let amounts = container.amounts.iter().filter_map(|(name, amount)| {
            let number = self.resources.binary_search(name).ok()?;
            Some((number, *amount))
        });
        Need {
            role: container.role,
            amounts: amounts.collect(),
        }
    }

    /// Takes from the free amounts what the kubelet would give to a pod; `None`: it would reject
    /// the pod, and what is left of the free amounts means nothing.
    fn admit(&self, free: &mut [Amount], needs: &[Need]) -> Option<Vec<CellShare>> {
        let mut shares = Vec::new();
        let mut reusable = vec![Reusable::default(); self.resources.len()];
        for need in needs {
            let chosen = self.choose(free, need, &reusable)?;
            for (number, amount) in &need.amounts {
                let reusable = &mut reusable[*number];
                let again = reusable.amount.min(*amount);
                let fresh = amount - again;
                for cell in self.numbers().filter(|cell| chosen & (1 << cell) != 0) {
                    let at = self.at(cell, *number);
                    // Of several cells it is not known which gives how much.
                    let amount = free[at].min(fresh);
                    free[at] -= amount;
                    shares.push(CellShare { at, amount });
                }
                if need.role == ContainerRole::Init {
                    reusable.amount = reusable.amount.saturating_add(fresh);
                    reusable.cells |= chosen;
                } else {
                    reusable.amount -= again;
                }
                if reusable.amount == 0 {
                    reusable.cells = 0;
                }
            }
        }
        Some(shares)
    }

    /// The set of cells that the kubelet takes for a container, or for a pod; `None`: there is
    /// none, and the pod is rejected.
    fn choose(&self, free: &[Amount], need: &Need, reusable: &[Reusable]) -> Option<Set> {
        let fewest = |(number, amount): (&usize, &Amount)| self.fewest(*number, *amount);
        let mut sizes = need.amounts.iter().map(fewest);
        let size = sizes.next()?;
        // tests plant bugs here: cells-of-a-container
        let is_possible = size == 1 || self.policy == AlignmentPolicy::Restricted;
        if !is_possible || !sizes.all(|other| other == size) {
            return None;
        }
        let sets = 1..(1 << self.count);
        let mut sets = sets.filter(|set: &Set| set.count_ones() == size);
        sets.find(|set| {
            let mut amounts = need.amounts.iter();
            amounts.all(|(number, amount)| self.holds(free, *set, *number, *amount, reusable))
        })
    }

    /// How many cells could hold an amount if nothing of them were in use; all that have any of the
    /// resource, if not even these could.
    fn fewest(&self, resource: usize, amount: Amount) -> u32 {
        let has = self
            .numbers()
            .map(|it| self.capacity[self.at(it, resource)]);
        let mut has: Vec<Amount> = has.filter(|has| *has > 0).collect();
        has.sort_unstable_by_key(|has| core::cmp::Reverse(*has));
        let mut sum = 0u128;
        let mut cells = 0;
        for has in has {
            cells += 1;
            sum += u128::from(has);
            if sum >= amount.into() {
                break;
            }
        }
        cells
    }

    /// Whether a set of cells has as much of a resource free, with what init containers had there.
    fn holds(
        &self,
        free: &[Amount],
        set: Set,
        resource: usize,
        amount: Amount,
        reusable: &[Reusable],
    ) -> bool {
        let Reusable {
            amount: again,
            cells,
        } = reusable[resource];
        let within = self.numbers().filter(|cell| set & (1 << cell) != 0);
        let mut sum = u128::from(again);
        for cell in within {
            let at = self.at(cell, resource);
            if self.capacity[at] == 0 {
                return false;
            }
            sum += u128::from(free[at]);
        }
        cells & !set == 0 && sum >= amount.into()
    }

    /// What a pod that is not in the object yet would take. A pod that the kubelet should have
    /// rejected, and that is on the node all the same, may have anything.
    pub(crate) fn foreseen(&self, shape: &PodShape) -> Box<[CellShare]> {
        let needs = self.needs(shape);
        let mut free = self.free(false);
        if let Some(shares) = self.admit(&mut free, &needs) {
            return shares.into();
        }
        let free = self.free(false);
        let in_all = self.needs_in_all(shape);
        let shares = self.numbers().flat_map(|cell| {
            let amounts = in_all.amounts.iter();
            let free = &free;
            amounts.map(move |(number, amount)| {
                let at = self.at(cell, *number);
                let amount = (*amount).min(free[at]);
                CellShare { at, amount }
            })
        });
        shares.collect()
    }

    /// Counts what a pod takes.
    pub(crate) fn take(&mut self, shares: &[CellShare]) {
        for CellShare { at, amount } in shares {
            if let Some(used) = self.used.get_mut(*at) {
                *used += u128::from(*amount);
            }
        }
    }

    /// The exact reverse of [`Cells::take`].
    pub(crate) fn give_back(&mut self, shares: &[CellShare]) {
        for CellShare { at, amount } in shares {
            if let Some(used) = self.used.get_mut(*at) {
                *used = used.saturating_sub(u128::from(*amount));
            }
        }
    }

    /// Moves amounts from what nobody explains to a pod, which has yet to take them.
    pub(super) fn explain(&mut self, amounts: &[(usize, Amount)]) -> Box<[CellShare]> {
        let shares = amounts.iter().map(|(at, amount)| {
            let explained = u128::from(*amount);
            self.unexplained[*at] = self.unexplained[*at].saturating_sub(explained);
            self.used[*at] = self.used[*at].saturating_sub(explained);
            CellShare {
                at: *at,
                amount: *amount,
            }
        });
        shares.collect()
    }

    /// Forgets all pods: what is used is what nobody explains.
    #[must_use]
    pub(crate) fn without_pods(&self) -> Self {
        let mut cells = self.clone();
        cells.used.clone_from(&cells.unexplained);
        cells
    }

    /// The free amounts, by which two states of a node are compared.
    pub(crate) fn free_now(&self) -> Vec<Amount> {
        self.free(false)
    }
}

/// What a pod asks for as a whole: the most that is in use at once.
fn of_whole_pod(needs: &[Need]) -> Need {
    let mut running: BTreeMap<usize, Amount> = BTreeMap::new();
    let mut sidecars: BTreeMap<usize, Amount> = BTreeMap::new();
    let mut peak: BTreeMap<usize, Amount> = BTreeMap::new();
    let add = |sums: &mut BTreeMap<usize, Amount>, (number, amount): (&usize, &Amount)| {
        let sum = sums.entry(*number).or_default();
        *sum = sum.saturating_add(*amount);
        *sum
    };
    for need in needs {
        for one in &need.amounts {
            match need.role {
                ContainerRole::Main => drop(add(&mut running, one)),
                ContainerRole::Sidecar => {
                    add(&mut running, one);
                    add(&mut sidecars, one);
                }
                ContainerRole::Init => {
                    let before = sidecars.get(one.0).copied().unwrap_or(0);
                    let now = before.saturating_add(*one.1);
                    let peak = peak.entry(*one.0).or_default();
                    *peak = now.max(*peak);
                }
            }
        }
    }
    for (number, peak) in peak {
        let sum = running.entry(number).or_default();
        *sum = peak.max(*sum);
    }
    Need {
        role: ContainerRole::Main,
        amounts: running,
    }
}

fn is_memory(name: &str) -> bool {
    name == "memory" || name.starts_with("hugepages-")
}
