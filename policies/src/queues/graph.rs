//! Which parents are real, and what is wrong with the queues that have none.

use crate::facts::{AMOUNT_MAX, QueueFacts};
use crate::status::QueueFault;
use alloc::{boxed::Box, collections::BTreeSet, format, string::String, vec, vec::Vec};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

/// How many names of a cycle a message shows.
const CYCLE_NAMES_SHOWN: usize = 8;

/// A fault and a sentence about it.
pub(super) type Fault = (QueueFault, Box<str>);

/// One queue's place.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// The parent's position; `None`: the root. A queue that is on a cycle, or whose parent does
    /// not exist, is accounted under the root, so that what it holds is not lost. So is one that
    /// makes no sense and has no sensible sibling: it does not make an inner queue of its parent.
    pub parent: Option<usize>,
    /// Why it is not Ready.
    pub fault: Option<Fault>,
}

/// The places of all queues, by position. `definitions` must be sorted by name.
///
/// Kosaraju's algorithm gives cycles (components of more than one queue, or a queue that is its own
/// parent) and the order, parents first, in one pass; petgraph's version of it keeps its stack on
/// the heap, so that no chain of parents, however long, overflows ours.
pub(super) fn places(definitions: &[&QueueFacts]) -> Vec<Place> {
    let parents: Vec<Option<usize>> = definitions
        .iter()
        .map(|facts| {
            let parent = facts.parent.as_deref()?;
            definitions
                .binary_search_by(|other| (*other.name).cmp(parent))
                .ok()
        })
        .collect();
    let mut graph = DiGraph::<(), (), usize>::default();
    for _ in definitions {
        graph.add_node(());
    }
    for (child, parent) in parents.iter().enumerate() {
        if let Some(parent) = *parent {
            graph.add_edge(NodeIndex::new(child), NodeIndex::new(parent), ());
        }
    }
    let components = kosaraju_scc(&graph);
    let is_cycle = |component: &[NodeIndex<usize>]| {
        let own_parent = |at: &NodeIndex<usize>| parents[at.index()] == Some(at.index());
        component.len() > 1 || component.iter().any(own_parent)
    };
    // Whether each queue has a child that makes sense.
    let mut inner = vec![false; definitions.len()];
    for component in components.iter().filter(|component| !is_cycle(component)) {
        for at in component.iter().map(|at| at.index()) {
            if let Some(parent) = parents[at] {
                inner[parent] |= invalid(definitions[at]).is_none();
            }
        }
    }
    let mut places = vec![Place::default(); definitions.len()];
    for component in components {
        let on_cycle = is_cycle(&component);
        for at in component.into_iter().map(NodeIndex::index) {
            let facts = definitions[at];
            places[at] = if on_cycle {
                Place {
                    parent: None,
                    fault: Some((QueueFault::Cycle, cycle_message(definitions, &parents, at))),
                }
            } else {
                let parent = parents[at];
                Place {
                    parent: parent.filter(|parent| inner[*parent]),
                    fault: orphan(facts, parent)
                        .or_else(|| invalid(facts))
                        .or_else(|| parent_not_ready(facts, parent.map(|at| &places[at]))),
                }
            };
        }
    }
    places
}

fn orphan(facts: &QueueFacts, parent: Option<usize>) -> Option<Fault> {
    let named = facts.parent.as_ref()?;
    if parent.is_some() {
        return None;
    }
    let message = format!("the parent {named} does not exist");
    Some((QueueFault::ParentNotFound, message.into()))
}

fn parent_not_ready(facts: &QueueFacts, parent: Option<&Place>) -> Option<Fault> {
    let (fault, message) = parent?.fault.as_ref()?;
    let name = facts.parent.as_deref().unwrap_or_default();
    let message = match fault {
        // The cause is further up; its message already says where.
        QueueFault::ParentNotReady => message.clone(),
        cause => format!("the ancestor {name} is not Ready: {}", cause.as_str()).into(),
    };
    Some((QueueFault::ParentNotReady, message))
}

fn cycle_message(definitions: &[&QueueFacts], parents: &[Option<usize>], start: usize) -> Box<str> {
    let mut path = String::from(&*definitions[start].name);
    let mut at = start;
    for _ in 0..CYCLE_NAMES_SHOWN {
        let Some(parent) = parents[at] else { break };
        path.push_str(" -> ");
        path.push_str(&definitions[parent].name);
        at = parent;
        if at == start {
            break;
        }
    }
    if at != start {
        path.push_str(" -> ...");
    }
    format!("the queue is its own ancestor: {path}").into()
}

/// The fault of the queue by itself. Conversion and the CRD refuse most of these already; neither
/// is trusted.
pub(super) fn invalid(facts: &QueueFacts) -> Option<Fault> {
    let in_resources = |field: &str| field.starts_with("spec.resources");
    let reported = facts
        .problems
        .iter()
        .find(|problem| in_resources(&problem.field))
        .or(facts.problems.first());
    if let Some(problem) = reported {
        let fault = if in_resources(&problem.field) {
            QueueFault::InvalidResources
        } else {
            QueueFault::InvalidSpec
        };
        let message = format!("{}: {}", problem.field, problem.message);
        return Some((fault, message.into()));
    }
    let mut seen = BTreeSet::new();
    facts
        .resources
        .iter()
        .enumerate()
        .find_map(|(position, entry)| {
            let what = if entry.name.is_empty() {
                "the name is empty"
            } else if entry.product.as_deref() == Some("") {
                "the product is empty"
            } else if !seen.insert((&entry.name, &entry.product)) {
                "another entry has the same name and product"
            } else if entry.quota.max(entry.limit.unwrap_or(0)) > AMOUNT_MAX {
                "the amount is too large"
            } else if entry.limit.is_some_and(|limit| limit < entry.quota) {
                "the limit is below the quota"
            } else {
                return None;
            };
            let message = format!("spec.resources[{position}]: {what}");
            Some((QueueFault::InvalidResources, message.into()))
        })
}
