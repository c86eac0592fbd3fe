//! Kubernetes' binary form of its own kinds, read into the same structs as JSON.
//!
//! The API server makes a list in this form in a fraction of the time, and it is read in a fraction
//! of the time. Custom resources have only JSON. A message names its fields by numbers; [`Message`]
//! tables say which number is which name (`schema`), and then any `Deserialize` can read it. Fields
//! that no table names are skipped.
//!
//! Not used: types generated from the `.proto` files. They would be a second set of structs beside
//! the ones that JSON is read into, and hold every field that these leave out.
//!
//! Differences from JSON, which a `Deserialize` does not see:
//! - the API server writes out empty text and empty times, which JSON leaves out: they are absent;
//! - a time is a number; it comes as Unix milliseconds;
//! - a quantity is a message around its text; it comes as the text;
//! - an embedded message (`volumeSource` of a volume) comes as fields of the outer one.
//!
//! Source: <https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding>

mod read;
mod schema;
mod wire;

pub use schema::{LIST_HEAD, NODE_FORMS, POD_FORMS, STATUS};

use serde::Deserialize;
use serde::de::value::Error;
use wire::{Value, Wire};

/// The content type of the form.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The content type of a watch in this form: frames, each behind its length in four bytes, the
/// largest first.
pub const WATCH_CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// What a body in this form begins with.
const MAGIC: &[u8] = b"k8s\0";
/// `raw` of `runtime.Unknown`, the envelope.
const RAW: u32 = 2;

/// What a field holds.
#[derive(Debug)]
pub(crate) enum Content {
    Text,
    Integer,
    Flag,
    /// `meta/v1.Time`.
    Time,
    /// `resource.Quantity`.
    Quantity,
    /// Anything of which only the presence matters.
    Present,
    Message(&'static Message),
    /// A message whose fields JSON shows as fields of the outer one.
    Embedded(&'static Message),
    List(&'static Content),
    /// A map from text.
    Map(&'static Content),
}

/// The fields of a message: number, name in JSON, content. All else is skipped.
#[derive(Debug)]
pub struct Message(pub(crate) &'static [(u32, &'static str, Content)]);

/// How a kind is read in this form.
#[derive(Debug)]
pub struct Forms {
    /// One object, as a watch tells it.
    pub object: &'static Message,
    /// A list of them.
    pub list: &'static Message,
}

/// Takes a frame of a watch apart: what has happened (`ADDED` and the like), and the object as
/// [`from_body`] reads it.
///
/// # Errors
///
/// The frame is no `meta/v1.WatchEvent`. The message is for a log.
pub fn watch_event(frame: &[u8]) -> Result<(&str, &[u8]), Error> {
    let (mut change, mut object) = (&[][..], &[][..]);
    let mut wire = Wire::new(frame);
    while let Some(field) = wire.next()? {
        match field {
            (1, Value::Bytes(bytes)) => change = bytes,
            // `runtime.RawExtension`, whose only field is the object.
            (2, Value::Bytes(bytes)) => object = read::first_field(bytes)?,
            _ => {}
        }
    }
    Ok((read::text(change)?, object))
}

/// Reads the body of a response.
///
/// # Errors
///
/// The body is not in this form, is cut short, or does not fit `T`. The message is for a log.
pub fn from_body<'de, T: Deserialize<'de>>(
    body: &'de [u8],
    message: &'static Message,
) -> Result<T, Error> {
    let raw = envelope(body)?;
    T::deserialize(read::Reader::message(raw, message))
}

/// The object inside of the envelope.
fn envelope(body: &[u8]) -> Result<&[u8], Error> {
    let unknown = body.strip_prefix(MAGIC);
    let mut wire = Wire::new(unknown.ok_or_else(|| wire::broken("no Kubernetes object"))?);
    while let Some((number, value)) = wire.next()? {
        if let (RAW, Value::Bytes(raw)) = (number, value) {
            return Ok(raw);
        }
    }
    Err(wire::broken("an envelope without an object"))
}

#[cfg(test)]
mod tests;
