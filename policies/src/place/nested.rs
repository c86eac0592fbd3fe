//! Gangs with sub-groups: packed into domains inside domains with bounded backtracking; if that
//! fails, the exact methods are asked.
//!
//! If no sub-group requires a domain, it does not matter which members of a class go where, so each
//! choice of members is placed as a plain gang.

use super::choices::{Choice, combinations, pods_of, sizes};
use super::domains::{areas, fineness, fits_in, rooms, scopes, scopes_under};
use super::exact::{Answer, exactly, not_together};
use super::fill::one_class;
use super::memo::Memo;
use super::pack::{area_size, counting_refusal, in_area, several_classes};
use super::region::Region;
use super::related;
use super::request::{Request, RequestGroup};
use super::{Area, Group, Near, Refusal};
use crate::facts::Placement;
use crate::ids::ClassId;
use crate::place::Scope;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};
use core::cmp::Reverse;

/// How many domains packing tries for all groups of a gang together.
const TRIES: u32 = 512;
/// How much work packing may take before it stops trying alternatives, in units of 10 ns: 2 ms. The
/// first alternative of each decision is always tried.
const PACKING_WORK: u64 = 200_000;
/// How many domains of one scope packing tries for one group.
const DOMAINS_TRIED: usize = 16;

/// Places the members of a plain gang.
pub(super) fn plain(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    memo: &mut Memo,
    work: &mut u64,
) -> Result<(), Refusal> {
    match request.root().pods.as_slice() {
        [group] => one_class(state, txn, request, group, work),
        _ => several_classes(state, txn, request, memo, work),
    }
}

/// What counting alone says against a request, each class counted by itself in the areas of a
/// scope. `None`: it says nothing. Where members decide for each other, a request that was refused
/// stands refused.
pub(crate) fn refused_by_counting(
    state: &mut ClusterState,
    request: &Request,
    scope: Scope,
) -> Option<Refusal> {
    if request.is_entangled(state) {
        return Some(related::refusal(state, request));
    }
    if request.is_plain() {
        return counting_refusal(state, request, scope);
    }
    let alone = request.is_nested().then(|| alone(state, request, &mut 0));
    let refusal = alone.flatten().or_else(|| {
        let all = request.flat(request.pods_below(0), request.fewest(0));
        let refusal = counting_refusal(state, &all, scope)?;
        Some(match request.is_nested() {
            true => not_together(true),
            false => refusal,
        })
    });
    refusal.map(|refusal| request.told_by_sub_groups(refusal))
}

/// An earlier refusal as it is now. What counting said is counted again: whether some area of the
/// scope has room for as many pods of the class. `None`: one has. What a search has found stands.
pub(crate) fn counted_again(
    state: &mut ClusterState,
    request: &Request,
    refusal: &Refusal,
) -> Option<Refusal> {
    match refusal {
        Refusal::TooFew {
            class, scope, need, ..
        } => {
            let (class, scope, need) = (*class, *scope, *need);
            state.classes.get(class)?;
            let areas = areas(state, scope).into_iter();
            let mut room = rooms(state, request, class);
            let rooms = areas.map(|area| (room(area), area));
            // Of areas with equal room the first one is named.
            let best = rooms.rev().max_by_key(|(fits, _)| *fits);
            let (fits, best) = best.map_or((0, None), |(fits, area)| (fits, Some(area)));
            (fits < need).then_some(Refusal::TooFew {
                class,
                scope,
                best,
                fits,
                need,
            })
        }
        Refusal::OfSubGroup {
            path,
            groups,
            need,
            place,
            refusal,
        } => Some(Refusal::OfSubGroup {
            path: path.clone(),
            groups: groups.clone(),
            need: *need,
            place: *place,
            refusal: Box::new(counted_again(state, request, refusal)?),
        }),
        found => Some(found.clone()),
    }
}

