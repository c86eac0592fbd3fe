//! Records what the engine takes in and gives out, for `gpu-batch replay`.
//!
//! ```text
//!  loop: encode ---block, at the latest after a second---> [64 blocks] ---> thread: deflate, write
//! ```
//!
//! Recording never holds the loop up: if a block finds the channel full, or the disk takes no more,
//! the recording ends with one warning, and the scheduler goes on.
//!
//! A journal must begin with an engine that knows nothing. When the file is full, the loop
//! therefore starts a new engine from new lists, as after a panic, and its journal is the new file.

mod file;

pub(crate) use file::{JournalFile, JournalFileError};

use crate::handles::metrics::Metrics;
use gpu_batch_policies::command::Command;
use gpu_batch_policies::event::Event;
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::settings::Settings;
use gpu_batch_simulator::journal::{Recorder, pack};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// How many blocks may wait for the disk.
const BLOCKS_WAITING_MAX: usize = 64;
/// A record leaves for the file after this time at the latest.
const SEALED_AFTER: Duration = Duration::from_secs(1);
/// A file that is full sooner than this is too small for its world: each new file costs a list of
/// everything.
const FILE_LASTS_MIN: Duration = Duration::from_secs(60);
/// How long the end of the process waits for the disk.
const LAST_WRITES_MAX: Duration = Duration::from_secs(3);

/// The loop's end of a recording.
pub(super) struct Recording {
    settings: Settings,
    metrics: Arc<Metrics>,
    /// `None` once the recording has ended.
    running: Option<Running>,
}

struct Running {
    recorder: Recorder,
    /// When the oldest record that is not sealed into a block was made.
    unsealed_since: Option<Instant>,
    file_since: Instant,
    /// The size of the file in bytes, kept by the thread. Each file has its own counter, so that
    /// blocks that are still on their way to the last file are not counted in the next.
    file_bytes: Arc<AtomicU64>,
    rotates_at_bytes: u64,
    blocks: SyncSender<ToWrite>,
    /// Closed when the thread ends; before that it gets the error if the thread could not write.
    thread: Receiver<JournalFileError>,
}

/// A message to the thread that writes the recording.
enum ToWrite {
    Block(Vec<u8>),
    /// The blocks that follow go into a new file, whose size is to be kept in this counter.
    NewFile(Arc<AtomicU64>),
}

