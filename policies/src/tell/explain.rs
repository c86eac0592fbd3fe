//! Explanations: why a gang waits, taken apart on request.
//!
//! The sentence of a refused gang is made when it is told (`why`). An explanation is worked out
//! when it is asked for, from the state as it is: it changes no decision, it depends on the state
//! and not on its history, and its work is bounded by the nodes and the gangs.
//!
//! The place of a gang is found in the line of its queue (`line`), and the order of the queues is
//! computed once more by the demand that the planning loop itself compares. What the members of
//! each shape lack is counted over all nodes (`room`); for a sub-group, inside the domain that it
//! requires (`sub_groups`). The most members that have a place together are searched for
//! (`together`), and the gangs whose ends would make enough room are found by trying, in a what-if
//! (`ends`), as are idle nodes whose cards would have to be cut in another way (`layouts`). What
//! would help is said last (`advice`). Of a gang that runs it is said which queues and gangs could
//! take its room (`takers`).

mod advice;
mod ends;
mod eviction;
mod layouts;
mod line;
mod occupants;
mod room;
mod sub_groups;
mod takers;
mod together;

use crate::explain::{
    Ahead, ExcessReport, ExpectedEnd, ExpectedStart, Explanation, KeptRoom, NodeCounts, NotFound,
    Occupant, Proof, QueueStanding, Rank, Refused, Rivals, Shortage, Standing, Subject, Together,
};
use crate::facts::{GroupSource, PodGroupFacts, Uid};
use crate::gangs::counts::{Counts, count};
use crate::gangs::request;
use crate::gangs::wait::{Shortfall, Wait, Wake};
use crate::gangs::wanted;
use crate::ids::{ClassId, GangId};
use crate::names::{Names, suggestion};
use crate::place::{Scope, widest_scope};
use crate::plan::bounds;
use crate::plan::reserve::foresight::{Foresight, Leaver};
use crate::plan::reserve::waits_for_room;
use crate::plan::victims::{self, Others};
use crate::queues::{Bound, Excess, QueueId};
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::gang::Gang;
use crate::state::pod::Pod;
use crate::tell::words::{area_name, asks, bound_in_words, told_apart};
use crate::tell::{Scene, Teller, View, cards, faults};
use crate::txn::Txn;
use advice::{Ends, ModelLimits, Tried, remedies};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use occupants::{Occupancy, occupancies};
use room::{Missing, level, shortage};

/// How many shapes of members are explained, at most.
const SHAPES_EXPLAINED: usize = 4;

/// What a user asks about a gang, with what the explanation needs and the state does not have: the
/// takings of other gangs, and when the gang is expected to start.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) gang: GangId,
    /// The pod that was asked about, if one was.
    pub(crate) pod: Option<Uid>,
    /// The takings of other gangs.
    pub(crate) others: Others,
    /// When the gang is expected to start.
    pub(crate) start: Option<Foresight>,
}

/// The gang that is to be explained, and the pod that was asked about.
///
/// # Errors
/// No gang or pod has that name, or the pod is another scheduler's. The error says which name may
/// have been meant.
pub(crate) fn find(
    state: &ClusterState,
    subject: Subject<'_>,
) -> Result<(GangId, Option<Uid>), NotFound> {
    match subject {
        Subject::Gang(name) => Ok((gang_of_name(state, name)?, None)),
        Subject::Pod(name) => {
            let pod = pod_of_name(state, name)?;
            let gang = pod.own.as_ref().and_then(|own| own.gang);
            let gang =
                gang.ok_or_else(|| NotFound(format!("the pod {name} is another scheduler's")))?;
            Ok((gang, Some(pod.uid)))
        }
    }
}

impl Teller {
    /// Explains why a gang waits.
    pub(crate) fn explain(&mut self, scene: &mut Scene<'_>, question: &Question) -> Explanation {
        let gang = question.gang;
        // What is held for the gang itself is not in its way.
        let mut txn = Txn::default();
        let start = txn.checkpoint();
        txn.give_up_own(scene.state, gang);
        // The sentence is made for this answer alone: what is told in statuses stays as it is.
        let told = &mut self.told[gang];
        let before = (told.said.take(), told.is_stale);
        self.say(scene, gang);
        let mut explanation = self.explain_gang(scene, question);
        let view = scene.view();
        let pod = question.pod.and_then(|uid| view.state.pod_ids.get(&uid));
        explanation.pod = pod.map(|pod| self.pod_report(view, &view.state.pods[*pod]));
        let told = &mut self.told[gang];
        (told.said, told.is_stale) = before;
        if explanation.reason == Some(Reason::QueueNotFound) {
            let meant = queue_that_was_meant(view.state, &view.state.gangs[gang]);
            explanation.remedies.extend(meant);
        }
        txn.rollback(scene.state, start);
        explanation
    }

