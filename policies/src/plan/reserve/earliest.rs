//! The earliest time at which a gang fits beside other promises.
//!
//! The other gangs are laid out in the order of their starts, so the nodes that they will be on are
//! chosen anew each time; what was promised is the time. How much room there is at each time is
//! counted first: a gang that needs so many pods of a class starts at no time at which, or soon
//! after which, fewer fit beside the others as they are laid out.

use super::future::{Basis, Future, Places, Start};
use crate::facts::UnixMs;
use crate::gangs::wanted;
use crate::ids::{ClassId, GangId, PodId};
use crate::place::{self, Area};
use crate::state::ClusterState;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;

/// How many times are tried for one gang before it is left without a reservation.
const TRIES_MAX: u32 = 64;

/// So many pods of a class that must fit in one of some areas.
struct Need {
    class: ClassId,
    areas: Vec<Area>,
    pods: u64,
}

/// From each of these times until the next one, how many pods of a class fit beside all promises,
/// in the area in which most do.
type Room = Rc<[(UnixMs, u64)]>;

/// How much room there is at each time, counted once for all gangs that ask for it.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    known: BTreeMap<(ClassId, Vec<Area>), Room>,
}

impl Rooms {
    /// Forgets what was counted: other promises were made.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    fn of(
        &mut self,
        state: &mut ClusterState,
        basis: Basis<'_>,
        promised: &[Start],
        need: &Need,
        work: &mut u64,
    ) -> Room {
        let key = (need.class, need.areas.clone());
        let known = self.known.entry(key);
        Rc::clone(known.or_insert_with(|| room(state, basis, promised, need, work)))
    }
}

/// Where gangs will be that start at these times, in the order given; `None`: not all have a place.
/// Of gangs that start at one time the first one given comes first. `present`: pods that were
/// placed now and leave at a time.
pub(super) fn lay_out(
    state: &mut ClusterState,
    basis: Basis<'_>,
    starts: &[Start],
    present: Option<(UnixMs, Vec<PodId>)>,
    work: &mut u64,
) -> Option<Vec<Places>> {
    let mut order: Vec<usize> = (0..starts.len()).collect();
    order.sort_by_key(|index| starts[*index].at_ms);
    let mut places: Vec<Places> = vec![Places::new(); starts.len()];
    let mut future = Future::begin(state, basis);
    if let Some((end_ms, pods)) = present {
        future.let_leave(end_ms, pods);
    }
    let are_placed = order.into_iter().all(|index| {
        future.advance(starts[index].at_ms);
        let found = future.place(&starts[index]);
        let is_placed = found.is_some();
        places[index] = found.unwrap_or_default();
        is_placed
    });
    *work += future.finish();
    are_placed.then_some(places)
}

/// The earliest time before `before_ms` at which a gang fits beside all others with promises, and
/// where these will be, and the gang as the last one; `None`: none was found.
///
/// `promised`: all promises, with that of the gang itself if it has one.
pub(super) fn earliest(
    state: &mut ClusterState,
    basis: Basis<'_>,
    start: &Start,
    promised: &[Start],
    rooms: &mut Rooms,
    before_ms: UnixMs,
    work: &mut u64,
) -> Option<(UnixMs, Vec<Places>)> {
    let needs = needs(state, basis, start);
    let own = promised.iter().find(|it| it.gang == start.gang);
    let rooms = needs.iter().map(|need| {
        let room = rooms.of(state, basis, promised, need, work);
        // Its own place is free for the gang.
        let holds = |at_ms| own.is_some_and(|own| own.at_ms <= at_ms && at_ms < own.end_ms());
        let fits = move |(at_ms, room): &(UnixMs, u64)| {
            let own = if holds(*at_ms) { need.pods } else { 0 };
            (*at_ms, room + own >= need.pods)
        };
        room.iter().map(fits).collect::<Vec<_>>()
    });
    let points = rooms.reduce(both);
    let points = points.unwrap_or_else(|| times(state, basis, promised));
    *work += points.len() as u64;
    let mut starts = others_of(promised, start.gang);
    starts.push(*start);
    let (mut first, mut tries) = (0, 0);
    while let Some((at_ms, _)) = points.get(first).filter(|(at_ms, _)| *at_ms < before_ms) {
        let own = Start {
            at_ms: *at_ms,
            ..*start
        };
        let during = (first..).zip(&points[first..]);
        let during = during.take_while(|(_, (at_ms, _))| *at_ms < own.end_ms());
        let tight = during.filter(|(_, (_, fits))| !fits).last();
        if let Some((tight, _)) = tight {
            first = tight + 1;
            continue;
        }
        if let Some(last) = starts.last_mut() {
            *last = own;
        }
        if let Some(places) = lay_out(state, basis, &starts, None, work) {
            return Some((own.at_ms, places));
        }
        tries += 1;
        if tries == TRIES_MAX {
            break;
        }
        first += 1;
    }
    None
}

