//! Single pods with rules and preferences about other pods, in the shapes of `scheduler_perf`:
//! required anti-affinity by host, spread over three zones, preferred terms by host, and a mix of
//! all while pods come and go, or while nodes and pods without a place do, too
//! (`SchedulingWithMixedChurn`).

use super::facts::{node, pod, running, shape};
use super::policy;
use super::session::Session;
use crate::lab::bench::row::over_sizes;
use crate::lab::bench::{Bound, Row, as_f64, median};
use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::{
    LabelSelector, Labels, NodeFacts, PodFacts, PodLabels, PodSelection, PodShape, PodTerm,
    Preferences, PreferredPods, Relations, SpreadRule,
};
use std::sync::Arc;
use std::time::Duration;

/// Numbers of nodes; the target is for the last number.
const SIZES: [usize; 3] = [1_250, 2_500, 5_000];
/// How many pods run on each node before.
const RUNNING_PER_NODE: usize = 10;
/// One node of so many has a pod with a rule before.
const WITH_RULE: usize = 5;
const ZONES: usize = 3;
const REPEATS: usize = 3;
/// How many pods come in one step where pods come and go.
const ARRIVALS: usize = 100;
const MIB: u64 = 1 << 20;
const HOST: &str = "kubernetes.io/hostname";

/// A sort of pods, by the rule that they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Plain,
    Near,
    Apart,
    Spread,
    Drawn,
    Repelled,
}

/// Pods to be placed, and how they come.
struct Case {
    name: &'static str,
    /// The pods are of these sorts in turn.
    sorts: &'static [Sort],
    /// How many come, in tenths of the number of nodes.
    tenths: usize,
    churn: Churn,
}

/// What comes and goes while the pods of a case come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Churn {
    /// Nothing: all pods come at once.
    None,
    /// They come step by step, and as many of those that run go.
    Pods,
    /// A node and a pod too large for any come with each step, too, and go with the next.
    Mixed,
}

/// All sorts in turn.
const ALL_SORTS: [Sort; 6] = [
    Sort::Plain,
    Sort::Near,
    Sort::Apart,
    Sort::Spread,
    Sort::Drawn,
    Sort::Repelled,
];

const CASES: [Case; 5] = [
    Case {
        name: "required anti-affinity by host",
        sorts: &[Sort::Apart],
        tenths: 6,
        churn: Churn::None,
    },
    Case {
        name: "spread over 3 zones",
        sorts: &[Sort::Spread],
        tenths: 10,
        churn: Churn::None,
    },
    Case {
        name: "preferred affinity and anti-affinity by host",
        sorts: &[Sort::Drawn, Sort::Repelled],
        tenths: 10,
        churn: Churn::None,
    },
    Case {
        name: "a mix of all, as many pods go",
        sorts: &ALL_SORTS,
        tenths: 10,
        churn: Churn::Pods,
    },
    Case {
        name: "a mix of all, as many pods go, nodes and pods without a place come and go",
        sorts: &ALL_SORTS,
        tenths: 10,
        churn: Churn::Mixed,
    },
];

pub(super) fn measure() -> Vec<Row> {
    let cases = CASES.iter();
    cases
        .flat_map(|case| over_sizes(SIZES, |nodes| at_size(nodes, case)))
        .collect()
}

fn at_size(nodes: usize, case: &Case) -> Vec<Row> {
    let (run, come) = (nodes * RUNNING_PER_NODE, nodes * case.tenths / 10);
    let name = case.name;
    let scenario = format!("{come} pods, {name}, {nodes} nodes, {run} pods run");
    let runs: Vec<[Duration; 2]> = (0..REPEATS).map(|_| one_run(nodes, case)).collect();
    let rate = |which: usize| {
        let rates = runs
            .iter()
            .map(|run| as_f64(come) / run[which].as_secs_f64());
        median(rates.collect())
    };
    let placing = Row::new("placing related pods", scenario.clone(), rate(0), "pods/s");
    let placing = match nodes == SIZES[SIZES.len() - 1] {
        true => placing.against(Bound::AtLeast, 20_000.0, "target"),
        false => placing,
    };
    let binding = "placing and binding related pods";
    vec![placing, Row::new(binding, scenario, rate(1), "pods/s")]
}

