//! What a pod takes: the sums that kube-scheduler 1.36 makes
//! (`component-helpers/resource/helpers.go`), bit for bit.

use super::problems::Problems;
use super::quantity::{self, Billionths, Thousandths};
use crate::kube::objects::{Container, ContainerStatus, Pairs, Pod, PodSpec, PodStatus, Quantity};
use gpu_batch_policies::facts::{AMOUNT_MAX, Amounts};
use std::collections::BTreeMap;
use std::fmt;

/// Amounts while they are summed up. A resource with amount 0 is present, which decides some
/// defaults.
pub(super) type Sums<'a> = BTreeMap<&'a str, Thousandths>;

/// Resources by which HAMi divides cards. No node offers them, and the kubelet does not look at
/// them, so they take no room; what they ask of cards is read by `hami`.
pub(super) const VIRTUAL: [&str; 4] = [
    CARD_POWER,
    CARD_MEMORY,
    CARD_MEMORY_PERCENT,
    "nvidia.com/priority",
];

/// The resource of which each piece is a card, or with HAMi a slot on a card. Queues count it for
/// each model by itself.
pub(super) const GPU: &str = "nvidia.com/gpu";
/// HAMi's memory of each card, in MiB.
pub(super) const CARD_MEMORY: &str = "nvidia.com/gpumem";
/// HAMi's memory of each card, in hundredths of what the card has.
pub(super) const CARD_MEMORY_PERCENT: &str = "nvidia.com/gpumem-percentage";
/// HAMi's computing power of each card, in hundredths of the card.
pub(super) const CARD_POWER: &str = "nvidia.com/gpucores";

/// What a pod takes from a node, with `pods: 1`:
///
/// ```text
/// maximum of  the sum of all containers and sidecars
///        and  for each init container: itself and the sidecars started before it
/// then        pod-level requests in place of cpu, memory and hugepages
/// plus        the overhead
/// ```
///
/// Containers and sidecars of a bound pod that is being resized count with the maximum of what is
/// asked, admitted and in force; without what is asked where the node can never grant it.
pub(super) fn requests(pod: &Pod, problems: &mut Problems) -> Amounts {
    let statuses = Statuses::of(pod);
    let mut sums = containers(&pod.spec, &statuses, problems);
    pod_level(pod, &statuses, &mut sums, problems);
    add(
        &mut sums,
        &read(&pod.spec.overhead, "spec.overhead", problems),
    );
    sums.insert("pods", 1_000);
    sums.retain(|name, amount| *amount > 0 && !VIRTUAL.contains(name));
    base_units(sums, "spec", problems)
}

/// The resources of a pod as a whole, with what the API server fills in.
pub(super) struct OfPod<'a> {
    pub(super) requests: Sums<'a>,
    pub(super) limits: Sums<'a>,
    /// What containers, init containers and sidecars ask for together.
    pub(super) of_containers: Sums<'a>,
}

/// `None`: the pod has no resources as a whole.
///
/// If it has any, it is limited to the hugepages of its containers. If it has limits then, it asks
/// for what its containers ask for, else for the limit; of hugepages, which cannot be
/// over-committed, always for the limit.
pub(super) fn of_pod<'a>(spec: &'a PodSpec, problems: &mut Problems) -> Option<OfPod<'a>> {
    let of = spec.resources.as_ref()?;
    let mut requests = read(&of.requests, "spec.resources.requests", problems);
    let mut limits = read(&of.limits, "spec.resources.limits", problems);
    let of_containers = containers(spec, &Statuses::default(), &mut Problems::default());
    let is_page = |name: &str| name.starts_with(HUGEPAGES);
    if !limits.is_empty() || !requests.is_empty() {
        for (name, sum) in &of_containers {
            if is_page(name) && !requests.contains_key(name) {
                limits.entry(name).or_insert(*sum);
            }
        }
    }
    if !limits.is_empty() {
        // The API server adds the amounts of containers before it rounds each, so the sum may be
        // less than that of the amounts that it stores.
        let exactly = together(spec, |container, _| exactly_asked(container));
        for (name, sum) in exactly {
            if is_pod_level(name) && !is_page(name) {
                let rounded = sum.div_ceil(quantity::BILLIONTHS_PER_THOUSANDTH);
                requests.entry(name).or_insert(rounded);
            }
        }
        for (name, limit) in limits.iter().filter(|(name, _)| is_pod_level(name)) {
            requests.entry(name).or_insert(*limit);
        }
    }
    Some(OfPod {
        requests,
        limits,
        of_containers,
    })
}

/// Amounts as they stand, without those that cannot be read.
pub(super) fn readable(quantities: &Pairs<Quantity>) -> Sums<'_> {
    read(quantities, "", &mut Problems::default())
}

