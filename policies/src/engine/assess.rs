//! What a gang needs and whether it can be tried: looked at whenever an event touches it.

use super::Engine;
use super::counts::{Counts, by_leaf, count, has_place};
use super::outbox::StatusKey;
use super::timers::Timer;
use crate::facts::{GroupSource, PodGroupFacts, UnixMs};
use crate::ids::{GangId, PodId};
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::settings::LeafOrder;
use crate::state::gang::{
    CandidateKey, CandidateKind, Gang, GangKey, GangSpec, Start, Tally, Verdict, Wait,
};
use crate::state::membership::job_minimum;
use crate::state::pod::{Own, Stage};
use alloc::{format, string::String, vec::Vec};
use core::hash::{Hash, Hasher};

/// The queue of whoever names none.
pub(crate) const DEFAULT_QUEUE: &str = "default";

impl Engine {
    /// Looks at every gang that was touched since the last time.
    pub(crate) fn assess_touched(&mut self, now_ms: UnixMs) {
        while let Some(gang) = self.state.touched.pop_first() {
            if self.state.gangs.get(gang).is_some() {
                self.in_hand(gang, |engine| engine.assess(gang, now_ms));
            }
        }
    }

    fn assess(&mut self, id: GangId, now_ms: UnixMs) {
        let gang = &self.state.gangs[id];
        if gang.members.is_empty() && gang.object.is_none() {
            self.remove_gang(id);
            return;
        }
        let spec = self.spec_of(&self.state.gangs[id]);
        let gang = &mut self.state.gangs[id];
        if gang.spec != spec {
            gang.specified_ms = now_ms;
            gang.spec = spec;
        }
        self.state.note_submitted(id);
        self.assess_as_specified(id, now_ms);
    }

    /// Looks at a gang that asks for the same as before: only what has become of its members may
    /// be something else.
    pub(crate) fn assess_as_specified(&mut self, id: GangId, now_ms: UnixMs) {
        let counts = count(&self.state, id, now_ms);
        if counts.bound + counts.assumed + counts.waiting > 0 {
            self.note_jobs(id);
        }
        if let Some(verdict) = self.quarantined(id) {
            let wait = Wait::Held(verdict);
            self.settle_accounts(id, &wait, &counts);
            self.enter(id, wait, &counts);
        } else {
            self.follow_members(id, &counts, now_ms);
            let wait = self.judge(id, &counts, now_ms);
            self.settle_accounts(id, &wait, &counts);
            self.enter(id, wait, &counts);
            self.follow_unfinished(id, &counts, now_ms);
        }
        self.tally(id, &counts);
        self.report(id, &counts);
    }

    fn remove_gang(&mut self, id: GangId) {
        self.forget_search_of(id);
        self.forget_cut(id);
        self.leave_agenda(id);
        self.replace_tally(id, None);
        self.state.forget_submitted(id);
        if let Some(gang) = self.state.gangs.remove(id) {
            self.state.gang_ids.remove(&gang.key);
            self.dirty_queues = true;
        }
    }

    /// What the gang asks for: from its PodGroup, else from its pods.
    fn spec_of(&self, gang: &Gang) -> GangSpec {
        let members = || gang.members.iter().map(|id| &self.state.pods[*id]);
        let first = members().min_by_key(|pod| (pod.created_ms, &pod.name));
        let oldest = first.and_then(|pod| pod.own.as_deref());
        let lowest = members().map(|pod| pod.priority).min().unwrap_or(0);
        let mut spec = match &gang.object {
            Some(object) => self.spec_of_object(object, oldest, lowest),
            None => self.spec_of_pods(gang, oldest, lowest),
        };
        if gang.object.is_none() {
            spec.created_ms = first.map_or(0, |pod| pod.created_ms);
        }
        spec
    }

