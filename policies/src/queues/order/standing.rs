//! Where queues stand among their siblings, and what puts one before another: for people.

use super::{Key, Order, quotas};
use crate::facts::Amount;
use crate::queues::node::{Terms, WEIGHT_ONE};
use crate::queues::shares::Fraction;
use crate::queues::{Demand, GovernedId, QueueId, QueueTree, View};
use alloc::{boxed::Box, string::String, vec::Vec};
use core::cmp::Reverse;

const MILLION: u64 = 1_000_000;

/// How many digits a fraction has after the point.
const DIGITS: usize = 6;
/// How many it has at most to tell it from another.
const DIGITS_MAX: usize = 80;

/// Where one queue stands among its siblings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Its name.
    pub queue: Box<str>,
    /// The queue above; `None`: the root.
    pub parent: Option<Box<str>>,
    /// Its place among the siblings that have a gang waiting; 1 is served first.
    pub position: u32,
    /// How many those are, itself among them.
    pub siblings: u32,
    /// The claim by which it is compared.
    pub claim: Claim,
    /// The sibling that is served right before it.
    pub before: Option<Sibling>,
}

/// The sibling that is served right before a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// Its name.
    pub queue: Box<str>,
    /// The claim by which it is compared.
    pub claim: Claim,
    /// What puts it before.
    pub decided_by: DecidedBy,
    /// The leaf whose gang it would send: itself, or one below it.
    pub sends: QueueId,
}

/// What a queue is compared by, for the gang that it would send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Which part of its quota it has used, as a decimal fraction with enough digits to tell it
    /// from the sibling beside it; `None`: it has no quota left for the gang.
    pub quota_used: Option<String>,
    /// Whether it has a quota at all.
    pub has_quota: bool,
    /// The quota that says so, or that is missing or used up for the gang; `None`: the gang asks
    /// for nothing that is divided, or the queue has no quota at all.
    pub quota: Option<QuotaClaim>,
    /// Its priority.
    pub priority: i32,
    /// Its weight is 0 for something that the gang asks for.
    pub weightless: bool,
    /// Its dominant share over its weight, as that counts: a decimal fraction with enough digits
    /// to tell it from the sibling beside it.
    pub share: String,
    /// What that share is made of; `None`: it uses nothing that is divided.
    pub dominant: Option<DominantShare>,
}

/// A quota, in base units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaClaim {
    /// `resource` or `resource@product`.
    pub resource: Box<str>,
    /// What the queue holds of it.
    pub allocated: Amount,
    /// The quota; 0: it has none of this.
    pub quota: Amount,
    /// What the quota counts as: no more than what the queue above it holds, or than there is.
    pub counts_as: Amount,
}

/// What the share of a queue is made of: `used / capacity` over the weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DominantShare {
    /// `resource` or `resource@product`.
    pub resource: Box<str>,
    /// What the queue uses of it, in base units.
    pub used: Amount,
    /// What there is to divide, in base units.
    pub capacity: Amount,
    /// `used / capacity`, in millionths.
    pub millionths: u64,
    /// Its weight, as the queue says it.
    pub weight: u16,
    /// What the weight counts because of past use, in millionths, where that is another.
    pub counted_weight_millionths: Option<u64>,
}

/// What puts one queue before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// It has quota left, or has used a smaller part of it.
    Quota,
    /// Its priority is higher.
    Priority,
    /// The other has weight 0.
    Weight,
    /// Its share over its weight is smaller.
    Share,
    /// It is older.
    Age,
    /// It is as old, and its name comes first.
    Name,
}

impl DecidedBy {
    /// The word that users see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quota => "Quota",
            Self::Priority => "Priority",
            Self::Weight => "Weight",
            Self::Share => "Share",
            Self::Age => "Age",
            Self::Name => "Name",
        }
    }
}

impl QueueTree {
    /// Where a leaf and the queues above it stand, the highest first, if each of these leaves had a
    /// gang to be tried that asks for so much. The leaf itself must be among them.
    ///
    /// For people: it computes the order anew, and changes nothing.
    #[must_use]
    pub fn standing(&self, leaf: QueueId, heads: Vec<(QueueId, Demand)>) -> Vec<Level> {
        let view = self.view();
        let mut order = Order::default();
        order.reset(view.structure, view.keys.interned());
        for (queue, demand) in heads {
            if let Some(head) = order.heads.get_mut(queue.index()) {
                *head = Some(demand);
                order.mark(view.structure, queue);
            }
        }
        order.settle(view);
        let mut path: Vec<QueueId> = view.structure.path(leaf).collect();
        path.reverse();
        let levels = path.into_iter().map(|queue| order.level(view, queue));
        levels.collect::<Option<_>>().unwrap_or_default()
    }
}

