//! Files that people give: tables of comma-separated values, plain or compressed with gzip.
//!
//! Nothing in a file can stop the process: what cannot be read is an [`InputError`] that names the
//! file, the line and the field. Lines are read one by one and not by a crate, because the crates
//! count empty lines wrongly, and because a line that never ends must not fill the memory. What the
//! values mean is the business of [`crate::trace`] and other modules.

use flate2::bufread::MultiGzDecoder;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

mod record;
mod table;
#[cfg(test)]
mod tests;

pub use table::{Row, Table};

/// How many characters of a wrong value are shown in a message.
const SHOWN_CHARS: usize = 40;

const BUFFER_BYTES: usize = 1 << 16;

/// Compressed formats that are not read, by their first bytes.
const OTHER_FORMATS: [(&[u8], &str); 4] = [
    (&[0x28, 0xB5, 0x2F, 0xFD], "zstd"),
    (&[0xFD, b'7', b'z', b'X', b'Z'], "xz"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
];

const GZIP: [u8; 2] = [0x1F, 0x8B];

/// A mistake in a file, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The file, as the user named it.
    pub file: PathBuf,
    /// The line of the text, after decompression, from 1; `None`: the mistake is about the whole
    /// file.
    pub line: Option<u64>,
    /// The column, as the header should name it; `None`: the mistake is about the whole line.
    pub field: Option<String>,
    /// The mistake, in words.
    pub message: String,
}

impl InputError {
    /// A mistake of a file as a whole.
    pub fn of_file(file: &Path, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            field: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for InputError {}

/// Opens a file and decompresses it if its first bytes are those of gzip. The name does not matter.
///
/// # Errors
/// If the file cannot be opened, or is compressed in another way. Damage further on is an error of
/// the reader that is returned.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, InputError> {
    let failed = |error: io::Error| InputError::of_file(path, error.to_string());
    let file = File::open(path).map_err(failed)?;
    decompress(path, BufReader::with_capacity(BUFFER_BYTES, file))
}

fn decompress<R: BufRead + 'static>(
    path: &Path,
    mut reader: R,
) -> Result<Box<dyn BufRead>, InputError> {
    let failed = |error: io::Error| InputError::of_file(path, error.to_string());
    let start = reader.fill_buf().map_err(failed)?;
    if start.starts_with(&GZIP) {
        let text = MultiGzDecoder::new(reader);
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, text)));
    }
    match OTHER_FORMATS
        .iter()
        .find(|(magic, _)| start.starts_with(magic))
    {
        Some((_, format)) => Err(InputError::of_file(
            path,
            format!("is compressed with {format}; only gzip and plain text are read"),
        )),
        None => Ok(Box::new(reader)),
    }
}

/// A value as a message shows it: quoted, without control characters, and not too long.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
