//! The earliest time at which a gang fits beside other promises.
//!
//! How much room there is at each time is counted first: a gang that needs so many pods of a class
//! starts at no time at which, or soon after which, fewer fit beside the others as they are laid
//! out.

use super::future::{Basis, Places, Start};
use super::lay_out::lay_out;
use super::rooms::{self, Need, Reach, Rooms};
use crate::facts::UnixMs;
use crate::gangs::wanted;
use crate::ids::GangId;
use crate::place;
use crate::state::ClusterState;
use alloc::vec::Vec;

/// How many times are tried for one gang before it is left without a reservation.
const TRIES_MAX: u32 = 64;

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
    let mut reach = match own {
        _ if needs.is_empty() => Reach::Last,
        // From its promise on, its own place is free for a gang that is pulled forward.
        Some(own) if before_ms <= own.at_ms && start.runtime_ms == own.runtime_ms => {
            let starts = promised.iter().map(|it| it.at_ms);
            starts.max().map_or(Reach::Last, Reach::Before)
        }
        _ => Reach::Met,
    };
    let mut points = match needs.is_empty() {
        true => rooms::times(state, basis, promised, TRIES_MAX as usize),
        false => rooms.points(state, (basis, promised), (&needs, own), reach, work),
    };
    *work += points.len() as u64;
    let mut starts = others_of(promised, start.gang);
    starts.push(*start);
    let (mut first, mut tries) = (0, 0);
    while tries < TRIES_MAX {
        let Some((at_ms, _)) = points.get(first) else {
            if reach != Reach::Met {
                break;
            }
            // Counting said that the gang fits from the last time on, and it has no place.
            reach = Reach::Last;
            points = rooms.points(state, (basis, promised), (&needs, own), reach, work);
            continue;
        };
        if *at_ms >= before_ms {
            break;
        }
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
        // tests plant bugs here: nodes-of-a-reservation
        if let Some(places) = lay_out(state, basis, &starts, None, work) {
            return Some((own.at_ms, places));
        }
        tries += 1;
        first += 1;
    }
    None
}

/// The promises to others than a gang.
pub(super) fn others_of(promised: &[Start], gang: GangId) -> Vec<Start> {
    let others = promised.iter().filter(|start| start.gang != gang);
    others.copied().collect()
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