    fn spec_of_object(
        &self,
        object: &PodGroupFacts,
        oldest: Option<&Own>,
        lowest: i32,
    ) -> GangSpec {
        let class = object.priority_class.as_ref();
        let class = class.and_then(|name| self.state.priority_classes.get(name));
        // A group that names no queue follows its oldest pod.
        let queue = object.queue.as_deref();
        let queue = queue.or_else(|| oldest?.queue.as_deref());
        GangSpec {
            queue: self.state.submitted.name(queue.unwrap_or(DEFAULT_QUEUE)),
            minimum: object.minimum,
            priority: object
                .priority
                .or(class.map(|class| class.value))
                .unwrap_or(lowest),
            preemptible: object.preemptible.unwrap_or(true),
            topology: object.topology.clone().unwrap_or_default(),
            required_label: object.required_label.clone(),
            placement: object.placement,
            staleness_grace_ms: object.staleness_grace_ms,
            expected_runtime_ms: object.expected_runtime_ms,
            created_ms: object.created_ms,
        }
    }

    fn spec_of_pods(&self, gang: &Gang, oldest: Option<&Own>, lowest: i32) -> GangSpec {
        let Some(own) = oldest else {
            return GangSpec::default();
        };
        let minimum = match gang.key {
            GangKey::Owner(uid) => {
                let job = self.state.jobs.get(&uid).and_then(job_minimum);
                own.hints.min_member.or(job).unwrap_or(1)
            }
            GangKey::Deployment(..) => own.hints.min_member.unwrap_or(1),
            GangKey::Group(..) | GangKey::Pod(_) => 1,
        };
        // The bound members of a gang whose PodGroup is gone count in the queue for which they were
        // bound: the PodGroup named it.
        let bound = self.bound_queue(gang).filter(|_| gang.lacks_object());
        let queue = bound.or(own.queue.as_deref()).unwrap_or(DEFAULT_QUEUE);
        let mut spec = GangSpec {
            queue: self.state.submitted.name(queue),
            minimum,
            priority: lowest,
            preemptible: own.hints.preemptible.unwrap_or(true),
            placement: own.hints.placement,
            expected_runtime_ms: own.hints.expected_runtime_ms,
            ..GangSpec::default()
        };
        spec.topology.required = own.hints.topology_required.clone();
        spec.topology.preferred = own.hints.topology_preferred.clone();
        spec
    }