/// Places what a gang with sub-groups needs.
pub(super) fn in_domains(
    state: &mut ClusterState,
    txn: &mut Txn,
    tree: &Request,
    memo: &mut Memo,
    work: &mut u64,
) -> Result<(), Refusal> {
    if tree.has_wishes() && memo.packs_first((tree.signature(), Area::Cluster)) {
        let work_max = work.saturating_add(PACKING_WORK);
        let mut packing = Packing {
            tree,
            tries: TRIES,
            work_max,
            work,
        };
        let all = Vec::from([(0, Region::default())]);
        if packing.descend(state, txn, all) {
            return Ok(());
        }
    }
    if !tree.is_nested() {
        return anywhere(state, txn, tree, memo, work);
    }
    if let Some(refusal) = alone(state, tree, work) {
        return Err(refusal);
    }
    let root = &tree.groups[0];
    let Some(widest) = scopes(state, root.near, root.anchor).pop() else {
        return Err(not_together(false));
    };
    let pods = tree.pods_below(0);
    let request = tree.flat(pods, tree.fewest(0));
    let mut open = areas(state, widest);
    open.retain(|area| has_room(state, &request, *area));
    match exactly(state, txn, tree, &open, false, memo, work) {
        Answer::Placed => Ok(()),
        answer => Err(not_together(answer == Answer::Impossible)),
    }
}

/// Places a gang of which no sub-group requires a domain: tries each choice of members as a plain
/// gang. Choices with equal numbers of each class are tried once.
fn anywhere(
    state: &mut ClusterState,
    txn: &mut Txn,
    tree: &Request,
    memo: &mut Memo,
    work: &mut u64,
) -> Result<(), Refusal> {
    let (choices, complete) = tree.choices(state);
    let mut known: BTreeSet<Vec<(ClassId, usize)>> = BTreeSet::new();
    let flat = choices
        .iter()
        .map(|choice| (choice, tree.flat_choice(choice)));
    let distinct: Vec<_> = flat
        .filter(|(_, request)| known.insert(sizes(&request.root().pods)))
        .collect();
    *work += 50 * choices.len() as u64;
    let mut proved = complete;
    let mut first = None;
    let mut left = distinct.len();
    for (choice, mut request) in distinct {
        memo.choices = left;
        left -= 1;
        offer_all(tree, choice, &mut request);
        let start = txn.checkpoint();
        match plain(state, txn, &request, memo, work) {
            Ok(()) => return Ok(()),
            Err(refusal) => {
                txn.rollback(state, start);
                proved &= refusal.is_proved();
                first.get_or_insert(refusal);
            }
        }
    }
    match first {
        Some(refusal) if known.len() == 1 && complete => Err(refusal),
        _ => Err(not_together(proved)),
    }
}

/// If a choice has one class only, offers all waiting pods of this class, of which as many are
/// needed as before: the domain is chosen with all of them in mind.
fn offer_all(tree: &Request, choice: &Choice, request: &mut Request) {
    if let [group] = request.groups[0].pods.as_mut_slice() {
        let chosen: BTreeSet<_> = pods_of(choice).collect();
        let all = tree.pods_below(0);
        let others = all.iter().filter(|other| other.class == group.class);
        let others = others.flat_map(|other| other.pods.iter());
        let others = others.filter(|pod| !chosen.contains(pod));
        group.pods.extend(others);
    }
}

/// The refusal of a needed group that would fit nowhere even if it were alone. Groups that require
/// a domain, or must join members in one, are checked first, from the top down; then the others,
/// from the bottom up.
fn alone(state: &mut ClusterState, tree: &Request, work: &mut u64) -> Option<Refusal> {
    let is_bound = |index: &usize| {
        tree.above(*index).any(|above| {
            let group = &tree.groups[above];
            let required = group.near.is_some_and(|near| near.required.is_some());
            required && (above == *index || group.anchor.is_some())
        })
    };
    let bound = (1..tree.groups.len()).filter(is_bound);
    let others = (1..tree.groups.len()).rev();
    for index in bound.chain(others.filter(|index| !is_bound(index))) {
        let group = &tree.groups[index];
        let pods = tree.pods_below(index);
        if pods.is_empty() || !is_needed(tree, index) {
            continue;
        }
        let (scope, regions) = possible(state, tree, index);
        let mut request = tree.flat(pods, tree.fewest(index));
        let mut best: Option<(u64, Area)> = None;
        for region in regions {
            *work += request.root().pods.len() as u64;
            let (area, inside) = region.seen_from(group.near.map(|near| near.topology));
            request.inside = inside;
            let fits = fits_in(state, &request, area);
            if best.is_none_or(|(most, _)| fits > most) {
                best = Some((fits, area));
            }
        }
        let fits = best.map_or(0, |(fits, _)| fits);
        let need = request.root().need;
        if fits >= need as u64 {
            continue;
        }
        let pods = core::mem::take(&mut request.groups[0].pods);
        let refusal = match pods.as_slice() {
            [only] => Refusal::TooFew {
                class: only.class,
                scope,
                best: best.map(|(_, area)| area),
                fits,
                need: need as u64,
            },
            _ => not_together(true),
        };
        return Some(Refusal::OfSubGroup {
            path: tree.path(index),
            groups: pods,
            need,
            place: (group.near, group.anchor),
            refusal: Box::new(refusal),
        });
    }
    None
}

