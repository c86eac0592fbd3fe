//! Which members are taken if not all are needed.

use super::Group;
use super::request::{Request, merged};
use crate::ids::{ClassId, PodId};
use crate::state::ClusterState;
use alloc::{collections::BTreeSet, vec, vec::Vec};
use smallvec::SmallVec;

/// How many choices are tried at most. Six members of six shapes, three of them needed, have 20.
pub(crate) const CHOICES_MAX: usize = 256;

/// One way to meet the needs of a request: leaves by index, each with the pods that are taken.
pub(crate) type Choice = Vec<(usize, Vec<Group>)>;

impl Request {
    /// The choices, [`CHOICES_MAX`] at most, and whether these are all. Choices of the first
    /// children come first; in sub-groups those of the largest pods, in a plain gang those with the
    /// fewest GPUs.
    pub(crate) fn choices(&self, state: &ClusterState) -> (Vec<Choice>, bool) {
        let mut complete = true;
        let choices = self.choices_of(state, 0, &mut complete);
        (choices, complete)
    }

    fn choices_of(&self, state: &ClusterState, index: usize, complete: &mut bool) -> Vec<Choice> {
        let group = &self.groups[index];
        if group.children.is_empty() {
            return self.choices_of_leaf(state, index, complete);
        }
        let mut choices: Vec<Choice> = Vec::new();
        for chosen in combinations(group.children.len(), group.need) {
            let mut products: Vec<Choice> = Vec::from([Choice::new()]);
            for child in chosen {
                let below = self.choices_of(state, group.children[child], complete);
                products = products
                    .iter()
                    .flat_map(|product| {
                        below.iter().map(|choice| {
                            let mut both = product.clone();
                            both.extend(choice.iter().cloned());
                            both
                        })
                    })
                    .take(CHOICES_MAX + 1)
                    .collect();
            }
            choices.extend(products);
            if choices.len() > CHOICES_MAX {
                break;
            }
        }
        if choices.len() > CHOICES_MAX {
            choices.truncate(CHOICES_MAX);
            *complete = false;
        }
        choices
    }

    /// In a plain gang, classes with the fewest GPUs come first; of equal ones, the class whose
    /// first member comes first in the gang: choices of a plain gang are tried when its queue has
    /// no room for the first members.
    fn choices_of_leaf(
        &self,
        state: &ClusterState,
        index: usize,
        complete: &mut bool,
    ) -> Vec<Choice> {
        let group = &self.groups[index];
        let mut order: Vec<usize> = (0..group.pods.len()).collect();
        if self.is_plain() {
            let gpus = |class: &usize| state.classes[group.pods[*class].class].gpus;
            let first = |class: &usize| &state.pods[group.pods[*class].pods[0]];
            order.sort_by(|one, other| {
                let by_gpus = gpus(one).cmp(&gpus(other));
                by_gpus.then_with(|| first(one).order_in_gang(first(other)))
            });
        }
        let sizes: Vec<usize> = order.iter().map(|i| group.pods[*i].pods.len()).collect();
        let (ways, all) = selections(&sizes, group.need);
        *complete &= all;
        let choice = |taken: Vec<usize>| -> Choice {
            let mut taken: Vec<(usize, usize)> = order.iter().copied().zip(taken).collect();
            taken.sort_unstable();
            let taken = taken.into_iter().filter(|(_, taken)| *taken > 0);
            let taken = taken.map(|(class, taken)| Group {
                class: group.pods[class].class,
                pods: group.pods[class].pods[..taken].to_vec(),
            });
            Vec::from([(index, taken.collect())])
        };
        ways.into_iter().map(choice).collect()
    }

    /// The request to place exactly the pods of a choice.
    pub(crate) fn chosen(&self, choice: &Choice) -> Self {
        let mut request = self.clone();
        let mut keep: BTreeSet<usize> = BTreeSet::from([0]);
        for group in &mut request.groups {
            group.pods.clear();
        }
        for (leaf, pods) in choice {
            request.groups[*leaf].pods.clone_from(pods);
            request.groups[*leaf].need = pods.iter().map(|group| group.pods.len()).sum();
            let mut next = *leaf;
            while keep.insert(next) {
                next = request.groups[next].parent;
            }
        }
        for group in &mut request.groups {
            group.children.retain(|child| keep.contains(child));
            if !group.children.is_empty() {
                group.need = group.children.len();
            }
        }
        request
    }

