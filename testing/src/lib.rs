//! Small worlds for tests: a few objects, an engine, and what becomes of its commands.
//!
//! ```
//! use gpu_batch_testing::{World, gang, node, pod};
//!
//! let mut world = World::of((node("n1 n2", 8), gang("g", 2), pod("a b c", 8).of("g")));
//! assert_eq!(world.places("a b c"), "n1 n2 -");
//! world.end("a");
//! world.settle();
//! assert_eq!(world.places("c"), "n1");
//! ```
//!
//! A test says what exists by [`Sketch`]es, which make several objects at once, and asks afterwards
//! what came of it. Everything is in the namespace `default`, so names stand without it. A world
//! knows of the engine what every shell knows, and nothing more: no test depends on how the engine
//! is built inside.

#![forbid(unsafe_code)]

mod locks;
mod numa;
#[cfg(feature = "planted-panic")]
mod panic;
mod plugin;
mod questions;
mod sketch;
mod volumes;
mod world;

pub use locks::LockRace;
pub use numa::numa;
pub use plugin::{BIND_PHASE, CARD_LOCK, DevicePlugin, Given, NotGiven, ServedPod, TO_ALLOCATE};
pub use sketch::{
    Sketch, Thing, amounts, gang, inner, leaf, names, node, pod, queue, quota, topology,
};
pub use volumes::{
    DRIVER, attachment, capacity, claim, csi_driver, csi_node, storage_class, volume,
};
pub use world::{To, World, conflict, lost, refused, throttled};

/// The time at which every world begins.
pub const START_MS: u64 = 1_800_000_000_000;

/// The resource that counts GPUs.
pub const GPU: &str = "nvidia.com/gpu";

/// The node label of a GPU's model.
pub const MODEL: &str = "nvidia.com/gpu.product";
