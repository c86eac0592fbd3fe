//! What pods of one node cannot all have: ports of the host, and disks that they name themselves.
//!
//! Sources: the plugins NodePorts and VolumeRestrictions.

use crate::facts::{Disk, HostPort, PodShape};
use crate::filter::host_ports_conflict;
use alloc::vec::Vec;

/// Something that a pod has of a node, and that keeps some others from having it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exclusive {
    /// A port of the host.
    Port(HostPort),
    /// A disk, which one pod may have, or any number that only read it.
    Disk(Disk),
}

impl Exclusive {
    /// What a pod of a shape has.
    pub(crate) fn of(shape: &PodShape) -> Vec<Self> {
        let ports = shape.host_ports.iter().cloned().map(Self::Port);
        ports
            .chain(shape.disks.iter().cloned().map(Self::Disk))
            .collect()
    }

    /// Whether two pods, one with each of these, cannot share a node.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Port(one), Self::Port(other)) => host_ports_conflict(one, other),
            (Self::Disk(one), Self::Disk(other)) => {
                one.name == other.name && !(one.read_only && other.read_only)
            }
            _ => false,
        }
    }
}