    fn explain_gang(&self, scene: &mut Scene<'_>, question: &Question) -> Explanation {
        let id = question.gang;
        let standing = line::standing(scene, id);
        let view = scene.view();
        let Scene {
            settings,
            progress,
            waiting,
            now_ms,
            ..
        } = *scene;
        let counts = count(scene.state, id, now_ms);
        let mut explanation = self.begin(view, id, &counts, standing);
        let mut tried = Tried::default();
        if let (Some(said), Some((queue, _))) = (&self.told[id].said, &waiting[id].place) {
            let (reason, wake) = said.reason_and_wake();
            let explained = Explained {
                view,
                gang: id,
                queue: *queue,
                counts: &counts,
            };
            explained.explain_room(reason, wake, &mut explanation);
            // Members that ask for what no node has come first: without it, nothing else helps.
            let in_vain =
                |one: &Shortage| one.unknown_resources.len() + one.unknown_labels.len() > 0;
            explanation.shortages.sort_by_key(|one| !in_vain(one));
            let model_limits = explained.model_limits(wake);
            let gang = (id, *queue);
            tried = together::explain_together(
                scene.state,
                settings,
                progress,
                gang,
                &mut explanation,
                now_ms,
            );
            let level = level_of_all(&explanation.shortages);
            let claim = &waiting[id].claim;
            let delay_ends_ms = claim.delay_ends_ms(&scene.state.gangs[id].spec, settings, now_ms);
            let asked = victims::Asked {
                settings,
                progress,
                gang: id,
                queue: *queue,
                others: &question.others,
                now_ms,
                slice_work: u64::MAX,
            };
            // A gang that waits behind a promise has room, and takes none from others.
            if reason != Reason::Reserved {
                explanation.eviction =
                    eviction::eviction(scene.state, &asked, level, delay_ends_ms);
            }
            tried.other_models_help = said.verdict.more_nodes_help;
            tried.model_limits = model_limits;
        }
        let start = question.start.as_ref();
        let would_take = matches!(explanation.eviction, Some(Ok(_)));
        let start = start.filter(|start| start.at_ms.is_some() || !would_take);
        let is_behind = explanation.reason == Some(Reason::Reserved);
        let ends = (is_behind, tried.ends.as_ref());
        explanation.expected_start = start.map(|start| expected_start(scene.state, start, ends));
        if explanation.reason.is_some_and(waits_for_room) {
            let is_related = scene.state.has_related_members(id);
            let note = why_no_start(settings.reservations == 0, is_related);
            explanation.notes.extend(note.map(Into::into));
        }
        explanation.takers = takers::takers(scene.state, settings, progress, id, now_ms);
        let gang = &scene.state.gangs[id];
        explanation.remedies = remedies(&explanation, &tried, only_anew(scene.state, gang));
        explanation
    }

    /// The part of an explanation that every gang has, waiting or not.
    fn begin(
        &self,
        view: View<'_>,
        id: GangId,
        counts: &Counts,
        standing: Option<Standing>,
    ) -> Explanation {
        let View { state, waiting, .. } = view;
        let gang = &state.gangs[id];
        let status = self.gang_status(view, id, counts);
        let verdict = self.why_it_waits(state, waiting, id);
        let turn = (waiting[id].wait == Wait::Turn).then_some(Reason::WaitingForTurn);
        Explanation {
            gang: (&*state.name_of(gang)).into(),
            pod: None,
            queue: (&*gang.spec.queue).into(),
            phase: status.phase,
            members: status.members,
            needed: counts.needed,
            protected: status.protected,
            reason: verdict.as_ref().map(|verdict| verdict.reason).or(turn),
            message: verdict.map_or_else(|| status.message.into(), |v| v.message.clone()),
            proof: None,
            together: None,
            shortages: Vec::new(),
            excess: None,
            standing,
            expected_start: None,
            eviction: None,
            takers: None,
            remedies: Vec::new(),
            notes: cards::on_failed_cards(state, id)
                .into_iter()
                .chain(faults::notes(state, gang))
                .collect(),
        }
    }
}

