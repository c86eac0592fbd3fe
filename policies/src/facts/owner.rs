//! Who controls a pod.

use super::Uid;
use alloc::boxed::Box;

/// The controlling owner of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerReference {
    /// `apiVersion`, e.g. `batch/v1`.
    pub api_version: Box<str>,
    /// `kind`, e.g. `Job`.
    pub kind: Box<str>,
    /// The owner's name; its namespace is the pod's.
    pub name: Box<str>,
    /// The owner's UID.
    pub uid: Uid,
}
