//! Kubernetes: its objects as types and as facts, watches, and commands as requests.

pub mod api;
pub mod connection;
pub mod convert;
pub mod execute;
pub(crate) mod format;
pub(crate) mod leader;
pub mod objects;
pub(crate) mod watch;
