//! The rules on who may leave for whom, in the words of this test.

use super::{
    ALL_GPUS, Bounds, Entries, FIRST_MODEL, Kind, Oracle, Right, State, Unit, entries_of, give,
};
use crate::case::Gang;
use std::cmp::Reverse;

/// In what a victim is taken: of CPUs, or of the GPUs of a model that stand on nodes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Cpus,
    Gpus(Option<usize>),
}

impl Oracle<'_> {
    /// Whether a unit may be moved where queues hold so much in the end: a claimant over its fair
    /// share moves only its own queue's gangs, or those of queues over theirs. Fair shares of GPUs
    /// are of all models together here.
    fn moves_fairly(&self, unit: &Unit, held: &[Entries]) -> bool {
        let (gang, claimant) = (&self.case.gangs[unit.gang], self.case.claimant());
        let over = |of: usize, r: usize, held: &[Entries]| {
            self.bounds[of][r].is_some_and(|(_, share)| held[of][r] > share)
        };
        let (asked, holds) = (self.asked(), self.holds(unit));
        let path = self.case.path(claimant.queue);
        let stands_over = |r: usize| asked[r] > 0 && path.iter().any(|of| over(*of, r, held));
        let gives = |r: usize| holds[r] > 0 && over(gang.queue, r, &self.now.held);
        gang.queue == claimant.queue || !(0..2).any(stands_over) || (0..2).any(gives)
    }

    /// What the pods of a unit hold.
    fn holds(&self, unit: &Unit) -> Entries {
        let gang = &self.case.gangs[unit.gang];
        let mut holds = [0; 4];
        for pod in &unit.pods {
            let model = self.case.nodes[gang.at[*pod].node].model;
            give(&mut holds, entries_of(gang.asks_of(*pod), model));
        }
        holds
    }

    /// All in which a unit could be taken.
    fn could_be_taken(&self, unit: &Unit) -> Vec<Taken> {
        let gang = &self.case.gangs[unit.gang];
        let mut all = vec![Taken::Cpus];
        for pod in unit.pods.iter().filter(|pod| gang.asks_of(**pod)[0] > 0) {
            let taken = Taken::Gpus(self.case.nodes[gang.at[*pod].node].model);
            if !all.contains(&taken) {
                all.push(taken);
            }
        }
        all
    }

    /// The entry that decides among a queue and its siblings: that of the model, if one of them
    /// has an entry for it.
    fn entry(&self, queue: usize, taken: Taken) -> usize {
        match taken {
            Taken::Cpus => 1,
            Taken::Gpus(Some(model)) if self.bounds[queue][FIRST_MODEL + model].is_some() => {
                FIRST_MODEL + model
            }
            Taken::Gpus(_) => ALL_GPUS,
        }
    }

    /// Whether a queue that holds `more` is over its bound. Of a GPU model it is over its fair
    /// share also if it is over the fair share of all GPUs; it never is within what the quota of
    /// the model guarantees.
    fn is_over(&self, queue: usize, taken: Taken, kind: Kind, held: &[Entries], more: u64) -> bool {
        let entry = self.entry(queue, taken);
        let holds = |entry: usize| held[queue][entry] + more;
        let bounds = &self.bounds[queue];
        let over_quota = bounds[entry].is_some_and(|(quota, _)| holds(entry) > quota);
        let over_share =
            |entry: usize| bounds[entry].is_some_and(|(_, share)| holds(entry) > share);
        match kind {
            Kind::Quota => over_quota,
            Kind::Share if entry >= FIRST_MODEL => {
                over_quota && (over_share(entry) || over_share(ALL_GPUS))
            }
            Kind::Share => over_share(entry),
        }
    }

    /// Whether the queues of a unit are over their bounds before the plan.
    fn gives(&self, unit: &Unit, kind: Kind) -> bool {
        let gang = &self.case.gangs[unit.gang];
        let levels = self.below_common(gang.queue, self.case.claimant().queue);
        let over = |taken: Taken| {
            let mut levels = levels.iter();
            levels.all(|queue| self.is_over(*queue, taken, kind, &self.now.held, 0))
        };
        self.may_be_reclaimed(unit) && self.could_be_taken(unit).into_iter().any(over)
    }

    fn bound(&self, queue: usize, entry: usize, kind: Kind) -> Option<u64> {
        self.bounds[queue][entry].map(|(quota, share)| match kind {
            Kind::Quota => quota,
            Kind::Share => share,
        })
    }

    /// Whether a unit is within the quota of its queue: on GPUs of a model that is divided within
    /// that one's, all others within the quota of GPUs. What is protected uses up both; of a gang
    /// that is not preemptible everything is, and uses up what there is. First come the minima,
    /// then the surplus of those that are protected, the oldest first.
    pub(super) fn is_protected(&self, number: usize) -> bool {
        let running = &self.case.gangs[..self.case.gangs.len() - 1];
        let queue = running[self.units[number].gang].queue;
        let mut order: Vec<&Unit> = self.units.iter().collect();
        order.retain(|unit| running[unit.gang].queue == queue);
        order.sort_by_key(|unit| {
            let gang: &Gang = &running[unit.gang];
            let oldest = gang.at.iter().map(|at| at.age_s).max();
            (
                !unit.is_core,
                gang.preemptible,
                Reverse(gang.priority),
                Reverse(oldest),
                unit.gang,
                unit.leaders.len(),
                unit.pods.iter().min(),
            )
        });
        let bounds = &self.bounds[queue];
        let mut left = bounds.map(|bounds| bounds.map(|(quota, _)| quota));
        let mut protected: Vec<usize> = Vec::new();
        for unit in order {
            let mut leaders = unit.leaders.iter();
            if leaders.all(|leader| protected.contains(leader))
                && self.fits_quota(unit, bounds, &mut left)
            {
                protected.push(unit.number);
            }
        }
        protected.contains(&number)
    }

    /// Whether what a unit holds fits what is left of a quota; takes it out of what is left.
    fn fits_quota(&self, unit: &Unit, bounds: &Bounds, left: &mut Entries<Option<u64>>) -> bool {
        let preemptible = self.case.gangs[unit.gang].preemptible;
        let holds = self.holds(unit);
        let by_model = (FIRST_MODEL..4).filter(|entry| bounds[*entry].is_some());
        let by_model: u64 = by_model.map(|entry| holds[entry]).sum();
        let mut fits = true;
        for (entry, left) in left.iter_mut().enumerate() {
            let Some(left) = left else { continue };
            let decides = match entry {
                ALL_GPUS => holds[entry] - by_model,
                _ => holds[entry],
            };
            match left.checked_sub(decides) {
                Some(rest) => *left = rest,
                None if !preemptible => *left = 0,
                None => fits = false,
            }
        }
        if let Some(left) = left[ALL_GPUS].as_mut().filter(|_| fits) {
            *left = left.saturating_sub(by_model);
        }
        fits
    }

    pub(super) fn rules_hold(
        &self,
        set: &[usize],
        back: &[usize],
        right: Right,
        kind: Kind,
        end: &State,
    ) -> bool {
        let claimant = self.case.claimant();
        let held = &end.held;
        let returned = || back.iter().map(|unit| &self.units[*unit]);
        let mut of_returned = back.iter().map(|unit| self.judged_by(*unit, set));
        let exceeds = |queue: usize| {
            let limit = self.case.queues[queue].gpus.and_then(|(_, limit)| limit);
            limit.is_some_and(|limit| held[queue][ALL_GPUS] > limit)
        };
        let gpus_of = |unit: &Unit| self.holds(unit)[ALL_GPUS];
        if returned().any(|unit| {
            let gang = &self.case.gangs[unit.gang];
            gpus_of(unit) > 0 && self.case.path(gang.queue).into_iter().any(exceeds)
        }) {
            return false;
        }
        let only_moves = |unit: &&usize| {
            let unit = self.judged_by(**unit, set);
            right == Right::Consolidate || !(self.may_be_preempted(unit) || self.gives(unit, kind))
        };
        let moved = back.iter().filter(only_moves);
        let moved: u64 = moved.map(|unit| gpus_of(&self.units[*unit])).sum();
        if moved > 2 * self.asked()[ALL_GPUS] {
            return false;
        }
        let is_back = |unit: &usize| back.contains(unit);
        let left: Vec<usize> = set.iter().copied().filter(|unit| !is_back(unit)).collect();
        let gone = victims(left.iter().map(|unit| &self.units[*unit]));
        let mut of_gone = left.iter().map(|unit| self.judged_by(*unit, &left));
        let moves = |unit: &Unit| self.may_move(unit) && self.moves_fairly(unit, held);
        let of_own = |unit: &Unit| self.case.gangs[unit.gang].queue == claimant.queue;
        match right {
            Right::Consolidate => gone.is_empty() && of_returned.all(moves),
            Right::Preempt => self.keeps_share(held),
            Right::Reclaim => {
                of_gone.all(|unit| self.gives(unit, kind))
                    && of_returned.all(|unit| self.gives(unit, kind))
                    && returned().all(|unit| self.claims(unit, kind, held))
                    && self.claims_are_met(&gone, kind, end)
            }
            Right::Mixed => {
                let allowed = |unit: &Unit| match of_own(unit) {
                    true => self.may_be_preempted(unit),
                    false => self.gives(unit, kind),
                };
                let fine = |unit: &Unit| {
                    self.may_be_preempted(unit)
                        || moves(unit)
                        || self.gives(unit, kind) && self.claims(unit, kind, held)
                };
                of_gone.all(allowed)
                    && of_returned.all(fine)
                    && self.claims_are_met(&gone, kind, end)
                    && self.keeps_share(held)
            }
        }
    }

    /// By whose right a unit of a set leaves: surplus that leaves with the minimum of its gang
    /// leaves by the right of that.
    fn judged_by(&self, unit: usize, set: &[usize]) -> &Unit {
        let mut leaders = self.units[unit].leaders.iter();
        let leader = leaders.find(|leader| set.contains(leader));
        &self.units[leader.copied().unwrap_or(unit)]
    }

    /// Whether the claimant's queues, up to just below the lowest one above a victim, too, are
    /// within their bounds in all that the claimant asks for.
    fn claims(&self, unit: &Unit, kind: Kind, held: &[Entries]) -> bool {
        let asked = self.asked();
        let within = |queue: &usize| {
            (0..4).all(|entry| {
                let bound = self.bound(*queue, entry, kind);
                let counts = asked[entry] > 0 && !self.is_excused(*queue, entry);
                !counts || bound.is_none_or(|bound| held[*queue][entry] <= bound)
            })
        };
        let victim = self.case.gangs[unit.gang].queue;
        let levels = self.below_common(self.case.claimant().queue, victim);
        levels.iter().all(within)
    }

    fn keeps_share(&self, held: &[Entries]) -> bool {
        let asked = self.asked();
        let path = self.case.path(self.case.claimant().queue);
        path.into_iter().all(|queue| {
            (0..4).all(|entry| {
                let share = self.bounds[queue][entry].map(|(_, share)| share);
                let most = share.map(|share| share.max(self.now.held[queue][entry]));
                asked[entry] == 0 || most.is_none_or(|most| held[queue][entry] <= most)
            })
        })
    }

    /// Whether each victim is taken in something that is short, in which its queues are over their
    /// bounds until the last one leaves, and the claimant's queues within theirs: so nobody can
    /// take it back.
    fn claims_are_met(&self, gone: &[Unit], kind: Kind, end: &State) -> bool {
        let claimant = self.case.claimant();
        let queue_of = |unit: &Unit| self.case.gangs[unit.gang].queue;
        let reclaimed: Vec<&Unit> = gone
            .iter()
            .filter(|unit| queue_of(unit) != claimant.queue)
            .collect();
        reclaimed.iter().all(|unit| {
            let givers = self.below_common(queue_of(unit), claimant.queue);
            let claimants = self.below_common(claimant.queue, queue_of(unit));
            let is_given = |taken: Taken| {
                givers.iter().all(|queue| {
                    let entry = self.entry(*queue, taken);
                    let below = reclaimed
                        .iter()
                        .filter(|other| self.case.path(queue_of(other)).contains(queue));
                    let largest = below.map(|other| self.holds(other)[entry]).max();
                    self.is_over(*queue, taken, kind, &end.held, largest.unwrap_or(0))
                })
            };
            let is_kept = |taken: Taken| {
                let mut claimants = claimants.iter();
                !claimants.any(|queue| self.is_over(*queue, taken, kind, &end.held, 0))
            };
            let taken = self.could_be_taken(unit).into_iter();
            self.claims(unit, kind, &end.held)
                && taken
                    .filter(|taken| self.is_short(unit, *taken, end))
                    .any(|taken| is_given(taken) && is_kept(taken))
        })
    }

    /// Whether to put a unit back would break something in what it could be taken in.
    fn is_short(&self, unit: &Unit, taken: Taken, end: &State) -> bool {
        let gang = &self.case.gangs[unit.gang];
        let is_meant = |node: &usize| match taken {
            Taken::Cpus => true,
            Taken::Gpus(model) => self.case.nodes[*node].model == model,
        };
        let r = usize::from(taken == Taken::Cpus);
        let mut nodes = (0..end.free.len()).filter(is_meant);
        let nodes = nodes.any(|node| {
            let pods = unit.pods.iter().filter(|pod| gang.at[**pod].node == node);
            let back: u64 = pods.map(|pod| gang.asks_of(*pod)[r]).sum();
            back > end.free[node][r]
        });
        let back = self.holds(unit)[ALL_GPUS];
        let limits = self.case.path(gang.queue).into_iter().any(|queue| {
            let limit = self.case.queues[queue].gpus.and_then(|(_, limit)| limit);
            limit.is_some_and(|limit| end.held[queue][ALL_GPUS] + back > limit)
        });
        nodes || r == 0 && back > 0 && limits
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
    victims.sort_by_key(|unit| unit.leaders.len());
    let mut whole: Vec<Unit> = Vec::new();
    for unit in victims {
        let mut leaders = whole.iter_mut();
        let leader = leaders.find(|one| unit.leaders.contains(&one.number));
        match leader {
            Some(leader) => leader.pods.extend(unit.pods),
            None => whole.push(unit),
        }
    }
    whole
}
