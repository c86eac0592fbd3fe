//! Why a gang waits: in a sentence for its status, and taken apart on request.
//!
//! A sentence is made when a gang is refused (`words`). All else is worked out when somebody asks,
//! from what is there now: nothing that is explained can change a decision, the answer depends on
//! the state and not on its history, and the work is bounded by the nodes and the gangs.
//!
//! The place of a gang is found in the line of its queue (`line`), and the order of the queues is
//! computed once more by the demand that the planning loop itself compares. What each shape of the
//! members lacks is counted over all nodes (`room`), of each sub-group inside the domain that it
//! requires (`sub_groups`). The most members that have a place together are looked for
//! (`together`), and whose ends would do is tried on copies of their nodes (`ends`). What would
//! help is said last (`advice`).

mod advice;
mod ends;
mod held;
mod labels;
mod line;
mod more_nodes;
mod room;
mod shapes;
mod sub_groups;
mod together;
mod words;

pub(super) use more_nodes::more_nodes_would_help;
pub(super) use together::tree_to_place;
pub(super) use words::{Descriptions, model_limits};

use crate::explain::{
    Ahead, ExcessReport, Explanation, Holder, NodeCounts, NotFound, Proof, QueueStanding, Rank,
    Refused, Rivals, Shortage, Standing, Subject, Together, nodes_that,
};
use crate::facts::GroupSource;
use crate::gangs::counts::{Counts, count};
use crate::gangs::request;
use crate::gangs::wait::{Shortfall, Wait, Wake};
use crate::ids::{ClassId, GangId};
use crate::names::{Names, suggestion};
use crate::place::{Scope, widest_scope};
use crate::plan::bounds;
use crate::queues::{Bound, Excess, QueueId};
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::gang::Gang;
use crate::state::pod::Pod;
use crate::tell::why::Said;
use crate::tell::{Teller, View, faults};
use advice::{Ends, Tried, remedies};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use held::{Held, held};
use room::{Missing, level, shortage};
use shapes::told_apart;
use words::{area_name, asks};

/// How many shapes of members are explained.
const SHAPES_EXPLAINED: usize = 4;

impl Teller {
    /// Why a gang waits, or the gang of a pod.
    ///
    /// # Errors
    /// If there is nothing of that name; says what may have been meant.
    pub(crate) fn explain(
        &self,
        view: View<'_>,
        subject: Subject<'_>,
    ) -> Result<Explanation, NotFound> {
        match subject {
            Subject::Gang(name) => Ok(self.explain_gang(view, gang_of_name(view.state, name)?)),
            Subject::Pod(name) => {
                let pod = pod_of_name(view.state, name)?;
                let gang = pod.own.as_ref().and_then(|own| own.gang);
                let gang =
                    gang.ok_or_else(|| NotFound(format!("the pod {name} is another scheduler's")))?;
                let mut explanation = self.explain_gang(view, gang);
                explanation.pod = Some(self.pod_report(view, pod));
                Ok(explanation)
            }
        }
    }

