//! What shows, measures and tries out the scheduler. No part of the scheduler names this room.

pub(crate) mod bench;
pub(crate) mod demo;
pub mod local;
