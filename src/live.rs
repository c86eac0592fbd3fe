//! The running scheduler: [`scheduler`] puts the parts together, and [`driver`] is the loop.
//!
//! ```text
//!   kube::watch --events--> handles::inbox --> driver --commands--> kube::execute
//!                                ^               |
//!   serve, comparer --questions--+               +--copies--> /metrics, /gangs, /explain
//!   extender --questions, binds--+
//!   config --other settings------+
//! ```

pub mod config;
pub(crate) mod log;
pub(crate) mod recording;

mod comparer;
mod driver;
mod scheduler;
mod serve;

pub use scheduler::{Scheduler, SchedulerError};