impl Recording {
    /// Begins to record an engine that has these settings and knows nothing.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(
        file: JournalFile,
        settings: &Settings,
        metrics: &Arc<Metrics>,
    ) -> io::Result<Self> {
        let (blocks, to_write) = sync_channel(BLOCKS_WAITING_MAX);
        let (ended, thread) = sync_channel(1);
        let file_bytes = Arc::new(AtomicU64::new(file.bytes()));
        let running = Running {
            recorder: new_recorder(settings),
            unsealed_since: None,
            file_since: Instant::now(),
            file_bytes: Arc::clone(&file_bytes),
            rotates_at_bytes: file.rotates_at_bytes(),
            blocks,
            thread,
        };
        let written = Arc::clone(metrics);
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                if let Err(error) = write(file, &to_write, file_bytes, &written) {
                    // The receiver is gone where the recording has ended already.
                    drop(ended.send(error));
                }
            })?;
        metrics.recording.set(1);
        Ok(Self {
            settings: settings.clone(),
            metrics: Arc::clone(metrics),
            running: Some(running),
        })
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Records the events of a step that is about to be made.
    pub(super) fn events(&mut self, now_ms: UnixMs, events: &[Event]) {
        self.record(|recorder| recorder.events(now_ms, events));
    }

    /// Records the commands of the step. A full or overdue block is on its way when this returns.
    pub(super) fn commands(&mut self, commands: &[Command]) {
        self.record(|recorder| recorder.commands(commands));
        self.seal_if(|running| running.recorder.is_full() || running.is_due());
    }

    /// Records that the step has panicked.
    pub(super) fn panicked(&mut self, message: &str) {
        self.record(|recorder| recorder.panicked(message));
        self.seal_if(|_| true);
    }

    /// Records that the engine was told to stop.
    pub(super) fn shut_down(&mut self) {
        self.record(Recorder::shut_down);
    }

    /// Seals a block that is due, where nothing else has happened for a while.
    pub(super) fn turned(&mut self) {
        self.seal_if(Running::is_due);
    }

    /// How long it is until [`Recording::turned`] has something to do; `None`: it has nothing.
    pub(super) fn wait(&self) -> Option<Duration> {
        let since = self.running.as_ref()?.unsealed_since?;
        Some(SEALED_AFTER.saturating_sub(since.elapsed()))
    }

    /// Whether the file is full. If it became full too soon, the recording ends instead.
    pub(super) fn is_file_full(&mut self) -> bool {
        let Some(running) = &self.running else {
            return false;
        };
        let bytes = running.file_bytes.load(Ordering::Relaxed);
        if bytes < running.rotates_at_bytes {
            return false;
        }
        let lasted = running.file_since.elapsed();
        if lasted < FILE_LASTS_MIN {
            self.end(&format!(
                "the file was full after {lasted:.0?}; give it more room with --record-size"
            ));
            return false;
        }
        true
    }

    /// Begins a new file, for a new engine that knows nothing.
    pub(super) fn begin_file(&mut self) {
        self.seal_if(|_| true);
        let Some(running) = &mut self.running else {
            return;
        };
        running.file_since = Instant::now();
        running.file_bytes = Arc::new(AtomicU64::new(0));
        running.recorder = new_recorder(&self.settings);
        let file_bytes = Arc::clone(&running.file_bytes);
        self.send(ToWrite::NewFile(file_bytes));
    }

    fn record(&mut self, what: impl FnOnce(&mut Recorder)) {
        if let Some(running) = &mut self.running {
            what(&mut running.recorder);
            running.unsealed_since.get_or_insert_with(Instant::now);
        }
    }

    fn seal_if(&mut self, condition: impl FnOnce(&Running) -> bool) {
        if let Some(running) = &mut self.running
            && !running.recorder.is_empty()
            && condition(running)
        {
            running.unsealed_since = None;
            let block = running.recorder.seal();
            self.send(ToWrite::Block(block));
        }
    }

    fn send(&mut self, what: ToWrite) {
        let Some(running) = &self.running else {
            return;
        };
        match running.blocks.try_send(what) {
            Ok(()) => {}
            Err(std::sync::mpsc::TrySendError::Full(_)) => {
                self.end("the disk is too slow for it");
            }
            Err(std::sync::mpsc::TrySendError::Disconnected(_)) => {
                let cause = running.thread.recv();
                self.end(&match cause {
                    Ok(error) => error.to_string(),
                    Err(_) => "its thread has panicked".to_owned(),
                });
            }
        }
    }

    fn end(&mut self, because: &str) {
        warn!("recording has ended, and the scheduler goes on without: {because}");
        self.running = None;
        self.metrics.recording.set(0);
        self.metrics.recordings_stopped.inc();
    }
}

#[cfg(test)]
impl Recording {
    /// Lets the file count as full, and as old enough.
    pub(super) fn pretend_full(&mut self) {
        if let Some(running) = &mut self.running {
            running.rotates_at_bytes = 0;
            let long_ago = Instant::now().checked_sub(FILE_LASTS_MIN);
            running.file_since = long_ago.unwrap_or_else(Instant::now);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.seal_if(|_| true);
        if let Some(Running { blocks, thread, .. }) = self.running.take() {
            drop(blocks);
            match thread.recv_timeout(LAST_WRITES_MAX) {
                Ok(error) => warn!("the end of the journal cannot be written: {error}"),
                Err(RecvTimeoutError::Timeout) => {
                    warn!("the end of the journal is not written yet");
                }
                Err(RecvTimeoutError::Disconnected) => {}
            }
        }
    }
}

impl Running {
    fn is_due(&self) -> bool {
        self.unsealed_since
            .is_some_and(|since| since.elapsed() >= SEALED_AFTER)
    }
}

fn new_recorder(settings: &Settings) -> Recorder {
    Recorder::new(env!("CARGO_PKG_VERSION"), settings)
}

/// Writes until the loop's end of the recording is gone.
fn write(
    mut file: JournalFile,
    to_write: &Receiver<ToWrite>,
    mut file_bytes: Arc<AtomicU64>,
    metrics: &Metrics,
) -> Result<(), JournalFileError> {
    for what in to_write {
        match what {
            ToWrite::Block(raw) => {
                let before = file.bytes();
                file.append(&pack(&raw).map_err(|error| file.failed(error))?)?;
                metrics.recorded_bytes.inc_by(file.bytes() - before);
            }
            ToWrite::NewFile(its_bytes) => {
                file.rotate()?;
                info!("the journal goes on in a new file");
                file_bytes = its_bytes;
            }
        }
        file_bytes.store(file.bytes(), Ordering::Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
