//! The cards of a node, as HAMi's device plugin lists them.
//!
//! Since HAMi 2.8 the list is JSON, in which fields that are 0, empty or false are left out:
//!
//! ```text
//! [{"id":"GPU-a","count":10,"devmem":81559,"devcore":100,"type":"NVIDIA H100","health":true}]
//! ```
//!
//! Before, each card was a record of seven or nine fields with a colon behind it:
//!
//! ```text
//! id,count,devmem,devcore,type,numa,health[,index,mode]:
//! ```
//!
//! Since HAMi 2.10 a card in MIG mode lists the instances that it can be cut into, and where:
//!
//! ```text
//! "mode":"mig","migProfiles":[{"name":"1g.10gb","memoryMB":9984,"core":13,
//!   "placements":[{"start":0,"size":1}]}]
//! ```
//!
//! The order of the cards differs from one writing to the next.

use super::text::{from_json, limited, truth};
use crate::kube::convert::problems::Problems;
use crate::kube::convert::{keys, limits};
use crate::kube::objects::{Annotations, null_is_default};
use gpu_batch_policies::facts::{
    CardClosed, CardFacts, HAMI_REGISTER, MIG_SLICES, MigPlacement, MigProfile,
};
use serde::Deserialize;

/// The annotation in which administrators name cards that take no new pods, with commas between
/// them.
const CORDON: &str = "hami.io/device-cordon";
/// The annotation through which plugins before HAMi 2.8 and HAMi's scheduler show each other that
/// they live. The scheduler asks (`Requesting_` and a time), and the plugin answers within 30 s
/// (`Reported` and a time). Unanswered for a minute, the scheduler writes `Deleted_` and a time.
const HANDSHAKE: &str = "hami.io/node-handshake";
/// The mode in which software in the containers keeps each to its part of a card.
const HAMI_CORE: &str = "hami-core";
/// The mode in which a card is cut into instances of MIG.
const MIG: &str = "mig";
/// The most profiles of a card. NVIDIA's have 11.
const PROFILES_MAX: usize = 64;
/// The most cards of a node.
const CARDS_MAX: usize = 256;
/// The most containers that may share a card. HAMi's default is 10.
const SLOTS_MAX: u32 = 1_000;
/// The most computing power of a card, in hundredths of the card. More than 100 lets pods get more
/// in sum than there is.
const PERCENT_MAX: u32 = 10_000;

/// A card as it is listed. Numbers have the ranges that HAMi's own code has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    #[serde(deserialize_with = "null_is_default")]
    id: Box<str>,
    #[serde(deserialize_with = "null_is_default")]
    count: i32,
    #[serde(deserialize_with = "null_is_default")]
    devmem: i32,
    #[serde(deserialize_with = "null_is_default")]
    devcore: i32,
    #[serde(rename = "type", deserialize_with = "null_is_default")]
    model: Box<str>,
    #[serde(deserialize_with = "null_is_default")]
    numa: i64,
    #[serde(deserialize_with = "null_is_default")]
    mode: Box<str>,
    #[serde(deserialize_with = "null_is_default")]
    health: bool,
    #[serde(rename = "migProfiles", deserialize_with = "null_is_default")]
    profiles: Vec<Profile>,
}

/// A profile of MIG as it is listed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Profile {
    #[serde(deserialize_with = "null_is_default")]
    name: Box<str>,
    #[serde(rename = "memoryMB", deserialize_with = "null_is_default")]
    memory_mib: i32,
    #[serde(deserialize_with = "null_is_default")]
    core: i32,
    #[serde(deserialize_with = "null_is_default")]
    placements: Vec<Slices>,
}

/// A place of an instance, in memory slices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Slices {
    #[serde(deserialize_with = "null_is_default")]
    start: u32,
    #[serde(deserialize_with = "null_is_default")]
    size: u32,
}

impl Slices {
    /// The slices of a card; `None`: there are none, or some lie beyond the card.
    pub(super) fn placement(self) -> Option<MigPlacement> {
        MigPlacement::new(self.start, self.size)
    }
}

impl std::fmt::Display for Slices {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} slices from {}", self.size, self.start)
    }
}

/// The cards of a node, by id. A list that cannot be read has none; a card that makes no sense is
/// left out. Either is a problem.
pub(in crate::kube::convert) fn cards(
    annotations: &Annotations,
    problems: &mut Problems,
) -> Vec<CardFacts> {
    let Some(text) = annotations.get(HAMI_REGISTER) else {
        return Vec::new();
    };
    let entries = entries(text).unwrap_or_else(|error| {
        problems.push(keys::annotation(HAMI_REGISTER), error);
        Vec::new()
    });
    let entries = problems.at_most(CARDS_MAX, &entries, keys::annotation(HAMI_REGISTER));
    let cordoned = annotations.get(CORDON).unwrap_or_default();
    let cordoned: Vec<&str> = cordoned.split(',').map(str::trim).collect();
    let mut cards: Vec<CardFacts> = Vec::with_capacity(entries.len());
    for entry in entries {
        match card(entry, &cordoned) {
            Ok(card) if cards.iter().any(|known| known.id == card.id) => {
                let error = format_args!("lists the card {} twice", card.id);
                problems.push(keys::annotation(HAMI_REGISTER), error);
            }
            Ok(card) => cards.push(card),
            Err(error) => problems.push(keys::annotation(HAMI_REGISTER), error),
        }
    }
    if is_plugin_gone(annotations, text) {
        for card in &mut cards {
            card.closed = Some(CardClosed::Unhealthy);
        }
    }
    cards.sort_by(|one, other| one.id.cmp(&other.id));
    cards
}

