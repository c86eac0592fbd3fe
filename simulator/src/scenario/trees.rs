//! Sub-groups: some gangs become trees. Trees are drawn from a sequence of their own, so that
//! worlds without a tree are not changed by this module.

use super::{Arrival, LEVELS, NONE};
use crate::cluster::Recipe;
use crate::objects::pod;
use crate::random::Random;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    GroupSource, PodGroupFacts, SubGroupFacts, TopologyConstraint, UnixMs,
};
use std::sync::Arc;

/// The depth of a single node, which is below all levels of the Topology.
const NODE: usize = LEVELS.len();
/// In how many percent of the worlds there are trees.
const WORLDS_PERCENT: u64 = 50;

/// Gives sub-groups to some of the PodGroups that arrive.
pub(crate) fn grow(arrivals: &mut [(UnixMs, Arrival)], random: &mut Random) {
    if !random.percent(WORLDS_PERCENT) {
        return;
    }
    for (_, arrival) in arrivals {
        if let Arrival::Gang(Some(description), pods) = arrival
            && let Object::PodGroup(group) = &mut **description
            && group.source == GroupSource::GpuBatch
            && random.percent(60)
        {
            tree(group, random);
            members(group, pods, random);
        }
    }
}

/// Gives a PodGroup one to three levels of sub-groups.
fn tree(group: &mut PodGroupFacts, random: &mut Random) {
    group.minimum = 1;
    let topology = group.topology.as_ref();
    let by_default = topology.filter(|topology| topology.name.is_none());
    let required = by_default.and_then(|topology| depth_of(topology.required.as_deref()?));
    let mut planting = Planting {
        entries: Vec::new(),
        random,
    };
    let depth = planting.random.between(1, 3);
    group.min_sub_groups = planting.below("", depth, required.unwrap_or(0));
    group.sub_groups = planting.entries;
}

/// The depth of a level of the Topology `default`, from 0; `None`: there is no such level.
fn depth_of(level: &str) -> Option<usize> {
    let known = LEVELS.iter().position(|known| *known == level);
    known.or((level == "node").then_some(NODE))
}

struct Planting<'random> {
    entries: Vec<SubGroupFacts>,
    random: &'random mut Random,
}

impl Planting<'_> {
    /// Makes the sub-groups below a group whose domain is of this level. Returns how many of them
    /// the group needs; `None`: all.
    fn below(&mut self, parent: &str, depth: u64, level: usize) -> Option<u32> {
        // So few that every placement can be tried at rest.
        let most = match self.entries.len() {
            0..4 if depth == 1 => 3,
            0..4 => 2,
            _ => 1,
        };
        let count = self.random.between(1, most);
        for letter in ["a", "b", "c"].into_iter().take(to_usize(count)) {
            let name = format!("{parent}{letter}");
            let (topology, level) = self.topology(level);
            let position = self.entries.len();
            self.entries.push(SubGroupFacts {
                topology,
                ..SubGroupFacts::new(&name, parent, None)
            });
            if depth > 1 && self.random.percent(70) {
                self.entries[position].min_sub_groups = self.below(&name, depth - 1, level);
            } else if self.random.percent(70) {
                self.entries[position].min_member = Some(*self.random.pick(&[1, 1, 2, 2, 3]));
            }
        }
        let some = self.random.percent(40);
        some.then(|| self.between(1, count))
    }

    /// Draws the topology request of a sub-group, and returns it with the level of the domain that
    /// the sub-group must be in. Seldom this level is wider than that of the groups above, which is
    /// a contradiction.
    fn topology(&mut self, above: usize) -> (Option<TopologyConstraint>, usize) {
        if self.random.percent(60) {
            return (None, above);
        }
        let widest = if self.random.percent(5) { 0 } else { above };
        let level = to_usize(self.random.between(widest as u64, NODE as u64));
        let name = LEVELS.get(level).copied().unwrap_or("node");
        let mut request = TopologyConstraint::default();
        if self.random.percent(75) {
            request.required = Some(name.into());
            (Some(request), level)
        } else {
            request.preferred = Some(name.into());
            (Some(request), above)
        }
    }

    fn between(&mut self, low: u64, high: u64) -> u32 {
        u32::try_from(self.random.between(low, high)).unwrap_or(1)
    }
}

