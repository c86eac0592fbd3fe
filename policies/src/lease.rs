//! The leader's lease as a pure state machine on *observed* change.
//!
//! A Lease is not a lock: two leaders may act at once for a moment, and correctness never depends
//! on there being only one. The lease only keeps that moment rare. Wall clocks of other machines
//! are never compared: a holder is dead when its lease has not *changed* for the lease's duration
//! of our own time (the rule of client-go's leader election).

mod election;
mod leader;
#[cfg(test)]
mod tests;

pub(crate) use election::Election;
pub(crate) use leader::Leader;

use alloc::boxed::Box;

/// The settings of the election; times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSettings {
    /// The name of this process, which no other process has. If the pod's name is used, a restarted
    /// container takes its lease back at once.
    pub identity: Box<str>,
    /// How long a lease holds without a change. Default 15 s.
    pub duration_ms: u64,
    /// How long a leader goes on without a successful renewal. Must be shorter than `duration_ms`:
    /// the difference keeps two leaders apart. Default 10 s.
    pub renew_deadline_ms: u64,
    /// The time between two renewals of the lease, or between two reads. Default 2 s.
    pub retry_ms: u64,
}

/// A request for the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseCall {
    /// Reads the lease.
    Read,
    /// Creates the lease, or replaces it if it still has the given version.
    Write {
        /// The version that the lease must still have; `None`: there must be no lease.
        resource_version: Option<Box<str>>,
        /// The identity of the new holder; empty: the lease is released.
        holder: Box<str>,
        /// `leaseTransitions`: one more than before if another holder takes the lease.
        transitions: u32,
        /// Whether `acquireTime` is set anew, because the holder changes.
        acquire: bool,
        /// `leaseDurationSeconds`, in milliseconds.
        duration_ms: u64,
    },
}

/// The lease as the API server showed it, in answer to a read or a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSeen {
    /// The version of the lease, which every write changes; `None`: there is no lease.
    pub resource_version: Option<Box<str>>,
    /// The identity of the holder; empty: no process holds the lease.
    pub holder: Box<str>,
    /// `leaseTransitions`: how often the lease has got another holder.
    pub transitions: u32,
    /// `leaseDurationSeconds` as the holder wrote it, in milliseconds; 0: not stated.
    pub duration_ms: u64,
}

/// How a request for the lease ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseAnswer {
    /// The read or write was done, and this is the lease now.
    Seen(LeaseSeen),
    /// The lease does not have the version that the write replaces. Nothing was written.
    Conflict,
    /// The request was refused or throttled, or its outcome is unknown: a write may have been
    /// carried out, or may still be.
    Failed,
}
