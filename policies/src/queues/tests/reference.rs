//! What fair shares mean: slow, exact, written to be read.
//!
//! The words of docs/fair-shares.md ("The order"), taken literally: from an empty cluster,
//! infinitely small units of what each leaf wants are handed out in the order in which siblings are
//! served. All queues that are level are served at once, so that they stay level. Amounts then grow
//! on straight lines until the next moment at which something changes; there everything is worked
//! out anew from the amounts alone.
//!
//! Between two such moments only what each queue has is kept. There is one clock, and every number
//! is a fraction of whole numbers of any length: nothing is rounded, and "level" means equal. The
//! reference shares no code with what it judges.

mod compared;
mod laws;
mod past;
mod published;
mod random;
mod starts;
mod world;

use num_rational::BigRational;
use num_traits::{One, Zero};
use std::vec::Vec;
pub(super) use world::World;

/// The number of the root among a world's queues.
const ROOT: usize = 0;

fn whole(amount: u64) -> BigRational {
    BigRational::from_integer(amount.into())
}

/// What every queue has when no queue can be served any more, by queue and key. Where quotas are
/// over-committed, what a parent has for its children matters. It is known once the level above is
/// divided, so the levels are divided one after the other from the top.
pub(super) fn fair_shares(world: &World) -> Vec<Vec<BigRational>> {
    let mut parent_has: Vec<Vec<u64>> = world.indices().map(|q| world.most(q)).collect();
    let mut shares = Filling::run(world, &parent_has);
    for level in 1..=world.depth() {
        let mut changed = false;
        for q in world.indices().filter(|&q| world.level(q) == level) {
            for key in world.divided_below(q) {
                let has = u64::try_from(shares[q][key].to_integer()).expect("within capacity");
                let has = has.min(world.wants_of(q)[key]);
                let claimed: u128 = world.queues[q]
                    .children
                    .iter()
                    .map(|&child| {
                        u128::from(world.quota(child, key).min(world.wants_of(child)[key]))
                    })
                    .sum();
                if claimed > u128::from(has) {
                    changed |= parent_has[q][key] != has;
                    parent_has[q][key] = has;
                }
            }
        }
        if changed {
            shares = Filling::run(world, &parent_has);
        }
    }
    shares
}

/// What decides first which queue is served; the smallest is. First come queues with quota left;
/// then the higher priority; then queues whose weight is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    WithinQuota,
    OverQuota {
        priority: core::cmp::Reverse<i32>,
        weightless: bool,
    },
}

/// A ratio, and how fast it rises; a queue's level is the largest of its ratios.
#[derive(Debug, Clone)]
struct Gauge {
    level: BigRational,
    pace: BigRational,
}

/// What a queue would do if it were served.
#[derive(Debug)]
struct Move {
    /// The amounts that the queue would get, by key, in one unit of its own time.
    flow: Vec<BigRational>,
    /// The children that the queue would serve, and how much of a child's time passes in one unit
    /// of the queue's own time.
    serves: Vec<(usize, BigRational)>,
    /// When the next of its children in turn is level with those served, in the queue's own time.
    to_next_in_turn: Option<BigRational>,
    group: Group,
    gauges: Vec<Gauge>,
    level: BigRational,
    pace: BigRational,
}

/// A division under way.
struct Filling<'a> {
    world: &'a World,
    /// What each parent has for its children, by key.
    parent_has: &'a [Vec<u64>],
    /// What every weight counts for, by queue and key.
    weights: Vec<Vec<BigRational>>,
    has: Vec<Vec<BigRational>>,
    /// Which part of all that it wants each leaf has been offered; 1: the leaf is done.
    met: Vec<BigRational>,
}

impl<'a> Filling<'a> {
    fn run(world: &'a World, parent_has: &'a [Vec<u64>]) -> Vec<Vec<BigRational>> {
        let nothing = std::vec![BigRational::zero(); world.keys()];
        let mut filling = Self {
            world,
            parent_has,
            weights: past::counted_weights(world),
            has: std::vec![nothing; world.queues.len()],
            met: std::vec![BigRational::zero(); world.queues.len()],
        };
        // Each moment blocks a leaf, uses up a quota or makes two ratios level.
        let most_moments = 40 * world.queues.len() * world.keys() + 40;
        for _ in 0..most_moments {
            if !filling.serve_until_something_happens() {
                return filling.has;
            }
        }
        panic!("the division does not come to an end");
    }

