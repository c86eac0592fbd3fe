//! Listing a kind, page by page: the requests, and reading the answers, also where an object cannot
//! be read.

use super::{Failure, Watcher, version};
use crate::handles::Clock;
use crate::kube::convert::{Converter, Watched};
use crate::kube::objects::{ListOf, protobuf};
use axum::body::Bytes;
use gpu_batch_policies::event::Object;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use kube::client::Body;
use kube::core::Status;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::JoinSet;
use tracing::{debug, warn};

/// Objects a page. Larger pages cost fewer requests and more memory at once.
const PAGE_OBJECTS: u32 = 1_000;
/// How long one page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
const JSON: &str = "application/json";

impl<T: Watched> Watcher<T> {
    /// Reads all objects and delivers them as one event; returns the version to watch from.
    pub(super) async fn list(&mut self) -> Result<u64, Failure> {
        self.shared.relist.borrow_and_update();
        let (client, clock) = (&self.shared.client, self.shared.handles.clock);
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

/// All objects of a kind, page by page, and the version of the list.
///
/// Without a resourceVersion each list is a quorum read, and all its pages show one moment. If that
/// moment is compacted away before the last page, the API server answers 410, and the pages read so
/// far are dropped. A page is read while the API server makes the next one: in a large cluster the
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
        // When this function ends, the set is dropped, and the request with it.
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

/// A page as it came, not decoded.
pub(crate) struct Page {
    body: Bytes,
    /// How to read the binary form; `None`: the body is JSON.
    binary: Option<&'static protobuf::Message>,
}

impl Page {
    /// Asks for the page of a token; an empty token stands for the first page. In the binary form,
    /// if the kind has one and the API server speaks it.
    pub(crate) async fn fetch<T: Watched>(
        client: kube::Client,
        token: String,
    ) -> Result<Self, Failure> {
        Self::fetch_as(
            &client,
            T::PATH,
            &token,
            T::PROTOBUF.map(|forms| forms.list),
        )
        .await
    }

    /// Asks for the page of a token in JSON.
    pub(crate) async fn fetch_json<T: Watched>(
        client: &kube::Client,
        token: &str,
    ) -> Result<Self, Failure> {
        Self::fetch_as(client, T::PATH, token, None).await
    }

    /// How many bytes the body has.
    pub(crate) fn size(&self) -> usize {
        self.body.len()
    }

    async fn fetch_as(
        client: &kube::Client,
        path: &str,
        token: &str,
        form: Option<&'static protobuf::Message>,
    ) -> Result<Self, Failure> {
        let mut path = format!("{path}?limit={PAGE_OBJECTS}");
        if !token.is_empty() {
            // The token is base64 for URLs, so it needs no escapes.
            path.push_str("&continue=");
            path.push_str(token);
        }
        let accepted: Cow<'_, str> = match form {
            Some(_) => format!("{}, {JSON}", protobuf::CONTENT_TYPE).into(),
            None => JSON.into(),
        };
        let request = http::Request::get(path)
            .header(ACCEPT, &*accepted)
            .body(Body::empty())
            .map_err(|error| Failure::failed(error.to_string()))?;
        let answer = async {
            let (head, body) = client.send(request).await?.into_parts();
            Ok::<_, kube::Error>((head, body.collect_bytes().await?))
        };
        let (head, body) = tokio::time::timeout(PAGE_TIMEOUT, answer)
            .await
            .map_err(|_| Failure::failed(format!("a page took longer than {PAGE_TIMEOUT:?}")))??;
        let binary = is_binary(&head.headers);
        if !head.status.is_success() {
            return Err(refusal(head.status, &body, binary).into());
        }
        Ok(Self {
            body,
            binary: form.filter(|_| binary),
        })
    }

    /// The token of the next page, where it can be found without reading the objects; else empty.
    pub(crate) fn token_ahead(&self) -> String {
        match self.binary {
            Some(_) => protobuf::from_body(&self.body, &protobuf::LIST_HEAD)
                .map(|page: ListOf<IgnoredAny>| page.metadata.continue_token.into())
                .unwrap_or_default(),
            None => self.text().map(token_ahead).unwrap_or_default().to_owned(),
        }
    }

    /// The objects of the page. A page that cannot be read in the binary form is asked for in JSON,
    /// which can be read object by object; `token`: the token of this page.
    pub(super) async fn read<T: Watched>(
        &self,
        client: &kube::Client,
        token: &str,
    ) -> Result<ListOf<T>, Failure> {
        let Some(message) = self.binary else {
            return read_json(self.text()?);
        };
        match protobuf::from_body(&self.body, message) {
            Ok(page) => Ok(page),
            Err(error) => {
                debug!("{:?}: asking for a page in JSON: {error}", T::KIND);
                let page = Self::fetch_json::<T>(client, token).await?;
                read_json(page.text()?)
            }
        }
    }

    fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(&self.body)
            .map_err(|_| Failure::failed("a list that is not UTF-8".to_owned()))
    }
}