/// The time in which all pods are decided, and the time until all binds are answered and reported.
fn one_run(nodes: usize, case: &Case) -> [Duration; 2] {
    let sorts = case.sorts.iter().map(|sort| sort.pods());
    let sorts: Vec<(Arc<PodShape>, PodLabels)> = sorts.collect();
    let plain = Sort::Plain.pods();
    let nodes: Vec<NodeFacts> = (0..nodes)
        .map(|number| node(number, 0, [number % ZONES, number / 100, number / 10]))
        .collect();
    let of = |number: usize, (shape, labels): &(Arc<PodShape>, PodLabels)| PodFacts {
        labels: labels.clone(),
        queue: Some(policy::team(number)),
        ..pod(number, shape)
    };
    let runs = (0..nodes.len() * RUNNING_PER_NODE).map(|number| {
        let sort = match number < nodes.len() / WITH_RULE {
            true => &sorts[number % sorts.len()],
            false => &plain,
        };
        running(of(number, sort), &nodes[number % nodes.len()])
    });
    let runs: Vec<PodFacts> = runs.collect();
    let comes = nodes.len() * case.tenths / 10;
    let coming = (runs.len()..runs.len() + comes)
        .map(|number| Object::Pod(of(number, &sorts[number % sorts.len()])).into());
    let coming: Vec<Event> = coming.collect();
    let world = nodes.iter().cloned().map(Object::Node);
    let world = world.chain(runs.iter().cloned().map(Object::Pod));
    let mut session = Session::with_policy(128, world);
    let listed = session.plan(Session::listed());
    session.settle(listed.commands);
    let mut steps: Vec<Vec<Event>> = match case.churn {
        Churn::None => vec![coming],
        Churn::Pods | Churn::Mixed => churn(&coming, &runs),
    };
    if case.churn == Churn::Mixed {
        let waiting = PodFacts {
            priority: 10,
            ..of(runs.len() + comes, &too_large())
        };
        pass_by(&mut steps, nodes.len(), &waiting);
    }
    let mut took = [Duration::ZERO; 2];
    for events in steps {
        let planned = session.plan(events);
        let answered = session.settle(planned.commands);
        took[0] += planned.took;
        took[1] += planned.took + answered;
    }
    assert_eq!(session.binds, comes, "every pod has room");
    took
}

/// The steps in which pods come, and as many of those that run go, those with rules first.
fn churn(coming: &[Event], runs: &[PodFacts]) -> Vec<Vec<Event>> {
    let go = |pod: &PodFacts| Event::Deleted(ObjectKey::Pod(pod.uid));
    let steps = coming.chunks(ARRIVALS).zip(runs.chunks(ARRIVALS));
    steps
        .map(|(come, gone)| gone.iter().map(go).chain(come.iter().cloned()).collect())
        .collect()
}

/// Has a node, and a pod like `waiting`, come with each step and go with the next. The node is the
/// same one each time, the `number`-th.
fn pass_by(steps: &mut [Vec<Event>], number: usize, waiting: &PodFacts) {
    let passing = node(number, 0, [number % ZONES, number / 100, number / 10]);
    for (events, comes) in steps.iter_mut().zip([true, false].into_iter().cycle()) {
        if !comes {
            events.push(Event::Deleted(ObjectKey::Pod(waiting.uid)));
            events.push(Event::Deleted(ObjectKey::Node(
                passing.name.clone(),
                passing.uid,
            )));
        } else {
            events.push(Object::Node(passing.clone()).into());
            events.push(Object::Pod(waiting.clone()).into());
        }
    }
}

/// Plain pods that no node has room for.
fn too_large() -> (Arc<PodShape>, PodLabels) {
    let (_, labels) = Sort::Plain.pods();
    (Arc::new(shape(1_000_000, 1, 0)), labels)
}

impl Sort {
    /// The shape of such pods, and their labels.
    fn pods(self) -> (Arc<PodShape>, PodLabels) {
        let labels: Labels = vec![("color".into(), format!("{self:?}").into())];
        let mut of = shape(100, 1, 0);
        for (name, amount) in &mut of.requests {
            if &**name == "memory" {
                *amount = 500 * MIB;
            }
        }
        match self {
            Self::Plain => {}
            Self::Near | Self::Apart | Self::Spread => {
                of.relations = Some(Box::new(self.rules(&labels)));
            }
            Self::Drawn => of.preferences = Some(Box::new(preferring(&labels, 1))),
            Self::Repelled => of.preferences = Some(Box::new(preferring(&labels, -1))),
        }
        (Arc::new(of), PodLabels::new(&labels, "", None))
    }

    fn rules(self, labels: &Labels) -> Relations {
        let term = |topology_key: &str| {
            vec![PodTerm {
                topology_key: topology_key.into(),
                selection: selection(labels),
                selects_own_labels: true,
            }]
        };
        let mut rules = Relations {
            namespace: "team".into(),
            ..Relations::default()
        };
        match self {
            Self::Near => rules.affinity = term("zone"),
            Self::Apart => rules.anti_affinity = term(HOST),
            _ => {
                rules.spread = vec![SpreadRule {
                    topology_key: "zone".into(),
                    max_skew: 5,
                    min_domains: 1,
                    labels: Some(selector(labels)),
                    selects_own_labels: true,
                    honors_affinity: true,
                    honors_taints: false,
                }];
            }
        }
        rules
    }
}

fn preferring(labels: &Labels, weight: i32) -> Preferences {
    Preferences {
        namespace: "team".into(),
        pods: vec![PreferredPods {
            weight,
            topology_key: HOST.into(),
            selection: selection(labels),
        }],
        ..Preferences::default()
    }
}

fn selection(labels: &Labels) -> PodSelection {
    PodSelection {
        namespaces: vec!["team".into()],
        namespace_selector: None,
        labels: Some(selector(labels)),
    }
}

fn selector(labels: &Labels) -> LabelSelector {
    LabelSelector {
        match_labels: labels.clone(),
        match_expressions: Vec::new(),
    }
}
