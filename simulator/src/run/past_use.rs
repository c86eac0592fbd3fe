//! Past use: compares what statuses tell with what queues have held.
//!
//! While faults strike, it is uncertain when a scheduler saw what. The use that it tells must then
//! be no less than what is left of the use that it began with, and no more than if all pods had
//! held their requests ever since. Once the world has come to rest, a minute is certain unless pods
//! come or go around its end: what is told must follow from what was told at the first rest,
//! however often schedulers start and half-lives change.

use super::{Happening, Run, patience_ms};
use crate::api_server::Request;
use crate::faults::FaultKind;
use crate::rest;
use crate::scenario::{Arrival, Later, Past};
use gpu_batch_policies::command::StatusPatch;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{GPU, PastUse, UnixMs};
use gpu_batch_policies::status::QueueStatus;
use std::collections::{BTreeMap, BTreeSet};

/// How often use is counted.
const GRID_MS: u64 = 60_000;
/// While faults strike, a scheduler's clock may differ from the world's by so many minutes, or a
/// status may be so old.
const DOUBT: u64 = 2;
/// So long before and after the end of a minute a scheduler may count what the queues hold then: it
/// hears of pods later than they come and go.
const LATE_MS: u64 = 1_000;
/// How far the use that is told may be from the expected one, in thousandths. A reading and a
/// writing round by half of one each; each restart allows one more.
const OFF_MAX: f64 = 2.0;

/// Averages in thousandths, by queue and resource.
type Averages = BTreeMap<(Box<str>, Box<str>), f64>;

/// What queues hold, by queue and resource.
type Held = BTreeMap<(Box<str>, Box<str>), u64>;

/// The past use that is expected, in a world where it counts.
#[derive(Debug)]
pub(super) struct Remembered {
    past: Past,
    /// The half-life of past use; `None`: past use does not count any more.
    half_life_ms: Option<u64>,
    /// The expected averages and the minute of which they are. `None` before the first rest, and if
    /// they are uncertain.
    expected: Option<(u64, Averages)>,
    /// What queues hold, if a minute ends within `LATE_MS`, or has ended so recently.
    around: Option<Held>,
    /// Whether the world has come to rest once.
    rested: bool,
    /// Whether the expected averages are certain.
    sharp: bool,
    restarts: u32,
}

impl Remembered {
    pub(super) fn new(past: Past) -> Self {
        Self {
            half_life_ms: Some(past.half_life_ms),
            past,
            expected: None,
            around: None,
            rested: false,
            sharp: false,
            restarts: 0,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "times and amounts of small worlds"
)]
fn number(count: u64) -> f64 {
    count as f64
}

/// The part of an average that remains after some minutes.
fn left(minutes: u64, half_life_ms: u64) -> f64 {
    let half_lives = number(minutes * GRID_MS) / number(half_life_ms);
    (-half_lives).exp2()
}

impl Run<'_> {
    /// Writes the past use of queues into their statuses, as if an earlier scheduler had done it.
    pub(super) fn begin_past(&mut self) {
        let Some(remembered) = &self.past else { return };
        let at_ms = self.now_ms / GRID_MS * GRID_MS;
        for (name, averages) in remembered.past.used.clone() {
            let Some(Object::Queue(facts)) = self.find(Kind::Queue, name) else {
                continue;
            };
            let past_use = Some(PastUse { at_ms, averages });
            let status = QueueStatus {
                past_use,
                ..QueueStatus::default()
            };
            let patch = StatusPatch::Queue {
                name: name.into(),
                uid: facts.uid,
                status,
            };
            let request = Request::PatchStatus(patch);
            self.cluster.api.handle(request, self.now_ms);
        }
        // The statuses count as written long ago: no list may be older.
        let revision = self.cluster.api.revision();
        self.cluster.api.compact(revision);
    }

    /// A scheduler starts. If no status tells of past use, the scheduler knows nothing of the past,
    /// and its count begins now.
    pub(super) fn begin_counting(&mut self) {
        let now = self.now_ms / GRID_MS;
        let knows_nothing = self.told().is_empty();
        let expected = self.past.as_mut().and_then(|past| past.expected.as_mut());
        if let Some(expected) = expected.filter(|_| knows_nothing) {
            *expected = (now, Averages::new());
        }
    }