/// Whether HAMi's scheduler has found that the plugin does not run any more. A question may be open
/// on any node whose plugin lives, so it says nothing. Later plugins, which write JSON, do not
/// answer, and the verdict may be of the plugin before.
fn is_plugin_gone(annotations: &Annotations, register: &str) -> bool {
    let handshake = annotations.get(HANDSHAKE).unwrap_or_default();
    !is_json(register) && handshake.contains("Deleted")
}

fn is_json(register: &str) -> bool {
    register.trim_start().starts_with('[')
}

fn entries(text: &str) -> Result<Vec<Entry>, String> {
    match is_json(limited(text)?) {
        true => from_json(text),
        false => records(text),
    }
}

fn records(text: &str) -> Result<Vec<Entry>, String> {
    if !text.contains(':') {
        return Err("is neither JSON nor records with a colon behind each".to_owned());
    }
    let records = text.split(':').filter(|record| !record.is_empty());
    records.map(record).collect()
}

fn record(text: &str) -> Result<Entry, String> {
    let fields: Vec<&str> = text.split(',').collect();
    let [id, count, devmem, devcore, model, numa, health, rest @ ..] = fields.as_slice() else {
        return Err(format!("has a record of {} fields", fields.len()));
    };
    let mode = match rest {
        [] => HAMI_CORE,
        [index, mode] => {
            number::<i64>(index)?;
            *mode
        }
        _ => return Err(format!("has a record of {} fields", fields.len())),
    };
    Ok(Entry {
        id: (*id).into(),
        count: number(count)?,
        devmem: number(devmem)?,
        devcore: number(devcore)?,
        model: (*model).into(),
        numa: number(numa)?,
        mode: mode.into(),
        health: truth(health)
            .ok_or_else(|| format!("has `{health}` where true or false is due"))?,
        profiles: Vec::new(),
    })
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("has `{text}` where a number is due"))
}

/// A card that makes sense. Annotations of pods name cards by their ids, between separators.
fn card(entry: &Entry, cordoned: &[&str]) -> Result<CardFacts, String> {
    let id = &*entry.id;
    if !(1..=limits::TEXT).contains(&id.len()) || id.contains([',', ':', ';']) {
        return Err(format!("names a card `{id}`"));
    }
    let within = |field: &str, number: i32, most: u32| match u32::try_from(number) {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!(
            "gives the card {id} {field} {number}, and 1 to {most} make sense"
        )),
    };
    let profiles = match &*entry.mode {
        MIG => profiles(id, &entry.profiles)?,
        _ => Vec::new(),
    };
    let closed = if !entry.health {
        Some(CardClosed::Unhealthy)
    } else if cordoned.contains(&id) {
        Some(CardClosed::Cordoned)
    } else if ["", HAMI_CORE].contains(&&*entry.mode) || !profiles.is_empty() {
        None
    } else {
        Some(CardClosed::OtherMode)
    };
    Ok(CardFacts {
        id: id.into(),
        model: entry.model.clone(),
        memory_mib: within("devmem", entry.devmem, i32::MAX.unsigned_abs())?.into(),
        thousandths: 10 * within("devcore", entry.devcore, PERCENT_MAX)?,
        slots: within("count", entry.count, SLOTS_MAX)?,
        // -1: the machine has one NUMA node.
        numa: u32::try_from(entry.numa).unwrap_or(0),
        profiles,
        closed,
    })
}

/// The instances that a card can be cut into, by name. One profile that makes no sense makes the
/// list useless: what the others leave free is not known.
fn profiles(id: &str, listed: &[Profile]) -> Result<Vec<MigProfile>, String> {
    if listed.len() > PROFILES_MAX {
        return Err(format!(
            "gives the card {id} more than {PROFILES_MAX} MIG profiles"
        ));
    }
    let mut profiles: Vec<MigProfile> = Vec::with_capacity(listed.len());
    for one in listed {
        let profile = profile(one).map_err(|error| format!("gives the card {id} {error}"))?;
        if profiles.iter().any(|known| known.name == profile.name) {
            return Err(format!(
                "gives the card {id} the MIG profile {} twice",
                one.name
            ));
        }
        profiles.push(profile);
    }
    profiles.sort_unstable();
    Ok(profiles)
}

fn profile(listed: &Profile) -> Result<MigProfile, String> {
    let name = &*listed.name;
    if !(1..=limits::TEXT).contains(&name.len()) {
        return Err("a MIG profile without a name, or with a very long one".to_owned());
    }
    let memory_mib = u64::try_from(listed.memory_mib).unwrap_or(0);
    let percent = u32::try_from(listed.core).unwrap_or(u32::MAX);
    if memory_mib == 0 || percent > 100 {
        let (memory, core) = (listed.memory_mib, listed.core);
        return Err(format!(
            "the MIG profile {name} with memoryMB {memory} and core {core}"
        ));
    }
    let mut taken = 0;
    let mut placements = Vec::with_capacity(usize::from(MIG_SLICES));
    for slices in &listed.placements {
        let placement = slices.placement().ok_or_else(|| {
            format!("the MIG profile {name} with {slices}, and cards have {MIG_SLICES}")
        })?;
        if placement.mask() & taken != 0 {
            return Err(format!(
                "the MIG profile {name} with placements that overlap"
            ));
        }
        taken |= placement.mask();
        placements.push(placement);
    }
    if placements.is_empty() {
        return Err(format!("the MIG profile {name} without placements"));
    }
    placements.sort_unstable();
    Ok(MigProfile {
        name: name.into(),
        memory_mib,
        thousandths: 10 * percent,
        placements,
    })
}
