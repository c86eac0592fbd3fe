//! Reads a journal record by record.

use super::codec::Decoder;
use super::{Record, VERSION, block};
use std::collections::VecDeque;
use std::io::Read;
use thiserror::Error;

/// Why a journal cannot be read, or not any further. Blocks count from 1.
#[derive(Debug, Error)]
pub enum Damage {
    /// It is something else.
    #[error("magic: this is not a journal of gpu-batch")]
    NotAJournal,
    /// It is of another version.
    #[error("version: this is a journal of version {0}; this program reads version {VERSION}")]
    Version(u32),
    /// The file ends within a block (0: before the first), as after a crash of the machine. What
    /// came before is whole.
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
    Io(#[from] std::io::Error),
}

/// A journal that is being read.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    blocks: u64,
    records: VecDeque<Record>,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning.
    ///
    /// # Errors
    /// If this is not a journal, or one of another version.
    pub fn new(mut source: R) -> Result<Self, Damage> {
        block::read_beginning(&mut source)?;
        Ok(Self {
            source,
            blocks: 0,
            records: VecDeque::new(),
        })
    }

    /// The next record; `None` at the end. The first is [`Record::Begun`], and no other.
    ///
    /// # Errors
    /// The damage in the next block.
    pub fn next_record(&mut self) -> Result<Option<Record>, Damage> {
        while self.records.is_empty() {
            let Some(raw) = block::read_block(&mut self.source, self.blocks + 1)? else {
                return match self.blocks {
                    0 => Err(Damage::Cut { block: 0 }),
                    _ => Ok(None),
                };
            };
            self.blocks += 1;
            self.unpack(&raw)?;
        }
        Ok(self.records.pop_front())
    }

    /// How many blocks have been read.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    fn unpack(&mut self, raw: &[u8]) -> Result<(), Damage> {
        let mut decoder = Decoder::new(raw);
        let mut number = 0;
        while !decoder.is_at_end() {
            number += 1;
            let damaged = |field: String, problem: String| Damage::Block {
                block: self.blocks,
                field,
                problem,
            };
            let name = format!("record {number}");
            let record = decoder
                .field::<Record>(&name)
                .map_err(|unreadable| damaged(unreadable.field, unreadable.problem))?;
            let is_first = self.blocks == 1 && number == 1;
            if is_first != matches!(record, Record::Begun { .. }) {
                let problem = "the settings stand in the first record, and only there".to_owned();
                return Err(damaged(name, problem));
            }
            self.records.push_back(record);
        }
        Ok(())
    }
}
