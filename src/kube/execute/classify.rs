//! What an answer of the API server means.

use super::exchange::{Answer, ExchangeError};
use crate::kube::connection::obstacle;
use gpu_batch_policies::event::Outcome;
use http::StatusCode;
use kube::core::Status;

/// How long to wait after a 429 that does not say how long, in seconds.
const RETRY_AFTER_DEFAULT_S: u64 = 1;
/// The longest wait that is believed, in seconds: flow control asks for one second, and a pause of
/// a day would look like a hang.
const RETRY_AFTER_MAX_S: u64 = 60;
/// The cause by which an eviction's 429 is known to come from a disruption budget.
const DISRUPTION_BUDGET: &str = "DisruptionBudget";
/// What the API server says where a webhook has denied a request: before and after the webhook's
/// name.
const DENIED: (&str, &str) = ("admission webhook \"", "\" denied the request");
/// The beginning of the API server's message where it could not call a webhook.
const NOT_CALLED: &str = "Internal error occurred: failed calling webhook \"";
/// The beginning of the API server's message where two disruption budgets select the pod that is
/// to be evicted.
const TWO_BUDGETS: &str = "This pod has more than one PodDisruptionBudget";
/// The reason that comes with [`NOT_CALLED`].
const INTERNAL_ERROR: &str = "InternalError";

/// What an answer means. Every answer is judged here and nowhere else.
///
/// | answer | outcome |
/// |---|---|
/// | 2xx | Done |
/// | a webhook denied it, with any code | Refused |
/// | 500: a webhook could not be called, and may not be left out | Refused |
/// | 500: two disruption budgets select the pod that is to be evicted | Refused |
/// | 404 | NotFound |
/// | 409 | Conflict |
/// | 429 with the cause `DisruptionBudget` | Refused |
/// | other 429 | Throttled |
/// | 401, 408 | Unknown: another token or another try may do |
/// | other 4xx | Refused |
/// | everything else, and no answer | Unknown |
///
/// Admission is over before the API server writes anything, and so is the look at disruption
/// budgets, so a request that they refuse was certainly not done. No other 5xx proves this: it may
/// come from etcd, which may have done the write anyway. Nor does a 409, which the API server also
/// makes of etcd's errors at a binding.
///
/// The simulator's shell has the same table for the model's answers; `tests/it/conformance.rs`
/// compares what both tables make of the same requests.
pub(super) fn classify(answer: &Result<Answer, ExchangeError>) -> Outcome {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error @ ExchangeError::Malformed(_)) => {
            return Outcome::Refused {
                message: error.to_string().into(),
            };
        }
        Err(ExchangeError::Lost(error)) => {
            return Outcome::Unknown {
                message: format!("there was no answer: {}", obstacle(error)).into(),
            };
        }
    };
    let message = || message(answer).into();
    match answer.status {
        status if status.is_success() => Outcome::Done,
        status if !status.is_success() && admission_refuses(answer) => {
            Outcome::Refused { message: message() }
        }
        StatusCode::INTERNAL_SERVER_ERROR if self::message(answer).starts_with(TWO_BUDGETS) => {
            Outcome::Refused { message: message() }
        }
        StatusCode::NOT_FOUND => Outcome::NotFound,
        StatusCode::CONFLICT => Outcome::Conflict { message: message() },
        StatusCode::TOO_MANY_REQUESTS => too_many_requests(answer),
        StatusCode::UNAUTHORIZED | StatusCode::REQUEST_TIMEOUT => {
            Outcome::Unknown { message: message() }
        }
        status if status.is_client_error() => Outcome::Refused { message: message() },
        _ => Outcome::Unknown { message: message() },
    }
}

/// Whether admission has stopped the request. A webhook that denies it chooses the code. A webhook
/// that cannot be called, and whose `failurePolicy` is Fail, makes an InternalError of 500. Errors
/// of etcd can be InternalErrors, too, and only the words tell them apart.
fn admission_refuses(answer: &Answer) -> bool {
    let Some(Status {
        message, reason, ..
    }) = parse(answer)
    else {
        return false;
    };
    let denied = message.strip_prefix(DENIED.0);
    let denied = denied.is_some_and(|rest| rest.contains(DENIED.1));
    denied || (reason == INTERNAL_ERROR && message.starts_with(NOT_CALLED))
}

/// Whether a webhook has stopped the request.
pub(super) fn is_denied(answer: &Result<Answer, ExchangeError>) -> bool {
    answer.as_ref().is_ok_and(admission_refuses)
}

/// Whether the API server does not accept who we are. A webhook that denies with 401 does not mean
/// that.
pub(super) fn is_unauthorized(answer: &Answer) -> bool {
    answer.status == StatusCode::UNAUTHORIZED && !admission_refuses(answer)
}

fn too_many_requests(answer: &Answer) -> Outcome {
    let status = parse(answer);
    let details = status.as_ref().and_then(|status| status.details.as_ref());
    let by_budget = details.is_some_and(|details| {
        details
            .causes
            .iter()
            .any(|cause| cause.reason == DISRUPTION_BUDGET)
    });
    if by_budget {
        return Outcome::Refused {
            message: message(answer).into(),
        };
    }
    let seconds = answer.retry_after_s.unwrap_or(RETRY_AFTER_DEFAULT_S);
    Outcome::Throttled {
        retry_after_ms: seconds.min(RETRY_AFTER_MAX_S) * 1_000,
    }
}

