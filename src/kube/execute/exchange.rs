//! One request and its answer, within a deadline.

use crate::kube::connection::reason;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Method, StatusCode};
use kube::client::Body;
use serde::Serialize;
use thiserror::Error;
use tracing::debug;

/// A request as data.
#[derive(Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// What the body is.
    pub content_type: &'static str,
    /// The body; empty where there is none.
    pub body: Vec<u8>,
}

/// What the API server answered.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: StatusCode,
    /// The header `Retry-After`, where it is a number of seconds.
    pub retry_after_s: Option<u64>,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The request could not be formed; nothing was sent.
    #[error("failed to form the request")]
    Malformed(#[from] http::Error),
    /// The request may have been sent, and even done.
    #[error("failed to exchange a request with the API server")]
    Lost(#[from] kube::Error),
}

pub(super) const JSON: &str = "application/json";
pub(super) const JSON_PATCH: &str = "application/json-patch+json";
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(super) const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";

impl Request {
    pub(super) fn get(path: String) -> Self {
        Self {
            method: Method::GET,
            path,
            content_type: JSON,
            body: Vec::new(),
        }
    }

    pub(super) fn post(path: String, body: &impl Serialize) -> Self {
        Self {
            method: Method::POST,
            path,
            content_type: JSON,
            body: json(body),
        }
    }

    pub(super) fn put(path: String, body: &impl Serialize) -> Self {
        Self {
            method: Method::PUT,
            ..Self::post(path, body)
        }
    }

    pub(super) fn patch(path: String, content_type: &'static str, body: &impl Serialize) -> Self {
        Self {
            method: Method::PATCH,
            path,
            content_type,
            body: json(body),
        }
    }
}

fn json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("the bodies are structs with string keys, which always encode")
}

/// Sends a request once and reads the whole answer.
///
/// # Errors
/// [`ExchangeError`] if no whole answer came. An answer that says no is an answer.
pub async fn exchange(client: &kube::Client, request: Request) -> Result<Answer, ExchangeError> {
    let result = send(client, request).await;
    if let Err(error) = &result {
        debug!("{}", reason(error));
    }
    result
}

/// The body of an answer must be read even where it is not used: otherwise the connection cannot be
/// used again.
async fn send(client: &kube::Client, request: Request) -> Result<Answer, ExchangeError> {
    let request = http::Request::builder()
        .method(request.method)
        .uri(request.path)
        .header(CONTENT_TYPE, HeaderValue::from_static(request.content_type))
        .body(Body::from(request.body))?;
    let (parts, body) = client.send(request).await?.into_parts();
    let retry_after_s = parts
        .headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    Ok(Answer {
        status: parts.status,
        retry_after_s,
        body: body.collect_bytes().await?.to_vec(),
    })
}
