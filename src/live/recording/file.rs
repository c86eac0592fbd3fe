//! The journal's files: the present one, and the one before with `.1` behind its name.

use gpu_batch_simulator::journal::{Damage, Reader, Record, beginning};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Only the user that the scheduler runs as may read what runs in a cluster.
const MODE: u32 = 0o600;

/// A journal on disk that grows, within a bound.
#[derive(Debug)]
pub struct JournalFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// The bound on both files together.
    bytes_max: u64,
}

/// Why a journal cannot be written.
#[derive(Debug, Error)]
pub enum JournalFileError {
    /// The file that exists is no journal, so it is not ours to replace.
    #[error("{}: there is a file that is not a journal; it is left alone", .0.display())]
    NotAJournal(PathBuf),
    /// The file has reached its bound before the loop could begin a new one.
    #[error("{}: it would be larger than half of the bound", .0.display())]
    Full(PathBuf),
    /// The file cannot be made or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl JournalFile {
    /// Begins a journal in a new file that only its owner may read. A journal that exists already
    /// gets `.1` behind its name, and an older one of that name is deleted. Both together stay
    /// below `bytes_max`.
    ///
    /// # Errors
    /// If one of the two files is not a journal, or the new one cannot be made.
    pub fn create(path: &Path, bytes_max: u64) -> Result<Self, JournalFileError> {
        Self::check(path)?;
        let file = begin(path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            bytes: beginning().len() as u64,
            bytes_max,
        })
    }

    /// Whether a journal may be made at `path`, without making it.
    ///
    /// # Errors
    /// If one of the two files exists and is not a journal, or there is no such folder.
    pub fn check(path: &Path) -> Result<(), JournalFileError> {
        fs::metadata(folder(path)).map_err(|error| failed(path, error))?;
        for path in [path, &before(path)] {
            check_is_journal(path)?;
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The size in bytes from which on a new file should begin: three quarters of the file's bound,
    /// because the change takes a while.
    pub(super) fn rotates_at_bytes(&self) -> u64 {
        self.bytes_max / 8 * 3
    }

    /// Appends a block as [`pack`](gpu_batch_simulator::journal::pack) makes it.
    ///
    /// # Errors
    /// If the file would be larger than half of the bound, or cannot be written.
    pub fn append(&mut self, block: &[u8]) -> Result<(), JournalFileError> {
        let bytes = self.bytes + block.len() as u64;
        if bytes > self.bytes_max / 2 {
            return Err(JournalFileError::Full(self.path.clone()));
        }
        // In one piece: a process that is killed leaves only whole blocks behind.
        let written = self.file.write_all(block);
        written.map_err(|source| self.failed(source))?;
        self.bytes = bytes;
        Ok(())
    }

    pub(super) fn rotate(&mut self) -> Result<(), JournalFileError> {
        self.file = begin(&self.path)?;
        self.bytes = beginning().len() as u64;
        Ok(())
    }

    pub(super) fn failed(&self, source: io::Error) -> JournalFileError {
        failed(&self.path, source)
    }
}

fn failed(path: &Path, source: io::Error) -> JournalFileError {
    JournalFileError::Io {
        path: path.to_owned(),
        source,
    }
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The name of the file with the journal before.
fn before(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".1");
    name.into()
}

/// An empty file may be replaced: it counts as a journal in which nothing was ever written.
fn check_is_journal(path: &Path) -> Result<(), JournalFileError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(path, error)),
    };
    if !metadata.is_file() {
        return Err(JournalFileError::NotAJournal(path.to_owned()));
    }
    if metadata.len() == 0 {
        return Ok(());
    }
    let file = File::open(path).map_err(|error| failed(path, error))?;
    match Reader::new(file) {
        Ok(_) | Err(Damage::Version(_) | Damage::Cut { .. }) => Ok(()),
        Err(Damage::Io(error)) => Err(failed(path, error)),
        Err(Damage::NotAJournal | Damage::Block { .. }) => {
            Err(JournalFileError::NotAJournal(path.to_owned()))
        }
    }
}

/// Makes a new file, and moves the present one away only when the beginning of the new one is on
/// the disk: a full disk loses no journal. A present file without a step that can be replayed does
/// not replace the one before it: a process that starts again and again in vain, or is cut off each
/// time, loses no session.
fn begin(path: &Path) -> Result<File, JournalFileError> {
    let mut new = tempfile::Builder::new()
        .prefix(".journal-")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(folder(path))
        .map_err(|error| failed(path, error))?;
    let written = new.write_all(&beginning());
    written.map_err(|error| failed(path, error))?;
    if has_a_step(path).map_err(|error| failed(path, error))? {
        fs::rename(path, before(path)).map_err(|error| failed(path, error))?;
    }
    new.persist(path).map_err(|error| failed(path, error.error))
}

/// Whether there is a file that has a step. What another version has recorded is not known, so that
/// it counts as a step where there is anything.
fn has_a_step(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    let bytes = file.metadata()?.len();
    let mut reader = match Reader::new(file) {
        Err(Damage::Version(_)) => return Ok(bytes > beginning().len() as u64),
        Err(Damage::Io(error)) => return Err(error),
        Err(_) => return Ok(false),
        Ok(reader) => reader,
    };
    loop {
        match reader.next_record() {
            Ok(Some(Record::Events { .. })) => return Ok(true),
            Ok(Some(_)) => {}
            Err(Damage::Io(error)) => return Err(error),
            Ok(None) | Err(_) => return Ok(false),
        }
    }
}