/// The API server's own words; they name the permission or the field.
pub(super) fn message(answer: &Answer) -> String {
    match parse(answer) {
        Some(status) if !status.message.is_empty() => status.message,
        _ => format!("the API server answered {}", answer.status),
    }
}

fn parse(answer: &Answer) -> Option<Status> {
    serde_json::from_slice(&answer.body).ok()
}

/// The outcome's name in metrics and logs.
pub(super) fn name_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done | Outcome::Observed(_) | Outcome::Lease(_) => "done",
        Outcome::Conflict { .. } => "conflict",
        Outcome::NotFound => "not_found",
        Outcome::Refused { .. } => "refused",
        Outcome::Throttled { .. } => "throttled",
        Outcome::Unknown { .. } => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, ExchangeError, Outcome, classify};
    use http::StatusCode;
    use serde_json::json;

    fn check(status: u16, retry_after_s: Option<u64>, body: &str, expected: Outcome) {
        let answer: Result<Answer, ExchangeError> = Ok(Answer {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after_s,
            body: body.as_bytes().to_vec(),
        });
        assert_eq!(classify(&answer), expected, "{status} {body}");
    }

    fn refused(message: &str) -> Outcome {
        Outcome::Refused {
            message: message.into(),
        }
    }

    fn throttled(retry_after_ms: u64) -> Outcome {
        Outcome::Throttled { retry_after_ms }
    }

    #[test]
    fn every_answer_has_one_meaning() {
        check(200, None, "{}", Outcome::Done);
        check(201, None, "not even JSON", Outcome::Done);
        check(404, None, "", Outcome::NotFound);
        let message = "the API server answered 409 Conflict".into();
        check(409, None, "", Outcome::Conflict { message });
        check(429, None, "", throttled(1_000));
        check(429, Some(7), "", throttled(7_000));
        check(429, Some(u64::MAX), "", throttled(60_000));
        let body = r#"{"kind":"Status","status":"Failure","message":"why","reason":"Other"}"#;
        for status in [100, 301, 401, 408, 500, 502, 503, 504] {
            let message = "why".into();
            check(status, Some(1), body, Outcome::Unknown { message });
        }
    }

    fn failure(message: &str, reason: &str) -> String {
        let status =
            json!({"kind": "Status", "status": "Failure", "message": message, "reason": reason});
        status.to_string()
    }

    #[test]
    fn what_admission_stops_was_certainly_not_done_whatever_the_code() {
        let denied = "admission webhook \"hook.example.com\" denied the request: not today";
        for status in [400, 401, 403, 404, 408, 409, 429, 500, 503, 504] {
            check(status, Some(1), &failure(denied, ""), refused(denied));
        }
        let not_called = "Internal error occurred: failed calling webhook \"hook.example.com\": \
             failed to call webhook: Post \"https://127.0.0.1:1/?timeout=1s\": dial tcp \
             127.0.0.1:1: connect: connection refused";
        check(
            500,
            None,
            &failure(not_called, "InternalError"),
            refused(not_called),
        );
    }

    #[test]
    fn what_etcd_says_is_not_certain() {
        for (status, message, reason) in [
            (500, "etcdserver: request timed out", ""),
            (
                500,
                "Internal error occurred: etcdserver: leader changed",
                "InternalError",
            ),
            (
                504,
                "The update operation against pods could not be completed at this time, please \
                   try again.",
                "ServerTimeout",
            ),
            (
                504,
                "request did not complete within requested timeout",
                "Timeout",
            ),
        ] {
            let expected = Outcome::Unknown {
                message: message.into(),
            };
            check(status, None, &failure(message, reason), expected);
        }
        // The API server makes a conflict of etcd's errors at a binding.
        let message =
            "Operation cannot be fulfilled on pods/binding \"a\": etcdserver: request timed out";
        let expected = Outcome::Conflict {
            message: message.into(),
        };
        check(409, None, &failure(message, "Conflict"), expected);
    }

    #[test]
    fn a_refusal_carries_the_words_of_the_api_server() {
        let body = r#"{"kind":"Status","status":"Failure","message":"pods \"a\" is forbidden"}"#;
        for status in [400, 403, 405, 413, 415, 422] {
            check(status, None, body, refused("pods \"a\" is forbidden"));
        }
        check(
            403,
            None,
            "",
            refused("the API server answered 403 Forbidden"),
        );
    }

    #[test]
    fn a_disruption_budget_refuses_and_does_not_throttle() {
        let body = r#"{"kind":"Status","status":"Failure","message":"Cannot evict pod",
            "reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget",
            "message":"The disruption budget x needs 1 healthy pods"}]},"code":429}"#;
        check(429, Some(10), body, refused("Cannot evict pod"));
        let two = "This pod has more than one PodDisruptionBudget, which the eviction subresource \
             does not support.";
        check(500, None, &failure(two, ""), refused(two));
    }
}
