//! Explanations on request: why a gang waits, where the nearest miss is, what would free it.
//!
//! The shortages of each sub-group are counted inside the domain that it requires (`sub_groups`),
//! the most members that have a place together are looked for (`together`), and whose ends would do
//! is tried on copies of their nodes (`ends`). An explanation needs no more than `&Engine`.

mod ends;
mod sub_groups;
mod together;

use super::Engine;
use super::counts::{Counts, count};
use crate::explain::{
    self, ExcessReport, Explanation, Missing, NotFound, Proof, Shortage, Subject, Tried,
};
use crate::facts::{GroupSource, UnixMs};
use crate::ids::{ClassId, GangId};
use crate::names::{Names, suggestion};
use crate::place::{Request, widest_scope};
use crate::queues::{Bound, Excess, QueueId};
use crate::reason::Reason;
use crate::state::gang::{Gang, Scope, Shortfall, Verdict, Wait, Wake};
use crate::state::pod::Pod;
use alloc::{format, string::String, vec::Vec};
use core::cmp::Reverse;

/// How many shapes of members are explained.
const SHAPES_EXPLAINED: usize = 4;

impl Engine {
    /// Why a gang waits, or the gang of a pod.
    ///
    /// Changes nothing, and depends on the state alone: the same state gives the same explanation.
    /// Looks at all nodes and gangs, so it is for whoever asks, not for every step.
    ///
    /// # Errors
    /// If there is nothing of that name; says what may have been meant.
    pub fn explain(&self, subject: Subject<'_>) -> Result<Explanation, NotFound> {
        match subject {
            Subject::Gang(name) => Ok(self.explain_gang(self.gang_of_name(name)?)),
            Subject::Pod(name) => {
                let pod = self.pod_of_name(name)?;
                let gang = pod.own.as_ref().and_then(|own| own.gang);
                let gang =
                    gang.ok_or_else(|| NotFound(format!("the pod {name} is another scheduler's")))?;
                let mut explanation = self.explain_gang(gang);
                explanation.pod = Some(self.pod_report(pod));
                Ok(explanation)
            }
        }
    }

    fn gang_of_name(&self, name: &str) -> Result<GangId, NotFound> {
        let ours = |(_, gang): &(GangId, &Gang)| !gang.is_others();
        let gangs = || self.state.gangs.iter().filter(ours);
        let is_named =
            |gang: &Gang| &*gang.name == name || gang.long_name().is_some_and(|long| long == name);
        let named = gangs().filter(|(_, gang)| is_named(gang));
        // Groups of both sources may have one name, and so may pods of two owners.
        let native = |gang: &Gang| gang.native_name().is_some();
        let first = named.min_by_key(|(_, gang)| (native(gang), gang.key.clone()));
        first.map(|(id, _)| id).ok_or_else(|| {
            let known = gangs().map(|(_, gang)| &*gang.name).collect();
            NotFound(
                Names {
                    kind: "gang",
                    known,
                }
                .missing(name),
            )
        })
    }

    fn pod_of_name(&self, name: &str) -> Result<&Pod, NotFound> {
        let is_named = |pod: &&Pod| {
            let parts = name.split_once('/');
            parts.is_some_and(|(ns, rest)| *pod.namespace == *ns && *pod.name == *rest)
        };
        let pods = || self.state.pods.iter().map(|(_, pod)| pod);
        // While the old one is leaving, another may have its name.
        let newest = |pod: &&Pod| (pod.deleting, Reverse(pod.created_ms), pod.uid);
        pods().filter(is_named).min_by_key(newest).ok_or_else(|| {
            let ours = pods().filter(|pod| pod.own.is_some());
            let names: Vec<String> = ours
                .map(|pod| format!("{}/{}", pod.namespace, pod.name))
                .collect();
            let known = names.iter().map(String::as_str).collect();
            NotFound(Names { kind: "pod", known }.missing(name))
        })
    }

