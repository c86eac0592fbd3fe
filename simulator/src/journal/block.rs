//! The bytes of a journal file: its beginning and its blocks, and how a file can be damaged.

use super::VERSION;
use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use std::io::{self, Read};
use thiserror::Error;

/// How every journal begins.
const MAGIC: &[u8; 8] = b"gpubjrnl";
/// Bytes of the beginning: magic and version.
const BEGINNING_BYTES: usize = MAGIC.len() + 4;
/// Bytes before the deflated bytes of a block: length and checksum.
const HEAD_BYTES: usize = 8;

/// Why a journal cannot be read, or not any further. Blocks are counted from 1.
#[derive(Debug, Error)]
pub enum Damage {
    /// The file is not a journal.
    #[error("magic: this is not a journal of gpu-batch")]
    NotAJournal,
    /// The journal has another version of the format.
    #[error("version: this is a journal of version {0}; this program reads version {VERSION}")]
    Version(u32),
    /// The file ends within a block (0: before the first one), as after a crash of the machine. The
    /// blocks before it are whole.
    #[error("block {block}: length: the file ends within the block")]
    Cut {
        /// The block.
        block: u64,
    },
    /// A block that makes no sense.
    #[error("block {block}: {field}: {problem}")]
    Block {
        /// The block.
        block: u64,
        /// The field, as in `record 3.events.0.object.name`.
        field: String,
        /// The mistake in that field.
        problem: String,
    },
    /// The file cannot be read.
    #[error("failed to read")]
    Io(#[from] io::Error),
}

/// The bytes with which every file begins, before its blocks.
#[must_use]
pub fn beginning() -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_le_bytes()].concat()
}

/// Makes a block of the bytes from [`Recorder::seal`](super::Recorder::seal). This is most of the
/// work of recording; it does not need the engine, and can be done on another thread.
///
/// # Errors
/// If the block is larger than 4 GiB when deflated.
pub fn pack(raw: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = vec![0; HEAD_BYTES];
    DeflateEncoder::new(raw, Compression::fast()).read_to_end(&mut packed)?;
    let (head, deflated) = packed.split_at_mut(HEAD_BYTES);
    let length = u32::try_from(deflated.len()).map_err(io::Error::other)?;
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..].copy_from_slice(&checksum(deflated).to_le_bytes());
    Ok(packed)
}

/// Reads the beginning of a file and checks it.
pub(super) fn read_beginning(source: &mut impl Read) -> Result<(), Damage> {
    let bytes = read_up_to(source, BEGINNING_BYTES)?;
    let (magic, version) = bytes.split_at(bytes.len().min(MAGIC.len()));
    if !MAGIC.starts_with(magic) || magic.is_empty() {
        return Err(Damage::NotAJournal);
    }
    let Ok(version) = <[u8; 4]>::try_from(version) else {
        return Err(Damage::Cut { block: 0 });
    };
    match u32::from_le_bytes(version) {
        VERSION => Ok(()),
        other => Err(Damage::Version(other)),
    }
}

/// Reads the next block and unpacks it; `None` at the end of the file. `block` is its number, for
/// messages.
pub(super) fn read_block(source: &mut impl Read, block: u64) -> Result<Option<Vec<u8>>, Damage> {
    let head = read_up_to(source, HEAD_BYTES)?;
    if head.is_empty() {
        return Ok(None);
    }
    let Some((length, expected)) = head.split_first_chunk::<4>() else {
        return Err(Damage::Cut { block });
    };
    let Ok(expected) = <[u8; 4]>::try_from(expected) else {
        return Err(Damage::Cut { block });
    };
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let deflated = read_up_to(source, length)?;
    if deflated.len() < length {
        return Err(Damage::Cut { block });
    }
    let damaged = |field: &str, problem: String| Damage::Block {
        block,
        field: field.to_owned(),
        problem,
    };
    if checksum(&deflated) != u32::from_le_bytes(expected) {
        let problem = "it is not that of the bytes".to_owned();
        return Err(damaged("checksum", problem));
    }
    let mut raw = Vec::new();
    match DeflateDecoder::new(&deflated[..]).read_to_end(&mut raw) {
        Ok(_) => Ok(Some(raw)),
        Err(error) => Err(damaged("bytes", error.to_string())),
    }
}

/// Reads up to `length` bytes, or fewer at the end of the file. Memory is taken as bytes are read,
/// because a length in a damaged file may be wrong.
fn read_up_to(source: &mut impl Read, length: usize) -> Result<Vec<u8>, Damage> {
    let mut bytes = Vec::new();
    source.take(length as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
