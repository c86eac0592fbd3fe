//! A gang and a cluster, drawn from a seed.

/// The levels of the Topology, farthest first; `node` is below them.
pub(crate) const LEVELS: [&str; 2] = ["zone", "rack"];

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) nodes: Vec<Node>,
    /// Group 0 is the gang itself; parents stand before their children.
    pub(crate) groups: Vec<Group>,
    pub(crate) pods: Vec<Pod>,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) cpus: u64,
    pub(crate) gpus: u64,
    /// The values of the levels' labels, where it has them.
    pub(crate) labels: [Option<u64>; 2],
    /// It has the label that some pods select.
    pub(crate) fast: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) parent: usize,
    pub(crate) minimum: usize,
    /// 0, 1: a level; 2: one node.
    pub(crate) required: Option<usize>,
    pub(crate) preferred: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) leaf: usize,
    pub(crate) cpus: u64,
    pub(crate) gpus: u64,
    /// It takes the one port that all such pods want.
    pub(crate) port: bool,
    pub(crate) fast: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Middle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Any,
    /// At most two shapes, and no domains but of the gang itself.
    TwoShapes,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick(&mut self, choices: &[u64]) -> u64 {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }

    fn count(&mut self, low: u64, high: u64) -> usize {
        usize::try_from(self.between(low, high)).unwrap()
    }
}

impl Case {
    pub(crate) fn draw(seed: u64, size: Size, kind: Kind) -> Self {
        let mut random = Random(seed.wrapping_mul(0x0123_4567_89AB_CDEF).wrapping_add(seed));
        let nodes = match size {
            Size::Small => random.count(1, 5),
            Size::Middle => random.count(7, 10),
        };
        let nodes = (0..nodes).map(|_| node(&mut random, size)).collect();
        let mut case = Self {
            nodes,
            groups: Vec::new(),
            pods: Vec::new(),
        };
        case.draw_groups(&mut random, kind);
        case.draw_pods(&mut random, size, kind);
        case.draw_minima(&mut random);
        case
    }

    /// Nodes with so many free GPUs, and a gang of pods that need so many, all of them.
    pub(crate) fn flat(free: &[u64], pods: &[u64]) -> Self {
        let node = |gpus: &u64| Node {
            cpus: 100,
            gpus: *gpus,
            labels: [None, None],
            fast: false,
        };
        let pod = |gpus: &u64| Pod {
            leaf: 0,
            cpus: 1,
            gpus: *gpus,
            port: false,
            fast: false,
        };
        Self {
            nodes: free.iter().map(node).collect(),
            groups: vec![group(0)],
            pods: pods.iter().map(pod).collect(),
        }
        .with_all_needed()
    }

    fn with_all_needed(mut self) -> Self {
        self.groups[0].minimum = self.pods.len();
        self
    }

    fn draw_groups(&mut self, random: &mut Random, kind: Kind) {
        self.groups.push(group(0));
        if random.percent(65) {
            for _ in 0..random.count(1, 4) {
                let inner = random.percent(25);
                let index = self.groups.len();
                self.groups.push(group(0));
                if inner {
                    for _ in 0..random.count(1, 2) {
                        self.groups.push(group(index));
                    }
                }
            }
        }
        for index in 0..self.groups.len() {
            if index > 0 && kind == Kind::TwoShapes {
                break;
            }
            let percent = if index == 0 { 40 } else { 45 };
            // Never wider than what a group above requires.
            let mut widest = 0;
            let mut above = index;
            while above != 0 {
                above = self.groups[above].parent;
                widest = widest.max(self.groups[above].required.unwrap_or(0));
            }
            if random.percent(percent) {
                let level = random.count(0, 10) % 3;
                self.groups[index].required = Some(level.max(widest));
            }
            if random.percent(25) {
                self.groups[index].preferred = Some(random.count(0, 2));
            }
        }
    }

    fn draw_pods(&mut self, random: &mut Random, size: Size, kind: Kind) {
        let shapes = match kind {
            Kind::Any => random.count(1, 4),
            Kind::TwoShapes => random.count(1, 2),
        };
        let shapes: Vec<Pod> = (0..shapes).map(|_| pod(random)).collect();
        let leaves: Vec<usize> = (0..self.groups.len())
            .filter(|index| self.is_leaf(*index))
            .collect();
        let most = match size {
            Size::Small => (7 / leaves.len()).clamp(1, 4),
            Size::Middle => (16 / leaves.len()).clamp(2, 8),
        };
        for leaf in leaves {
            for _ in 0..random.count(1, most as u64) {
                let shape = &shapes[random.count(0, shapes.len() as u64 - 1)];
                let shape = shape.clone();
                self.pods.push(Pod { leaf, ..shape });
            }
        }
    }

    fn draw_minima(&mut self, random: &mut Random) {
        for index in 0..self.groups.len() {
            let all = if self.is_leaf(index) {
                self.pods.iter().filter(|pod| pod.leaf == index).count()
            } else {
                self.children(index).count()
            };
            let fewer = random.percent(35);
            self.groups[index].minimum = if fewer {
                random.count(1, all as u64)
            } else {
                all
            };
        }
    }

    pub(crate) fn children(&self, index: usize) -> impl Iterator<Item = usize> {
        let groups = self.groups.iter().enumerate().skip(1);
        groups
            .filter(move |(_, group)| group.parent == index)
            .map(|(child, _)| child)
    }

    pub(crate) fn is_leaf(&self, index: usize) -> bool {
        self.children(index).next().is_none()
    }

    /// The groups of a pod, from its leaf to the gang.
    pub(crate) fn groups_of(&self, leaf: usize) -> Vec<usize> {
        let mut groups = vec![leaf];
        let mut index = leaf;
        while index != 0 {
            index = self.groups[index].parent;
            groups.push(index);
        }
        groups
    }

    /// What a node is in at a level: nodes without a label are alone.
    pub(crate) fn domain(&self, node: usize, level: usize) -> Vec<String> {
        let path = |level: usize| match self.nodes[node].labels.get(level) {
            Some(Some(value)) => format!("{value}"),
            _ => format!("alone-{node}"),
        };
        (0..=level).map(path).collect()
    }

    /// Whether the minima of all levels are met with so many pods in each leaf.
    pub(crate) fn is_met(&self, index: usize, pods: &[usize]) -> bool {
        let group = &self.groups[index];
        if self.is_leaf(index) {
            return pods[index] >= group.minimum;
        }
        let met = self
            .children(index)
            .filter(|child| self.is_met(*child, pods));
        met.count() >= group.minimum
    }
}

fn group(parent: usize) -> Group {
    Group {
        parent,
        minimum: 1,
        required: None,
        preferred: None,
    }
}

fn node(random: &mut Random, size: Size) -> Node {
    let (zones, racks) = match size {
        Size::Small => (2, 2),
        Size::Middle => (2, 3),
    };
    let zone = random.percent(90).then(|| random.below(zones));
    let rack = random.percent(85).then(|| random.below(racks));
    Node {
        cpus: random.between(2, 8),
        gpus: random.pick(&[0, 2, 3, 4, 4, 8, 8]),
        labels: [zone, rack],
        fast: random.percent(50),
    }
}

fn pod(random: &mut Random) -> Pod {
    Pod {
        leaf: 0,
        cpus: random.between(1, 3),
        gpus: random.pick(&[0, 1, 2, 2, 3, 4]),
        port: random.percent(8),
        fast: random.percent(10),
    }
}
