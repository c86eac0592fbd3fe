//! The cards that pods hold, in HAMi's words: for each container, init containers first, the cards
//! and then a semicolon.
//!
//! ```text
//! ;GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;
//! ```
//!
//! HAMi 2.10 leaves out semicolons of containers without cards, and versions before 2.9 do not
//! write any for init containers. Only where there is an entry for each container is it known whose
//! it is. Else all count as if they were held side by side, so that no card is given away twice.

use super::instances::{self, INSTANCES};
use crate::kube::convert::problems::Problems;
use crate::kube::convert::{keys, resources};
use crate::kube::objects::{Pod, PodSpec};
use gpu_batch_policies::facts::{CardPart, UnixMs};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The annotation, and label, that names the node whose device plugin is to serve a pod.
pub(crate) const NODE: &str = "hami.io/vgpu-node";
/// The annotation in which HAMi keeps which cards a pod holds.
const ALLOCATED: &str = "hami.io/vgpu-devices-allocated";
/// What HAMi's device plugin takes for a card of its own, whatever the model.
const VENDOR: &str = "NVIDIA";

/// What a pod says of each of its containers, for plans that name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardContainers {
    /// The names of all containers, init containers first.
    pub names: Vec<Box<str>>,
    /// Which of them alone asks for cards, by its place among the names; `None`: several do, or
    /// none.
    pub only: Option<usize>,
    /// What each of them holds; empty where that is not known, or nothing is held.
    pub held: Vec<Vec<CardPart>>,
}

/// Sums by card: slots, thousandths and MiB.
type Sums<'a> = BTreeMap<&'a str, [u64; 3]>;

/// What a pod holds of each card, by id: the maximum of what its init containers need in turn, and
/// of what its containers need together; and all instances of MIG. What cannot be read is a problem
/// and left out.
pub(in crate::kube::convert) fn parts(pod: &Pod, problems: &mut Problems) -> Vec<CardPart> {
    let Some(text) = pod.metadata.annotations.get(ALLOCATED) else {
        return Vec::new();
    };
    let text = text.strip_suffix(';').unwrap_or(text);
    let entries: Vec<Sums<'_>> = text.split(';').map(|text| entry(text, problems)).collect();
    let mut instances = instances::of(pod, problems);
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let parts = collapsed(&pod.spec, &entries).into_iter();
    let parts = parts.map(|(card, [slots, thousandths, memory_mib])| CardPart {
        card: card.into(),
        slots: narrow(slots),
        thousandths: narrow(thousandths),
        memory_mib,
        instances: instances.remove(card).unwrap_or_default(),
    });
    parts.collect()
}

/// What each container holds, device by device; `None`: nobody has cards, or it is not known who.
pub(in crate::kube::convert) fn by_container(pod: &Pod) -> Option<Vec<Vec<CardPart>>> {
    let text = pod.metadata.annotations.get(ALLOCATED)?;
    let text = text.strip_suffix(';').unwrap_or(text);
    let mut instances = instances::by_device(pod);
    let entries = text.split(';').enumerate().map(|(container, text)| {
        let devices = text.split(':').filter(|text| text.contains(','));
        let parts = devices.enumerate().map(|(device, text)| {
            let (card, [slots, thousandths, memory_mib]) = device_of(text)?;
            let instance = instances.remove(&(container, device));
            Some(CardPart {
                card: card.into(),
                slots: u32::try_from(slots).ok()?,
                thousandths: u32::try_from(thousandths).ok()?,
                memory_mib,
                instances: instance.into_iter().collect(),
            })
        });
        parts.collect::<Option<Vec<CardPart>>>()
    });
    let entries: Vec<Vec<CardPart>> = entries.collect::<Option<_>>()?;
    let count = resources::all_containers(&pod.spec).count();
    (entries.len() == count && instances.is_empty()).then_some(entries)
}

/// A card, and what one container holds of it: slots, thousandths and MiB.
fn device_of(text: &str) -> Option<(&str, [u64; 3])> {
    let mut fields = text.split(',');
    let (card, _vendor) = (fields.next()?, fields.next()?);
    let [memory_mib, percent] =
        [fields.next(), fields.next()].map(|text| text?.parse::<u32>().ok());
    Some((card, [1, 10 * u64::from(percent?), memory_mib?.into()]))
}

/// The cards of one container.
fn entry<'a>(text: &'a str, problems: &mut Problems) -> Sums<'a> {
    let mut sums = Sums::new();
    for text in text.split(':').filter(|text| text.contains(',')) {
        if let Some((card, part)) = device_of(text) {
            add(&mut sums, card, part);
        } else {
            let field = keys::annotation(ALLOCATED);
            problems.push(field, format_args!("`{text}` is no part of a card"));
        }
    }
    sums
}

fn collapsed<'a>(spec: &PodSpec, entries: &[Sums<'a>]) -> Sums<'a> {
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let main = spec.containers.as_deref().unwrap_or_default();
    let has_all = entries.len() == init.len() + main.len();
    let (of_init, of_main) = entries.split_at(if has_all { init.len() } else { 0 });
    let mut sums = Sums::new();
    for (card, part) in of_main.iter().flatten() {
        add(&mut sums, card, *part);
    }
    let mut sidecars = Sums::new();
    let mut peak = Sums::new();
    for (container, entry) in init.iter().zip(of_init) {
        let mut taken = sidecars.clone();
        for (card, part) in entry {
            add(&mut taken, card, *part);
            if container.is_sidecar() {
                add(&mut sums, card, *part);
            }
        }
        if container.is_sidecar() {
            sidecars = taken;
        } else {
            raise(&mut peak, &taken);
        }
    }
    raise(&mut sums, &peak);
    sums
}

fn add<'a>(sums: &mut Sums<'a>, card: &'a str, part: [u64; 3]) {
    let sum = sums.entry(card).or_default();
    for (sum, amount) in sum.iter_mut().zip(part) {
        *sum = sum.saturating_add(amount);
    }
}

fn raise<'a>(sums: &mut Sums<'a>, other: &Sums<'a>) {
    for (card, part) in other {
        let sum = sums.entry(card).or_default();
        for (sum, amount) in sum.iter_mut().zip(part) {
            *sum = (*sum).max(*amount);
        }
    }
}

/// The annotations by which HAMi's device plugin gives a pod its cards as soon as the kubelet asks
/// for them. `entries`: what each container gets, init containers first.
pub(crate) fn annotations(
    node: &str,
    entries: &[Vec<CardPart>],
    at_ms: UnixMs,
) -> Vec<(&'static str, String)> {
    let cards = written(entries.iter().map(Vec::as_slice));
    let seconds = (at_ms / 1_000).to_string();
    let of_cards = [
        (NODE, node.to_owned()),
        ("hami.io/vgpu-time", seconds.clone()),
        ("hami.io/vgpu-devices-to-allocate", cards.clone()),
        (ALLOCATED, cards),
        ("hami.io/bind-phase", "allocating".to_owned()),
        ("hami.io/bind-time", seconds),
    ];
    let of_instances = instances::written(entries).map(|text| (INSTANCES, text));
    of_cards.into_iter().chain(of_instances).collect()
}

/// The cards of a pod in HAMi's words: those of each container, init containers first.
pub(super) fn written<'a>(containers: impl IntoIterator<Item = &'a [CardPart]>) -> String {
    let mut text = String::new();
    for parts in containers {
        for part in parts {
            let (memory_mib, percent) = (part.memory_mib, part.thousandths / 10);
            // Writing to a String does not fail.
            let _ = write!(text, "{},{VENDOR},{memory_mib},{percent}:", part.card);
        }
        text.push(';');
    }
    text
}
