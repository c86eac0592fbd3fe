//! Follows the pods of the demo, and tells the witness what happens to each.

use super::Witness;
use crate::lab::demo::seen::{self, Pod};
use crate::lab::demo::setting::PART_OF;
use futures::{StreamExt, TryStreamExt};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long to wait before a watch that ended is begun anew.
const RETRY: Duration = Duration::from_millis(200);

/// The books, shared by the follower that writes them and the table that reads them.
#[derive(Debug)]
pub(in crate::lab::demo) struct Books(Mutex<Witness>);

impl Books {
    pub(in crate::lab::demo) fn new(witness: Witness) -> Self {
        Self(Mutex::new(witness))
    }

    pub(in crate::lab::demo) fn open(&self) -> MutexGuard<'_, Witness> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows the pods of the demo for ever. After any error it starts again with a list.
pub(in crate::lab::demo) async fn follow(client: Client, books: &Books) {
    let pods = seen::pods(client);
    loop {
        // An interrupted watch is begun anew, and the list shows what was missed.
        let _ = list_and_watch(&pods, books).await;
        tokio::time::sleep(RETRY).await;
    }
}

async fn list_and_watch(pods: &Api<Pod>, books: &Books) -> Result<(), kube::Error> {
    let selector = format!("{}={}", PART_OF.0, PART_OF.1);
    let list = pods.list(&ListParams::default().labels(&selector)).await?;
    let version = list.metadata.resource_version.clone().unwrap_or_default();
    books.open().saw_all(&list.items, Instant::now());
    let watch = WatchParams::default().labels(&selector);
    let mut events = pods.watch(&watch, &version).await?.boxed();
    while let Some(event) = events.try_next().await? {
        let mut witness = books.open();
        let now = Instant::now();
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => witness.saw(&pod, now),
            WatchEvent::Deleted(pod) => {
                // The last state of the pod may say what no event said before: that the pod had
                // ended.
                witness.saw(&pod, now);
                if let Some(uid) = &pod.metadata.uid {
                    witness.gone(uid, now);
                }
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => return Ok(()),
        }
    }
    Ok(())
}
