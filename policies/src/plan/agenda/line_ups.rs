//! The line-ups that are kept: the head of each queue, for a given set of eased shortfalls.
//!
//! Whenever something is freed, few shortfalls are eased, and mostly the ones that were eased
//! before. So an order of the queues is kept for each set of eased shortfalls that was asked for
//! last, and changes only where heads change. With one line-up alone, every queue that lacks what a
//! gang's end frees would change twice: milliseconds instead of microseconds with 1,000 queues.

use super::Agenda;
use crate::gangs::wait::Shortfall;
use crate::ids::GangId;
use crate::queues::{LineUp, QueueId};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

/// How many line-ups are kept.
const KEPT: u8 = 8;
/// A line-up that differs in at most so many queues is changed, and no new one is made.
const NEAR: usize = 8;

/// All line-ups.
#[derive(Debug)]
pub(super) struct LineUps {
    /// The line-ups by number. For the first line-up no shortfall is ever eased.
    all: Vec<KeptLineUp>,
    /// The line-up that was asked for last; `None`: the eased or lacking shortfalls have changed
    /// since.
    current: Option<LineUp>,
    /// How often a line-up was looked for.
    asked: u64,
}

/// A line-up between two turns: which shortfalls are eased, and which heads the tree has seen.
#[derive(Debug, Default)]
struct KeptLineUp {
    /// The shortfalls that are eased for this line-up.
    eased: BTreeSet<Shortfall>,
    /// The heads that the tree of queues has been shown.
    shown: BTreeMap<QueueId, GangId>,
    /// The value of `LineUps::asked` when this line-up was last asked for.
    asked: u64,
}

impl LineUps {
    pub(super) fn new() -> Self {
        Self {
            all: Vec::from([KeptLineUp::default()]),
            current: Some(LineUp::FIRST),
            asked: 0,
        }
    }

    /// The shortfalls that are eased for a line-up.
    pub(super) fn eased(&self, line_up: LineUp) -> &BTreeSet<Shortfall> {
        &self.all[line_up.index()].eased
    }

    /// Notes that other shortfalls are lacking or eased now.
    pub(super) fn changed(&mut self) {
        self.current = None;
    }

    fn numbers(&self) -> impl Iterator<Item = LineUp> + use<> {
        (0..KEPT).take(self.all.len()).map(LineUp::new)
    }
}

impl Agenda {
    /// All line-ups.
    pub(crate) fn line_ups(&self) -> impl Iterator<Item = LineUp> + use<> {
        self.line_ups.numbers()
    }

    /// The head that the tree of queues was last shown.
    pub(crate) fn shown(&self, line_up: LineUp, queue: QueueId) -> Option<GangId> {
        self.line_ups.all[line_up.index()]
            .shown
            .get(&queue)
            .copied()
    }

    /// Notes the head that the tree of queues is shown.
    pub(crate) fn show(&mut self, line_up: LineUp, queue: QueueId, head: Option<GangId>) {
        let shown = &mut self.line_ups.all[line_up.index()].shown;
        match head {
            Some(gang) => shown.insert(queue, gang),
            None => shown.remove(&queue),
        };
    }

    /// The line-up for the shortfalls that may be eased now, and the queues whose head in it may be
    /// another one.
    pub(crate) fn line_up(&mut self) -> (LineUp, BTreeSet<QueueId>) {
        if let Some(current) = self.line_ups.current {
            return (current, BTreeSet::new());
        }
        let known = self.line_ups.all.len();
        let line_up = self.nearest();
        let queues = self.difference(line_up);
        let mut queues: BTreeSet<QueueId> =
            queues.flat_map(|(_, queues)| queues).copied().collect();
        if line_up.index() >= known {
            // The tree of queues has not been shown any head of a new line-up.
            queues.extend(self.candidates.keys());
        }
        self.line_ups.asked += 1;
        self.line_ups.current = Some(line_up);
        let kept = &mut self.line_ups.all[line_up.index()];
        kept.asked = self.line_ups.asked;
        if line_up != LineUp::FIRST {
            kept.eased.clone_from(self.freed.eased());
        }
        (line_up, queues)
    }

    /// The line-up that needs few changes; else a new one, as long as there are few; else the
    /// line-up that was asked for longest ago.
    fn nearest(&mut self) -> LineUp {
        let distance = |line_up| -> usize {
            let queues = self.difference(line_up).map(|(_, queues)| queues.len());
            queues.sum()
        };
        if distance(LineUp::FIRST) == 0 {
            return LineUp::FIRST;
        }
        let others = self.line_ups.numbers().skip(1);
        let nearest = others.map(|line_up| (distance(line_up), line_up)).min();
        if let Some((_, line_up)) = nearest.filter(|(distance, _)| *distance <= NEAR) {
            return line_up;
        }
        if self.line_ups.all.len() < usize::from(KEPT) {
            self.line_ups.all.push(KeptLineUp::default());
            return self.line_ups.numbers().last().unwrap_or(LineUp::FIRST);
        }
        let asked = |line_up: &LineUp| self.line_ups.all[line_up.index()].asked;
        let others = self.line_ups.numbers().skip(1);
        others.min_by_key(asked).unwrap_or(LineUp::FIRST)
    }

    /// The shortfalls that are eased now and not in a line-up, or the other way round, and the
    /// queues that lack them.
    fn difference(
        &self,
        line_up: LineUp,
    ) -> impl Iterator<Item = (&Shortfall, &BTreeSet<QueueId>)> {
        let kept = self.line_ups.eased(line_up);
        let differ = kept.symmetric_difference(self.freed.eased());
        differ.filter_map(|shortfall| Some((shortfall, self.lacking.get(shortfall)?)))
    }
}
