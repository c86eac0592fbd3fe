//! HAMi's annotations about the choice of cards: which will do, and which are taken first; and ours
//! about the way in which a card is divided.
//!
//! Source: `CheckType`, `CheckUUID` and `DeviceUsageList.Less` of HAMi's scheduler.

use crate::kube::convert::keys;
use crate::kube::convert::limits;
use crate::kube::convert::problems::{Problems, shortened};
use crate::kube::objects::Annotations;
use gpu_batch_policies::facts::{CARD_RULES, CardModes, CardOrder, CardRule};

/// The annotation that says which cards are taken first.
pub(in crate::kube::convert) const ORDER: &str = "hami.io/gpu-scheduler-policy";

/// The annotation that says in which modes cards will do. HAMi looks for the names in its text.
pub(in crate::kube::convert) const MODE: &str = "nvidia.com/vgpu-mode";

/// The policies of HAMi that are not supported yet, alone or in a list.
const OTHER_ORDERS: [&str; 3] = ["mutex", "numa", "topology-aware"];

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

/// Which cards a pod takes first, if it says so.
pub(super) fn order(annotations: &Annotations) -> Option<CardOrder> {
    Some(match annotations.get(ORDER)? {
        "binpack" => CardOrder::Binpack,
        _ => CardOrder::Spread,
    })
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

/// The order that a pod asks for and that is not supported yet, as a field with its value.
pub(in crate::kube::convert) fn unsupported_order(annotations: &Annotations) -> Option<String> {
    let value = annotations.get(ORDER)?;
    let mut words = value.split(',').map(str::trim);
    let is_other = value.contains(',') || words.any(|word| OTHER_ORDERS.contains(&word));
    let field = || {
        format!(
            "{}: `{}`",
            keys::annotation(ORDER),
            shortened(value, limits::TEXT)
        )
    };
    is_other.then(field)
}

/// Notes an order that HAMi does not know. It takes every such value for `spread`.
pub(in crate::kube::convert) fn note_unknown_order(
    annotations: &Annotations,
    notes: &mut Problems,
) {
    let known = ["binpack", "spread"];
    if let Some(value) = annotations.get(ORDER)
        && !known.contains(&value)
        && unsupported_order(annotations).is_none()
    {
        let note = format_args!(
            "`{}` means nothing: the cards are spread, as HAMi does; write binpack or spread",
            shortened(value, limits::TEXT)
        );
        notes.push(keys::annotation(ORDER), note);
    }
}
