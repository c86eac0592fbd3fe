//! All plans of a small world, by trying every set of victims and every placement.

use crate::case::{Amounts, Case, Gang};
use std::cmp::Reverse;

/// By what right victims leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    Consolidate,
    Reclaim,
    Preempt,
    Mixed,
}

/// A pod: the number of its gang and its own.
pub(crate) type Pod = (usize, usize);

/// What a plan costs: the sums that decide, in their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    pub(crate) broken_with_weight: u64,
    pub(crate) broken: u64,
    /// The priorities of broken gangs, the highest first.
    pub(crate) priorities: Vec<i32>,
    pub(crate) gpu_seconds: u64,
    pub(crate) cpu_seconds: u64,
    pub(crate) pods: u64,
    pub(crate) run_seconds: u64,
}

/// What a queue is guaranteed and what its fair share is, of GPUs and CPUs; `None`: not divided.
pub(crate) type Bounds = [Option<(u64, u64)>; 2];

pub(crate) struct Oracle<'a> {
    case: &'a Case,
    bounds: Vec<Bounds>,
    units: Vec<Unit>,
    free: Vec<Amounts>,
    held: Vec<Amounts>,
}

/// Pods that leave together: the minimum of a gang, or one surplus pod.
#[derive(Debug, Clone)]
struct Unit {
    gang: usize,
    pods: Vec<usize>,
    is_core: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Quota,
    Share,
}

/// Where the claimant's pods are, by node.
type Places = Vec<u64>;

