//! Why a list or a watch failed, and what follows from it.

use crate::connection::{Outage, reason};
use kube::core::Status;
use std::time::Duration;

/// Why a list or a watch ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The API server ended the watch in good order; `heard`: after it had said something.
    Closed { heard: bool },
    /// 410: the history is gone; only a list helps.
    Gone,
    /// Everything is to be listed anew, or nobody listens any more.
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
        match (Outage::of(&error), error) {
            (Some(outage), _) => Self::CutOff(outage),
            (None, kube::Error::Api(status)) => (*status).into(),
            (None, error) => Self::failed(reason(&error)),
        }
    }
}
