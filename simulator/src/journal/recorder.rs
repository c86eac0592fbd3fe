//! Writes records into memory, block by block.

use super::Record;
use super::codec::{Codec, Encoder};
use gpu_batch_policies::command::Command;
use gpu_batch_policies::event::Event;
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::settings::Settings;

/// A block of so many bytes should be sealed: it is large enough to deflate well.
const BLOCK_BYTES: usize = 1 << 18;

/// The numbers with which [`Record::Events`] and [`Record::Commands`] begin. These two are written
/// without making the record, because a record would own the events that the engine needs.
const EVENTS: u8 = 1;
const COMMANDS: u8 = 2;

/// Records what goes into an engine and comes out of it. Encoding is cheap, about a microsecond for
/// a pod; the rest of the work is done by [`pack`](super::pack).
#[derive(Debug, Default)]
pub struct Recorder {
    encoder: Encoder,
}

impl Recorder {
    /// Begins a journal with a new engine of these settings. `version` is that of the scheduler.
    #[must_use]
    pub fn new(version: &str, settings: &Settings) -> Self {
        let mut recorder = Self::default();
        recorder.record(&Record::Begun {
            version: version.into(),
            settings: Box::new(settings.clone()),
        });
        recorder
    }

    /// Records the events of a step that the engine is about to make. The trap: the commands of the
    /// step before, or its panic, must be recorded first.
    pub fn events(&mut self, now_ms: UnixMs, events: &[Event]) {
        self.encoder.bytes.push(EVENTS);
        now_ms.encode(&mut self.encoder);
        list(events, &mut self.encoder);
    }

    /// Records the commands of the step.
    pub fn commands(&mut self, commands: &[Command]) {
        self.encoder.bytes.push(COMMANDS);
        list(commands, &mut self.encoder);
    }

    /// Records that the step has panicked and another engine took over.
    pub fn panicked(&mut self, message: &str) {
        let message = message.into();
        self.record(&Record::Panicked { message });
    }

    /// Records that the engine was told to stop.
    pub fn shut_down(&mut self) {
        self.record(&Record::ShutDown);
    }

    /// Whether nothing was recorded since the last block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.encoder.bytes.is_empty()
    }

    /// Whether enough was recorded for a block.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.encoder.bytes.len() >= BLOCK_BYTES
    }

    /// Takes out the bytes that were recorded since the last call, for [`pack`](super::pack).
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
