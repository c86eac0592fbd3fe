//! When a refused gang is expected to start, and what that rests on: for those who ask.

use super::earliest::{Asked, Found, Tries, earliest};
use super::future::{Places, Start};
use super::rooms::Rooms;
use crate::facts::{RuntimeSource, UnixMs};
use crate::gangs::counts::count;
use crate::gangs::progress::Progress;
use crate::gangs::wait::Wait;
use crate::ids::{ById, GangId, NodeId};
use crate::plan::Planner;
use crate::plan::attempt::Asker;
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
    /// The gang was promised to start then. Otherwise other gangs may still go before it.
    pub(crate) is_promised: bool,
    /// The gangs whose ends make the room, by name.
    pub(crate) ends: Vec<End>,
    /// The gangs of whose runtime nothing is known: those that are promised to start, in the order
    /// of promises, then those that run, by name.
    pub(crate) endless: Vec<GangId>,
}

/// The expected end of a gang.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) gang: GangId,
    pub(crate) at_ms: UnixMs,
    pub(crate) source: RuntimeSource,
    /// The gang was expected to end before now, and has not.
    pub(crate) is_overdue: bool,
    /// The gang does not run yet: it was promised to start.
    pub(crate) waits: bool,
}

impl Planner {
    /// When a gang that waits for room is expected to start; `None`: it waits for something else,
    /// or nothing is foreseen because there are no reservations. `reason`: why it is refused now,
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
        let for_room = super::waits_for_room(reason) && !state.has_related_members(id);
        if settings.reservations == 0 || !for_room || waiting.claim.awaited.is_some() {
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
            is_promised: own.is_some(),
            ends: found.map_or_else(Vec::new, |(at_ms, places)| {
                self.ends_on(state, id, at_ms, &places)
            }),
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

    /// The gangs that leave nodes of a gang until its start.
    fn ends_on(
        &self,
        state: &ClusterState,
        id: GangId,
        at_ms: UnixMs,
        places: &Places,
    ) -> Vec<End> {
        let nodes: BTreeSet<NodeId> = places.iter().map(|(_, node)| *node).collect();
        let ends = &self.reservations.ends;
        let mut found: BTreeMap<GangId, End> = BTreeMap::new();
        let on_nodes = nodes.iter().flat_map(|node| &state.nodes[*node].pods);
        for gang in on_nodes.filter_map(|pod| state.pods[*pod].gang()) {
            let known = ends.of(gang).zip(ends.source_of(gang));
            let known = known.filter(|(end_ms, _)| *end_ms <= at_ms && gang != id);
            if let Some((end_ms, (source, is_overdue))) = known {
                let end = End {
                    gang,
                    at_ms: end_ms,
                    source,
                    is_overdue,
                    waits: false,
                };
                found.insert(gang, end);
            }
        }
        for other in &self.reservations.promised {
            let mut shared = other.places.iter().filter(|(_, node)| nodes.contains(node));
            let (gang, end_ms) = (other.start.gang, other.start.end_ms());
            let expectation = state.expectation(gang).filter(|_| end_ms <= at_ms);
            if let (Some(_), Some(expectation)) = (shared.next(), expectation) {
                let end = End {
                    gang,
                    at_ms: end_ms,
                    source: expectation.source,
                    is_overdue: false,
                    waits: true,
                };
                found.insert(gang, end);
            }
        }
        let mut found: Vec<End> = found.into_values().collect();
        found.sort_by_key(|end| (end.at_ms, by_name(state, end.gang)));
        found
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

/// The order of gangs by name; a number tells those of one name apart.
fn by_name(state: &ClusterState, id: GangId) -> (Arc<str>, u128) {
    let gang = &state.gangs[id];
    (gang.name.clone(), gang.key.namesake())
}
