//! The fair shares that users see: divided in slices, while everything goes on.

use super::filling::Division;
use super::ledger::Matrix;
use super::{GovernedId, QueueId, QueueTree};
use crate::facts::Amount;

/// The last fair shares and those to come.
#[derive(Debug, Default)]
pub(super) struct FairShares {
    /// Rises whenever something changes that shares depend on.
    version: u64,
    /// The last ones, and the version that they are of.
    divided: Option<(u64, Matrix)>,
    /// Those that are being worked out.
    under_way: Option<(u64, Division)>,
}

impl FairShares {
    /// Something has changed that shares depend on.
    pub(super) fn outdated(&mut self) {
        self.version += 1;
    }

    fn are_current(&self) -> bool {
        let version = self.divided.as_ref().map(|(version, _)| *version);
        version == Some(self.version)
    }

    /// The share of a queue when shares were last divided; 0 for a queue that was not there then.
    pub(super) fn of(&self, queue: QueueId, key: GovernedId) -> Amount {
        let shares = self.divided.as_ref().map(|(_, shares)| shares);
        shares.map_or(0, |shares| shares.get(queue, key))
    }
}

impl QueueTree {
    /// Whether nothing has changed that fair shares depend on since they were last worked out.
    #[must_use]
    pub fn shares_are_current(&self) -> bool {
        self.fair.are_current()
    }

    /// Goes on with working out fair shares until so much work is done, in units of about ten
    /// nanoseconds. Whether they are worked out: as of the call at which that began.
    pub fn divide(&mut self, work: &mut u64, until: u64) -> bool {
        if self.fair.under_way.is_none() && self.fair.are_current() {
            return true;
        }
        let (version, mut division) = match self.fair.under_way.take() {
            Some(under_way) => under_way,
            None => {
                let division = Division::new(&self.structure, &self.keys, &self.ledger);
                (self.fair.version, division)
            }
        };
        match division.advance(work, until) {
            Some(shares) => {
                self.fair.divided = Some((version, shares));
                true
            }
            None => {
                self.fair.under_way = Some((version, division));
                false
            }
        }
    }

    /// Works the fair shares out as of now, however long that takes: milliseconds with hundreds of
    /// busy queues.
    pub fn divide_all(&mut self) {
        while !self.fair.are_current() {
            self.divide(&mut 0, u64::MAX);
        }
    }
}
