//! Listing a kind, page by page.

use super::page::Page;
use super::{Failure, Watcher, version};
use crate::convert::Converter;
use crate::driver::Clock;
use crate::objects::Watched;
use gpu_batch_policies::event::Object;
use tokio::task::JoinSet;
use tracing::debug;

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
            debug!("{:?}: the API server serves {}", T::KIND, T::PATH);
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
    let mut token = String::new();
    let mut page = Page::fetch::<T>(client.clone(), token.clone()).await?;
    loop {
        let expected = page.token_ahead();
        // Dropped with this function, and the request with it.
        let mut ahead = JoinSet::new();
        if !expected.is_empty() {
            ahead.spawn(Page::fetch::<T>(client.clone(), expected.clone()));
        }
        let page_read = page.read::<T>(client, &token).await?;
        converter.set_now(clock.now_ms());
        for object in page_read.items {
            objects.extend(object.convert(converter));
        }
        token = page_read.metadata.continue_token.into();
        if token.is_empty() {
            return Ok((objects, version(&page_read.metadata.resource_version)?));
        }
        let next = ahead.join_next().await.filter(|_| token == expected);
        page = match next {
            Some(Ok(next)) => next?,
            Some(Err(_)) | None => Page::fetch::<T>(client.clone(), token.clone()).await?,
        };
    }
}
