//! The custom resources: Queue, PodGroup, Topology.