    /// Counts the use of the minutes that have passed since the last call. If what queues hold
    /// changes around the end of a minute, nothing certain is expected any more.
    pub(super) fn count_use(&mut self) {
        self.look_around();
        let now = self.now_ms / GRID_MS;
        let Some(remembered) = &mut self.past else {
            return;
        };
        let Some((minute, averages)) = &mut remembered.expected else {
            return;
        };
        if *minute >= now {
            return;
        }
        let kept = remembered
            .half_life_ms
            .map_or(0.0, |half_life_ms| left(now - *minute, half_life_ms));
        let held = rest::held(&self.cluster);
        for key in held.keys() {
            averages.entry(key.clone()).or_default();
        }
        for (key, average) in averages {
            // Averages are in thousandths, and of GPUs so is what is held.
            let finer = if *key.1 == *GPU { 1 } else { 1_000 };
            let held = held.get(key).map_or(0.0, |held| number(held * finer));
            *average = *average * kept + held * (1.0 - kept);
        }
        *minute = now;
    }

    /// Compares what queues hold from shortly before the end of a minute until shortly after it.
    fn look_around(&mut self) {
        let Some(remembered) = &mut self.past else {
            return;
        };
        let end_ms = (self.now_ms + LATE_MS) / GRID_MS * GRID_MS;
        let is_near = self.now_ms <= end_ms + LATE_MS;
        if remembered.expected.is_none() || (remembered.around.is_none() && !is_near) {
            return;
        }
        let held = rest::held(&self.cluster);
        if remembered
            .around
            .as_ref()
            .is_some_and(|before| *before != held)
        {
            remembered.expected = None;
        }
        remembered.around = is_near.then_some(held);
    }

    /// At the first rest, judges what statuses have told so far, and plans what happens later.
    /// Returns whether there is more to happen.
    pub(super) fn live_on(&mut self, found: &mut Vec<String>) -> bool {
        if self.past.as_ref().is_none_or(|past| past.rested) {
            return false;
        }
        let told = self.told();
        self.judge_first(&told, found);
        let sharp = self.schedulers_agree();
        let now = self.now_ms / GRID_MS;
        let slot = usize::from(self.shells[0].process().is_none());
        let Some(remembered) = &mut self.past else {
            return false;
        };
        remembered.rested = true;
        remembered.sharp = sharp;
        remembered.expected = sharp.then(|| (now, averages(&told)));
        let later = std::mem::take(&mut remembered.past.later);
        for (minute, later) in (now + 1..).zip(later) {
            for later in later {
                self.plan_later(minute * GRID_MS, slot, &later);
            }
        }
        self.rest_by_ms = self.now_ms + 10 * GRID_MS + patience_ms(self.seed);
        true
    }

    fn plan_later(&mut self, minute_ms: UnixMs, slot: usize, later: &Later) {
        match *later {
            Later::Restart { after_ms, down_ms } => {
                self.plan(minute_ms + after_ms, Happening::Kill(slot));
                self.plan(minute_ms + after_ms + down_ms, Happening::Start(slot));
            }
            Later::HalfLife {
                after_ms,
                half_life_ms,
            } => self.plan(
                minute_ms + after_ms,
                Happening::HalfLife(Some(half_life_ms)),
            ),
            Later::Forget { after_ms } => {
                self.plan(minute_ms + after_ms, Happening::HalfLife(None));
            }
            Later::PodEnds { after_ms, number } => {
                let ends = Arrival::PodEnds(number);
                self.plan(minute_ms + after_ms, Happening::Arrival(ends));
            }
            Later::Raised {
                after_ms,
                number,
                by,
            } => self.plan(minute_ms + after_ms, Happening::Raise(number, by)),
        }
    }

    /// Whether the first rest is over and the expected averages are certain.
    pub(super) fn is_calm(&self) -> bool {
        self.past
            .as_ref()
            .is_some_and(|past| past.rested && past.sharp)
    }

    /// Whether only one scheduler runs, and all schedulers have the world's time. If two run, one
    /// may have seen what the other has not.
    fn schedulers_agree(&self) -> bool {
        let clocks = [FaultKind::ClockJumps, FaultKind::ClockStalls];
        let one = self.shells.iter().filter_map(|shell| shell.process());
        one.count() == 1 && clocks.iter().all(|kind| self.faults.struck(*kind) == 0)
    }

