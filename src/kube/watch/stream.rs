//! Watching a kind, frame by frame.
//!
//! A frame is a line of JSON or, of the kinds that have it, a message of the binary form behind its
//! length. The API server makes a frame for each change of a pod while it binds others, and needs
//! for the binary form a fraction of the time.

use super::list::{Outline, is_binary, refusal};
use super::{Failure, Watcher, version};
use crate::kube::convert::Watched;
use crate::kube::objects::protobuf;
use axum::body::Body;
use futures::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, TryStreamExt};
use gpu_batch_policies::event::Event;
use http::header::ACCEPT;
use kube::core::Status;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use std::io;
use std::time::Duration;
use tracing::debug;

/// How long the API server keeps a watch open.
const WATCH_SECONDS: u64 = 290;
/// How long it may take to open a watch.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// A watch that says nothing for this long is dead: bookmarks come every minute.
const SILENCE_MAX: Duration = Duration::from_secs(150);
/// The longest frame that is believed, in bytes: etcd takes no object of a tenth of this.
const FRAME_BYTES_MAX: u32 = 32 << 20;
const JSON: &str = "application/json";

/// One line of a watch in JSON.
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
        let (stream, binary) = match tokio::time::timeout(OPEN_TIMEOUT, self.open(path)).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(failure)) => return failure,
            Err(_) => {
                return Failure::failed(format!("no watch was opened within {OPEN_TIMEOUT:?}"));
            }
        };
        self.watching();
        self.read(std::pin::pin!(stream), binary).await
    }

    /// Opens a watch: the stream, and how to read it if it is in the binary form.
    async fn open(
        &self,
        path: String,
    ) -> Result<(impl AsyncBufRead + use<T>, Option<&'static protobuf::Forms>), Failure> {
        let forms = T::PROTOBUF.filter(|_| !self.json_only);
        let accepted = match forms {
            Some(_) => format!("{}, {JSON}", protobuf::WATCH_CONTENT_TYPE),
            None => JSON.to_owned(),
        };
        let request = http::Request::get(path)
            .header(ACCEPT, accepted)
            .body(kube::client::Body::empty())
            .map_err(|error| Failure::failed(error.to_string()))?;
        let (head, body) = self.shared.client.send(request).await?.into_parts();
        let binary = is_binary(&head.headers);
        if !head.status.is_success() {
            let body = body.collect_bytes().await?;
            return Err(refusal(head.status, &body, binary).into());
        }
        let chunks = Body::new(body).into_data_stream();
        let stream = chunks.map_err(io::Error::other).into_async_read();
        Ok((stream, forms.filter(|_| binary)))
    }

    /// Reads frames until there are no more; says why there are none.
    async fn read(
        &mut self,
        mut stream: impl AsyncBufRead + Unpin,
        binary: Option<&'static protobuf::Forms>,
    ) -> Failure {
        let mut frame = Vec::new();
        let mut heard = false;
        loop {
            frame.clear();
            let reading = read_frame(&mut stream, binary.is_some(), &mut frame);
            let next = tokio::time::timeout(SILENCE_MAX, reading);
            let read = tokio::select! {
                biased;
                _ = self.shared.relist.changed() => return Failure::RelistWanted,
                read = next => read,
            };
            match read {
                Ok(Ok(())) if !frame.is_empty() => {}
                // The stream ended or was cut; the next watch goes on where this one was.
                Ok(_) => return Failure::Closed { heard },
                Err(_) => {
                    return Failure::failed(format!("the watch said nothing for {SILENCE_MAX:?}"));
                }
            }
            let taken = match binary {
                Some(forms) => self.take_binary(&frame, forms).await,
                None => self.take_line(&frame).await,
            };
            if let Err(failure) = taken {
                return failure;
            }
            if !heard {
                heard = true;
                self.backoff.reset();
            }
        }
    }

    /// Takes in one frame of the binary form. After a frame that cannot be read the watch goes on
    /// in JSON, where an object that cannot be read stops no other.
    async fn take_binary(
        &mut self,
        frame: &[u8],
        forms: &'static protobuf::Forms,
    ) -> Result<(), Failure> {
        let read = || {
            let (change, object) = protobuf::watch_event(frame)?;
            let change = Change::deserialize(change.into_deserializer())?;
            if change == Change::Error {
                let status: Status = protobuf::from_body(object, &protobuf::STATUS)?;
                return Ok(Err(of_error(status)));
            }
            let object: T = protobuf::from_body(object, forms.object)?;
            Ok::<_, serde::de::value::Error>(Ok((change, object)))
        };
        match read() {
            Ok(Ok((change, object))) => self.take_object(change, object).await,
            Ok(Err(failure)) => Err(failure),
            Err(error) => {
                debug!("{:?}: watching in JSON: {error}", T::KIND);
                self.json_only = true;
                Err(Failure::Closed { heard: true })
            }
        }
    }

    /// Takes in one line of JSON.
    async fn take_line(&mut self, line: &[u8]) -> Result<(), Failure> {
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
                self.converter.set_now(self.shared.handles.clock.now_ms());
                match object.convert(&mut self.converter) {
                    Some(object) => Event::Applied(Box::new(object)),
                    None => Event::Deleted(key),
                }
            }
        };
        self.shared.handles.inbox.watched(event).await;
        Ok(())
    }

    /// Takes in a line whose object is not of the kind: an error, or an object that cannot be read.
    /// Of such an object only the metadata are used, so that it stops no other.
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
        Ok(frame) => of_error(frame.object),
        Err(error) => Failure::failed(format!("failed to read an error of the watch: {error}")),
    }
}

fn of_error(status: Status) -> Failure {
    match status.into() {
        // Only the status code of the request can say that the kind is not served: a 404 inside a
        // watch counts as a version that is gone.
        Failure::NotServed => Failure::Gone,
        failure => failure,
    }
}

/// Reads the next frame into `frame`, which stays empty at the end of the stream.
async fn read_frame(
    stream: &mut (impl AsyncBufRead + Unpin),
    binary: bool,
    frame: &mut Vec<u8>,
) -> io::Result<()> {
    if !binary {
        return stream.read_until(b'\n', frame).await.map(drop);
    }
    if stream.fill_buf().await?.is_empty() {
        return Ok(());
    }
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let length = u32::from_be_bytes(length);
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::other("a frame of the watch is too long"));
    }
    let read = stream.take(length.into()).read_to_end(frame).await?;
    if read < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}
