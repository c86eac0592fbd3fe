//! How long gangs have run, by queue and by owner: how long others like them are expected to run.
//!
//! Each queue keeps the runtimes of its last gangs that ended well, and those of each owner's last
//! gangs. An owner is what makes gangs one after the other: the part of a name that is neither
//! generated nor counted, such as `vision/job/nightly` of the Job `nightly-29012345`. A gang that
//! does not say how long it runs is expected to run for as long as nine of ten of these runs took
//! at most.
//!
//! All of it stands in the status of the Queue, where the next leader reads it.

use super::ClusterState;
use super::gang::{Gang, GangKey};
use crate::facts::{LearnedRuntimes, OwnerRuntimes, QueueFacts, RuntimeSource, UnixMs};
use crate::ids::GangId;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// How many runs of one owner are kept.
const OWNER_RUNS_MAX: usize = 16;
/// How many runs of one owner say how long the next one takes.
const OWNER_RUNS_MIN: usize = 2;
/// How many runs of a queue are kept.
const QUEUE_RUNS_MAX: usize = 64;
/// How many runs of a queue say how long a gang of an unknown owner takes.
const QUEUE_RUNS_MIN: usize = 16;
/// How many owners of a queue are kept: those whose gangs ended last.
const OWNERS_MAX: usize = 32;
/// How many of these may be owners of too few runs where there are others: names that are used once
/// take no more places from those.
const NEW_OWNERS_MAX: usize = 16;
/// The least time between two changes of what is told of one queue.
const TELL_INTERVAL_MS: u64 = 60_000;

/// The runtime that is expected of a gang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expectation {
    pub(crate) runtime_ms: u64,
    pub(crate) source: RuntimeSource,
}

/// The runtimes of gangs that have ended, by queue.
#[derive(Debug, Default)]
pub(crate) struct Runtimes {
    queues: BTreeMap<Box<str>, OfQueue>,
    /// The runs that have ended in this step: queue, owner, seconds.
    ended: Vec<(Arc<str>, String, u32)>,
}

#[derive(Debug, Default)]
struct OfQueue {
    learned: LearnedRuntimes,
    /// What the status of the queue says.
    published: LearnedRuntimes,
    /// When `published` may change; `None`: it says everything.
    due_ms: Option<UnixMs>,
    published_ms: UnixMs,
}

impl Runtimes {
    /// Takes in what the status of a queue says, unless anything is known of the queue.
    pub(crate) fn adopt(&mut self, facts: &mut QueueFacts) {
        let Some(learned) = facts.runtimes.take() else {
            return;
        };
        let known = self.queues.entry(facts.name.clone()).or_default();
        if known.learned == LearnedRuntimes::default() {
            known.published = learned.clone();
            known.learned = learned;
        }
    }

    /// Forgets a queue that was deleted.
    pub(crate) fn forget(&mut self, queue: &str) {
        self.queues.remove(queue);
    }

    /// Learns from the runs that have ended in this step. In which order gangs were looked at makes
    /// no difference.
    fn learn_ended(&mut self, now_ms: UnixMs) {
        let mut ended = core::mem::take(&mut self.ended);
        ended.sort();
        for (queue, owner, seconds) in ended {
            self.learn(&queue, &owner, seconds, now_ms);
        }
    }

    fn learn(&mut self, queue: &str, owner: &str, seconds: u32, now_ms: UnixMs) {
        let known = match self.queues.get_mut(queue) {
            Some(known) => known,
            None => self.queues.entry(queue.into()).or_default(),
        };
        keep(&mut known.learned.seconds, seconds, QUEUE_RUNS_MAX);
        // The owner whose gang has ended last comes last.
        let owners = &mut known.learned.owners;
        let position = owners.iter().position(|it| *it.owner == *owner);
        let mut own = match position {
            Some(position) => owners.remove(position),
            None => OwnerRuntimes {
                owner: owner.into(),
                seconds: Vec::new(),
            },
        };
        keep(&mut own.seconds, seconds, OWNER_RUNS_MAX);
        owners.push(own);
        while owners.len() > OWNERS_MAX {
            owners.remove(first_to_forget(owners));
        }
        let due_ms = known.published_ms.saturating_add(TELL_INTERVAL_MS);
        known.due_ms.get_or_insert(due_ms.max(now_ms));
    }

    /// How long a gang of an owner in a queue takes.
    fn expect(&self, queue: &str, owner: &str) -> Option<Expectation> {
        let learned = &self.queues.get(queue)?.learned;
        let own = learned.owners.iter().find(|it| *it.owner == *owner);
        let own = own.map_or(&[][..], |own| &own.seconds);
        let (seconds, source) = match own.len() {
            OWNER_RUNS_MIN.. => (own, RuntimeSource::Owner),
            _ if learned.seconds.len() < QUEUE_RUNS_MIN => return None,
            _ => (&learned.seconds[..], RuntimeSource::Queue),
        };
        Some(Expectation {
            runtime_ms: nine_of_ten(seconds).max(1) * 1_000,
            source,
        })
    }

