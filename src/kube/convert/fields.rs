//! Reads the specs of our own kinds from JSON that was not checked before.

use super::limits;
use super::problems::Problems;
use crate::kube::api::{
    InvalidDuration, parse_duration_ms, parse_placement, parse_runtime_ms, parse_signed_duration_ms,
};
use gpu_batch_policies::facts::{Placement, PlacementChoice};
use gpu_batch_policies::names::suggestion;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt;
use std::ops::RangeInclusive;

/// What a field that names something must be, in words.
pub(super) const TEXT: &str = "a text";
/// What a switch must be, in words.
pub(super) const TRUTH: &str = "true or false";
const NO_OBJECT: &str = "is not an object that can be read";

/// A JSON object that is being read. Each field is taken out when it is read, so that what remains
/// is what this version does not know.
#[derive(Debug)]
pub(super) struct Fields {
    path: String,
    map: Map<String, Value>,
    /// The names of the fields that were asked for, present or not.
    known: Vec<&'static str>,
}

impl Fields {
    /// Reads an object. `null` is an object without fields; any other value is a problem.
    pub(super) fn new(path: impl Into<String>, value: Value, problems: &mut Problems) -> Self {
        let path = path.into();
        let map = match value {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            _ => {
                problems.push(&path, NO_OBJECT);
                Map::new()
            }
        };
        Self {
            path,
            map,
            known: Vec::new(),
        }
    }

    /// A field as users see it: the path of the object, and the name of the field.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// Each field that has not been read is a problem: this version does not know it.
    pub(super) fn end(self, problems: &mut Problems) {
        for name in self.map.keys().take(limits::PROBLEMS) {
            let meant = suggestion(name, self.known.iter().copied());
            let meant = meant.map_or_else(String::new, |meant| format!("; {meant}"));
            self.problem(
                name,
                format_args!("there is no such field{meant}"),
                problems,
            );
        }
    }

    /// Notes a problem of a field.
    pub(super) fn problem(&self, name: &str, message: impl fmt::Display, problems: &mut Problems) {
        problems.push(format_args!("{}.{name}", self.path), message);
    }

    /// Whether a field is there that has not been read; `null` counts as absent.
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// The value of a field; `null` counts as absent.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// Reads a field of type `T`; a value of another type is a problem, which says what is
    /// `expected`.
    pub(super) fn read<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        expected: impl fmt::Display,
        problems: &mut Problems,
    ) -> Option<T> {
        let value = self.take(name)?;
        let found = in_words(&value);
        match serde_path_to_error::deserialize(value) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = format_args!("{found} is not {expected}");
                match error.path().to_string().as_str() {
                    "." => self.problem(name, message, problems),
                    inner => {
                        let path = format!("{}.{inner}", self.path(name));
                        problems.push(path, format_args!("makes no sense in {expected}"));
                    }
                }
                None
            }
        }
    }

    /// A text that names something; an empty text counts as absent.
    pub(super) fn name(&mut self, name: &'static str, problems: &mut Problems) -> Option<Box<str>> {
        let text: Box<str> = self.read(name, TEXT, problems)?;
        match text.len() {
            0 => None,
            1..=limits::TEXT => Some(text),
            length => {
                self.problem(name, format_args!("is {length} bytes long"), problems);
                None
            }
        }
    }

    /// An integer within a range.
    pub(super) fn integer(
        &mut self,
        name: &'static str,
        range: RangeInclusive<i64>,
        problems: &mut Problems,
    ) -> Option<i64> {
        let (first, last) = (range.start(), range.end());
        let expected = format!("a whole number from {first} to {last}");
        let number: i64 = self.read(name, &expected, problems)?;
        if range.contains(&number) {
            return Some(number);
        }
        self.problem(name, format_args!("{number} is not {expected}"), problems);
        None
    }

    /// A number of members or sub-groups.
    pub(super) fn count(&mut self, name: &'static str, problems: &mut Problems) -> Option<u32> {
        let number = self.integer(name, 1..=i64::from(limits::MEMBERS), problems)?;
        u32::try_from(number).ok()
    }

    /// A duration in milliseconds, perhaps negative.
    pub(super) fn signed_duration(
        &mut self,
        name: &'static str,
        problems: &mut Problems,
    ) -> Option<i64> {
        self.length(name, parse_signed_duration_ms, problems)
    }

    /// A duration in milliseconds.
    pub(super) fn duration(&mut self, name: &'static str, problems: &mut Problems) -> Option<u64> {
        self.length(name, parse_duration_ms, problems)
    }

    /// How long something is said to run, in milliseconds.
    pub(super) fn runtime(&mut self, name: &'static str, problems: &mut Problems) -> Option<u64> {
        self.length(name, parse_runtime_ms, problems)
    }

    fn length<T>(
        &mut self,
        name: &'static str,
        parse: fn(&str) -> Result<T, InvalidDuration>,
        problems: &mut Problems,
    ) -> Option<T> {
        let expected = "a duration such as 90s, 10m or 2h30m";
        let text: Box<str> = self.read(name, expected, problems)?;
        match parse(&text) {
            Ok(length) => Some(length),
            Err(error) => {
                self.problem(name, error, problems);
                None
            }
        }
    }

    /// An object in a field.
    pub(super) fn object(&mut self, name: &'static str, problems: &mut Problems) -> Option<Self> {
        let value = self.take(name)?;
        Some(Self::new(self.path(name), value, problems))
    }

    /// The objects of a list; an entry that is no object is a problem and left out.
    pub(super) fn objects(
        &mut self,
        name: &'static str,
        limit: usize,
        problems: &mut Problems,
    ) -> Vec<Self> {
        let values = self.read(name, "a list", problems);
        let values: Vec<Value> = values.unwrap_or_default();
        let path = self.path(name);
        problems.at_most(limit, &values, &path);
        let mut objects = Vec::with_capacity(values.len().min(limit));
        for (index, value) in values.into_iter().take(limit).enumerate() {
            let path = format!("{path}[{index}]");
            if value.is_object() {
                objects.push(Self::new(path, value, problems));
            } else {
                problems.push(path, NO_OBJECT);
            }
        }
        objects
    }

    /// A placement: one word for GPU and CPU work, or `{gpu: word, cpu: word}`.
    pub(super) fn placement(
        &mut self,
        name: &'static str,
        problems: &mut Problems,
    ) -> PlacementChoice {
        match self.take(name) {
            None => PlacementChoice::default(),
            Some(Value::String(word)) => {
                let placement = self.word(name, &word, problems);
                PlacementChoice {
                    gpu: placement,
                    cpu: placement,
                }
            }
            Some(value) => {
                let mut fields = Self::new(self.path(name), value, problems);
                let mut choice = PlacementChoice::default();
                for (name, placement) in [("gpu", &mut choice.gpu), ("cpu", &mut choice.cpu)] {
                    *placement = fields
                        .read::<Box<str>>(name, "a placement such as binpack", problems)
                        .and_then(|word| fields.word(name, &word, problems));
                }
                fields.end(problems);
                choice
            }
        }
    }

    fn word(&self, name: &'static str, word: &str, problems: &mut Problems) -> Option<Placement> {
        let placement = parse_placement(word);
        placement
            .map_err(|error| self.problem(name, error, problems))
            .ok()
    }
}

/// The value of a field, for people.
fn in_words(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        value => value.to_string(),
    }
}
