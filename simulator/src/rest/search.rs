//! Whether more members of a gang fit, found by trying every placement: slow, and obviously right.

use super::room::{Rooms, Vector, asked, counted, eligible, has, take};
use crate::cluster::Cluster;
use crate::gangs::{Gang, is_met, path};
use crate::scenario::Part;
use gpu_batch_policies::facts::{NodeFacts, PodFacts};

/// Whether some of the waiting members can be placed so that every group above them has its minimum
/// then: their leaves, the sub-groups above these, and the gang itself.
pub(super) fn fits(
    cluster: &Cluster,
    rooms: &Rooms,
    gang: &Gang<'_>,
    waiting: &[&PodFacts],
) -> bool {
    // What kubelets have given of NUMA nodes is not what schedulers know of it.
    let are_aligned = waiting.iter().any(|facts| !facts.shape.aligned.is_empty());
    let nodes = cluster.nodes();
    let nodes = nodes.filter(|node| !are_aligned || cluster.numa(&node.name).is_none());
    let nodes: Vec<&NodeFacts> = nodes.collect();
    let mut pods: Vec<(usize, &PodFacts)> = waiting
        .iter()
        .filter_map(|facts| Some((gang.leaf_of(facts)?, *facts)))
        .collect();
    pods.sort_by_cached_key(|(leaf, facts)| (*leaf, format!("{:?}", facts.shape)));
    let domain = |group: usize, node: &NodeFacts| {
        let required = gang.groups[group].required.as_ref();
        required.map(|required| required.domain(node))
    };
    let tied = (0..gang.groups.len()).map(|group| {
        let members = gang.bound.iter();
        let mut members: Vec<_> = members
            .filter(|facts| gang.is_below(facts, group))
            .collect();
        // Members that this scheduler has bound say where the group is, not members that another
        // scheduler has bound.
        if members.iter().any(|facts| facts.bound_queue.is_some()) {
            members.retain(|facts| facts.bound_queue.is_some());
        }
        let nodes = members
            .into_iter()
            .filter_map(|facts| cluster.node(facts.node.as_deref()?));
        most_frequent(nodes.map(|node| domain(group, node)).collect())?
    });
    let held = gang.held();
    // The members of a gang ask for parts of one size.
    let part = waiting.iter().find_map(|facts| Part::of(&facts.shape));
    let mut search = Search {
        gang,
        free: nodes.iter().map(|node| rooms.free(node, part)).collect(),
        limits: rooms.limits(&gang.queue),
        domains: (0..gang.groups.len())
            .map(|group| nodes.iter().map(|node| domain(group, node)).collect())
            .collect(),
        tied: tied.collect(),
        before: held.clone(),
        held,
        nodes,
        pods,
    };
    search.goes_on(0, 0)
}

type Domain = Option<Vec<String>>;

/// The domain with the most members, or the first of several. Two leaders, or a label that changed,
/// can have put members into several domains; new members join this one.
fn most_frequent(domains: Vec<Domain>) -> Option<Domain> {
    let members = |domain: &Domain| domains.iter().filter(|other| *other == domain).count();
    let most = domains.iter().map(members).max()?;
    domains
        .iter()
        .find(|domain| members(domain) == most)
        .cloned()
}

struct Search<'world> {
    gang: &'world Gang<'world>,
    nodes: Vec<&'world NodeFacts>,
    /// The waiting pods, each with its leaf; pods of one leaf and shape stand together.
    pods: Vec<(usize, &'world PodFacts)>,
    free: Vec<Vector>,
    limits: Vec<Vector>,
    /// By group and node: the domain of the node; `None`: the group requires none.
    domains: Vec<Vec<Domain>>,
    /// By group: the domain in which its members must be, once one of them has a place. `None`:
    /// any.
    tied: Vec<Domain>,
    /// How many members have a place, by leaf: now, and before anything was tried.
    held: Vec<usize>,
    before: Vec<usize>,
}

impl Search<'_> {
    /// Tries to place the pods from index `next` on, the first of them on nodes from index `from`
    /// on. Pods of one leaf and shape take nodes in order, so that each choice is tried once.
    fn goes_on(&mut self, next: usize, from: usize) -> bool {
        if self.is_done() {
            return true;
        }
        let Some(&(leaf, facts)) = self.pods.get(next) else {
            return false;
        };
        if next > 0 && self.is_left_in_part(self.pods[next - 1].0, leaf) {
            return false;
        }
        let alike = |other: &&(usize, &PodFacts)| other.0 == leaf && other.1.shape == facts.shape;
        let following = next + self.pods[next..].iter().take_while(alike).count();
        let enough = self.gang.groups[leaf].minimum.max(self.before[leaf] + 1);
        for node in from..self.nodes.len() {
            if self.held[leaf] >= enough {
                break;
            }
            if let Some(undo) = self.place(leaf, facts, node) {
                let from = if next + 1 < following { node } else { 0 };
                if self.goes_on(next + 1, from) {
                    return true;
                }
                self.undo(leaf, node, undo);
            }
        }
        self.goes_on(following, 0)
    }

    /// Whether the pods of a leaf are all tried, and it got new members, but not its minimum.
    fn is_left_in_part(&self, leaf: usize, next: usize) -> bool {
        let more = self.held[leaf] > self.before[leaf];
        leaf != next && more && self.held[leaf] < self.gang.groups[leaf].minimum
    }

    /// Whether a pod was placed, and every group that got new members has its minimum.
    fn is_done(&self) -> bool {
        let groups = &self.gang.groups;
        let more = |leaf: &usize| self.held[*leaf] > self.before[*leaf];
        let mut touched = (0..groups.len())
            .filter(more)
            .flat_map(|leaf| path(groups, leaf));
        let Some(first) = touched.next() else {
            return false;
        };
        is_met(groups, first, &self.held) && touched.all(|group| is_met(groups, group, &self.held))
    }

    fn place(&mut self, leaf: usize, facts: &PodFacts, node: usize) -> Option<Undo> {
        let asked = asked(&facts.shape);
        let counted = counted(&facts.shape);
        let below = self.limits.iter().all(|limit| has(limit, &counted));
        let room = below && has(&self.free[node], &asked);
        if !room || !eligible(&facts.shape, self.nodes[node]) {
            return None;
        }
        let mut ties = Vec::new();
        for group in path(&self.gang.groups, leaf) {
            let domain = &self.domains[group][node];
            match &self.tied[group] {
                Some(tied) if Some(tied) != domain.as_ref() => return None,
                None if domain.is_some() => ties.push(group),
                _ => {}
            }
        }
        for group in &ties {
            self.tied[*group].clone_from(&self.domains[*group][node]);
        }
        let undo = Undo {
            free: self.free[node],
            limits: self.limits.clone(),
            ties,
        };
        take(&mut self.free[node], &asked);
        for limit in &mut self.limits {
            take(limit, &counted);
        }
        self.held[leaf] += 1;
        Some(undo)
    }

    fn undo(&mut self, leaf: usize, node: usize, undo: Undo) {
        self.held[leaf] -= 1;
        self.free[node] = undo.free;
        self.limits = undo.limits;
        for group in undo.ties {
            self.tied[group] = None;
        }
    }
}

/// The amounts before a pod was placed, with which its placing is undone.
struct Undo {
    free: Vector,
    limits: Vec<Vector>,
    /// Groups whose domain this pod has chosen.
    ties: Vec<usize>,
}
