//! Why a list or a watch failed, and how long until the next attempt.

use crate::handles::health::Outage;
use crate::kube::connection::{outage, reason};
use kube::core::Status;
use std::time::Duration;

/// How long to wait before the second attempt.
const BACKOFF_FIRST: Duration = Duration::from_millis(200);
/// The longest wait before an attempt.
const BACKOFF_LONGEST: Duration = Duration::from_secs(30);

/// Why a list or a watch ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The API server ended the watch in good order; `heard`: after it had said something.
    Closed { heard: bool },
    /// 410: the history is gone; only a list helps.
    Gone,
    /// Everything is to be listed anew, or the driver is gone.
    RelistWanted,
    /// 404: the kind is not served.
    NotServed,
    /// The API server answers nothing at all.
    CutOff(Outage),
    /// Anything else.
    Failed {
        message: String,
        retry_after: Duration,
    },
}

impl Failure {
    pub(super) fn failed(message: String) -> Self {
        Self::Failed {
            message,
            retry_after: Duration::ZERO,
        }
    }

    /// What happened, for people.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Failed { message, .. } => message,
            Self::CutOff(
                Outage::Unreachable(words) | Outage::Untrusted(words) | Outage::Unauthorized(words),
            ) => words,
            other => other.name(),
        }
    }

    /// The cause in metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
            Self::Gone => "gone",
            Self::RelistWanted => "relist",
            Self::NotServed => "not_served",
            Self::CutOff(_) | Self::Failed { .. } => "failed",
        }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        match status.code {
            404 => Self::NotServed,
            410 => Self::Gone,
            401 => Self::CutOff(Outage::Unauthorized(status.message)),
            code => {
                let seconds = status
                    .details
                    .as_ref()
                    .map_or(0, |details| details.retry_after_seconds);
                Self::Failed {
                    // The API server's words name the permission that is missing.
                    message: format!("{} ({code})", status.message),
                    retry_after: Duration::from_secs(seconds.into()),
                }
            }
        }
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match (outage(&error), error) {
            (Some(outage), _) => Self::CutOff(outage),
            (None, kube::Error::Api(status)) => (*status).into(),
            (None, error) => Self::failed(reason(&error)),
        }
    }
}

/// Waits of 0.2 s, doubling up to 30 s.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            next: BACKOFF_FIRST,
        }
    }
}

impl Backoff {
    pub(super) fn next(&mut self) -> Duration {
        let wait = self.next;
        self.next = BACKOFF_LONGEST.min(wait * 2);
        wait
    }

    pub(super) fn reset(&mut self) {
        self.next = BACKOFF_FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;

    #[test]
    fn waits_double_up_to_a_limit_and_start_anew() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..10).map(|_| backoff.next().as_millis()).collect();
        let expected = [
            200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000,
        ];
        assert_eq!(waits, expected);
        backoff.reset();
        assert_eq!(backoff.next().as_millis(), 200);
    }
}
