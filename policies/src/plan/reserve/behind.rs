//! Gangs that would fit now, but for promises to others.
//!
//! When promises change, all of them may start. Of gangs that ask for one and the same thing only
//! the first one in the line of their queue is tried then: while it has to wait, so have those
//! behind it that run for at least as long.
//!
//! ```text
//!  TRIED --refused because of promises--> ASLEEP --first of those alike, and promises change--+
//!    ^                                      |                                                |
//!    |     the gang before it has started, or has to wait and runs for longer               |
//!    +-------------------------- ASKED <----+------------------------------------------------+
//! ```

use crate::gangs::request;
use crate::ids::{GangId, Id};
use crate::plan::order::CandidateKey;
use crate::queues::QueueId;
use crate::state::ClusterState;
use crate::state::sets::take_out;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Gangs of one queue that ask for one and the same thing: where one of them delays a promise,
/// each other one that runs for at least as long does, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alike {
    queue: QueueId,
    kind: u64,
    /// The only gang of its sort, because more counts than what it asks for.
    alone: Option<GangId>,
}

/// Which gangs a gang is like, and where it stands among them.
type Place = (Alike, CandidateKey);

/// The gangs that would fit now, but for promises to others.
#[derive(Debug, Default)]
pub(super) struct Behind {
    asleep: BTreeMap<Alike, BTreeSet<(CandidateKey, GangId)>>,
    /// Where each sleeping gang is in `asleep`.
    known: BTreeMap<GangId, Place>,
    /// The gangs that were woken and of which it is not known yet whether they start.
    asked: BTreeMap<GangId, Place>,
}

impl Alike {
    /// What a gang that was refused asks for. `is_promised`: it has a promise of its own, so that
    /// other promises are in its way than in that of others.
    pub(super) fn of(
        state: &ClusterState,
        queue: QueueId,
        gang: GangId,
        is_promised: bool,
    ) -> Self {
        let members = state.gangs[gang].members.iter();
        let mut classes = members.map(|pod| state.pods[*pod].class);
        let is_plain = !is_promised
            && state.gangs[gang].tree().is_none()
            && classes.all(|class| {
                let has_volumes = state.classes[class].shape.volumes.is_some();
                !has_volumes && state.counts_by_amounts(class)
            })
            && !state.has_related_members(gang);
        Self {
            queue,
            kind: if is_plain {
                request::kind(state, gang)
            } else {
                0
            },
            alone: (!is_plain).then_some(gang),
        }
    }
}

impl Behind {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The gangs that sleep.
    pub(super) fn gangs(&self) -> impl Iterator<Item = GangId> + '_ {
        self.known.keys().copied()
    }

    /// Lets a gang that was refused because of promises sleep.
    pub(super) fn add(&mut self, gang: GangId, alike: Alike, key: CandidateKey) {
        let asleep = self.asleep.entry(alike).or_default();
        asleep.insert((key.clone(), gang));
        self.known.insert(gang, (alike, key));
    }

    /// A gang is woken: it is to be tried.
    pub(super) fn ask(&mut self, gang: GangId) {
        let place = self.wake(gang);
        self.asked.extend(place.map(|place| (gang, place)));
    }

    /// A gang that was asked is no longer: it was refused. Returns where it stood; `None`: it was
    /// not asked.
    pub(super) fn take_asked(&mut self, gang: GangId) -> Option<Place> {
        self.asked.remove(&gang)
    }

    /// A gang has started, or has gone. Returns the next one that is alike, if it was asked.
    pub(super) fn leave(&mut self, gang: GangId) -> Option<GangId> {
        self.wake(gang);
        let place = self.take_asked(gang)?;
        self.after(&place).next()
    }

    /// The first gang of each sort.
    pub(super) fn first(&self) -> Vec<GangId> {
        let first = self.asleep.values().filter_map(BTreeSet::first);
        first.map(|(_, gang)| *gang).collect()
    }

    fn wake(&mut self, gang: GangId) -> Option<Place> {
        let (alike, key) = self.known.remove(&gang)?;
        let member = (key, gang);
        take_out(&mut self.asleep, &alike, &member);
        Some((alike, member.0))
    }

    /// The sleeping gangs that are alike, from a place on.
    pub(super) fn after(&self, (alike, key): &Place) -> impl Iterator<Item = GangId> + '_ {
        let from = (key.clone(), GangId::new(0));
        let asleep = self.asleep.get(alike).into_iter();
        asleep.flat_map(move |asleep| asleep.range(from.clone()..).map(|(_, gang)| *gang))
    }
}
