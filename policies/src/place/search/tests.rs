//! The search alone, without the packing that goes before it, against trying everything.

use super::super::problem::{Problem, Rule, Shape, Step};
use super::{Progress, Search};
use crate::ids::{ClassId, Id, NodeId, PodId};
use alloc::{vec, vec::Vec};

fn below(state: &mut u64, bound: u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    usize::try_from((*state >> 33) % bound).unwrap()
}

fn problem(seed: u64) -> Problem {
    let random = &mut (seed + 1);
    let nodes = 1 + below(random, 4);
    let shapes = 1 + below(random, 3);
    let shapes: Vec<Shape> = (0..shapes)
        .map(|_| Shape {
            class: ClassId::new(0),
            amounts: vec![below(random, 3) as u64, 1 + below(random, 3) as u64],
            eligible: (0..nodes).map(|_| below(random, 4) > 0).collect(),
            gpus: 0,
        })
        .collect();
    let rule = |parent| Rule {
        parent,
        need: 0,
        offered: 0,
        domains: None,
        fixed: None,
        twin: None,
        end: 0,
    };
    let leaves = 1 + below(random, 3);
    let mut groups = vec![rule(0); 1 + leaves];
    groups[0].offered = leaves;
    groups[0].need = 1 + below(random, leaves as u64);
    let mut steps: Vec<Step> = Vec::new();
    let domains: Vec<u32> = (0..nodes)
        .map(|_| u32::from(below(random, 2) > 0))
        .collect();
    let mut known: Vec<(usize, Vec<usize>, usize, bool)> = Vec::new();
    for leaf in 1..=leaves {
        let mut pods: Vec<usize> = (0..1 + below(random, 3))
            .map(|_| below(random, shapes.len() as u64))
            .collect();
        pods.sort_unstable();
        let rule = &mut groups[leaf];
        rule.offered = pods.len();
        rule.need = 1 + below(random, pods.len() as u64);
        let tied = below(random, 2) > 0;
        rule.domains = tied.then(|| domains.clone());
        let alike = known.iter().rev();
        let mut alike = alike.filter(|(_, p, need, t)| (p, *need, *t) == (&pods, rule.need, tied));
        rule.twin = alike.next().map(|(leaf, ..)| *leaf);
        known.push((leaf, pods.clone(), rule.need, tied));
        let optional = groups[0].offered > groups[0].need;
        let end = steps.len() + pods.len() + usize::from(optional);
        if optional {
            steps.push(Step::Enter { group: leaf, end });
        }
        for shape in pods {
            let pod = PodId::new(u32::try_from(steps.len()).unwrap());
            steps.push(Step::Member { leaf, shape, pod });
        }
        groups[leaf].end = end;
    }
    groups[0].end = steps.len();
    let kinds = (0..nodes).map(|node| {
        let eligible = shapes.iter().map(|shape| u32::from(shape.eligible[node]));
        eligible.fold(domains[node], |kind, bit| 2 * kind + bit)
    });
    Problem {
        nodes: (0..4).take(nodes).map(NodeId::new).collect(),
        dimensions: 2,
        free: (0..2 * nodes).map(|_| below(random, 6) as u64).collect(),
        kinds: kinds.collect(),
        models: vec![None; nodes],
        budgets: Vec::new(),
        shapes,
        steps,
        groups,
        exact: true,
    }
}

/// Whether the pods that have nodes keep all rules.
fn holds(problem: &Problem, places: &[Option<usize>]) -> bool {
    let mut free = problem.free.clone();
    let mut placed = vec![0; problem.groups.len()];
    let mut domains: Vec<Option<u32>> = vec![None; problem.groups.len()];
    for (step, place) in problem.steps.iter().zip(places) {
        let (Step::Member { leaf, shape, .. }, Some(node)) = (*step, *place) else {
            continue;
        };
        let shape = &problem.shapes[shape];
        for (dimension, amount) in shape.amounts.iter().enumerate() {
            let Some(left) = free[2 * node + dimension].checked_sub(*amount) else {
                return false;
            };
            free[2 * node + dimension] = left;
        }
        if let Some(known) = &problem.groups[leaf].domains
            && *domains[leaf].get_or_insert(known[node]) != known[node]
        {
            return false;
        }
        if !shape.eligible[node] {
            return false;
        }
        placed[leaf] += 1;
    }
    let leaves = problem.groups.iter().zip(&placed).skip(1);
    let complete = leaves.filter(|(rule, placed)| **placed >= rule.need);
    complete.count() >= problem.groups[0].need
}

fn any_holds(problem: &Problem, places: &mut Vec<Option<usize>>) -> bool {
    if places.len() == problem.steps.len() {
        return holds(problem, places);
    }
    let nodes = match problem.steps[places.len()] {
        Step::Enter { .. } => 0,
        Step::Member { .. } => problem.nodes.len(),
    };
    for place in (0..nodes).map(Some).chain([None]) {
        places.push(place);
        if any_holds(problem, places) {
            return true;
        }
        places.pop();
    }
    false
}

#[test]
fn it_finds_a_place_exactly_where_there_is_one() {
    let (mut found, mut impossible) = (0, 0);
    for seed in 0..800 {
        let problem = problem(seed);
        let truth = any_holds(&problem, &mut Vec::new());
        let mut search = Search::new(problem.clone());
        // In slices of a few steps it comes to the same.
        let progress = loop {
            match search.run(&mut 7) {
                Progress::Unfinished => {}
                progress => break progress,
            }
        };
        match progress {
            Progress::Found(placed) => {
                let mut places = vec![None; problem.steps.len()];
                for (pod, node) in placed {
                    places[pod.index()] = Some(node.index());
                }
                assert!(holds(&problem, &places), "{seed}: {places:?} {problem:#?}");
                found += 1;
            }
            _ => {
                assert!(!truth, "{seed}: it fits: {problem:#?}");
                impossible += 1;
            }
        }
    }
    assert!(found > 100 && impossible > 100, "{found} {impossible}");
}
