//! Where objects come from.

use crate::kube::convert::{RefusedDocument, taken_apart};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A file, or one of its documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// How a user would name the file.
    pub(super) file: Arc<str>,
    /// The number of the document, from 1, where the file has several.
    pub(super) document: Option<usize>,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.file)?;
        match self.document {
            Some(document) => write!(formatter, ", document {document}"),
            None => Ok(()),
        }
    }
}

/// An object and where it comes from.
pub(super) type Sourced = (Source, Value);

/// Objects, and what could not be read at all.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) objects: Vec<Sourced>,
    pub(super) refused: Vec<(Source, RefusedDocument)>,
}

impl Gathered {
    /// Adds the objects of a document.
    pub(super) fn add(&mut self, source: &Source, document: Value, namespace: &str) {
        match taken_apart(document, namespace) {
            Ok(objects) => {
                let objects = objects.into_iter();
                self.objects
                    .extend(objects.map(|object| (source.clone(), object)));
            }
            Err(refused) => self.refused.push((source.clone(), refused)),
        }
    }
}

/// The first three of some names, and how many more there are.
pub(super) fn some_of(names: &[String]) -> String {
    const NAMED: usize = 3;
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if names.len() <= NAMED => format!("{} and {last}", first.join(", ")),
        _ => format!(
            "{} and {} more",
            names[..NAMED].join(", "),
            names.len() - NAMED
        ),
    }
}
