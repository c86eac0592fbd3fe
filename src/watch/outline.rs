//! The outline of an object that cannot be read.

use crate::objects::Watched;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tracing::warn;

/// The metadata of an object. All else is skipped without recursion, so that no object is nested
/// too deeply for it; so are the values of the metadata, because `managedFields` repeats the
/// object's fields as deep as they are.
#[derive(Serialize, Deserialize)]
pub(super) struct Outline {
    #[serde(default)]
    metadata: BTreeMap<Box<str>, Box<RawValue>>,
    /// What stands in place of the object's own.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    spec: Option<String>,
}

impl Outline {
    /// The object with the error in place of its spec: kinds of ours then say that they cannot be
    /// read. `None`: all that is known of other kinds is in what cannot be read.
    pub(super) fn with_error<T: Watched>(mut self, error: &serde_json::Error) -> Option<T> {
        let name = self.metadata.get("name").map_or("", |name| name.get());
        warn!("{:?} {name} cannot be read: {error}", T::KIND);
        self.spec = Some(error.to_string());
        self.alone()
    }

    /// The object without anything else, which is enough to name it.
    pub(super) fn alone<T: Watched>(&self) -> Option<T> {
        let text = serde_json::to_string(self).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The version that the watch goes on from.
    pub(super) fn resource_version(&self) -> String {
        let version = self.metadata.get("resourceVersion");
        let version = version.and_then(|version| serde_json::from_str(version.get()).ok());
        version.unwrap_or_default()
    }
}
