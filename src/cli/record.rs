use super::Failure;
use crate::convert::quantity;
use crate::driver::JournalFile;
use anyhow::Context;
use std::path::PathBuf;
use tracing::warn;

/// Less than this holds hardly a minute of a busy cluster.
const SIZE_MIN: u64 = 1 << 20;

/// Where a session is recorded.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct RecordArgs {
    /// Record everything that the scheduler sees and decides, for `gpu-batch replay`. A journal
    /// that is there already is kept as FILE.1. `demo --embedded` writes it at its end, of the last
    /// scheduler if some have crashed
    #[arg(long = "record", value_name = "FILE")]
    file: Option<PathBuf>,
    /// How large FILE and FILE.1 may be together; when FILE is full, a new one begins
    #[arg(long = "record-size", value_name = "SIZE", default_value = "256Mi",
          requires = "file", value_parser = size)]
    bytes_max: u64,
}

impl RecordArgs {
    /// Whether a journal may take that place. Nothing is changed.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        let checked = JournalFile::check(path).context("--record");
        checked.map_err(Failure::BadInput)
    }

    /// Makes the file, if there is to be one and it can be made: recording keeps no scheduler from
    /// starting.
    pub(super) fn create_or_warn(&self) -> Option<JournalFile> {
        let path = self.file.as_ref()?;
        let file = JournalFile::create(path, self.bytes_max);
        file.inspect_err(|error| {
            warn!("nothing is recorded, and the scheduler goes on without: --record: {error}");
        })
        .ok()
    }

    /// Makes the file, if there is to be one.
    pub(super) fn create(&self) -> Result<Option<JournalFile>, Failure> {
        let Some(path) = &self.file else {
            return Ok(None);
        };
        let file = JournalFile::create(path, self.bytes_max).context("--record");
        file.map(Some).map_err(Failure::BadInput)
    }
}

fn size(text: &str) -> Result<u64, String> {
    match quantity::amount("bytes", text) {
        Ok(bytes) if bytes >= SIZE_MIN => Ok(bytes),
        Ok(_) => Err("it must be at least 1Mi".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
