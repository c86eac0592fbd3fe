//! When a refused gang is expected to start, and what that rests on: for those who ask.

use super::earliest::{Asked, Found, Tries, earliest};
use super::future::{Places, Start, leaves_ms};
use super::rooms::Rooms;
use crate::explain::{EndCause, StartStanding};
use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::gangs::progress::Progress;
use crate::gangs::wait::Wait;
use crate::ids::{ById, GangId, NodeId, PodId};
use crate::plan::Planner;
use crate::plan::attempt::Asker;
use crate::plan::waiting::Awaited;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// When a gang is expected to start.
#[derive(Debug)]
pub(crate) struct Foresight {
    /// When there is room at the latest, if all goes as expected; `None`: that cannot be said.
    pub(crate) at_ms: Option<UnixMs>,
    pub(crate) standing: StartStanding,
    /// Whose ends make the room, by time and name.
    pub(crate) ends: Vec<End>,
    /// The gangs of whose runtime nothing is known: those that are promised to start, in the order
    /// of promises, then those that run, by name.
    pub(crate) endless: Vec<GangId>,
}

/// Room that is expected to come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) of: Leaver,
    pub(crate) at_ms: UnixMs,
    pub(crate) cause: EndCause,
}

/// A gang that ends, or a pod that leaves: it makes room for the gang that is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Leaver {
    Gang(GangId),
    /// A pod without a gang.
    Pod(PodId),
}

impl Planner {
    /// When a gang that waits for room is expected to start; `None`: it waits for something else,
    /// or for pods that were not asked to leave yet, or nothing is foreseen because there are no
    /// reservations. `reason`: why it is refused now,
    /// which need not be why it was when it was last tried.
    pub(crate) fn foresee(
        &self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        (id, reason): (GangId, Reason),
        now_ms: UnixMs,
    ) -> Option<Foresight> {
        let waiting = &self.waiting[id];
        let (Wait::Room(..), Some((queue, _))) = (&waiting.wait, &waiting.place) else {
            return None;
        };
        if let Some(awaited) = &waiting.claim.awaited {
            return held(state, awaited, now_ms);
        }
        let for_room = super::waits_for_room(reason) && !state.has_related_members(id);
        if settings.reservations == 0 || !for_room {
            return None;
        }
        let asker = Asker {
            settings,
            progress,
            gang: id,
            queue: *queue,
            counts: count(state, id, now_ms),
            now_ms,
        };
        let mut promised = self.reservations.promised.iter();
        let own = promised.find(|it| it.start.gang == id);
        let found = match own {
            Some(own) => Some((own.start.at_ms, own.places.clone())),
            None => self.earliest_of(state, asker),
        };
        Some(Foresight {
            at_ms: found.as_ref().map(|(at_ms, _)| *at_ms),
            standing: match own {
                Some(_) => StartStanding::Promised,
                None => StartStanding::Guessed,
            },
            ends: found.map_or_else(Vec::new, |found| self.ends_on(state, id, found, now_ms)),
            endless: self.endless(state, id),
        })
    }

    fn earliest_of(&self, state: &mut ClusterState, asker: Asker<'_>) -> Option<(UnixMs, Places)> {
        let start = Start::now(state, asker);
        let basis = self.basis(asker.settings, asker.progress, asker.now_ms);
        let promised = self.reservations.starts();
        let rooms = &mut Rooms::default();
        let asked = Asked {
            start: &start,
            before_ms: UnixMs::MAX,
            tries: &mut Tries::default(),
            work_max: u64::MAX,
        };
        match earliest(state, basis, asked, &promised, rooms, &mut 0) {
            Found::At(at_ms, mut places) => Some((at_ms, places.pop()?)),
            Found::Never | Found::SliceEnded => None,
        }
    }

