//! Explanations on request: why a gang waits, where the nearest miss is, what would free it.
//!
//! The shortages of each sub-group are counted inside the domain that it requires (`sub_groups`),
//! the most members that have a place together are looked for (`together`), and whose ends would do
//! is tried in a transaction that is rolled back (`ends`), so that asking changes no decision.

mod ends;
mod sub_groups;
mod together;

use crate::engine::{Engine, faults, reports};
use crate::explain;
use crate::explain::{
    ExcessReport, Explanation, Missing, NotFound, Proof, Shortage, Subject, Tried,
};
use crate::facts::{GroupSource, UnixMs};
use crate::gangs::counts::{Counts, count};
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Shortfall, Verdict, Wait, Wake};
use crate::gangs::{demand, request};
use crate::ids::{ById, ClassId, GangId};
use crate::names::{Names, suggestion};
use crate::place::{Request, Scope, widest_scope};
use crate::plan::bounds;
use crate::plan::waiting::Waiting;
use crate::queues::{Bound, Excess, QueueId};
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::gang::Gang;
use crate::state::pod::Pod;
use crate::tell::told::Told;
use crate::tell::{gang, why};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// How many shapes of members are explained.
const SHAPES_EXPLAINED: usize = 4;

impl Engine {
    /// Why a gang waits, or the gang of a pod.
    ///
    /// What is tried is undone, and no decision becomes another one. Depends on the state alone:
    /// equal states give equal explanations.
    /// Looks at all nodes and gangs, so it is for whoever asks, not for every step.
    ///
    /// # Errors
    /// If there is nothing of that name; says what may have been meant.
    pub fn explain(&mut self, subject: Subject<'_>) -> Result<Explanation, NotFound> {
        match subject {
            Subject::Gang(name) => {
                let gang = gang_of_name(&self.state, name)?;
                Ok(self.explain_gang(gang))
            }
            Subject::Pod(name) => {
                let pod = pod_of_name(&self.state, name)?;
                let gang = pod.own.as_ref().and_then(|own| own.gang);
                let gang =
                    gang.ok_or_else(|| NotFound(format!("the pod {name} is another scheduler's")))?;
                let report = reports::pod_report(&self.state, &self.planner.waiting, pod);
                let mut explanation = self.explain_gang(gang);
                explanation.pod = Some(report);
                Ok(explanation)
            }
        }
    }