/// The regions of which a group must be in one, and the scope that they are areas of. They are
/// inside the domains in which members of the groups above it have places. A group that requires no
/// domain itself must be in a domain that the nearest group above it requires.
fn possible(state: &ClusterState, tree: &Request, index: usize) -> (Scope, Vec<Region>) {
    let widest = |group: &RequestGroup| {
        let near = group.near.filter(|near| near.required.is_some());
        scopes(state, Some(near?), group.anchor).pop()
    };
    let mut outer = Region::default();
    let mut narrowest = None;
    let mut required = widest(&tree.groups[index]);
    let mut above = index;
    while above != 0 {
        above = tree.groups[above].parent;
        let group = &tree.groups[above];
        let Some(scope) = widest(group) else {
            continue;
        };
        if group.anchor.is_none() {
            required.get_or_insert(scope);
            continue;
        }
        narrowest.get_or_insert(scope);
        match outer.parts(state, scope).into_iter().next() {
            Some(part) => outer = part,
            None => return (scope, Vec::new()),
        }
    }
    match (required, narrowest) {
        (Some(scope), _) => (scope, outer.parts(state, scope)),
        (None, scope) => (scope.unwrap_or(Scope::Cluster), Vec::from([outer])),
    }
}

/// Whether the needs of the gang cannot be met without this group.
fn is_needed(tree: &Request, mut index: usize) -> bool {
    while index != 0 {
        let parent = &tree.groups[tree.groups[index].parent];
        if parent.need < parent.children.len() || !parent.children.contains(&index) {
            return false;
        }
        index = tree.groups[index].parent;
    }
    true
}

fn has_room(state: &mut ClusterState, request: &Request, area: Area) -> bool {
    fits_in(state, request, area) >= request.root().need as u64
}

/// Groups that are still to be placed, each inside a region. The last group is placed next.
type Open = Vec<(usize, Region)>;

/// Packing under way.
struct Packing<'a> {
    tree: &'a Request,
    /// How many more domains may be tried.
    tries: u32,
    work_max: u64,
    work: &'a mut u64,
}