    /// The ends of gangs, and of pods that are leaving, that make room on the nodes of a gang until
    /// its start.
    fn ends_on(
        &self,
        state: &ClusterState,
        id: GangId,
        (at_ms, places): (UnixMs, Places),
        now_ms: UnixMs,
    ) -> Vec<End> {
        let nodes: BTreeSet<NodeId> = places.iter().map(|(_, node)| *node).collect();
        let ends = &self.reservations.ends;
        let pods = nodes.iter().flat_map(|node| &state.nodes[*node].pods);
        let mut found = Vec::new();
        for pod in pods {
            let gang = state.pods[*pod].gang();
            if gang == Some(id) {
                continue;
            }
            found.extend(leaves(state, *pod, now_ms));
            let end = gang.and_then(|gang| {
                let (source, is_overdue) = ends.source_of(gang)?;
                let cause = EndCause::Runs { source, is_overdue };
                Some(End {
                    of: Leaver::Gang(gang),
                    at_ms: ends.of(gang)?,
                    cause,
                })
            });
            found.extend(end);
        }
        for other in &self.reservations.promised {
            let gang = other.start.gang;
            let mut shared = other.places.iter().filter(|(_, node)| nodes.contains(node));
            if let (Some(_), Some(expectation)) = (shared.next(), state.expectation(gang)) {
                found.push(End {
                    of: Leaver::Gang(gang),
                    at_ms: other.start.end_ms(ends),
                    cause: EndCause::WillRun {
                        source: expectation.source,
                    },
                });
            }
        }
        found.retain(|end| end.at_ms <= at_ms);
        in_order(state, found)
    }

    /// The gangs that are promised to start, and those that run, and are expected never to end.
    fn endless(&self, state: &ClusterState, id: GangId) -> Vec<GangId> {
        let runs = |gang: GangId| {
            let mut members = state.gangs[gang].members.iter();
            members.any(|pod| state.pods[*pod].stage.node().is_some())
        };
        let others = state.gangs.ids().into_iter().filter(|gang| *gang != id);
        let endless = others.filter(|gang| self.reservations.ends.of(*gang).is_none());
        let mut endless: Vec<GangId> = endless.filter(|gang| runs(*gang)).collect();
        endless.sort_by_key(|gang| by_name(state, *gang));
        let promised = self.reservations.promised.iter().map(|it| it.start);
        let promised = promised.filter(|it| it.runtime_ms.is_none() && it.gang != id);
        promised.map(|it| it.gang).chain(endless).collect()
    }
}

/// The start of a gang for which pods are leaving; `None`: not all of them were asked to leave yet.
fn held(state: &ClusterState, awaited: &Awaited, now_ms: UnixMs) -> Option<Foresight> {
    let pods = awaited.pods.iter().filter_map(|uid| state.pod_ids.get(uid));
    let pods = pods.filter(|pod| state.pods[**pod].stage.node().is_some());
    let ends: Option<Vec<End>> = pods.map(|pod| leaves(state, *pod, now_ms)).collect();
    let ends = in_order(state, ends?);
    Some(Foresight {
        at_ms: Some(ends.iter().map(|end| end.at_ms).max()?),
        standing: StartStanding::Held,
        ends,
        endless: Vec::new(),
    })
}

/// When a pod that is leaving has left; `None`: it is not leaving, or is stuck.
fn leaves(state: &ClusterState, id: PodId, now_ms: UnixMs) -> Option<End> {
    let pod = &state.pods[id];
    Some(End {
        of: pod.gang().map_or(Leaver::Pod(id), Leaver::Gang),
        at_ms: leaves_ms(pod.deletion_ms.filter(|_| pod.leaving)?, now_ms),
        cause: EndCause::Leaves,
    })
}

/// These ends by time and name: of all ends of a gang the last one, and the last one of its leaving
/// pods.
fn in_order(state: &ClusterState, ends: Vec<End>) -> Vec<End> {
    let mut last: BTreeMap<(Leaver, bool), End> = BTreeMap::new();
    for end in ends {
        let known = last.entry((end.of, end.cause == EndCause::Leaves));
        let known = known.or_insert(end);
        if known.at_ms < end.at_ms {
            *known = end;
        }
    }
    let name = |of: Leaver| match of {
        Leaver::Gang(gang) => by_name(state, gang),
        Leaver::Pod(pod) => (Arc::from(&*state.pods[pod].name), 0),
    };
    let mut ends: Vec<End> = last.into_values().collect();
    ends.sort_by_cached_key(|end| (end.at_ms, name(end.of)));
    ends
}

/// The order of gangs by name; a number tells those of one name apart.
fn by_name(state: &ClusterState, id: GangId) -> (Arc<str>, u128) {
    let gang = &state.gangs[id];
    (gang.name.clone(), gang.key.namesake())
}
