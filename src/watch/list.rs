//! Listing a kind, page by page.

use super::outline::Outline;
use super::{Failure, Watcher, version};
use crate::convert::Converter;
use crate::driver::Clock;
use crate::objects::{ListOf, Watched};
use gpu_batch_policies::event::Object;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::task::JoinSet;
use tracing::{debug, info};

/// Objects a page. Larger pages cost fewer requests and more memory at once.
const PAGE_OBJECTS: u32 = 1_000;
/// How long one page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

impl<T: Watched> Watcher<T> {
    /// Reads everything and delivers it as one event; returns where to watch from.
    pub(super) async fn list(&mut self) -> Result<u64, Failure> {
        self.shared.relist.borrow_and_update();
        let (client, clock) = (&self.shared.client, self.shared.clock);
        let (objects, version) = list_all::<T>(client, &mut self.converter, clock).await?;
        if version < self.newest {
            let newest = self.newest;
            return Err(Failure::failed(format!(
                "a list of version {version} is older than version {newest}, which was seen before"
            )));
        }
        debug!("{:?}: listed {} objects", T::KIND, objects.len());
        self.newest = version;
        if std::mem::take(&mut self.not_served) {
            info!("{:?}: the API server serves {}", T::KIND, T::PATH);
        }
        self.backoff.reset();
        self.deliver(objects).await;
        self.watching();
        Ok(version)
    }
}

/// All objects of a kind, page by page, and the version that they are of.
///
/// Without a resourceVersion each list is a quorum read, and all its pages show one moment. If that
/// moment is compacted away before the last page, the API server answers 410, and what was read so
/// far is dropped. A page is read while the API server makes the next one: in a large cluster the
/// start of the scheduler takes little longer than the API server needs.
pub(crate) async fn list_all<T: Watched>(
    client: &kube::Client,
    converter: &mut Converter,
    clock: Clock,
) -> Result<(Vec<Object>, u64), Failure> {
    let mut objects = Vec::new();
    let mut text = page::<T>(client.clone(), String::new()).await?;
    loop {
        let expected = token_ahead(&text).to_owned();
        // Dropped with this function, and the request with it.
        let mut ahead = JoinSet::new();
        if !expected.is_empty() {
            ahead.spawn(page::<T>(client.clone(), expected.clone()));
        }
        let page_read = read::<T>(&text)?;
        converter.set_now(clock.now_ms());
        for object in page_read.items {
            objects.extend(object.convert(converter));
        }
        let token = &page_read.metadata.continue_token;
        if token.is_empty() {
            return Ok((objects, version(&page_read.metadata.resource_version)?));
        }
        let next = ahead.join_next().await.filter(|_| **token == *expected);
        text = match next {
            Some(Ok(next)) => next?,
            Some(Err(_)) | None => page::<T>(client.clone(), token.to_string()).await?,
        };
    }
}

/// The token of the next page, where the text names it before the objects, as the API server does
/// for its own kinds; else empty.
fn token_ahead(text: &str) -> &str {
    let head = text.split("\"items\"").next().unwrap_or_default();
    let token = head.split_once("\"continue\":\"").map(|(_, rest)| rest);
    // It is base64, so the next quote ends it.
    token.map_or("", |rest| rest.split('"').next().unwrap_or_default())
}

async fn page<T: Watched>(client: kube::Client, token: String) -> Result<String, Failure> {
    let mut path = format!("{}?limit={PAGE_OBJECTS}", T::PATH);
    if !token.is_empty() {
        // The token is base64 for URLs, so it needs no escapes.
        path.push_str("&continue=");
        path.push_str(&token);
    }
    let request = http::Request::get(path)
        .body(Vec::new())
        .map_err(|error| Failure::failed(error.to_string()))?;
    let text = tokio::time::timeout(PAGE_TIMEOUT, client.request_text(request))
        .await
        .map_err(|_| Failure::failed(format!("a page took longer than {PAGE_TIMEOUT:?}")))?;
    Ok(text?)
}

fn read<T: Watched>(text: &str) -> Result<ListOf<T>, Failure> {
    serde_json::from_str(text).or_else(|error| {
        debug!("{:?}: reading a page object by object: {error}", T::KIND);
        one_by_one(text)
    })
}

/// Reads a page in which some object cannot be read; of that one only what its metadata say.
fn one_by_one<T: Watched>(text: &str) -> Result<ListOf<T>, Failure> {
    let page: ListOf<Box<RawValue>> = serde_json::from_str(text)
        .map_err(|error| Failure::failed(format!("failed to read a list: {error}")))?;
    let read = |object: Box<RawValue>| -> Option<T> {
        serde_json::from_str(object.get())
            .or_else(|error| {
                let outline: Outline = serde_json::from_str(object.get()).map_err(drop)?;
                outline.with_error(&error).ok_or(())
            })
            .ok()
    };
    Ok(ListOf {
        metadata: page.metadata,
        items: page.items.into_iter().filter_map(read).collect(),
    })
}