/// Why no start is foreseen for a gang that waits for room. `is_related`: rules about other pods
/// concern it.
fn why_no_start(no_reservations: bool, is_related: bool) -> Option<&'static str> {
    match (no_reservations, is_related) {
        (true, _) => Some("the configuration has `reservations: 0`, so no start is foreseen"),
        (_, true) => Some(
            "no start is foreseen or promised where rules about other pods count (affinity, \
             anti-affinity, topology spread), so gangs that find room go before it",
        ),
        _ => None,
    }
}

/// How many gangs of whose runtime nothing is known are named.
const ENDLESS_NAMED: usize = 3;

/// When a gang is expected to start, with names. `is_behind`: it waits behind promises to others.
/// `helpful`: the occupants whose ends would let it start; `None`: none were found, so that for a
/// gang that lacks room it does not matter how long gangs run.
fn expected_start(
    state: &ClusterState,
    start: &Foresight,
    (is_behind, helpful): (bool, Option<&Ends>),
) -> ExpectedStart {
    let name = |gang: GangId| String::from(&*state.name_of(&state.gangs[gang]));
    let ends = start.ends.iter().map(|end| ExpectedEnd {
        gang: match end.of {
            Leaver::Gang(gang) => name(gang),
            Leaver::Pod(pod) => format!("{}/{}", state.pods[pod].namespace, state.pods[pod].name),
        },
        at_ms: end.at_ms,
        cause: end.cause,
    });
    let matters = start.at_ms.is_some() || is_behind || helpful.is_some();
    let endless = start.endless.iter().filter(|_| matters);
    let mut endless: Vec<String> = endless.map(|gang| name(*gang)).collect();
    let endless_count = endless.len();
    let helpful = helpful.map_or(&[][..], |helpful| &helpful.occupants);
    let place = |one: &String| {
        let mut helpful = helpful.iter();
        helpful
            .position(|helps| helps.gang.as_ref() == Some(one))
            .unwrap_or(usize::MAX)
    };
    endless.sort_by_cached_key(place);
    endless.truncate(ENDLESS_NAMED);
    ExpectedStart {
        at_ms: start.at_ms,
        standing: start.standing,
        ends: ends.collect(),
        endless,
        endless_count,
    }
}

fn gang_of_name(state: &ClusterState, name: &str) -> Result<GangId, NotFound> {
    let ours = |(_, gang): &(GangId, &Gang)| !gang.is_others();
    let gangs = || state.gangs.iter().filter(ours);
    let is_named =
        |gang: &Gang| &*gang.name == name || gang.long_name().is_some_and(|long| long == name);
    let named = gangs().filter(|(_, gang)| is_named(gang));
    // A PodGroup of ours and a native one may have one name, and so may the gangs of two owners.
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
    // While a pod is leaving, a newer pod may have its name.
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

/// A refused gang that is explained.
#[derive(Debug, Clone, Copy)]
struct Explained<'a> {
    view: View<'a>,
    gang: GangId,
    queue: QueueId,
    counts: &'a Counts,
}

/// The level of which one domain must hold all members; `None`: they may be anywhere.
fn level_of_all(shortages: &[Shortage]) -> Option<&str> {
    let first = shortages.first()?;
    let is_of_all = first.required_by.is_empty() && &*first.level != "cluster";
    is_of_all.then_some(&*first.level)
}

/// The advice which object to create anew so that a gang can name another queue; `None`: its queue
/// can be changed.
fn only_anew(state: &ClusterState, gang: &Gang) -> Option<&'static str> {
    let is_fixed =
        |object: &PodGroupFacts| object.source == GroupSource::GpuBatch && object.queue.is_some();
    let mut members = gang.members.iter().map(|pod| &state.pods[*pod]);
    let is_of_job = |pod: &Pod| pod.own.as_ref().is_some_and(|own| own.job().is_some());
    match &gang.object {
        Some(object) if is_fixed(object) => {
            Some("create the PodGroup anew, because its queue cannot be changed,")
        }
        None if members.any(is_of_job) => {
            Some("create the Job anew, because what it says of its pods cannot be changed,")
        }
        _ => None,
    }
}

/// The queues that may have been meant by a gang that names one that does not exist, as a question.
/// Only queues that would take the gang are named.
fn queue_that_was_meant(state: &ClusterState, gang: &Gang) -> Option<String> {
    let queues = &state.queues;
    let labels = state.namespaces.get(&gang.namespace);
    let takes = |name: &&str| queues.admit(name, &gang.namespace, labels).is_ok();
    let ids = queues.ids();
    let others = ids.iter().map(|id| queues.name(*id)).filter(takes);
    suggestion(&gang.spec.queue, others)
}