/// Lets the pods name leaves: first as many pods as each leaf needs, then up to two more for any
/// leaf. In a fifth of the cases one pod is missing. In a tenth of the cases one pod may name no
/// leaf of its PodGroup.
fn members(group: &PodGroupFacts, pods: &mut Vec<Recipe>, random: &mut Random) {
    let is_leaf = |entry: &&SubGroupFacts| {
        let children = group.sub_groups.iter();
        !children.clone().any(|child| child.parent == entry.name)
    };
    let leaves: Vec<&SubGroupFacts> = group.sub_groups.iter().filter(is_leaf).collect();
    let needs = |leaf: &&SubGroupFacts| leaf.min_member.unwrap_or(1) as usize;
    let mut places: Vec<usize> = Vec::new();
    for (index, leaf) in leaves.iter().enumerate() {
        places.extend(std::iter::repeat_n(index, needs(leaf)));
    }
    for _ in 0..random.below(3) {
        places.push(to_usize(random.below(leaves.len() as u64)));
    }
    if random.percent(20) {
        places.remove(to_usize(random.below(places.len() as u64)));
    }
    let sizes: Vec<Option<(u64, u64)>> = leaves
        .iter()
        .map(|_| random.percent(60).then(|| size(random)))
        .collect();
    let usual = pods[0].clone();
    for number in pods.len()..places.len() {
        let mut recipe = usual.clone();
        let name = recipe.pod.name.trim_end_matches('0').to_owned();
        recipe.pod.name = format!("{name}{number}").into();
        pods.push(recipe);
    }
    pods.truncate(places.len().max(1));
    for (recipe, place) in pods.iter_mut().zip(places) {
        recipe.pod.sub_group = Some(leaves[place].name.clone());
        if let Some((cpus, gpus)) = sizes[place] {
            let sized = pod("", NONE, 0, cpus, gpus);
            let shape = Arc::make_mut(&mut recipe.pod.shape);
            shape.requests.clone_from(&sized.shape.requests);
        }
    }
    if random.percent(10) {
        let astray = to_usize(random.below(pods.len() as u64));
        let inner = group.sub_groups.iter().find(|entry| !is_leaf(entry));
        let names = [
            None,
            Some("nobody".into()),
            inner.map(|entry| entry.name.clone()),
        ];
        pods[astray].pod.sub_group = random.pick(&names).clone();
    }
}

/// CPUs and GPUs of a pod. The pods are smaller than those of other gangs, because there are more.
fn size(random: &mut Random) -> (u64, u64) {
    (random.between(1, 3), *random.pick(&[0, 1, 1, 2, 2, 3, 4]))
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Arrival, grow};
    use crate::random::Random;
    use crate::scenario::arrivals;
    use gpu_batch_policies::event::Object;
    use gpu_batch_policies::facts::SubGroupFacts;

    /// How many sub-groups of each sort there are in many worlds.
    #[test]
    fn there_are_sub_groups_of_every_sort() {
        let (mut worlds, mut gangs, mut members) = (0, 0, 0);
        let (mut deep, mut some, mut required, mut preferred, mut astray) = (0, 0, 0, 0, 0);
        for seed in 0..1_000 {
            let (mut arriving, _) = arrivals(&mut Random::new(seed), 0, 1_000);
            grow(&mut arriving, &mut Random::new(!seed));
            let before = gangs;
            for (_, arrival) in arriving {
                let Arrival::Gang(Some(description), pods) = arrival else {
                    continue;
                };
                let Object::PodGroup(group) = *description else {
                    continue;
                };
                let groups = &group.sub_groups;
                if groups.is_empty() {
                    continue;
                }
                gangs += 1;
                members += pods.len();
                let topologies = || groups.iter().filter_map(|group| group.topology.as_ref());
                let of =
                    |which: &dyn Fn(&SubGroupFacts) -> bool| u32::from(groups.iter().any(which));
                deep += of(&|group| group.name.len() == 3);
                some += of(&|group| group.min_sub_groups.is_some());
                required += u32::from(topologies().any(|request| request.required.is_some()));
                preferred += u32::from(topologies().any(|request| request.preferred.is_some()));
                let known = |name: &str| groups.iter().any(|group| *group.name == *name);
                let stray = |name: Option<&str>| !name.is_some_and(known);
                astray += u32::from(pods.iter().any(|it| stray(it.pod.sub_group.as_deref())));
            }
            worlds += u32::from(gangs > before);
        }
        assert!(
            worlds > 400 && gangs > 1_500,
            "{worlds} worlds, {gangs} gangs"
        );
        for (sort, count) in [
            ("three levels", deep),
            ("some children are enough", some),
            ("a required domain", required),
            ("a preferred domain", preferred),
            ("a member astray", astray),
        ] {
            assert!(count > 100, "{sort}: {count}");
        }
        let average = members / gangs;
        assert!((3..8).contains(&average), "{average} members on average");
    }
}