impl<'a> Oracle<'a> {
    pub(crate) fn new(case: &'a Case, bounds: Vec<Bounds>) -> Self {
        let mut units = Vec::new();
        let running = &case.gangs[..case.gangs.len() - 1];
        let mut free: Vec<Amounts> = case.nodes.iter().map(|node| node.has).collect();
        let mut held = vec![[0, 0]; case.queues.len()];
        for (number, gang) in running.iter().enumerate() {
            for (node, _) in &gang.at {
                take(&mut free[*node], gang.asks);
                for queue in case.path(gang.queue) {
                    give(&mut held[queue], gang.asks);
                }
            }
            let unit = |pods, is_core| Unit {
                gang: number,
                pods,
                is_core,
            };
            units.push(unit((0..gang.minimum).collect(), true));
            units.extend((gang.minimum..gang.at.len()).map(|pod| unit(vec![pod], false)));
        }
        Self {
            case,
            bounds,
            units,
            free,
            held,
        }
    }

    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }

    /// Whether the claimant starts without any eviction.
    pub(crate) fn starts(&self) -> bool {
        self.has_room(&[])
    }

    /// The cheapest plan by a right; `None`: there is none.
    pub(crate) fn best(&self, right: Right) -> Option<Cost> {
        self.cheapest(right).map(|(cost, _)| cost)
    }

    fn cheapest(&self, right: Right) -> Option<(Cost, Vec<usize>)> {
        let may: Vec<usize> = (0..self.units.len())
            .filter(|unit| self.may_leave(&self.units[*unit], right))
            .collect();
        let mut sets: Vec<(Cost, Vec<usize>)> = (1..1usize << may.len())
            .map(|bits| (0..may.len()).filter(move |at| bits >> at & 1 == 1))
            .map(|set| set.map(|at| may[at]).collect::<Vec<usize>>())
            .filter(|set| self.is_closed(set))
            .map(|set| (self.cost(&self.pods_of(&set)), set))
            .collect();
        sets.sort();
        sets.into_iter().find(|(_, set)| self.is_plan(set, right))
    }

    /// Whether evicting exactly these pods is a plan by a right.
    pub(crate) fn allows(&self, pods: &[Pod], right: Right) -> bool {
        let leaves = |unit: &&usize| {
            let unit = &self.units[**unit];
            unit.pods
                .iter()
                .all(|pod| pods.contains(&(unit.gang, *pod)))
        };
        let all: Vec<usize> = (0..self.units.len()).collect();
        let set: Vec<usize> = all.iter().filter(leaves).copied().collect();
        let mut same = self.pods_of(&set);
        same.sort_unstable();
        let mut pods = pods.to_vec();
        pods.sort_unstable();
        let may = |unit: &usize| self.may_leave(&self.units[*unit], right);
        same == pods && self.is_closed(&set) && set.iter().all(may) && self.is_plan(&set, right)
    }

    fn pods_of(&self, set: &[usize]) -> Vec<Pod> {
        let units = set.iter().map(|unit| &self.units[*unit]);
        units
            .flat_map(|unit| unit.pods.iter().map(|pod| (unit.gang, *pod)))
            .collect()
    }

    pub(crate) fn cost(&self, pods: &[Pod]) -> Cost {
        let gang = |number: &usize| &self.case.gangs[*number];
        let broken: Vec<&Gang> = (0..self.case.gangs.len() - 1)
            .filter(|number| {
                let left = pods.iter().filter(|(gang, _)| gang == number).count();
                gang(number).at.len() - left < gang(number).minimum
            })
            .map(|number| gang(&number))
            .collect();
        let has_weight = |gang: &&&Gang| {
            let path = self.case.path(gang.queue);
            !path.into_iter().any(|queue| {
                let one = &self.case.queues[queue];
                one.gpus.is_some() && one.weight == 0 && gang.asks[0] > 0
            })
        };
        let mut priorities: Vec<i32> = broken.iter().map(|gang| gang.priority).collect();
        priorities.sort_by_key(|priority| Reverse(*priority));
        let of = |amount: &dyn Fn(&Gang, u64) -> u64| {
            let pods = pods.iter().map(|(number, pod)| {
                let gang = gang(number);
                amount(gang, gang.at[*pod].1)
            });
            pods.sum::<u64>()
        };
        Cost {
            broken_with_weight: broken.iter().filter(has_weight).count() as u64,
            broken: broken.len() as u64,
            priorities,
            gpu_seconds: of(&|gang, age_s| gang.asks[0] * age_s),
            cpu_seconds: of(&|gang, age_s| gang.asks[1] * age_s),
            pods: pods.len() as u64,
            run_seconds: of(&|_, age_s| age_s),
        }
    }

    /// A core leaves with the surplus of its gang.
    fn is_closed(&self, set: &[usize]) -> bool {
        let cores = set.iter().map(|unit| &self.units[*unit]);
        cores.filter(|unit| unit.is_core).all(|core| {
            let kin = (0..self.units.len()).filter(|unit| self.units[*unit].gang == core.gang);
            kin.into_iter().all(|unit| set.contains(&unit))
        })
    }

    /// The rules on a unit alone.
    fn may_leave(&self, unit: &Unit, right: Right) -> bool {
        match right {
            Right::Consolidate => self.may_move(unit),
            Right::Reclaim => self.may_be_reclaimed(unit),
            Right::Preempt => self.may_be_preempted(unit),
            Right::Mixed => {
                self.may_move(unit) || self.may_be_reclaimed(unit) || self.may_be_preempted(unit)
            }
        }
    }

    /// Whether the minimum of a gang, if this is one, has run for so many seconds.
    fn has_run(&self, unit: &Unit, min_s: u64) -> bool {
        let gang = &self.case.gangs[unit.gang];
        let ages = gang.at[..gang.minimum].iter().map(|(_, age_s)| *age_s);
        !unit.is_core || ages.min().unwrap_or(0) >= min_s
    }

    fn may_be_preempted(&self, unit: &Unit) -> bool {
        let (gang, claimant) = (&self.case.gangs[unit.gang], self.case.claimant());
        gang.preemptible
            && gang.queue == claimant.queue
            && gang.priority < claimant.priority
            && self.has_run(unit, self.case.queues[gang.queue].preempt_min_s)
    }

    fn may_be_reclaimed(&self, unit: &Unit) -> bool {
        let (gang, claimant) = (&self.case.gangs[unit.gang], self.case.claimant());
        gang.preemptible
            && gang.queue != claimant.queue
            && self.has_run(unit, self.case.queues[gang.queue].reclaim_min_s)
            && !(unit.is_core && self.is_protected(unit.gang))
    }

    fn may_move(&self, unit: &Unit) -> bool {
        let gang = &self.case.gangs[unit.gang];
        let queue = &self.case.queues[gang.queue];
        gang.preemptible
            && gang.has_controller
            && self.has_run(unit, queue.preempt_min_s.max(queue.reclaim_min_s))
    }

    /// Whether a unit may be moved where queues hold so much in the end: a claimant over its fair
    /// share moves only its own queue's gangs, or those of queues over theirs.
    fn moves_fairly(&self, unit: &Unit, held: &[Amounts]) -> bool {
        let (gang, claimant) = (&self.case.gangs[unit.gang], self.case.claimant());
        let over = |of: usize, r: usize, held: &[Amounts]| {
            self.bounds[of][r].is_some_and(|(_, share)| held[of][r] > share)
        };
        let path = self.case.path(claimant.queue);
        let stands_over =
            |r: usize| claimant.asks[r] > 0 && path.iter().any(|of| over(*of, r, held));
        let gives = |r: usize| gang.asks[r] > 0 && over(gang.queue, r, &self.held);
        gang.queue == claimant.queue || !(0..2).any(stands_over) || (0..2).any(gives)
    }

    /// Whether the queues of a unit are over their bounds before the plan.
    fn gives(&self, unit: &Unit, kind: Kind) -> bool {
        let gang = &self.case.gangs[unit.gang];
        let levels = self.below_common(gang.queue, self.case.claimant().queue);
        let over = |r: usize| {
            let mut levels = levels.iter();
            levels.all(|queue| {
                let bound = self.bound(*queue, r, kind);
                bound.is_some_and(|bound| self.held[*queue][r] > bound)
            })
        };
        self.may_be_reclaimed(unit) && (0..2).any(|r| gang.asks[r] > 0 && over(r))
    }

    fn bound(&self, queue: usize, r: usize, kind: Kind) -> Option<u64> {
        self.bounds[queue][r].map(|(quota, share)| match kind {
            Kind::Quota => quota,
            Kind::Share => share,
        })
    }

    /// Whether the minimum of a gang is within the quota of its queue.
    fn is_protected(&self, of: usize) -> bool {
        let running = &self.case.gangs[..self.case.gangs.len() - 1];
        let mut order: Vec<(usize, &Gang)> = running
            .iter()
            .enumerate()
            .filter(|(_, gang)| gang.queue == running[of].queue)
            .collect();
        order.sort_by_key(|(number, gang)| {
            let oldest = gang.at.iter().map(|(_, age_s)| *age_s).max();
            (
                gang.preemptible,
                Reverse(gang.priority),
                Reverse(oldest),
                *number,
            )
        });
        let queue = running[of].queue;
        let mut left = self.bounds[queue].map(|bounds| bounds.map(|(quota, _)| quota));
        for (number, gang) in order {
            let mut fits = true;
            for (left, asks) in left.iter_mut().zip(gang.asks) {
                let Some(left) = left else { continue };
                match left.checked_sub(asks * gang.minimum as u64) {
                    Some(rest) => *left = rest,
                    None => fits = false,
                }
            }
            if number == of {
                return fits;
            }
        }
        false
    }

    fn is_plan(&self, set: &[usize], right: Right) -> bool {
        let claimant = self.case.claimant();
        let pods = self.pods_of(set);
        let mut gangs = self.case.gangs.iter().enumerate();
        if gangs.any(|(number, gang)| {
            let leave = pods.iter().filter(|(of, _)| *of == number).count();
            gang.budget.is_some_and(|allowed| leave > allowed as usize)
        }) {
            return false;
        }
        let (free, held) = self.without(set);
        if !self.within_limits(&held, claimant) || self.placements(&free).is_empty() {
            return false;
        }
        if right != Right::Consolidate && !self.is_minimal(set) {
            return false;
        }
        let kinds = [Kind::Quota, Kind::Share];
        self.placements(&free).into_iter().any(|places| {
            kinds
                .iter()
                .any(|kind| self.ends_well(set, right, *kind, &places))
        })
    }

    /// Every unit is needed for room or a limit.
    fn is_minimal(&self, set: &[usize]) -> bool {
        let follows = |unit: usize| {
            let kin = |core: &usize| {
                let core = &self.units[*core];
                core.is_core && core.gang == self.units[unit].gang
            };
            !self.units[unit].is_core && set.iter().any(kin)
        };
        set.iter().filter(|unit| !follows(**unit)).all(|unit| {
            let rest: Vec<usize> = set.iter().copied().filter(|one| one != unit).collect();
            !self.has_room(&rest)
        })
    }

    fn has_room(&self, set: &[usize]) -> bool {
        let (free, held) = self.without(set);
        self.within_limits(&held, self.case.claimant()) && !self.placements(&free).is_empty()
    }

    fn without(&self, set: &[usize]) -> (Vec<Amounts>, Vec<Amounts>) {
        let (mut free, mut held) = (self.free.clone(), self.held.clone());
        for (number, pod) in self.pods_of(set) {
            let gang = &self.case.gangs[number];
            give(&mut free[gang.at[pod].0], gang.asks);
            for queue in self.case.path(gang.queue) {
                take(&mut held[queue], gang.asks);
            }
        }
        (free, held)
    }

    /// Whether the claimant exceeds no limit, and as one that is not preemptible no quota.
    fn within_limits(&self, held: &[Amounts], claimant: &Gang) -> bool {
        let asked = claimant.asks[0] * claimant.minimum as u64;
        self.case.path(claimant.queue).into_iter().all(|queue| {
            let limit = self.case.queues[queue].gpus.and_then(|(_, limit)| limit);
            asked == 0 || limit.is_none_or(|limit| held[queue][0] + asked <= limit)
        }) && (claimant.preemptible || self.within_quota_of_fixed(claimant))
    }

    /// Gangs that are not preemptible hold no more than the quotas: in a leaf of what is divided,
    /// above it where there is an entry.
    fn within_quota_of_fixed(&self, claimant: &Gang) -> bool {
        self.case.path(claimant.queue).into_iter().all(|queue| {
            let one = &self.case.queues[queue];
            let is_leaf = queue == claimant.queue;
            let running = &self.case.gangs[..self.case.gangs.len() - 1];
            let fixed = |r: usize| -> u64 {
                let below =
                    |gang: &&Gang| !gang.preemptible && self.case.path(gang.queue).contains(&queue);
                let gangs = running.iter().filter(below);
                gangs.map(|gang| gang.asks[r] * gang.at.len() as u64).sum()
            };
            (0..2).all(|r| {
                let asked = claimant.asks[r] * claimant.minimum as u64;
                let entry = match r {
                    0 => one.gpus.map(|(quota, _)| quota),
                    _ => one.cpus,
                };
                let divided = self.bounds[queue][r].is_some();
                let quota = entry.or((is_leaf && divided).then_some(0));
                asked == 0 || quota.is_none_or(|quota| fixed(r) + asked <= quota)
            })
        })
    }

    /// All ways to place the claimant.
    fn placements(&self, free: &[Amounts]) -> Vec<Places> {
        let claimant = self.case.claimant();
        let racks: Vec<Option<usize>> = match claimant.in_one_rack {
            true => (0..4).map(Some).collect(),
            false => vec![None],
        };
        let mut found = Vec::new();
        for rack in racks {
            let fits: Vec<u64> = free
                .iter()
                .enumerate()
                .map(|(node, free)| {
                    let here = rack.is_none_or(|rack| self.case.nodes[node].rack == rack);
                    if here { times(*free, claimant.asks) } else { 0 }
                })
                .collect();
            let mut places = vec![0; free.len()];
            spread(claimant.minimum as u64, 0, &fits, &mut places, &mut found);
        }
        found
    }

    fn ends_well(&self, set: &[usize], right: Right, kind: Kind, places: &Places) -> bool {
        let claimant = self.case.claimant();
        let (mut free, mut held) = self.without(set);
        for (node, pods) in places.iter().enumerate() {
            for _ in 0..*pods {
                take(&mut free[node], claimant.asks);
                for queue in self.case.path(claimant.queue) {
                    give(&mut held[queue], claimant.asks);
                }
            }
        }
        let may_return = |unit: &usize| self.case.gangs[self.units[*unit].gang].has_controller;
        let may: Vec<usize> = set.iter().copied().filter(may_return).collect();
        let all = (1usize << may.len()) - 1;
        let ways = match right {
            Right::Consolidate => all..=all,
            // Whoever returns to the claimant's queue only makes it hold more.
            Right::Preempt => 0..=0,
            Right::Reclaim | Right::Mixed => 0..=all,
        };
        ways.into_iter().any(|bits| {
            let chosen = (0..may.len()).filter(|at| bits >> at & 1 == 1);
            let back: Vec<usize> = chosen.map(|at| may[at]).collect();
            let holds = |free: &[Amounts]| self.rules_hold(set, &back, right, kind, (free, &held));
            self.is_open(set, &back)
                && self.fit_rest(&self.pods_of(&back), 0, &mut free.clone(), &holds)
        })
    }

    /// Surplus returns only to a gang that has its minimum.
    fn is_open(&self, set: &[usize], back: &[usize]) -> bool {
        let lost = |gang: usize| {
            let core =
                |unit: &&usize| self.units[**unit].is_core && self.units[**unit].gang == gang;
            set.iter().filter(core).any(|core| !back.contains(core))
        };
        let mut surplus = back.iter().filter(|unit| !self.units[**unit].is_core);
        !surplus.any(|unit| lost(self.units[*unit].gang))
    }

    /// Whether these pods all find places so that something holds of what is left free. Pods of
    /// one gang are alike: no later one is on an earlier node than `from`.
    fn fit_rest(
        &self,
        pods: &[Pod],
        from: usize,
        free: &mut Vec<Amounts>,
        holds: &dyn Fn(&[Amounts]) -> bool,
    ) -> bool {
        let Some(((gang, _), rest)) = pods.split_first() else {
            return holds(free);
        };
        let asks = self.case.gangs[*gang].asks;
        (from..free.len()).any(|node| {
            if times(free[node], asks) == 0 {
                return false;
            }
            let alike = rest.first().is_some_and(|(next, _)| next == gang);
            take(&mut free[node], asks);
            let fits = self.fit_rest(rest, if alike { node } else { 0 }, free, holds);
            give(&mut free[node], asks);
            fits
        })
    }

    fn rules_hold(
        &self,
        set: &[usize],
        back: &[usize],
        right: Right,
        kind: Kind,
        (free, held): (&[Amounts], &[Amounts]),
    ) -> bool {
        let claimant = self.case.claimant();
        let returned = || back.iter().map(|unit| &self.units[*unit]);
        let mut held = held.to_vec();
        for unit in returned() {
            let gang = &self.case.gangs[unit.gang];
            for _ in &unit.pods {
                for queue in self.case.path(gang.queue) {
                    give(&mut held[queue], gang.asks);
                }
            }
        }
        let exceeds = |queue: usize| {
            let limit = self.case.queues[queue].gpus.and_then(|(_, limit)| limit);
            limit.is_some_and(|limit| held[queue][0] > limit)
        };
        if returned().any(|unit| {
            let gang = &self.case.gangs[unit.gang];
            gang.asks[0] > 0 && self.case.path(gang.queue).into_iter().any(exceeds)
        }) {
            return false;
        }
        let only_moves = |unit: &&Unit| {
            right == Right::Consolidate || !(self.may_be_preempted(unit) || self.gives(unit, kind))
        };
        let moved: u64 = returned()
            .filter(only_moves)
            .map(|unit| unit.pods.len() as u64 * self.case.gangs[unit.gang].asks[0])
            .sum();
        if moved > 2 * claimant.asks[0] * claimant.minimum as u64 {
            return false;
        }
        let is_back = |unit: &usize| back.contains(unit);
        let gone = set.iter().filter(|unit| !is_back(unit));
        let gone = victims(gone.map(|unit| &self.units[*unit]));
        let moves = |unit: &Unit| self.may_move(unit) && self.moves_fairly(unit, &held);
        let of_own = |unit: &Unit| self.case.gangs[unit.gang].queue == claimant.queue;
        match right {
            Right::Consolidate => gone.is_empty() && returned().all(moves),
            Right::Preempt => self.keeps_share(&held),
            Right::Reclaim => {
                let mut all = set.iter().map(|unit| &self.units[*unit]);
                all.all(|unit| self.gives(unit, kind))
                    && returned().all(|unit| self.claims(unit, kind, &held))
                    && self.claims_are_met(&gone, kind, free, &held)
            }
            Right::Mixed => {
                let allowed = |unit: &Unit| match of_own(unit) {
                    true => self.may_be_preempted(unit),
                    false => self.gives(unit, kind),
                };
                let fine = |unit: &Unit| {
                    self.may_be_preempted(unit)
                        || moves(unit)
                        || self.gives(unit, kind) && self.claims(unit, kind, &held)
                };
                let mut left = set.iter().filter(|unit| !is_back(unit));
                left.all(|unit| allowed(&self.units[*unit]))
                    && returned().all(fine)
                    && self.claims_are_met(&gone, kind, free, &held)
                    && self.keeps_share(&held)
            }
        }
    }

    /// Whether the claimant's queues, up to just below the lowest one above a victim, too, are
    /// within their bounds.
    fn claims(&self, unit: &Unit, kind: Kind, held: &[Amounts]) -> bool {
        let claimant = self.case.claimant();
        let within = |queue: &usize| {
            (0..2).all(|r| {
                let bound = self.bound(*queue, r, kind);
                claimant.asks[r] == 0 || bound.is_none_or(|bound| held[*queue][r] <= bound)
            })
        };
        let victim = self.case.gangs[unit.gang].queue;
        self.below_common(claimant.queue, victim).iter().all(within)
    }

    fn keeps_share(&self, held: &[Amounts]) -> bool {
        let claimant = self.case.claimant();
        self.case.path(claimant.queue).into_iter().all(|queue| {
            (0..2).all(|r| {
                let share = self.bounds[queue][r].map(|(_, share)| share);
                let most = share.map(|share| share.max(self.held[queue][r]));
                claimant.asks[r] == 0 || most.is_none_or(|most| held[queue][r] <= most)
            })
        })
    }

    fn claims_are_met(
        &self,
        gone: &[Unit],
        kind: Kind,
        free: &[Amounts],
        held: &[Amounts],
    ) -> bool {
        let claimant = self.case.claimant();
        let queue_of = |unit: &Unit| self.case.gangs[unit.gang].queue;
        let reclaimed: Vec<&Unit> = gone
            .iter()
            .filter(|unit| queue_of(unit) != claimant.queue)
            .collect();
        reclaimed.iter().all(|unit| {
            let levels = self.below_common(queue_of(unit), claimant.queue);
            let over = |r: usize| {
                levels.iter().all(|queue| {
                    let below = reclaimed
                        .iter()
                        .filter(|other| self.case.path(queue_of(other)).contains(queue));
                    let largest = below.map(|other| self.size(other, r)).max().unwrap_or(0);
                    self.bound(*queue, r, kind)
                        .is_some_and(|bound| held[*queue][r] + largest > bound)
                })
            };
            self.claims(unit, kind, held)
                && (0..2).any(|r| self.is_short(unit, r, free, held) && over(r))
        })
    }

    fn size(&self, unit: &Unit, r: usize) -> u64 {
        unit.pods.len() as u64 * self.case.gangs[unit.gang].asks[r]
    }

    /// Whether to put a unit back would break something in this resource.
    fn is_short(&self, unit: &Unit, r: usize, free: &[Amounts], held: &[Amounts]) -> bool {
        let gang = &self.case.gangs[unit.gang];
        let nodes = (0..free.len()).any(|node| {
            let pods = unit.pods.iter().filter(|pod| gang.at[**pod].0 == node);
            let back = pods.count() as u64 * gang.asks[r];
            back > free[node][r]
        });
        let limits = self.case.path(gang.queue).into_iter().any(|queue| {
            let limit = self.case.queues[queue].gpus.and_then(|(_, limit)| limit);
            let back = self.size(unit, 0);
            r == 0 && back > 0 && limit.is_some_and(|limit| held[queue][0] + back > limit)
        });
        nodes || limits
    }

    /// The queues from one up to just below the lowest that is above both.
    fn below_common(&self, queue: usize, other: usize) -> Vec<usize> {
        let others = self.case.path(other);
        let path = self.case.path(queue).into_iter();
        path.take_while(|queue| !others.contains(queue)).collect()
    }
}

