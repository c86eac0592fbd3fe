//! Where queues stand among their siblings, and what puts one before another: for people to read.

use super::{Key, Order, quotas};
use crate::facts::Amount;
use crate::queues::node::{Terms, WEIGHT_ONE};
use crate::queues::shares::{Fraction, share};
use crate::queues::{Demand, GovernedId, QueueId, QueueTree, View, amount_in};
use alloc::{boxed::Box, string::String, vec::Vec};
use core::cmp::Reverse;

const MILLION: u64 = 1_000_000;

/// How many digits a fraction has after the point, where more are not needed.
const DIGITS: usize = 6;
/// The most digits that it has after the point to tell it from another fraction.
const DIGITS_MAX: usize = 80;

/// Where one queue stands among its siblings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// The queue's name.
    pub queue: Box<str>,
    /// The name of the queue above; `None`: the root.
    pub parent: Option<Box<str>>,
    /// Its place among the siblings that have a gang waiting; 1 is served first.
    pub position: u32,
    /// How many siblings have a gang waiting, this queue included.
    pub siblings: u32,
    /// What this queue is compared by.
    pub compared_by: ComparedBy,
    /// The sibling that is served right before this queue; `None`: this queue is served first.
    pub before: Option<Sibling>,
}

/// The sibling that is served right before a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// The sibling's name.
    pub queue: Box<str>,
    /// What the sibling is compared by.
    pub compared_by: ComparedBy,
    /// What puts the sibling before the queue.
    pub decided_by: DecidedBy,
    /// The leaf whose gang the sibling would send: the sibling itself, or a leaf below it.
    pub sends: QueueId,
}

/// What a queue is compared by, for the gang that it would send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedBy {
    /// The part of its quota that the queue has used, as a decimal fraction with enough digits to
    /// tell it from that of the sibling it is compared with; `None`: the gang would not leave the
    /// queue within quota.
    pub quota_used: Option<String>,
    /// The part of its quota that the queue would have used after the start of the gang, as a
    /// decimal fraction; `None`: as for `quota_used`.
    pub quota_used_after: Option<String>,
    /// Whether the queue has a quota of anything.
    pub has_quota: bool,
    /// The quota that decides: one that the gang would exceed, else the one that is used most.
    /// `None`: the gang asks for nothing that is divided, or the queue has no quota of anything.
    pub quota: Option<DecidingQuota>,
    /// The queue's priority.
    pub priority: i32,
    /// Whether the queue's weight is 0 for something that the gang asks for.
    pub weightless: bool,
    /// The queue's dominant share over its weight (as past use lets the weight count): a decimal
    /// fraction with enough digits to tell it from that of the sibling it is compared with.
    pub share: String,
    /// The dominant share over the weight after the start of the gang, as a decimal fraction.
    pub share_after: String,
    /// What the share is made of; `None`: the queue uses nothing that is divided.
    pub dominant: Option<DominantShare>,
}

/// A quota and how much of it is held, in base units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidingQuota {
    /// `resource` or `resource@product`.
    pub resource: Box<str>,
    /// What the queue holds of the resource, in base units.
    pub allocated: Amount,
    /// How much more of the resource the gang asks for, in base units.
    pub asked: Amount,
    /// The quota, in base units; 0: the queue has no quota of the resource.
    pub quota: Amount,
    /// What the quota counts for, in base units: no more than the queue above holds, or below the
    /// root than there is.
    pub counts_as: Amount,
}

/// What the share of a queue is made of: `used / capacity` over the weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DominantShare {
    /// `resource` or `resource@product`.
    pub resource: Box<str>,
    /// What the queue uses of the resource, in base units; rescaled for an inner queue.
    pub used: Amount,
    /// What there is of the resource to divide, in base units.
    pub capacity: Amount,
    /// `used / capacity`, in millionths.
    pub millionths: u64,
    /// The weight, as the queue's definition says it.
    pub weight: u16,
    /// What the weight counts for because of past use, in millionths; `None`: what the definition
    /// says.
    pub counted_weight_millionths: Option<u64>,
}

/// What puts one queue, here the first, before another, the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The gang of the first leaves it within quota and that of the second does not, or the first
    /// has used a smaller part of its quota.
    Quota,
    /// The first would have used a smaller part of its quota after the start.
    QuotaAfterStart,
    /// The first has the higher priority.
    Priority,
    /// The second has weight 0 for something that its gang asks for; the first has not.
    Weight,
    /// The share over the weight is smaller for the first.
    Share,
    /// The share over the weight would be smaller for the first after the start.
    ShareAfterStart,
    /// The first is older.
    Age,
    /// Both are of the same age, and the name of the first sorts first.
    Name,
}

impl DecidedBy {
    /// The word that users see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quota => "Quota",
            Self::QuotaAfterStart => "QuotaAfterStart",
            Self::Priority => "Priority",
            Self::Weight => "Weight",
            Self::Share => "Share",
            Self::ShareAfterStart => "ShareAfterStart",
            Self::Age => "Age",
            Self::Name => "Name",
        }
    }
}

