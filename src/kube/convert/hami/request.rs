//! What one container asks of HAMi's cards, by its resources or by annotations of its pod.

use super::annotation::{self, Asked, CARDS_MAX, NUMBER_MAX, Part};
use super::choice;
use crate::kube::convert::problems::Problems;
use crate::kube::convert::resources::{
    CARD_MEMORY, CARD_MEMORY_PERCENT, CARD_POWER, ContainerField, GPU,
};
use crate::kube::convert::{keys, quantity, resources};
use crate::kube::objects::{Container, Pod, PodSpec, Quantity, Resources};
use gpu_batch_policies::facts::{
    CardEntries, CardMemory, CardModes, CardNeed, CardTerms, ContainerCards, ContainerRole,
    WHOLE_CARD,
};
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

/// What a pod asks of cards that HAMi divides.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::kube::convert) struct CardsAsked {
    /// The need of the container that asks for most.
    pub(in crate::kube::convert) need: Option<CardNeed>,
    pub(in crate::kube::convert) terms: CardTerms,
    /// Where the containers stand that ask.
    pub(in crate::kube::convert) entries: CardEntries,
}

/// Whether a pod asks for parts of cards, and not for plain GPUs or none.
pub(in crate::kube::convert) fn wants_parts(pod: &Pod) -> bool {
    let mut asking = those_that_ask(&pod.spec);
    annotation::asks_for_parts(&pod.metadata.annotations)
        || asking.any(|(.., container)| asks_for_parts(container))
}

/// What a pod asks of cards that HAMi divides; `None`: nothing, or nothing that makes sense. A pod
/// none of whose containers asks for a part of a card asks for plain GPUs.
pub(in crate::kube::convert) fn asked(pod: &Pod, problems: &mut Problems) -> Option<CardsAsked> {
    let spec = &pod.spec;
    let has_parts = || those_that_ask(spec).any(|(.., container)| asks_for_parts(container));
    let annotations = &pod.metadata.annotations;
    let said = choice::modes(annotations).map_err(|problem| (choice::MODE, problem));
    let said = noted(said, problems)?;
    let asked = annotation::asked(annotations, problems);
    let is_part = matches!(asked, Asked::Part(_));
    let needs = match asked {
        Asked::Wrong => return None,
        Asked::Part(part) => Vec::from([by_annotations(spec, &part, problems)?]),
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
        Asked::SliceAlone | Asked::Nothing if !has_parts() => return None,
        Asked::SliceAlone | Asked::Nothing => by_resources(spec, problems)?,
    };
    let most = needs.iter().map(|(_, asking)| asking.need);
    let need = most.max_by_key(|need| u32::from(need.count()) * u32::from(need.thousandths()));
    let is_plain = matches!(&*needs, [(_, one)] if one.role == ContainerRole::Main);
    let containers = needs.iter().filter(|_| !is_plain);
    let containers = containers.map(|(_, asking)| *asking).collect();
    Some(CardsAsked {
        need,
        terms: CardTerms {
            containers,
            rules: choice::rules(annotations),
            in_one_cell: choice::is_bound_to_numa(annotations),
            modes: modes(said, is_part, &needs),
            idle: choice::is_for_idle_cards(annotations),
            order: choice::order(annotations),
        },
        entries: entries(spec, &needs)?,
    })
}

/// The modes of cards that will do. A pod that says none and asks by its resources asks as HAMi's
/// users do, and HAMi takes either; but a card with nobody else on it is no instance. With shared
/// cards init containers use what the others use later, and instances are for one container, so
/// where both would do the cards are shared.
fn modes(said: Option<CardModes>, by_annotations: bool, needs: &[Need]) -> CardModes {
    let mut asking = needs.iter().map(|(_, asking)| asking);
    let is_whole = |asking: &ContainerCards| asking.need.thousandths() == WHOLE_CARD;
    let usual = match by_annotations || asking.clone().any(is_whole) {
        true => CardModes::Shared,
        false => CardModes::Any,
    };
    let has_init = asking.any(|asking| asking.role == ContainerRole::Init);
    match said.unwrap_or(usual) {
        CardModes::Any if has_init => CardModes::Shared,
        modes => modes,
    }
}

/// What a container asks for, and where it stands among all containers.
type Need = (usize, ContainerCards);

/// What all containers that ask for cards ask for by their resources.
fn by_resources(spec: &PodSpec, problems: &mut Problems) -> Option<Vec<Need>> {
    let mut needs = Vec::new();
    let mut is_sound = true;
    for (index, field, container) in those_that_ask(spec) {
        let role = match field.is_init() {
            true if container.is_sidecar() => ContainerRole::Sidecar,
            true => ContainerRole::Init,
            false => ContainerRole::Main,
        };
        match of(container, field, problems) {
            Some(need) => needs.push((index, ContainerCards { role, need })),
            None => is_sound = false,
        }
    }
    let cards: u64 = needs.iter().map(|(_, it)| u64::from(it.need.count())).sum();
    if cards > CARDS_MAX {
        let problem = format_args!(
            "ask for {cards} cards of HAMi in sum, and {CARDS_MAX} are the most of a node"
        );
        problems.push("spec.containers", problem);
        is_sound = false;
    }
    is_sound.then_some(needs)
}

/// Where the entries of these containers stand among those of all containers.
fn entries(spec: &PodSpec, needs: &[Need]) -> Option<CardEntries> {
    let (first, last) = (needs.first()?.0, needs.last()?.0);
    let number = |count: usize| u32::try_from(count).ok();
    let between = needs
        .windows(2)
        .map(|pair| number(pair[1].0 - pair[0].0 - 1));
    Some(CardEntries {
        before: number(first)?,
        between: between.collect::<Option<_>>()?,
        after: number(resources::all_containers(spec).skip(last + 1).count())?,
    })
}

/// What the one container that asks for cards asks for by annotations.
/// Annotations that do not go with its containers are a problem, which says what to write.
fn by_annotations(spec: &PodSpec, part: &Part<'_>, problems: &mut Problems) -> Option<Need> {
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
    let role = ContainerRole::Main;
    let need = (index, ContainerCards { role, need });
    noted(problem.map_or(Ok(need), Err), problems)
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
        .and_then(|resources| quantity_of(resources, GPU));
    asked.is_some_and(|(.., Quantity(text))| quantity::thousandths(text) != Ok(0))
}

/// Whether a container asks for parts of cards.
pub(super) fn asks_for_parts(container: &Container) -> bool {
    let found = |resources: &Resources| {
        PARTS
            .iter()
            .any(|name| quantity_of(resources, name).is_some())
    };
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
    let part = PARTS
        .into_iter()
        .find_map(|name| quantity_of(resources, name));
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
fn quantity_of<'a>(
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
        let (list, _, Quantity(text)) = quantity_of(self.resources, name)?;
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