    fn explain_gang(&self, id: GangId) -> Explanation {
        let now_ms = self.now_ms;
        let gang = &self.state.gangs[id];
        let counts = count(&self.state, id, now_ms);
        let status = self.gang_status(id, &counts, now_ms);
        let verdict = self.why_it_waits(id);
        let turn = (gang.wait == Wait::Turn).then_some(Reason::WaitingForTurn);
        let mut explanation = Explanation {
            gang: (&*self.state.name_of(gang)).into(),
            pod: None,
            queue: (&*gang.spec.queue).into(),
            phase: status.phase,
            members: status.members,
            needed: counts.needed,
            reason: verdict.as_ref().map(|verdict| verdict.reason).or(turn),
            message: verdict.map_or_else(|| status.message.into(), |v| v.message.clone()),
            proof: None,
            together: None,
            shortages: Vec::new(),
            excess: None,
            standing: explain::standing(&self.state, id, |gang, queue| {
                self.demand_of(gang, queue, UnixMs::MAX)
            }),
            remedies: Vec::new(),
            notes: self.notes(gang),
        };
        let mut tried = Tried::default();
        if let (Wait::Room(verdict, wake), Some((queue, _))) = (&gang.wait, &gang.place) {
            self.explain_room((id, *queue), &counts, (verdict, wake), &mut explanation);
            // What no node has comes first: whatever else is short, it is in vain.
            let in_vain =
                |one: &Shortage| one.unknown_resources.len() + one.unknown_labels.len() > 0;
            explanation.shortages.sort_by_key(|one| !in_vain(one));
            tried = self.explain_together((id, *queue), &counts, &mut explanation);
            tried.other_models_help = verdict.more_nodes_help;
            tried.limits_are_used = self.limits_are_used(*queue, &counts, wake);
        }
        let object = gang.object.as_ref();
        let queue_is_fixed = object
            .is_some_and(|object| object.source == GroupSource::GpuBatch && object.queue.is_some());
        explanation.remedies = explain::remedies(&explanation, &tried, queue_is_fixed);
        if explanation.reason == Some(Reason::QueueNotFound) {
            // Only of queues that would take it: no others are any help.
            let queues = &self.state.queues;
            let labels = self.state.namespaces.get(&gang.namespace);
            let takes = |name: &&str| queues.admit(name, &gang.namespace, labels).is_ok();
            let ids = queues.ids();
            let others = ids.iter().map(|id| queues.name(*id)).filter(takes);
            let meant = suggestion(&gang.spec.queue, others);
            explanation.remedies.extend(meant);
        }
        explanation
    }

    /// Whether something is held under limits on GPU models that leave too little for a gang.
    fn limits_are_used(&self, queue: QueueId, counts: &Counts, wake: &Wake) -> bool {
        let Wake::AnyRoom(classes, _) = wake else {
            return false;
        };
        let mut classes = classes
            .iter()
            .filter_map(|class| self.state.classes.get(*class));
        classes.any(|class| {
            let asked = class.gpus.saturating_mul(u64::from(counts.needed.max(1)));
            let queues = &self.state.queues;
            queues.tight_model_limits_are_used(queue, asked, &class.models)
        })
    }

    /// What a refused gang lacks as things are now.
    fn explain_room(
        &self,
        (id, queue): (GangId, QueueId),
        counts: &Counts,
        (verdict, wake): (&Verdict, &Wake),
        explanation: &mut Explanation,
    ) {
        let of_queue = verdict.reason.is_of_queue();
        if let Some(over) = self.over(id, queue)
            && !of_queue
            && self.wants_all(id, counts)
        {
            // The bound has been reached since, and comes first.
            explanation.reason = Some(over.reason());
            self.explain_excess((id, queue), counts, &over, explanation);
            return;
        }
        if !of_queue {
            explanation.proof = Some(match (wake, verdict.reason) {
                (Wake::Over(_), _) | (_, Reason::DoesNotFit) => Proof::Proved,
                _ => Proof::Bounded,
            });
        }
        let missing = |class, scope, need| self.missing((id, queue), counts, class, scope, need);
        match wake {
            Wake::Queue(_) | Wake::Over(Shortfall::Bound { .. }) => {
                if let Some(over) = self.over(id, queue) {
                    self.explain_excess((id, queue), counts, &over, explanation);
                }
            }
            Wake::Over(Shortfall::Room { class, scope, need })
                if self.state.classes.get(*class).is_some() =>
            {
                let missing = missing(*class, *scope, *need);
                let (shortage, message) = explain::shortage(&self.state, &missing, self.now_ms);
                if !of_queue {
                    explanation.message = message;
                }
                explanation.shortages.push(shortage);
            }
            Wake::Over(_) => {}
            Wake::AnyRoom(..) if self.state.gangs[id].tree().is_some() => {
                explanation.shortages = self.shortages_of_sub_groups(id, queue, counts);
            }
            Wake::AnyRoom(..) => {
                let request = self.request_of_waiting(id, queue, counts);
                let told = self.shortages_of_shapes(&request, missing);
                if let [(_, message)] = told.as_slice()
                    && !of_queue
                {
                    explanation.message.clone_from(message);
                }
                explanation.shortages = told.into_iter().map(|(shortage, _)| shortage).collect();
            }
        }
    }

