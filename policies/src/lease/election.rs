//! One candidate for the lease.

use super::{LeaseAnswer, LeaseCall, LeaseSeen, LeaseSettings};
use alloc::boxed::Box;

/// One candidate for the lease.
///
/// ```text
///                      Read was answered
///   new --> UNCERTAIN ------------------> KNOWN <--+ Read was answered, or a
///           |   ^    ^                      |      | write has succeeded
///           +---+    +----------------------+------+
///           Read      write failed: unknown
///           failed    or Conflict
///
///   In KNOWN, what is sent next depends on the holder:
///     no process      Take
///     us              Take, which renews;   after release(): Give up
///     another         Read, again and again; Take if nothing has changed for its whole duration
///     not us, after release(): nothing any more
///
///   follower --a Take has succeeded--> LEADER --renew deadline since its sending--> follower
///                                        +---- another holds the lease, or release() ---^
/// ```
///
/// At most one request is under way. Two writes are at least `retry` apart, and so is a Read from
/// the request before it; only a Conflict is followed by a Read at once.
///
/// **Why two never lead at once.** Each write names the version that it replaces. A process that
/// takes the lease of another has seen one version for the whole duration, so the last renewal of
/// the former leader that succeeded was carried out, and all the more sent, before that; and the
/// former leader stops leading `renew_deadline` after *sending* it, which is shorter than the
/// duration. Lost and late answers, lost and late requests and pauses of any length change nothing
/// in this. Two can lead at once only if clocks run differently by more than duration / renew
/// deadline (or one stands still while its machine sleeps), or if a person deletes or clears the
/// lease. Then both lead until the next renewal of the first leader meets a Conflict and the lease
/// is read, at most for `renew_deadline` of its own clock. Two processes of one identity are one
/// candidate to this protocol and lead together.
///
/// Times are milliseconds of any clock that never goes back; only differences count. A clock that
/// does go back is taken to stand still.
#[derive(Debug, Clone)]
pub(crate) struct Election {
    settings: LeaseSettings,
    /// The lease as we last saw it.
    lease: Option<Observed>,
    /// The lease must be read before it is written: it was never read, or a write has gone wrong
    /// since.
    uncertain: bool,
    under_way: Option<UnderWay>,
    /// When the last renewal that succeeded was sent; `None`: the lease is not ours.
    renewed_ms: Option<u64>,
    read_due_ms: u64,
    write_due_ms: u64,
    releasing: bool,
}

/// The lease, and since when we have seen this version of it.
#[derive(Debug, Clone)]
struct Observed {
    seen: LeaseSeen,
    since_ms: u64,
}

/// A request that has not been answered.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    step: Step,
    sent_ms: u64,
}

/// The sorts of requests for the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Read,
    Take,
    GiveUp,
}

impl Election {
    /// A candidate that has not looked at the lease yet, and reads it at the first poll.
    pub(crate) fn new(settings: LeaseSettings) -> Self {
        Self {
            settings,
            lease: None,
            uncertain: true,
            under_way: None,
            renewed_ms: None,
            read_due_ms: 0,
            write_due_ms: 0,
            releasing: false,
        }
    }

    /// The request to be sent now, if there is one. Each request must be answered by
    /// [`Election::answered`] before there is another.
    pub(crate) fn poll(&mut self, now_ms: u64) -> Option<LeaseCall> {
        let (due_ms, step) = self.next()?;
        if now_ms < due_ms {
            return None;
        }
        let request = match step {
            Step::Read => LeaseCall::Read,
            Step::Take => self.write(self.settings.identity.clone()),
            Step::GiveUp => self.write("".into()),
        };
        self.under_way = Some(UnderWay {
            step,
            sent_ms: now_ms,
        });
        self.read_due_ms = now_ms.saturating_add(self.settings.retry_ms);
        if step != Step::Read {
            self.write_due_ms = self.read_due_ms;
        }
        Some(request)
    }

    /// When [`Election::poll`] wants to be called; a time that has passed: at once; `u64::MAX`: not
    /// before the request under way is answered, or never again.
    pub(crate) fn deadline(&self) -> u64 {
        self.next().map_or(u64::MAX, |(due_ms, _)| due_ms)
    }

