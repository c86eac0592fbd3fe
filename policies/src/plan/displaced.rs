//! Which plans were ended for which other gangs.
//!
//! The order across queues has circles: a small gang may come before a gang of another queue that
//! comes before a third one, which comes before the small gang, because how much each asks for
//! counts. If each ended the plan of the next one, planning would never end. So a gang ends no plan
//! of a gang that has, by itself or through others, ended one of its own: the plan that stands
//! first stands.

use crate::ids::GangId;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The gangs for which plans of each gang were ended. Followed from gang to gang, they make no
/// circle.
#[derive(Debug, Default)]
pub(super) struct Displaced {
    by: BTreeMap<GangId, BTreeSet<GangId>>,
}

impl Displaced {
    /// Notes that a plan of a gang was ended for `first`.
    pub(super) fn note(&mut self, gang: GangId, first: GangId) {
        self.by.entry(gang).or_default().insert(first);
    }

    /// Forgets a gang whose plan has ended otherwise than for another gang, or that is gone.
    pub(super) fn forget(&mut self, gang: GangId) {
        self.by.remove(&gang);
        self.by.retain(|_, firsts| {
            firsts.remove(&gang);
            !firsts.is_empty()
        });
    }

    /// Forgets all gangs.
    pub(super) fn clear(&mut self) {
        self.by.clear();
    }

    /// The gangs for which a plan of a gang was ended, those for which plans of these were ended,
    /// and so on.
    pub(super) fn firsts_of(&self, gang: GangId) -> BTreeSet<GangId> {
        let mut found: BTreeSet<GangId> = BTreeSet::new();
        let mut open: Vec<GangId> = Vec::from([gang]);
        while let Some(next) = open.pop() {
            for first in self.by.get(&next).into_iter().flatten() {
                if found.insert(*first) {
                    open.push(*first);
                }
            }
        }
        found
    }
}
