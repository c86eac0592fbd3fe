//! Which parent each queue is accounted under, and what is wrong with queues that are not Ready.

use crate::facts::{AMOUNT_MAX, QueueFacts};
use crate::status::QueueFault;
use alloc::{boxed::Box, format, string::String, vec, vec::Vec};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// How many names of a cycle a message shows.
const CYCLE_NAMES_SHOWN: usize = 8;

/// A fault and a sentence about it.
pub(super) type Fault = (QueueFault, Box<str>);

/// The place of one queue in the hierarchy.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// The parent's position; `None`: the root. A queue that is on a cycle, or whose parent does
    /// not exist, is accounted under the root, so that what it holds is not lost. So is an invalid
    /// queue without a valid sibling, so that it does not make an inner queue of its parent.
    pub parent: Option<usize>,
    /// Why the queue is not Ready.
    pub fault: Option<Fault>,
}

/// The places of all queues, by position in `definitions`.
pub(super) fn places(definitions: &[&QueueFacts]) -> Vec<Place> {
    let names = definitions.iter().map(|facts| &*facts.name);
    let positions: HashMap<&str, usize, FxBuildHasher> = names.zip(0..).collect();
    let parent = |facts: &&QueueFacts| positions.get(facts.parent.as_deref()?).copied();
    let parents: Vec<Option<usize>> = definitions.iter().map(parent).collect();
    let order = parents_first(&parents);
    // Whether each queue has a valid child.
    let mut inner = vec![false; definitions.len()];
    for &(at, on_cycle) in &order {
        if let Some(parent) = parents[at].filter(|_| !on_cycle) {
            inner[parent] |= invalid(definitions[at]).is_none();
        }
    }
    let mut places = vec![Place::default(); definitions.len()];
    for (at, on_cycle) in order {
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
    places
}

/// All positions, each after its parent's (but for cycles), and whether the queue there is on a
/// cycle.
fn parents_first(parents: &[Option<usize>]) -> Vec<(usize, bool)> {
    let mut order = Vec::with_capacity(parents.len());
    // From which start each position was first reached.
    let mut reached: Vec<Option<usize>> = vec![None; parents.len()];
    for start in 0..parents.len() {
        let mut path = Vec::new();
        let mut next = Some(start);
        while let Some(at) = next.filter(|at| reached[*at].is_none()) {
            reached[at] = Some(start);
            path.push(at);
            next = parents[at];
        }
        let closes = |at: &usize| Some(*at) == next;
        let cycle = path.iter().position(closes).unwrap_or(path.len());
        let path = path.into_iter().enumerate().rev();
        order.extend(path.map(|(step, at)| (at, step >= cycle)));
    }
    order
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

/// What is wrong with a queue's definition, without regard to other queues. Conversion and the CRD
/// refuse most of these definitions already; neither is trusted.
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
    facts
        .resources
        .iter()
        .enumerate()
        .find_map(|(position, entry)| {
            let mut others = facts.resources[..position].iter();
            let what = if entry.name.is_empty() {
                "the name is empty"
            } else if entry.product.as_deref() == Some("") {
                "the product is empty"
            } else if others.any(|it| it.name == entry.name && it.product == entry.product) {
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
