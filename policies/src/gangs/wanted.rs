//! Which members a gang with sub-groups needs next, and how their topologies nest.
//!
//! Members are counted by leaf ([`super::counts`]), and what is lacking becomes a [`Request`],
//! which is placed in one Txn. Of a gang that has its minimum, one more pod or one more sub-group
//! as a whole is placed at a time.

use crate::facts::UnixMs;
use crate::gangs::counts::{by_leaf, count, has_place};
use crate::gangs::progress::Progress;
use crate::gangs::{demand, near, places, request, sub_groups};
use crate::ids::ById;
use crate::ids::{GangId, PodId};
use crate::place::{Request, RequestGroup, pods_of};
use crate::queues::{Demand, QueueId};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::gang::GroupTree;
use alloc::vec;
use alloc::vec::Vec;

/// One way to choose members that are placed next: by group, how many of its pods or children, and
/// which children.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    need: Vec<usize>,
    children: Vec<Vec<usize>>,
}

impl Wanted {
    fn nothing(groups: usize) -> Self {
        Self {
            need: vec![0; groups],
            children: vec![Vec::new(); groups],
        }
    }

    /// Adds what a group lacks. Its children that can be completed come in the order of what they
    /// lack, the least first.
    fn fill(&mut self, tree: &GroupTree, needs: &[u32], able: &[u32], index: usize) {
        let group = tree.group(index);
        if group.is_leaf() {
            self.need[index] = needs[index] as usize;
            return;
        }
        let children = group.children.iter().copied();
        let (complete, lacking): (Vec<usize>, Vec<usize>) =
            children.partition(|child| needs[*child] == 0);
        let mut open: Vec<usize> = lacking.into_iter().filter(|c| able[*c] == 0).collect();
        open.sort_by_key(|child| needs[*child]);
        self.need[index] = (group.minimum as usize).saturating_sub(complete.len());
        for child in &open {
            self.fill(tree, needs, able, *child);
        }
        self.children[index] = open;
    }

    /// Of every group above, only the child that leads to this group is wanted.
    fn only(mut self, tree: &GroupTree, mut index: usize) -> Self {
        while index != 0 {
            let parent = tree.group(index).parent;
            self.need[parent] = 1;
            self.children[parent] = Vec::from([index]);
            index = parent;
        }
        self
    }
}

/// The demand of the pods that the gang wants to place next. The order of queues uses the demand at
/// [`UnixMs::MAX`], which does not change while the gang waits.
pub(crate) fn demand_of(
    state: &ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    id: GangId,
    queue: QueueId,
    now_ms: UnixMs,
) -> Demand {
    if state.gangs[id].tree().is_some() {
        let pods = next_of_sub_groups(state, settings, progress, id, queue, now_ms);
        return demand::demand_of_pods(state, pods.iter());
    }
    let gang = &state.gangs[id];
    // Most gangs have one member.
    if let [only] = gang.members.as_slice() {
        let may_be_placed = state.may_be_placed(gang, &state.pods[*only], now_ms);
        return demand::demand_of_pods(state, Some(only).filter(|_| may_be_placed).into_iter());
    }
    let need = count(state, id, now_ms).needed.max(1);
    let pods = demand::first_waiting(state, id, now_ms, need as usize);
    demand::demand_of_pods(state, pods.iter().take(need as usize))
}

/// The ways to choose members that are placed next: what the minimum lacks; of a gang that has its
/// minimum, the rest of a sub-group that was cut off, else one more pod or one more whole
/// sub-group, each as an alternative. `placed`, `waiting`: how many members of each leaf have a
/// place, and may be placed. `unfinished`: the groups that were cut off.
fn wanted(tree: &GroupTree, placed: &[u32], waiting: &[u32], unfinished: &[usize]) -> Vec<Wanted> {
    let needs = tree.needs(placed);
    let all: Vec<u32> = placed.iter().zip(waiting).map(|(a, b)| a + b).collect();
    let able = tree.needs(&all);
    let nothing = || Wanted::nothing(tree.len());
    if needs[0] > 0 {
        let mut wanted = nothing();
        wanted.fill(tree, &needs, &able, 0);
        return Vec::from([wanted]);
    }
    let rest = |child: usize| {
        let mut more = nothing();
        more.fill(tree, &needs, &able, child);
        more.only(tree, child)
    };
    if !unfinished.is_empty() {
        let able = unfinished.iter().filter(|group| able[**group] == 0);
        return able.map(|group| rest(*group)).collect();
    }
    let mut surplus = Vec::new();
    let mut open = Vec::from([0]);
    while let Some(index) = open.pop() {
        let group = tree.group(index);
        if group.is_leaf() && waiting[index] > 0 {
            let mut more = nothing();
            more.need[index] = 1;
            surplus.push(more.only(tree, index));
        }
        for child in &group.children {
            if needs[*child] > 0 && able[*child] == 0 {
                surplus.push(rest(*child));
            }
        }
        let complete = group
            .children
            .iter()
            .rev()
            .filter(|child| needs[**child] == 0);
        open.extend(complete);
    }
    surplus
}

/// What a gang wants to place next; of a gang with sub-groups, the alternatives in their order.
pub(crate) fn requests(
    state: &ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    id: GangId,
    queue: QueueId,
    now_ms: UnixMs,
) -> Vec<Request> {
    let gang = &state.gangs[id];
    let Some(tree) = gang.tree() else {
        let counts = count(state, id, now_ms);
        let request = request::request_of_waiting(state, settings, id, queue, &counts, now_ms);
        return Vec::from([request]);
    };
    let placed = by_leaf(state, gang, &has_place);
    let pods = demand::waiting_pods(state, id, now_ms);
    let mut by_leaf: Vec<Vec<PodId>> = vec![Vec::new(); tree.len()];
    for pod in pods {
        if let Some(leaf) = gang.leaf_of(&state.pods[pod]) {
            by_leaf[leaf].push(pod);
        }
    }
    let number = |pods: &Vec<PodId>| u32::try_from(pods.len()).unwrap_or(u32::MAX);
    let waiting: Vec<u32> = by_leaf.iter().map(number).collect();
    let groups: Vec<RequestGroup> = tree
        .groups()
        .map(|(index, group)| {
            let near = near::near_of(state, id, index, group);
            let occupied = places::occupied_below(state, id, tree, index);
            RequestGroup {
                name: group.name.clone(),
                parent: group.parent,
                ..request::group(state, near, occupied)
            }
        })
        .collect();
    let all = wanted(
        tree,
        &placed,
        &waiting,
        &sub_groups::unfinished_of(state, progress, id),
    )
    .into_iter();
    let requests = all.map(|wanted| {
        let mut groups = groups.clone();
        for (index, group) in groups.iter_mut().enumerate() {
            group.need = wanted.need[index];
            group.children.clone_from(&wanted.children[index]);
            if tree.group(index).is_leaf() && group.need > 0 {
                group.pods = demand::by_size(state, by_leaf[index].clone());
            }
        }
        let placement = request::placement(state, settings, id, queue);
        Request::new(groups, request::model_limits(state, queue), placement)
    });
    requests.collect()
}

/// The pods that a gang with sub-groups wants to place next, as long as nothing speaks against
/// the first choice.
pub(crate) fn next_of_sub_groups(
    state: &ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    id: GangId,
    queue: QueueId,
    now_ms: UnixMs,
) -> Vec<PodId> {
    let requests = requests(state, settings, progress, id, queue, now_ms);
    let choices = requests.first().map(|request| request.choices(state).0);
    let first = choices.into_iter().flatten().next();
    first.map_or_else(Vec::new, |choice| pods_of(&choice).collect())
}
