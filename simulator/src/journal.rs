//! The journal of a session: everything that went into an engine and came out of it.
//!
//! ```text
//!  file   = "gpubjrnl" version(u32) block*
//!  block  = length(u32) checksum(u32) deflated bytes        numbers are little-endian
//!  inside = record*     Begun, then Events, Commands, Events, Commands, ...
//! ```
//!
//! Each block can be unpacked alone; the first block says with what settings the engine began. The
//! checksum is the CRC-32 of the deflated bytes. A file may end after any block: a crash costs the
//! records that were not in a block yet.
//!
//! Equal events at equal times give equal commands. So a journal is run again by handing its events
//! to a new engine, and every command must come out as it is recorded ([`replay`]). Nothing here
//! opens a file or reads a clock.
//!
//! A file begins with an engine that knows nothing, and has everything that this engine was told,
//! so every file can be replayed alone. The alternative, a snapshot of the engine, would be a
//! second truth about its state that must be kept exact. A change of the format must raise
//! [`VERSION`].

mod block;
mod codec;
mod reader;
mod recorder;
mod replay;
#[cfg(test)]
mod tests;

pub use block::{Damage, beginning, pack};
pub use reader::Reader;
pub use recorder::Recorder;
pub use replay::{Difference, Replayed, Step, replay};

use gpu_batch_policies::command::Command;
use gpu_batch_policies::event::Event;
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::settings::Settings;

/// The version of the format. Files of other versions are refused: what a field meant there is not
/// guessed.
pub const VERSION: u32 = 25;

/// One thing that happened to an engine.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// An engine that knows nothing begins. It is the first record of a journal, and only there.
    Begun {
        /// The scheduler's version, for people.
        version: Box<str>,
        /// The settings by which the engine decides.
        settings: Box<Settings>,
    },
    /// A step begins: the events that the engine was given. If a step does only a slice of the
    /// work, the next step is given `Continue`.
    Events {
        /// The time that the engine was told.
        now_ms: UnixMs,
        /// The events of the step, in their order.
        events: Vec<Event>,
    },
    /// The commands of the step whose events are in the record before. If the engine panicked,
    /// there is `Panicked` instead.
    Commands(Vec<Command>),
    /// The engine panicked, and a new one took over, which leaves alone the gang whose handling has
    /// panicked.
    Panicked {
        /// What the panic said.
        message: Box<str>,
    },
    /// The engine was told to stop.
    ShutDown,
}