/// The victims: gangs as a whole, with their surplus, and surplus alone.
fn victims<'a>(gone: impl Iterator<Item = &'a Unit>) -> Vec<Unit> {
    let mut victims: Vec<Unit> = gone.cloned().collect();
    victims.sort_by_key(|unit| !unit.is_core);
    let mut whole: Vec<Unit> = Vec::new();
    for unit in victims {
        let core = whole
            .iter_mut()
            .find(|one| one.is_core && one.gang == unit.gang);
        match core {
            Some(core) => core.pods.extend(unit.pods),
            None => whole.push(unit),
        }
    }
    whole
}

fn take(from: &mut Amounts, amounts: Amounts) {
    for (from, amount) in from.iter_mut().zip(amounts) {
        *from -= amount;
    }
}

fn give(to: &mut Amounts, amounts: Amounts) {
    for (to, amount) in to.iter_mut().zip(amounts) {
        *to += amount;
    }
}

/// How many pods fit.
fn times(free: Amounts, asks: Amounts) -> u64 {
    let pairs = free.iter().zip(asks).filter(|(_, asks)| *asks > 0);
    pairs.map(|(free, asks)| free / asks).min().unwrap_or(99)
}

/// All ways to spread so many pods over nodes from one on.
fn spread(left: u64, node: usize, fits: &[u64], places: &mut Places, found: &mut Vec<Places>) {
    if left == 0 {
        found.push(places.clone());
        return;
    }
    if node == fits.len() {
        return;
    }
    for pods in 0..=fits[node].min(left) {
        places[node] = pods;
        spread(left - pods, node + 1, fits, places, found);
    }
    places[node] = 0;
}
