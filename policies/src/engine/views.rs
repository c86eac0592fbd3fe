//! What shells, metrics and tests may ask.

use crate::bind::Binder;
use crate::engine::Engine;
use crate::explain::{Explanation, NotFound, Subject};
use crate::facts::{Uid, UnixMs};
use crate::plan::victims::Others;
use crate::reason::Reason;
use crate::report::{
    Forecast, Fragmentation, GangReport, GpuReport, Inventory, PodReport, PreferenceScores,
    QueueReport, Verdicts,
};
use crate::settings::Evictions;
use crate::status::Phase;
use crate::tell::explain::{Question, find};
use crate::tell::why::refused_now;
use crate::tell::{Scene, Teller, View, gpus, reports};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

impl Engine {
    /// Why a gang waits, or the gang of a pod.
    ///
    /// What is tried is undone, so no decision changes. Depends on the state alone: equal states
    /// give equal explanations. The trap: it looks at all nodes and gangs, so it is for questions
    /// of users and not for every step.
    ///
    /// # Errors
    /// No gang or pod has that name, or the pod is another scheduler's. The error says which name
    /// may have been meant.
    pub fn explain(&mut self, subject: Subject<'_>) -> Result<Explanation, NotFound> {
        #[cfg(feature = "planted-panic")]
        if let Subject::Gang(name) = subject {
            self.spring_planted_panic(name);
        }
        let (gang, pod) = find(&self.state, subject)?;
        Ok(self.what_if(|engine| {
            let queue = engine.planner.waiting()[gang].place.as_ref();
            let queue = queue.map(|(queue, _)| *queue);
            let others = queue.map_or_else(Others::default, |queue| engine.others(queue, gang));
            let (_, mut scene, _) = engine.telling();
            let reason = refused_now(&mut scene, gang);
            let (state, settings) = (&mut engine.state, &engine.settings);
            let (planner, progress, now_ms) = (&engine.planner, &engine.progress, engine.now_ms);
            let start = reason.and_then(|reason| {
                planner.foresee(state, settings, progress, (gang, reason), now_ms)
            });
            let question = Question {
                gang,
                pod,
                others,
                start,
            };
            let (teller, mut scene, _) = engine.telling();
            teller.explain(&mut scene, &question)
        }))
    }

    /// Answers a question by trying, where all that is tried is undone: it is no news for a search,
    /// or for the holders of room.
    pub(super) fn what_if<T>(&mut self, answer: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.state.changes.end();
        let stirred = self.state.holds.take_stirred();
        let answer = answer(self);
        self.planner.note_undone(before, self.state.changes.end());
        self.state.holds.restore_stirred(stirred);
        answer
    }

    /// Goes on with other rules for evicting pods so that gangs can start. For shells that keep an
    /// engine from evicting while they build up a state, and then explain it.
    pub fn set_evictions(&mut self, evictions: Evictions) {
        self.settings.evictions = evictions;
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

    /// All GPUs, in the order of models and resources.
    #[must_use]
    pub fn gpu_reports(&self) -> Vec<GpuReport> {
        gpus::gpu_reports(&self.state)
    }

    /// How many gangs are in each phase, with the reason of the gangs that wait.
    #[must_use]
    pub fn gang_counts(&self) -> BTreeMap<(Phase, Option<Reason>), u32> {
        self.teller.gang_counts(self.view())
    }

    /// Which nodes would take one more pod of the shape that this pod has, by the filters and the
    /// counts that decisions are made with; its gang and its queue are not asked. `None`: there is
    /// no such pod.
    ///
    /// A pod that asks for what is not supported, or that has a problem, is not placed whatever
    /// this says.
    #[must_use]
    pub fn verdicts(&mut self, pod: Uid) -> Option<Verdicts> {
        let pod = *self.state.pod_ids.get(&pod)?;
        Some(reports::verdicts(&mut self.state, pod))
    }

    /// What a pod prefers of each node that fits it; `None`: there is no such pod.
    #[must_use]
    pub fn preferences(&mut self, pod: Uid) -> Option<BTreeMap<Box<str>, PreferenceScores>> {
        let pod = *self.state.pod_ids.get(&pod)?;
        Some(reports::preferences(&mut self.state, pod))
    }

    /// Where every pod is, also pods of other schedulers, and what every node holds.
    ///
    /// The trap: it looks at the whole state, as [`Engine::audit`] does.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        reports::inventory(&self.state)
    }

    /// How much of the cluster's free GPUs is of no use for the target workload: the one of the
    /// settings, else the pods of ours that were seen since the engine began. The workload of these
    /// pods is worked out again whenever their number has grown by an eighth; when many are
    /// counted, every count is halved.
    ///
    /// Looks at the nodes that have changed since the last call.
    #[must_use]
    pub fn fragmentation(&mut self) -> Fragmentation {
        self.state.fragmentation()
    }

    /// Whether there is a hold, so that gangs may wait although they would fit.
    #[must_use]
    pub fn holds_room(&self) -> bool {
        !self.state.holds.is_empty()
    }

    /// The forecasts that have come to pass since the last call, the oldest first; of many, the
    /// last 100,000.
    pub fn take_forecasts(&mut self) -> impl Iterator<Item = Forecast> + use<> {
        let misaligned = self.state.numa.take_misaligned();
        self.forecasts.note_misaligned(misaligned);
        self.forecasts.take()
    }

    /// The gangs that are promised a start, each with the time of it, in the order in which they
    /// were promised. Empty without [`Settings::reservations`](crate::settings::Settings). Reads
    /// what is known, so it is cheap enough for every step.
    ///
    /// A time may have passed: the gang is tried in the next step.
    pub fn promised_starts(&self) -> impl Iterator<Item = (&str, UnixMs)> {
        let promised = self.planner.promised_starts();
        promised.map(|(gang, at_ms)| (&*self.state.gangs[gang].name, at_ms))
    }

    /// The gangs that would fit now and wait because others were promised a start, in no order that
    /// means anything. As cheap as [`Engine::promised_starts`].
    pub fn gangs_behind_promises(&self) -> impl Iterator<Item = &str> {
        let behind = self.planner.gangs_behind_promises();
        behind.map(|gang| &*self.state.gangs[gang].name)
    }

    /// How many requests are under way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.binder.outbox.in_flight()
    }

    /// Makes everything that is told of refused gangs anew, so that it is true now, and lets it be
    /// written in the next steps. For shells that print one state.
    pub fn review(&mut self) {
        let (teller, mut scene, binder) = self.telling();
        teller.review_all(&mut scene, &mut binder.outbox);
        self.unfinished = true;
    }

    /// The teller, with what it reads and with what it sends.
    pub(super) fn telling(&mut self) -> (&mut Teller, Scene<'_>, &mut Binder) {
        let scene = Scene {
            state: &mut self.state,
            settings: &self.settings,
            progress: &self.progress,
            waiting: self.planner.waiting(),
            now_ms: self.now_ms,
        };
        (&mut self.teller, scene, &mut self.binder)
    }

    fn view(&self) -> View<'_> {
        View {
            state: &self.state,
            settings: &self.settings,
            progress: &self.progress,
            waiting: self.planner.waiting(),
            now_ms: self.now_ms,
        }
    }
}