impl QueueTree {
    /// Where a leaf and its ancestors stand among their siblings, the highest first, if exactly the
    /// leaves in `heads` had a gang to be tried, each with its demand. Empty if `leaf` is not in
    /// `heads`.
    ///
    /// For people, not for the engine: it computes the whole order anew, and changes nothing.
    pub(crate) fn standing(&self, leaf: QueueId, heads: Vec<(QueueId, Demand)>) -> Vec<Level> {
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
            compared_by: self.compared_by(view, (id, other), Some(key)),
            decided_by: decided_by(other, key),
            sends: self.sends[id.index()].unwrap_or(id),
        });
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Some(Level {
            queue: name(queue),
            parent: Some(name(parent)).filter(|_| parent != QueueId::ROOT),
            position: count(at + 1),
            siblings: count(line.len()),
            compared_by: self.compared_by(view, (queue, key), before.map(|(other, _)| other)),
            before: sibling,
        })
    }

    /// What a queue is compared by, told with enough digits to differ from `beside`, the key of a
    /// sibling.
    fn compared_by(
        &self,
        view: View<'_>,
        (queue, key): (QueueId, &Key),
        beside: Option<&Key>,
    ) -> ComparedBy {
        let used = self.used(view, queue);
        let node = view.structure.node(queue);
        let terms = node.terms.iter();
        let dominant = terms.filter(|(id, terms)| {
            let used = used[id.index()];
            used > 0 && share(view.ledger, *id, used, terms.divisor()) == key.share
        });
        let dominant = dominant
            .min_by(|(one, _), (other, _)| view.keys.place(*one).cmp(&view.keys.place(*other)))
            .map(|(id, terms)| Self::dominant_share(view, (*id, terms), used[id.index()]));
        let after = |key: &Key| Some(key.quota_used?.after);
        let used_now = |key: &Key| Some(key.quota_used?.used);
        let share_beside = beside.map(|beside| beside.share);
        let share_after_beside = beside.map(|beside| beside.share_after);
        let has_quota = node.terms.iter().any(|(_, terms)| terms.quota > 0);
        ComparedBy {
            quota: self.quota(view, queue).filter(|_| has_quota),
            quota_used: used_now(key).map(|used| decimal(used, 1, beside.and_then(used_now))),
            quota_used_after: after(key).map(|used| decimal(used, 1, beside.and_then(after))),
            priority: key.priority,
            weightless: key.weightless,
            has_quota,
            // Weights are in parts of one.
            share: decimal(key.share, WEIGHT_ONE, share_beside),
            share_after: decimal(key.share_after, WEIGHT_ONE, share_after_beside),
            dominant,
        }
    }

    /// The quota that decides about what the queue would send: one that the gang would exceed, else
    /// the one that is used most.
    fn quota(&self, view: View<'_>, queue: QueueId) -> Option<DecidingQuota> {
        let head = self.heads[self.sends[queue.index()]?.index()].as_ref()?;
        let allocated = view.ledger.allocated.row(queue);
        let asked = |key| amount_in(head, key);
        let quotas = quotas(view, view.structure.node(queue), allocated, asked);
        let decides = quotas.min_by_key(|quota| {
            let place = Reverse(view.keys.place(quota.key));
            let used = quota.used();
            (used.is_some(), Reverse((used, place)))
        })?;
        Some(DecidingQuota {
            resource: view.keys.name(decides.key).into(),
            allocated: decides.allocated,
            asked: decides.asked,
            quota: decides.quota,
            counts_as: decides.counts_as,
        })
    }

    fn dominant_share(
        view: View<'_>,
        (key, terms): (GovernedId, &Terms),
        used: Amount,
    ) -> DominantShare {
        let capacity = view.ledger.capacity(key);
        let grain = view.ledger.grains.of(key);
        let said = u64::from(terms.said_weight) * WEIGHT_ONE;
        let counted = u128::from(terms.weight) * u128::from(MILLION) / u128::from(WEIGHT_ONE);
        DominantShare {
            resource: view.keys.name(key).into(),
            used,
            capacity,
            millionths: Fraction::new(used / grain, capacity / grain).millionths(),
            weight: terms.said_weight,
            counted_weight_millionths: Some(counted)
                .filter(|_| terms.weight != said)
                .and_then(|counted| u64::try_from(counted).ok()),
        }
    }
}

/// `times` times a fraction, with as many digits as tell it from `beside`, another fraction.
fn decimal(one: Fraction, times: u64, beside: Option<Fraction>) -> String {
    let differ = |beside: Fraction| {
        let mut digits = DIGITS..DIGITS_MAX;
        digits.find(|digits| one.decimal(times, *digits) != beside.decimal(times, *digits))
    };
    let digits = beside.filter(|beside| *beside != one).and_then(differ);
    one.decimal(times, digits.unwrap_or(DIGITS))
}

/// What puts the queue of the first key before that of the second.
fn decided_by(first: &Key, second: &Key) -> DecidedBy {
    let used = |key: &Key| key.quota_used.map(|quota| quota.used);
    if used(first) != used(second) {
        DecidedBy::Quota
    } else if first.quota_used != second.quota_used {
        DecidedBy::QuotaAfterStart
    } else if first.priority != second.priority {
        DecidedBy::Priority
    } else if first.weightless != second.weightless {
        DecidedBy::Weight
    } else if first.share != second.share {
        DecidedBy::Share
    } else if first.share_after != second.share_after {
        DecidedBy::ShareAfterStart
    } else if first.created_ms != second.created_ms {
        DecidedBy::Age
    } else {
        DecidedBy::Name
    }
}
