//! Compares the search, without the packing before it, with trying everything.

use super::super::greedy::Greedy;
use super::super::problem::{Problem, Rule, Shape, Step, nowhere};
use super::{Search, SliceResult};
use crate::ids::{ClassId, Id, NodeId, PodId};
use alloc::{vec, vec::Vec};

fn below(state: &mut u64, bound: u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    usize::try_from((*state >> 33) % bound).unwrap()
}

fn shapes(random: &mut u64, nodes: usize) -> Vec<Shape> {
    let shapes = 1 + below(random, 3);
    let shape = |_| Shape {
        class: ClassId::new(0),
        amounts: vec![below(random, 3) as u64, 1 + below(random, 3) as u64],
        eligible: (0..nodes).map(|_| below(random, 4) > 0).collect(),
        counted: Vec::new(),
    };
    (0..shapes).map(shape).collect()
}

fn problem(seed: u64) -> Problem {
    let random = &mut (seed + 1);
    let nodes = 1 + below(random, 4);
    let shapes = shapes(random, nodes);
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

/// How many needed pods have no node; `None`: those that have one break a rule.
fn missing(problem: &Problem, places: &[Option<usize>]) -> Option<usize> {
    let mut free = problem.free.clone();
    let mut placed = vec![0; problem.groups.len()];
    let mut domains: Vec<Option<u32>> = vec![None; problem.groups.len()];
    for (step, place) in problem.steps.iter().zip(places) {
        let (Step::Member { leaf, shape, .. }, Some(node)) = (*step, *place) else {
            continue;
        };
        let shape = &problem.shapes[shape];
        for (dimension, amount) in shape.amounts.iter().enumerate() {
            let left = &mut free[2 * node + dimension];
            *left = left.checked_sub(*amount)?;
        }
        if let Some(known) = &problem.groups[leaf].domains
            && *domains[leaf].get_or_insert(known[node]) != known[node]
        {
            return None;
        }
        if !shape.eligible[node] {
            return None;
        }
        placed[leaf] += 1;
    }
    let leaves = problem.groups.iter().zip(&placed).skip(1);
    let mut missing: Vec<usize> = leaves
        .map(|(rule, placed)| rule.need - rule.need.min(*placed))
        .collect();
    missing.sort_unstable();
    Some(missing.iter().take(problem.groups[0].need).sum())
}

fn holds(problem: &Problem, places: &[Option<usize>]) -> bool {
    missing(problem, places) == Some(0)
}

/// The fewest pods that can be left out.
fn fewest_missing(problem: &Problem, places: &mut Vec<Option<usize>>) -> usize {
    if places.len() == problem.steps.len() {
        return missing(problem, places).unwrap_or(usize::MAX);
    }
    let nodes = match problem.steps[places.len()] {
        Step::Enter { .. } => 0,
        Step::Member { .. } => problem.nodes.len(),
    };
    let mut fewest = usize::MAX;
    for place in (0..nodes).map(Some).chain([None]) {
        places.push(place);
        fewest = fewest.min(fewest_missing(problem, places));
        places.pop();
    }
    fewest
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
                SliceResult::Unfinished => {}
                progress => break progress,
            }
        };
        match progress {
            SliceResult::Found(placed) => {
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

#[test]
fn it_leaves_out_as_few_as_possible_and_a_greedy_packer_never_fewer() {
    let mut left_out = [0; 4];
    for seed in 0..400 {
        let problem = problem(seed);
        let truth = fewest_missing(&problem, &mut Vec::new());
        let leaves_out = |pods: usize| {
            let problem = match pods {
                0 => problem.clone(),
                pods => problem.leaving_out(pods),
            };
            match Search::new(problem).run(&mut 1_000_000) {
                SliceResult::Found(placed) => Some(placed),
                progress => {
                    assert_eq!(progress, SliceResult::Impossible, "{seed}");
                    None
                }
            }
        };
        let fewest = (0..).find(|pods| leaves_out(*pods).is_some()).unwrap();
        assert_eq!(fewest, truth, "{seed}: {problem:#?}");
        let mut places = vec![None; problem.steps.len()];
        for (pod, node) in leaves_out(fewest).unwrap() {
            places[pod.index()] = (node != nowhere()).then(|| node.index());
        }
        assert_eq!(
            missing(&problem, &places),
            Some(truth),
            "{seed}: {places:?}"
        );
        let greedy = Greedy::of(&problem);
        let mut places = vec![None; problem.steps.len()];
        for (step, node) in &greedy.placed {
            places[*step] = Some(*node);
        }
        assert!(greedy.left.len() >= truth, "{seed}: {problem:#?}");
        assert!(
            missing(&problem, &places).is_some_and(|missing| missing <= greedy.left.len()),
            "{seed}: {places:?} {problem:#?}"
        );
        left_out[truth.min(3)] += 1;
    }
    assert!(left_out.iter().all(|worlds| *worlds > 10), "{left_out:?}");
}
