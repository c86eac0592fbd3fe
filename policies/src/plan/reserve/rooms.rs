//! How much room there is at later times, counted once for all gangs that ask for it.
//!
//! Counting ends where what comes later decides nothing: most gangs find room long before the last
//! end. When all gangs with promises have started, room only grows. The gang that asks is placed
//! there at once: most gangs fit at no earlier time, and need not be laid out once more.

use super::future::{Basis, Future, Nodes, Places, Start};
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
    /// Where all promised gangs and the gang that asks will be if that one starts at this time, the
    /// last one that was counted.
    placed: Option<(UnixMs, Vec<Places>)>,
}

/// The room for a class at each time, counted with all promised gangs on nodes that were chosen
/// anew or kept.
struct Counted {
    room: Room,
    /// Whether all promised gangs find places on these nodes.
    all_placed: bool,
    /// Where the promised gangs are, and the gang that asks as the last one, if it fits at the last
    /// time.
    places: Option<Vec<Places>>,
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

    /// Whether a gang with these needs fits beside all promises.
    pub(super) fn points(
        &mut self,
        state: &mut ClusterState,
        (basis, promised): (Basis<'_>, &[Start]),
        (needs, start): (&[Need], &Start),
        reach: Reach,
        work: &mut u64,
    ) -> Points {
        self.placed = None;
        // Its own place is free for the gang.
        let own = promised.iter().find(|it| it.gang == start.gang);
        let ends = basis.ends;
        let holds = |at_ms| own.is_some_and(|own| own.at_ms <= at_ms && at_ms < own.end_ms(ends));
        let mut points = Points::new();
        for need in needs {
            let key = (need.class, need.areas.clone());
            let room = self.known.entry(key).or_default();
            if !room.suffices(need, reach) {
                let promised = (basis, promised, &mut self.nodes);
                // Members of other classes may not fit when those of this one do.
                let is_alone = own.is_none() && needs.len() == 1;
                let asks = Some(start).filter(|_| is_alone);
                let counted = count(state, promised, (need, asks), reach, work);
                *room = counted.room;
                self.placed = counted.places.map(|places| (room.until_ms, places));
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

    /// Where all promised gangs and the gang that asked last will be if that one starts at this
    /// time; `None`: counting has not shown it.
    pub(super) fn take_placed(&mut self, at_ms: UnixMs) -> Option<Vec<Places>> {
        let (_, places) = self.placed.take_if(|(placed_ms, _)| *placed_ms == at_ms)?;
        Some(places)
    }
}

/// Counts the room for a class, from now on and from each time at which pods leave or gangs start.
/// `nodes`: on which nodes all promised gangs find places, as far as that is known. `asks`: the
/// gang that asks, to be placed where counting ends.
fn count(
    state: &mut ClusterState,
    (basis, promised, nodes): (Basis<'_>, &[Start], &mut Option<Nodes>),
    (need, asks): (&Need, Option<&Start>),
    reach: Reach,
    work: &mut u64,
) -> Counted {
    let tried = nodes.unwrap_or(Nodes::Anew);
    let (promised, need) = ((basis, promised), (need, asks));
    let counted = count_on(tried, state, promised, need, reach, work);
    let kept = *nodes.insert(match counted.all_placed {
        true => tried,
        false => Nodes::Kept,
    });
    match kept == tried {
        true => counted,
        false => count_on(kept, state, promised, need, reach, work),
    }
}

/// Counts the room for a class with promised gangs on nodes that are chosen anew or kept.
fn count_on(
    nodes: Nodes,
    state: &mut ClusterState,
    (basis, promised): (Basis<'_>, &[Start]),
    (need, asks): (&Need, Option<&Start>),
    reach: Reach,
    work: &mut u64,
) -> Counted {
    let until_ms = match reach {
        Reach::Before(until_ms) => until_ms,
        Reach::Met | Reach::Last => UnixMs::MAX,
    };
    let mut room = Room {
        until_ms,
        ..Room::default()
    };
    let mut future = Future::begin(state, basis, nodes, promised.iter().chain(asks));
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
    let is_met = all_placed && room.until_ms < until_ms;
    let at_ms = room.until_ms;
    let last = asks.filter(|_| is_met);
    let last = last.map(|asks| Start { at_ms, ..*asks });
    // A gang that takes no time would come before others that start at its time.
    let last = last.filter(|last| promised.iter().all(|it| it.in_order() <= last.in_order()));
    let places = last.and_then(|last| {
        future.place(&last).ok()?;
        Some(future.places_of(promised.iter().chain([&last])))
    });
    *work += future.finish();
    Counted {
        room,
        all_placed,
        places,
    }
}

/// The first times at which pods leave or gangs start, for a gang of which nothing is counted.
pub(super) fn times(
    state: &mut ClusterState,
    basis: Basis<'_>,
    promised: &[Start],
    times_max: usize,
) -> Points {
    let mut points = Points::new();
    let mut future = Future::begin(state, basis, Nodes::Kept, promised.iter());
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
