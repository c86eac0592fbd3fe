//! HAMi's annotations about the choice of cards: which will do, and which are taken first; and ours
//! about the way in which a card is divided.
//!
//! Source: `CheckType`, `CheckUUID` and `DeviceUsageList.Less` of HAMi's scheduler.

use super::text::truth;
use crate::kube::convert::keys;
use crate::kube::convert::limits;
use crate::kube::convert::problems::{Problems, shortened};
use crate::kube::objects::Annotations;
use gpu_batch_policies::facts::{CARD_RULES, CardModes, CardOrder, CardRule};

/// The annotation that says which cards are taken first.
pub(in crate::kube::convert) const ORDER: &str = "hami.io/gpu-scheduler-policy";

/// The annotation that says in which modes cards will do. HAMi looks for the names in its text.
pub(in crate::kube::convert) const MODE: &str = "nvidia.com/vgpu-mode";

/// The annotation that says whether all cards of a container have to be in one NUMA node.
pub(in crate::kube::convert) const NUMA_BIND: &str = "nvidia.com/numa-bind";

/// The words that an order may have.
const ORDERS: [&str; 5] = ["binpack", "spread", "numa", "topology-aware", MUTEX];

/// The word by which a pod asks for cards that nobody uses.
const MUTEX: &str = "mutex";

/// The rules of a pod about the cards that will do. A value with nothing in it is no rule; a list
/// of nothing allows no card, or all, as with HAMi.
pub(super) fn rules(annotations: &Annotations) -> Vec<CardRule> {
    let list = |key: &str| -> Option<Vec<Box<str>>> {
        let value = annotations.get(key)?;
        let names = value.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty()).map(Into::into);
        (!value.trim().is_empty()).then(|| names.collect())
    };
    let small = |names: Vec<Box<str>>| -> Vec<Box<str>> {
        let names = names.iter();
        names.map(|name| name.to_ascii_lowercase().into()).collect()
    };
    let [models, not_models, ids, not_ids] = CARD_RULES.map(list);
    let rules = [
        models.map(small).map(CardRule::Models),
        not_models.map(small).map(CardRule::NotModels),
        ids.map(CardRule::Ids),
        not_ids.map(CardRule::NotIds),
    ];
    rules.into_iter().flatten().collect()
}

/// Whether cards in MIG mode will do, as far as the pod says so; an error: it says two things.
pub(super) fn modes(annotations: &Annotations) -> Result<Option<CardModes>, String> {
    let slice = annotations.get(keys::GPU_SLICE).and_then(slice);
    match (slice, annotations.get(MODE).and_then(mode)) {
        (Some(CardModes::Any), mode @ Some(_)) => Ok(mode),
        (Some(slice), Some(mode)) if mode != slice && mode != CardModes::Any => Err(format!(
            "says another mode of cards than {}; write one of them",
            keys::GPU_SLICE
        )),
        (slice, mode) => Ok(slice.or(mode)),
    }
}

/// What our word for the way of dividing a card means; `None`: nothing.
pub(super) fn slice(word: &str) -> Option<CardModes> {
    match word {
        "any" => Some(CardModes::Any),
        "shared" => Some(CardModes::Shared),
        "mig" => Some(CardModes::Mig),
        _ => None,
    }
}

/// What HAMi's words mean; `None`: no mode that is supported.
fn mode(text: &str) -> Option<CardModes> {
    match (text.contains("hami-core"), text.contains("mig")) {
        (true, true) => Some(CardModes::Any),
        (true, false) => Some(CardModes::Shared),
        (false, true) => Some(CardModes::Mig),
        (false, false) => None,
    }
}

/// How many bytes of text a rule has.
pub(in crate::kube::convert) fn text_of(rule: &CardRule) -> usize {
    match rule {
        CardRule::Models(names)
        | CardRule::NotModels(names)
        | CardRule::Ids(names)
        | CardRule::NotIds(names) => names.iter().map(|name| name.len()).sum(),
    }
}

/// Whether all cards of each container have to be in one NUMA node.
pub(in crate::kube::convert) fn is_bound_to_numa(annotations: &Annotations) -> bool {
    annotations.get(NUMA_BIND).and_then(truth) == Some(true)
}

/// Which cards a pod takes, if it says so: several words with commas between them, the first one
/// counts first. Good links come before all others, as with HAMi, wherever they stand.
pub(super) fn order(annotations: &Annotations) -> Vec<CardOrder> {
    let Some(value) = annotations.get(ORDER) else {
        return Vec::new();
    };
    let mut order: Vec<CardOrder> = Vec::new();
    for word in words_of_order(value) {
        let found = match word {
            "binpack" => CardOrder::Binpack,
            "numa" => CardOrder::Numa,
            "topology-aware" => CardOrder::Links,
            MUTEX => continue,
            "spread" => CardOrder::Spread,
            // HAMi spreads where the value is no word that it knows.
            _ if !value.contains(',') => CardOrder::Spread,
            _ => continue,
        };
        if !order.contains(&found) {
            order.push(found);
        }
    }
    order.sort_by_key(|found| *found != CardOrder::Links);
    order
}

/// The words of an order. A single one is not trimmed, as with HAMi.
fn words_of_order(value: &str) -> impl Iterator<Item = &str> {
    let is_list = value.contains(',');
    let words = value.split(',');
    words.map(move |word| if is_list { word.trim() } else { word })
}

/// The mode that a pod asks for and that is not supported, as a field with its value.
pub(in crate::kube::convert) fn unsupported_mode(annotations: &Annotations) -> Option<String> {
    let value = annotations.get(MODE)?;
    let field = || {
        let value = shortened(value, limits::TEXT);
        format!("{}: `{value}`", keys::annotation(MODE))
    };
    mode(value).is_none().then(field)
}

/// Whether a pod wants cards alone that nobody uses.
pub(super) fn is_for_idle_cards(annotations: &Annotations) -> bool {
    let value = annotations.get(ORDER);
    value.is_some_and(|value| words_of_order(value).any(|word| word == MUTEX))
}

/// Notes a word about NUMA nodes that HAMi does not know. It takes every such value for `false`.
pub(in crate::kube::convert) fn note_unknown_numa_bind(
    annotations: &Annotations,
    notes: &mut Problems,
) {
    if let Some(value) = annotations.get(NUMA_BIND)
        && truth(value).is_none()
    {
        let note = format_args!(
            "`{}` means nothing: the cards of a container may be in several NUMA nodes, as with \
             HAMi; write true or false",
            shortened(value, limits::TEXT)
        );
        notes.push(keys::annotation(NUMA_BIND), note);
    }
}

/// Notes words of an order that HAMi does not know. It takes them for `spread` where they stand
/// alone, and for nothing in a list.
pub(in crate::kube::convert) fn note_unknown_order(
    annotations: &Annotations,
    notes: &mut Problems,
) {
    let Some(value) = annotations.get(ORDER) else {
        return;
    };
    let mut words = words_of_order(value);
    if let Some(unknown) = words.find(|word| !ORDERS.contains(word)) {
        let unknown = shortened(unknown, limits::TEXT);
        let what = match value.contains(',') {
            true => "the other words count",
            false => "the cards are spread, as HAMi does",
        };
        let note = format_args!(
            "`{unknown}` means nothing: {what}; write {}",
            ORDERS.join(", ")
        );
        notes.push(keys::annotation(ORDER), note);
    }
}
