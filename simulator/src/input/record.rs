//! One line of comma-separated values, taken apart.

use std::io::{self, BufRead, Read};
use std::str::Utf8Error;

/// Lines of this length or more are refused, so that a file without line breaks does not fill the
/// memory.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The values of the line that was read last. Its memory is used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// The number of the line in the file, from 1; 0 before the first line is read.
    pub(super) line: u64,
    raw: Vec<u8>,
    /// All values one after the other, without quotes and the spaces around them.
    values: Vec<u8>,
    /// Where each value ends in `values`.
    ends: Vec<usize>,
}

impl Record {
    /// Reads the next line that is not empty; `false` at the end of the file.
    ///
    /// # Errors
    /// If the file cannot be read; `InvalidData` if the line is too long or badly quoted.
    pub(super) fn read(&mut self, reader: &mut impl BufRead) -> io::Result<bool> {
        loop {
            self.raw.clear();
            self.line += 1;
            let limit = LINE_BYTES_MAX as u64;
            if reader.take(limit).read_until(b'\n', &mut self.raw)? == 0 {
                return Ok(false);
            }
            if self.raw.len() == LINE_BYTES_MAX {
                let message = format!("is longer than {LINE_BYTES_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            let mut line = self.raw.as_slice();
            if self.line == 1 {
                line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
            }
            let line = line.trim_ascii();
            if !line.is_empty() {
                self.values.clear();
                self.ends.clear();
                let split = split(line, &mut self.values, &mut self.ends);
                return match split {
                    Ok(()) => Ok(true),
                    Err(message) => Err(io::Error::new(io::ErrorKind::InvalidData, message)),
                };
            }
        }
    }

    /// How many values the line has.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A value by its position.
    pub(super) fn text(&self, position: usize) -> Result<&str, Utf8Error> {
        let start = position
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        std::str::from_utf8(&self.values[start..self.ends[position]])
    }
}

/// Appends the values of a line without its line break. A value in quotes may hold commas, and
/// quotes if they are doubled.
fn split(line: &[u8], values: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<(), &'static str> {
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        let after = match rest.strip_prefix(b"\"") {
            Some(quoted) => unquote(quoted, values)?.trim_ascii_start(),
            None => {
                let end = rest.iter().position(|byte| *byte == b',');
                let (value, after) = rest.split_at(end.unwrap_or(rest.len()));
                values.extend(value.trim_ascii_end());
                after
            }
        };
        ends.push(values.len());
        rest = match after {
            [] => return Ok(()),
            [b',', rest @ ..] => rest,
            _ => return Err("has text after a quoted value"),
        };
    }
}

/// Appends a value up to its closing quote; returns the rest of the line.
fn unquote<'a>(mut rest: &'a [u8], values: &mut Vec<u8>) -> Result<&'a [u8], &'static str> {
    loop {
        let end = rest.iter().position(|byte| *byte == b'"');
        let end = end.ok_or("has a quote that is not closed")?;
        values.extend(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(b"\"") {
            Some(after) => {
                values.push(b'"');
                rest = after;
            }
            None => return Ok(rest),
        }
    }
}
