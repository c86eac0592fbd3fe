//! PodGroups of `scheduling.k8s.io`.

use super::problems::Problems;
use super::{Converter, Watched, identity, keys, limits, pod};
use crate::kube::objects::{Meta, NativePodGroup, NativePodGroupSpec};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{GroupSource, PlacementChoice, PodGroupFacts};

impl Watched for NativePodGroup {
    const KIND: Kind = Kind::NativePodGroup;
    const PATH: &'static str = "/apis/scheduling.k8s.io/v1alpha2/podgroups";

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::PodGroup(
            GroupSource::Native,
            self.metadata.namespace.clone(),
            self.metadata.name.clone(),
        )
    }

    fn convert(self, converter: &mut Converter) -> Option<Object> {
        Some(Object::PodGroup(native_group(self, converter)))
    }
}

/// The facts of a native PodGroup. `disruptionMode` is not read: whatever it says, a gang is
/// evicted whole, or only its surplus is.
pub(super) fn native_group(group: NativePodGroup, converter: &Converter) -> PodGroupFacts {
    let mut problems = Problems::default();
    let mut unsupported = Vec::new();
    let minimum = minimum(&group.spec, &mut problems);
    let required_label = required_label(&group.spec, &mut unsupported, &mut problems);
    if !group
        .spec
        .resource_claims
        .as_deref()
        .unwrap_or_default()
        .is_empty()
    {
        unsupported.push("spec.resourceClaims".into());
    }
    let meta = group.metadata;
    let queue = meta.labels.get(keys::QUEUE).filter(|queue| {
        let fits = (1..=limits::TEXT).contains(&queue.len());
        if !fits {
            problems.push(keys::label(keys::QUEUE), "is empty or too long");
        }
        fits
    });
    PodGroupFacts {
        source: GroupSource::Native,
        unknown_keys: keys::on_native_group(&meta),
        uid: identity::uid("NativePodGroup", &meta),
        generation: meta.generation,
        created_ms: meta
            .creation_timestamp
            .map_or(converter.now_ms, |time| converter.past(time)),
        queue: queue.cloned(),
        namespace: meta.namespace,
        name: meta.name,
        minimum,
        sub_groups: Vec::new(),
        min_sub_groups: None,
        priority_class: group
            .spec
            .priority_class_name
            .filter(|name| !name.is_empty()),
        priority: group.spec.priority.map(pod::saturated),
        preemptible: None,
        topology: None,
        required_label,
        placement: PlacementChoice::default(),
        expected_runtime_ms: None,
        preemption_delay_ms: None,
        staleness_grace_ms: None,
        unsupported,
        problems: problems.into_vec(),
        status: None,
        is_told_by_other: false,
    }
}

/// The minimum. In a `basic` group each pod may start by itself: the minimum is 1, the other pods
/// are surplus.
fn minimum(spec: &NativePodGroupSpec, problems: &mut Problems) -> u32 {
    let policy = &spec.scheduling_policy;
    match (&policy.basic, &policy.gang) {
        (Some(_), None) => 1,
        (None, Some(gang)) => match u32::try_from(gang.min_count) {
            Ok(count) if count > 0 => count,
            _ => {
                problems.push(
                    "spec.schedulingPolicy.gang.minCount",
                    format_args!("{} is not a number from 1 up", gang.min_count),
                );
                1
            }
        },
        _ => {
            problems.push(
                "spec.schedulingPolicy",
                "needs exactly one of basic and gang",
            );
            1
        }
    }
}

fn required_label(
    spec: &NativePodGroupSpec,
    unsupported: &mut Vec<Box<str>>,
    problems: &mut Problems,
) -> Option<Box<str>> {
    const FIELD: &str = "spec.schedulingConstraints.topology";
    let constraints = spec.scheduling_constraints.as_ref()?.topology.as_deref()?;
    let (first, others) = constraints.split_first()?;
    if !others.is_empty() {
        unsupported.push(format!("{FIELD}[1]").into());
    }
    if first.key.is_empty() {
        problems.push(format_args!("{FIELD}[0].key"), "is missing");
        return None;
    }
    Some(first.key.clone())
}

#[cfg(test)]
mod tests;