    /// The shortages of members of each shape, and a sentence for each.
    fn shortages_of_shapes(
        &self,
        request: &Request,
        missing: impl Fn(ClassId, Scope, u64) -> Missing,
    ) -> Vec<(Shortage, String)> {
        let scope = widest_scope(&self.state, request.near, request.anchor);
        let groups = request.groups.iter().take(SHAPES_EXPLAINED);
        let shortages = groups.map(|group| {
            let need = group.pods.len().min(request.need) as u64;
            let missing = missing(group.class, scope, need);
            explain::shortage(&self.state, &missing, self.now_ms)
        });
        shortages.collect()
    }

    /// Members of one shape of a gang that may find no room.
    fn missing(
        &self,
        (gang, queue): (GangId, QueueId),
        counts: &Counts,
        class: ClassId,
        scope: Scope,
        need: u64,
    ) -> Missing {
        Missing {
            class,
            scope,
            need,
            sub_groups: Vec::new(),
            required_by: Vec::new(),
            inside: Vec::new(),
            surplus: counts.needed == 0,
            gang,
            limits: self.state.queues.has_model_limits(queue).then_some(queue),
        }
    }

    /// Explains a gang that exceeds a bound, and its members if even empty nodes would not take
    /// them: then no room under the bound helps by itself.
    fn explain_excess(
        &self,
        (id, queue): (GangId, QueueId),
        counts: &Counts,
        over: &Excess,
        explanation: &mut Explanation,
    ) {
        explanation.message = self.state.queues.describe(over);
        explanation.excess = Some(self.excess_report(over));
        let mut shortages = if self.state.gangs[id].tree().is_some() {
            self.shortages_of_sub_groups(id, queue, counts)
        } else if !self.wants_all(id, counts) {
            // Some of the waiting members are not needed: those without room may be among them.
            Vec::new()
        } else {
            let request = self.request_of_waiting(id, queue, counts);
            let missing =
                |class, scope, need| self.missing((id, queue), counts, class, scope, need);
            let told = self.shortages_of_shapes(&request, missing);
            told.into_iter().map(|(shortage, _)| shortage).collect()
        };
        shortages.retain(|shortage| shortage.fits_empty < shortage.need);
        explanation.shortages = shortages;
    }

    /// Whether it needs every member that waits, so that no choice of them asks for less.
    fn wants_all(&self, id: GangId, counts: &Counts) -> bool {
        self.state.gangs[id].tree().is_none() && counts.placeable == counts.needed.max(1)
    }

    /// The bound that the gang would exceed now.
    pub(crate) fn over(&self, id: GangId, queue: QueueId) -> Option<Excess> {
        let demand = self.demand_of(id, queue, self.now_ms);
        self.within_bounds(id, queue, &demand).err()
    }

    fn excess_report(&self, over: &Excess) -> ExcessReport {
        let queues = &self.state.queues;
        ExcessReport {
            queue: queues.name(over.queue).into(),
            resource: queues.governed_name(over.key).into(),
            bound: match over.bound {
                Bound::Limit => "limit",
                Bound::Quota => "quota",
            },
            allowed: over.allowed,
            held: over.held,
            asked: over.asked,
        }
    }
}
