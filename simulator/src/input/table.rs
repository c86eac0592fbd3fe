//! Tables that are read row by row.

use super::record::Record;
use super::{InputError, open, shown};
use gpu_batch_policies::names::suggestion;
use std::fmt;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

/// A table that is read row by row; only one row is in memory.
///
/// The first line names the columns, in any order. A column is asked for by its index in the list
/// that was given when the table was opened: required columns first, then optional ones. Columns
/// that were not asked for are ignored, because public traces have more than is needed. Empty lines
/// are skipped, spaces around a value are not part of it, and values may be quoted, but not broken
/// across lines.
pub struct Table {
    file: PathBuf,
    reader: Box<dyn BufRead>,
    names: Vec<&'static str>,
    /// Where each of `names` stands in a record; `None` if an optional column is absent.
    positions: Vec<Option<usize>>,
    /// How many values each line must have.
    width: usize,
    /// The columns that were not asked for, in words; `None`: there are none.
    unknown: Option<String>,
    record: Record,
}

impl Table {
    /// Opens a file, gzip or not, and reads its header.
    ///
    /// # Errors
    /// If the file cannot be read, is empty, lacks a required column, or has a wanted column twice.
    pub fn open(
        path: &Path,
        required: &[&'static str],
        optional: &[&'static str],
    ) -> Result<Self, InputError> {
        Self::of_reader(path, open(path)?, required, optional)
    }

    /// A table whose bytes come from elsewhere; `path` is what messages call it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_reader(
        path: &Path,
        mut reader: Box<dyn BufRead>,
        required: &[&'static str],
        optional: &[&'static str],
    ) -> Result<Self, InputError> {
        let mut header = Record::default();
        let found = header.read(&mut reader);
        if !found.map_err(|error| broken(path, header.line, &error))? {
            let message = format!("is empty; a header is expected: {}", required.join(","));
            return Err(InputError::of_file(path, message));
        }
        let names: Vec<&'static str> = required.iter().chain(optional).copied().collect();
        let mut positions = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let found = position(&header, name, index < required.len());
            positions.push(found.map_err(|message| InputError {
                file: path.to_owned(),
                line: Some(header.line),
                field: Some((*name).to_owned()),
                message,
            })?);
        }
        Ok(Self {
            file: path.to_owned(),
            reader,
            unknown: unknown(&header, &names, &positions),
            names,
            positions,
            width: header.len(),
            record: header,
        })
    }

    /// The next row; `None` at the end of the file.
    ///
    /// # Errors
    /// If the file is damaged or cut off at this row, or the row has more or fewer values than the
    /// header.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, InputError> {
        let found = self.record.read(&mut self.reader);
        if !found.map_err(|error| broken(&self.file, self.record.line, &error))? {
            return Ok(None);
        }
        if self.record.len() != self.width {
            let (found, expected) = (self.record.len(), self.width);
            return Err(InputError {
                file: self.file.clone(),
                line: Some(self.record.line),
                field: None,
                message: format!("the line has {found} values and the header {expected}"),
            });
        }
        Ok(Some(Row { table: self }))
    }

    /// The columns that were not asked for, in words, with what may be meant; `None`: there are
    /// none.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// The file, as the user named it.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// The position of a column in the header, `None` if an optional one is absent; or what is wrong
/// with it.
fn position(header: &Record, name: &str, required: bool) -> Result<Option<usize>, String> {
    let is_it = |position: &usize| header.text(*position) == Ok(name);
    let mut found = (0..header.len()).filter(is_it);
    let first = found.next();
    if found.next().is_some() {
        return Err("the header has this column twice".to_owned());
    }
    if required && first.is_none() {
        let cells = (0..header.len()).map(|position| header.text(position));
        let columns: Vec<&str> = cells.map(|cell| cell.unwrap_or("?")).collect();
        let columns = shown(&columns.join(","));
        return Err(format!("the header lacks this column: {columns}"));
    }
    Ok(first)
}

/// The columns of a header that are none of `names`, in words: `expected_sec (did you mean
/// expected_s?), user`. A name is suggested only if the header lacks it.
fn unknown(header: &Record, names: &[&str], positions: &[Option<usize>]) -> Option<String> {
    let cells = (0..header.len()).map(|position| header.text(position).unwrap_or("?"));
    let columns = cells.filter(|cell| !names.contains(cell));
    let described: Vec<String> = columns
        .map(|column| {
            let absent = names.iter().zip(positions);
            let absent = absent.filter(|(_, position)| position.is_none());
            match suggestion(column, absent.map(|(name, _)| *name)) {
                Some(meant) => format!("{} ({meant})", shown(column)),
                None => shown(column),
            }
        })
        .collect();
    (!described.is_empty()).then(|| described.join(", "))
}

/// The error about a line that could not be read.
fn broken(path: &Path, line: u64, error: &io::Error) -> InputError {
    let message = match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the compressed data is cut off; the file is incomplete".to_owned()
        }
        _ => error.to_string(),
    };
    InputError {
        file: path.to_owned(),
        line: Some(line),
        field: None,
        message,
    }
}

/// One row of a [`Table`].
pub struct Row<'a> {
    table: &'a Table,
}

impl<'a> Row<'a> {
    /// The line of the row in the file, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.table.record.line
    }

    /// The text of a column; empty if an optional column is absent.
    ///
    /// # Errors
    /// If the text is not UTF-8.
    pub fn text(&self, column: usize) -> Result<&'a str, InputError> {
        let Some(position) = self.table.positions[column] else {
            return Ok("");
        };
        let text = self.table.record.text(position);
        text.map_err(|_| self.error(column, "is not UTF-8 text"))
    }

    /// A text that must not be empty.
    ///
    /// # Errors
    /// If the text is empty or not UTF-8.
    pub fn name(&self, column: usize) -> Result<&'a str, InputError> {
        match self.text(column)? {
            "" => Err(self.error(column, "is empty")),
            name => Ok(name),
        }
    }

    /// A whole number from 0 to `max`.
    ///
    /// # Errors
    /// If the text is empty, negative, too large or not a whole number.
    pub fn whole<T>(&self, column: usize, max: T) -> Result<T, InputError>
    where
        T: TryFrom<u64> + Ord + fmt::Display,
    {
        let text = self.name(column)?;
        let number = text.parse::<u64>().ok().and_then(|n| T::try_from(n).ok());
        if let Some(number) = number.filter(|number| *number <= max) {
            return Ok(number);
        }
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let message = match text.strip_prefix('-') {
            Some(digits) if is_number(digits) => format!("{} is negative", shown(text)),
            None if is_number(text) => format!("{} is over {max}", shown(text)),
            _ => format!("{} is not a whole number", shown(text)),
        };
        Err(self.error(column, message))
    }

    /// A finite decimal number.
    ///
    /// # Errors
    /// If the text is empty, infinite or not a number.
    pub fn decimal(&self, column: usize) -> Result<f64, InputError> {
        let text = self.name(column)?;
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(self.error(column, format!("{} is not a number", shown(text)))),
        }
    }

    /// An error about a column of this row.
    pub fn error(&self, column: usize, message: impl Into<String>) -> InputError {
        InputError {
            file: self.table.file.clone(),
            line: Some(self.line()),
            field: Some(self.table.names[column].to_owned()),
            message: message.into(),
        }
    }
}
