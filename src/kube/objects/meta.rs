//! Metadata.

use super::{Annotations, Pairs, null_is_default};
use gpu_batch_policies::facts::UnixMs;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// `metadata` of an object, without what is not used (`managedFields` above all).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// `name`; empty in bookmarks of a watch.
    pub name: Box<str>,
    /// `namespace`; empty for objects without one.
    #[serde(deserialize_with = "null_is_default")]
    pub namespace: Box<str>,
    /// `uid` as text; empty in files.
    pub uid: Box<str>,
    /// `generation`: counts changes of the spec.
    pub generation: i64,
    /// `resourceVersion`: where a watch goes on.
    pub resource_version: Box<str>,
    /// `creationTimestamp`.
    pub creation_timestamp: Option<Timestamp>,
    /// `deletionTimestamp`.
    pub deletion_timestamp: Option<Timestamp>,
    /// `labels`.
    pub labels: Pairs<Box<str>>,
    /// `annotations`, as far as they are used.
    pub annotations: Annotations,
    /// `ownerReferences`.
    pub owner_references: Option<Vec<OwnerReference>>,
}

/// One of `metadata.ownerReferences`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// e.g. `batch/v1`.
    pub api_version: Box<str>,
    /// e.g. `Job`.
    pub kind: Box<str>,
    /// The owner's name.
    pub name: Box<str>,
    /// The owner's UID as text.
    pub uid: Box<str>,
    /// Whether this owner is the one that controls the object.
    pub controller: Option<bool>,
}

/// `metadata` of a list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMeta {
    /// Where a watch goes on.
    pub resource_version: Box<str>,
    /// The token of the next page; empty: this was the last one.
    #[serde(rename = "continue")]
    pub continue_token: Box<str>,
}

/// A time as Kubernetes writes it (RFC 3339), in Unix milliseconds. Times before 1970 count as
/// 1970; times of the year 9999 that `jiff` cannot hold count as the last one that it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub UnixMs);

impl Timestamp {
    /// Reads RFC 3339; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let timestamp: jiff::Timestamp = text.parse().ok().or_else(|| Self::last(text))?;
        let unix_ms = timestamp.as_millisecond();
        Some(Self(UnixMs::try_from(unix_ms).unwrap_or(0)))
    }

    /// The last time that can be held, for times of the year 9999 after it, which may mean "never".
    fn last(text: &str) -> Option<jiff::Timestamp> {
        let pieces = jiff::fmt::temporal::Pieces::parse(text).ok()?;
        let whole = pieces.time().is_some() && pieces.offset().is_some();
        (whole && pieces.date().year() == 9999).then_some(jiff::Timestamp::MAX)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TimestampVisitor)
    }
}

struct TimestampVisitor;

impl Visitor<'_> for TimestampVisitor {
    type Value = Timestamp;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a time such as 2026-11-21T10:00:00Z")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
        Timestamp::parse(text)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }

    /// What [`protobuf`](super::protobuf) reads: Unix milliseconds.
    fn visit_i64<E: Error>(self, unix_ms: i64) -> Result<Timestamp, E> {
        Ok(Timestamp(UnixMs::try_from(unix_ms).unwrap_or(0)))
    }
}
