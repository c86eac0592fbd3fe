//! The pods of a session by gang.

use super::{Course, Life, Session};
use gpu_batch_policies::facts::{Uid, UnixMs};
use std::collections::BTreeMap;

/// The pods of one gang.
#[derive(Debug)]
pub(super) struct Gang<'session> {
    /// When the first pod of the gang was seen.
    pub(super) arrived_ms: UnixMs,
    pub(super) pods: Vec<(Uid, &'session Life)>,
}

impl Session {
    /// All gangs of which a pod waited, by name.
    pub(super) fn gangs(&self) -> BTreeMap<String, Gang<'_>> {
        let mut gangs: BTreeMap<String, Gang<'_>> = BTreeMap::new();
        for (uid, life) in &self.lives {
            let gang = gangs.entry(life.work()).or_insert(Gang {
                arrived_ms: life.arrived_ms,
                pods: Vec::new(),
            });
            gang.arrived_ms = gang.arrived_ms.min(life.arrived_ms);
            gang.pods.push((*uid, life));
        }
        gangs
    }
}

impl Gang<'_> {
    /// The first binding of a member; `None`: there was none.
    pub(super) fn started_ms(&self, course: &Course) -> Option<UnixMs> {
        let starts = self.pods.iter().map(|(uid, _)| course.starts.get(uid));
        starts.flatten().map(|start| start.at_ms).min()
    }

    /// The queue that the gang was bound for, in this course or else in the record; otherwise the
    /// one that it names.
    pub(super) fn queue(&self, session: &Session, course: &Course) -> Box<str> {
        let bound = |course: &Course| {
            let mut starts = self.pods.iter().map(|(uid, _)| course.starts.get(uid));
            starts.find_map(|start| start.map(|start| start.queue.clone()))
        };
        let named = || {
            let mut pods = self.pods.iter();
            pods.find_map(|(_, life)| session.queue_named(&life.facts))
        };
        bound(course)
            .or_else(|| bound(&session.course))
            .or_else(named)
            .unwrap_or_else(|| "default".into())
    }
}
