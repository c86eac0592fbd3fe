//! All queues in one order.

use super::Structure;
use crate::queues::QueueId;
use alloc::{vec, vec::Vec};
use core::iter;
use core::ops::Range;

/// All queues, parents before children, siblings by name. Taken where all queues are looked at
/// anyway, and not kept up to date.
#[derive(Debug, Default)]
pub(in crate::queues) struct Walk {
    /// Without the root.
    pub(in crate::queues) top_down: Vec<QueueId>,
    /// Where in `top_down` the queues below each queue are, by number.
    below: Vec<Range<usize>>,
    /// The longest path.
    pub(in crate::queues) depth: usize,
}

impl Walk {
    /// The root and all queues.
    pub(in crate::queues) fn with_root(&self) -> impl Iterator<Item = QueueId> {
        iter::once(QueueId::ROOT).chain(self.top_down.iter().copied())
    }

    /// All queues below a queue.
    pub(in crate::queues) fn below(&self, id: QueueId) -> &[QueueId] {
        &self.top_down[self.below[id.index()].clone()]
    }
}

impl Structure {
    /// Goes through all queues.
    pub(in crate::queues) fn walk(&self) -> Walk {
        let mut walk = Walk {
            top_down: Vec::with_capacity(self.by_name.len()),
            below: vec![0..0; self.nodes.len()],
            depth: 0,
        };
        // Each queue with its depth; and after all below it, its end.
        let mut ahead: Vec<(QueueId, usize)> = Vec::new();
        let mut open: Vec<(QueueId, usize)> = vec![(QueueId::ROOT, 0)];
        let children = |id: QueueId| self.node(id).children.iter().rev().copied();
        ahead.extend(children(QueueId::ROOT).map(|child| (child, 1)));
        while let Some((id, depth)) = ahead.pop() {
            walk.close(&mut open, depth);
            walk.depth = walk.depth.max(depth);
            walk.top_down.push(id);
            walk.below[id.index()].start = walk.top_down.len();
            open.push((id, depth));
            ahead.extend(children(id).map(|child| (child, depth + 1)));
        }
        walk.close(&mut open, 0);
        walk
    }
}

impl Walk {
    /// Nothing more comes below the open queues that are as deep as this.
    fn close(&mut self, open: &mut Vec<(QueueId, usize)>, depth: usize) {
        while let Some((id, _)) = open.pop_if(|(_, opened)| *opened >= depth) {
            self.below[id.index()].end = self.top_down.len();
        }
    }
}
