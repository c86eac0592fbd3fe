//! Codecs of numbers, texts, lists and options.

use super::{Codec, Decoder, Encoder, Unreadable};
use std::borrow::Cow;

/// For so many elements of a list at most memory is taken before the first is read, because the
/// length may be wrong.
const ROOM_MAX: usize = 1 << 12;
/// The most bytes that a number of 64 bits takes, with 7 bits in each.
const NUMBER_BYTES_MAX: u32 = 10;

impl Codec for u64 {
    fn encode(&self, out: &mut Encoder) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.bytes.push(low_byte(rest) | 0x80);
            rest >>= 7;
        }
        out.bytes.push(low_byte(rest));
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        let mut number = 0;
        for index in 0..NUMBER_BYTES_MAX {
            let byte = u8::decode(input)?;
            let bits = Self::from(byte & 0x7f);
            let shifted = bits << (7 * index);
            if shifted >> (7 * index) != bits {
                break;
            }
            number |= shifted;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Unreadable::new("a number of more than 64 bits"))
    }
}

fn low_byte(number: u64) -> u8 {
    number.to_le_bytes()[0]
}

impl Codec for u8 {
    fn encode(&self, out: &mut Encoder) {
        out.bytes.push(*self);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        Ok(input.take(1)?[0])
    }
}

/// UIDs. They are random, so a variable length would gain nothing.
impl Codec for u128 {
    fn encode(&self, out: &mut Encoder) {
        out.bytes.extend(self.to_le_bytes());
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(input.take(16)?);
        Ok(Self::from_le_bytes(bytes))
    }
}

/// Implements [`Codec`] for smaller numbers, which are written as larger ones.
macro_rules! smaller {
    ($($small:ident as $large:ident),+) => {$(
        impl Codec for $small {
            fn encode(&self, out: &mut Encoder) {
                $large::from(*self).encode(out);
            }

            fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
                let number = $large::decode(input)?;
                let problem = || format!("{number} is too much for {}", stringify!($small));
                Self::try_from(number).map_err(|_| Unreadable::new(problem()))
            }
        }
    )+};
}

smaller!(u16 as u64, u32 as u64, i32 as i64);

/// Zigzag: small numbers of either sign are short.
impl Codec for i64 {
    fn encode(&self, out: &mut Encoder) {
        ((self << 1) ^ (self >> 63)).cast_unsigned().encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        let number = u64::decode(input)?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

impl Codec for bool {
    fn encode(&self, out: &mut Encoder) {
        u8::from(*self).encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        match u8::decode(input)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Unreadable::new(format!(
                "{other} is neither false nor true"
            ))),
        }
    }
}

impl Codec for String {
    fn encode(&self, out: &mut Encoder) {
        text(self, out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        let length = usize::decode(input)?;
        let bytes = input.take(length)?;
        let text = std::str::from_utf8(bytes);
        Ok(text
            .map_err(|_| Unreadable::new("a text that is not UTF-8"))?
            .to_owned())
    }
}

fn text(text: &str, out: &mut Encoder) {
    text.len().encode(out);
    out.bytes.extend(text.as_bytes());
}

impl Codec for Box<str> {
    fn encode(&self, out: &mut Encoder) {
        text(self, out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        String::decode(input).map(Into::into)
    }
}

impl Codec for Cow<'static, str> {
    fn encode(&self, out: &mut Encoder) {
        text(self, out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        String::decode(input).map(Cow::Owned)
    }
}

impl Codec for usize {
    fn encode(&self, out: &mut Encoder) {
        (*self as u64).encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        let length = u64::decode(input)?;
        Self::try_from(length).map_err(|_| Unreadable::new("a length beyond this machine"))
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn encode(&self, out: &mut Encoder) {
        self.as_slice().len().encode(out);
        for element in self {
            element.encode(out);
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        let length = usize::decode(input)?;
        let mut elements = Self::with_capacity(length.min(ROOM_MAX));
        for index in 0..length {
            let element = T::decode(input);
            elements.push(element.map_err(|unreadable| unreadable.within(&index.to_string()))?);
        }
        Ok(elements)
    }
}

impl<T: Codec> Codec for Option<T> {
    fn encode(&self, out: &mut Encoder) {
        self.is_some().encode(out);
        if let Some(inner) = self {
            inner.encode(out);
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        bool::decode(input)?.then(|| T::decode(input)).transpose()
    }
}

impl<T: Codec> Codec for Box<T> {
    fn encode(&self, out: &mut Encoder) {
        self.as_ref().encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        T::decode(input).map(Self::new)
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
        self.1.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        Ok((A::decode(input)?, B::decode(input)?))
    }
}
