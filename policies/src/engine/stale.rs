//! Gangs that stay below their minimum are evicted whole: a part of a gang holds room for nothing.

use super::Engine;
use super::outbox::Flight;
use super::timers::Timer;
use crate::command::{Action, Evict, EvictionCause};
use crate::event::Outcome;
use crate::facts::{Uid, UnixMs};
use crate::ids::GangId;
use crate::state::pod::Pod;
use alloc::vec::Vec;

/// How long before an eviction that was refused, by a disruption budget say, is tried again.
const EVICT_AGAIN_MS: u64 = 10_000;

impl Engine {
    /// Evicts every bound member of a gang that has been below its minimum for too long.
    pub(crate) fn evict_stale(&mut self, id: GangId) {
        let members = self.state.gangs[id]
            .members
            .iter()
            .map(|pod| &self.state.pods[*pod]);
        let bound = members.filter(|pod| pod.stage.is_bound() && !pod.deleting);
        let mut uids: Vec<Uid> = bound.map(|pod| pod.uid).collect();
        uids.sort_unstable();
        let alive = &self.state.pod_ids;
        self.evicting.retain(|uid| alive.contains_key(uid));
        for uid in uids {
            if self.evicting.insert(uid) {
                self.outbox.evictions.push_back(uid);
            }
        }
    }

    pub(crate) fn send_eviction(&mut self, uid: Uid, deadline_ms: UnixMs) {
        let pod = self.state.pod_ids.get(&uid).map(|id| &self.state.pods[*id]);
        // The gang may have come together again while the request waited to be sent.
        let stale = |pod: &&Pod| {
            let gang = pod.own.as_ref().and_then(|own| own.gang);
            gang.is_some_and(|gang| self.state.gangs[gang].lost_ms.is_some())
        };
        let Some(pod) = pod.filter(stale) else {
            self.evicting.remove(&uid);
            return;
        };
        let evict = Evict {
            pod: pod.reference(),
            cause: EvictionCause::Stale,
        };
        let command = self
            .outbox
            .send(Flight::Evict(uid), deadline_ms, Action::Evict(evict));
        self.commands.push(command);
    }

    /// An eviction has ended. After `Done` the watch tells when the pod leaves.
    pub(crate) fn eviction_ended(&mut self, uid: Uid, outcome: &Outcome, now_ms: UnixMs) {
        let again_ms = match outcome {
            Outcome::Done | Outcome::NotFound => return,
            Outcome::Throttled { retry_after_ms } => now_ms.saturating_add(*retry_after_ms),
            Outcome::Refused { .. }
            | Outcome::Conflict
            | Outcome::Unknown
            | Outcome::Observed(_)
            | Outcome::Lease(_) => now_ms.saturating_add(EVICT_AGAIN_MS),
        };
        self.evicting.remove(&uid);
        let pod = self.state.pod_ids.get(&uid).map(|id| &self.state.pods[*id]);
        if let Some(gang) = pod.and_then(|pod| pod.own.as_ref()?.gang) {
            self.timers.set(again_ms, Timer::Gang(gang));
        }
    }
}
