//! Topologies: trees of domains, made from node labels.
//!
//! A domain is named by its whole path from the top, because names such as `rack-1` repeat under
//! different parents. A node without a level's label is a domain of its own at that level: nodes
//! without the label share no domain. Below the last level of a Topology there is always the level
//! `node`.

use crate::facts::{Labels, TopologyLevel, Uid, label};
use crate::ids::{DomainId, Id, NodeId, Slab};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};
use smallvec::SmallVec;

/// The level below the last one of every Topology.
pub(crate) const NODE_LEVEL: &str = "node";

/// A level that a gang may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Level {
    /// The level with this number in the Topology; 0 is the top level.
    Domain(usize),
    /// The level `node`.
    Node,
}

/// The name of a domain under its parent. Domains with a label come before domains of lonely nodes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DomainName {
    /// The value of the level's label.
    Label(Box<str>),
    /// The name of a node that does not have the label and is a domain of its own.
    Lonely(Box<str>),
}

impl DomainName {
    fn is_label(&self) -> bool {
        matches!(self, Self::Label(_))
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Label(name) | Self::Lonely(name) => name,
        }
    }
}

/// The domains of one node, one for each level, from the top down.
pub(crate) type DomainPath = SmallVec<[DomainId; 4]>;

/// A level whose label no node has, or only with values that name no domain.
#[derive(Debug)]
pub(crate) struct Unlabelled {
    /// What is wrong and what it means, in words for users.
    pub(crate) sentence: String,
    /// Whether nodes have the label of a lower level. The missing label then splits the domains of
    /// that level into single nodes.
    pub(crate) splits: bool,
}

/// A domain and its position in the tree.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) name: DomainName,
    pub(crate) parent: Option<DomainId>,
    pub(crate) level: usize,
    pub(crate) children: BTreeMap<DomainName, DomainId>,
    /// The nodes of a domain of the last level, by name; empty in domains of higher levels.
    pub(crate) nodes: BTreeMap<Box<str>, NodeId>,
}

/// The levels of a Topology object and the domains into which they divide the nodes.
#[derive(Debug)]
pub(crate) struct Topology {
    pub(crate) levels: Vec<TopologyLevel>,
    /// The uid of the Topology object; `Uid(0)` if there is no object, as where a gang requires a
    /// bare node label.
    pub(crate) uid: Uid,
    /// By level: how many nodes have its label with a value that names a domain.
    labelled: Vec<u32>,
    /// Levels, by number, and nodes that have the label of the level with a value that names no
    /// domain.
    without_domain: BTreeSet<(usize, NodeId)>,
    nodes: u32,
    /// Domains of the first level.
    roots: BTreeMap<DomainName, DomainId>,
    domains: Slab<DomainId, Domain>,
    paths: Vec<DomainPath>,
    /// Rises whenever a node enters, leaves or moves, so that sums over domains are made anew.
    pub(crate) version: u64,
}

impl Topology {
    pub(crate) fn new(levels: Vec<TopologyLevel>, uid: Uid) -> Self {
        Self {
            labelled: alloc::vec![0; levels.len()],
            without_domain: BTreeSet::new(),
            nodes: 0,
            levels,
            uid,
            roots: BTreeMap::new(),
            domains: Slab::new(),
            paths: Vec::new(),
            version: 0,
        }
    }

    /// The number of the first level at which no node's label names a domain; `None` if there is no
    /// such level, or no node.
    pub(crate) fn unlabelled_level(&self) -> Option<usize> {
        let level = self.labelled.iter().position(|nodes| *nodes == 0);
        level.filter(|_| self.nodes > 0)
    }

    /// The level of [`Topology::unlabelled_level`], explained.
    pub(crate) fn unlabelled(&self) -> Option<Unlabelled> {
        let at = self.unlabelled_level()?;
        let TopologyLevel { name, node_label } = &self.levels[at];
        let why = if self.without_domain.iter().any(|(level, _)| *level == at) {
            format!(
                "the label {node_label} of the level {name} is empty or all zeros on every node \
                 that has it, which means no domain"
            )
        } else {
            format!("no node has the label {node_label} of the level {name}")
        };
        Some(Unlabelled {
            sentence: format!("{why}, so every node is a domain of its own there and below"),
            splits: self.labelled[at..].iter().any(|nodes| *nodes > 0),
        })
    }

    /// The level with this name; `None` if the topology has no such level.
    pub(crate) fn level(&self, name: &str) -> Option<Level> {
        let position = self.levels.iter().position(|level| &*level.name == name);
        position
            .map(Level::Domain)
            .or((name == NODE_LEVEL).then_some(Level::Node))
    }