/// The largest request of one container, by extended resource.
pub(super) fn largest_container(spec: &PodSpec) -> Amounts {
    // The problems of these quantities have been noted already, when they were summed up.
    let mut unread = Problems::default();
    let mut largest = Sums::new();
    for (field, container) in all_containers(spec) {
        raise(&mut largest, &asked(container, field, &mut unread));
    }
    largest.retain(|name, amount| *amount > 0 && is_device(name));
    base_units(largest, "", &mut unread)
}

/// Reads a map of quantities. What cannot be read is a problem and left out.
pub(super) fn amounts(
    quantities: &Pairs<Quantity>,
    field: &str,
    problems: &mut Problems,
) -> Amounts {
    let mut sums = read(quantities, field, problems);
    sums.retain(|_, amount| *amount > 0);
    let mut amounts = Amounts::with_capacity(sums.len());
    for (name, sum) in sums {
        match quantity::base_units(name, sum) {
            Ok(amount) => amounts.push((name.into(), amount)),
            Err(error) => problems.push(
                format_args!("{field}[{name}]"),
                format_args!("{} {error}", sum.div_ceil(1_000)),
            ),
        }
    }
    amounts
}

/// Init containers and containers, with the field that each stands in.
pub(super) fn all_containers(
    spec: &PodSpec,
) -> impl Iterator<Item = (ContainerField, &Container)> + Clone {
    let init = spec.init_containers.iter().flatten().enumerate();
    let main = spec.containers.iter().flatten().enumerate();
    init.map(|(index, container)| (ContainerField(INIT, index), container))
        .chain(main.map(|(index, container)| (ContainerField("containers", index), container)))
}

const INIT: &str = "initContainers";

/// Where a container stands in the spec; written out only where something is wrong with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContainerField(&'static str, usize);

impl ContainerField {
    /// Whether it stands among the init containers.
    pub(super) fn is_init(self) -> bool {
        self.0 == INIT
    }
}

impl fmt::Display for ContainerField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(list, index) = self;
        write!(formatter, "spec.{list}[{index}]")
    }
}

/// What the kubelet says of a bound pod's resources.
#[derive(Default)]
struct Statuses<'a> {
    status: Option<&'a PodStatus>,
    /// Whether the resize that is asked for can never be done on this node.
    infeasible: bool,
}

impl<'a> Statuses<'a> {
    fn of(pod: &'a Pod) -> Self {
        let bound = pod
            .spec
            .node_name
            .as_deref()
            .is_some_and(|node| !node.is_empty());
        let mut conditions = pod.status.conditions.iter().flatten();
        let pending = conditions.find(|condition| &*condition.kind == "PodResizePending");
        Self {
            status: bound.then_some(&pod.status),
            infeasible: pending
                .is_some_and(|condition| condition.reason.as_deref() == Some("Infeasible")),
        }
    }

    /// The status of a container whose resources are in force.
    fn container(&self, name: &str) -> Option<&'a ContainerStatus> {
        let status = self.status?;
        let init = status.init_container_statuses.iter().flatten();
        let mut all = init.chain(status.container_statuses.iter().flatten());
        all.find(|status| &*status.name == name)
            .filter(|status| status.resources.is_some())
    }

    /// The maximum of what is asked, admitted and in force.
    fn effective<'s>(
        &self,
        asked: Sums<'s>,
        in_force: &'s Pairs<Quantity>,
        admitted: &'s Pairs<Quantity>,
        problems: &mut Problems,
    ) -> Sums<'s> {
        let mut sums = if self.infeasible { Sums::new() } else { asked };
        // The API server does not check whether a status makes sense.
        let mut of_status = Problems::default();
        for quantities in [in_force, admitted] {
            raise(&mut sums, &read(quantities, "status", &mut of_status));
        }
        for problem in of_status.into_vec() {
            problems.push(problem.field, problem.message);
        }
        sums
    }
}

/// What containers, init containers and sidecars take together.
fn containers<'a>(spec: &'a PodSpec, statuses: &Statuses<'a>, problems: &mut Problems) -> Sums<'a> {
    together(spec, |container, field| {
        match field.is_init() && !container.is_sidecar() {
            true => asked(container, field, problems),
            false => effective(container, field, statuses, problems),
        }
    })
}

/// The maximum of what containers and sidecars take in sum, and of what each init container takes
/// with the sidecars before it. `taken`: what one takes.
fn together<'a>(
    spec: &'a PodSpec,
    mut taken: impl FnMut(&'a Container, ContainerField) -> Sums<'a>,
) -> Sums<'a> {
    let mut sums = Sums::new();
    for (index, container) in spec.containers.iter().flatten().enumerate() {
        add(
            &mut sums,
            &taken(container, ContainerField("containers", index)),
        );
    }
    let mut sidecars = Sums::new();
    let mut peak = Sums::new();
    for (index, container) in spec.init_containers.iter().flatten().enumerate() {
        let mut taken = taken(container, ContainerField(INIT, index));
        if container.is_sidecar() {
            add(&mut sums, &taken);
            add(&mut sidecars, &taken);
        } else {
            add(&mut taken, &sidecars);
            raise(&mut peak, &taken);
        }
    }
    raise(&mut sums, &peak);
    sums
}

