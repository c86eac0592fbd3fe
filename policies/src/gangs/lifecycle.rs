//! Gangs of which only a part is bound: completed, unwound, or evicted when they stay stale.
//!
//! How a gang comes to be unfinished or complete is drawn at [`Start`]. What follows from it:
//!
//! | the gang | its bound members |
//! |---|---|
//! | is unfinished | it is planned before all others; if that fails, they are evicted at once |
//! | was complete and lost members | they are evicted after `stalenessGracePeriod` |
//! | was complete, its minimum was raised | they stay |
//!
//! [`crate::gangs::first_look`] says which it is when an engine begins with a gang of
//! which members run.
//!
//! A sub-group that the gang could do without begins as a whole or not at all, too. A sub-group
//! that was cut off, by a crash, a refused binding, or an eviction plan that took some of its
//! members and then ended, is completed before all other gangs; if that fails, its members are
//! evicted at once and the rest of the gang stays. A sub-group that was complete and lost members
//! otherwise goes on without them: the gang has its minimum.
//!
//! A gang on failed cards is evicted whole where the settings say so, see
//! [`crate::gangs::failed_cards`].
//!
//! Kubernetes cannot bind several pods at once, so a crash may leave a gang with a part of its
//! members bound. The next leader sees how many are bound, and finishes the gang before anything
//! else or evicts the bound members.

use crate::command::EvictionCause;
use crate::facts::UnixMs;
use crate::gangs::counts::{Counts, by_leaf, has_started};
use crate::gangs::first_look::{self, FirstLook};
use crate::gangs::progress::{Progress, Start};
use crate::gangs::sub_groups::{self, below, is_assumed, unfinished_of};
use crate::gangs::{failed_cards, judge};
use crate::ids::{ById, GangId};
use crate::settings::Settings;
use crate::state::ClusterState;
use alloc::vec::Vec;

/// How long an unfinished gang that cannot be completed is kept, so that news that is on its way
/// (a replacement, another kind's list) still counts. Users are promised two seconds.
const UNWIND_AFTER_MS: u64 = 1_000;

/// The pause, in ms, before it is looked again whether a gang may be evicted from failed cards.
const LOOK_AGAIN_MS: u64 = 10_000;

/// What follows for the bound members of a gang.
#[derive(Debug, Default)]
pub(crate) struct Consequences {
    /// The groups whose bound members are evicted, as positions in the gang's tree, and why; 0: the
    /// whole gang.
    pub(crate) evict: Vec<(usize, EvictionCause)>,
    /// When the gang must be looked at again although nothing happens.
    pub(crate) again_ms: Option<UnixMs>,
}

impl Consequences {
    /// Lets bound members be evicted at a time, or now if the time has come.
    fn evict_at(&mut self, due_ms: UnixMs, now_ms: UnixMs, group: usize, cause: EvictionCause) {
        if due_ms > now_ms {
            self.again_ms = Some(
                self.again_ms
                    .map_or(due_ms, |again_ms| again_ms.min(due_ms)),
            );
        } else {
            self.evict.push((group, cause));
        }
    }
}

/// Takes in how far the gang has come, and returns what follows if it ran and stays below its
/// minimum. While the PodGroup is not known, the minimum is not known: what has become of the gang
/// in the meantime is seen when the PodGroup is known.
///
/// `leading`: a process that does not lead evicts no pod, and plans no eviction for the time when
/// it leads.
pub(crate) fn follow_members(
    state: &ClusterState,
    settings: &Settings,
    progress: &mut ById<GangId, Progress>,
    id: GangId,
    counts: &Counts,
    leading: bool,
    now_ms: UnixMs,
) -> Consequences {
    let mut consequences = Consequences::default();
    if state.gangs[id].lacks_object() {
        progress[id].lost_ms = None;
        return consequences;
    }
    let lost = follow_start(state, progress, id, counts, now_ms);
    follow_losses(state, progress, id, counts, lost, now_ms);
    let grace = match state.gangs[id].spec.staleness_grace_ms {
        Some(grace) => u64::try_from(grace).ok(),
        None => settings.staleness_grace_ms,
    };
    if let (Some(lost_ms), Some(grace)) = (progress[id].lost_ms, grace) {
        let due_ms = lost_ms.saturating_add(grace);
        if due_ms > now_ms || (counts.needed > 0 && leading) {
            // tests plant bugs here: evict-the-rest
            consequences.evict_at(due_ms, now_ms, 0, EvictionCause::Stale);
        }
    }
    consequences
}