    /// Takes in how the request under way has ended. Ignored if no request is under way.
    pub(crate) fn answered(&mut self, now_ms: u64, answer: LeaseAnswer) {
        let Some(UnderWay { step, sent_ms }) = self.under_way.take() else {
            return;
        };
        match answer {
            LeaseAnswer::Seen(seen) => self.saw(now_ms, step, sent_ms, seen),
            LeaseAnswer::Conflict => {
                self.uncertain = true;
                self.read_due_ms = now_ms;
            }
            LeaseAnswer::Failed => self.uncertain |= step != Step::Read,
        }
    }

    fn saw(&mut self, now_ms: u64, step: Step, sent_ms: u64, seen: LeaseSeen) {
        if seen.holder != self.settings.identity {
            self.renewed_ms = None;
        } else if step == Step::Take {
            self.renewed_ms = Some(sent_ms);
        }
        let since_ms = match &self.lease {
            Some(known) if known.seen.resource_version == seen.resource_version => known.since_ms,
            _ => now_ms,
        };
        self.lease = Some(Observed { seen, since_ms });
        self.uncertain = false;
    }

    /// Whether we lead: a renewal has succeeded that was sent less than the renew deadline ago.
    pub(crate) fn is_leader(&self, now_ms: u64) -> bool {
        // tests plant bugs here: renew-deadline
        let renewed = |sent_ms| now_ms.saturating_sub(sent_ms) < self.settings.renew_deadline_ms;
        !self.releasing && self.renewed_ms.is_some_and(renewed)
    }

    /// Gives the lease back and never takes it again. We stop leading at once; the next poll writes
    /// an empty holder if the lease is ours (and reads the lease first, if it must be read). A
    /// second call changes nothing: after a failure there is still a pause before the next try.
    pub(crate) fn release(&mut self) {
        if self.releasing {
            return;
        }
        self.releasing = true;
        self.read_due_ms = 0;
        self.write_due_ms = 0;
    }

    /// Whether nothing is left to be done after [`Election::release`]. To end without waiting for
    /// this costs only time: the lease runs out by itself.
    pub(crate) fn is_released(&self) -> bool {
        self.releasing && self.under_way.is_none() && self.next().is_none()
    }

    /// The next step and when it is due.
    fn next(&self) -> Option<(u64, Step)> {
        if self.under_way.is_some() {
            return None;
        }
        let read = (self.read_due_ms, Step::Read);
        let Some(lease) = self.lease.as_ref().filter(|_| !self.uncertain) else {
            return Some(read);
        };
        let holder = &lease.seen.holder;
        let ours = *holder == self.settings.identity;
        if self.releasing {
            return ours.then_some((self.write_due_ms, Step::GiveUp));
        }
        let free_ms = if ours || holder.is_empty() {
            0
        } else {
            // tests plant bugs here: lease-of-another
            self.runs_out_ms(lease)
        };
        let take = (free_ms.max(self.write_due_ms), Step::Take);
        Some(if take.0 <= read.0 { take } else { read })
    }

    /// When the lease of another process is dead, if it does not change before.
    fn runs_out_ms(&self, lease: &Observed) -> u64 {
        let duration_ms = match lease.seen.duration_ms {
            0 => self.settings.duration_ms,
            stated => stated,
        };
        lease.since_ms.saturating_add(duration_ms)
    }

    /// The write that replaces the lease as we last saw it, with `holder` as the holder.
    fn write(&self, holder: Box<str>) -> LeaseCall {
        let seen = self.lease.as_ref().map(|lease| &lease.seen);
        let version = seen.and_then(|seen| seen.resource_version.clone());
        let acquire = !holder.is_empty() && seen.is_none_or(|seen| seen.holder != holder);
        let transitions = seen.map_or(0, |seen| seen.transitions);
        // The first holder of a lease is no transition.
        let counted = u32::from(acquire && version.is_some());
        LeaseCall::Write {
            resource_version: version,
            holder,
            transitions: transitions.saturating_add(counted),
            acquire,
            duration_ms: self.settings.duration_ms,
        }
    }
}
