//! The earliest time at which a gang fits beside other promises.
//!
//! How much room there is at each time is counted first: a gang that needs so many pods of a class
//! starts at no time at which, or soon after which, fewer fit beside the others as they are laid
//! out.

use super::ends::Ends;
use super::future::{Basis, Places, Start};
use super::lay_out::lay_out;
use super::rooms::{self, Need, Points, Reach, Rooms};
use crate::facts::{Amount, UnixMs};
use crate::gangs::wanted;
use crate::ids::GangId;
use crate::place;
use crate::state::ClusterState;
use alloc::vec::Vec;

/// How many times are tried for one gang before it is left without a reservation.
const TRIES_MAX: u32 = 64;

/// The times that were tried for a gang in earlier slices.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tries {
    /// No time before this one is tried any more.
    from_ms: UnixMs,
    made: u32,
}

/// When a gang fits beside other promises.
pub(super) enum Found {
    /// At this time; and where the others will be, and the gang as the last one.
    At(UnixMs, Vec<Places>),
    /// At no time that was tried.
    Never,
    /// Not known yet: the slice ended first.
    SliceEnded,
}

/// A question: the earliest start of a gang.
pub(super) struct Asked<'a> {
    pub(super) start: &'a Start,
    /// Only earlier times are of use.
    pub(super) before_ms: UnixMs,
    pub(super) tries: &'a mut Tries,
    /// How much work there may be when another time is tried.
    pub(super) work_max: u64,
}

/// The earliest time at which a gang fits beside all others with promises.
///
/// `promised`: all promises, with that of the gang itself if it has one.
pub(super) fn earliest(
    state: &mut ClusterState,
    basis: Basis<'_>,
    asked: Asked<'_>,
    promised: &[Start],
    rooms: &mut Rooms,
    work: &mut u64,
) -> Found {
    let Asked { start, tries, .. } = asked;
    let needs = needs(state, basis, start);
    let own = promised.iter().find(|it| it.gang == start.gang);
    let mut reach = match own {
        _ if needs.is_empty() => Reach::Last,
        // From its promise on, its own place is free for a gang that is pulled forward.
        Some(own) if asked.before_ms <= own.at_ms && start.runtime_ms == own.runtime_ms => {
            let starts = promised.iter().map(|it| it.at_ms);
            starts.max().map_or(Reach::Last, Reach::Before)
        }
        _ => Reach::Met,
    };
    let mut points = match needs.is_empty() {
        true => rooms::times(state, basis, promised, TRIES_MAX as usize),
        false => rooms.points(state, (basis, promised), (&needs, start), reach, work),
    };
    *work += points.len() as u64;
    let mut starts = others_of(promised, start.gang);
    starts.push(*start);
    let made = tries.made;
    while tries.made < TRIES_MAX {
        let Some(at_ms) = first_fit(&points, (start, basis.ends), tries.from_ms) else {
            if reach != Reach::Met {
                break;
            }
            // Counting said that the gang fits from the last time on, and it has no place.
            reach = Reach::Last;
            points = rooms.points(state, (basis, promised), (&needs, start), reach, work);
            continue;
        };
        if at_ms >= asked.before_ms {
            break;
        }
        if tries.made > made && *work >= asked.work_max {
            return Found::SliceEnded;
        }
        if let Some(last) = starts.last_mut() {
            last.at_ms = at_ms;
        }
        let placed = rooms.take_placed(at_ms);
        // tests plant bugs here: nodes-of-a-reservation
        if let Some(places) = placed.or_else(|| lay_out(state, basis, &starts, None, work)) {
            return Found::At(at_ms, places);
        }
        tries.made += 1;
        tries.from_ms = at_ms.saturating_add(1);
    }
    Found::Never
}

/// The first time from `from_ms` on from which a gang fits until it ends, by what was counted.
fn first_fit(points: &Points, (start, ends): (&Start, &Ends), from_ms: UnixMs) -> Option<UnixMs> {
    let mut first = points.partition_point(|(at_ms, _)| *at_ms < from_ms);
    loop {
        let (at_ms, _) = *points.get(first)?;
        // A gang that takes no time needs room all the same.
        let end_ms = start.end_from(at_ms, ends).max(at_ms.saturating_add(1));
        let during = (first..).zip(&points[first..]);
        let during = during.take_while(|(_, (at_ms, _))| *at_ms < end_ms);
        match during.filter(|(_, (_, fits))| !fits).last() {
            Some((tight, _)) => first = tight + 1,
            None => return Some(at_ms),
        }
    }
}

/// The promises to others than a gang.
pub(super) fn others_of(promised: &[Start], gang: GangId) -> Vec<Start> {
    let others = promised.iter().filter(|start| start.gang != gang);
    others.copied().collect()
}

/// What a gang needs, whichever of its members are placed. Of several requests, each for surplus,
/// nothing is needed for certain.
fn needs(state: &ClusterState, basis: Basis<'_>, start: &Start) -> Vec<Need> {
    let (settings, progress, now_ms) = (basis.settings, basis.progress, basis.now_ms);
    let requests = wanted::requests(state, settings, progress, start.gang, start.queue, now_ms);
    let [request] = requests.as_slice() else {
        return Vec::new();
    };
    let root = request.root();
    let areas = place::widest_areas(state, root.near, root.anchor);
    let needs = request.classes().into_iter().map(|class| {
        let pods = request.least(0, &|other| Amount::from(other == class));
        Need {
            class,
            areas: areas.clone(),
            pods: u64::try_from(pods).unwrap_or(u64::MAX),
        }
    });
    needs.filter(|need| need.pods > 0).collect()
}
