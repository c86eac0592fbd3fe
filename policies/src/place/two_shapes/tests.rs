//! Compares the counting of two shapes with trying every number of pods on each node.

use super::super::problem::{Problem, Rule, Shape, Step};
use super::{SliceResult, TwoShapes};
use crate::ids::{ClassId, Id, NodeId, PodId};
use alloc::{collections::BTreeSet, vec, vec::Vec};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn size(&mut self, bound: u64) -> usize {
        usize::try_from(self.below(bound)).unwrap()
    }
}

/// Pods of two shapes with these amounts on nodes with so much room.
fn problem(rooms: &[[u64; 3]], amounts: [[u64; 3]; 2], pods: [usize; 2], need: usize) -> Problem {
    let nodes = rooms.len();
    let shape = |amounts: [u64; 3]| Shape {
        class: ClassId::new(0),
        amounts: amounts.into(),
        eligible: vec![true; nodes],
        counted: Vec::new(),
    };
    let mut steps = Vec::new();
    for (shape, pods) in pods.into_iter().enumerate() {
        for _ in 0..pods {
            let pod = PodId::new(u32::try_from(steps.len()).unwrap());
            let leaf = 0;
            steps.push(Step::Member { leaf, shape, pod });
        }
    }
    let rule = Rule {
        parent: 0,
        need,
        offered: steps.len(),
        domains: None,
        fixed: None,
        twin: None,
        end: steps.len(),
    };
    Problem {
        nodes: (0..u32::try_from(nodes).unwrap())
            .map(NodeId::new)
            .collect(),
        dimensions: 3,
        free: rooms.iter().flatten().copied().collect(),
        kinds: vec![0; nodes],
        models: vec![None; nodes],
        budgets: Vec::new(),
        shapes: amounts.map(shape).into(),
        steps,
        groups: vec![rule],
        exact: true,
    }
}

fn holds(room: [u64; 3], amounts: [[u64; 3]; 2], pods: [usize; 2]) -> bool {
    let pods = pods.map(|pods| pods as u64);
    (0..3).all(|d| pods[0] * amounts[0][d] + pods[1] * amounts[1][d] <= room[d])
}

/// The most pods of both shapes together that fit, by all pairs of numbers that can be reached.
fn most(rooms: &[[u64; 3]], amounts: [[u64; 3]; 2], pods: [usize; 2]) -> usize {
    let mut reached = BTreeSet::from([(0, 0)]);
    for room in rooms {
        let mut next = BTreeSet::new();
        for (a, b) in reached {
            for more in (0..).take_while(|more| holds(*room, amounts, [*more, 0])) {
                let rest = (0..).take_while(|rest| holds(*room, amounts, [more, *rest]));
                next.extend(rest.map(|rest| {
                    let sum = |known: usize, more: usize, pods: usize| (known + more).min(pods);
                    (sum(a, more, pods[0]), sum(b, rest, pods[1]))
                }));
            }
        }
        reached = next;
    }
    reached.into_iter().map(|(a, b)| a + b).max().unwrap()
}

/// The most pods that fit on many nodes, as [`most`] counts them on few: by number of pods of the
/// first shape, the most of the second.
fn most_of_many(rooms: &[[u64; 3]], amounts: [[u64; 3]; 2], pods: [usize; 2]) -> usize {
    let mut most = vec![None; pods[0] + 1];
    most[0] = Some(0);
    for room in rooms {
        let mut next = vec![None; most.len()];
        for (a, b) in most.iter().enumerate() {
            let Some(b) = *b else { continue };
            let more = (0..).take_while(|more| holds(*room, amounts, [*more, 0]));
            for more in more.take(pods[0] + 1 - a) {
                let rest = (0..).take_while(|rest| holds(*room, amounts, [more, *rest]));
                let entry = &mut next[a + more];
                let sum: usize = b + rest.count() - 1;
                *entry = (*entry).max(Some(sum.min(pods[1])));
            }
        }
        most = next;
    }
    let sums = most.iter().enumerate();
    sums.filter_map(|(a, b)| Some(a + (*b)?)).max().unwrap()
}

