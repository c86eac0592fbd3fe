//! Many requests at the same time.

use anyhow::{Context, bail};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

/// An object to be created, or a binding to be made.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) path: String,
    pub(super) body: Value,
}

/// Posts everything, so many at a time, in tasks of their own. What exists already is left alone.
///
/// # Errors
/// One of the requests that failed; others were sent all the same.
pub(super) async fn post_all(
    client: &Client,
    posts: Vec<Post>,
    at_a_time: u32,
) -> anyhow::Result<()> {
    let encoded: Vec<(String, Vec<u8>)> = posts
        .into_iter()
        .map(|post| Ok((post.path, serde_json::to_vec(&post.body)?)))
        .collect::<serde_json::Result<_>>()?;
    let posts = Arc::new(Mutex::new(encoded.into_iter()));
    let mut workers = JoinSet::new();
    for _ in 0..at_a_time {
        let (client, posts) = (client.clone(), Arc::clone(&posts));
        workers.spawn(async move {
            let next = || posts.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some((path, body)) = next() {
                send(&client, http::Request::post(&path), body)
                    .await
                    .with_context(|| format!("cannot post to {path}"))?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(())
}

/// Sends one request, whose body is JSON unless it says otherwise, and reads the whole answer.
pub(super) async fn send(
    client: &Client,
    request: http::request::Builder,
    body: Vec<u8>,
) -> anyhow::Result<Vec<u8>> {
    let mut request = request.body(Body::from(body))?;
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().entry(CONTENT_TYPE).or_insert(json);
    let answer = client.send(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect_bytes().await?;
    if !status.is_success() && status != StatusCode::CONFLICT {
        bail!("{status}: {}", String::from_utf8_lossy(&body));
    }
    Ok(body.to_vec())
}
