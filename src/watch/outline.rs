//! What is left of an object that cannot be read.

use crate::objects::Watched;
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::warn;

/// The metadata of an object. All else is skipped without recursion, so that no object is nested
/// too deeply for it.
#[derive(Deserialize)]
pub(super) struct Outline {
    #[serde(default)]
    pub(super) metadata: Value,
}

impl Outline {
    /// The object with the error in place of its spec: kinds of ours then say that they cannot be
    /// read. `None`: all that is known of other kinds is in what cannot be read.
    pub(super) fn with_error<T: Watched>(&self, error: &serde_json::Error) -> Option<T> {
        let name = &self.metadata["name"];
        warn!("{:?} {name} cannot be read: {error}", T::KIND);
        serde_json::from_value(json!({"metadata": self.metadata, "spec": error.to_string()})).ok()
    }

    /// The object without anything else, which is enough to name it.
    pub(super) fn alone<T: Watched>(&self) -> Option<T> {
        serde_json::from_value(json!({"metadata": self.metadata})).ok()
    }
}
