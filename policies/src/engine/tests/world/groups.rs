//! PodGroups and sub-groups that a test can put into the world.

use super::{START_MS, Thing, World};
use crate::event::Object;
use crate::facts::{Placement, PodGroupFacts, SubGroupFacts, TopologyRequest, Uid};

pub(in crate::engine::tests) fn gang(name: &str, minimum: u32) -> PodGroupFacts {
    PodGroupFacts {
        created_ms: START_MS - 60_000,
        ..PodGroupFacts::new(Uid(2 << 64), "default", name, minimum)
    }
}

/// A sub-group: a leaf with so many pods.
pub(in crate::engine::tests) fn leaf(name: &str, parent: &str, min_member: u32) -> SubGroupFacts {
    SubGroupFacts {
        name: name.into(),
        parent: parent.into(),
        min_member: Some(min_member),
        min_sub_groups: None,
        topology: None,
    }
}

/// A sub-group with children.
pub(in crate::engine::tests) fn inner(name: &str, parent: &str) -> SubGroupFacts {
    SubGroupFacts {
        min_member: None,
        ..leaf(name, parent, 1)
    }
}

impl SubGroupFacts {
    pub(in crate::engine::tests) fn required(mut self, level: &str) -> Self {
        let topology = self.topology.get_or_insert_default();
        topology.required = Some(level.into());
        self
    }

    pub(in crate::engine::tests) fn preferred(mut self, level: &str) -> Self {
        let topology = self.topology.get_or_insert_default();
        topology.preferred = Some(level.into());
        self
    }

    pub(in crate::engine::tests) fn in_topology(mut self, name: &str) -> Self {
        let topology = self.topology.get_or_insert_default();
        topology.name = Some(name.into());
        self
    }
}

impl PodGroupFacts {
    pub(in crate::engine::tests) fn sub_groups(mut self, groups: &[SubGroupFacts]) -> Self {
        self.sub_groups = groups.to_vec();
        self
    }

    /// The gang needs so many of its sub-groups without a parent.
    pub(in crate::engine::tests) fn at_least(mut self, min_sub_groups: u32) -> Self {
        self.min_sub_groups = Some(min_sub_groups);
        self
    }

    pub(in crate::engine::tests) fn grace(mut self, grace_ms: i64) -> Self {
        self.staleness_grace_ms = Some(grace_ms);
        self
    }

    pub(in crate::engine::tests) fn required(mut self, level: &str) -> Self {
        let required = Some(level.into());
        self.topology = Some(TopologyRequest {
            required,
            ..TopologyRequest::default()
        });
        self
    }

    pub(in crate::engine::tests) fn preferred(mut self, level: &str) -> Self {
        let topology = self.topology.get_or_insert_default();
        topology.preferred = Some(level.into());
        self
    }

    /// The Topology of that name is meant.
    pub(in crate::engine::tests) fn in_topology(mut self, name: &str) -> Self {
        let topology = self.topology.get_or_insert_default();
        topology.name = Some(name.into());
        self
    }

    pub(in crate::engine::tests) fn queue(mut self, queue: &str) -> Self {
        self.queue = Some(queue.into());
        self
    }

    pub(in crate::engine::tests) fn generation(mut self, generation: i64) -> Self {
        self.generation = generation;
        self
    }

    pub(in crate::engine::tests) fn spread(self) -> Self {
        self.placed(Placement::Spread)
    }

    pub(in crate::engine::tests) fn placed(mut self, placement: Placement) -> Self {
        self.placement.gpu = Some(placement);
        self
    }
}

impl Thing for PodGroupFacts {
    fn object(self, _: &mut World) -> Object {
        Object::PodGroup(self)
    }
}
