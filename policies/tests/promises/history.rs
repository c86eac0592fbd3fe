//! What becomes of a case: from moment to moment, with everything at rest after each.

use crate::case::{Case, Kind, gang_name, member_name, node_name};
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

/// The gangs that arrived, ended, were evicted and started at one time of a history; in `evicted`
/// a gang stands once for each of its pods that were evicted.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    pub(crate) arrived: Vec<usize>,
    pub(crate) ended: Vec<usize>,
    pub(crate) evicted: Vec<usize>,
    pub(crate) started: Vec<usize>,
}

impl Moment {
    /// Whether no gang arrived, ended, was evicted or started.
    pub(crate) fn is_quiet(&self) -> bool {
        let Self {
            arrived,
            ended,
            evicted,
            started,
        } = self;
        [arrived, ended, evicted, started]
            .into_iter()
            .all(Vec::is_empty)
    }
}

impl<'a> History<'a> {
    pub(crate) fn begin(case: &'a Case, reservations: u32) -> Self {
        let settings = Settings::default();
        let evictions = Evictions {
            in_flight: match case.kind {
                Kind::Evictions => settings.evictions.in_flight,
                _ => 0,
            },
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
        let promised = promised.map(|(_, at_ms)| at_ms.max(now_ms + 1));
        let times = ends.chain(arrival).chain(promised);
        let next_ms = times.min();
        // While a gang waits, time may be all that it waits for: after plans in vain it pauses.
        if next_ms.is_none() && self.waiting().next().is_none() {
            return None;
        }
        let due_ms = self.world.engine.next_deadline();
        let due_ms = due_ms.map(|due_ms| due_ms.max(now_ms + 1));
        let next_ms = next_ms.into_iter().chain(due_ms).min()?;
        self.world.now_ms = next_ms.max(now_ms);
        let mut moment = Moment::default();
        self.end_and_arrive(&mut moment);
        self.world.settle();
        self.come_again(&mut moment);
        for index in 0..self.arrived {
            let mut members = (0..self.case.gangs[index].members).map(|it| member_name(index, it));
            if self.starts[index].is_none() && members.all(|it| self.world.is_placed(&it)) {
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
                moment.ended.push(index);
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

    /// Gangs that were evicted wait anew, with other pods of the old names.
    fn come_again(&mut self, moment: &mut Moment) {
        while !self.world.evicted.is_empty() {
            for name in std::mem::take(&mut self.world.evicted) {
                let is_member = |index: &usize| name.starts_with(&gang_name(*index));
                let index = (0..self.arrived).find(is_member).unwrap();
                self.running.remove(&index);
                self.starts[index] = None;
                self.case.create(index, &name, &mut self.world);
                moment.evicted.push(index);
            }
            self.world.settle();
        }
    }

    /// Whether gangs end at the present time, which have just started and take no time.
    pub(crate) fn has_ends_now(&self) -> bool {
        let mut ends = self.running.values();
        ends.any(|end_ms| *end_ms <= self.world.now_ms)
    }

    /// The gangs that have arrived and not started.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = usize> {
        (0..self.arrived).filter(|index| self.starts[*index].is_none())
    }

    /// By name of a gang, when it is promised to start.
    pub(crate) fn promises(&self) -> BTreeMap<String, u64> {
        let promised = self.world.engine.promised_starts();
        promised
            .map(|(gang, at_ms)| (gang.to_owned(), at_ms))
            .collect()
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
