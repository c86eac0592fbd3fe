//! Watching a kind, line by line.

use super::outline::Outline;
use super::{Failure, Watcher, version};
use crate::objects::Watched;
use futures::{AsyncBufRead, AsyncBufReadExt};
use gpu_batch_policies::event::Event;
use kube::core::Status;
use serde::Deserialize;
use std::time::Duration;

/// How long the API server keeps a watch open.
const WATCH_SECONDS: u64 = 290;
/// How long it may take to open it.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// A watch that says nothing for so long is dead: bookmarks come every minute.
const SILENCE_MAX: Duration = Duration::from_secs(150);

/// One line of a watch.
#[derive(Deserialize)]
struct Frame<T> {
    #[serde(rename = "type")]
    change: Change,
    object: T,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Change {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl<T: Watched> Watcher<T> {
    /// Watches from a version on until the watch ends; says why it did.
    pub(super) async fn follow(&mut self, position: u64) -> Failure {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={position}\
             &timeoutSeconds={WATCH_SECONDS}",
            T::PATH
        );
        let request = match http::Request::get(path).body(Vec::new()) {
            Ok(request) => request,
            Err(error) => return Failure::failed(error.to_string()),
        };
        let opening = self.shared.client.request_stream(request);
        let stream = match tokio::time::timeout(OPEN_TIMEOUT, opening).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return error.into(),
            Err(_) => {
                return Failure::failed(format!("no watch was opened within {OPEN_TIMEOUT:?}"));
            }
        };
        self.watching();
        self.read(std::pin::pin!(stream)).await
    }

    /// Reads lines until there are no more; says why.
    async fn read(&mut self, mut stream: impl AsyncBufRead + Unpin) -> Failure {
        let mut line = Vec::new();
        let mut heard = false;
        loop {
            line.clear();
            let next = tokio::time::timeout(SILENCE_MAX, stream.read_until(b'\n', &mut line));
            let read = tokio::select! {
                biased;
                _ = self.shared.relist.changed() => return Failure::RelistWanted,
                read = next => read,
            };
            match read {
                Ok(Ok(length)) if length > 0 => {}
                // Ended or cut; the next watch goes on where this one was.
                Ok(_) => return Failure::Closed { heard },
                Err(_) => {
                    return Failure::failed(format!("the watch said nothing for {SILENCE_MAX:?}"));
                }
            }
            if let Err(failure) = self.take(&line).await {
                return failure;
            }
            if !heard {
                heard = true;
                self.backoff.reset();
            }
        }
    }

    /// Takes in one line.
    async fn take(&mut self, line: &[u8]) -> Result<(), Failure> {
        let frame: Frame<T> = match serde_json::from_slice(line) {
            Ok(frame) => frame,
            Err(error) => return self.take_unreadable(line, &error).await,
        };
        if frame.change == Change::Error {
            return Err(error_of(line));
        }
        self.take_object(frame.change, frame.object).await
    }

    async fn take_object(&mut self, change: Change, object: T) -> Result<(), Failure> {
        self.advance(&object.meta().resource_version)?;
        let event = match change {
            Change::Bookmark | Change::Error => return Ok(()),
            Change::Deleted => Event::Deleted(object.key()),
            Change::Added | Change::Modified => {
                let key = object.key();
                self.converter.set_now(self.shared.clock.now_ms());
                match object.convert(&mut self.converter) {
                    Some(object) => Event::Applied(Box::new(object)),
                    None => Event::Deleted(key),
                }
            }
        };
        self.shared.inbox.watched(event).await;
        Ok(())
    }

    /// A line whose object is not of the kind: an error, or an object that cannot be read, of which
    /// only the metadata count, so that it stops no other.
    async fn take_unreadable(
        &mut self,
        line: &[u8],
        error: &serde_json::Error,
    ) -> Result<(), Failure> {
        let Frame {
            change,
            object: outline,
        }: Frame<Outline> = serde_json::from_slice(line)
            .map_err(|error| Failure::failed(format!("failed to read the watch: {error}")))?;
        let version = outline.resource_version();
        let object = match change {
            Change::Error => return Err(error_of(line)),
            Change::Bookmark | Change::Deleted => outline.alone(),
            Change::Added | Change::Modified => outline.with_error(error),
        };
        match object {
            Some(object) => self.take_object(change, object).await,
            None => self.advance(&version),
        }
    }

    /// Moves on to a version; it never goes back.
    fn advance(&mut self, to: &str) -> Result<(), Failure> {
        let to = version(to)?;
        if to < self.newest {
            let newest = self.newest;
            return Err(Failure::failed(format!(
                "the watch went back from version {newest} to {to}"
            )));
        }
        self.newest = to;
        self.position = Some(to);
        Ok(())
    }
}

/// The failure that an `ERROR` line stands for.
fn error_of(line: &[u8]) -> Failure {
    match serde_json::from_slice::<Frame<Status>>(line) {
        Ok(frame) => match frame.object.into() {
            // Inside a watch only the status code of the request could mean that.
            Failure::NotServed => Failure::Gone,
            failure => failure,
        },
        Err(error) => Failure::failed(format!("failed to read an error of the watch: {error}")),
    }
}
