//! The free room on each host.

use super::{Network, pods};
use crate::generate::GPUS_PER_NODE;
use crate::trace::jobs::Job;

/// GPUs of a host that a pod takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) host: usize,
    pub(super) gpus: u32,
}

/// The free GPUs of each host, and which hosts are free as a whole.
pub(super) struct Room<'a> {
    network: &'a Network,
    free: Vec<u32>,
    /// By rack, how many of its hosts are free as a whole.
    open: Vec<u32>,
    /// How many racks have only hosts that are free as a whole.
    free_racks: u32,
    /// By number of free GPUs: how many hosts have exactly so many free.
    hosts: [u32; GPUS_PER_NODE as usize + 1],
}

impl<'a> Room<'a> {
    pub(super) fn new(network: &'a Network) -> Self {
        let mut room = Self {
            network,
            free: vec![0; network.hosts()],
            open: vec![0; network.racks()],
            free_racks: 0,
            hosts: [0; GPUS_PER_NODE as usize + 1],
        };
        for host in 0..network.hosts() {
            room.set(host, GPUS_PER_NODE);
        }
        room
    }

    /// The free GPUs of each host.
    pub(super) fn free(&self) -> &[u32] {
        &self.free
    }

    /// How many hosts are free as a whole.
    pub(super) fn open(&self) -> u32 {
        self.hosts[GPUS_PER_NODE as usize]
    }

    /// How many hosts are free as a whole in the rack that has the most of them.
    pub(super) fn open_in_rack(&self) -> u32 {
        self.open.iter().copied().max().unwrap_or(0)
    }

    /// How many racks are free as a whole.
    pub(super) fn free_racks(&self) -> u32 {
        self.free_racks
    }

    /// Whether there is room for all pods of a job, each on a host of its own.
    pub(super) fn fits(&self, job: &Job) -> bool {
        let mut needed = 0;
        pods(job).all(|gpus| {
            needed += 1;
            self.hosts[gpus as usize..].iter().sum::<u32>() >= needed
        })
    }

    pub(super) fn take(&mut self, place: Place) {
        self.set(place.host, self.free[place.host] - place.gpus);
    }

    pub(super) fn give(&mut self, place: Place) {
        self.set(place.host, self.free[place.host] + place.gpus);
    }

    fn set(&mut self, host: usize, free: u32) {
        let before = std::mem::replace(&mut self.free[host], free);
        let rack = self.network.rack(host);
        let whole = |gpus| u32::from(gpus == GPUS_PER_NODE);
        let size = self.network.hosts_in(rack);
        let was_free = self.open[rack] == size;
        self.open[rack] = self.open[rack] + whole(free) - whole(before);
        let is_free = self.open[rack] == size;
        self.free_racks = self.free_racks + u32::from(is_free) - u32::from(was_free);
        self.hosts[before as usize] = self.hosts[before as usize].saturating_sub(1);
        self.hosts[free as usize] += 1;
    }
}
