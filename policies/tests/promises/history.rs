//! What becomes of a case: from moment to moment, with everything at rest after each.

use crate::case::{Case, gang_name, member_name, node_name};
use gpu_batch_policies::settings::{Evictions, Settings};
use gpu_batch_testing::World;
use std::collections::BTreeMap;
use std::ops::Range;

/// A world in which gangs arrive, start and end.
pub(crate) struct History<'a> {
    pub(crate) case: &'a Case,
    pub(crate) world: World,
    /// When the history begins.
    began_ms: u64,
    /// How many gangs have arrived.
    pub(crate) arrived: usize,
    /// By gang, when it has started.
    pub(crate) starts: Vec<Option<u64>>,
    /// By gang that runs, when it will end.
    running: BTreeMap<usize, u64>,
}

/// The gangs that have arrived and started at one time of a history.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    pub(crate) arrived: Vec<usize>,
    pub(crate) started: Vec<usize>,
}

impl<'a> History<'a> {
    pub(crate) fn begin(case: &'a Case, reservations: u32) -> Self {
        let settings = Settings::default();
        let evictions = Evictions {
            in_flight: 0,
            ..settings.evictions
        };
        let mut world = World::with(Settings {
            reservations,
            evictions,
            ..settings
        });
        case.apply(&mut world);
        world.settle();
        Self {
            began_ms: world.now_ms,
            case,
            world,
            arrived: 0,
            starts: vec![None; case.gangs.len()],
            running: BTreeMap::new(),
        }
    }

    /// Goes on to the next moment at which something may happen; `None`: there is none.
    pub(crate) fn next(&mut self) -> Option<Moment> {
        let now_ms = self.world.now_ms;
        let arrival = self.case.gangs.get(self.arrived);
        let arrival = arrival.map(|gang| self.began_ms + gang.arrives_ms);
        let ends = self.running.values().copied();
        let promised = self.world.engine.promised_starts();
        let times = ends.chain(arrival).chain(promised.map(|(_, at_ms)| at_ms));
        let mut next_ms = times.min()?;
        if let Some(due_ms) = self.world.engine.next_deadline() {
            next_ms = next_ms.min(due_ms.max(now_ms + 1));
        }
        self.world.now_ms = next_ms.max(now_ms);
        let mut moment = Moment::default();
        self.end_and_arrive(&mut moment);
        self.world.settle();
        for index in 0..self.arrived {
            if self.starts[index].is_none() && self.world.is_placed(&member_name(index, 0)) {
                self.starts[index] = Some(self.world.now_ms);
                let end_ms = self.world.now_ms + self.case.gangs[index].runs_ms;
                self.running.insert(index, end_ms);
                moment.started.push(index);
            }
        }
        Some(moment)
    }

    fn end_and_arrive(&mut self, moment: &mut Moment) {
        let now_ms = self.world.now_ms;
        for index in 0..self.arrived {
            if self
                .running
                .get(&index)
                .is_some_and(|end_ms| *end_ms <= now_ms)
            {
                self.running.remove(&index);
                self.world.end(&self.case.members(index));
            }
        }
        while let Some(gang) = self.case.gangs.get(self.arrived)
            && self.began_ms + gang.arrives_ms <= now_ms
        {
            self.case.arrive(self.arrived, &mut self.world);
            moment.arrived.push(self.arrived);
            self.arrived += 1;
        }
    }

    /// The gangs that have arrived and not started.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = usize> {
        (0..self.arrived).filter(|index| self.starts[*index].is_none())
    }

    /// When a gang is promised to start.
    pub(crate) fn promised(&self, index: usize) -> Option<u64> {
        let name = format!("default/{}", gang_name(index));
        let mut promised = self.world.engine.promised_starts();
        promised.find_map(|(gang, at_ms)| (*gang == *name).then_some(at_ms))
    }

    /// The first time from now on at which a gang fits, if no other one starts before.
    pub(crate) fn shadow_ms(&self, index: usize) -> Option<u64> {
        let now_ms = self.world.now_ms;
        let ends: BTreeMap<usize, u64> = self
            .running
            .keys()
            .map(|gang| (*gang, self.expected_end_ms(*gang)))
            .collect();
        let mut times: Vec<u64> = ends.values().copied().chain([now_ms]).collect();
        times.sort_unstable();
        let own = &self.case.gangs[index];
        times.into_iter().find(|at_ms| {
            let stays = |gang: &&usize| ends[gang] > *at_ms;
            let mut free: BTreeMap<String, u64> = BTreeMap::new();
            for (node, (gpus, _)) in self.case.nodes.iter().enumerate() {
                free.insert(node_name(node), *gpus);
            }
            for gang in self.running.keys().filter(stays) {
                for member in 0..self.case.gangs[*gang].members {
                    let node = self.world.node_of(&member_name(*gang, member)).unwrap();
                    *free.get_mut(&node).unwrap() -= self.case.gangs[*gang].gpus;
                }
            }
            self.case.most(own, |node| free[&node_name(node)]) >= own.members
        })
    }

    /// Whether there are enough GPUs for a gang from now on until it is expected to end, beside the
    /// gangs that run and those that are promised starts.
    pub(crate) fn has_gpus_for(&self, index: usize) -> bool {
        let now_ms = self.world.now_ms;
        let all: u64 = self.case.nodes.iter().map(|(gpus, _)| gpus).sum();
        let own = &self.case.gangs[index];
        let until_ms = now_ms + own.expected_ms.unwrap();
        let others = self.waiting().filter(|other| *other != index);
        let promised = others.filter_map(|other| {
            let at_ms = self.promised(other)?;
            let gang = &self.case.gangs[other];
            Some((at_ms..at_ms + gang.expected_ms?, gang.asks()))
        });
        let running = self.running.keys().map(|gang| {
            let span = now_ms..self.expected_end_ms(*gang);
            (span, self.case.gangs[*gang].asks())
        });
        let spans: Vec<(Range<u64>, u64)> = promised.chain(running).collect();
        let times = spans.iter().map(|(span, _)| span.start).chain([now_ms]);
        let mut times = times.filter(|at_ms| *at_ms < until_ms);
        times.all(|at_ms| {
            let there = spans.iter().filter(|(span, _)| span.contains(&at_ms));
            let taken: u64 = there.map(|(_, gpus)| gpus).sum();
            taken + own.asks() <= all
        })
    }

    fn expected_end_ms(&self, index: usize) -> u64 {
        let began_ms = self.starts[index].unwrap();
        let expected_ms = self.case.gangs[index].expected_ms;
        expected_ms.map_or(u64::MAX, |expected_ms| began_ms + expected_ms)
    }
}
