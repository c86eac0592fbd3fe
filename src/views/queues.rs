//! The tree of queues with shares and use, as it is drawn and as it is written in JSON.

use crate::kube::api::{self, PodGroupCounts};
use crate::kube::format::{average, share};
use crate::views::table::{self, Entry, Screen, Tone, readable};
use gpu_batch_policies::facts::{QueueFacts, queue_quantity as quantity_of};
use gpu_batch_policies::report::QueueReport;
use gpu_batch_policies::status::GovernedAmounts;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Quantities by `resource` or `resource@product`.
pub(crate) type Quantities = BTreeMap<String, String>;

/// The resource that every queue shows.
const GPU: &str = "nvidia.com/gpu";

/// One queue as users see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueView {
    /// The queue above; `None`: the root.
    pub parent: Option<String>,
    /// Whether the queue can be used; `None` while no scheduler has looked at it.
    pub ready: Option<bool>,
    /// Why the queue is not Ready.
    pub reason: Option<String>,
    /// The reason as a sentence; of a Ready queue, what there is to know of its entries.
    pub message: String,
    /// Whether the queue admits nothing new.
    pub closed: bool,
    /// The queue's priority between siblings, over quota: higher first.
    pub priority: i32,
    /// The queue's weight for what is over quota, beside those of its siblings.
    pub weight: BTreeMap<String, i64>,
    /// The amounts that the queue is guaranteed.
    pub quota: Quantities,
    /// The amounts that the queue never exceeds.
    pub limit: Quantities,
    /// The amounts that the queue's gangs hold.
    pub allocated: Quantities,
    /// The amounts that the queue's gangs hold and ask for.
    pub requested: Quantities,
    /// What fairness would give the queue now.
    pub fair_share: Quantities,
    /// The queue's dominant share of the cluster.
    pub dominant_share: String,
    /// The queue's average past use; empty where the past does not count.
    #[serde(skip_serializing_if = "Quantities::is_empty")]
    pub past_use: Quantities,
    /// The queue's gangs, and those of all queues below.
    pub pod_groups: PodGroupCounts,
}

impl QueueView {
    /// A queue as the engine reports it; `facts`: the Queue object, if there is one.
    #[must_use]
    pub(crate) fn of_report(report: &QueueReport, facts: Option<&QueueFacts>) -> Self {
        let status = &report.status;
        let (mut quota, mut limit) = (Quantities::new(), Quantities::new());
        let mut weight = BTreeMap::new();
        for entry in facts.iter().flat_map(|facts| &facts.resources) {
            let key = key(&entry.name, entry.product.as_deref().unwrap_or_default());
            if let Some(amount) = entry.limit {
                limit.insert(key.clone(), quantity_of(&key, amount));
            }
            let amount = quantity_of(&key, entry.quota);
            weight.insert(key.clone(), entry.weight.into());
            quota.insert(key, amount);
        }
        let fault = status.fault.as_ref();
        let past = status.past_use.iter().flat_map(|past| &past.averages);
        let past = past.map(|(key, thousandths)| {
            let average = average(key, *thousandths);
            (key.to_string(), average)
        });
        Self {
            parent: report.parent.as_deref().map(str::to_owned),
            ready: Some(fault.is_none()),
            reason: fault.map(|(fault, _)| fault.as_str().to_owned()),
            message: fault
                .map(|(_, message)| message)
                .or(status.note.as_ref())
                .map_or_else(String::new, ToString::to_string),
            closed: facts.is_some_and(|facts| facts.closed),
            priority: facts.map_or(0, |facts| facts.priority),
            weight,
            quota,
            limit,
            allocated: quantities(&status.allocated),
            requested: quantities(&status.requested),
            fair_share: quantities(&status.fair_share),
            dominant_share: share(status.dominant_share_millionths),
            past_use: past.collect(),
            pod_groups: PodGroupCounts {
                pending: status.pending.into(),
                running: status.running.into(),
            },
        }
    }