impl Packing<'_> {
    /// Places all open groups, or none.
    fn descend(&mut self, state: &mut ClusterState, txn: &mut Txn, mut open: Open) -> bool {
        let Some((index, region)) = open.pop() else {
            return true;
        };
        for (position, region) in self.regions(state, index, &region).iter().enumerate() {
            if position > 0 && self.is_used_up() {
                return false;
            }
            self.tries = self.tries.saturating_sub(1);
            if self.in_region(state, txn, index, region, &open) {
                return true;
            }
        }
        false
    }

    /// Whether the tries or the work are used up, so that no alternative is tried any more.
    fn is_used_up(&self) -> bool {
        self.tries == 0 || *self.work > self.work_max
    }

    fn in_region(
        &mut self,
        state: &mut ClusterState,
        txn: &mut Txn,
        index: usize,
        region: &Region,
        open: &Open,
    ) -> bool {
        let group = &self.tree.groups[index];
        let start = txn.checkpoint();
        if group.children.is_empty() {
            let (request, area) = self.request(index, region, group.pods.clone(), group.need);
            if in_area(state, txn, &request, area, self.work)
                && self.descend(state, txn, open.clone())
            {
                return true;
            }
            txn.rollback(state, start);
            return false;
        }
        for chosen in combinations(group.children.len(), group.need) {
            let mut next = open.clone();
            let mut children: Vec<usize> = chosen.iter().map(|c| group.children[*c]).collect();
            // Children that need the finest domains are placed first, then the largest: the last of
            // the open groups is placed next.
            children.sort_by_cached_key(|child| Reverse(self.difficulty(state, *child)));
            children.reverse();
            next.extend(children.into_iter().map(|child| (child, region.clone())));
            if self.descend(state, txn, next) {
                return true;
            }
            txn.rollback(state, start);
            if self.is_used_up() {
                return false;
            }
        }
        false
    }

    /// How hard a group is to place: the finest domain that it or a group below it requires, then
    /// its size.
    fn difficulty(&self, state: &ClusterState, index: usize) -> (usize, u64) {
        let groups = &self.tree.groups;
        let depth = |near: Option<Near>| near.map_or(0, |near| fineness(state, near));
        let mut finest = depth(groups[index].near);
        for leaf in self.tree.leaves(index) {
            let mut next = leaf;
            while next != index {
                finest = finest.max(depth(groups[next].near));
                next = groups[next].parent;
            }
        }
        let pods = self.tree.pods_below(index);
        let size = pods.iter().map(|group| {
            let class = &state.classes[group.class];
            (class.scarcest().saturating_add(1)).saturating_mul(group.pods.len() as u64)
        });
        (finest, size.sum())
    }

    /// The regions to try for a group, nearest scope first. Within one scope, regions that hold all
    /// waiting pods come first, the tightest of them first; then the others, the one with most room
    /// first.
    fn regions(&mut self, state: &mut ClusterState, index: usize, outer: &Region) -> Vec<Region> {
        let group = &self.tree.groups[index];
        let pods = self.tree.pods_below(index);
        let fewest = self.tree.fewest(index) as u64;
        let all: u64 = pods.iter().map(|group| group.pods.len() as u64).sum();
        let spreads = pods
            .first()
            .is_some_and(|first| self.tree.placement_of(state, first.class) == Placement::Spread);
        let mut regions: Vec<Region> = Vec::new();
        for scope in scopes_under(state, group.near, group.anchor, spreads) {
            let mut found: Vec<(bool, u64, Region)> = Vec::new();
            for region in outer.parts(state, scope) {
                *self.work += 2 * pods.len() as u64;
                let (request, area) = self.request(index, &region, pods.clone(), 0);
                let fits = fits_in(state, &request, area);
                if fits < fewest {
                    continue;
                }
                let room = area_size(state, &request, area);
                let holds_all = fits == all;
                found.push((
                    !holds_all,
                    if holds_all { room } else { u64::MAX - room },
                    region,
                ));
            }
            found.sort_by_key(|(part, room, _)| (*part, *room));
            let found = found.into_iter().map(|(.., region)| region);
            for region in found.take(DOMAINS_TRIED) {
                if !regions.contains(&region) {
                    regions.push(region);
                }
            }
        }
        regions
    }

    /// The request to place pods of a group in a region, and the area to fill.
    fn request(
        &self,
        index: usize,
        region: &Region,
        groups: Vec<Group>,
        need: usize,
    ) -> (Request, Area) {
        let near = self.near(index);
        let (area, inside) = region.seen_from(near.map(|near| near.topology));
        let group = &self.tree.groups[index];
        let mut request = self.tree.flat(groups, need);
        request.inside = inside;
        let leaf = &mut request.groups[0];
        (leaf.near, leaf.anchor) = (near, group.anchor);
        leaf.occupied.clone_from(&group.occupied);
        (request, area)
    }

    /// Where a group must or should be together; if it does not say, what the nearest group above
    /// it says.
    fn near(&self, mut index: usize) -> Option<Near> {
        let groups = &self.tree.groups;
        while groups[index].near.is_none() && index != 0 {
            index = groups[index].parent;
        }
        groups[index].near
    }
}