    /// The domains of a node, from the top down; empty if the node is not in the topology.
    pub(crate) fn path(&self, node: NodeId) -> &[DomainId] {
        self.paths.get(node.index()).map_or(&[], |path| path)
    }

    /// Whether the domain, or a domain above it, is that of a lonely node, so that no other node
    /// can join.
    pub(crate) fn is_of_one_node(&self, domain: DomainId) -> bool {
        let mut above = core::iter::successors(Some(domain), |domain| self.domains[*domain].parent);
        above.any(|domain| !self.domains[domain].name.is_label())
    }

    pub(crate) fn domain(&self, domain: DomainId) -> &Domain {
        &self.domains[domain]
    }

    /// One more than the index of the largest domain id.
    pub(crate) fn bound(&self) -> usize {
        self.domains.bound()
    }

    /// All domains of a level in the domain `inside` (`inside` itself, if it is of this level), or
    /// in the whole topology if `None`. Sorted by path.
    pub(crate) fn domains_at(&self, level: usize, inside: Option<DomainId>) -> Vec<DomainId> {
        let mut row: Vec<DomainId> = match inside {
            Some(domain) => Vec::from([domain]),
            None => self.roots.values().copied().collect(),
        };
        let mut depth = inside.map_or(0, |domain| self.domains[domain].level);
        while depth < level {
            row = row
                .iter()
                .flat_map(|d| self.domains[*d].children.values().copied())
                .collect();
            depth += 1;
        }
        row
    }

    /// All nodes of a domain, sorted by path and name.
    pub(crate) fn nodes_in(&self, domain: DomainId, into: &mut Vec<NodeId>) {
        let last = self.levels.len().saturating_sub(1);
        for domain in self.domains_at(last, Some(domain)) {
            into.extend(self.domains[domain].nodes.values().copied());
        }
    }

    /// The domain's full name: `zone-a/rack-3`.
    pub(crate) fn display(&self, domain: DomainId) -> String {
        let mut names: SmallVec<[&str; 4]> = SmallVec::new();
        let mut next = Some(domain);
        while let Some(id) = next {
            names.push(self.domains[id].name.as_str());
            next = self.domains[id].parent;
        }
        names.reverse();
        names.join("/")
    }

    /// The names of a node's domains by its labels, from the top down. Nodes are filled in the
    /// order of these names.
    pub(crate) fn names(&self, node_name: &str, labels: &Labels) -> SmallVec<[DomainName; 4]> {
        self.levels
            .iter()
            .map(|level| match identifier(labels, &level.node_label) {
                Some(value) => DomainName::Label(value.into()),
                None => DomainName::Lonely(node_name.into()),
            })
            .collect()
    }

    /// Puts a node into the domains that its labels name; moves it if it was in others.
    pub(crate) fn place(&mut self, node: NodeId, node_name: &str, labels: &Labels) {
        for (at, level) in self.levels.iter().enumerate() {
            let key = &level.node_label;
            if label(labels, key).is_some() && identifier(labels, key).is_none() {
                self.without_domain.insert((at, node));
            } else {
                self.without_domain.remove(&(at, node));
            }
        }
        let names = self.names(node_name, labels);
        let same = {
            let path = self.path(node);
            !path.is_empty()
                && path
                    .iter()
                    .zip(&names)
                    .all(|(domain, name)| self.domains[*domain].name == *name)
        };
        if same {
            return;
        }
        self.take_out(node, node_name);
        self.version += 1;
        self.nodes += 1;
        let mut path = DomainPath::new();
        for (level, name) in names.into_iter().enumerate() {
            self.labelled[level] += u32::from(name.is_label());
            path.push(self.child(path.last().copied(), level, name));
        }
        if let Some(last) = path.last() {
            self.domains[*last].nodes.insert(node_name.into(), node);
        }
        if self.paths.len() <= node.index() {
            self.paths.resize(node.index() + 1, DomainPath::new());
        }
        self.paths[node.index()] = path;
    }

    /// Takes a node out, and removes the domains that are empty without it.
    pub(crate) fn remove(&mut self, node: NodeId, node_name: &str) {
        for level in 0..self.levels.len() {
            self.without_domain.remove(&(level, node));
        }
        self.take_out(node, node_name);
    }