/// Takes in how far the gang and its sub-groups have come. Returns whether a complete gang has lost
/// members since the last look.
fn follow_start(
    state: &ClusterState,
    progress: &mut ById<GangId, Progress>,
    id: GangId,
    counts: &Counts,
    now_ms: UnixMs,
) -> bool {
    let complete = Start::Complete { since_ms: now_ms };
    let completed = sub_groups::follow(state, &mut progress[id], id, now_ms);
    let start = progress[id].start;
    let with_place = counts.bound + counts.assumed + counts.succeeded;
    let first_look = (start == Start::NotBegun && counts.bound > 0)
        .then(|| first_look::first_look(state, id, counts, now_ms));
    // The minimum may have been raised while the gang was bound.
    let finished = !matches!(start, Start::Complete { .. })
        && (counts.met || (counts.bound > 0 && first_look::lacks(state, id, &has_started)[0] == 0));
    let gang = &mut progress[id];
    let mut lost = gang.count_places(&state.gangs[id], with_place);
    gang.start = match (start, first_look) {
        _ if counts.bound + counts.assumed == 0 => {
            gang.staleness = None;
            Start::NotBegun
        }
        (_, Some(FirstLook::Complete { lost_ms, shown })) => {
            // tests plant bugs here: loss-before-a-start
            lost = lost_ms.is_some();
            gang.lost_ms = lost_ms;
            gang.staleness = shown;
            complete
        }
        (_, None) if finished => complete,
        (_, Some(FirstLook::Unfinished)) | (Start::NotBegun, None) => {
            Start::Unfinished { stuck_ms: None }
        }
        (known, None) => known,
    };
    // The pause of a sub-group that is refused again and again must not end because the rest of
    // the gang runs.
    let settled = gang.sub_groups.is_empty() || completed;
    if matches!(gang.start, Start::Complete { .. }) && counts.met && settled {
        gang.end_backoff();
    }
    lost && matches!(gang.start, Start::Complete { .. })
}

/// Notes since when a gang is below its minimum because it lost members. A gang in a queue that is
/// gone, say, is not evicted for that: it could not come back to its minimum there.
fn follow_losses(
    state: &ClusterState,
    progress: &mut ById<GangId, Progress>,
    id: GangId,
    counts: &Counts,
    lost: bool,
    now_ms: UnixMs,
) {
    let own = &mut progress[id];
    // Only a loss starts the clock, never a minimum that was raised.
    own.bereaved |= lost;
    // The binding of a replacement may still fail: until it has a node the loss stands.
    own.bereaved &= !counts.met && own.has_places() && !own.is_unfinished();
    let stale = own.bereaved && counts.bound > 0;
    let may_return = || counts.needed == 0 || judge::admit(state, progress, id, counts).is_ok();
    let stale = stale && may_return();
    let own = &mut progress[id];
    own.lost_ms = stale.then(|| own.lost_ms.unwrap_or(now_ms));
}

/// What follows for an unfinished gang, or for sub-groups that were cut off, where they cannot be
/// completed: members cannot be placed, or there is no room for them. While a binding is under way,
/// it is not known whether the gang or the sub-group can be completed.
///
/// `has_turn`: the gang is still to be tried.
pub(crate) fn follow_unfinished(
    state: &ClusterState,
    progress: &mut ById<GangId, Progress>,
    id: GangId,
    counts: &Counts,
    has_turn: bool,
    leading: bool,
    now_ms: UnixMs,
) -> Consequences {
    let mut consequences = Consequences::default();
    let gang = &state.gangs[id];
    let unfinished = unfinished_of(state, progress, id);
    if let Some(tree) = gang.tree().filter(|_| !unfinished.is_empty()) {
        let assumed = by_leaf(state, gang, &is_assumed);
        for group in unfinished {
            let waits = has_turn || below(tree, &assumed, group) > 0;
            let start = progress[id].sub_groups.get_mut(&tree.group(group).name);
            if let Some(since_ms) = start.and_then(|start| start.stuck(waits, leading, now_ms)) {
                let due_ms = since_ms.saturating_add(UNWIND_AFTER_MS);
                consequences.evict_at(due_ms, now_ms, group, EvictionCause::Unwind);
            }
        }
    }
    let waits = has_turn || counts.assumed > 0 || counts.bound == 0 || counts.needed == 0;
    if let Some(since_ms) = progress[id].start.stuck(waits, leading, now_ms) {
        let due_ms = since_ms.saturating_add(UNWIND_AFTER_MS);
        // tests plant bugs here: unwind
        consequences.evict_at(due_ms, now_ms, 0, EvictionCause::Unwind);
    }
    consequences
}

/// What follows for a gang that runs on failed cards. While bindings are under way nothing does:
/// the members that they bind would be left behind.
pub(crate) fn follow_failed_cards(
    state: &ClusterState,
    id: GangId,
    counts: &Counts,
    leading: bool,
    now_ms: UnixMs,
) -> Consequences {
    let mut consequences = Consequences::default();
    let due_ms = failed_cards::evicts_as_shown_ms(state, id);
    let Some(due_ms) = due_ms.filter(|_| leading && counts.assumed == 0) else {
        return consequences;
    };
    if due_ms > now_ms || failed_cards::is_due(state, id, now_ms) {
        consequences.evict_at(due_ms, now_ms, 0, EvictionCause::CardFailed);
    } else {
        consequences.again_ms = Some(now_ms.saturating_add(LOOK_AGAIN_MS));
    }
    consequences
}
