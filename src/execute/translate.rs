//! Commands as requests, and answers as outcomes. Nothing here talks to anybody, so that the very
//! same requests can be held against the simulator's model of the API server.

use super::exchange::{Answer, ExchangeError, Request};
use super::{bind, classify, evict, lease, observe, publish, status};
use crate::config::LeaseName;
use gpu_batch_policies::command::{Action, CommandId};
use gpu_batch_policies::event::Outcome;
use gpu_batch_policies::facts::UnixMs;

/// What requests say beside their action.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    /// The lease that elects the leader.
    pub lease: &'a LeaseName,
    /// The name that speaks in Kubernetes events.
    pub instance: &'a str,
    /// The command; it makes the names of events unique.
    pub id: CommandId,
    /// When the holder of the lease took it; 0: nobody knows.
    pub acquired_ms: UnixMs,
    /// The time.
    pub now_ms: UnixMs,
}

/// The one request that an action is.
#[must_use]
pub fn request(action: &Action, stamp: &Stamp<'_>) -> Request {
    match action {
        Action::Bind(bind) => bind::request(bind),
        Action::Evict(evict) => evict::request(&evict.pod),
        Action::Observe(pod) => observe::request(pod),
        Action::PatchStatus(patch) => status::request(patch),
        Action::Lease(request) => {
            lease::request(stamp.lease, request, stamp.acquired_ms, stamp.now_ms)
        }
        Action::Publish(announcement) => {
            publish::request(announcement, stamp.id, stamp.instance, stamp.now_ms)
        }
    }
}

/// What the answer to an action's request means to the engine.
#[must_use]
pub fn outcome(action: &Action, answer: Result<Answer, ExchangeError>) -> Outcome {
    match action {
        Action::Observe(pod) => observe::outcome(pod, answer),
        Action::Lease(request) => lease::outcome(request, answer),
        Action::Bind(_) | Action::Evict(_) | Action::PatchStatus(_) | Action::Publish(_) => {
            classify::classify(&answer)
        }
    }
}
