//! The way of a command to the API server, and of the answer back.
//!
//! The table of outcomes exists twice, in `src/kube/execute` of the live shell for HTTP and here
//! for the answers of the model, because neither shell may depend on the other.
//! `tests/it/conformance.rs` compares the two tables.

use crate::api_server::{Answer, Name, Request};
use crate::faults::{FaultKind, Faults};
use crate::random::Random;
use gpu_batch_policies::command::Action;
use gpu_batch_policies::event::{Object, Outcome, PodSeen};
use gpu_batch_policies::lease::{LeaseCall, LeaseSeen};

/// What the network, and the API server before it carries out a request, do to one command. Times
/// are milliseconds from the sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// When the request arrives at the API server: one time for each copy, none if it never
    /// arrives.
    pub arrivals_ms: Vec<u64>,
    /// Index of the copy whose answer the client hears.
    pub heard: usize,
    /// How long the answer takes, in milliseconds; `None`: it never arrives.
    pub answer_ms: Option<u64>,
    /// What the client hears instead of the answer.
    pub instead: Option<Outcome>,
}

impl Passage {
    /// Draws what happens to a request. `slow`: the API server is slow at the moment.
    pub fn draw(action: &Action, slow: bool, faults: &mut Faults, random: &mut Random) -> Self {
        let mut way_ms = random.between(1, 20);
        if slow {
            way_ms += random.between(500, 3_500);
        }
        let mut passage = Self {
            arrivals_ms: vec![way_ms],
            heard: 0,
            answer_ms: Some(random.between(1, 20)),
            instead: None,
        };
        let mut strikes = |kind| faults.strikes(kind, random);
        if strikes(FaultKind::RequestLost) {
            passage.arrivals_ms.clear();
            passage.answer_ms = None;
            return passage;
        }
        let lease = matches!(action, Action::Lease(_));
        let instead =
            if strikes(FaultKind::ConnectionReset) || strikes(FaultKind::ErrorBeforeEffect) {
                Some(unknown(
                    "the connection was cut, or the API server had an error",
                ))
            } else if !lease && strikes(FaultKind::Throttled) {
                Some(Outcome::Throttled {
                    retry_after_ms: 1_000,
                })
            } else if may_be_refused(action) && strikes(FaultKind::WebhookRefuses) {
                Some(Outcome::Refused {
                    message: "a webhook said no".into(),
                })
            } else {
                None
            };
        if instead.is_some() {
            passage.arrivals_ms.clear();
            passage.instead = instead;
            passage.answer_ms = Some(way_ms);
            return passage;
        }
        if faults.strikes(FaultKind::RequestLate, random) {
            passage.arrivals_ms[0] += random.between(1_000, 8_000);
        } else if faults.strikes(FaultKind::RequestsReordered, random) {
            passage.arrivals_ms[0] += random.between(20, 300);
        }
        if faults.strikes(FaultKind::RequestRepeated, random) {
            let again_ms = passage.arrivals_ms[0] + random.between(0, 2_000);
            passage.arrivals_ms.push(again_ms);
            passage.heard = usize::from(random.percent(50));
        }
        if faults.strikes(FaultKind::ErrorAfterEffect, random) {
            passage.instead = Some(unknown("the API server had an error"));
        }
        if faults.strikes(FaultKind::ResponseLost, random) {
            passage.answer_ms = None;
        } else if faults.strikes(FaultKind::ResponseLate, random) {
            passage.answer_ms = Some(random.between(1_000, 8_000));
        }
        passage
    }
}

/// Whether a webhook may refuse the action. It may not refuse a status: the engine does not write a
/// refused status again until it changes, so the world would rest with an old one.
fn may_be_refused(action: &Action) -> bool {
    matches!(
        action,
        Action::Bind(_)
            | Action::Evict(_)
            | Action::Lift(_)
            | Action::SelectNode(_)
            | Action::KeepVolume(_)
            | Action::LockCards(_)
            | Action::UnlockCards(_)
    )
}

/// The request of a command.
#[must_use]
pub fn request(action: &Action) -> Request {
    match action {
        Action::Bind(bind) => Request::Bind(bind.clone()),
        Action::Evict(evict) => Request::Evict(evict.clone()),
        Action::Lift(lift) => Request::Lift(lift.clone()),
        Action::SelectNode(select) => Request::SelectNode(select.clone()),
        Action::KeepVolume(keep) => Request::KeepVolume(keep.clone()),
        Action::LockCards(lock) => Request::LockCards(lock.clone()),
        Action::UnlockCards(unlock) => Request::UnlockCards(unlock.clone()),
        Action::Observe(pod) => Request::Get(Name::pod(&pod.namespace, &pod.name)),
        Action::PatchStatus(patch) => Request::PatchStatus(patch.clone()),
        Action::Lease(request) => Request::Lease(request.clone()),
        Action::Publish(announcement) => Request::Publish(announcement.clone()),
    }
}

/// What an answer means to the engine. The live shell has a table of its own for HTTP;
/// `tests/it/conformance.rs` compares the two.
#[must_use]
pub fn outcome(action: &Action, answer: Answer) -> Outcome {
    match (action, answer) {
        (Action::Observe(pod), Answer::Found(stored)) => match &stored.object {
            Object::Pod(facts) if facts.uid == pod.uid => {
                Outcome::Observed(facts.node.clone().map_or(PodSeen::Unbound, PodSeen::Bound))
            }
            _ => Outcome::Observed(PodSeen::Gone),
        },
        (Action::Observe(_), Answer::NotFound) => Outcome::Observed(PodSeen::Gone),
        (Action::Lease(LeaseCall::Read), Answer::NotFound) => Outcome::Lease(LeaseSeen {
            resource_version: None,
            holder: "".into(),
            transitions: 0,
            duration_ms: 0,
        }),
        (_, Answer::Lease(seen)) => Outcome::Lease(seen),
        (
            _,
            Answer::Created(_)
            | Answer::Found(_)
            | Answer::Done
            | Answer::Listed { .. }
            | Answer::Changes { .. },
        ) => Outcome::Done,
        (_, Answer::NotFound) => Outcome::NotFound,
        (_, Answer::AlreadyExists | Answer::Conflict(_)) => Outcome::Conflict {
            message: "the object is not as expected".into(),
        },
        (
            _,
            Answer::TooManyRequests {
                by_budget: true, ..
            },
        ) => Outcome::Refused {
            message: "Cannot evict pod as it would violate the pod's disruption budget.".into(),
        },
        (_, Answer::TooManyRequests { retry_after_s, .. }) => Outcome::Throttled {
            retry_after_ms: retry_after_s.min(60) * 1_000,
        },
        // The only internal error of the model: two disruption budgets select the pod.
        (_, Answer::Invalid(why) | Answer::InternalError(why)) => Outcome::Refused {
            message: why.into(),
        },
        (_, Answer::Gone | Answer::TooLarge) => unknown("the version is not there"),
    }
}

/// The outcome of a request that may have been carried out or not.
fn unknown(why: &str) -> Outcome {
    Outcome::Unknown {
        message: why.into(),
    }
}
