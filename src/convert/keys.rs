//! Labels and annotations under our prefix that mean nothing where they stand.
//!
//! Nothing is refused for them: other tools may have keys of their own there one day. But a queue
//! that is named in an annotation is not named at all, and whoever wrote it has to hear of it.

use super::{limits, names, problems::Problems};
use crate::objects::Meta;
use gpu_batch_policies::facts::Problem;
use gpu_batch_policies::names::nearest;

/// The keys of a pod that mean nothing, each with what may have been meant.
pub(super) fn unknown(meta: &Meta) -> Vec<Problem> {
    let mut unknown = Problems::default();
    let mut tell =
        |key: &str, field: fn(&str) -> String, here: &[&str], elsewhere: &[&str], misplaced| {
            if elsewhere.contains(&key) {
                unknown.push(field(key), misplaced);
            } else if key.starts_with(names::PREFIX) && !here.contains(&key) {
                unknown.push(field(key), meaning_nothing(key));
            }
        };
    let (labels, annotations) = (&names::LABELS, &names::ANNOTATIONS);
    for (key, _) in meta.labels.iter() {
        let misplaced = "is an annotation: as a label it means nothing";
        tell(key, names::label, labels, annotations, misplaced);
    }
    for (key, _) in meta.annotations.iter() {
        let misplaced = "is a label: as an annotation it means nothing";
        tell(key, names::annotation, annotations, labels, misplaced);
    }
    unknown.into_vec()
}

fn meaning_nothing(key: &str) -> String {
    let labels = names::LABELS.into_iter().map(|name| ("label", name));
    let annotations = names::ANNOTATIONS
        .into_iter()
        .map(|name| ("annotation", name));
    let written = labels.chain(annotations);
    let word = |key: &'static str| key.trim_start_matches(names::PREFIX);
    // The prefix is right: letters are counted behind it.
    let short = key
        .get(names::PREFIX.len()..limits::TEXT.min(key.len()))
        .unwrap_or_default();
    let meant = nearest(short, written.clone().map(|(_, name)| word(name)));
    let meant = meant.and_then(|meant| written.clone().find(|(_, name)| word(name) == meant));
    match meant {
        Some((kind, name)) => format!("means nothing; did you mean the {kind} {name}?"),
        None => "means nothing; docs/labels.md lists the keys that do".to_owned(),
    }
}

#[cfg(test)]
mod tests;
