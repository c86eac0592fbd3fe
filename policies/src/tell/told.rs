//! The status and the events that users were last told of each gang.

use crate::facts::{PodGroupFacts, Uid, UnixMs};
use crate::reason::Reason;
use crate::status::{PodGroupStatus, Staleness};
use crate::tell::why::Said;

/// The status and the events that users were last told of one gang.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The condition `Stale`, and since when the gang was complete of which it tells.
    pub(crate) staleness: Option<(UnixMs, Staleness)>,
    /// Whether it was scheduled when it was last looked at, and when that last changed.
    pub(crate) scheduled: (bool, UnixMs),
    /// The status that was last handed out to be written, and the PodGroup to which.
    pub(crate) reported: Option<(Uid, PodGroupStatus)>,
    /// The reason that was last announced.
    pub(crate) announced: Option<Reason>,
    /// What is told of it since it was refused.
    pub(crate) said: Option<Said>,
    /// It was refused since, or something has happened: what is told is to be made anew.
    pub(crate) is_stale: bool,
}

impl Told {
    /// The status that was last handed out to be written to a PodGroup.
    pub(crate) fn reported(&self, to: Option<&PodGroupFacts>) -> Option<&PodGroupStatus> {
        let (uid, status) = self.reported.as_ref()?;
        to.is_some_and(|object| object.uid == *uid)
            .then_some(status)
    }
}