    /// A queue as a running cluster has it: its spec, and the status that the scheduler wrote.
    #[must_use]
    pub(crate) fn of_object(queue: api::Queue) -> Self {
        let spec = queue.spec;
        let status = queue.status.unwrap_or_default();
        let (mut quota, mut limit) = (Quantities::new(), Quantities::new());
        let mut weight = BTreeMap::new();
        for entry in spec.resources {
            let key = key(&entry.name, &entry.product);
            limit.extend(entry.limit.map(|limit| (key.clone(), limit.0)));
            weight.insert(key.clone(), entry.weight);
            quota.insert(key, entry.quota.0);
        }
        let mut conditions = status.conditions.into_iter();
        let ready = conditions.find(|condition| condition.type_ == "Ready");
        let is_ready = ready.as_ref().map(|condition| condition.status == "True");
        let reason = ready.as_ref().filter(|_| is_ready == Some(false));
        let reason = reason.map(|condition| condition.reason.clone());
        let text = |quantities: BTreeMap<String, _>| -> Quantities {
            let quantities = quantities.into_iter();
            quantities
                .map(|(key, quantity)| (key, text_of(quantity)))
                .collect()
        };
        Self {
            parent: spec.parent,
            ready: is_ready,
            reason,
            message: ready.map(|condition| condition.message).unwrap_or_default(),
            closed: spec.closed,
            priority: spec.priority,
            weight,
            quota,
            limit,
            allocated: text(status.allocated),
            requested: text(status.requested),
            fair_share: text(status.fair_share),
            dominant_share: status.dominant_share.unwrap_or_default(),
            past_use: text(status.past_use.unwrap_or_default().average),
            pod_groups: status.pod_groups.unwrap_or_default(),
        }
    }

    /// The resources that are shown of the queue: GPUs, those that its spec names, and those that
    /// it holds, asks for or is due.
    fn resources(&self) -> Vec<&str> {
        let maps = [
            &self.quota,
            &self.limit,
            &self.allocated,
            &self.requested,
            &self.fair_share,
            &self.past_use,
        ];
        let names = maps
            .into_iter()
            .flat_map(BTreeMap::keys)
            .map(String::as_str);
        let others: BTreeSet<&str> = names.filter(|name| *name != GPU).collect();
        std::iter::once(GPU).chain(others).collect()
    }

    fn readiness(&self) -> Entry {
        match (self.ready, self.closed) {
            (Some(true), false) => Entry::new("yes", Tone::Good),
            (Some(true), true) => Entry::new("yes, closed", Tone::Waiting),
            (Some(false), _) => Entry::new("no", Tone::Bad),
            (None, _) => Entry::new("unknown", Tone::Waiting),
        }
    }

    /// Why the queue is not Ready, or what there is to know of its entries.
    fn note(&self) -> String {
        match (&self.reason, self.ready) {
            (Some(reason), _) => format!("{reason}: {}", self.message),
            (None, None) => "no scheduler has looked at it yet".to_owned(),
            (None, Some(_)) => self.message.clone(),
        }
    }
}

fn text_of(quantity: k8s_openapi::apimachinery::pkg::api::resource::Quantity) -> String {
    quantity.0
}

fn key(resource: &str, product: &str) -> String {
    match product {
        "" => resource.to_owned(),
        product => format!("{resource}@{product}"),
    }
}

fn quantities(amounts: &GovernedAmounts) -> Quantities {
    let quantities = amounts.iter();
    quantities
        .map(|(key, amount)| (key.to_string(), quantity_of(key, *amount)))
        .collect()
}