impl Explained<'_> {
    /// What limits on GPU models leave to the gang.
    fn model_limits(&self, wake: &Wake) -> ModelLimits {
        let View {
            state,
            settings,
            progress,
            now_ms,
            ..
        } = self.view;
        let (id, queue) = (self.gang, self.queue);
        // Limits on a model count also where the gang demands it only because there are no other
        // nodes for it.
        let demand = wanted::demand_of(state, settings, progress, id, queue, now_ms);
        let excess = state.queues.room(queue, &demand).err();
        let needed = u64::from(self.counts.needed.max(1));
        let helps = |id: &ClassId| {
            let class = state.classes.get(*id);
            class.is_some_and(|class| {
                let (queues, counted) = (&state.queues, state.counted(*id, None));
                queues.release_lets_in_more(queue, (counted, needed), &class.models)
            })
        };
        let releases_help = match wake {
            Wake::AnyRoom(classes, _) => classes.iter().any(helps),
            _ => false,
        };
        ModelLimits {
            excess: excess.map(|excess| excess_report(state, &excess)),
            releases_help,
        }
    }

    /// Adds what the gang lacks now to the explanation.
    fn explain_room(&self, reason: Reason, wake: &Wake, explanation: &mut Explanation) {
        if reason == Reason::WaitingForMembers {
            return;
        }
        let (state, now_ms) = (self.view.state, self.view.now_ms);
        let of_queue = reason.is_of_queue();
        if !of_queue && reason != Reason::Reserved {
            explanation.proof = Some(match (wake, reason) {
                (Wake::Eased(_), _) | (_, Reason::DoesNotFit) => Proof::Proved,
                _ => Proof::Bounded,
            });
        }
        match wake {
            Wake::Queue(_) | Wake::Eased(Shortfall::Bound { .. }) => {
                if let Some(excess) = self.excess() {
                    self.explain_excess(&excess, explanation);
                }
            }
            Wake::Eased(Shortfall::Room { class, scope, need })
                if state.classes.get(*class).is_some() =>
            {
                let missing = self.missing(*class, *scope, *need);
                let (shortage, message) = shortage(state, &missing, now_ms);
                if !of_queue {
                    explanation.message = message;
                }
                explanation.shortages.push(shortage);
            }
            Wake::Eased(_) | Wake::Promises => {}
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
    fn excess(&self) -> Option<Excess> {
        let View {
            state,
            settings,
            progress,
            now_ms,
            ..
        } = self.view;
        bounds::excess(state, settings, progress, self.gang, self.queue, now_ms)
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
        let root = request.root();
        let scope = widest_scope(state, root.near, root.anchor);
        let groups = root.pods.iter().take(SHAPES_EXPLAINED);
        let shortages = groups.map(|group| {
            let need = group.pods.len().min(root.need) as u64;
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

    /// Explains the bound that the gang would exceed, and the shortages that would remain on empty
    /// nodes: where there are any, room under the bound does not help by itself.
    fn explain_excess(&self, excess: &Excess, explanation: &mut Explanation) {
        let state = self.view.state;
        explanation.message = bound_in_words(&state.queues, excess);
        explanation.excess = Some(excess_report(state, excess));
        let mut shortages = if state.gangs[self.gang].tree().is_some() {
            sub_groups::shortages_of_sub_groups(self)
        } else if self.wants_all() {
            let told = self.shortages_of_shapes().into_iter();
            told.map(|(shortage, _)| shortage).collect()
        } else {
            // Not all waiting members are needed: the members without room may not be among the
            // needed ones.
            Vec::new()
        };
        shortages.retain(|shortage| shortage.fits_empty < shortage.need);
        explanation.shortages = shortages;
    }

    /// Whether the gang needs every member that can be placed, so that no choice of members asks
    /// for less.
    fn wants_all(&self) -> bool {
        let counts = self.counts;
        let is_plain = self.view.state.gangs[self.gang].tree().is_none();
        is_plain && counts.placeable == counts.needed.max(1)
    }
}

fn excess_report(state: &ClusterState, excess: &Excess) -> ExcessReport {
    let queues = &state.queues;
    ExcessReport {
        queue: queues.name(excess.queue).into(),
        resource: queues.governed_name(excess.key).into(),
        bound: match excess.bound {
            Bound::Limit => "limit",
            Bound::Quota => "quota",
        },
        allowed: excess.allowed,
        allocated: excess.allocated,
        asked: excess.asked,
    }
}
