//! Where queues stand among their siblings, and what puts one before another: for people.

use super::{Key, Order};
use crate::facts::Amount;
use crate::queues::node::{Terms, WEIGHT_ONE};
use crate::queues::shares::Fraction;
use crate::queues::{Demand, GovernedId, QueueId, QueueTree, View};
use alloc::{boxed::Box, vec::Vec};
use core::cmp::Reverse;

const MILLION: u64 = 1_000_000;

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
    /// What it stands there with.
    pub claim: Claim,
    /// The sibling that is served right before it.
    pub before: Option<Sibling>,
}

/// The sibling that is served right before a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// Its name.
    pub queue: Box<str>,
    /// What it stands there with.
    pub claim: Claim,
    /// What puts it before.
    pub decided_by: DecidedBy,
    /// The leaf whose gang it would send: itself, or one below it.
    pub sends: QueueId,
}

/// What a queue is compared by, for the gang that it would send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Which part of its quota it has used, in millionths; `None`: it has no quota left for the
    /// gang.
    pub quota_used_millionths: Option<u64>,
    /// Whether it has a quota at all.
    pub has_quota: bool,
    /// Its priority.
    pub priority: i32,
    /// Its weight is 0 for something that the gang asks for.
    pub weightless: bool,
    /// Its dominant share over its weight, as that counts, in millionths.
    pub share_millionths: u64,
    /// What that share is made of; `None`: it uses nothing that is divided.
    pub dominant: Option<DominantShare>,
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
    /// What the weight counts because of past use, in millionths, where that is another: so scaled
    /// that the weights of all siblings together are what they say.
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
        let view = View {
            structure: &self.structure,
            keys: &self.keys,
            ledger: &self.ledger,
        };
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
        let before = at.checked_sub(1).map(|before| {
            let (other, id) = line[before];
            Sibling {
                queue: name(id),
                claim: self.claim(view, id, other),
                decided_by: decided_by(other, key),
                sends: self.sends[id.index()].unwrap_or(id),
            }
        });
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Some(Level {
            queue: name(queue),
            parent: Some(name(parent)).filter(|_| parent != QueueId::ROOT),
            position: count(at + 1),
            siblings: count(line.len()),
            claim: self.claim(view, queue, key),
            before,
        })
    }

    fn claim(&self, view: View<'_>, queue: QueueId, key: &Key) -> Claim {
        let used = self.used(view, queue);
        let terms = view.structure.node(queue).terms.iter();
        let dominant = terms.filter(|(id, terms)| {
            let used = used[id.index()];
            let capacity = view.ledger.capacity(*id);
            used > 0 && Fraction::weighted(used, capacity, terms.divisor()) == key.share
        });
        let dominant = dominant
            .min_by(|(one, _), (other, _)| view.keys.place(*one).cmp(&view.keys.place(*other)))
            .map(|(id, terms)| Self::dominant_share(view, queue, (*id, terms), used[id.index()]));
        Claim {
            quota_used_millionths: key.quota_used.map(Fraction::millionths),
            priority: key.priority,
            weightless: key.weightless,
            has_quota: view
                .structure
                .node(queue)
                .terms
                .iter()
                .any(|(_, terms)| terms.quota > 0),
            share_millionths: dominant.as_ref().map_or(0, |(_, share)| *share),
            dominant: dominant.map(|(dominant, _)| dominant),
        }
    }

    /// What a share is made of, and the share itself with the weight as it counts, in millionths.
    fn dominant_share(
        view: View<'_>,
        queue: QueueId,
        (key, terms): (GovernedId, &Terms),
        used: Amount,
    ) -> (DominantShare, u64) {
        let capacity = view.ledger.capacity(key);
        let millionths = Fraction::new(used, capacity).millionths();
        let counted = counted_weight(view, queue, key, terms);
        // A weight of 0 counts as 1 in a share.
        let over = counted.unwrap_or(u64::from(terms.said_weight.max(1)) * MILLION);
        let share = u128::from(millionths) * u128::from(MILLION) / u128::from(over.max(1));
        let dominant = DominantShare {
            resource: view.keys.name(key).into(),
            used,
            capacity,
            millionths,
            weight: terms.said_weight,
            counted_weight_millionths: counted,
        };
        (dominant, u64::try_from(share).unwrap_or(u64::MAX))
    }
}

/// What a weight counts because of past use, in millionths; `None`: what it says.
fn counted_weight(view: View<'_>, queue: QueueId, key: GovernedId, terms: &Terms) -> Option<u64> {
    let parent = view.structure.node(queue).parent?;
    let siblings = view.structure.node(parent).children.iter();
    let siblings = siblings.filter_map(|id| view.structure.node(*id).terms_of(key));
    let (mut said, mut counted, mut differs) = (0, 0, false);
    for sibling in siblings {
        said += u128::from(sibling.said_weight);
        counted += u128::from(sibling.weight);
        differs |= sibling.weight != u64::from(sibling.said_weight) * WEIGHT_ONE;
    }
    if !differs || terms.weight == 0 {
        return None;
    }
    let weight = u128::from(terms.weight) * u128::from(MILLION) * said / counted.max(1);
    u64::try_from(weight).ok()
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