    /// Gives all schedulers another half-life of past use.
    pub(super) fn change_half_life(&mut self, half_life_ms: Option<u64>) {
        self.settings.use_half_life_ms = half_life_ms;
        for shell in &mut self.shells {
            if let Some(process) = shell.process_mut() {
                process.set_half_life(half_life_ms);
            }
        }
        if let Some(remembered) = &mut self.past {
            remembered.half_life_ms = half_life_ms;
        }
    }

    /// Kills the scheduler of a slot. It will start again.
    pub(super) fn kill(&mut self, slot: usize) {
        self.shells[slot].kill();
        if let Some(remembered) = &mut self.past {
            remembered.restarts += 1;
        }
    }

    /// The past use that the statuses of queues tell.
    fn told(&self) -> BTreeMap<Box<str>, PastUse> {
        let queues = self.cluster.api.objects(Kind::Queue);
        let told = queues.filter_map(|stored| match &stored.object {
            Object::Queue(facts) => Some((facts.name.clone(), facts.past_use.clone()?)),
            _ => None,
        });
        told.collect()
    }

    /// P1: what is told is at least what is left of the first use, and at most that with the use of
    /// all pods since. Nothing is judged if a clock has jumped: then any part of the first use may
    /// be forgotten.
    fn judge_first(&self, told: &BTreeMap<Box<str>, PastUse>, found: &mut Vec<String>) {
        let Some(remembered) = &self.past else { return };
        if self.faults.struck(FaultKind::ClockJumps) > 0 {
            return;
        }
        let half_life_ms = remembered.past.half_life_ms;
        let minutes = self.now_ms / GRID_MS - self.start_ms / GRID_MS;
        let least = left(minutes + DOUBT, half_life_ms);
        let most = left(minutes.saturating_sub(DOUBT), half_life_ms);
        let told = averages(told);
        let mut first = Averages::new();
        for (queue, used) in &remembered.past.used {
            for (resource, thousandths) in used {
                first.insert(((*queue).into(), resource.clone()), number(*thousandths));
            }
        }
        let keys: BTreeSet<_> = first.keys().chain(told.keys()).collect();
        for key in keys {
            let of = |averages: &Averages| averages.get(key).copied().unwrap_or(0.0);
            let all = number(rest::asked_of_all(&self.cluster, &key.1) * 1_000);
            let low = of(&first) * least - OFF_MAX;
            let high = of(&first) * most + all * (1.0 - least) + OFF_MAX;
            let told = of(&told);
            if !(low..=high).contains(&told) {
                let (queue, resource) = key;
                found.push(format!(
                    "P1: {queue} tells {told} thousandths of {resource}, not {low} to {high}"
                ));
            }
        }
    }

    /// P2: what is told at the end is what follows from the first rest, minute by minute.
    pub(super) fn judge_past(&self, found: &mut Vec<String>) {
        let told = self.told();
        let Some(remembered) = &self.past else {
            if let Some(queue) = told.keys().next() {
                found.push(format!("P2: {queue} tells of a past that does not count"));
            }
            return;
        };
        let Some((minute, expected)) = &remembered.expected else {
            return;
        };
        let told_averages = averages(&told);
        let off_max = OFF_MAX + f64::from(remembered.restarts);
        let keys: BTreeSet<_> = expected.keys().chain(told_averages.keys()).collect();
        for key in keys {
            let counts = remembered.half_life_ms.is_some();
            let of = |averages: &Averages| averages.get(key).copied().unwrap_or(0.0);
            let (expected, now) = (if counts { of(expected) } else { 0.0 }, of(&told_averages));
            let at = told.get(&key.0).map(|past| past.at_ms / GRID_MS);
            if (expected - now).abs() > off_max || at.is_some_and(|at| at != *minute) {
                let (queue, resource) = key;
                found.push(format!(
                    "P2: {queue} tells {now} thousandths of {resource} as of minute {at:?}, and \
                     has used {expected} as of {minute}"
                ));
            }
        }
    }
}

fn averages(told: &BTreeMap<Box<str>, PastUse>) -> Averages {
    let each = told.iter().flat_map(|(queue, past)| {
        let averages = past.averages.iter();
        averages.map(|(resource, thousandths)| {
            ((queue.clone(), resource.clone()), number(*thousandths))
        })
    });
    each.collect()
}