fn effective<'a>(
    container: &'a Container,
    field: ContainerField,
    statuses: &Statuses<'a>,
    problems: &mut Problems,
) -> Sums<'a> {
    let asked = asked(container, field, problems);
    match statuses.container(&container.name) {
        Some(ContainerStatus {
            resources: Some(in_force),
            allocated_resources,
            ..
        }) => statuses.effective(asked, &in_force.requests, allocated_resources, problems),
        _ => asked,
    }
}

/// The requests of a container; a limit without a request counts as a request.
pub(super) fn asked<'a>(
    container: &'a Container,
    field: ContainerField,
    problems: &mut Problems,
) -> Sums<'a> {
    let Some(resources) = &container.resources else {
        return Sums::new();
    };
    let requests = format_args!("{field}.resources.requests");
    let mut sums = read(&resources.requests, requests, problems);
    let limits = format_args!("{field}.resources.limits");
    for (name, limit) in read(&resources.limits, limits, problems) {
        // A request that cannot be read is a request, so that no other mistake follows from it.
        if resources.requests.get(name).is_none() {
            sums.insert(name, limit);
        }
    }
    sums
}

/// The requests of a container as [`asked`] has them, in billionths and without those that cannot
/// be read.
fn exactly_asked(container: &Container) -> BTreeMap<&str, Billionths> {
    let Some(resources) = &container.resources else {
        return BTreeMap::new();
    };
    let requests = resources.requests.iter();
    let limits = resources.limits.iter();
    let limits = limits.filter(|(name, _)| resources.requests.get(name).is_none());
    let exactly = requests.chain(limits).filter_map(|(name, Quantity(text))| {
        let amount = quantity::billionths(text).ok()?;
        Some((name, amount))
    });
    exactly.collect()
}

/// Lets pod-level requests replace what the containers add up to.
fn pod_level<'a>(
    pod: &'a Pod,
    statuses: &Statuses<'a>,
    sums: &mut Sums<'a>,
    problems: &mut Problems,
) {
    let Some(of_pod) = of_pod(&pod.spec, problems) else {
        return;
    };
    let mut asked = of_pod.requests;
    asked.retain(|name, _| is_pod_level(name));
    let names: Vec<&str> = asked.keys().copied().collect();
    if let Some(status) = statuses.status
        && let Some(in_force) = &status.resources
    {
        let admitted = &status.allocated_resources;
        asked = statuses.effective(asked, &in_force.requests, admitted, problems);
    }
    for name in names {
        sums.insert(name, asked.get(name).copied().unwrap_or(0));
    }
}

pub(super) const HUGEPAGES: &str = "hugepages-";

/// Whether a pod as a whole may ask for a resource.
pub(super) fn is_pod_level(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with(HUGEPAGES)
}

/// Whether a resource comes from a device plugin and is not one of Kubernetes' own.
pub(super) fn is_extended(resource: &str) -> bool {
    resource.contains('/') && !resource.contains("kubernetes.io/")
}

/// Whether a node gives pieces of a resource to containers.
pub(super) fn is_device(resource: &str) -> bool {
    is_extended(resource) && !VIRTUAL.contains(&resource)
}

fn read<'a>(
    quantities: &'a Pairs<Quantity>,
    field: impl fmt::Display,
    problems: &mut Problems,
) -> Sums<'a> {
    let mut sums = Sums::new();
    for (name, Quantity(text)) in quantities.iter() {
        match quantity::thousandths(text) {
            Ok(amount) => {
                sums.insert(name, amount);
            }
            Err(error) => {
                problems.push_impossible(
                    format_args!("{field}[{name}]"),
                    format_args!("`{text}` {error}"),
                );
            }
        }
    }
    sums
}

fn add<'a>(sums: &mut Sums<'a>, other: &Sums<'a>) {
    for (name, amount) in other {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

fn raise<'a>(sums: &mut Sums<'a>, other: &Sums<'a>) {
    for (name, amount) in other {
        let sum = sums.entry(name).or_default();
        *sum = (*sum).max(*amount);
    }
}

/// Sums in base units; a sum above [`AMOUNT_MAX`] is a problem and counts as [`AMOUNT_MAX`].
fn base_units(sums: Sums<'_>, field: &str, problems: &mut Problems) -> Amounts {
    let mut amounts = Amounts::with_capacity(sums.len());
    for (name, sum) in sums {
        let amount = quantity::base_units(name, sum).unwrap_or_else(|_| {
            let sum = sum.div_ceil(1_000);
            let parts = if name == "cpu" { 1_000 } else { 1 };
            let most = AMOUNT_MAX / parts;
            problems.push(
                field,
                format_args!("asks for {sum} {name}; {most} is the most that can be counted"),
            );
            AMOUNT_MAX
        });
        amounts.push((name.into(), amount));
    }
    amounts
}

#[cfg(test)]
mod tests;
