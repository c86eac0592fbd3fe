//! What an answer of the API server means.

use super::exchange::{Answer, ExchangeError};
use gpu_batch_policies::event::Outcome;
use http::StatusCode;
use kube::core::Status;

/// How long to wait after a 429 that does not say.
const RETRY_AFTER_DEFAULT_S: u64 = 1;
/// Longer waits are not believed: flow control asks for a second, and a pause of a day would look
/// like a hang.
const RETRY_AFTER_MAX_S: u64 = 60;
/// The cause by which an eviction's 429 is known to come from a disruption budget.
const DISRUPTION_BUDGET: &str = "DisruptionBudget";

/// What an answer means. Every request is judged here and nowhere else.
///
/// | answer | outcome |
/// |---|---|
/// | 2xx | Done |
/// | 404 | NotFound |
/// | 409 | Conflict |
/// | 429 with the cause `DisruptionBudget` | Refused |
/// | other 429 | Throttled |
/// | 401, 408 | Unknown: another token or another try may do |
/// | other 4xx | Refused |
/// | everything else, and no answer | Unknown |
///
/// The simulator's shell has the same table for the model's answers; `tests/it/conformance.rs`
/// compares what the two make of the same requests.
pub(super) fn classify(answer: &Result<Answer, ExchangeError>) -> Outcome {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error @ ExchangeError::Malformed(_)) => {
            return Outcome::Refused {
                message: error.to_string().into(),
            };
        }
        Err(ExchangeError::Lost(_)) => return Outcome::Unknown,
    };
    match answer.status {
        status if status.is_success() => Outcome::Done,
        StatusCode::NOT_FOUND => Outcome::NotFound,
        StatusCode::CONFLICT => Outcome::Conflict,
        StatusCode::TOO_MANY_REQUESTS => too_many_requests(answer),
        StatusCode::UNAUTHORIZED | StatusCode::REQUEST_TIMEOUT => Outcome::Unknown,
        status if status.is_client_error() => Outcome::Refused {
            message: message(answer).into(),
        },
        _ => Outcome::Unknown,
    }
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
        Outcome::Conflict => "conflict",
        Outcome::NotFound => "not_found",
        Outcome::Refused { .. } => "refused",
        Outcome::Throttled { .. } => "throttled",
        Outcome::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, ExchangeError, Outcome, classify};
    use http::StatusCode;

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
        check(409, None, "", Outcome::Conflict);
        check(429, None, "", throttled(1_000));
        check(429, Some(7), "", throttled(7_000));
        check(429, Some(u64::MAX), "", throttled(60_000));
        for unknown in [100, 301, 401, 408, 500, 502, 503, 504] {
            check(unknown, Some(1), "", Outcome::Unknown);
        }
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
    }
}
