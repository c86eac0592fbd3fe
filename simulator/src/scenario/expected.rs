//! Worlds in which gangs are promised starts, because it is known when others end.
//!
//! In orderly worlds gangs have one fixed order and are there as a whole at once, and they end as
//! they are expected to: the last member in the two seconds before. What was promised in orderly
//! worlds must be kept, see `run/promises`. In the other worlds, gangs and their owners are as
//! everywhere, and some expectations are wrong or missing.

use super::Arrival;
use super::work::{group, members};
use crate::cluster::{Cluster, Recipe};
use crate::random::Random;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{GroupSource, PodGroupFacts, QueueFacts, UnixMs};

/// Longer than two times together, where nothing fails: from the choice of nodes for a gang to the
/// last start of its containers, and from their end until the scheduler hears of it.
const BEGIN_AND_END_MS: u64 = 2_000;
/// How far apart two gangs arrive at least: the order by age is in seconds.
const APART_MS: u64 = 1_000;
/// The queues of orderly worlds, in their order. `research` is above the first two; the queue
/// `default` has no object that would say where it comes.
const IN_ORDER: [&str; 3] = ["red", "blue", "green"];
/// How long gangs run, at least and at most.
const RUNTIME_MS: (u64, u64) = (2_000, 40_000);

/// Makes the order of gangs fixed, and draws what arrives: by time, and how many gangs.
pub(crate) fn orderly(
    cluster: &mut Cluster,
    random: &mut Random,
    start_ms: UnixMs,
    span_ms: u64,
) -> (Vec<(UnixMs, Arrival)>, u32) {
    fix_order(cluster, start_ms);
    let is_one_queue = random.percent(50);
    let gangs = random.between(7, 15);
    let each_ms = span_ms / gangs;
    let mut arrivals = Vec::new();
    for number in 0..gangs {
        let queue = match is_one_queue {
            true => IN_ORDER[0],
            false => *random.pick(&IN_ORDER),
        };
        let gang = orderly_gang(&format!("g{number}"), queue, random);
        let at_ms = start_ms + number * each_ms + random.below(each_ms - APART_MS);
        arrivals.push((at_ms, gang));
    }
    (arrivals, u32::try_from(gangs).unwrap_or(0))
}

/// Lets queues have neither quotas nor limits, and one after the other come first.
fn fix_order(cluster: &mut Cluster, now_ms: UnixMs) {
    let queues = cluster.api.objects(Kind::Queue);
    let queues = queues.filter_map(|stored| match &stored.object {
        Object::Queue(facts) => Some(facts.clone()),
        _ => None,
    });
    for facts in queues.collect::<Vec<_>>() {
        let place = order_of_queue(&facts.name);
        let facts = QueueFacts {
            priority: -i32::try_from(place).unwrap_or(0),
            resources: Vec::new(),
            namespace_selector: None,
            ..facts
        };
        cluster.put(Object::Queue(facts), now_ms);
    }
}

/// The place of a queue in the order of an orderly world. `research`, which is above the first two
/// leaves, has the place of the first.
fn order_of_queue(name: &str) -> usize {
    let place = IN_ORDER.iter().position(|queue| *queue == name);
    place.unwrap_or(0)
}

/// The place of a gang in the order of an orderly world.
pub(crate) fn order_of(group: &PodGroupFacts) -> (usize, UnixMs) {
    let queue = group.queue.as_deref().unwrap_or_default();
    (order_of_queue(queue), group.created_ms)
}

fn orderly_gang(name: &str, queue: &str, random: &mut Random) -> Arrival {
    let count = random.between(1, 6);
    let mut pods = members(name, count, random);
    let minimum = u32::try_from(count).unwrap_or(1);
    let mut group = group(name, minimum, random);
    let runtime_ms = random.between(RUNTIME_MS.0, RUNTIME_MS.1);
    group.queue = Some(queue.into());
    group.priority_class = None;
    group.preemptible = None;
    group.expected_runtime_ms = Some(runtime_ms + BEGIN_AND_END_MS);
    for recipe in &mut pods {
        recipe.pod.pod_group = Some(name.into());
        recipe.pod.gates.clear();
        recipe.runtime_ms = Some(runtime_ms);
    }
    Arrival::Gang(Some(Box::new(Object::PodGroup(group))), pods)
}

/// Lets most gangs end, and says of most of these when: exactly, too early, or too late.
pub(crate) fn expect(arrivals: &mut [(UnixMs, Arrival)], random: &mut Random) {
    for (_, arrival) in arrivals {
        let Arrival::Gang(description, recipes) = arrival else {
            continue;
        };
        let runtime_ms = random.between(RUNTIME_MS.0, RUNTIME_MS.1);
        let ends = random.percent(85);
        for recipe in recipes.iter_mut() {
            recipe.runtime_ms = ends.then_some(runtime_ms);
        }
        let expected_ms = expected_ms(runtime_ms, random);
        match description.as_deref_mut() {
            Some(Object::PodGroup(group)) if group.source == GroupSource::GpuBatch => {
                group.expected_runtime_ms = expected_ms;
            }
            _ => expect_of_pods(recipes, expected_ms),
        }
    }
}

fn expected_ms(runtime_ms: u64, random: &mut Random) -> Option<u64> {
    match random.below(10) {
        0..5 => Some(runtime_ms + BEGIN_AND_END_MS),
        5..7 => Some(random.between(1, runtime_ms)),
        7..9 => Some(runtime_ms + random.between(BEGIN_AND_END_MS, 4 * RUNTIME_MS.1)),
        _ => None,
    }
}

fn expect_of_pods(recipes: &mut [Recipe], expected_ms: Option<u64>) {
    for recipe in recipes {
        recipe.pod.hints.expected_runtime_ms = expected_ms;
    }
}
