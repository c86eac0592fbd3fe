//! Tags, numbers and lengths of protobuf.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>

use serde::de::Error as _;
use serde::de::value::Error;

/// What follows a tag.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'de> {
    /// A number or a flag.
    Varint(u64),
    /// Text or a message.
    Bytes(&'de [u8]),
    /// Four or eight bytes. No field that is read has this type.
    Fixed,
}

/// The part of a message that has not been read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wire<'de> {
    rest: &'de [u8],
}

pub(super) fn broken(what: &str) -> Error {
    Error::custom(format_args!("broken protobuf: {what}"))
}

impl<'de> Wire<'de> {
    pub(super) const fn new(bytes: &'de [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field and what it holds; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Value<'de>)>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| broken("a field number is too large"))?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.bytes(8).map(|_| Value::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?);
                let length = length.map_err(|_| broken("a length is too large"))?;
                Value::Bytes(self.bytes(length)?)
            }
            5 => self.bytes(4).map(|_| Value::Fixed)?,
            _ => return Err(broken("a field of no known form")),
        };
        Ok(Some((number, value)))
    }

    /// The next value, if it belongs to this field: the elements of a list follow each other.
    pub(super) fn next_of(&mut self, number: u32) -> Result<Option<Value<'de>>, Error> {
        let mut ahead = *self;
        match ahead.next()? {
            Some((same, value)) if same == number => {
                *self = ahead;
                Ok(Some(value))
            }
            _ => Ok(None),
        }
    }

    fn bytes(&mut self, length: usize) -> Result<&'de [u8], Error> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| broken("it ends too early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Seven bits a byte, the lowest first; the eighth says that there is more.
    fn varint(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.bytes(1)? else { break };
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(broken("a number is too long"))
    }
}
