//! What the planner knows of each gang.

use crate::facts::{Uid, UnixMs};
use crate::gangs::wait::Wait;
use crate::plan::order::LinePosition;
use crate::settings::Settings;
use crate::state::gang::GangSpec;
use alloc::vec::Vec;

/// What the planner knows of a gang.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// What the gang waits for.
    pub(crate) wait: Wait,
    /// The gang's place in the line of its queue, as a candidate or parked; `None`: it has none.
    pub(crate) place: Option<LinePosition>,
    /// The fingerprint of the last attempt: an event that does not change the fingerprint does not
    /// wake the gang.
    pub(crate) tried: u64,
    pub(crate) claim: ClaimState,
    /// When the gang is promised to start; `None`: it was promised nothing.
    pub(crate) promised_ms: Option<UnixMs>,
    /// What the gang was promised first since it waits.
    pub(crate) first_promised_ms: Option<UnixMs>,
}

/// What is known of taking room from others for a gang.
#[derive(Debug, Default)]
pub(crate) struct ClaimState {
    /// Since when the gang is complete and refused.
    pub(crate) blocked_ms: Option<UnixMs>,
    /// How many eviction plans were made for the gang since it last changed, or got its room to
    /// keep.
    pub(crate) plans: u32,
    /// When the gang last started, with whatever members.
    pub(crate) started_ms: Option<UnixMs>,
    /// Members were evicted for others soon after a start, and no plan was made since.
    pub(crate) has_lost: bool,
    /// Until when no plan is made, because the last ones came to nothing.
    pub(crate) paused_until_ms: UnixMs,
    /// There is a plan, which waits until this time for the gang's `preemptionDelay`.
    pub(crate) delayed_until_ms: Option<UnixMs>,
    /// The plan that is being carried out.
    pub(crate) awaited: Option<Awaited>,
}

/// What a gang waits for whose eviction plan is being carried out.
#[derive(Debug)]
pub(crate) struct Awaited {
    pub(crate) since_ms: UnixMs,
    /// The pods whose room is awaited, by name; some may be gone.
    pub(crate) pods: Vec<Uid>,
}

/// A gang of which no member is evicted for so long has got its room to keep.
const KEPT_MS: u64 = 3_600_000;
/// A gang that has made so many plans that came to nothing makes a pause.
const PLANS_MAX: u32 = 3;
/// The pause after the last of these plans; the one after each further plan is twice as long.
const PAUSE_MS: u64 = 30 * 60_000;
/// How often the pause is doubled, at most.
const DOUBLINGS_MAX: u32 = 4;

impl ClaimState {
    /// Takes in that a plan was made for the gang.
    pub(crate) fn begin_plan(&mut self) {
        if self.started_ms.take().is_some() && !self.has_lost {
            self.plans = 0;
        }
        self.has_lost = false;
        self.plans += 1;
    }

    /// When the gang's `preemptionDelay` ends, before which no pod is evicted for the gang; `None`:
    /// the delay has ended.
    pub(crate) fn delay_ends_ms(
        &self,
        spec: &GangSpec,
        settings: &Settings,
        now_ms: UnixMs,
    ) -> Option<UnixMs> {
        let delay_ms = spec.preemption_delay_ms;
        let delay_ms = delay_ms.unwrap_or(settings.preemption_delay_ms);
        let blocked_ms = self.blocked_ms.unwrap_or(now_ms);
        Some(blocked_ms.saturating_add(delay_ms)).filter(|ends_ms| *ends_ms > now_ms)
    }

    /// Takes in that members of the gang were given places.
    pub(crate) fn start(&mut self, now_ms: UnixMs) {
        *self = Self {
            plans: self.plans,
            started_ms: Some(now_ms),
            has_lost: self.has_lost,
            ..Self::default()
        };
    }

    /// Takes in that the gang asks for something else now, or for nothing.
    pub(crate) fn change(&mut self) {
        *self = Self {
            plans: self.plans,
            started_ms: self.started_ms,
            has_lost: self.has_lost,
            paused_until_ms: self.paused_until_ms,
            ..Self::default()
        };
    }

    /// Takes in that members of the gang are evicted for others. Two gangs could take the same room
    /// from each other for ever, both by right, because gangs are indivisible: so what a plan has
    /// brought and another soon takes has come to nothing.
    pub(crate) fn lose(&mut self, now_ms: UnixMs) {
        let Some(started_ms) = self.started_ms else {
            return;
        };
        if now_ms >= started_ms.saturating_add(KEPT_MS) {
            (self.plans, self.has_lost) = (0, false);
        } else {
            self.has_lost = true;
            self.pause(self.pause_ms().unwrap_or(0), now_ms);
        }
    }

    /// Lets no plan be made for so long.
    pub(crate) fn pause(&mut self, pause_ms: u64, now_ms: UnixMs) {
        let until_ms = now_ms.saturating_add(pause_ms);
        self.paused_until_ms = self.paused_until_ms.max(until_ms);
        // A plan whose delay ends within the pause is not carried out.
        let paused_until_ms = self.paused_until_ms;
        self.delayed_until_ms
            .take_if(|until_ms| *until_ms < paused_until_ms);
    }

    /// The pause that is due after as many plans that came to nothing; `None`: not yet one.
    pub(crate) fn pause_ms(&self) -> Option<u64> {
        let more = self.plans.checked_sub(PLANS_MAX)?;
        Some(PAUSE_MS << more.min(DOUBLINGS_MAX))
    }
}

impl Waiting {
    /// Takes in what the gang is promised now.
    pub(crate) fn note_promise(&mut self, promised_ms: Option<UnixMs>) {
        self.promised_ms = promised_ms;
        self.first_promised_ms = self.first_promised_ms.or(promised_ms);
    }

    /// Whether the gang was refused, and is parked until something changes.
    pub(crate) fn is_parked(&self) -> bool {
        matches!(self.wait, Wait::Room(..))
    }
}