    fn take_out(&mut self, node: NodeId, node_name: &str) {
        let Some(path) = self.paths.get_mut(node.index()).map(core::mem::take) else {
            return;
        };
        let Some(last) = path.last() else { return };
        self.version += 1;
        self.nodes -= 1;
        for (level, domain) in path.iter().enumerate() {
            self.labelled[level] -= u32::from(self.domains[*domain].name.is_label());
        }
        self.domains[*last].nodes.remove(node_name);
        for id in path.iter().rev() {
            let domain = &self.domains[*id];
            if !domain.nodes.is_empty() || !domain.children.is_empty() {
                break;
            }
            let Some(domain) = self.domains.remove(*id) else {
                break;
            };
            match domain.parent {
                Some(parent) => self.domains[parent].children.remove(&domain.name),
                None => self.roots.remove(&domain.name),
            };
        }
    }

    fn child(&mut self, parent: Option<DomainId>, level: usize, name: DomainName) -> DomainId {
        let siblings = match parent {
            Some(parent) => &self.domains[parent].children,
            None => &self.roots,
        };
        if let Some(id) = siblings.get(&name) {
            return *id;
        }
        let id = self.domains.insert(Domain {
            name: name.clone(),
            parent,
            level,
            children: BTreeMap::new(),
            nodes: BTreeMap::new(),
        });
        match parent {
            Some(parent) => self.domains[parent].children.insert(name, id),
            None => self.roots.insert(name, id),
        };
        id
    }
}

/// The domain that a label names. An empty value names none, nor does an identifier of all zeros,
/// which GPU feature discovery writes as the clique of nodes that share no NVLink with others.
fn identifier<'a>(labels: &'a Labels, key: &str) -> Option<&'a str> {
    const NO_CLUSTER: &str = "00000000-0000-0000-0000-000000000000";
    label(labels, key).filter(|value| !value.is_empty() && !value.starts_with(NO_CLUSTER))
}

/// The order in which equally good nodes are filled: by their path in the Topology `default`, then
/// by name; when each node was first seen does not matter. Filling in this order keeps the racks at
/// the end of it free as a whole.
///
/// Each node has a rank. Ranks leave gaps, so that a new node rarely changes the ranks of others.
#[derive(Debug, Default)]
pub(crate) struct NodeOrder {
    ranks: BTreeMap<OrderKey, (u64, NodeId)>,
    /// All ranks with their nodes, sorted.
    row: Vec<(u64, NodeId)>,
}

/// A node's path and name.
pub(crate) type OrderKey = (SmallVec<[DomainName; 4]>, Box<str>);

/// The gap between the ranks of two nodes that are ranked one after the other.
const RANK_GAP: u64 = 1 << 32;

impl NodeOrder {
    /// Ranks a new node and returns its rank. `None`: there was no gap left, so every node has a
    /// new rank.
    pub(crate) fn insert(&mut self, key: OrderKey, node: NodeId) -> Option<u64> {
        let before = self
            .ranks
            .range(..&key)
            .next_back()
            .map_or(0, |(_, (rank, _))| *rank);
        let after = self.ranks.range(&key..).next().map(|(_, (rank, _))| *rank);
        let rank = match after {
            Some(after) => before + (after - before) / 2,
            None => before.saturating_add(RANK_GAP),
        };
        let taken = rank <= before || after.is_some_and(|after| rank >= after);
        self.ranks.insert(key, (rank, node));
        if !taken {
            self.row.insert(self.position(rank), (rank, node));
            return Some(rank);
        }
        for (position, (rank, _)) in (1u64..).zip(self.ranks.values_mut()) {
            *rank = position * RANK_GAP;
        }
        self.row = self.ranks.values().copied().collect();
        None
    }

    pub(crate) fn remove(&mut self, key: &OrderKey) {
        if let Some((rank, _)) = self.ranks.remove(key) {
            self.row.remove(self.position(rank));
        }
    }

    /// How many nodes have a lower rank.
    fn position(&self, rank: u64) -> usize {
        self.row.partition_point(|(other, _)| *other < rank)
    }

    /// A rank that does not depend on when nodes came: the one that the node with this rank would
    /// have if all nodes had been ranked anew.
    pub(crate) fn number(&self, rank: u64) -> u64 {
        (self.position(rank) as u64 + 1).saturating_mul(RANK_GAP)
    }

    /// All nodes with their ranks, lowest rank first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, u64)> {
        self.row.iter().map(|(rank, node)| (*node, *rank))
    }

    pub(crate) fn clear(&mut self) {
        self.ranks.clear();
        self.row.clear();
    }
}
