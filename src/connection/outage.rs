//! What keeps the API server from answering anything, whatever it is asked for: told once, and not
//! by each of those who ask.

use super::{obstacle, reason};
use kube::client::AuthError;
use std::error::Error;

/// Why no request is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outage {
    /// There is no connection.
    Unreachable(String),
    /// A connection would be possible, and its certificate is not to be trusted.
    Untrusted(String),
    /// The API server, or who gives us a token for it, does not know us.
    Unauthorized(String),
}

impl Outage {
    /// The outage that an error shows; `None`: the error is of one request alone.
    pub(crate) fn of(error: &kube::Error) -> Option<Self> {
        match error {
            kube::Error::Api(status) if status.code == 401 => {
                Some(Self::Unauthorized(status.message.clone()))
            }
            kube::Error::Auth(error) => Some(Self::Unauthorized(reason(error))),
            kube::Error::Service(_) | kube::Error::HyperError(_) => {
                if let Some(error) = find::<AuthError>(error) {
                    return Some(Self::Unauthorized(reason(error)));
                }
                let words = obstacle(error);
                Some(match words.contains("certificate") {
                    true => Self::Untrusted(words),
                    false => Self::Unreachable(words),
                })
            }
            _ => None,
        }
    }

    /// Whether the two are told in the same words but for details that change.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// The sentence that says why the API server at this address serves nothing, and what to do.
    pub(crate) fn sentence(&self, server: &str) -> String {
        match self {
            Self::Unreachable(words) => format!(
                "the API server {server} cannot be reached: {words}; check that it runs, and the \
                 address in the kubeconfig"
            ),
            Self::Untrusted(words) => format!(
                "the API server {server} is not trusted: {words}; the certificate authority in the \
                 kubeconfig must be the one that signed its certificate"
            ),
            Self::Unauthorized(words) => format!(
                "the API server {server} does not accept who we are (401): {words}; the token or \
                 client certificate in the kubeconfig, or of the service account, is wrong or has \
                 expired"
            ),
        }
    }
}

/// An error of this type among an error and its causes.
fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut error = Some(error);
    while let Some(one) = error {
        if let Some(found) = one.downcast_ref() {
            return Some(found);
        }
        error = one.source();
    }
    None
}
