//! Values that many objects have, in one allocation each: labels, annotations and resource lists as
//! pairs, and quantities as text until the number is needed.

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// A JSON object as pairs, sorted by key, each key once (the last one written wins).
///
/// The API server sends maps sorted, so this costs one pass and no tree. `null` is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs<V>(pub Vec<(Box<str>, V)>);

/// The annotations that are used; the others, which are many and long, are skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations(pub Pairs<Box<str>>);

impl<V> Default for Pairs<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> Pairs<V> {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&V> {
        let index = self
            .0
            .binary_search_by(|(name, _)| name.as_ref().cmp(key))
            .ok()?;
        self.0.get(index).map(|(_, value)| value)
    }

    /// All pairs, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// Whether there is no pair.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn sorted(mut entries: Vec<(Box<str>, V)>) -> Self {
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        entries.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Self(entries)
    }
}

impl Annotations {
    /// The value of an annotation.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(AsRef::as_ref)
    }

    /// All pairs, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key, &**value))
    }

    /// Prefixes of the annotations that are kept: our own, the GPU operator's, and those by which
    /// other schedulers let users ask for parts of a GPU.
    const PREFIXES: [&str; 4] = ["gpu-batch.io/", "nvidia.com/", "hami.io/", "gpu-"];

    /// Annotations of claims, volumes, their classes and CSINodes that are kept, too.
    const OF_VOLUMES: [&str; 6] = [
        "pv.kubernetes.io/bind-completed",
        "storage.alpha.kubernetes.io/migrated-plugins",
        "storageclass.beta.kubernetes.io/is-default-class",
        "storageclass.kubernetes.io/is-default-class",
        "volume.beta.kubernetes.io/storage-class",
        "volume.kubernetes.io/selected-node",
    ];

    fn keeps(key: &str) -> bool {
        let mut prefixes = Self::PREFIXES.iter();
        prefixes.any(|prefix| key.starts_with(prefix)) || Self::OF_VOLUMES.contains(&key)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairsVisitor {
            keeps: |_| true,
            value: PhantomData,
        })
    }
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = PairsVisitor {
            keeps: Self::keeps,
            value: PhantomData,
        };
        deserializer.deserialize_any(visitor).map(Self)
    }
}

struct PairsVisitor<V> {
    keeps: fn(&str) -> bool,
    value: PhantomData<V>,
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
    type Value = Pairs<V>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_unit<E: Error>(self) -> Result<Pairs<V>, E> {
        Ok(Pairs::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<V>, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key_seed(KeptKey(self.keeps))? {
            match key {
                Some(key) => entries.push((key, map.next_value()?)),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Pairs::sorted(entries))
    }
}

/// Reads a key, and copies it only if it is kept.
struct KeptKey(fn(&str) -> bool);

impl<'de> DeserializeSeed<'de> for KeptKey {
    type Value = Option<Box<str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeptKey {
    type Value = Option<Box<str>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok((self.0)(key).then(|| key.into()))
    }
}

/// A Kubernetes quantity as it was written: `500m`, `2Gi`, `8`.
///
/// The API server always sends text; files may have plain numbers, which mean the same. The amount
/// depends on the resource and is read by `convert`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity(pub Box<str>);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

/// Whether a text has all of a quantity but the number, as templates make it from nothing.
fn is_suffix_alone(text: &str) -> bool {
    const SUFFIXES: [&str; 15] = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi",
    ];
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let suffix = unsigned.strip_prefix('.').unwrap_or(unsigned);
    let exponent = suffix.strip_prefix(['e', 'E']);
    let is_exponent = exponent.is_some_and(|exponent| exponent.parse::<i32>().is_ok());
    !text.is_empty() && (SUFFIXES.contains(&suffix) || is_exponent)
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a quantity such as 500m, 2Gi or 8")
    }

    /// The API server takes no notice of blanks around a quantity, and reads a suffix without a
    /// number as none of it.
    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        let text = text.trim_matches(' ');
        let text = if is_suffix_alone(text) { "0" } else { text };
        Ok(Quantity(text.into()))
    }

    /// To the API server, `null` is none of it.
    fn visit_unit<E: Error>(self) -> Result<Quantity, E> {
        Ok(Quantity("0".into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string().into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string().into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string().into()))
    }
}
