//! Queues.

use super::fields::{self, Fields};
use super::problems::Problems;
use super::quantity::BILLIONTHS_PER_THOUSANDTH;
use super::resources::GPU;
use super::{Converter, Watched, identity, keys, limits, quantity, selector};
use crate::kube::api;
use crate::kube::objects::{LabelSelector, Meta, Quantity, Queue, Timestamp};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{
    Amount, LearnedRuntimes, OwnerRuntimes, PastUse, QueueFacts, QueueResource, UNREADABLE_MS,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

impl Watched for Queue {
    const KIND: Kind = Kind::Queue;
    const PATH: &'static str = "/apis/gpu-batch.io/v1alpha1/queues";

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::Queue(self.metadata.name.clone())
    }

    fn convert(self, converter: &mut Converter) -> Option<Object> {
        Some(Object::Queue(queue(self, converter)))
    }
}

/// The facts of a queue. A field that this version does not know is a problem, because a queue that
/// is read only in part divides wrongly.
pub(super) fn queue(queue: Queue, converter: &Converter) -> QueueFacts {
    let problems = &mut Problems::default();
    let meta = &queue.metadata;
    let mut spec = Fields::new("spec", queue.spec, problems);
    let placement = spec.placement("placement", problems);
    let mut facts = QueueFacts {
        uid: identity::uid("Queue", meta),
        generation: meta.generation,
        created_ms: meta
            .creation_timestamp
            .map_or(converter.now_ms, |time| converter.past(time)),
        parent: spec.name("parent", problems),
        priority: priority(&mut spec, problems),
        resources: resources(&mut spec, problems),
        preempt_min_runtime_ms: min_runtime(&mut spec, "preemptMinRuntime", problems),
        reclaim_min_runtime_ms: min_runtime(&mut spec, "reclaimMinRuntime", problems),
        placement,
        namespace_selector: spec
            .read::<LabelSelector>("namespaceSelector", "a label selector", problems)
            .map(|selector| selector::label_selector(selector, "spec.namespaceSelector", problems)),
        closed: spec
            .read("closed", fields::TRUTH, problems)
            .unwrap_or(false),
        past_use: past_use(&queue.status),
        runtimes: runtimes(&queue.status),
        is_told_by_other: converter.is_told_by_other(&queue.status),
        unknown_keys: keys::on_queue(meta),
        name: queue.metadata.name,
        problems: Vec::new(),
    };
    spec.end(problems);
    facts.problems = std::mem::take(problems).into_vec();
    facts
}

/// How long gangs run before they may be evicted. While that cannot be read they are left alone: a
/// slip in writing must not cost anybody's work.
fn min_runtime(spec: &mut Fields, name: &'static str, problems: &mut Problems) -> Option<u64> {
    let is_there = spec.has(name);
    let runtime_ms = spec.duration(name, problems);
    runtime_ms.or(is_there.then_some(UNREADABLE_MS))
}

/// `status.pastUse`, as the scheduler writes it.
#[derive(Deserialize)]
struct Written {
    until: Timestamp,
    average: BTreeMap<Box<str>, String>,
}

/// What the scheduler has written of a queue's past use. `None` if the status holds anything else:
/// the queue's past then begins now.
fn past_use(status: &Value) -> Option<PastUse> {
    let past_use = Written::deserialize(status.get("pastUse")?).ok()?;
    let averages = past_use.average.into_iter().map(|(key, text)| {
        let thousandths = quantity::thousandths(&text).ok()?;
        let of_base_units = if &*key == "cpu" {
            thousandths.saturating_mul(1_000)
        } else {
            thousandths
        };
        Some((key, u64::try_from(of_base_units).unwrap_or(u64::MAX)))
    });
    Some(PastUse {
        at_ms: past_use.until.0,
        averages: averages.collect::<Option<_>>()?,
    })
}

