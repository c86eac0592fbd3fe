//! What one container asks of HAMi's cards, by its resources or by annotations of its pod.

use super::annotation::{self, Asked, CARDS_MAX, NUMBER_MAX, Part};
use crate::kube::convert::problems::Problems;
use crate::kube::convert::resources::{
    CARD_MEMORY, CARD_MEMORY_PERCENT, CARD_POWER, ContainerField, GPU,
};
use crate::kube::convert::{keys, quantity, resources};
use crate::kube::objects::{Container, Pod, PodSpec, Quantity, Resources};
use gpu_batch_policies::facts::{CardEntries, CardMemory, CardNeed};
use std::fmt;

/// The resources by which a part of a card is asked for.
pub(in crate::kube::convert) const PARTS: [&str; 3] =
    [CARD_MEMORY, CARD_MEMORY_PERCENT, CARD_POWER];

/// A container that asks for cards or for parts of them, and where it stands among all containers,
/// init containers first.
type Asking<'a> = (usize, ContainerField, &'a Container);

fn those_that_ask(spec: &PodSpec) -> impl Iterator<Item = Asking<'_>> {
    let all = resources::all_containers(spec).enumerate();
    let all = all.map(|(index, (field, container))| (index, field, container));
    all.filter(|(.., container)| asks_for_cards(container) || asks_for_parts(container))
}

/// The one container of a pod that asks for cards, if it asks for parts of them by its resources,
/// and is neither an init container nor a sidecar. Other pods with such resources are not
/// supported.
pub(in crate::kube::convert) fn the_one_that_asks(spec: &PodSpec) -> Option<Asking<'_>> {
    let mut asking = those_that_ask(spec);
    let one = asking.next()?;
    let (_, field, container) = one;
    let is_supported = asking.next().is_none() && !field.is_init() && asks_for_parts(container);
    is_supported.then_some(one)
}

/// What a pod asks of cards that HAMi divides, and where the container stands that asks.
pub(in crate::kube::convert) fn need(
    pod: &Pod,
    problems: &mut Problems,
) -> Option<(CardNeed, CardEntries)> {
    let spec = &pod.spec;
    let has_parts = || those_that_ask(spec).any(|(.., container)| asks_for_parts(container));
    let (need, index) = match annotation::asked(&pod.metadata.annotations, problems) {
        Asked::Wrong => return None,
        Asked::Part(part) => by_annotations(spec, &part, problems)?,
        Asked::SliceAlone if !has_parts() => {
            let problem = format_args!(
                "says how a card is divided, and nothing asks for a part of one; write {} or {}, \
                 too",
                keys::GPU_FRACTION,
                keys::GPU_MEMORY,
            );
            problems.push(keys::annotation(keys::GPU_SLICE), problem);
            return None;
        }
        Asked::SliceAlone | Asked::Nothing => {
            let (index, field, container) = the_one_that_asks(spec)?;
            (of(container, field, problems)?, index)
        }
    };
    let after = resources::all_containers(spec).skip(index + 1).count();
    let entries = CardEntries {
        before: u32::try_from(index).ok()?,
        after: u32::try_from(after).ok()?,
    };
    Some((need, entries))
}

/// What a pod asks for by annotations, and the place of the container that asks for the cards.
/// Annotations that do not go with its containers are a problem, which says what to write.
fn by_annotations(
    spec: &PodSpec,
    part: &Part<'_>,
    problems: &mut Problems,
) -> Option<(CardNeed, usize)> {
    let (index, field, container) = noted(the_one_with_cards(spec, part), problems)?;
    let by_resources = of(container, field, problems)?;
    let count = u64::from(by_resources.count());
    let need = CardNeed::new(count, 10 * part.power_percent, part.memory)?;
    let problem = match part.count {
        Some((key, stated)) if stated != count => Some((
            key,
            format!("is {stated}, and {field} asks for `{GPU}: {count}`; write the same"),
        )),
        _ if asks_for_parts(container) && by_resources != need => Some((
            part.key,
            format!("asks for another part than {field}.resources; write one of them"),
        )),
        _ => None,
    };
    noted(problem.map_or(Ok((need, index)), Err), problems)
}

/// The container that asks for the cards of which annotations ask for a part.
fn the_one_with_cards<'a>(spec: &'a PodSpec, part: &Part<'_>) -> Result<Asking<'a>, Refusal> {
    let mut asking = those_that_ask(spec);
    let (one, another) = (asking.next(), asking.next());
    if another.is_some() {
        let problem = format!("is for one container, and several ask for `{GPU}`; leave it to one");
        return Err((part.key, problem));
    }
    let one = one.filter(|(.., one)| asks_for_cards(one));
    let Some((index, field, container)) = one else {
        let count = part.count.map_or(1, |(_, count)| count);
        let problem = format!(
            "asks for a part of a card, and no container asks for the card; write \
             `{GPU}: {count}` in the limits of the container that uses it"
        );
        return Err((part.key, problem));
    };
    if field.is_init() {
        let problem = format!("is not for {field}, an init container; write `{GPU}` in another");
        return Err((part.key, problem));
    }
    match part.container {
        Some((key, name)) if name != &*container.name => {
            let problem = format!("`{name}` is not {field}, the container that asks for `{GPU}`");
            Err((key, problem))
        }
        _ => Ok((index, field, container)),
    }
}