/// Runs to the end in slices of so many steps: what was placed, if all that is needed was; and how
/// many slices it took.
fn count(problem: Problem, slice: u64) -> (Option<Vec<(PodId, NodeId)>>, usize) {
    let mut counting = TwoShapes::new(problem);
    for slices in 1.. {
        match counting.run(&mut { slice }) {
            SliceResult::Found(placed) => return (Some(placed), slices),
            SliceResult::Impossible => return (None, slices),
            SliceResult::Unfinished => {}
        }
    }
    unreachable!()
}

/// Each pod at most once, as many as are needed, and no node too full.
fn check(placed: &[(PodId, NodeId)], problem: &Problem) {
    assert!(placed.len() >= problem.groups[0].need);
    let mut free = problem.free.clone();
    let mut seen = BTreeSet::new();
    for (pod, node) in placed {
        assert!(seen.insert(*pod), "{pod:?} twice");
        let Step::Member { shape, .. } = problem.steps[pod.index()] else {
            panic!("no member");
        };
        for (dimension, amount) in problem.shapes[shape].amounts.iter().enumerate() {
            let left = &mut free[3 * node.index() + dimension];
            *left = left.checked_sub(*amount).expect("a node is too full");
        }
    }
}

fn draw(random: &mut Random, most: u64, nodes: u64) -> (Vec<[u64; 3]>, [[u64; 3]; 2]) {
    // Few different rooms, so that many nodes are alike.
    let kinds: Vec<[u64; 3]> = (0..1 + random.below(4))
        .map(|_| [(); 3].map(|()| random.below(most)))
        .collect();
    let rooms = (0..nodes).map(|_| kinds[random.size(kinds.len() as u64)]);
    let rooms = rooms.collect();
    let mut amounts = [[(); 3]; 2].map(|shape| shape.map(|()| random.below(4)));
    for shape in &mut amounts {
        shape[0] += 1;
    }
    (rooms, amounts)
}

#[test]
fn it_counts_what_following_every_number_counts() {
    let random = &mut Random(1);
    let (mut found, mut impossible) = (0, 0);
    for _ in 0..600 {
        let nodes = 1 + random.below(9);
        let (rooms, amounts) = draw(random, 12, nodes);
        let pods = [(); 2].map(|()| 1 + random.size(12));
        let most = most(&rooms, amounts, pods);
        for need in [most, most + 1] {
            if need == 0 || need > pods[0] + pods[1] {
                continue;
            }
            let problem = problem(&rooms, amounts, pods, need);
            let (placed, _) = count(problem.clone(), 1 + random.below(5));
            assert_eq!(placed.is_some(), need == most, "{rooms:?} {problem:?}");
            match placed {
                Some(placed) => check(&placed, &problem),
                None => impossible += 1,
            }
            found += usize::from(need == most);
        }
    }
    assert!(found > 300 && impossible > 100, "{found} {impossible}");
}

#[test]
fn the_slow_methods_agree() {
    let random = &mut Random(2);
    for _ in 0..100 {
        let (rooms, amounts) = draw(random, 10, 5);
        let pods = [(); 2].map(|()| 1 + random.size(9));
        let many = most_of_many(&rooms, amounts, pods);
        assert_eq!(most(&rooms, amounts, pods), many);
    }
}

#[test]
fn hundreds_of_pods_on_thousands_of_nodes_are_counted_in_a_few_slices() {
    let random = &mut Random(3);
    // On most nodes little is free, and CPUs and GPUs in all proportions.
    let room = |_| [random.below(40), random.below(5) / 4, 110];
    let rooms: Vec<[u64; 3]> = (0..5_000).map(room).collect();
    let amounts = [[11, 1, 1], [23, 0, 1]];
    let pods = [700, 4_000];
    let most = most_of_many(&rooms, amounts, pods);
    assert!(most < 4_700, "{most}");
    for need in [most, most + 1] {
        let problem = problem(&rooms, amounts, pods, need);
        assert!(TwoShapes::suits(&problem));
        let (placed, slices) = count(problem.clone(), 40_000);
        assert!(slices < 20, "{slices}");
        assert_eq!(placed.is_some(), need == most);
        if let Some(placed) = placed {
            check(&placed, &problem);
        }
    }
}
