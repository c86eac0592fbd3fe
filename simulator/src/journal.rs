//! The journal of a session: everything that went into an engine and came out of it.
//!
//! ```text
//!  file   = "gpubjrnl" version(u32) block*
//!  block  = length(u32) checksum(u32) deflated bytes        numbers are little-endian
//!  inside = record*     Begun, then Events, Commands, Events, Commands, ...
//! ```
//!
//! Each block can be read without the others but the first, which says with what settings the
//! engine began. The checksum is the CRC-32 of the deflated bytes. A file may end after any block:
//! a crash costs what was not sealed yet.
//!
//! The same events at the same times give the same commands, so a journal is run again by handing
//! the events to a new engine, and every command must come out as it is recorded ([`replay`]).
//! Nothing here opens a file or reads a clock.
//!
//! A file begins with an engine that knows nothing, and holds all that this engine was told, so
//! every file can be replayed alone. The alternative, a snapshot of the engine, would be a second
//! truth about its state that must be kept exact. Whoever changes what is written raises
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

/// The version of the format. Another one is refused: what a field meant then is not guessed.
pub const VERSION: u32 = 6;

/// One thing that happened to an engine.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// An engine that knows nothing begins. Always the first record of a journal, and no other.
    Begun {
        /// The scheduler's version, for people.
        version: Box<str>,
        /// The settings by which it decides.
        settings: Settings,
    },
    /// A step: what it was given and when. Slices of longer work are steps with `Continue`.
    Events {
        /// The time that the engine was told.
        now_ms: UnixMs,
        /// The batch.
        events: Vec<Event>,
    },
    /// What the step before wants done. It is missing where the engine panicked instead.
    Commands(Vec<Command>),
    /// The engine panicked, and another took over that leaves alone the gang in hand.
    Panicked {
        /// What the panic said.
        message: Box<str>,
    },
    /// The engine was told to stop.
    ShutDown,
}
