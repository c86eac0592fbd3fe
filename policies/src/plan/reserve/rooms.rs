//! How much room there is at later times, counted once for all gangs that ask for it.
//!
//! Counting ends where what comes later decides nothing: most gangs find room long before the last
//! end. When all gangs with promises have started, room only grows.

use super::future::{Basis, Future, Nodes, Start};
use crate::facts::UnixMs;
use crate::ids::ClassId;
use crate::place::{self, Area};
use crate::state::ClusterState;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// So many pods of a class that must fit in one of some areas.
pub(super) struct Need {
    pub(super) class: ClassId,
    pub(super) areas: Vec<Area>,
    pub(super) pods: u64,
}

/// How far room is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Each time before this one.
    Before(UnixMs),
    /// Up to a time from which on a need is always met.
    Met,
    /// To the last end.
    Last,
}

/// From each of these times until the next one, whether a gang fits.
pub(super) type Points = Vec<(UnixMs, bool)>;

/// From each of these times until the next one, how many pods of a class fit beside all promises,
/// in the area in which most do.
#[derive(Debug, Default)]
struct Room {
    points: Vec<(UnixMs, u64)>,
    /// All times before this one were counted.
    until_ms: UnixMs,
    /// At least so many pods fit at all times from the last one on.
    later: u64,
}

/// How much room there is at each time, while promises stay as they are.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    /// On which nodes all promised gangs find places; `None`: not known yet.
    nodes: Option<Nodes>,
    known: BTreeMap<(ClassId, Vec<Area>), Room>,
}

impl Room {
    /// Whether enough was counted for a need.
    fn suffices(&self, need: &Need, reach: Reach) -> bool {
        match reach {
            Reach::Before(until_ms) => self.until_ms >= until_ms,
            Reach::Met => self.until_ms == UnixMs::MAX || self.later >= need.pods,
            Reach::Last => self.until_ms == UnixMs::MAX,
        }
    }
}

impl Rooms {
    /// Forgets what was counted: other promises were made.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether a gang with these needs fits beside all promises. `own`: what the gang itself was
    /// promised.
    pub(super) fn points(
        &mut self,
        state: &mut ClusterState,
        (basis, promised): (Basis<'_>, &[Start]),
        (needs, own): (&[Need], Option<&Start>),
        reach: Reach,
        work: &mut u64,
    ) -> Points {
        // Its own place is free for the gang.
        let ends = basis.ends;
        let holds = |at_ms| own.is_some_and(|own| own.at_ms <= at_ms && at_ms < own.end_ms(ends));
        let mut points = Points::new();
        for need in needs {
            let key = (need.class, need.areas.clone());
            let room = self.known.entry(key).or_default();
            if !room.suffices(need, reach) {
                let promised = (basis, promised, &mut self.nodes);
                *room = count(state, promised, need, reach, work);
            }
            for (index, (at_ms, room)) in room.points.iter().enumerate() {
                let fits = *room >= need.pods || holds(*at_ms);
                match points.get_mut(index) {
                    Some((_, all)) => *all &= fits,
                    None => points.push((*at_ms, fits)),
                }
            }
        }
        points
    }
}

/// Counts the room for a class, from now on and from each time at which pods leave or gangs start.
/// `nodes`: on which nodes all promised gangs find places, as far as that is known.
fn count(
    state: &mut ClusterState,
    (basis, promised, nodes): (Basis<'_>, &[Start], &mut Option<Nodes>),
    need: &Need,
    reach: Reach,
    work: &mut u64,
) -> Room {
    let tried = nodes.unwrap_or(Nodes::Anew);
    let asked = (basis, promised);
    let (mut room, all_placed) = count_on(tried, state, asked, need, reach, work);
    let kept = *nodes.insert(match all_placed {
        true => tried,
        false => Nodes::Kept,
    });
    if kept != tried {
        room = count_on(kept, state, asked, need, reach, work).0;
    }
    room
}

/// Counts the room for a class with promised gangs on nodes that are chosen anew or kept, and says
/// whether all of them find places.
fn count_on(
    nodes: Nodes,
    state: &mut ClusterState,
    (basis, promised): (Basis<'_>, &[Start]),
    need: &Need,
    reach: Reach,
    work: &mut u64,
) -> (Room, bool) {
    let until_ms = match reach {
        Reach::Before(until_ms) => until_ms,
        Reach::Met | Reach::Last => UnixMs::MAX,
    };
    let mut room = Room {
        until_ms,
        ..Room::default()
    };
    let mut future = Future::begin(state, basis, nodes, promised);
    let all_placed = walk(&mut future, promised, until_ms, |at_ms, future, to_come| {
        let areas = need.areas.iter();
        let fits = areas.map(|area| place::counted(future.state, need.class, *area));
        let fits = fits.max().unwrap_or(0);
        future.work += need.areas.len() as u64;
        room.points.push((at_ms, fits));
        let is_enough = reach == Reach::Met && !to_come && fits >= need.pods;
        if is_enough {
            (room.until_ms, room.later) = (at_ms, fits);
        }
        !is_enough
    });
    *work += future.finish();
    (room, all_placed)
}

/// The first times at which pods leave or gangs start, for a gang of which nothing is counted.
pub(super) fn times(
    state: &mut ClusterState,
    basis: Basis<'_>,
    promised: &[Start],
    times_max: usize,
) -> Points {
    let mut points = Points::new();
    let mut future = Future::begin(state, basis, Nodes::Kept, promised);
    walk(&mut future, promised, UnixMs::MAX, |at_ms, _, _| {
        points.push((at_ms, true));
        points.len() < times_max
    });
    future.finish();
    points
}

/// Visits the present and each time before `until_ms` at which pods leave or gangs start, with
/// these gangs in their places. `look` is told whether gangs are still to start, and says whether
/// to go on. Returns whether all gangs find places, also those that start later.
fn walk<'a>(
    future: &mut Future<'a>,
    promised: &[Start],
    until_ms: UnixMs,
    mut look: impl FnMut(UnixMs, &mut Future<'a>, bool) -> bool,
) -> bool {
    let mut promised = promised.to_vec();
    promised.sort_by_key(Start::in_order);
    let mut promised = promised.into_iter().peekable();
    let mut all_placed = true;
    let mut next_ms = Some(future.now_ms());
    while let Some(at_ms) = next_ms.filter(|at_ms| *at_ms < until_ms) {
        future.advance(at_ms);
        while let Some(start) = promised.next_if(|start| start.at_ms <= at_ms) {
            all_placed &= future.place(&start).is_ok();
            // A gang that takes no time leaves its room to the next one.
            future.advance(at_ms);
        }
        let start_ms = promised.peek().map(|start| start.at_ms);
        if !look(at_ms, future, start_ms.is_some()) {
            break;
        }
        next_ms = future.next_end_ms().into_iter().chain(start_ms).min();
    }
    promised.fold(all_placed, |all_placed, start| {
        future.advance(start.at_ms);
        all_placed && future.place(&start).is_ok()
    })
}