    /// The request to place exactly the pods of a choice, as a plain gang.
    pub(crate) fn flat_choice(&self, choice: &Choice) -> Self {
        let pods = merged(choice.iter().flat_map(|(_, pods)| pods));
        self.flat(pods, pods_of(choice).count())
    }
}

/// How many pods of each class there are, sorted. Choices with equal sizes need equal room.
pub(super) fn sizes(groups: &[Group]) -> Vec<(ClassId, usize)> {
    let mut sizes: Vec<(ClassId, usize)> = groups
        .iter()
        .map(|group| (group.class, group.pods.len()))
        .collect();
    sizes.sort_unstable();
    sizes
}

/// All pods of a choice.
pub(crate) fn pods_of(choice: &Choice) -> impl Iterator<Item = PodId> {
    let groups = choice.iter().flat_map(|(_, groups)| groups);
    groups.flat_map(|group| group.pods.iter().copied())
}

/// All ways to take `take` of `of` things in order, the first things first; one more than
/// [`CHOICES_MAX`] at most.
pub(super) fn combinations(of: usize, take: usize) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    if take > of {
        return found;
    }
    let mut taken: Vec<usize> = (0..take).collect();
    loop {
        found.push(taken.clone());
        if found.len() > CHOICES_MAX {
            return found;
        }
        // The last thing that can move on by one does, and all behind it follow directly.
        let Some(position) = (0..take).rev().find(|p| taken[*p] < of - take + *p) else {
            return found;
        };
        taken[position] += 1;
        for next in position + 1..take {
            taken[next] = taken[next - 1] + 1;
        }
    }
}

/// Two choices of the needed members: one takes the largest classes first, the other the smallest.
/// If all members are needed, there is only one choice.
pub(super) fn two_choices(request: &Request) -> SmallVec<[Vec<Group>; 2]> {
    let (pods, need) = (&request.root().pods, request.root().need);
    let largest = first_of(pods.iter(), need);
    if need == request.members() {
        return SmallVec::from_iter([largest]);
    }
    let mut smallest = first_of(pods.iter().rev(), need);
    smallest.reverse();
    SmallVec::from_iter([largest, smallest])
}

/// The first `pods` pods of the groups.
fn first_of<'a>(groups: impl Iterator<Item = &'a Group>, mut pods: usize) -> Vec<Group> {
    let taken = groups.map(|group| {
        let share = pods.min(group.pods.len());
        pods -= share;
        Group {
            class: group.class,
            pods: group.pods[..share].to_vec(),
        }
    });
    taken.collect()
}

/// All ways to take `need` things out of groups of these sizes, [`CHOICES_MAX`] at most, and
/// whether these are all. Ways that take more from earlier groups come first.
fn selections(sizes: &[usize], need: usize) -> (Vec<Vec<usize>>, bool) {
    let mut found = Vec::new();
    let mut taken = vec![0; sizes.len()];
    let complete = take(sizes, need, 0, &mut taken, &mut found);
    (found, complete)
}

/// Adds to `found` all ways that go on from `taken`; returns whether no way was left out.
fn take(
    sizes: &[usize],
    need: usize,
    from: usize,
    taken: &mut Vec<usize>,
    found: &mut Vec<Vec<usize>>,
) -> bool {
    let left: usize = sizes[from..].iter().sum();
    if need > left {
        return true;
    }
    if found.len() >= CHOICES_MAX {
        return false;
    }
    if need == 0 {
        found.push(taken.clone());
        return true;
    }
    let mut complete = true;
    for count in (0..=sizes[from].min(need)).rev() {
        taken[from] = count;
        complete &= take(sizes, need - count, from + 1, taken, found);
    }
    taken[from] = 0;
    complete
}

#[cfg(test)]
mod tests {
    use super::{CHOICES_MAX, selections};
    use alloc::vec::Vec;

    #[test]
    fn every_choice_is_tried_once_and_those_of_the_first_groups_first() {
        let (all, complete) = selections(&[2, 1, 1], 2);
        assert!(complete);
        assert_eq!(
            all,
            [[2, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]].map(Vec::from)
        );
        assert_eq!(selections(&[1; 6], 3).0.len(), 20);
    }

    #[test]
    fn what_cannot_be_taken_has_no_choice_and_many_choices_are_cut_off() {
        assert_eq!(selections(&[1, 1], 3), (Vec::new(), true));
        let (many, complete) = selections(&[9; 9], 40);
        assert_eq!((many.len(), complete), (CHOICES_MAX, false));
    }
}