impl Order {
    fn level(&self, view: View<'_>, queue: QueueId) -> Option<Level> {
        let parent = view.structure.node(queue).parent?;
        let mut line: Vec<(&Key, QueueId)> = self.candidates[parent.index()]
            .iter()
            .map(|(id, Reverse(key))| (key, *id))
            .collect();
        line.sort_unstable();
        let at = line.iter().position(|(_, id)| *id == queue)?;
        let (key, _) = line[at];
        let name = |id: QueueId| Box::from(&*view.structure.node(id).name);
        let before = at.checked_sub(1).map(|before| line[before]);
        let sibling = before.map(|(other, id)| Sibling {
            queue: name(id),
            claim: self.claim(view, (id, other), Some(key)),
            decided_by: decided_by(other, key),
            sends: self.sends[id.index()].unwrap_or(id),
        });
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Some(Level {
            queue: name(queue),
            parent: Some(name(parent)).filter(|_| parent != QueueId::ROOT),
            position: count(at + 1),
            siblings: count(line.len()),
            claim: self.claim(view, (queue, key), before.map(|(other, _)| other)),
            before: sibling,
        })
    }

    /// `beside`: the one that it is compared with.
    fn claim(&self, view: View<'_>, (queue, key): (QueueId, &Key), beside: Option<&Key>) -> Claim {
        let used = self.used(view, queue);
        let node = view.structure.node(queue);
        let terms = node.terms.iter();
        let dominant = terms.filter(|(id, terms)| {
            let used = used[id.index()];
            let capacity = view.ledger.capacity(*id);
            used > 0 && Fraction::weighted(used, capacity, terms.divisor()) == key.share
        });
        let dominant = dominant
            .min_by(|(one, _), (other, _)| view.keys.place(*one).cmp(&view.keys.place(*other)))
            .map(|(id, terms)| Self::dominant_share(view, (*id, terms), used[id.index()]));
        let quota_beside = beside.and_then(|beside| beside.quota_used);
        let share_beside = beside.map(|beside| beside.share);
        let has_quota = node.terms.iter().any(|(_, terms)| terms.quota > 0);
        Claim {
            quota: self.quota(view, queue).filter(|_| has_quota),
            quota_used: key.quota_used.map(|used| decimal(used, 1, quota_beside)),
            priority: key.priority,
            weightless: key.weightless,
            has_quota,
            // Weights are in parts of one.
            share: decimal(key.share, WEIGHT_ONE, share_beside),
            dominant,
        }
    }

    /// The quota that decides for what the queue would send: one of which nothing is left, else the
    /// one that is used most.
    fn quota(&self, view: View<'_>, queue: QueueId) -> Option<QuotaClaim> {
        let head = self.heads[self.sends[queue.index()]?.index()].as_ref()?;
        let asks = |key| head.iter().any(|(asked, _)| *asked == key);
        let allocated = view.ledger.allocated.row(queue);
        let quotas = quotas(view, view.structure.node(queue), allocated, asks);
        let decides = quotas.min_by_key(|quota| {
            let place = Reverse(view.keys.place(quota.key));
            let used = quota.used();
            (used.is_some(), Reverse((used, place)))
        })?;
        Some(QuotaClaim {
            resource: view.keys.name(decides.key).into(),
            allocated: decides.allocated,
            quota: decides.quota,
            counts_as: decides.counts_as,
        })
    }

    /// What a share is made of.
    fn dominant_share(
        view: View<'_>,
        (key, terms): (GovernedId, &Terms),
        used: Amount,
    ) -> DominantShare {
        let capacity = view.ledger.capacity(key);
        let said = u64::from(terms.said_weight) * WEIGHT_ONE;
        let counted = u128::from(terms.weight) * u128::from(MILLION) / u128::from(WEIGHT_ONE);
        DominantShare {
            resource: view.keys.name(key).into(),
            used,
            capacity,
            millionths: Fraction::new(used, capacity).millionths(),
            weight: terms.said_weight,
            counted_weight_millionths: Some(counted)
                .filter(|_| terms.weight != said)
                .and_then(|counted| u64::try_from(counted).ok()),
        }
    }
}

/// So many times a fraction, with as many digits as tell it from the one beside it.
fn decimal(one: Fraction, times: u64, beside: Option<Fraction>) -> String {
    let differ = |beside: Fraction| {
        let mut digits = DIGITS..DIGITS_MAX;
        digits.find(|digits| one.decimal(times, *digits) != beside.decimal(times, *digits))
    };
    let digits = beside.filter(|beside| *beside != one).and_then(differ);
    one.decimal(times, digits.unwrap_or(DIGITS))
}

/// What puts the first before the second.
fn decided_by(first: &Key, second: &Key) -> DecidedBy {
    if first.quota_used != second.quota_used {
        DecidedBy::Quota
    } else if first.priority != second.priority {
        DecidedBy::Priority
    } else if first.weightless != second.weightless {
        DecidedBy::Weight
    } else if first.share != second.share {
        DecidedBy::Share
    } else if first.created_ms != second.created_ms {
        DecidedBy::Age
    } else {
        DecidedBy::Name
    }
}
