//! Reads the specs of our own kinds from JSON that nobody has checked.

use super::limits;
use super::problems::Problems;
use crate::api::{InvalidDuration, parse_duration_ms, parse_placement, parse_signed_duration_ms};
use gpu_batch_policies::facts::{Placement, PlacementChoice};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt;
use std::ops::RangeInclusive;

const NO_OBJECT: &str = "is not an object that can be read";

/// A JSON object that is being read. Each field is taken out when it is read, so that what remains
/// is what this version does not know.
#[derive(Debug)]
pub(super) struct Fields {
    path: String,
    map: Map<String, Value>,
}

impl Fields {
    /// Reads an object; `null` is one without fields, anything else is a problem.
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
        Self { path, map }
    }

    /// The whole name of a field.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// What has not been read: fields that this version does not know.
    pub(super) fn unknown(&self) -> impl Iterator<Item = String> {
        self.map.keys().map(|name| self.path(name))
    }

    /// Notes a problem of a field.
    pub(super) fn problem(&self, name: &str, message: impl fmt::Display, problems: &mut Problems) {
        problems.push(format_args!("{}.{name}", self.path), message);
    }

    /// A field as it is; `null` is absent.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// A field of a type; another type is a problem.
    pub(super) fn read<T: DeserializeOwned>(
        &mut self,
        name: &str,
        problems: &mut Problems,
    ) -> Option<T> {
        let value = self.take(name)?;
        match serde_path_to_error::deserialize(value) {
            Ok(value) => Some(value),
            Err(error) => {
                let path = match error.path().to_string().as_str() {
                    "." => self.path(name),
                    inner => format!("{}.{inner}", self.path(name)),
                };
                problems.push(path, error.inner());
                None
            }
        }
    }

    /// A text that names something; empty is absent.
    pub(super) fn name(&mut self, name: &str, problems: &mut Problems) -> Option<Box<str>> {
        let text: Box<str> = self.read(name, problems)?;
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
        name: &str,
        range: RangeInclusive<i64>,
        problems: &mut Problems,
    ) -> Option<i64> {
        let number: i64 = self.read(name, problems)?;
        if range.contains(&number) {
            return Some(number);
        }
        let (first, last) = range.into_inner();
        self.problem(
            name,
            format_args!("{number} is not an integer from {first} to {last}"),
            problems,
        );
        None
    }

    /// A number of members or sub-groups.
    pub(super) fn count(&mut self, name: &str, problems: &mut Problems) -> Option<u32> {
        let number = self.integer(name, 1..=i64::from(limits::MEMBERS), problems)?;
        u32::try_from(number).ok()
    }

    /// A duration in milliseconds, perhaps negative.
    pub(super) fn signed_duration(&mut self, name: &str, problems: &mut Problems) -> Option<i64> {
        self.length(name, parse_signed_duration_ms, problems)
    }

    /// A duration in milliseconds.
    pub(super) fn duration(&mut self, name: &str, problems: &mut Problems) -> Option<u64> {
        self.length(name, parse_duration_ms, problems)
    }

    /// How long something is said to run, in milliseconds.
    pub(super) fn runtime(&mut self, name: &str, problems: &mut Problems) -> Option<u64> {
        let text: Box<str> = self.read(name, problems)?;
        match limits::runtime(&text) {
            Ok(runtime_ms) => Some(runtime_ms),
            Err(message) => {
                self.problem(name, message, problems);
                None
            }
        }
    }

    fn length<T>(
        &mut self,
        name: &str,
        parse: fn(&str) -> Result<T, InvalidDuration>,
        problems: &mut Problems,
    ) -> Option<T> {
        let text: Box<str> = self.read(name, problems)?;
        match parse(&text) {
            Ok(length) => Some(length),
            Err(error) => {
                self.problem(name, error, problems);
                None
            }
        }
    }

    /// An object in a field.
    pub(super) fn object(&mut self, name: &str, problems: &mut Problems) -> Option<Self> {
        let value = self.take(name)?;
        Some(Self::new(self.path(name), value, problems))
    }

    /// The objects of a list; an entry that is none is a problem and left out.
    pub(super) fn objects(
        &mut self,
        name: &str,
        limit: usize,
        problems: &mut Problems,
    ) -> Vec<Self> {
        let values: Vec<Value> = self.read(name, problems).unwrap_or_default();
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

    /// A placement: one word for both, or `{gpu: word, cpu: word}`. Other fields are given back.
    pub(super) fn placement(
        &mut self,
        name: &str,
        problems: &mut Problems,
    ) -> (PlacementChoice, Vec<String>) {
        let mut unknown = Vec::new();
        let choice = match self.take(name) {
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
                        .read::<Box<str>>(name, problems)
                        .and_then(|word| fields.word(name, &word, problems));
                }
                unknown.extend(fields.unknown());
                choice
            }
        };
        (choice, unknown)
    }

    fn word(&self, name: &str, word: &str, problems: &mut Problems) -> Option<Placement> {
        let placement = parse_placement(word);
        placement
            .map_err(|error| self.problem(name, error, problems))
            .ok()
    }
}
