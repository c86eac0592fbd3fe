//! Hosts in domains inside domains.

use crate::input::{InputError, Table};
use crate::objects::topology;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{NodeFacts, Uid};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The columns of the file of Alibaba's Lingjun cluster: a host, and the switches above it,
/// farthest first.
pub const LINGJUN_COLUMNS: [&str; 4] = ["ip", "DSW", "PSW", "ASW"];

/// The UID of the Topology, which no node, queue, owner or pod has.
const TOPOLOGY: Uid = Uid(4 << 96);

/// Hosts and the domains that each is in. Its levels are those of the Topology `default`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The names of the levels, farthest first; they are also the labels of the nodes.
    levels: Vec<&'static str>,
    /// The domains of each host, farthest first. The hosts are in the order of their names.
    paths: Vec<Vec<String>>,
    /// The number of the lowest domain, the rack, of each host.
    racks: Vec<usize>,
    /// How many hosts each rack has, by the rack's number.
    hosts_in: Vec<u32>,
    /// How many hosts each rack has, the largest rack first.
    sizes: Vec<usize>,
}

impl Network {
    /// A network of so many zones, of so many blocks each, of so many racks each, of so many hosts
    /// each. The names of the hosts are in the order of the racks.
    #[must_use]
    pub fn of_racks(zones: usize, blocks: usize, racks: usize, hosts: usize) -> Self {
        let in_zone = blocks * racks * hosts;
        let path = |host: usize| {
            let numbers = [
                ("zone", host / in_zone),
                ("block", host / (racks * hosts) % blocks),
                ("rack", host / hosts % racks),
            ];
            let names = numbers.map(|(level, number)| format!("{level}-{number:02}"));
            names.to_vec()
        };
        let paths = (0..zones * in_zone).map(path).collect();
        Self::new(vec!["zone", "block", "rack"], paths)
    }

    /// The three tiers of switches of Alibaba's Lingjun cluster (Cao et al., Crux, SIGCOMM 2024),
    /// from the file that was published: [`LINGJUN_COLUMNS`].
    ///
    /// # Errors
    /// If the file is broken, has no hosts, or names a host twice.
    pub fn read_lingjun(path: &Path) -> Result<Self, InputError> {
        let mut table = Table::open(path, &LINGJUN_COLUMNS, &[])?;
        let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while let Some(row) = table.next_row()? {
            let name = row.name(0)?.to_owned();
            let switches = (1..LINGJUN_COLUMNS.len()).map(|column| row.name(column));
            let switches: Result<Vec<&str>, InputError> = switches.collect();
            let switches = switches?.into_iter().map(str::to_owned).collect();
            if hosts.insert(name, switches).is_some() {
                return Err(row.error(0, "occurs twice"));
            }
        }
        if hosts.is_empty() {
            return Err(InputError::of_file(table.file(), "has no hosts"));
        }
        let levels = vec!["dsw", "psw", "asw"];
        Ok(Self::new(levels, hosts.into_values().collect()))
    }

    fn new(levels: Vec<&'static str>, paths: Vec<Vec<String>>) -> Self {
        let all: BTreeSet<&Vec<String>> = paths.iter().collect();
        let numbers: BTreeMap<&Vec<String>, usize> = all.into_iter().zip(0..).collect();
        let racks: Vec<usize> = paths.iter().map(|path| numbers[path]).collect();
        let mut hosts_in = vec![0; numbers.len()];
        for rack in &racks {
            hosts_in[*rack] += 1;
        }
        let mut sizes: Vec<usize> = hosts_in.iter().map(|hosts| *hosts as usize).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            levels,
            paths,
            racks,
            hosts_in,
            sizes,
        }
    }

    /// How many hosts there are. Hosts are numbered from 0 in the order of their names.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.paths.len()
    }

    /// The domains that a host is in, farthest first.
    #[must_use]
    pub fn path(&self, host: usize) -> &[String] {
        &self.paths[host]
    }

    /// How many racks there are.
    #[must_use]
    pub fn racks(&self) -> usize {
        self.sizes.len()
    }

    /// The rack of a host, numbered from 0.
    #[must_use]
    pub fn rack(&self, host: usize) -> usize {
        self.racks[host]
    }

    /// How many hosts a rack has, by its number.
    #[must_use]
    pub fn hosts_in(&self, rack: usize) -> u32 {
        self.hosts_in[rack]
    }

    /// The smallest number of racks that have so many hosts. More hosts than there are count as all
    /// hosts.
    #[must_use]
    pub fn fewest_racks(&self, hosts: usize) -> u64 {
        let mut left = hosts;
        let used = self.sizes.iter().take_while(|size| {
            let more = left > 0;
            left = left.saturating_sub(**size);
            more
        });
        used.count() as u64
    }

    /// Labels the nodes with the domains of the hosts, in the order of the hosts, and returns the
    /// Topology `default` with these labels.
    pub fn label<'a>(&self, nodes: impl IntoIterator<Item = &'a mut NodeFacts>) -> Object {
        for (node, path) in nodes.into_iter().zip(&self.paths) {
            let labels = self.levels.iter().zip(path);
            node.labels
                .extend(labels.map(|(level, name)| ((*level).into(), name.as_str().into())));
            node.labels.sort();
        }
        Object::Topology(topology("default", TOPOLOGY, &self.levels))
    }
}
