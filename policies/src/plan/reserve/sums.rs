//! Starts that are ruled out by sums over all nodes, so that no places need be looked for.
//!
//! Where the nodes together have too little free, a gang delays promised gangs wherever it is
//! placed, and a promised start cannot be pulled forward. That finds out most gangs that have to
//! wait behind promises, and most early ends of gangs that bring no promised start forward. What
//! sums do not rule out is laid out on nodes.

use super::ends::Ends;
use super::future::Start;
use super::{Reservation, Reservations};
use crate::facts::{Amount, UnixMs};
use crate::gangs::counts::count;
use crate::ids::{GangId, NodeId, PodId, ResourceId};
use crate::resources::amount_of;
use crate::state::ClusterState;
use crate::state::pod::Stage;
use alloc::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use alloc::vec::Vec;
use core::ops::Range;

/// How much of a resource is free on all nodes together if gangs end when they are expected to, and
/// no other gang starts. More may be counted than there will be, and never less.
#[derive(Debug)]
struct Course {
    now: u128,
    /// From each of these times on, in their order.
    later: Vec<(UnixMs, u128)>,
}

/// The courses of resources up to a time, worked out where they are asked for.
#[derive(Debug)]
pub(super) struct Courses {
    until_ms: UnixMs,
    known: BTreeMap<ResourceId, Course>,
}

impl Course {
    fn new(state: &ClusterState, ends: &Ends, resource: ResourceId, until_ms: UnixMs) -> Self {
        let free = state.nodes.iter().map(|(_, node)| node.free(resource));
        let free: u128 = free.map(u128::from).sum();
        let now = free + taken(state, resource, state.holds.leaving());
        let mut room = now;
        let ends = ends.in_order();
        let later = ends.take_while(|(end_ms, _)| *end_ms <= until_ms);
        let later = later.map(|(end_ms, gang)| {
            room += given_back(state, resource, gang);
            (end_ms, room)
        });
        Self {
            now,
            later: later.collect(),
        }
    }

    fn at(&self, at_ms: UnixMs) -> u128 {
        let ended = self.later.partition_point(|(end_ms, _)| *end_ms <= at_ms);
        let last = ended.checked_sub(1).and_then(|last| self.later.get(last));
        last.map_or(self.now, |(_, room)| *room)
    }
}

impl Courses {
    /// `until_ms`: at no later time is anything asked.
    pub(super) fn until(until_ms: UnixMs) -> Self {
        Self {
            until_ms,
            known: BTreeMap::new(),
        }
    }

    fn of(&mut self, state: &ClusterState, ends: &Ends, resource: ResourceId) -> &Course {
        match self.known.entry(resource) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                unknown.insert(Course::new(state, ends, resource, self.until_ms))
            }
        }
    }
}

impl Reservations {
    /// Whether it is ruled out that these promises are kept beside a gang that has these places
    /// now, or others. Promises that could not be kept without it rule nothing out.
    pub(super) fn cannot_be_kept(
        &self,
        state: &ClusterState,
        others: &[Start],
        (own, places): (&Start, &[(PodId, NodeId)]),
    ) -> bool {
        if !has_members_of_one_sort(state, own.gang) {
            return false;
        }
        let counts = |it: &&Reservation| others.iter().any(|other| other.gang == it.start.gang);
        let promised: Vec<&Reservation> = self.promised.iter().filter(counts).collect();
        let begin = promised.iter().map(|it| it.start.at_ms);
        let end_ms = own.end_ms(&self.ends);
        let begin: Vec<UnixMs> = begin.filter(|at_ms| *at_ms < end_ms).collect();
        let Some(last_ms) = begin.iter().max().filter(|_| state.holds.is_empty()) else {
            return false;
        };
        let resources = promised.iter().flat_map(|it| scarcest(state, it));
        let resources: BTreeSet<ResourceId> = resources.collect();
        let mut resources = resources.into_iter();
        resources.any(|resource| {
            let course = Course::new(state, &self.ends, resource, *last_ms);
            let needs = needs(state, &self.ends, resource, &promised);
            let own = taken(state, resource, places.iter().map(|(pod, _)| *pod));
            begin.iter().any(|at_ms| {
                let (needed, room) = (needed_at(&needs, *at_ms), course.at(*at_ms));
                // tests plant bugs here: start-that-sums-rule-out
                needed > room && needed <= room + own
            })
        })
    }

