//! What the scheduler would do with objects from files, without a cluster.
//!
//! ```text
//! files -> input -> facts -> world <-> Engine
//!                              |
//!                              v
//!                            report -> table or JSON
//! ```
//!
//! The same engine decides that decides in a cluster; only the world around it is a model in which
//! every command succeeds at once. The same files give the same bytes.

mod input;
mod report;
mod world;

pub use input::{BadInput, Input, read};
pub use report::{GroupView, Plan, PodView, draw};
pub use world::{Evicted, NotQuiet, Options, explain, gangs, run};
