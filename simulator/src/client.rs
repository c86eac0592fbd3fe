//! What a command is to the API server, and what the answer is to the engine.

use crate::api_server::{Answer, Name, Request};
use gpu_batch_policies::command::Action;
use gpu_batch_policies::event::{Object, Outcome, PodSeen};
use gpu_batch_policies::lease::{LeaseRequest, LeaseSeen};

/// The request of a command.
pub(crate) fn request(action: &Action) -> Request {
    match action {
        Action::Bind(bind) => Request::Bind(bind.clone()),
        Action::Evict(evict) => Request::Evict(evict.clone()),
        Action::Observe(pod) => Request::Get(Name::pod(&pod.namespace, &pod.name)),
        Action::PatchStatus(patch) => Request::PatchStatus(patch.clone()),
        Action::Lease(request) => Request::Lease(request.clone()),
        Action::Publish(announcement) => Request::Publish(announcement.clone()),
    }
}

/// What an answer means to the engine; the same table as the live shell's.
pub(crate) fn outcome(action: &Action, answer: Answer) -> Outcome {
    match (action, answer) {
        (Action::Observe(pod), Answer::Found(stored)) => match &stored.object {
            Object::Pod(facts) if facts.uid == pod.uid => {
                Outcome::Observed(facts.node.clone().map_or(PodSeen::Unbound, PodSeen::Bound))
            }
            _ => Outcome::Observed(PodSeen::Gone),
        },
        (Action::Observe(_), Answer::NotFound) => Outcome::Observed(PodSeen::Gone),
        (Action::Lease(LeaseRequest::Read), Answer::NotFound) => Outcome::Lease(LeaseSeen {
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
        (_, Answer::AlreadyExists | Answer::Conflict(_)) => Outcome::Conflict,
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
        (_, Answer::Invalid(why)) => Outcome::Refused {
            message: why.into(),
        },
        (_, Answer::Gone | Answer::InternalError(_) | Answer::TooLarge) => Outcome::Unknown,
    }
}
