//! What the sub-groups of a waiting gang lack: each where it must be, shape by shape.

use super::{Explained, Missing, SHAPES_EXPLAINED, shortage};
use crate::explain::Shortage;
use crate::facts::UnixMs;
use crate::gangs::{request, wanted};
use crate::ids::{ClassId, GangId};
use crate::place::{Choice, Request, Scope, widest_scope};
use crate::state::ClusterState;
use crate::tell::View;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// How many choices of members that meet the needs of a gang are compared.
const CHOICES_EXPLAINED: usize = 8;

/// Members of one shape that must be placed inside one domain and are counted together.
struct Part {
    class: ClassId,
    need: u64,
    /// The leaves that the members belong to.
    leaves: Vec<usize>,
}

/// Members for which room is counted over the nodes.
struct Counted {
    /// The group in whose domain the members must be.
    group: usize,
    /// Whether the members are of one leaf.
    of_leaf: bool,
    missing: Missing,
}

/// The shortages of the members that the gang wants to place next; of several choices that meet its
/// needs, the shortages of the choice that lacks fewest members.
pub(super) fn shortages_of_sub_groups(explained: &Explained<'_>) -> Vec<Shortage> {
    let View {
        state,
        settings,
        progress,
        now_ms,
        ..
    } = explained.view;
    let (id, queue) = (explained.gang, explained.queue);
    let Some(tree) = wanted::requests(state, settings, progress, id, queue, now_ms)
        .into_iter()
        .next()
    else {
        return Vec::new();
    };
    let limits = request::model_limits(state, queue);
    let choices = tree.choices(state).0.into_iter().take(CHOICES_EXPLAINED);
    let explained = choices.map(|choice| {
        let mut asked = questions(state, id, &tree, &choice);
        for asked in &mut asked {
            asked.missing.surplus = explained.counts.needed == 0;
            asked.missing.limits = limits;
        }
        shortages(state, &tree, &asked, now_ms)
    });
    let short = |shortages: &Vec<Shortage>| -> u64 {
        let each = shortages.iter().map(|one| {
            let groups = one.sub_groups.len().max(1) as u64;
            one.members_short().saturating_mul(groups)
        });
        each.fold(0, u64::saturating_add)
    };
    explained.min_by_key(short).unwrap_or_default()
}

/// The counts to make, by shape: first the chosen members of each leaf, in the domain where the
/// leaf must be; then the chosen members of all leaves that must be in one domain, the innermost
/// domain first; last all chosen members of the gang. Sub-groups with equal counts share one.
fn questions(state: &ClusterState, id: GangId, tree: &Request, choice: &Choice) -> Vec<Counted> {
    let bounds = bounds(tree);
    let mut open: Vec<(usize, Part)> = Vec::new();
    for (leaf, pods) in choice {
        let bound = tree.above(*leaf).find(|above| bounds.contains(above));
        let parts = pods.iter().map(|pods| Part {
            class: pods.class,
            need: pods.pods.len() as u64,
            leaves: Vec::from([*leaf]),
        });
        open.extend(parts.map(|part| (bound.unwrap_or(0), part)));
    }
    for group in bounds {
        let parts = parts(tree, group, choice).into_iter();
        let several = parts.filter(|part| part.leaves.len() > 1);
        open.extend(several.map(|part| (group, part)));
    }
    let mut asked: Vec<Counted> = Vec::new();
    for (group, part) in open {
        let new = Missing {
            class: part.class,
            scope: scope_of(state, tree, group),
            need: part.need,
            sub_groups: path(tree, tree.smallest_above(&part.leaves)),
            required_by: path(tree, group),
            inside: domains_above(state, tree, group),
            surplus: false,
            gang: id,
            limits: None,
        };
        let mut known = asked.iter_mut().map(|known| &mut known.missing);
        match known.find(|known| known.is_like(&new)) {
            // The sub-group is counted in an inner domain of this level already.
            Some(known) if known.sub_groups == new.sub_groups => {}
            Some(known) => {
                known.sub_groups.extend(new.sub_groups);
                let more = new.required_by.into_iter();
                let more = more.filter(|path| !known.required_by.contains(path));
                known.required_by.extend(more.collect::<Vec<_>>());
            }
            None => asked.push(Counted {
                group,
                of_leaf: part.leaves.len() == 1,
                missing: new,
            }),
        }
    }
    asked
}

