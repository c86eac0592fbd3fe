//! Writes records into memory, block by block.

use super::Record;
use super::codec::{Codec, Encoder};
use gpu_batch_policies::command::Command;
use gpu_batch_policies::event::Event;
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::settings::Settings;

/// A block that has grown to so many bytes should be sealed: large enough to deflate well.
const BLOCK_BYTES: usize = 1 << 18;

/// How [`Record::Events`] and [`Record::Commands`] begin. They are written without making the
/// record, which would own what the engine is to have.
const EVENTS: u8 = 1;
const COMMANDS: u8 = 2;

/// Records an engine. Encoding is cheap, about a microsecond for a pod; the rest is for
/// [`pack`](super::pack).
#[derive(Debug, Default)]
pub struct Recorder {
    encoder: Encoder,
}

impl Recorder {
    /// A journal that begins now, with a new engine of these settings. `version` is the
    /// scheduler's.
    #[must_use]
    pub fn new(version: &str, settings: &Settings) -> Self {
        let mut recorder = Self::default();
        recorder.record(&Record::Begun {
            version: version.into(),
            settings: settings.clone(),
        });
        recorder
    }

    /// The engine is about to make a step. The commands of the step before have been recorded, or
    /// a panic in their place.
    pub fn events(&mut self, now_ms: UnixMs, events: &[Event]) {
        self.encoder.bytes.push(EVENTS);
        now_ms.encode(&mut self.encoder);
        list(events, &mut self.encoder);
    }

    /// What the step has brought.
    pub fn commands(&mut self, commands: &[Command]) {
        self.encoder.bytes.push(COMMANDS);
        list(commands, &mut self.encoder);
    }

    /// The step has panicked, and another engine took over.
    pub fn panicked(&mut self, message: &str) {
        let message = message.into();
        self.record(&Record::Panicked { message });
    }

    /// The engine was told to stop.
    pub fn shut_down(&mut self) {
        self.record(&Record::ShutDown);
    }

    /// Whether there is anything to seal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.encoder.bytes.is_empty()
    }

    /// Whether there is enough for a block.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.encoder.bytes.len() >= BLOCK_BYTES
    }

    /// Takes out what was recorded since the last time, for [`pack`](super::pack).
    pub fn seal(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.encoder).bytes
    }

    pub(super) fn record(&mut self, record: &Record) {
        record.encode(&mut self.encoder);
    }
}

fn list<T: Codec>(elements: &[T], out: &mut Encoder) {
    elements.len().encode(out);
    for element in elements {
        element.encode(out);
    }
}
