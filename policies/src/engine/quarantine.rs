//! Gangs whose handling made an engine panic: a bug of ours costs one gang and not all.
//!
//! After a panic the state cannot be trusted, so another engine starts from new lists. The new
//! engine is told which gang was in hand, and leaves that gang alone:
//!
//! ```text
//!            panics                 its PodGroup or its pods change
//! (handled) -------> Quarantined ----------------------------------> handled once more
//!                         ^                                               |
//!                         +------ for good, if it panics again -----------+
//! ```
//!
//! What a quarantined gang holds is counted as before; it is neither judged, placed nor evicted.
//! Nothing here outlives the process.

use crate::engine::Engine;
use crate::gangs::wait::Verdict;
use crate::ids::GangId;
use crate::reason::Reason;
use crate::state::gang::{Gang, GangKey};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// How much of a panic's message users see, in bytes.
const MESSAGE_MAX: usize = 256;

/// A gang whose handling has panicked so often is not tried again.
const PANICS_MAX: u32 = 2;

/// All gangs that are left alone.
pub(crate) type Quarantine = BTreeMap<GangKey, Quarantined>;

/// Why and for how long a gang is left alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quarantined {
    /// The message of the last panic.
    said: String,
    panics: u32,
    /// A hash of the gang's PodGroup and pods when the gang was first seen after its last panic.
    seen: Option<u64>,
}

impl Engine {
    /// The engine that takes over after this one has panicked with this message. It knows nothing
    /// of the world yet, and leaves the gangs alone whose handling has panicked so far.
    #[must_use]
    pub fn after_panic(&self, message: &str) -> Self {
        let mut next = Self::new(self.settings.clone());
        next.quarantine = self.quarantine.clone();
        #[cfg(feature = "planted-panic")]
        next.planted_panic.clone_from(&self.planted_panic);
        if let Some(gang) = self.to_blame() {
            let entry = next.quarantine.entry(gang.key.clone()).or_default();
            entry.said = shortened(message);
            entry.panics += 1;
            entry.seen = None;
        }
        next
    }

    /// The name of the gang that is being handled. After a panic: the gang that is to blame;
    /// `None`: no gang is.
    #[must_use]
    pub fn gang_in_hand(&self) -> Option<&str> {
        self.to_blame().map(|gang| &*gang.name)
    }

    fn to_blame(&self) -> Option<&Gang> {
        let id = self.state.in_hand?;
        self.state.gangs.get(id)
    }

    /// Runs `work` for one gang, which is to blame if `work` panics.
    pub(crate) fn in_hand<T>(&mut self, id: GangId, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.state.in_hand.replace(id);
        let result = work(self);
        self.state.in_hand = before;
        result
    }

    /// Why the gang is left alone, if it is.
    pub(crate) fn quarantined(&mut self, id: GangId) -> Option<Verdict> {
        let gang = &self.state.gangs[id];
        if !self.quarantine.contains_key(&gang.key) {
            return None;
        }
        let object = gang.object.as_ref();
        let object = object.map(|object| (object.uid, object.generation));
        let pods = gang.members.iter().map(|pod| self.state.pods[*pod].uid);
        let mut pods: Vec<_> = pods.collect();
        pods.sort_unstable();
        let mut hasher = rustc_hash::FxHasher::default();
        (object, pods).hash(&mut hasher);
        let now = hasher.finish();

        let entry = self.quarantine.get_mut(&gang.key)?;
        let for_good = entry.panics >= PANICS_MAX;
        if *entry.seen.get_or_insert(now) != now && !for_good {
            return None;
        }
        let until = if for_good {
            ""
        } else {
            "its PodGroup or its pods change, or "
        };
        let message = format!(
            "handling this gang made the scheduler panic: {}; it is left alone until {until}the \
 scheduler restarts",
            entry.said
        );
        Some(Verdict::new(Reason::Unsupported, message))
    }

    /// Makes the planning and the explanation of a gang panic, in this engine and in the engines
    /// that take over.
    #[cfg(feature = "planted-panic")]
    pub fn plant_panic(&mut self, gang: &str) {
        self.planted_panic = Some(gang.into());
    }

    #[cfg(feature = "planted-panic")]
    pub(crate) fn spring_planted_panic(&self, gang: &str) {
        assert!(
            self.planted_panic.as_deref() != Some(gang),
            "planted for {gang}"
        );
    }
}

/// The beginning of a message, cut between characters.
fn shortened(message: &str) -> String {
    if message.len() <= MESSAGE_MAX {
        return message.to_string();
    }
    let mut end = MESSAGE_MAX;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &message[..end])
}
