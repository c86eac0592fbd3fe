//! Sub-groups that a gang could do without, and of which only a part is bound.
//!
//! Each begins as a whole or not at all, like the gang itself. One that was cut off, by a crash or
//! a binding that was refused, is completed before all other gangs; if that fails, its members are
//! evicted at once and the rest of the gang stays. One that was complete and lost members goes on
//! without them: the gang has its minimum. A gang below its minimum is a matter of
//! [`super::partial`].

use crate::bind::timers::Timer;
use crate::command::EvictionCause;
use crate::engine::Engine;
use crate::engine::partial::UNWIND_AFTER_MS;
use crate::facts::UnixMs;
use crate::gangs::counts::by_leaf;
use crate::gangs::parts;
use crate::gangs::parts::{below, is_assumed};
use crate::gangs::progress::Start;
use crate::gangs::wait::Wait;
use crate::ids::GangId;
use alloc::sync::Arc;

impl Engine {
    /// Unwinds the sub-groups that were cut off and cannot be completed.
    pub(crate) fn follow_cut_off(&mut self, id: GangId, now_ms: UnixMs) {
        let leading = self.binder.leading;
        for index in parts::cut_off(&self.state, &self.progress, id) {
            let gang = &self.state.gangs[id];
            let Some(tree) = gang.tree().map(Arc::clone) else {
                return;
            };
            let assumed = by_leaf(&self.state, gang, &is_assumed);
            let waits =
                self.planner.waiting[id].wait == Wait::Turn || below(&tree, &assumed, index) > 0;
            let start = self.progress[id].parts.get_mut(&tree.group(index).name);
            let Some(Start::Unfinished { stuck_ms }) = start else {
                continue;
            };
            if !leading {
                *stuck_ms = None;
                continue;
            }
            if waits {
                continue;
            }
            let since_ms = *stuck_ms.get_or_insert(now_ms);
            let due_ms = since_ms.saturating_add(UNWIND_AFTER_MS);
            if due_ms > now_ms {
                self.binder.timers.set(due_ms, Timer::Gang(id));
            } else {
                self.binder.evict_below(
                    &mut self.state,
                    &mut self.progress,
                    id,
                    index,
                    EvictionCause::Unwind,
                );
            }
        }
    }
}
