//! What shows, measures and tries the scheduler. Nothing of the scheduler names it.

pub(crate) mod bench;
pub(crate) mod demo;
pub mod local;