    /// Returns whether any queue was served.
    fn serve_until_something_happens(&mut self) -> bool {
        let mut moves: Vec<Option<Move>> = Vec::new();
        moves.resize_with(self.world.queues.len(), || None);
        // Children have higher numbers than their parents.
        for q in self.world.indices().rev() {
            moves[q] = self.movement(q, &moves);
        }
        if moves[ROOT].is_none() {
            return false;
        }
        let mut speed = std::vec![BigRational::zero(); moves.len()];
        speed[ROOT] = BigRational::one();
        let mut time: Option<BigRational> = None;
        for q in self.world.indices() {
            let Some(movement) = moves[q].as_ref().filter(|_| !speed[q].is_zero()) else {
                continue;
            };
            for (child, rate) in &movement.serves {
                speed[*child] = &speed[q] * rate;
            }
            for own in self.moments(q, movement) {
                let ahead = own / &speed[q];
                time = Some(time.map_or_else(|| ahead.clone(), |time| time.min(ahead.clone())));
            }
        }
        let time = time.expect("whoever is served has all that it wants one day");
        assert!(time > BigRational::zero(), "time goes on");
        for q in self.world.indices() {
            let Some(movement) = moves[q].as_ref().filter(|_| !speed[q].is_zero()) else {
                continue;
            };
            let passed = &speed[q] * &time;
            for (has, flow) in self.has[q].iter_mut().zip(&movement.flow) {
                if !flow.is_zero() {
                    *has += flow * &passed;
                }
            }
            self.met[q] += passed;
        }
        true
    }

    /// The moments at which something happens to a queue that is served, in its own time.
    fn moments(&self, q: usize, movement: &Move) -> Vec<BigRational> {
        let mut moments: Vec<BigRational> = movement.to_next_in_turn.iter().cloned().collect();
        if self.world.is_leaf(q) {
            moments.push(BigRational::one() - &self.met[q]);
        }
        for key in (0..self.world.keys()).filter(|&key| !movement.flow[key].is_zero()) {
            let mut until = |amount: u64| {
                moments.push((whole(amount) - &self.has[q][key]) / &movement.flow[key]);
            };
            if let Some(bound) = self.world.bound(q, key) {
                until(bound);
            }
            if movement.group == Group::WithinQuota && self.quota_counts(q, key, &movement.flow) {
                until(self.world.quota(q, key));
            }
        }
        for gauge in &movement.gauges {
            if gauge.level < movement.level && gauge.pace > movement.pace {
                let behind = &movement.level - &gauge.level;
                moments.push(behind / (&gauge.pace - &movement.pace));
            }
        }
        moments
    }

    /// What a queue would do if it were served; `None`: it is blocked.
    fn movement(&self, q: usize, moves: &[Option<Move>]) -> Option<Move> {
        let (flow, serves, to_next_in_turn) = if self.world.is_leaf(q) {
            (self.wanted_still(q)?, Vec::new(), None)
        } else {
            self.serving(q, moves)?
        };
        let group = self.group(q, &flow);
        let gauges = if q == ROOT {
            Vec::new()
        } else {
            self.gauges(q, group, &flow)
        };
        let level = gauges.iter().map(|gauge| gauge.level.clone()).max();
        let level = level.unwrap_or_else(BigRational::zero);
        let first = gauges.iter().filter(|gauge| gauge.level == level);
        let pace = first.map(|gauge| gauge.pace.clone()).max();
        Some(Move {
            flow,
            serves,
            to_next_in_turn,
            group,
            gauges,
            level,
            pace: pace.unwrap_or_else(BigRational::zero),
        })
    }

    /// What a leaf still wants; `None`: it is blocked, because its demand is met or each part of it
    /// needs a key whose bound is reached on the leaf's path. Parts that need such a key are left
    /// out.
    fn wanted_still(&self, leaf: usize) -> Option<Vec<BigRational>> {
        let full = |key: usize| {
            self.world.path(leaf).any(|q| {
                let bound = self.world.bound(q, key);
                bound.is_some_and(|bound| self.has[q][key] == whole(bound))
            })
        };
        let parts = self.world.queues[leaf].wants.iter();
        let open = parts.filter(|part| !(0..part.len()).any(|key| part[key] > 0 && full(key)));
        let mut wanted = std::vec![BigRational::zero(); self.world.keys()];
        for part in open {
            for (wanted, amount) in wanted.iter_mut().zip(part) {
                *wanted += whole(*amount);
            }
        }
        let blocked = self.met[leaf].is_one() || wanted.iter().all(BigRational::is_zero);
        (!blocked).then_some(wanted)
    }

