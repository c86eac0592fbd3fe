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
    SubGroupFacts::new(name, parent, Some(min_member))
}

/// A sub-group with children.
pub(in crate::engine::tests) fn inner(name: &str, parent: &str) -> SubGroupFacts {
    SubGroupFacts::new(name, parent, None)
}

/// A PodGroup or a sub-group, which says where its members must or should be.
pub(in crate::engine::tests) trait WithTopology: Sized {
    /// Its `topology`, empty if it had none.
    fn topology(&mut self) -> &mut TopologyRequest;

    fn required(mut self, level: &str) -> Self {
        self.topology().required = Some(level.into());
        self
    }

    fn preferred(mut self, level: &str) -> Self {
        self.topology().preferred = Some(level.into());
        self
    }

    /// Its levels are those of the Topology of this name.
    fn in_topology(mut self, name: &str) -> Self {
        self.topology().name = Some(name.into());
        self
    }
}

impl WithTopology for SubGroupFacts {
    fn topology(&mut self) -> &mut TopologyRequest {
        self.topology.get_or_insert_default()
    }
}

impl WithTopology for PodGroupFacts {
    fn topology(&mut self) -> &mut TopologyRequest {
        self.topology.get_or_insert_default()
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