    /// The queue for which the first of the members was bound, by name.
    fn bound_queue<'a>(&'a self, gang: &Gang) -> Option<&'a str> {
        let members = gang.members.iter().map(|id| &self.state.pods[*id]);
        let bound = members.filter(|pod| pod.stage.is_bound());
        let queues =
            bound.filter_map(|pod| Some((&pod.name, pod.own.as_ref()?.bound_queue.as_deref()?)));
        queues.min().map(|(_, queue)| queue)
    }

    /// What the gang waits for.
    fn judge(&mut self, id: GangId, counts: &Counts, now_ms: UnixMs) -> Wait {
        if counts.have_ended() || self.state.gangs[id].is_others() {
            return Wait::Nothing;
        }
        if counts.waiting == 0 && (counts.needed == 0 || counts.created == 0) {
            return match self.missing_object(id) {
                // The members of a gang whose PodGroup is gone go on running.
                Some(_) if counts.created > 0 => Wait::Nothing,
                // A mistake in a PodGroup is told before its pods exist.
                _ if counts.needed > 0 => Wait::Held(match self.admitted(id, counts) {
                    Ok(()) => self.waiting_for_members(id, counts),
                    Err(verdict) => verdict,
                }),
                _ => Wait::Nothing,
            };
        }
        if let Some(verdict) = self.missing_object(id) {
            return Wait::Held(verdict);
        }
        if let Err(verdict) = self.admitted(id, counts) {
            return Wait::Held(verdict);
        }
        if counts.short || (counts.needed == 0 && counts.placeable == 0) {
            if let Some(verdict) = self.unplaceable(id, now_ms) {
                return Wait::Held(verdict);
            }
            return if counts.short {
                Wait::Held(self.waiting_for_members(id, counts))
            } else {
                Wait::Nothing
            };
        }
        if let Some(verdict) = self
            .domain_unknown(id)
            .or_else(|| self.sub_domain_unknown(id))
        {
            return Wait::Held(verdict);
        }
        Wait::Turn
    }

    /// Whether the gang makes sense and its queue takes it.
    fn admitted(&mut self, id: GangId, counts: &Counts) -> Result<(), Verdict> {
        if let Some(verdict) = self.bad_spec(id) {
            return Err(verdict);
        }
        self.admit(id, counts)?;
        self.resolve_topologies(id)
    }

    fn missing_object(&self, id: GangId) -> Option<Verdict> {
        let gang = &self.state.gangs[id];
        let GangKey::Group(source, namespace, name) = &gang.key else {
            return None;
        };
        if gang.object.is_some() {
            return None;
        }
        let kind = match source {
            GroupSource::GpuBatch => "PodGroup",
            GroupSource::Native => "scheduling.k8s.io PodGroup",
        };
        let message = format!("there is no {kind} {name:?} in namespace {namespace:?}");
        Some(Verdict::new(Reason::PodGroupNotFound, message))
    }

    /// The mistake in the PodGroup itself, if there is one.
    fn bad_spec(&self, id: GangId) -> Option<Verdict> {
        let object = self.state.gangs[id].object.as_ref()?;
        let tree = self.state.gangs[id].tree.as_ref();
        if let Some(problem) = object.problems.first().or(tree.err()) {
            let message = format!("{}: {}", problem.field, problem.message);
            return Some(Verdict::new(Reason::InvalidSpec, message));
        }
        if let Some(field) = object.unsupported.first() {
            let message = format!("{field} is not supported yet");
            return Some(Verdict::new(Reason::Unsupported, message));
        }
        let class = object
            .priority_class
            .as_ref()
            .filter(|_| object.priority.is_none())?;
        if self.state.priority_classes.contains_key(class) {
            return None;
        }
        let message = format!("spec.priorityClassName: there is no PriorityClass {class:?}");
        Some(Verdict::new(Reason::InvalidSpec, message))
    }

    /// Why waiting members cannot be placed: the first reason, by member name.
    fn unplaceable(&mut self, id: GangId, now_ms: UnixMs) -> Option<Verdict> {
        let mut members = self.state.gangs[id].members.clone();
        members.sort_by(|a, b| self.state.pods[*a].name.cmp(&self.state.pods[*b].name));
        let (verdict, again_ms) = members
            .iter()
            .find_map(|pod| self.hindrance(*pod, now_ms))?;
        if let Some(again_ms) = again_ms {
            self.timers.set(again_ms, Timer::Gang(id));
        }
        Some(verdict)
    }

    fn hindrance(&self, id: PodId, now_ms: UnixMs) -> Option<(Verdict, Option<UnixMs>)> {
        let pod = &self.state.pods[id];
        let own = pod
            .own
            .as_ref()
            .filter(|_| pod.stage == Stage::Waiting && !pod.deleting)?;
        let name = &pod.name;
        let held = |reason, message| Some((Verdict::new(reason, message), None));
        if own.pod_group.is_some() && own.native_group.is_some() {
            let message = format!(
                "pod {name} names a PodGroup by label and a native one in spec.schedulingGroup"
            );
            return held(Reason::ConflictingGroups, message);
        }
        if let Some(problem) = own.problems.first() {
            let message = format!("pod {name}: {}: {}", problem.field, problem.message);
            return held(Reason::InvalidSpec, message);
        }
        if let Some(field) = self.state.classes[pod.class].shape.unsupported.first() {
            let message = format!("pod {name}: {field} is not supported yet");
            return held(Reason::Unsupported, message);
        }
        if self.state.classes[pod.class].confined.to_slots {
            let message = format!(
                "pod {name}: nvidia.com/gpu: only nodes with slots of HAMi would do, which are not \
                 supported yet"
            );
            return held(Reason::Unsupported, message);
        }
        if let Some(message) = self.misplaced(pod, own) {
            return held(Reason::SubGroupNotFound, message);
        }
        if !own.gates.is_empty() {
            let message = format!("pod {name} has scheduling gates: {}", own.gates.join(", "));
            return held(Reason::SchedulingGated, message);
        }
        if pod.retry_at_ms > now_ms {
            let message = own.failure.as_deref().unwrap_or("a binding was refused");
            return Some((
                Verdict::new(Reason::BindingFailed, message),
                Some(pod.retry_at_ms),
            ));
        }
        let deadline_ms = self
            .state
            .job_deadline(pod)
            .filter(|deadline| *deadline > now_ms)?;
        let message = format!("pod {name}: its Job has not been seen yet");
        Some((
            Verdict::new(Reason::WaitingForMembers, message),
            Some(deadline_ms),
        ))
    }

    /// Whether the queue takes the gang. Closed queues and namespaces stop new gangs and surplus,
    /// never replacements.
    pub(super) fn admit(&self, id: GangId, counts: &Counts) -> Result<QueueId, Verdict> {
        let gang = &self.state.gangs[id];
        let labels = self.state.namespaces.get(&gang.namespace);
        let queues = &self.state.queues;
        let admitted = queues.admit(&gang.spec.queue, &gang.namespace, labels);
        admitted.or_else(|refusal| {
            // A raised minimum is no loss: the members that it adds are new.
            let replaces = counts.needed > 0 && (gang.bereaved || gang.is_unfinished());
            let replaces = replaces || !self.cut_off(id).is_empty();
            let open = matches!(
                refusal.reason,
                Reason::QueueClosed | Reason::NamespaceNotAllowed
            );
            match queues.find(&gang.spec.queue) {
                Some(queue) if replaces && open => Ok(queue),
                _ => Err(Verdict::new(refusal.reason, refusal.message)),
            }
        })
    }

    /// Puts the gang where it now belongs: among the candidates, or parked, or nowhere.
    fn enter(&mut self, id: GangId, wait: Wait, counts: &Counts) {
        let gang = &self.state.gangs[id];
        let parked = matches!(gang.wait, Wait::Room(..));
        if wait == Wait::Turn && parked && gang.tried == self.fingerprint(id, counts) {
            return;
        }
        self.leave_agenda(id);
        let turn = wait == Wait::Turn;
        self.state.gangs[id].wait = wait;
        if !turn {
            return;
        }
        let gang = &self.state.gangs[id];
        let Some(queue) = self.state.queues.find(&gang.spec.queue) else {
            return;
        };
        let unfinished = counts.needed > 0 && gang.is_unfinished();
        let kind = if unfinished || !self.cut_off(id).is_empty() {
            CandidateKind::Unfinished
        } else if counts.needed > 0 && gang.bereaved {
            CandidateKind::Replacement
        } else {
            CandidateKind::Ordinary
        };
        // Surplus begins to wait when the minimum is met.
        let since_ms = match gang.start {
            Start::Complete { since_ms } if counts.needed == 0 => since_ms,
            _ => gang.spec.created_ms,
        };
        let aged_ms = |aging_ms: u64| {
            let earlier_ms = i128::from(gang.spec.priority) * i128::from(aging_ms);
            let aged_ms = i128::from(since_ms) - earlier_ms;
            i64::try_from(aged_ms).unwrap_or(i64::MAX)
        };
        let key = CandidateKey {
            kind,
            aged_ms: self.settings.aging_ms.map_or(0, aged_ms),
            priority_descending: -i64::from(gang.spec.priority),
            surplus: counts.needed == 0,
            runtime_ms: match self.settings.leaf_order {
                LeafOrder::Age => 0,
                LeafOrder::ShortestFirst => gang.spec.expected_runtime_ms.unwrap_or(u64::MAX),
            },
            created_ms: gang.spec.created_ms,
            name: gang.name.clone(),
            namesake: gang.key.namesake(),
        };
        self.agenda.add(queue, key.clone(), id);
        self.state.gangs[id].place = Some((queue, key));
        self.show_heads(queue);
    }

    /// A hash of all that a try depends on: with an equal one, trying again gains nothing.
    pub(crate) fn fingerprint(&self, id: GangId, counts: &Counts) -> u64 {
        let gang = &self.state.gangs[id];
        let mut hasher = rustc_hash::FxHasher::default();
        self.state.rules_version.hash(&mut hasher);
        let queue = self.state.queues.find(&gang.spec.queue);
        queue
            .map(|queue| self.state.queues.rules(queue))
            .hash(&mut hasher);
        (gang.spec.priority, gang.spec.preemptible, &gang.spec.queue).hash(&mut hasher);
        (
            &gang.spec.topology,
            &gang.spec.required_label,
            gang.spec.placement,
        )
            .hash(&mut hasher);
        self.anchor(id).hash(&mut hasher);
        if let Some(tree) = gang.tree() {
            tree.hash(&mut hasher);
            by_leaf(&self.state, gang, &has_place).hash(&mut hasher);
        }
        (
            counts.needed,
            counts.bound,
            counts.assumed,
            counts.placeable,
        )
            .hash(&mut hasher);
        let mut waiting: Vec<_> = gang
            .members
            .iter()
            .filter(|pod| self.state.pods[**pod].stage == Stage::Waiting)
            .map(|pod| {
                let pod = &self.state.pods[*pod];
                (pod.uid, pod.class, gang.leaf_of(pod))
            })
            .collect();
        waiting.sort_unstable();
        waiting.hash(&mut hasher);
        hasher.finish()
    }

    /// Counts the gang in its queue and those above it, as one that waits or one that runs.
    fn tally(&mut self, id: GangId, counts: &Counts) {
        let gang = &self.state.gangs[id];
        let waits = counts.needed > 0 && gang.wait != Wait::Nothing;
        let runs = counts.needed == 0 && counts.bound > 0;
        let queue = self.state.queues.find(&gang.spec.queue);
        let now = queue
            .filter(|_| waits || runs)
            .map(|queue| Tally { queue, runs });
        self.replace_tally(id, now);
    }

    pub(crate) fn replace_tally(&mut self, id: GangId, now: Option<Tally>) {
        let before = core::mem::replace(&mut self.state.gangs[id].tally, now);
        if before == now {
            return;
        }
        for (tally, one) in [(before, -1), (now, 1)] {
            let Some(Tally { queue, runs }) = tally else {
                continue;
            };
            for queue in self.state.queues.path(queue) {
                let (pending, running) = self.gangs_by_queue.entry(queue).or_default();
                let count = if runs { running } else { pending };
                *count = count.saturating_add_signed(one);
            }
        }
    }

    /// Sees to it that what has become of the gang is told. Of one that waits for its turn or for
    /// nothing, its pods have nothing to say, nor has anybody but its PodGroup.
    pub(crate) fn report(&mut self, id: GangId, counts: &Counts) {
        self.dirty_queues = true;
        let gang = &self.state.gangs[id];
        let refused = gang.verdict().is_some();
        if refused || gang.object.is_some() || gang.announced.is_some() {
            self.outbox.status(StatusKey::Gang(id));
        }
        if !refused || counts.waiting == 0 || !self.outbox.writes_statuses() {
            return;
        }
        for pod in &self.state.gangs[id].members {
            let pod = &self.state.pods[*pod];
            if pod.stage == Stage::Waiting {
                self.outbox.status(StatusKey::Pod(pod.uid));
            }
        }
    }
}

pub(crate) fn too_few_members(counts: &Counts) -> Verdict {
    let Counts {
        created, expected, ..
    } = counts;
    let ended = counts.succeeded + counts.failed;
    let leaving = created - ended - counts.bound - counts.assumed - counts.waiting;
    let exist = created - counts.failed;
    let failed = match counts.failed {
        0 => String::new(),
        failed => format!(" beside {failed} that failed"),
    };
    let leave = match leaving {
        0 => String::new(),
        1 => ", 1 of them is being deleted".into(),
        _ => format!(", {leaving} of them are being deleted"),
    };
    let message = format!("{exist} of at least {expected} members exist{failed}{leave}");
    Verdict::new(Reason::WaitingForMembers, message)
}
