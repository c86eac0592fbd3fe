//! The status and the events that users were last told of each gang.

use crate::facts::{PodGroupFacts, Uid, UnixMs};
use crate::reason::Reason;
use crate::status::{PodGroupStatus, Staleness};

/// The status and the events that users were last told of one gang.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The condition `Stale`, and since when the gang was complete of which it tells.
    pub(crate) staleness: Option<(UnixMs, Staleness)>,
    /// Whether its status has said that it is scheduled, and when that last changed.
    pub(crate) scheduled: (bool, UnixMs),
    /// The status that was last handed out to be written, and the PodGroup to which.
    pub(crate) reported: Option<(Uid, PodGroupStatus)>,
    /// The reason that was last announced.
    pub(crate) announced: Option<Reason>,
}

impl Told {
    /// The status that was last handed out to be written to a PodGroup.
    pub(crate) fn reported(&self, to: Option<&PodGroupFacts>) -> Option<&PodGroupStatus> {
        let (uid, status) = self.reported.as_ref()?;
        to.is_some_and(|object| object.uid == *uid)
            .then_some(status)
    }
}