/// Whether the body behind these headers is in the binary form.
pub(super) fn is_binary(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|form| {
        let binary = protobuf::CONTENT_TYPE.as_bytes();
        form.as_bytes().starts_with(binary)
    })
}

/// What the API server says where it refuses a request.
pub(super) fn refusal(code: StatusCode, body: &[u8], binary: bool) -> Status {
    let status: Option<Status> = if binary {
        protobuf::from_body(body, &protobuf::STATUS).ok()
    } else {
        serde_json::from_slice(body).ok()
    };
    // A body that is no Status comes from a proxy.
    status.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        Status::failure(text.trim(), "Unknown").with_code(code.as_u16())
    })
}

/// The token of the next page, where the text has it before the objects, as the API server writes
/// it for its own kinds; else empty.
fn token_ahead(text: &str) -> &str {
    let head = text.split("\"items\"").next().unwrap_or_default();
    let token = head.split_once("\"continue\":\"").map(|(_, rest)| rest);
    // The token is base64, so the next quote ends it.
    token.map_or("", |rest| rest.split('"').next().unwrap_or_default())
}

fn read_json<T: Watched>(text: &str) -> Result<ListOf<T>, Failure> {
    serde_json::from_str(text).or_else(|error| {
        debug!("{:?}: reading a page object by object: {error}", T::KIND);
        one_by_one(text)
    })
}

/// Reads a page in which some object cannot be read; of that object only the metadata are used.
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

/// The metadata of an object. Everything else is skipped without recursion, so that an object may
/// be nested as deeply as it likes; so are the values of the metadata, because `managedFields`
/// repeats the object's fields as deep as they are.
#[derive(Serialize, Deserialize)]
pub(super) struct Outline {
    #[serde(default)]
    metadata: BTreeMap<Box<str>, Box<RawValue>>,
    /// The error, in place of the object's own spec.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    spec: Option<String>,
}

impl Outline {
    /// The object with the error in place of its spec: kinds of ours then say that they cannot be
    /// read. `None` for other kinds, whose spec cannot be a text.
    pub(super) fn with_error<T: Watched>(mut self, error: &serde_json::Error) -> Option<T> {
        let name = self.metadata.get("name").map_or("", |name| name.get());
        warn!("{:?} {name} cannot be read: {error}", T::KIND);
        self.spec = Some(error.to_string());
        self.alone()
    }

    /// The object with its metadata alone, which is enough to name it.
    pub(super) fn alone<T: Watched>(&self) -> Option<T> {
        let text = serde_json::to_string(self).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The version from which the watch goes on.
    pub(super) fn resource_version(&self) -> String {
        let version = self.metadata.get("resourceVersion");
        let version = version.and_then(|version| serde_json::from_str(version.get()).ok());
        version.unwrap_or_default()
    }
}
