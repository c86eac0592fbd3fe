//! Where each gang stands that waits.

use crate::gangs::wait::Wait;
use crate::plan::order::PlaceInLine;

/// What the planner knows of a gang.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// For what it waits, if it does.
    pub(crate) wait: Wait,
    /// Its place in the line of its queue: as a candidate, or refused and parked.
    pub(crate) place: Option<PlaceInLine>,
    /// The fingerprint of the last try, so that an event that changes nothing about it wakes
    /// nobody.
    pub(crate) tried: u64,
}

impl Waiting {
    /// Whether it was refused, and is parked until something changes.
    pub(crate) fn is_parked(&self) -> bool {
        matches!(self.wait, Wait::Room(..))
    }
}
