//! The leader's lease as a pure state machine on *observed* change.
//!
//! A Lease is not a lock: two leaders may act at once for a moment, and correctness never needs
//! "only one". The lease only keeps that moment rare. Wall clocks of other machines are never
//! compared: a holder is dead when its lease has not *changed* for the lease's duration of our own
//! time (the rule of client-go's leader election).

mod election;
mod leader;
#[cfg(test)]
mod tests;

pub use election::Election;
pub(crate) use leader::Leader;

use alloc::boxed::Box;

/// The settings of the election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSettings {
    /// The name of this process, which no other process has. Where it is the pod's name, a
    /// restarted container takes its lease back at once.
    pub identity: Box<str>,
    /// How long a lease holds without a change. Default 15 s.
    pub duration_ms: u64,
    /// How long a leader goes on without a successful renewal. Must be shorter than the duration:
    /// that is what keeps two leaders apart. Default 10 s.
    pub renew_deadline_ms: u64,
    /// How often the lease is renewed or looked at. Default 2 s.
    pub retry_ms: u64,
}

/// A request for the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRequest {
    /// Read it.
    Read,
    /// Create it, or replace it if it still has the version.
    Write {
        /// The version that must be there; `None`: it must not exist.
        resource_version: Option<Box<str>>,
        /// The new holder; empty: nobody (released).
        holder: Box<str>,
        /// `leaseTransitions`: one more than before if the holder changes.
        transitions: u32,
        /// Whether acquireTime is set anew.
        acquire: bool,
        /// `leaseDurationSeconds`, in milliseconds.
        duration_ms: u64,
    },
}

/// The lease as the API server showed it, in answer to a read or a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSeen {
    /// `None`: there is none. Otherwise its version; a renewal changes it.
    pub resource_version: Option<Box<str>>,
    /// The identity of the holder; empty: nobody holds it.
    pub holder: Box<str>,
    /// How often it changed hands.
    pub transitions: u32,
    /// How long its holder said it holds.
    pub duration_ms: u64,
}

/// How a request for the lease ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// It was done, and this is the lease now.
    Seen(LeaseSeen),
    /// The lease is not the version that the write replaces. Nothing was written.
    Conflict,
    /// Refused, throttled or unknown: a write may have been carried out or may still be.
    Failed,
}
