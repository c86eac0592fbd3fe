//! Reads a journal record by record.

use super::Record;
use super::block::{Damage, read_beginning, read_block};
use super::codec::Decoder;
use std::collections::VecDeque;
use std::io::Read;

/// A journal that is being read.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    blocks: u64,
    records: VecDeque<Record>,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning of a journal and checks it.
    ///
    /// # Errors
    /// If the source is not a journal, has another version of the format, or cannot be read.
    pub fn new(mut source: R) -> Result<Self, Damage> {
        read_beginning(&mut source)?;
        Ok(Self {
            source,
            blocks: 0,
            records: VecDeque::new(),
        })
    }

    /// The next record; `None` at the end. The first record is [`Record::Begun`], and no later one
    /// is.
    ///
    /// # Errors
    /// If the next block is damaged or cannot be read. All records of earlier blocks have been
    /// returned then.
    pub fn next_record(&mut self) -> Result<Option<Record>, Damage> {
        while self.records.is_empty() {
            let Some(raw) = read_block(&mut self.source, self.blocks + 1)? else {
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
