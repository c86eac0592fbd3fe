//! The status and the events that users were last told of each gang.

use crate::facts::{PodGroupFacts, Uid, UnixMs};
use crate::reason::Reason;
use crate::status::{PodGroupStatus, Staleness};
use crate::tell::why::Said;
use alloc::boxed::Box;

/// The status and the events that users were last told of one gang.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The condition `Stale`, and since when the gang had been complete when it was made.
    pub(super) staleness: Option<(UnixMs, Staleness)>,
    /// Whether the gang was scheduled when it was last looked at, and since when; 0: it was never
    /// looked at.
    pub(super) scheduled: (bool, UnixMs),
    /// The status that was last handed out to be written, and the UID of its PodGroup.
    pub(super) reported: Option<(Uid, PodGroupStatus)>,
    /// Whether the gang's minimum was protected from other queues when this was last worked out;
    /// `None`: it held nothing, or it was not worked out yet.
    pub(super) protected: Option<bool>,
    /// When what the gang asks for was last seen to change.
    pub(super) specified_ms: UnixMs,
    /// The reason that was last published as a Kubernetes event.
    pub(super) announced: Option<Reason>,
    /// What is told of the last refusal; `None`: the gang was not refused, or was not told yet.
    pub(super) said: Option<Box<Said>>,
    /// Since `said` was made the gang was refused again, or `said` is to be reviewed.
    pub(super) is_stale: bool,
}

impl Told {
    /// The status that was last handed out to be written to this PodGroup; `None`: none was.
    pub(super) fn reported(&self, to: Option<&PodGroupFacts>) -> Option<&PodGroupStatus> {
        let (uid, status) = self.reported.as_ref()?;
        to.is_some_and(|object| object.uid == *uid)
            .then_some(status)
    }
}
