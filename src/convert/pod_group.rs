//! PodGroups of `gpu-batch.io`.

mod status;

use super::fields::Fields;
use super::problems::Problems;
use super::{Converter, identity, limits};
use crate::objects::{Meta, PodGroup, Watched};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{
    GangMinimum, GroupSource, PodGroupFacts, SubGroupFacts, TopologyRequest,
};

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

/// The facts of a PodGroup. A field that this version does not know is unsupported, so that the
/// gang is held and not started without it.
pub(super) fn pod_group(group: PodGroup, converter: &Converter) -> PodGroupFacts {
    let mut reader = Reader::default();
    let problems = &mut reader.problems;
    let mut spec = Fields::new("spec", group.spec, problems);
    let queue = spec.name("queue", problems);
    let priority_class = spec.name("priorityClassName", problems);
    let preemptible = spec.read("preemptible", problems);
    let expected_runtime_ms = spec.runtime("expectedRuntime", problems);
    let preemption_delay_ms = spec.duration("preemptionDelay", problems);
    let staleness_grace_ms = spec.signed_duration("stalenessGracePeriod", problems);
    let (placement, unknown) = spec.placement("placement", problems);
    reader.unsupported(unknown);
    let topology = reader.topology(&mut spec);
    let sub_groups = reader.sub_groups(&mut spec);
    let min_sub_groups = spec.count("minSubGroups", &mut reader.problems);
    let min_member = spec.count("minMember", &mut reader.problems);
    if min_member.is_some() && !sub_groups.is_empty() {
        spec.problem(
            "minMember",
            "does not go with subGroups",
            &mut reader.problems,
        );
    }
    reader.unsupported(spec.unknown());
    let meta = group.metadata;
    PodGroupFacts {
        source: GroupSource::GpuBatch,
        uid: identity::uid("PodGroup", &meta),
        generation: meta.generation,
        created_ms: meta
            .creation_timestamp
            .map_or(converter.now_ms, |time| converter.past(time)),
        namespace: meta.namespace,
        name: meta.name,
        queue,
        minimum: GangMinimum::Together(min_member.unwrap_or(1)),
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
        unsupported: reader.unsupported,
        problems: reader.problems.into_vec(),
        status: status::read(group.status),
    }
}

/// Reads a spec and remembers what is wrong with it and what is not supported yet.
#[derive(Default)]
struct Reader {
    problems: Problems,
    unsupported: Vec<Box<str>>,
}

impl Reader {
    fn unsupported(&mut self, fields: impl IntoIterator<Item = String>) {
        let room = limits::PROBLEMS - self.unsupported.len();
        let fields = fields.into_iter().take(room);
        self.unsupported.extend(fields.map(String::into_boxed_str));
    }

    fn topology(&mut self, fields: &mut Fields) -> Option<TopologyRequest> {
        let mut topology = fields.object("topology", &mut self.problems)?;
        let request = TopologyRequest {
            name: topology.name("name", &mut self.problems),
            required: topology.name("required", &mut self.problems),
            preferred: topology.name("preferred", &mut self.problems),
        };
        self.unsupported(topology.unknown());
        Some(request)
    }

    fn sub_groups(&mut self, spec: &mut Fields) -> Vec<SubGroupFacts> {
        let entries = spec.objects("subGroups", limits::SUB_GROUPS, &mut self.problems);
        let entries = entries.into_iter().map(|entry| self.sub_group(entry));
        entries.collect()
    }

    fn sub_group(&mut self, mut entry: Fields) -> SubGroupFacts {
        let name = entry.name("name", &mut self.problems);
        if name.is_none() {
            entry.problem("name", "is missing", &mut self.problems);
        }
        let facts = SubGroupFacts {
            name: name.unwrap_or_default(),
            parent: entry.name("parent", &mut self.problems).unwrap_or_default(),
            min_member: entry.count("minMember", &mut self.problems),
            min_sub_groups: entry.count("minSubGroups", &mut self.problems),
            topology: self.topology(&mut entry),
        };
        self.unsupported(entry.unknown());
        facts
    }
}

#[cfg(test)]
mod tests;