/// The shortages among the counts. A shape that is short in an inner domain is not told of the
/// domain around it. If nothing is short, the count of each leaf is told.
fn shortages(
    state: &ClusterState,
    tree: &Request,
    asked: &[Counted],
    now_ms: UnixMs,
) -> Vec<Shortage> {
    let shortage = |asked: &Counted| shortage(state, &asked.missing, now_ms).0;
    let all: Vec<Shortage> = asked.iter().map(shortage).collect();
    let (mut known, mut short) = (Vec::new(), Vec::new());
    for (asked, shortage) in asked.iter().zip(&all) {
        // The counts of leaves come before the counts of several leaves.
        let further_in = |(class, inner, of_leaf): &(ClassId, usize, bool)| {
            let is_wider = !asked.of_leaf || !of_leaf;
            *class == asked.missing.class
                && is_wider
                && tree.above(*inner).any(|above| above == asked.group)
        };
        if shortage.members_short() > 0 && !known.iter().any(further_in) {
            known.push((asked.missing.class, asked.group, asked.of_leaf));
            short.push(shortage.clone());
        }
    }
    if short.is_empty() {
        let of_leaf = asked.iter().map(|asked| asked.of_leaf);
        let each = all.into_iter().zip(of_leaf).filter(|(_, of_leaf)| *of_leaf);
        short = each.map(|(shortage, _)| shortage).collect();
    }
    short.truncate(SHAPES_EXPLAINED);
    short
}

fn scope_of(state: &ClusterState, tree: &Request, index: usize) -> Scope {
    let group = &tree.groups[index];
    widest_scope(state, group.near, group.anchor)
}

/// The scopes in which the groups above a group must be, the innermost first.
fn domains_above(state: &ClusterState, tree: &Request, mut index: usize) -> Vec<Scope> {
    let mut inside = Vec::new();
    while index != 0 {
        index = tree.groups[index].parent;
        inside.push(scope_of(state, tree, index));
    }
    inside.retain(|scope| *scope != Scope::Cluster);
    inside
}

/// The groups whose members must be in one domain, the innermost first; the gang itself is last.
fn bounds(tree: &Request) -> Vec<usize> {
    let required = |index: &usize| {
        let near = tree.groups[*index].near;
        *index == 0 || near.is_some_and(|near| near.required.is_some())
    };
    let mut bounds: Vec<usize> = (0..tree.groups.len()).filter(required).collect();
    let depth = |index: &usize| Reverse(tree.above(*index).count());
    bounds.sort_by_key(depth);
    bounds
}

/// The chosen members of a group, by shape.
fn parts(tree: &Request, group: usize, choice: &Choice) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let below = |leaf: usize| tree.above(leaf).any(|above| above == group);
    for (leaf, pods) in choice.iter().filter(|(leaf, _)| below(*leaf)) {
        for pods in pods {
            let need = pods.pods.len() as u64;
            match parts.iter_mut().find(|part| part.class == pods.class) {
                Some(part) => {
                    part.need += need;
                    part.leaves.push(*leaf);
                }
                None => parts.push(Part {
                    class: pods.class,
                    need,
                    leaves: Vec::from([*leaf]),
                }),
            }
        }
    }
    parts
}

/// The path of a group; empty for the gang itself.
fn path(tree: &Request, group: usize) -> Vec<String> {
    let path = (group != 0).then(|| tree.path(group));
    path.into_iter().collect()
}