/// The promises to others than a gang.
pub(super) fn others_of(promised: &[Start], gang: GangId) -> Vec<Start> {
    let others = promised.iter().filter(|start| start.gang != gang);
    others.copied().collect()
}

/// Whether both fit, at times at which both were counted.
fn both(one: Vec<(UnixMs, bool)>, other: Vec<(UnixMs, bool)>) -> Vec<(UnixMs, bool)> {
    let pairs = one.into_iter().zip(other);
    pairs
        .map(|((at_ms, fits), (_, other))| (at_ms, fits && other))
        .collect()
}

/// How many pods fit beside all promises, from now on and from each time at which pods leave or
/// gangs start.
fn room(
    state: &mut ClusterState,
    basis: Basis<'_>,
    promised: &[Start],
    need: &Need,
    work: &mut u64,
) -> Room {
    let mut points = Vec::new();
    let mut future = Future::begin(state, basis);
    walk(&mut future, basis.now_ms, promised, |at_ms, future| {
        let areas = need.areas.iter();
        let room = areas.map(|area| place::counted(future.state, need.class, *area));
        let room = room.max().unwrap_or(0);
        future.work += need.areas.len() as u64;
        points.push((at_ms, room));
    });
    *work += future.finish();
    points.into()
}

/// The times at which pods leave or gangs start, for a gang of which nothing is counted.
fn times(state: &mut ClusterState, basis: Basis<'_>, promised: &[Start]) -> Vec<(UnixMs, bool)> {
    let mut points = Vec::new();
    let mut future = Future::begin(state, basis);
    walk(&mut future, basis.now_ms, promised, |at_ms, _| {
        points.push((at_ms, true));
    });
    future.finish();
    points
}

/// Visits the present and each time at which pods leave or gangs start, with these gangs in their
/// places.
fn walk<'a>(
    future: &mut Future<'a>,
    now_ms: UnixMs,
    promised: &[Start],
    mut look: impl FnMut(UnixMs, &mut Future<'a>),
) {
    let mut promised = promised.to_vec();
    promised.sort_by_key(|start| start.at_ms);
    let mut promised = promised.into_iter().peekable();
    let mut next_ms = Some(now_ms);
    while let Some(at_ms) = next_ms {
        future.advance(at_ms);
        while let Some(start) = promised.next_if(|start| start.at_ms <= at_ms) {
            future.place(&start);
        }
        look(at_ms, future);
        let start_ms = promised.peek().map(|start| start.at_ms);
        next_ms = future.next_end_ms().into_iter().chain(start_ms).min();
    }
}

/// What a gang needs, whichever of its members are placed. Of gangs with sub-groups nothing is
/// counted.
fn needs(state: &ClusterState, basis: Basis<'_>, start: &Start) -> Vec<Need> {
    let (settings, progress, now_ms) = (basis.settings, basis.progress, basis.now_ms);
    let requests = wanted::requests(state, settings, progress, start.gang, start.queue, now_ms);
    let Some(request) = requests.first().filter(|request| request.is_plain()) else {
        return Vec::new();
    };
    let root = request.root();
    let members: usize = root.pods.iter().map(|group| group.pods.len()).sum();
    let areas = place::widest_areas(state, root.near, root.anchor);
    let needs = root.pods.iter().map(|group| Need {
        class: group.class,
        areas: areas.clone(),
        pods: (group.pods.len() + root.need).saturating_sub(members) as u64,
    });
    needs.filter(|need| need.pods > 0).collect()
}
