//! How far a gang has come.

use crate::facts::UnixMs;
use crate::queues::QueueId;
use crate::state::gang::Gang;
use crate::state::pod::Pod;
use crate::status::Staleness;
use alloc::{boxed::Box, collections::BTreeMap};

/// How far a gang has come since its first member got a place.
///
/// ```text
///              a member gets a place             the minimum is bound
///  NOT BEGUN -------------------------> UNFINISHED -----------------> COMPLETE
///   ^   |                                |    ^                         |  ^
///   |   | it is seen with bound members  |    |                         |  |
///   |   +--- a member waited all along --|----+                         |  |
///   |   +--- else: it ran (see `first_look`) ---------------------------|--+
///   +------------------------------------+------------------------------+
///                          no member has a place any more
/// ```
///
/// An unfinished gang is completed or unwound at once. A complete gang that loses members keeps the
/// others for its `stalenessGracePeriod`.
///
/// A complete sub-group is unfinished, too, from when so many of its members are to be evicted for
/// another gang that its minimum is not left: if that plan ends half-way, what is left of the
/// sub-group is of no use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Start {
    /// No member has a place.
    #[default]
    NotBegun,
    /// Members have places, and the minimum has not been bound yet.
    Unfinished {
        /// When it became known that the gang cannot be completed as things are.
        stuck_ms: Option<UnixMs>,
    },
    /// The minimum was bound.
    Complete {
        /// When this engine first saw the gang complete.
        since_ms: UnixMs,
    },
}

impl Start {
    /// When the gang was first seen complete, if it is.
    pub(crate) fn complete_ms(self) -> Option<UnixMs> {
        match self {
            Self::Complete { since_ms } => Some(since_ms),
            Self::NotBegun | Self::Unfinished { .. } => None,
        }
    }

    /// Since when an unfinished gang or sub-group is known to have no way to be completed; `None`:
    /// the gang or sub-group is not unfinished, it still `waits` for an answer, or this process
    /// does not lead; when it leads again, the time counts anew.
    pub(crate) fn stuck(&mut self, waits: bool, leading: bool, now_ms: UnixMs) -> Option<UnixMs> {
        let Self::Unfinished { stuck_ms } = self else {
            return None;
        };
        if !leading {
            *stuck_ms = None;
            return None;
        }
        (!waits).then(|| *stuck_ms.get_or_insert(now_ms))
    }
}

/// How often in a row bindings of a gang were refused, and until when the gang is not tried again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Backoff {
    refusals: u32,
    until_ms: UnixMs,
    /// Bound members were evicted because a binding had been refused.
    unwound: bool,
}

/// How a gang counts in its queue and the queues above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) queue: QueueId,
    /// The gang's minimum is met; otherwise the gang waits.
    pub(crate) runs: bool,
}

/// How far one gang has come, and what it has been through.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// How far the gang has come.
    pub(crate) start: Start,
    /// How far each sub-group has come of which a member has a place, by name.
    pub(super) sub_groups: BTreeMap<Box<str>, Start>,
    /// The count of bindings that were refused, and the pause that follows from it.
    backoff: Backoff,
    /// A member has lost its place since the minimum was last met.
    pub(crate) bereaved: bool,
    /// The time, in Unix ms, at which the gang fell below its minimum by losing members. `None`:
    /// the gang has its minimum, no member is bound any more, or the gang's queue would not take
    /// the gang back.
    pub(crate) lost_ms: Option<UnixMs>,
    /// The condition `Stale` of the gang's PodGroup when this engine first saw the gang complete.
    pub(crate) staleness: Option<Staleness>,
    /// Bindings of members were under way at the last look.
    is_binding: bool,
    /// How the gang counts in its queue; `None`: it does not.
    tally: Option<Tally>,
    /// How many members had a place (or had succeeded) at the last look.
    with_place: u32,
    /// [`Gang::departed`] at the last look.
    departed: u32,
}

impl Progress {
    /// Whether a part of the gang is bound and the minimum never was.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self.start, Start::Unfinished { .. })
    }

    /// Whether a member is in a sub-group that is unfinished.
    pub(crate) fn is_in_unfinished_sub_group(&self, gang: &Gang, pod: &Pod) -> bool {
        let Some(tree) = gang.tree() else {
            return false;
        };
        gang.groups_of(pod).into_iter().any(|group| {
            let start = self.sub_groups.get(&tree.group(group).name);
            matches!(start, Some(Start::Unfinished { .. }))
        })
    }

    /// Whether any member had a place (or had succeeded) at the last look.
    pub(crate) fn has_places(&self) -> bool {
        self.with_place > 0
    }

    /// Notes a refused binding: the pause before the next try is twice as long as the last one, up
    /// to a limit. The limit is low while tries cost nothing, so that the gang starts soon after
    /// the cause is mended, and high once a try ended in evictions. The refusals of one try count
    /// once. `first_ms`: the length of the first pause. Returns when the pause ends.
    pub(crate) fn note_refused_binding(&mut self, now_ms: UnixMs, first_ms: u64) -> UnixMs {
        let backoff = &mut self.backoff;
        if now_ms >= backoff.until_ms {
            let doublings_max = if backoff.unwound { 6 } else { 3 };
            let wait_ms = first_ms.saturating_mul(1 << backoff.refusals.min(doublings_max));
            backoff.refusals = backoff.refusals.saturating_add(1);
            backoff.until_ms = now_ms.saturating_add(wait_ms);
        }
        backoff.until_ms
    }

    /// Notes that bound members are evicted because the gang, or one of its sub-groups, could not
    /// be completed.
    pub(crate) fn note_unwound(&mut self) {
        self.backoff.unwound = true;
    }

    /// Forgets the bindings that were refused.
    pub(super) fn end_backoff(&mut self) {
        self.backoff = Backoff::default();
    }

    /// Notes whether bindings of members are under way. Returns whether they have just ended.
    pub(crate) fn note_binding(&mut self, is_binding: bool) -> bool {
        core::mem::replace(&mut self.is_binding, is_binding) && !is_binding
    }

    /// How the gang counts in its queue; `None`: it does not.
    pub(crate) fn tally(&self) -> Option<Tally> {
        self.tally
    }

    /// Lets the gang count as this in its queue; `None`: it does not count. Returns how it counted
    /// before.
    pub(crate) fn replace_tally(&mut self, now: Option<Tally>) -> Option<Tally> {
        core::mem::replace(&mut self.tally, now)
    }

    /// Takes in how many members have a place now. Returns whether members have lost their places
    /// since the last look.
    pub(super) fn count_places(&mut self, gang: &Gang, with_place: u32) -> bool {
        let departed = gang.departed.saturating_sub(self.departed);
        let before = self.with_place.saturating_sub(departed);
        (self.with_place, self.departed) = (with_place, gang.departed);
        with_place < before
    }
}
