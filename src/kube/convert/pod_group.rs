//! PodGroups of `gpu-batch.io`, and their status read back.

use super::fields::{self, Fields};
use super::problems::Problems;
use super::{Converter, Watched, identity, keys, limits};
use crate::kube::objects::{Condition, Meta, PodGroup, Timestamp};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{
    GroupSource, PodGroupFacts, SubGroupFacts, TopologyConstraint, UnixMs,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::{MemberCounts, Phase, PodGroupStatus, Staleness};
use serde::Deserialize;
use serde_json::Value;

impl Watched for PodGroup {
    const KIND: Kind = Kind::PodGroup;
    const PATH: &'static str = "/apis/gpu-batch.io/v1alpha1/podgroups";

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::PodGroup(
            GroupSource::GpuBatch,
            self.metadata.namespace.clone(),
            self.metadata.name.clone(),
        )
    }

    fn convert(self, converter: &mut Converter) -> Option<Object> {
        Some(Object::PodGroup(pod_group(self, converter)))
    }
}

/// The facts of a PodGroup. A field that this version does not know is a problem, so that the gang
/// is held and not started as if the field were absent.
pub(super) fn pod_group(group: PodGroup, converter: &Converter) -> PodGroupFacts {
    let problems = &mut Problems::default();
    let mut spec = Fields::new("spec", group.spec, problems);
    let queue = spec.name("queue", problems);
    let priority_class = spec.name("priorityClassName", problems);
    let preemptible = spec.read("preemptible", fields::TRUTH, problems);
    let expected_runtime_ms = spec.runtime("expectedRuntime", problems);
    let preemption_delay_ms = spec.duration("preemptionDelay", problems);
    let staleness_grace_ms = spec.signed_duration("stalenessGracePeriod", problems);
    let placement = spec.placement("placement", problems);
    let topology = topology(&mut spec, problems);
    let sub_groups = sub_groups(&mut spec, problems);
    let min_sub_groups = spec.count("minSubGroups", problems);
    let min_member = spec.count("minMember", problems);
    if min_member.is_some() && !sub_groups.is_empty() {
        spec.problem("minMember", "does not go with subGroups", problems);
    }
    spec.end(problems);
    let meta = group.metadata;
    PodGroupFacts {
        source: GroupSource::GpuBatch,
        unknown_keys: keys::on_pod_group(&meta),
        uid: identity::uid("PodGroup", &meta),
        generation: meta.generation,
        created_ms: meta
            .creation_timestamp
            .map_or(converter.now_ms, |time| converter.past(time)),
        namespace: meta.namespace,
        name: meta.name,
        queue,
        minimum: min_member.unwrap_or(1),
        sub_groups,
        min_sub_groups,
        priority_class,
        priority: None,
        preemptible,
        topology,
        required_label: None,
        placement,
        expected_runtime_ms,
        preemption_delay_ms,
        staleness_grace_ms,
        unsupported: Vec::new(),
        problems: std::mem::take(problems).into_vec(),
        is_told_by_other: converter.is_told_by_other(&group.status),
        status: written_status(group.status),
    }
}

fn topology(fields: &mut Fields, problems: &mut Problems) -> Option<TopologyConstraint> {
    let mut topology = fields.object("topology", problems)?;
    let request = TopologyConstraint {
        name: topology.name("name", problems),
        required: topology.name("required", problems),
        preferred: topology.name("preferred", problems),
    };
    topology.end(problems);
    Some(request)
}

fn sub_groups(spec: &mut Fields, problems: &mut Problems) -> Vec<SubGroupFacts> {
    let entries = spec.objects("subGroups", limits::SUB_GROUPS, problems);
    let entries = entries.into_iter().map(|entry| sub_group(entry, problems));
    entries.collect()
}

fn sub_group(mut entry: Fields, problems: &mut Problems) -> SubGroupFacts {
    let name = entry.name("name", problems);
    if name.is_none() {
        entry.problem("name", "is missing", problems);
    }
    let facts = SubGroupFacts {
        name: name.unwrap_or_default(),
        parent: entry.name("parent", problems).unwrap_or_default(),
        min_member: entry.count("minMember", problems),
        min_sub_groups: entry.count("minSubGroups", problems),
        topology: topology(&mut entry, problems),
    };
    entry.end(problems);
    facts
}

/// The status of a PodGroup, read back: a status that is there already need not be written again.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenStatus {
    observed_generation: i64,
    phase: Box<str>,
    members: Members,
    conditions: Vec<Condition>,
    reason: Option<Box<str>>,
    message: Box<str>,
    protected: Option<bool>,
    estimated_start: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Members {
    expected: u32,
    created: u32,
    bound: u32,
    running: u32,
    succeeded: u32,
    failed: u32,
}

/// The status, if it is written as the scheduler writes it. `None` for any other status, in place
/// of which the scheduler writes its own.
fn written_status(status: Value) -> Option<PodGroupStatus> {
    let written: WrittenStatus = serde_json::from_value(status).ok()?;
    let reason = match &written.reason {
        Some(word) => Some(Reason::ALL.into_iter().find(|it| it.as_str() == &**word)?),
        None => None,
    };
    let members = written.members;
    let (scheduled, scheduled_since_ms) = condition(&written.conditions, "PodGroupScheduled")?;
    let staleness = condition(&written.conditions, "Stale");
    Some(PodGroupStatus {
        observed_generation: written.observed_generation,
        phase: Phase::ALL
            .into_iter()
            .find(|it| it.as_str() == &*written.phase)?,
        members: MemberCounts {
            expected: members.expected,
            created: members.created,
            bound: members.bound,
            running: members.running,
            succeeded: members.succeeded,
            failed: members.failed,
        },
        reason,
        message: written.message,
        scheduled,
        scheduled_since_ms,
        staleness: staleness.map(|(stale, since_ms)| Staleness { stale, since_ms }),
        protected: written.protected,
        estimated_start_ms: written.estimated_start.map(|time| time.0),
    })
}

/// Whether a condition is true, and when it last changed, in Unix milliseconds.
fn condition(conditions: &[Condition], kind: &str) -> Option<(bool, UnixMs)> {
    let condition = conditions.iter().find(|it| &*it.kind == kind)?;
    Some((
        &*condition.status == "True",
        condition.last_transition_time?.0,
    ))
}

#[cfg(test)]
mod tests;
