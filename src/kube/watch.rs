//! Lists and watches: one task a kind.
//!
//! ```text
//!    +------------ 410 Gone, list asked for -------------+
//!    v                                                   |
//! Listing ---listed as ONE event--> Watching ---ended, failed---> Watching again, where it was
//!    |  ^                              |
//! 404|  |after 5 s                     | 404: the CRD was deleted
//!    v  |                              |
//! Not served <-------------------------+     counts as listed empty
//! ```
//!
//! Failures are tried again after 0.2 s, doubling up to 30 s. The world never goes back in time: a
//! list older than what was seen before (an API server restored from a backup, or one that lags) is
//! refused and asked for again, which `/readyz` shows.
//!
//! Not used: kube's own watcher, because it decodes whole objects, and most of the memory and time
//! of a large cluster is in fields that are not used.

mod failure;
mod list;
mod stream;

pub(crate) use failure::Failure;
pub(crate) use list::{Page, list_all};

use crate::handles::Handles;
use crate::handles::health::WatchState;
use crate::kube::convert::{Converter, Watched};
use failure::Backoff;
use gpu_batch_policies::event::{Event, Listing, Object};
use std::marker::PhantomData;
use std::time::Duration;
use tokio::sync::watch;
use tracing::{debug, info, warn};

/// How soon a kind that is not served is looked for again.
const NOT_SERVED_RETRY: Duration = Duration::from_secs(5);

/// What all watchers share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) client: kube::Client,
    pub(crate) handles: Handles,
    /// Changes when everything is to be listed anew; closed when the driver is gone.
    pub(crate) relist: watch::Receiver<u64>,
}

/// Keeps the engine informed about one kind.
pub(crate) struct Watcher<T> {
    shared: Shared,
    converter: Converter,
    /// The version from which the watch goes on; `None`: a list comes first.
    position: Option<u64>,
    /// The newest version that was ever seen.
    newest: u64,
    /// Whether an empty list was delivered because the kind is not served.
    not_served: bool,
    /// Whether a watch in the binary form had an object that could not be read: it now uses JSON.
    json_only: bool,
    backoff: Backoff,
    /// The last failure that was logged, so that a lasting one is logged once.
    complaint: Option<String>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Watched> Watcher<T> {
    /// A watcher that converts what it sees with this converter.
    pub(crate) fn new(shared: Shared, converter: Converter) -> Self {
        Self {
            shared,
            converter,
            position: None,
            newest: 0,
            not_served: false,
            json_only: false,
            backoff: Backoff::default(),
            complaint: None,
            kind: PhantomData,
        }
    }

    /// Runs until the driver is gone.
    pub(crate) async fn run(mut self) {
        // An error: the driver is gone.
        while self.shared.relist.has_changed().is_ok() {
            let failure = match self.position {
                None => match self.list().await {
                    Ok(version) => {
                        self.position = Some(version);
                        continue;
                    }
                    Err(failure) => failure,
                },
                Some(position) => self.follow(position).await,
            };
            // A kind that is still not served is no news.
            if !(self.not_served && matches!(failure, Failure::NotServed)) {
                self.shared
                    .handles
                    .metrics
                    .watch_restarted(T::KIND, failure.name());
            }
            match failure {
                Failure::Closed { heard: true } => {}
                Failure::Closed { heard: false } => {
                    let wait = self.backoff.next();
                    self.pause(wait).await;
                }
                Failure::Gone | Failure::RelistWanted => {
                    debug!("{:?}: listing again", T::KIND);
                    self.position = None;
                }
                Failure::NotServed => self.without_server().await,
                Failure::CutOff(outage) => {
                    self.shared.handles.health.failed(outage);
                    self.shared.handles.health.set(T::KIND, WatchState::CutOff);
                    let wait = self.backoff.next();
                    self.pause(wait).await;
                }
                Failure::Failed {
                    message,
                    retry_after,
                } => {
                    self.complain(message);
                    let wait = self.backoff.next().max(retry_after);
                    self.pause(wait).await;
                }
            }
        }
    }

    /// A kind that is not served counts as listed empty, and is looked for again.
    async fn without_server(&mut self) {
        self.position = None;
        if !self.not_served {
            debug!("{:?}: the API server does not serve {}", T::KIND, T::PATH);
            self.not_served = true;
            self.deliver(Vec::new()).await;
        }
        self.shared.handles.health.answered();
        self.shared
            .handles
            .health
            .set(T::KIND, WatchState::NotServed);
        self.complaint = None;
        self.pause(NOT_SERVED_RETRY).await;
    }

    async fn deliver(&self, objects: Vec<Object>) {
        let kind = T::KIND;
        let listing = Listing { kind, objects };
        self.shared
            .handles
            .inbox
            .watched(Event::Listed(listing))
            .await;
    }

    fn complain(&mut self, message: String) {
        if self.complaint.as_ref() != Some(&message) {
            warn!("{:?}: {message}", T::KIND);
            let state = WatchState::Failing(message.clone());
            self.shared.handles.health.set(T::KIND, state);
            self.complaint = Some(message);
        }
    }

    fn watching(&mut self) {
        if self.complaint.take().is_some() {
            info!("{:?}: watching again", T::KIND);
        }
        self.shared.handles.health.answered();
        self.shared
            .handles
            .health
            .set(T::KIND, WatchState::Watching);
    }

    /// Waits, but not longer than until a list is asked for or the driver is gone.
    async fn pause(&mut self, wait: Duration) {
        let changed = tokio::time::timeout(wait, self.shared.relist.changed()).await;
        if matches!(changed, Ok(Ok(()))) {
            self.position = None;
            self.not_served = false;
        }
    }
}

/// A resourceVersion as a number. Versions of one kind are comparable since Kubernetes 1.35.
fn version(text: &str) -> Result<u64, Failure> {
    text.parse()
        .map_err(|_| Failure::failed(format!("the resourceVersion {text:?} is not a number")))
}

#[cfg(test)]
mod tests;