    /// Whether it is ruled out that a promise is pulled forward. `courses` reach to its time.
    pub(super) fn cannot_be_earlier(
        &self,
        state: &ClusterState,
        gang: GangId,
        courses: &mut Courses,
    ) -> bool {
        let mut promised = self.promised.iter();
        let own = promised.find(|it| it.start.gang == gang);
        let Some(own) = own.filter(|_| state.holds.is_empty()) else {
            return false;
        };
        let others = self.promised.iter().filter(|it| it.start.gang != gang);
        let others: Vec<&Reservation> = others.collect();
        scarcest(state, own).into_iter().any(|resource| {
            let course = courses.of(state, &self.ends, resource);
            let own_needs = least_needed(state, resource, own);
            let needs = needs(state, &self.ends, resource, &others);
            let fits = |at_ms, room: u128| own_needs + needed_at(&needs, at_ms) <= room;
            let other_ends = others.iter().map(|it| it.start.end_ms(&self.ends));
            let mut other_ends = other_ends.filter(|end_ms| *end_ms < own.start.at_ms);
            let mut ends = course.later.iter();
            // What others may need at once is left out, which rules out less.
            // tests plant bugs here: promise-that-sums-hold-back
            !(own_needs <= course.now
                || other_ends.any(|end_ms| fits(end_ms, course.at(end_ms)))
                || ends.any(|(end_ms, room)| *end_ms < own.start.at_ms && fits(*end_ms, *room)))
        })
    }
}

/// Whether a gang takes as much, whichever of its members start.
fn has_members_of_one_sort(state: &ClusterState, gang: GangId) -> bool {
    let gang = &state.gangs[gang];
    let mut classes = gang.members.iter().map(|pod| state.pods[*pod].class);
    let first = classes.next();
    gang.tree().is_none() && classes.all(|class| Some(class) == first)
}

/// The least that promised gangs need of a resource, and when.
type Needs = Vec<(Range<UnixMs>, u128)>;

fn needs(
    state: &ClusterState,
    ends: &Ends,
    resource: ResourceId,
    promised: &[&Reservation],
) -> Needs {
    let promised = promised.iter();
    let needs = promised.map(|it| {
        let span = it.start.at_ms..it.start.end_ms(ends);
        (span, least_needed(state, resource, it))
    });
    needs.collect()
}

/// The least that a promised gang needs of a resource, whichever of its members start. Of gangs
/// with sub-groups nothing is counted: which of these start decides how many pods do.
fn least_needed(state: &ClusterState, resource: ResourceId, promised: &Reservation) -> u128 {
    let id = promised.start.gang;
    let gang = &state.gangs[id];
    if gang.tree().is_some() {
        return 0;
    }
    let members = gang.members.iter().map(|pod| &state.pods[*pod]);
    let waiting = members.filter(|pod| pod.stage == Stage::Waiting);
    let amounts = waiting.map(|pod| amount_of(&state.classes[pod.class].requests, resource));
    let mut amounts: Vec<Amount> = amounts.collect();
    amounts.sort_unstable();
    // The time decides which members may start, and not how many are needed.
    let needed = count(state, id, promised.made_ms).needed as usize;
    let least = amounts.iter().take(needed.min(promised.places.len()));
    least.map(|amount| u128::from(*amount)).sum()
}

/// How much promised gangs need at a time.
fn needed_at(needs: &Needs, at_ms: UnixMs) -> u128 {
    let there = needs.iter().filter(|(span, _)| span.contains(&at_ms));
    there.map(|(_, amount)| amount).sum()
}

/// The scarcest resources that the pods of a promised gang ask for.
fn scarcest(state: &ClusterState, promised: &Reservation) -> BTreeSet<ResourceId> {
    let pods = promised
        .places
        .iter()
        .filter_map(|(pod, _)| state.pods.get(*pod));
    pods.map(|pod| state.classes[pod.class].primary).collect()
}

/// What a gang that runs takes of a resource.
fn given_back(state: &ClusterState, resource: ResourceId, gang: GangId) -> u128 {
    if let Some(footprint) = state.footprints.kept(gang) {
        let amounts = footprint.nodes.iter();
        let amounts = amounts.map(|part| amount_of(&part.amounts, resource));
        return amounts.map(u128::from).sum();
    }
    let members = state.gangs[gang].members.iter().copied();
    let placed = members.filter(|pod| state.pods[*pod].stage.node().is_some());
    taken(state, resource, placed)
}

/// What pods ask for of a resource, summed up.
pub(super) fn taken(
    state: &ClusterState,
    resource: ResourceId,
    pods: impl Iterator<Item = PodId>,
) -> u128 {
    let pods = pods.filter_map(|pod| state.pods.get(pod));
    let amounts = pods.map(|pod| amount_of(&state.classes[pod.class].requests, resource));
    amounts.map(u128::from).sum()
}