    fn explain_gang(&self, view: View<'_>, id: GangId) -> Explanation {
        let View {
            state,
            settings,
            progress,
            waiting,
            now_ms,
        } = view;
        let gang = &state.gangs[id];
        let counts = count(state, id, now_ms);
        let status = self.gang_status(view, id, &counts);
        let verdict = self.why_it_waits(state, waiting, id);
        let turn = (waiting[id].wait == Wait::Turn).then_some(Reason::WaitingForTurn);
        let mut explanation = Explanation {
            gang: (&*state.name_of(gang)).into(),
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
            standing: self.standing(view, id),
            remedies: Vec::new(),
            notes: faults::notes(state, gang),
        };
        let mut tried = Tried::default();
        if let (Wait::Room(refused, wake), Some((queue, _))) =
            (&waiting[id].wait, &waiting[id].place)
        {
            let said = self.told[id].said.as_ref();
            let (reason, wake, more_nodes_help) = said.map_or_else(
                || (refused.reason, wake, false),
                |Said { verdict, wake, .. }| (verdict.reason, wake, verdict.more_nodes_help),
            );
            let explained = Explained {
                view,
                gang: id,
                queue: *queue,
                counts: &counts,
            };
            explained.explain_room(reason, wake, &mut explanation);
            // What no node has comes first: whatever else is short, it is in vain.
            let in_vain =
                |one: &Shortage| one.unknown_resources.len() + one.unknown_labels.len() > 0;
            explanation.shortages.sort_by_key(|one| !in_vain(one));
            tried = together::explain_together(
                state,
                settings,
                progress,
                (id, *queue),
                &counts,
                &mut explanation,
                now_ms,
            );
            tried.other_models_help = more_nodes_help;
            tried.limits_are_used = explained.limits_are_used(wake);
        }
        explanation.remedies = remedies(&explanation, &tried, queue_is_fixed(gang));
        if explanation.reason == Some(Reason::QueueNotFound) {
            explanation
                .remedies
                .extend(queue_that_was_meant(state, gang));
        }
        explanation
    }
}

fn gang_of_name(state: &ClusterState, name: &str) -> Result<GangId, NotFound> {
    let ours = |(_, gang): &(GangId, &Gang)| !gang.is_others();
    let gangs = || state.gangs.iter().filter(ours);
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

fn pod_of_name<'a>(state: &'a ClusterState, name: &str) -> Result<&'a Pod, NotFound> {
    let is_named = |pod: &&Pod| {
        let parts = name.split_once('/');
        parts.is_some_and(|(ns, rest)| *pod.namespace == *ns && *pod.name == *rest)
    };
    let pods = || state.pods.iter().map(|(_, pod)| pod);
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

/// A gang that was refused, and is explained.
#[derive(Debug, Clone, Copy)]
struct Explained<'a> {
    view: View<'a>,
    gang: GangId,
    queue: QueueId,
    counts: &'a Counts,
}

/// Whether the object of a gang names its queue, which cannot be changed any more.
fn queue_is_fixed(gang: &Gang) -> bool {
    let object = gang.object.as_ref();
    object.is_some_and(|object| object.source == GroupSource::GpuBatch && object.queue.is_some())
}

/// The queue that a gang probably means which names one that is not there. Only queues that would
/// take it are any help.
fn queue_that_was_meant(state: &ClusterState, gang: &Gang) -> Option<String> {
    let queues = &state.queues;
    let labels = state.namespaces.get(&gang.namespace);
    let takes = |name: &&str| queues.admit(name, &gang.namespace, labels).is_ok();
    let ids = queues.ids();
    let others = ids.iter().map(|id| queues.name(*id)).filter(takes);
    suggestion(&gang.spec.queue, others)
}

