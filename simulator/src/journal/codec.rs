//! How the words of the engine become bytes, and come back.
//!
//! Each type has one list of its fields, which serves both directions. The compiler checks the
//! list: a new field or variant does not compile before it stands here. Numbers are of variable
//! length (LEB128), texts and lists begin with their length, variants with a number that they keep
//! for ever. A shape of pods, and a set of labels, is written once in a block; all further pods
//! that have it refer to it, and share it when they are read.
//!
//! This is not serde: `policies` does not depend on serde, so its types would have to exist twice.
//! And a decoder of our own can say in which field of which object the bytes make no sense.

mod commands;
mod events;
mod facts;
mod plain;
mod storage;

use gpu_batch_policies::facts::{Labels, PodShape};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// A type that can be written to bytes and read back.
pub(super) trait Codec: Sized {
    /// Appends the value to the bytes.
    fn encode(&self, out: &mut Encoder);

    /// Takes a value from the front of the bytes.
    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable>;
}

/// Bytes to which values are appended.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
    shapes: Written<PodShape>,
    labels: Written<Labels>,
}

/// Bytes from which values are taken.
#[derive(Debug)]
pub(super) struct Decoder<'bytes> {
    rest: &'bytes [u8],
    shapes: Vec<Arc<PodShape>>,
    labels: Vec<Arc<Labels>>,
}

/// Why bytes cannot be read as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unreadable {
    /// The path of the field, as in `events.pod.shape`; empty: the value itself.
    pub(super) field: String,
    /// The mistake in that field.
    pub(super) problem: String,
}

impl Unreadable {
    fn new(problem: impl Into<String>) -> Self {
        Self {
            field: String::new(),
            problem: problem.into(),
        }
    }

    fn within(mut self, field: &str) -> Self {
        self.field = match self.field.as_str() {
            "" => field.to_owned(),
            inner => format!("{field}.{inner}"),
        };
        self
    }
}

impl<'bytes> Decoder<'bytes> {
    pub(super) fn new(bytes: &'bytes [u8]) -> Self {
        Self {
            rest: bytes,
            shapes: Vec::new(),
            labels: Vec::new(),
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes one field; `name` is put before the path of an error in it.
    pub(super) fn field<T: Codec>(&mut self, name: &str) -> Result<T, Unreadable> {
        T::decode(self).map_err(|unreadable| unreadable.within(name))
    }

    fn take(&mut self, length: usize) -> Result<&'bytes [u8], Unreadable> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            let left = self.rest.len();
            let problem = format!("{length} bytes are needed, {left} are left");
            return Err(Unreadable::new(problem));
        };
        self.rest = rest;
        Ok(taken)
    }
}

/// Values that many pods share: each is written once in a block; later it is a reference to it by
/// number.
#[derive(Debug)]
struct Written<T>(HashMap<Arc<T>, u64, FxBuildHasher>);

impl<T> Default for Written<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

/// Implements [`Codec`] for a shared type: the field of encoder and decoder that knows its values,
/// and what a value is called.
macro_rules! shared {
    ($($type:ident in $field:ident: $name:literal)+) => {$(
        impl Codec for Arc<$type> {
            fn encode(&self, out: &mut Encoder) {
                let next = out.$field.0.len() as u64;
                if let Some(&number) = out.$field.0.get(self) {
                    return number.encode(out);
                }
                next.encode(out);
                out.$field.0.insert(Self::clone(self), next);
                self.as_ref().encode(out);
            }

            fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
                let number = u64::decode(input)?;
                let index = usize::try_from(number).unwrap_or(usize::MAX);
                if let Some(value) = input.$field.get(index) {
                    return Ok(Self::clone(value));
                }
                if index != input.$field.len() {
                    return Err(Unreadable::new(format!("there are no {} {number}", $name)));
                }
                let value = Self::new($type::decode(input)?);
                input.$field.push(Self::clone(&value));
                Ok(value)
            }
        }
    )+};
}

shared! {
    PodShape in shapes: "shapes"
    Labels in labels: "labels"
}

/// Implements [`Codec`] for structs: field by field, in the order given.
macro_rules! fields {
    ($($type:ident { $($field:tt),+ $(,)? })+) => {$(
        impl Codec for $type {
            fn encode(&self, out: &mut Encoder) {
                // Without `..`, so that a new field does not compile before it is listed.
                let $type { $($field),+ } = self;
                $($field.encode(out);)+
            }

            fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
                Ok(Self { $($field: input.field(stringify!($field))?),+ })
            }
        }
    )+};
}

/// Implements [`Codec`] for enums: each variant has a number and its fields; the fields of a tuple
/// variant are called 0, 1, ...
macro_rules! variants {
    ($($type:ident {
        $($number:literal $variant:ident $({ $($field:tt: $name:ident),+ })?),+ $(,)?
    })+) => {$(
        impl Codec for $type {
            fn encode(&self, out: &mut Encoder) {
                match self {
                    $(Self::$variant { $($($field: $name),+)? } => {
                        out.bytes.push($number);
                        $($($name.encode(out);)+)?
                    })+
                }
            }

            fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
                Ok(match u8::decode(input)? {
                    $($number => Self::$variant {
                        $($($field: input.field(stringify!($name))?),+)?
                    },)+
                    other => {
                        let problem = format!("{} has no variant {other}", stringify!($type));
                        return Err(Unreadable::new(problem));
                    }
                })
            }
        }
    )+};
}

use {fields, variants};
