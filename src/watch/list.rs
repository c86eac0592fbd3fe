//! Listing a kind, page by page.

use super::outline::Outline;
use super::{Failure, Watcher, version};
use crate::objects::{ListOf, Watched};
use serde_json::value::RawValue;
use std::time::Duration;
use tracing::debug;

/// Objects a page. Larger pages cost fewer requests and more memory at once.
const PAGE_OBJECTS: u32 = 1_000;
/// How long one page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

impl<T: Watched> Watcher<T> {
    /// Reads everything, page by page, and delivers it as one event; returns where to watch from.
    ///
    /// Without a resourceVersion each list is a quorum read, and all its pages show one moment. If
    /// that moment is compacted away before the last page, the API server answers 410 and the list
    /// starts from the beginning; what was read so far is dropped.
    pub(super) async fn list(&mut self) -> Result<u64, Failure> {
        self.shared.relist.borrow_and_update();
        let mut objects = Vec::new();
        let mut token = String::new();
        let version = loop {
            let page = self.page(&token).await?;
            self.converter.set_now(self.shared.clock.now_ms());
            for object in page.items {
                objects.extend(object.convert(&mut self.converter));
            }
            if page.metadata.continue_token.is_empty() {
                break version(&page.metadata.resource_version)?;
            }
            token = page.metadata.continue_token.into();
        };
        if version < self.newest {
            let newest = self.newest;
            return Err(Failure::failed(format!(
                "a list of version {version} is older than version {newest}, which was seen before"
            )));
        }
        debug!("{:?}: listed {} objects", T::KIND, objects.len());
        self.newest = version;
        self.not_served = false;
        self.backoff.reset();
        self.deliver(objects).await;
        self.watching();
        Ok(version)
    }

    async fn page(&self, token: &str) -> Result<ListOf<T>, Failure> {
        let mut path = format!("{}?limit={PAGE_OBJECTS}", T::PATH);
        if !token.is_empty() {
            // The token is base64 for URLs, so it needs no escapes.
            path.push_str("&continue=");
            path.push_str(token);
        }
        let request = http::Request::get(path)
            .body(Vec::new())
            .map_err(|error| Failure::failed(error.to_string()))?;
        let text = tokio::time::timeout(PAGE_TIMEOUT, self.shared.client.request_text(request))
            .await
            .map_err(|_| Failure::failed(format!("a page took longer than {PAGE_TIMEOUT:?}")))??;
        match serde_json::from_str(&text) {
            Ok(page) => Ok(page),
            Err(error) => {
                debug!("{:?}: reading a page object by object: {error}", T::KIND);
                one_by_one(&text)
            }
        }
    }
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