impl Explained<'_> {
    /// Whether something is held under limits on GPU models that leave too little for the gang.
    fn limits_are_used(&self, wake: &Wake) -> bool {
        let (Wake::AnyRoom(classes, _), state) = (wake, self.view.state) else {
            return false;
        };
        let mut classes = classes.iter().filter_map(|class| state.classes.get(*class));
        classes.any(|class| {
            let asked = class
                .gpus
                .saturating_mul(u64::from(self.counts.needed.max(1)));
            let queues = &state.queues;
            queues.tight_model_limits_are_used(self.queue, asked, &class.models)
        })
    }

    /// What the gang lacks as things are now.
    fn explain_room(&self, reason: Reason, wake: &Wake, explanation: &mut Explanation) {
        let (state, now_ms) = (self.view.state, self.view.now_ms);
        let of_queue = reason.is_of_queue();
        if let Some(over) = self.over()
            && !of_queue
            && self.wants_all()
        {
            // The bound has been reached since, and comes first.
            explanation.reason = Some(over.reason());
            self.explain_excess(&over, explanation);
            return;
        }
        if !of_queue {
            explanation.proof = Some(match (wake, reason) {
                (Wake::Over(_), _) | (_, Reason::DoesNotFit) => Proof::Proved,
                _ => Proof::Bounded,
            });
        }
        match wake {
            Wake::Queue(_) | Wake::Over(Shortfall::Bound { .. }) => {
                if let Some(over) = self.over() {
                    self.explain_excess(&over, explanation);
                }
            }
            Wake::Over(Shortfall::Room { class, scope, need })
                if state.classes.get(*class).is_some() =>
            {
                let missing = self.missing(*class, *scope, *need);
                let (shortage, message) = shortage(state, &missing, now_ms);
                if !of_queue {
                    explanation.message = message;
                }
                explanation.shortages.push(shortage);
            }
            Wake::Over(_) => {}
            Wake::AnyRoom(..) if state.gangs[self.gang].tree().is_some() => {
                explanation.shortages = sub_groups::shortages_of_sub_groups(self);
            }
            Wake::AnyRoom(..) => {
                let told = self.shortages_of_shapes();
                if let [(_, message)] = told.as_slice()
                    && !of_queue
                {
                    explanation.message.clone_from(message);
                }
                explanation.shortages = told.into_iter().map(|(shortage, _)| shortage).collect();
            }
        }
    }

    /// The bound of a queue that the gang would exceed now.
    fn over(&self) -> Option<Excess> {
        let View {
            state,
            settings,
            progress,
            now_ms,
            ..
        } = self.view;
        bounds::over(state, settings, progress, self.gang, self.queue, now_ms)
    }

    /// The shortages of members of each shape, and a sentence for each.
    fn shortages_of_shapes(&self) -> Vec<(Shortage, String)> {
        let View {
            state,
            settings,
            now_ms,
            ..
        } = self.view;
        let (id, queue) = (self.gang, self.queue);
        let request = request::request_of_waiting(state, settings, id, queue, self.counts, now_ms);
        let scope = widest_scope(state, request.near, request.anchor);
        let groups = request.groups.iter().take(SHAPES_EXPLAINED);
        let shortages = groups.map(|group| {
            let need = group.pods.len().min(request.need) as u64;
            shortage(state, &self.missing(group.class, scope, need), now_ms)
        });
        shortages.collect()
    }

    /// Members of one shape that may find no room.
    fn missing(&self, class: ClassId, scope: Scope, need: u64) -> Missing {
        Missing {
            class,
            scope,
            need,
            sub_groups: Vec::new(),
            required_by: Vec::new(),
            inside: Vec::new(),
            surplus: self.counts.needed == 0,
            gang: self.gang,
            limits: request::model_limits(self.view.state, self.queue),
        }
    }

    /// Explains a gang that exceeds a bound, and its members if even empty nodes would not take
    /// them: then no room under the bound helps by itself.
    fn explain_excess(&self, over: &Excess, explanation: &mut Explanation) {
        let state = self.view.state;
        explanation.message = state.queues.describe(over);
        explanation.excess = Some(excess_report(state, over));
        let mut shortages = if state.gangs[self.gang].tree().is_some() {
            sub_groups::shortages_of_sub_groups(self)
        } else if self.wants_all() {
            let told = self.shortages_of_shapes().into_iter();
            told.map(|(shortage, _)| shortage).collect()
        } else {
            // Some of the waiting members are not needed: those without room may be among them.
            Vec::new()
        };
        shortages.retain(|shortage| shortage.fits_empty < shortage.need);
        explanation.shortages = shortages;
    }

    /// Whether it needs every member that waits, so that no choice of them asks for less.
    fn wants_all(&self) -> bool {
        let counts = self.counts;
        let is_plain = self.view.state.gangs[self.gang].tree().is_none();
        is_plain && counts.placeable == counts.needed.max(1)
    }
}

fn excess_report(state: &ClusterState, over: &Excess) -> ExcessReport {
    let queues = &state.queues;
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