/// An annotation, and what is wrong with it.
type Refusal = (&'static str, String);

fn noted<T>(result: Result<T, Refusal>, problems: &mut Problems) -> Option<T> {
    let refused = |(key, problem): Refusal| problems.push(keys::annotation(key), problem);
    result.map_err(refused).ok()
}

fn asks_for_cards(container: &Container) -> bool {
    let asked = container
        .resources
        .as_ref()
        .and_then(|resources| asked(resources, GPU));
    asked.is_some_and(|(.., Quantity(text))| quantity::thousandths(text) != Ok(0))
}

/// Whether a container asks for parts of cards.
pub(super) fn asks_for_parts(container: &Container) -> bool {
    let found = |resources: &Resources| PARTS.iter().any(|name| asked(resources, name).is_some());
    container.resources.as_ref().is_some_and(found)
}

/// The request of a container for cards or parts of cards; `None`: it asks for none, or the request
/// makes no sense, which is a problem.
///
/// HAMi's webhook changes requests before its own scheduler sees them, and refuses some. It does
/// not look at pods of other schedulers, and requests are not changed here: where it would add a
/// card, or refuse, a problem says what to write.
pub(super) fn of(
    container: &Container,
    field: ContainerField,
    problems: &mut Problems,
) -> Option<CardNeed> {
    let resources = container.resources.as_ref()?;
    let mut reader = Reader {
        resources,
        field,
        problems,
        is_sound: true,
    };
    let count = reader.number(GPU, 0..=CARDS_MAX);
    let memory_mib = reader.number(CARD_MEMORY, 1..=NUMBER_MAX);
    let memory_percent = reader.number(CARD_MEMORY_PERCENT, 1..=100);
    let power_percent = reader.number(CARD_POWER, 0..=NUMBER_MAX);
    let part = PARTS.into_iter().find_map(|name| asked(resources, name));
    let count = match (count.filter(|count| *count > 0), part) {
        (None, None) => return None,
        (None, Some((list, name, _))) if reader.is_sound => {
            let problem =
                "asks for a part of a card, and of no card; write `nvidia.com/gpu: 1` too";
            reader.problem(list, name, problem);
            return None;
        }
        (count, _) => count,
    };
    if container.is_privileged() {
        let path = format_args!("{field}.securityContext.privileged");
        let problem =
            "is true, so that HAMi could not keep the container to its cards; write false";
        reader.problems.push(path, problem);
        return None;
    }
    let memory = match (memory_mib, memory_percent) {
        (Some(mib), _) => CardMemory::Mib(mib),
        (None, percent) => CardMemory::Percent(u32::try_from(percent.unwrap_or(100)).ok()?),
    };
    // A container with all memory of its cards is not to share their computing power either.
    let is_exclusive = memory == CardMemory::Percent(100) || memory_percent == Some(100);
    let default_percent = if is_exclusive { 100 } else { 0 };
    let percent = power_percent.unwrap_or(default_percent).min(100);
    CardNeed::new(count?, 10 * percent, memory).filter(|_| reader.is_sound)
}

/// The quantity of a resource that a container asks for, by its limit, else by its request, with
/// the names of that list and of the resource.
fn asked<'a>(
    resources: &'a Resources,
    name: &'static str,
) -> Option<(&'static str, &'static str, &'a Quantity)> {
    let limit = resources.limits.get(name);
    let limit = limit.map(|quantity| ("limits", name, quantity));
    let request = || Some(("requests", name, resources.requests.get(name)?));
    limit.or_else(request)
}

struct Reader<'a> {
    resources: &'a Resources,
    field: ContainerField,
    problems: &'a mut Problems,
    is_sound: bool,
}

impl Reader<'_> {
    fn number(&mut self, name: &'static str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let (list, _, Quantity(text)) = asked(self.resources, name)?;
        let whole = quantity::thousandths(text).ok();
        let whole = whole.filter(|amount| amount.is_multiple_of(1_000));
        let number = whole.and_then(|amount| u64::try_from(amount / 1_000).ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (first, last) = (range.start(), range.end());
            let problem = format_args!("`{text}` is no whole number from {first} to {last}");
            self.problem(list, name, problem);
        }
        number
    }

    fn problem(&mut self, list: &str, name: &str, problem: impl fmt::Display) {
        self.is_sound = false;
        let path = format_args!("{}.resources.{list}[{name}]", self.field);
        self.problems.push(path, problem);
    }
}