    fn explain_gang(&mut self, gang: GangId) -> Explanation {
        explain_gang(
            &mut self.state,
            &self.settings,
            &self.told,
            &self.planner.waiting,
            &self.progress,
            gang,
            self.now_ms,
        )
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
struct Refused<'a> {
    gang: GangId,
    queue: QueueId,
    counts: &'a Counts,
    now_ms: UnixMs,
}

fn explain_gang(
    state: &mut ClusterState,
    settings: &Settings,
    told: &ById<GangId, Told>,
    waiting: &ById<GangId, Waiting>,
    progress: &ById<GangId, Progress>,
    id: GangId,
    now_ms: UnixMs,
) -> Explanation {
    let gang = &state.gangs[id];
    let counts = count(state, id, now_ms);
    let status = gang::gang_status(state, told, waiting, progress, id, &counts, now_ms);
    let verdict = why::why_it_waits(state, waiting, id);
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
        standing: explain::standing(state, id, waiting, |gang, queue| {
            demand::demand_of(state, settings, progress, gang, queue, UnixMs::MAX)
        }),
        remedies: Vec::new(),
        notes: faults::notes(state, gang),
    };
    let mut tried = Tried::default();
    if let (Wait::Room(verdict, wake), Some((queue, _))) = (&waiting[id].wait, &waiting[id].place) {
        let refused = Refused {
            gang: id,
            queue: *queue,
            counts: &counts,
            now_ms,
        };
        explain_room(
            state,
            settings,
            progress,
            refused,
            (verdict, wake),
            &mut explanation,
        );
        // What no node has comes first: whatever else is short, it is in vain.
        let in_vain = |one: &Shortage| one.unknown_resources.len() + one.unknown_labels.len() > 0;
        explanation.shortages.sort_by_key(|one| !in_vain(one));
        tried = together::explain_together(
            state,
            settings,
            progress,
            (id, *queue),
            &mut explanation,
            now_ms,
        );
        tried.other_models_help = verdict.more_nodes_help;
        tried.limits_are_used = limits_are_used(state, *queue, &counts, wake);
    }
    let gang = &state.gangs[id];
    explanation.remedies = explain::remedies(&explanation, &tried, queue_is_fixed(gang));
    if explanation.reason == Some(Reason::QueueNotFound) {
        explanation
            .remedies
            .extend(queue_that_was_meant(state, gang));
    }
    explanation
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

/// Whether something is held under limits on GPU models that leave too little for a gang.
fn limits_are_used(state: &ClusterState, queue: QueueId, counts: &Counts, wake: &Wake) -> bool {
    let Wake::AnyRoom(classes, _) = wake else {
        return false;
    };
    let mut classes = classes.iter().filter_map(|class| state.classes.get(*class));
    classes.any(|class| {
        let asked = class.gpus.saturating_mul(u64::from(counts.needed.max(1)));
        let queues = &state.queues;
        queues.tight_model_limits_are_used(queue, asked, &class.models)
    })
}

/// What a refused gang lacks as things are now.
fn explain_room(
    state: &ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    refused: Refused<'_>,
    (verdict, wake): (&Verdict, &Wake),
    explanation: &mut Explanation,
) {
    let Refused {
        gang: id,
        queue,
        counts,
        now_ms,
    } = refused;
    let of_queue = verdict.reason.is_of_queue();
    if let Some(over) = bounds::excess(state, settings, progress, id, queue, now_ms)
        && !of_queue
        && wants_all(state, id, counts)
    {
        // The bound has been reached since, and comes first.
        explanation.reason = Some(over.reason());
        explain_excess(state, settings, progress, refused, &over, explanation);
        return;
    }
    if !of_queue {
        explanation.proof = Some(match (wake, verdict.reason) {
            (Wake::Over(_), _) | (_, Reason::DoesNotFit) => Proof::Proved,
            _ => Proof::Bounded,
        });
    }
    let missing = |class, scope, need| missing(state, (id, queue), counts, class, scope, need);
    match wake {
        Wake::Queue(_) | Wake::Over(Shortfall::Bound { .. }) => {
            if let Some(over) = bounds::excess(state, settings, progress, id, queue, now_ms) {
                explain_excess(state, settings, progress, refused, &over, explanation);
            }
        }
        Wake::Over(Shortfall::Room { class, scope, need })
            if state.classes.get(*class).is_some() =>
        {
            let missing = missing(*class, *scope, *need);
            let (shortage, message) = explain::shortage(state, &missing, now_ms);
            if !of_queue {
                explanation.message = message;
            }
            explanation.shortages.push(shortage);
        }
        Wake::Over(_) => {}
        Wake::AnyRoom(..) if state.gangs[id].tree().is_some() => {
            explanation.shortages = sub_groups::shortages_of_sub_groups(
                state, settings, progress, id, queue, counts, now_ms,
            );
        }
        Wake::AnyRoom(..) => {
            let request = request::request_of_waiting(state, settings, id, queue, counts, now_ms);
            let told = shortages_of_shapes(state, &request, missing, now_ms);
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
    state: &ClusterState,
    request: &Request,
    missing: impl Fn(ClassId, Scope, u64) -> Missing,
    now_ms: UnixMs,
) -> Vec<(Shortage, String)> {
    let root = request.root();
    let scope = widest_scope(state, root.near, root.anchor);
    let groups = root.pods.iter().take(SHAPES_EXPLAINED);
    let shortages = groups.map(|group| {
        let need = group.pods.len().min(root.need) as u64;
        let missing = missing(group.class, scope, need);
        explain::shortage(state, &missing, now_ms)
    });
    shortages.collect()
}

/// Members of one shape of a gang that may find no room.
fn missing(
    state: &ClusterState,
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
        limits: state.queues.has_model_limits(queue).then_some(queue),
    }
}

/// Explains a gang that exceeds a bound, and its members if even empty nodes would not take
/// them: then no room under the bound helps by itself.
fn explain_excess(
    state: &ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    refused: Refused<'_>,
    over: &Excess,
    explanation: &mut Explanation,
) {
    let Refused {
        gang: id,
        queue,
        counts,
        now_ms,
    } = refused;
    explanation.message = state.queues.describe(over);
    explanation.excess = Some(excess_report(state, over));
    let mut shortages = if state.gangs[id].tree().is_some() {
        sub_groups::shortages_of_sub_groups(state, settings, progress, id, queue, counts, now_ms)
    } else if !wants_all(state, id, counts) {
        // Some of the waiting members are not needed: those without room may be among them.
        Vec::new()
    } else {
        let request = request::request_of_waiting(state, settings, id, queue, counts, now_ms);
        let missing = |class, scope, need| missing(state, (id, queue), counts, class, scope, need);
        let told = shortages_of_shapes(state, &request, missing, now_ms);
        told.into_iter().map(|(shortage, _)| shortage).collect()
    };
    shortages.retain(|shortage| shortage.fits_empty < shortage.need);
    explanation.shortages = shortages;
}

/// Whether it needs every member that waits, so that no choice of them asks for less.
fn wants_all(state: &ClusterState, id: GangId, counts: &Counts) -> bool {
    state.gangs[id].tree().is_none() && counts.placeable == counts.needed.max(1)
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