/// What the scheduler has written of the runtimes of a queue's gangs; of more than it keeps, none.
/// `None` if the status holds anything else: the scheduler then learns anew.
fn runtimes(status: &Value) -> Option<LearnedRuntimes> {
    let written = api::LearnedRuntimes::deserialize(status.get("runtimes")?).ok()?;
    let seconds = |seconds: Vec<i64>| -> Option<Vec<u32>> {
        let seconds = seconds.into_iter().map(|it| u32::try_from(it).ok());
        seconds.collect()
    };
    let owners = written.owners.into_iter().map(|own| {
        Some(OwnerRuntimes {
            owner: own.owner.into(),
            seconds: seconds(own.seconds)?,
        })
    });
    Some(LearnedRuntimes {
        seconds: seconds(written.seconds)?,
        owners: owners.collect::<Option<_>>()?,
    })
}

fn priority(spec: &mut Fields, problems: &mut Problems) -> i32 {
    let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
    let priority = spec.integer("priority", range, problems);
    priority
        .and_then(|priority| i32::try_from(priority).ok())
        .unwrap_or(0)
}

fn resources(spec: &mut Fields, problems: &mut Problems) -> Vec<QueueResource> {
    let entries = spec.objects("resources", limits::QUEUE_RESOURCES, problems);
    let mut resources: Vec<QueueResource> = Vec::with_capacity(entries.len());
    for mut entry in entries {
        let Some(resource) = resource(&mut entry, problems) else {
            continue;
        };
        let twice = resources
            .iter()
            .any(|other| other.name == resource.name && other.product == resource.product);
        if twice {
            entry.problem(
                "name",
                format_args!("`{}` is there twice", resource.name),
                problems,
            );
        } else {
            resources.push(resource);
        }
        entry.end(problems);
    }
    resources
}

fn resource(entry: &mut Fields, problems: &mut Problems) -> Option<QueueResource> {
    let Some(name) = entry.name("name", problems) else {
        entry.problem("name", "is missing", problems);
        return None;
    };
    let product = entry.name("product", problems);
    if product.is_some() && &*name != GPU {
        let message = format_args!("only {GPU} is counted by model, and this entry is for {name}");
        entry.problem("product", message, problems);
    }
    if product.as_deref().is_some_and(is_part) {
        let message = "names the model of a whole GPU, without -SHARED and -MIG-...";
        entry.problem("product", message, problems);
    }
    let quota = amount(entry, "quota", &name, problems).unwrap_or(0);
    let limit = amount(entry, "limit", &name, problems);
    if limit.is_some_and(|limit| limit < quota) {
        entry.problem("limit", "is below the quota", problems);
    }
    let weight = entry.integer("weight", 0..=i64::from(u16::MAX), problems);
    Some(QueueResource {
        name,
        product,
        quota,
        limit,
        weight: weight
            .and_then(|weight| u16::try_from(weight).ok())
            .unwrap_or(1),
    })
}

/// Whether a product names a share or a slice of a card. No node counts as such a product.
fn is_part(product: &str) -> bool {
    product.ends_with("-SHARED") || product.contains("-MIG-")
}

fn amount(
    entry: &mut Fields,
    field: &'static str,
    resource: &str,
    problems: &mut Problems,
) -> Option<Amount> {
    let Quantity(text) = entry.read(field, "a quantity such as 16, 500m or 64Gi", problems)?;
    let amount = quantity::billionths(&text).and_then(|billionths| {
        let thousandths = billionths.div_ceil(BILLIONTHS_PER_THOUSANDTH);
        let (least, amount) = match resource {
            GPU => (1, quantity::in_range(thousandths)?),
            _ if resource.contains('/') => (1_000, quantity::base_units(resource, thousandths)?),
            _ => (0, quantity::base_units(resource, thousandths)?),
        };
        let is_whole = least == 0 || billionths % (least * BILLIONTHS_PER_THOUSANDTH) == 0;
        Ok((is_whole, amount))
    });
    match amount {
        Ok((true, amount)) => return Some(amount),
        Ok((false, _)) if resource == GPU => {
            let message = format_args!("`{text}` is finer than a thousandth of a card");
            entry.problem(field, message, problems);
        }
        Ok((false, _)) => {
            let message = format_args!("`{text}` is not whole, and {resource} cannot be divided");
            entry.problem(field, message, problems);
        }
        Err(error) => entry.problem(field, format_args!("`{text}` {error}"), problems),
    }
    None
}

#[cfg(test)]
mod tests;