    /// When the status of a queue is next to say more.
    pub(crate) fn deadline(&self) -> Option<UnixMs> {
        self.queues.values().filter_map(|known| known.due_ms).min()
    }

    /// Learns from the runs that have ended, and lets the statuses of queues say all that was
    /// learned, where it is time for that. Returns whether there are any.
    pub(crate) fn follow(&mut self, now_ms: UnixMs) -> bool {
        self.learn_ended(now_ms);
        let is_due = |known: &&mut OfQueue| known.due_ms.is_some_and(|due_ms| due_ms <= now_ms);
        let mut are_due = false;
        for known in self.queues.values_mut().filter(is_due) {
            known.published.clone_from(&known.learned);
            (known.due_ms, known.published_ms, are_due) = (None, now_ms, true);
        }
        are_due
    }

    /// What the status of a queue says; `None`: nothing.
    pub(crate) fn published(&self, queue: &str) -> Option<&LearnedRuntimes> {
        let published = &self.queues.get(queue)?.published;
        (!published.seconds.is_empty()).then_some(published)
    }
}

impl ClusterState {
    /// How long a gang is expected to run from the start of its minimum; `None`: it is not known.
    pub(crate) fn expectation(&self, id: GangId) -> Option<Expectation> {
        let spec = &self.gangs[id].spec;
        let said = spec.expected_runtime_ms.map(|runtime_ms| Expectation {
            runtime_ms,
            source: RuntimeSource::Said,
        });
        said.or_else(|| {
            let owner = self.owner_of_runs(&self.gangs[id])?;
            self.runtimes.expect(&spec.queue, &owner)
        })
    }

    /// Takes in that a gang has ended well, and how long it ran.
    pub(crate) fn note_runtime(&mut self, id: GangId, runtime_ms: u64) {
        if let Some(owner) = self.owner_of_runs(&self.gangs[id]) {
            let queue = self.gangs[id].spec.queue.clone();
            let seconds = u32::try_from(runtime_ms.div_ceil(1_000)).unwrap_or(u32::MAX);
            self.runtimes.ended.push((queue, owner, seconds));
        }
    }

    /// What makes gangs like this one, one after the other; `None`: the gang has no members.
    fn owner_of_runs(&self, gang: &Gang) -> Option<String> {
        let first = self.pods.get(*gang.members.first()?)?;
        let owner = first.own.as_ref()?.owner.as_ref();
        let name = match (&gang.key, owner) {
            (GangKey::Pod(_), Some(owner)) => {
                let kind = owner.kind.to_ascii_lowercase();
                format!("{}/{kind}/{}", gang.namespace, owner.name)
            }
            _ => String::from(&*gang.name),
        };
        Some(without_generated(&name).into())
    }
}

/// Which owner is forgotten first: of those of too few runs, if they are many, else of all, the one
/// whose last gang ended longest ago.
fn first_to_forget(owners: &[OwnerRuntimes]) -> usize {
    let is_new = |it: &OwnerRuntimes| it.seconds.len() < OWNER_RUNS_MIN;
    let are_many = owners.iter().filter(|it| is_new(it)).count() > NEW_OWNERS_MAX;
    let first = owners.iter().position(is_new);
    first.filter(|_| are_many).unwrap_or(0)
}

/// Adds a runtime to those of the last runs.
fn keep(runs: &mut Vec<u32>, seconds: u32, most: usize) {
    runs.push(seconds);
    let too_many = runs.len().saturating_sub(most);
    runs.drain(..too_many);
}

/// What nine of ten runs took at most, in seconds.
fn nine_of_ten(seconds: &[u32]) -> u64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * 9).div_ceil(10);
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or(0)
        .into()
}

/// A name without the parts at its end that are counted or that the API server has generated.
fn without_generated(name: &str) -> &str {
    let mut name = name;
    while let Some((head, tail)) = name.rsplit_once('-')
        && is_generated(tail)
        && !head.is_empty()
        && !head.ends_with('/')
    {
        name = head;
    }
    name
}

/// Whether a part of a name is a number, or letters and digits as the API server draws them: no
/// vowels, so that no words arise.
fn is_generated(part: &str) -> bool {
    let is_drawn = |byte: u8| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte);
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_number || ((5..=10).contains(&part.len()) && part.bytes().all(is_drawn))
}

#[cfg(test)]
mod tests;
