//! Tries every way to place the pods.

use super::case::Case;

/// Whether any placement of any of the pods meets the minima and all rules.
pub(crate) fn fits(case: &Case) -> bool {
    let mut search = Search {
        case,
        cpus: case.nodes.iter().map(|node| node.cpus).collect(),
        gpus: case.nodes.iter().map(|node| node.gpus).collect(),
        ports: vec![false; case.nodes.len()],
        domains: vec![Vec::new(); case.groups.len()],
        pods: vec![0; case.groups.len()],
    };
    search.descend(0)
}

struct Search<'case> {
    case: &'case Case,
    cpus: Vec<u64>,
    gpus: Vec<u64>,
    ports: Vec<bool>,
    /// By group with a required level: the domains of its pods so far.
    domains: Vec<Vec<Vec<String>>>,
    pods: Vec<usize>,
}

impl Search<'_> {
    fn descend(&mut self, next: usize) -> bool {
        let case = self.case;
        if case.is_met(0, &self.pods) {
            return true;
        }
        let Some(pod) = case.pods.get(next) else {
            return false;
        };
        for (node, facts) in case.nodes.iter().enumerate() {
            let has_room = pod.cpus <= self.cpus[node]
                && pod.gpus <= self.gpus[node]
                && !(pod.port && self.ports[node])
                && (facts.fast || !pod.fast);
            if !has_room || !self.may_be_in_domain(pod.leaf, node) {
                continue;
            }
            let port_before = self.ports[node];
            self.cpus[node] -= pod.cpus;
            self.gpus[node] -= pod.gpus;
            self.ports[node] |= pod.port;
            self.pods[pod.leaf] += 1;
            for group in case.groups_of(pod.leaf) {
                if let Some(level) = case.groups[group].required {
                    self.domains[group].push(case.domain(node, level));
                }
            }
            if self.descend(next + 1) {
                return true;
            }
            for group in case.groups_of(pod.leaf) {
                self.domains[group].pop();
            }
            self.pods[pod.leaf] -= 1;
            self.cpus[node] += pod.cpus;
            self.gpus[node] += pod.gpus;
            self.ports[node] = port_before;
        }
        self.descend(next + 1)
    }

    fn may_be_in_domain(&self, leaf: usize, node: usize) -> bool {
        self.case.groups_of(leaf).into_iter().all(|group| {
            let Some(level) = self.case.groups[group].required else {
                return true;
            };
            let domain = self.case.domain(node, level);
            self.domains[group].iter().all(|other| *other == domain)
        })
    }
}
