//! The fair shares that users see: worked out in slices, so that the engine is never held up.

use super::filling::Division;
use super::ledger::Matrix;
use super::{GovernedId, QueueId, QueueTree};
use crate::facts::Amount;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The last fair shares, and the division that works out the next.
#[derive(Debug, Default)]
pub(super) struct FairShares {
    /// Rises whenever something changes that fair shares depend on.
    version: u64,
    /// The last fair shares, and the version that they are of.
    divided: Option<(u64, Matrix)>,
    /// The queues, the root among them, and the keys of which the quotas of their children promised
    /// more than there was, when the last fair shares were worked out.
    overcommitted: BTreeSet<(QueueId, GovernedId)>,
    /// The division under way, and the version that it is of.
    under_way: Option<(u64, Division)>,
}

impl FairShares {
    /// Notes that something has changed that fair shares depend on.
    pub(super) fn outdated(&mut self) {
        self.version += 1;
    }

    fn are_current(&self) -> bool {
        self.divided_version() == Some(self.version)
    }

    fn divided_version(&self) -> Option<u64> {
        self.divided.as_ref().map(|(version, _)| *version)
    }

    /// The last fair share of a queue, in base units; `None`: none was worked out yet.
    pub(super) fn last_of(&self, queue: QueueId, key: GovernedId) -> Option<Amount> {
        let (_, shares) = self.divided.as_ref()?;
        Some(shares.get(queue, key))
    }

    /// Whether the quotas of the children of a queue promised too much of a key, as far as they
    /// were wanted, when the last fair shares were worked out.
    pub(super) fn is_overcommitted(&self, parent: QueueId, key: GovernedId) -> bool {
        self.overcommitted.contains(&(parent, key))
    }

    /// The last fair share of a queue, in base units; 0 for a queue that did not exist then.
    pub(super) fn of(&self, queue: QueueId, key: GovernedId) -> Amount {
        self.last_of(queue, key).unwrap_or(0)
    }
}

impl QueueTree {
    /// A number that rises whenever something changes that fair shares depend on.
    pub(crate) fn shares_version(&self) -> u64 {
        self.fair.version
    }

    /// The version of the fair shares that were last worked out; `None`: none were.
    pub(crate) fn divided_version(&self) -> Option<u64> {
        self.fair.divided_version()
    }

    /// Works on the fair shares until `work` has reached `until`, in units of about ten
    /// nanoseconds; adds to `work` what was done. Returns whether a division is finished.
    ///
    /// The trap: a division is of the state at the call that began it. What changed since needs
    /// another one: then [`QueueTree::divided_version`] is lower than
    /// [`QueueTree::shares_version`].
    pub(crate) fn divide(&mut self, work: &mut u64, until: u64) -> bool {
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
                self.find_overcommitted();
                true
            }
            None => {
                self.fair.under_way = Some((version, division));
                false
            }
        }
    }

    /// Finds out where quotas promise more than there is.
    fn find_overcommitted(&mut self) {
        self.fair.overcommitted.clear();
        for parent in self.structure.with_root().to_vec() {
            let divided: Vec<GovernedId> = self.structure.divided_below(parent).collect();
            for key in divided {
                let too_much = || {
                    let there_is = u128::from(self.there_is(parent, key));
                    self.promised_below(parent, key) > there_is
                };
                if !self.is_model(key) && too_much() {
                    self.fair.overcommitted.insert((parent, key));
                }
            }
        }
    }

    /// Works out the fair shares as of now, however long that takes: milliseconds with hundreds of
    /// busy queues.
    pub(crate) fn divide_all(&mut self) {
        while !self.fair.are_current() {
            self.divide(&mut 0, u64::MAX);
        }
    }
}
