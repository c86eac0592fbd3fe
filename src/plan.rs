//! What the scheduler would do with objects from files, over those of a cluster if there is one.
//!
//! ```text
//! cluster -> layers -> controllers -> facts -> world <-> Engine
//! files   ->(last wins) (pods of Jobs)           |
//!                                                v
//!                                              report -> table or JSON
//! ```
//!
//! The engine that decides in a cluster decides here, too; only the world around it is a model in
//! which every command succeeds at once. Equal files give equal bytes.

mod cluster;
mod controllers;
mod input;
mod layers;
mod source;
mod world;

pub(crate) use cluster::{Captured, capture};
pub(crate) use input::Input;
pub use input::{Reading, read};
pub(crate) use world::{Evicted, Options, explain, gangs, run};
