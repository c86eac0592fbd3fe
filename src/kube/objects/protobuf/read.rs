//! Messages as serde sees them: maps from names to values.

use super::wire::{Value, Wire, broken};
use super::{Content, Message};
use serde::de::value::{BorrowedStrDeserializer, Error};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// A message, a list, a map or a value, to be read once.
pub(super) enum Reader<'a, 'de> {
    Message(Fields<'de>),
    List(Elements<'a, 'de>),
    Map(Entries<'a, 'de>),
    Value(&'static Content, Value<'de>),
}

impl<'a, 'de> Reader<'a, 'de> {
    /// The message in these bytes.
    pub(super) fn message(bytes: &'de [u8], message: &'static Message) -> Self {
        Self::Message(Fields {
            wire: Wire::new(bytes),
            message,
            outer: None,
            current: None,
        })
    }

    /// What a field holds, whose first value has been read already.
    fn field(
        wire: &'a mut Wire<'de>,
        (number, content, first): (u32, &'static Content, Value<'de>),
    ) -> Self {
        let (Content::List(element) | Content::Map(element)) = content else {
            return Self::Value(content, first);
        };
        let elements = Elements {
            wire,
            number,
            content: element,
            first: Some(first),
        };
        match content {
            Content::Map(_) => Self::Map(Entries {
                elements,
                value: None,
            }),
            _ => Self::List(elements),
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Message(fields) => visitor.visit_map(fields),
            Self::List(elements) => visitor.visit_seq(elements),
            Self::Map(entries) => visitor.visit_map(entries),
            Self::Value(content, value) => match (content, value) {
                (Content::Text, Value::Bytes(bytes)) => visitor.visit_borrowed_str(text(bytes)?),
                // Negative numbers are their two's complement in 64 bits.
                (Content::Integer, Value::Varint(bits)) => visitor.visit_i64(bits.cast_signed()),
                (Content::Flag, Value::Varint(bits)) => visitor.visit_bool(bits != 0),
                (Content::Time, Value::Bytes(bytes)) => visitor.visit_i64(unix_ms(bytes)?),
                (Content::Quantity, Value::Bytes(bytes)) => {
                    visitor.visit_borrowed_str(text(first_field(bytes)?)?)
                }
                (Content::Present, _) => visitor.visit_unit(),
                (Content::Message(message), Value::Bytes(bytes)) => {
                    Reader::message(bytes, message).deserialize_any(visitor)
                }
                _ => Err(broken("a field holds something else than its table says")),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

pub(super) fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| broken("text that is not UTF-8"))
}

/// The bytes of a message's first field: all that `resource.Quantity` (its text) and
/// `runtime.RawExtension` (an object) have.
pub(super) fn first_field(message: &[u8]) -> Result<&[u8], Error> {
    let mut wire = Wire::new(message);
    while let Some((number, value)) = wire.next()? {
        if let (1, Value::Bytes(bytes)) = (number, value) {
            return Ok(bytes);
        }
    }
    Ok(&[])
}

/// A `meta/v1.Time` in Unix milliseconds: its first field is the seconds. JSON has no fractions
/// either.
fn unix_ms(message: &[u8]) -> Result<i64, Error> {
    let mut wire = Wire::new(message);
    while let Some((number, value)) = wire.next()? {
        if let (1, Value::Varint(seconds)) = (number, value) {
            return Ok(seconds.cast_signed().saturating_mul(1_000));
        }
    }
    Ok(0)
}

/// The fields of a message, in the order in which they were sent.
pub(super) struct Fields<'de> {
    wire: Wire<'de>,
    message: &'static Message,
    /// The message in which this one is embedded. In the tables no message is embedded more deeply.
    outer: Option<(Wire<'de>, &'static Message)>,
    /// The field whose name was given last.
    current: Option<(u32, &'static Content, Value<'de>)>,
}

impl Fields<'_> {
    /// The name of the next field that a table names.
    fn advance(&mut self) -> Result<Option<&'static str>, Error> {
        loop {
            let Some((number, value)) = self.wire.next()? else {
                match self.outer.take() {
                    Some(outer) => (self.wire, self.message) = outer,
                    None => return Ok(None),
                }
                continue;
            };
            let named = self.message.0.iter().find(|(known, ..)| *known == number);
            match named.map(|(_, name, content)| (name, content, value)) {
                None | Some((_, Content::Text | Content::Time, Value::Bytes([]))) => {}
                Some((_, Content::Embedded(message), Value::Bytes(bytes))) => {
                    self.outer = Some((self.wire, self.message));
                    (self.wire, self.message) = (Wire::new(bytes), message);
                }
                Some((name, content, value)) => {
                    self.current = Some((number, content, value));
                    return Ok(Some(name));
                }
            }
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let name = self.advance()?;
        name.map(|name| seed.deserialize(BorrowedStrDeserializer::new(name)))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let current = self.current.take();
        let current = current.ok_or_else(|| broken("a value without a name"))?;
        seed.deserialize(Reader::field(&mut self.wire, current))
    }
}

/// The values of a repeated field, which follow each other.
pub(super) struct Elements<'a, 'de> {
    wire: &'a mut Wire<'de>,
    number: u32,
    content: &'static Content,
    first: Option<Value<'de>>,
}

impl<'de> Elements<'_, 'de> {
    fn advance(&mut self) -> Result<Option<Value<'de>>, Error> {
        match self.first.take() {
            None => self.wire.next_of(self.number),
            first => Ok(first),
        }
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let value = self.advance()?;
        value
            .map(|value| seed.deserialize(Reader::Value(self.content, value)))
            .transpose()
    }
}

/// A map: a list of messages of a key and a value.
pub(super) struct Entries<'a, 'de> {
    elements: Elements<'a, 'de>,
    /// The value of the key that was given last.
    value: Option<Value<'de>>,
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(entry) = self.elements.advance()? else {
            return Ok(None);
        };
        let Value::Bytes(entry) = entry else {
            return Err(broken("an entry of a map that is no message"));
        };
        let (mut key, mut wire) = (&[][..], Wire::new(entry));
        self.value = Some(Value::Bytes(&[]));
        while let Some((number, part)) = wire.next()? {
            match (number, part) {
                (1, Value::Bytes(bytes)) => key = bytes,
                (2, value) => self.value = Some(value),
                _ => {}
            }
        }
        let key = BorrowedStrDeserializer::new(text(key)?);
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let value = self.value.take();
        let value = value.ok_or_else(|| broken("a value without a key"))?;
        seed.deserialize(Reader::Value(self.elements.content, value))
    }
}
