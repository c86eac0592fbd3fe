//! How well the cards of a node are connected, as HAMi's device plugin says it:
//!
//! ```text
//! [{"uuid":"GPU-a","score":{"GPU-b":100}},{"uuid":"GPU-b","score":{"GPU-a":100}}]
//! ```
//!
//! The plugin measures each pair in both directions. Where these differ, as where one is missing,
//! the link is of no use, and counts as none.

use super::text::{from_json, limited};
use crate::kube::convert::keys;
use crate::kube::convert::problems::Problems;
use crate::kube::objects::{Annotations, null_is_default};
use gpu_batch_policies::facts::{CardFacts, CardLink};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The annotation with the scores of all pairs.
const SCORES: &str = "hami.io/node-nvidia-score";
/// The highest score of a pair. The plugin's are below 2,000.
const SCORE_MAX: u64 = 1_000_000;

/// The links of a card as they are listed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    #[serde(deserialize_with = "null_is_default")]
    uuid: Box<str>,
    #[serde(deserialize_with = "null_is_default")]
    score: BTreeMap<Box<str>, Value>,
}

/// Scores by the places of two cards, in one direction.
type Scores = BTreeMap<(u16, u16), u32>;

/// The links between the cards of a node. What cannot be read, or makes no sense, is no link and a
/// problem.
pub(in crate::kube::convert) fn links(
    annotations: &Annotations,
    cards: &[CardFacts],
    problems: &mut Problems,
) -> Vec<CardLink> {
    let Some(text) = annotations.get(SCORES).filter(|_| !cards.is_empty()) else {
        return Vec::new();
    };
    let mut note = |problem: String| problems.push(keys::annotation(SCORES), problem);
    let entries = limited(text).and_then(from_json::<Vec<Entry>>);
    match entries.and_then(|entries| scores(&entries, cards, &mut note)) {
        Ok(scores) => symmetric(&scores, cards, &mut note),
        Err(error) => {
            note(error);
            Vec::new()
        }
    }
}

/// The scores that make sense. The first card that the register does not list is a problem, and so
/// is the first score that makes no sense.
fn scores(
    entries: &[Entry],
    cards: &[CardFacts],
    note: &mut impl FnMut(String),
) -> Result<Scores, String> {
    let place = |id: &str| {
        let place = cards.iter().position(|card| *card.id == *id)?;
        u16::try_from(place).ok()
    };
    let (mut scores, mut unknown, mut senseless) = (Scores::new(), None, None);
    for (index, entry) in entries.iter().enumerate() {
        if entries[..index]
            .iter()
            .any(|known| known.uuid == entry.uuid)
        {
            return Err(format!("lists the card {} twice", entry.uuid));
        }
        let one = place(&entry.uuid);
        if one.is_none() {
            unknown = unknown.or(Some(&entry.uuid));
        }
        for (id, value) in &entry.score {
            let other = place(id);
            if other.is_none() {
                unknown = unknown.or(Some(id));
            }
            let score = match value {
                Value::Null => Some(0),
                value => value.as_u64().filter(|score| *score <= SCORE_MAX),
            };
            let score = score.and_then(|score| u32::try_from(score).ok());
            if score.is_none() {
                senseless = senseless.or(Some((&entry.uuid, id, value)));
            }
            if let (Some(one), Some(other)) = (one, other) {
                scores.insert((one, other), score.unwrap_or(0));
            }
        }
    }
    if let Some(id) = unknown {
        note(format!(
            "names the card `{id}`, which is not among the cards of the node"
        ));
    }
    if let Some((one, other, value)) = senseless {
        note(format!(
            "gives the cards {one} and {other} the score {value}, and 0 to {SCORE_MAX} make sense"
        ));
    }
    Ok(scores)
}

/// The links with one score in both directions. Those that have two are a problem.
fn symmetric(scores: &Scores, cards: &[CardFacts], note: &mut impl FnMut(String)) -> Vec<CardLink> {
    let mut links = Vec::new();
    let mut different: Vec<(u16, u16)> = Vec::new();
    for ((from, to), score) in scores {
        let back = scores.get(&(*to, *from));
        if back.copied().unwrap_or(0) != *score {
            // A pair that is listed both ways is met twice.
            if back.is_none() || from < to {
                different.push((*from, *to));
            }
        } else if from < to && *score > 0 {
            links.push(CardLink {
                one: *from,
                other: *to,
                score: *score,
            });
        }
    }
    if let Some((one, other)) = different.first() {
        let [one, other] = [one, other].map(|place| &cards[usize::from(*place)].id);
        let count = different.len();
        note(format!(
            "gives {count} pairs of cards, such as {one} and {other}, no score that holds both ways"
        ));
    }
    links
}