    /// How an inner queue serves those of its children that are not blocked.
    #[expect(clippy::type_complexity, reason = "the parts of one Move")]
    fn serving(
        &self,
        q: usize,
        moves: &[Option<Move>],
    ) -> Option<(
        Vec<BigRational>,
        Vec<(usize, BigRational)>,
        Option<BigRational>,
    )> {
        let children = self.world.queues[q].children.iter();
        let open: Vec<(usize, &Move)> = children
            .filter_map(|&child| Some((child, moves[child].as_ref()?)))
            .collect();
        let first = open.iter().map(|(_, it)| it.group).min()?;
        let group: Vec<_> = open.iter().filter(|(_, it)| it.group == first).collect();
        let level = group.iter().map(|(_, it)| &it.level).min()?;
        let in_turn: Vec<_> = group.iter().filter(|(_, it)| it.level == *level).collect();
        // A queue whose level does not rise is served before those whose level does; of several
        // such queues the oldest.
        let resting = in_turn.iter().find(|(_, it)| it.pace.is_zero());
        let (serves, to_next_in_turn) = match resting {
            Some((child, _)) => (std::vec![(*child, BigRational::one())], None),
            None => {
                let waiting = group.iter().filter(|(_, it)| it.level > *level);
                let next = waiting.map(|(_, it)| &it.level - level).min();
                let serves = in_turn.iter().map(|(child, it)| (*child, it.pace.recip()));
                (serves.collect(), next)
            }
        };
        let mut flow = std::vec![BigRational::zero(); self.world.keys()];
        for (child, rate) in &serves {
            let gets = &moves[*child].as_ref()?.flow;
            for (flow, gets) in flow
                .iter_mut()
                .zip(gets)
                .filter(|(_, gets)| !gets.is_zero())
            {
                *flow += gets * rate;
            }
        }
        Some((flow, serves, to_next_in_turn))
    }

    /// Whether the quota of a key decides about a queue that gets `flow`. The quotas of all keys
    /// divided there do, except that of the plain key where the queue has been promised a model
    /// alone.
    fn quota_counts(&self, q: usize, key: usize, flow: &[BigRational]) -> bool {
        let world = self.world;
        let gets = |key: usize| !flow[key].is_zero();
        let promised_model = (0..world.keys())
            .any(|model| world.plain[model] == Some(key) && world.names(q, model) && gets(model));
        gets(key) && world.is_divided(q, key) && (world.names(q, key) || !promised_model)
    }

    fn group(&self, q: usize, flow: &[BigRational]) -> Group {
        let world = self.world;
        let keys = || (0..world.keys()).filter(|&key| self.quota_counts(q, key, flow));
        let has_quota_left = |key: usize| self.has[q][key] < whole(world.quota(q, key));
        if keys().next().is_some() && keys().all(has_quota_left) {
            return Group::WithinQuota;
        }
        let weightless = |&key: &usize| {
            world.is_divided(q, key) && !flow[key].is_zero() && world.weight(q, key) == 0
        };
        Group::OverQuota {
            priority: core::cmp::Reverse(world.queues[q].priority),
            weightless: (0..world.keys()).any(|key| weightless(&key)),
        }
    }

    /// The ratios of a queue. Within quota: what it has over its quota. Over quota: what it has
    /// over what there is, by weight; for a leaf of all keys, for an inner queue of the keys that
    /// it gets now.
    fn gauges(&self, q: usize, group: Group, flow: &[BigRational]) -> Vec<Gauge> {
        let world = self.world;
        let divided = || (0..world.keys()).filter(|&key| world.is_divided(q, key));
        let gauge = |key: usize, unit: u64| Gauge {
            level: &self.has[q][key] / whole(unit.max(1)),
            pace: &flow[key] / whole(unit.max(1)),
        };
        if group == Group::WithinQuota {
            let parent_has = &self.parent_has[world.queues[q].parent];
            return divided()
                .filter(|&key| self.quota_counts(q, key, flow))
                .map(|key| gauge(key, world.quota(q, key).min(parent_has[key])))
                .collect();
        }
        let asks = |key: usize| !flow[key].is_zero();
        let all = world.is_leaf(q) || !divided().any(asks);
        divided()
            .filter(|&key| all || asks(key))
            .map(|key| {
                let weight = &self.weights[q][key];
                let mut gauge = gauge(key, world.capacity[key]);
                gauge.level /= weight;
                gauge.pace /= weight;
                gauge
            })
            .collect()
    }
}
