//! What shells, metrics and tests may ask.

use crate::bind::Binder;
use crate::engine::Engine;
use crate::explain::{Explanation, NotFound, Subject};
use crate::reason::Reason;
use crate::report::{Fragmentation, GangReport, Inventory, PodReport, QueueReport};
use crate::status::Phase;
use crate::tell::{Teller, View, reports};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

impl Engine {
    /// Why a gang waits, or the gang of a pod.
    ///
    /// Changes nothing, and depends on the state alone: the same state gives the same explanation.
    /// Looks at all nodes and gangs, so it is for whoever asks, not for every step.
    ///
    /// # Errors
    /// If there is nothing of that name; says what may have been meant.
    pub fn explain(&self, subject: Subject<'_>) -> Result<Explanation, NotFound> {
        self.teller.explain(self.view(), subject)
    }

    /// All pods of ours, in the order of namespace, name and UID.
    #[must_use]
    pub fn pod_reports(&self) -> Vec<PodReport> {
        self.teller.pod_reports(self.view())
    }

    /// All gangs, in the order of their names.
    #[must_use]
    pub fn gang_reports(&self) -> Vec<GangReport> {
        self.teller.gang_reports(self.view())
    }

    /// All queues, parents before children, siblings by name.
    #[must_use]
    pub fn queue_reports(&mut self) -> Vec<QueueReport> {
        self.teller.queue_reports(&mut self.state)
    }

    /// How many gangs are in each phase, with the reason of those that wait.
    #[must_use]
    pub fn gang_counts(&self) -> BTreeMap<(Phase, Option<Reason>), u32> {
        self.teller.gang_counts(self.view())
    }

    /// Where every pod is, those of other schedulers included, and what every node holds.
    ///
    /// Looks at the whole state, as [`Engine::audit`] does.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        reports::inventory(&self.state)
    }

    /// How much of the cluster's free GPUs is of no use for the target workload: for the one of the
    /// settings, or else for the pods of ours that were seen since the engine began. That one is
    /// worked out again each time when they have become more by an eighth; when many are counted,
    /// every count is halved.
    ///
    /// Looks at the nodes that have changed since the last call.
    #[must_use]
    pub fn fragmentation(&mut self) -> Fragmentation {
        self.state.fragmentation()
    }

    /// How many requests are under way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.binder.outbox.in_flight()
    }

    /// Lets everything that is told of refused gangs be made anew in the next steps, so that it is
    /// true now. For shells that print one state.
    pub fn review(&mut self) {
        let (teller, view, binder) = self.telling();
        teller.review_all(view, &mut binder.outbox);
        self.unfinished = true;
    }

    /// The teller, with what it reads and with what it sends.
    pub(super) fn telling(&mut self) -> (&mut Teller, View<'_>, &mut Binder) {
        let view = View {
            state: &self.state,
            settings: &self.settings,
            progress: &self.progress,
            waiting: &self.planner.waiting,
            now_ms: self.now_ms,
        };
        (&mut self.teller, view, &mut self.binder)
    }

    fn view(&self) -> View<'_> {
        View {
            state: &self.state,
            settings: &self.settings,
            progress: &self.progress,
            waiting: &self.planner.waiting,
            now_ms: self.now_ms,
        }
    }
}
