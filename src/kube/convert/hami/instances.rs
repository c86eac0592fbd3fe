//! The instances of MIG that pods hold, in HAMi's words, since HAMi 2.10:
//!
//! ```text
//! [{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-a","profile":"1g.10gb",
//!   "placement":{"start":6,"size":1}}]
//! ```
//!
//! The container is its place among the entries of the other annotation, the device its place in
//! the entry. The plugin adds what it has made: `migUUID`, `gpuInstanceID` and `computeInstanceID`,
//! all of them or none. It destroys instances that no such annotation names, so one is never
//! changed after the binding.

use super::register::Slices;
use super::text::{from_json, limited};
use crate::kube::convert::problems::{Problems, shortened};
use crate::kube::convert::{keys, limits};
use crate::kube::objects::{Pod, null_is_default};
use gpu_batch_policies::facts::{CardPart, MigInstance};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The annotation.
pub(super) const INSTANCES: &str = "hami.io/vgpu-mig-allocations";

/// An instance as it is listed. Numbers have the ranges that HAMi's own code has.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    #[serde(deserialize_with = "null_is_default")]
    container_index: i64,
    #[serde(deserialize_with = "null_is_default")]
    device_index: i64,
    #[serde(rename = "gpuUUID", deserialize_with = "null_is_default")]
    card: Box<str>,
    #[serde(deserialize_with = "null_is_default")]
    profile: Box<str>,
    #[serde(deserialize_with = "null_is_default")]
    placement: Slices,
    #[serde(rename = "migUUID", deserialize_with = "null_is_default")]
    made: Box<str>,
    #[serde(rename = "gpuInstanceID")]
    gpu_instance: Option<i64>,
    #[serde(rename = "computeInstanceID")]
    compute_instance: Option<i64>,
}

/// The instances of a pod by card, in the order of their places. A list with anything in it that
/// makes no sense is a problem and says nothing, as with HAMi.
pub(super) fn of(pod: &Pod, problems: &mut Problems) -> BTreeMap<Box<str>, Vec<MigInstance>> {
    let text = pod.metadata.annotations.get(INSTANCES).unwrap_or_default();
    read(text).unwrap_or_else(|error| {
        problems.push(keys::annotation(INSTANCES), error);
        BTreeMap::new()
    })
}

/// The instances of a pod by the places of their containers, and of the devices in these; nothing
/// where the list makes no sense.
pub(super) fn by_device(pod: &Pod) -> BTreeMap<(usize, usize), MigInstance> {
    let text = pod.metadata.annotations.get(INSTANCES).unwrap_or_default();
    let listed = listed(text).unwrap_or_default().into_iter();
    listed
        .map(|(device, (_, instance))| (device, instance))
        .collect()
}

/// Cards with instances, by container and device.
type Listed = BTreeMap<(usize, usize), (Box<str>, MigInstance)>;

fn listed(text: &str) -> Result<Listed, String> {
    let mut listed = Listed::new();
    for entry in entries(text)? {
        let instance = instance(&entry)?;
        let [container, device] = [entry.container_index, entry.device_index];
        let place = usize::try_from(container)
            .ok()
            .zip(usize::try_from(device).ok());
        let place = place.ok_or("lists an instance that is incomplete")?;
        if listed.insert(place, (entry.card, instance)).is_some() {
            return Err(format!(
                "gives device {device} of container {container} twice"
            ));
        }
    }
    Ok(listed)
}

fn read(text: &str) -> Result<BTreeMap<Box<str>, Vec<MigInstance>>, String> {
    let mut instances: BTreeMap<Box<str>, Vec<MigInstance>> = BTreeMap::new();
    for (card, instance) in listed(text)?.into_values() {
        let of_card = instances.entry(card).or_default();
        let mask = instance.placement.mask();
        // HAMi's scheduler gives an init container and a later container one instance.
        if of_card.contains(&instance) {
            continue;
        }
        if of_card
            .iter()
            .any(|other| other.placement.mask() & mask != 0)
        {
            return Err("gives one place of a card twice".to_owned());
        }
        of_card.push(instance);
    }
    for of_card in instances.values_mut() {
        of_card.sort_unstable();
    }
    Ok(instances)
}

fn entries(text: &str) -> Result<Vec<Entry>, String> {
    if limited(text)?.is_empty() {
        return Ok(Vec::new());
    }
    let entries: Option<Vec<Entry>> = from_json(text)?;
    Ok(entries.unwrap_or_default())
}

/// An instance that makes sense.
fn instance(entry: &Entry) -> Result<MigInstance, String> {
    let is_complete = !entry.card.is_empty() && (1..=limits::TEXT).contains(&entry.profile.len());
    let made = [
        !entry.made.is_empty(),
        entry.gpu_instance.is_some(),
        entry.compute_instance.is_some(),
    ];
    let profile = shortened(&entry.profile, limits::TEXT);
    if !is_complete {
        return Err("lists an instance that is incomplete".to_owned());
    }
    if made.contains(&true) && made.contains(&false) {
        return Err(format!("says half of what was made for {profile}"));
    }
    let placement = entry.placement.placement();
    let placement = placement.ok_or_else(|| format!("places {profile} at {}", entry.placement))?;
    Ok(MigInstance {
        placement,
        profile: entry.profile.clone(),
    })
}

/// The instances of a pod in HAMi's words; `None`: it has none. `entries`: what each container
/// gets, init containers first.
pub(super) fn written(entries: &[Vec<CardPart>]) -> Option<String> {
    let mut written = Vec::new();
    for (container, parts) in entries.iter().enumerate() {
        for (device, part) in parts.iter().enumerate() {
            for MigInstance { placement, profile } in &part.instances {
                written.push(json!({
                    "containerIndex": container,
                    "deviceIndex": device,
                    "gpuUUID": part.card,
                    "profile": profile,
                    "placement": {"start": placement.start, "size": placement.size},
                }));
            }
        }
    }
    (!written.is_empty()).then(|| Value::from(written).to_string())
}