/// Draws the tree: a row for each queue and, below it, one for each further resource that is
/// divided there.
#[must_use]
pub(crate) fn draw(queues: &BTreeMap<String, QueueView>, screen: Screen) -> String {
    let tree = Tree::of(queues);
    let past_counts = queues.values().any(|view| !view.past_use.is_empty());
    let weigh = queues
        .values()
        .any(|view| view.weight.values().any(|weight| *weight != 1));
    let ranked = queues.values().any(|view| view.priority != 0);
    let mut rows = Vec::new();
    for branch in &tree.branches {
        let view = &queues[branch.name];
        for (index, resource) in view.resources().into_iter().enumerate() {
            let amount = |of: &Quantities, absent: &str| -> Entry {
                let shown = of
                    .get(resource)
                    .map(|quantity| readable(resource, quantity));
                shown.unwrap_or_else(|| absent.to_owned()).into()
            };
            let mut row = vec![
                Entry::from(resource),
                amount(&view.allocated, "0"),
                amount(&view.requested, "0"),
                amount(&view.quota, "0"),
                amount(&view.limit, "-"),
            ];
            if weigh {
                let weight = view.weight.get(resource).copied().unwrap_or(1);
                row.push(weight.to_string().into());
            }
            row.push(amount(&view.fair_share, "0"));
            row.extend(past_counts.then(|| amount(&view.past_use, "0")));
            let (head, tail) = if index == 0 {
                let name = format!("{}{}", branch.lines, branch.name);
                let mut head = vec![name.into(), view.readiness()];
                head.extend(ranked.then(|| view.priority.to_string().into()));
                let counts = view.pod_groups;
                let share = Entry::from(view.dominant_share.as_str());
                let counts = [counts.pending, counts.running].map(|n| n.to_string().into());
                let [pending, running] = counts;
                (head, [share, pending, running, view.note().into()])
            } else {
                let mut head = vec![branch.continued.as_str().into(), "".into()];
                head.extend(ranked.then(|| "".into()));
                (head, ["", "", "", ""].map(Entry::from))
            };
            row.splice(0..0, head);
            row.extend(tail);
            rows.push(row);
        }
    }
    let mut headings = vec!["QUEUE", "READY"];
    headings.extend(ranked.then_some("PRIORITY"));
    headings.extend(["RESOURCE", "HELD", "REQUESTED", "QUOTA", "LIMIT"]);
    headings.extend(weigh.then_some("WEIGHT"));
    headings.push("FAIR SHARE");
    headings.extend(past_counts.then_some("PAST USE"));
    headings.extend(["DOMINANT SHARE", "PENDING", "RUNNING", "NOTE"]);
    table::draw(&headings, rows, screen)
}

/// A queue with the lines of the tree that lead to it.
struct Branch<'a> {
    name: &'a str,
    lines: String,
    /// The lines before a second row of the queue.
    continued: String,
}

/// Queues in the order in which they are drawn: parents before children, siblings by name.
struct Tree<'a> {
    children: BTreeMap<&'a str, Vec<&'a str>>,
    seen: BTreeSet<&'a str>,
    branches: Vec<Branch<'a>>,
}

impl<'a> Tree<'a> {
    /// The tree. Queues whose parent does not exist, and one queue of each cycle, stand at the top.
    fn of(queues: &'a BTreeMap<String, QueueView>) -> Self {
        let mut tree = Self {
            children: BTreeMap::new(),
            seen: BTreeSet::new(),
            branches: Vec::new(),
        };
        let mut tops = Vec::new();
        for (name, view) in queues {
            match view
                .parent
                .as_deref()
                .filter(|parent| queues.contains_key(*parent))
            {
                Some(parent) => tree.children.entry(parent).or_default().push(name),
                None => tops.push(name.as_str()),
            }
        }
        tops.extend(queues.keys().map(String::as_str));
        for name in tops {
            tree.add(name);
        }
        tree
    }

    /// Adds a queue and all below it, each once.
    fn add(&mut self, top: &'a str) {
        // The name of a queue, the lines before it, and the lines before the queues below it.
        let mut open = vec![(top, String::new(), String::new())];
        while let Some((name, lines, below)) = open.pop() {
            if !self.seen.insert(name) {
                continue;
            }
            let children = self.children.get(name).cloned().unwrap_or_default();
            let continued = if children.is_empty() {
                below.clone()
            } else {
                format!("{below}│")
            };
            self.branches.push(Branch {
                name,
                lines,
                continued,
            });
            let last = children.len().saturating_sub(1);
            for (index, child) in children.into_iter().enumerate().rev() {
                let (turn, line) = if index == last {
                    ("└─ ", "   ")
                } else {
                    ("├─ ", "│  ")
                };
                open.push((child, format!("{below}{turn}"), format!("{below}{line}")));
            }
        }
    }
}

#[cfg(test)]
mod tests;
