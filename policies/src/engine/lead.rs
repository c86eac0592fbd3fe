//! Phase 2: the lease is kept, and this process begins to act, or stops.

use crate::bind::outbox::Flight;
use crate::command::Action;
use crate::engine::Engine;
use crate::facts::UnixMs;

impl Engine {
    /// Keeps the lease, and notices when leadership comes or goes.
    pub(super) fn lead(&mut self, now_ms: UnixMs) {
        let settled = self.binder.is_settled();
        if let Some(call) = self.leader.poll(now_ms, settled) {
            let deadline_ms = now_ms.saturating_add(self.settings.request_deadline_ms);
            let action = Action::Lease(call);
            self.binder.outbox.send(Flight::Lease, deadline_ms, action);
        }
        let leads = self.leader.leads(now_ms);
        if leads == self.binder.is_leading() {
            return;
        }
        if leads {
            self.teller.begin_to_lead(self.state.gangs.ids());
            self.state.rules_changed();
            self.binder.begin_to_lead();
        } else {
            self.planner.stand_down(self.binder.takings.gangs());
            self.binder.stop_leading(&mut self.state);
        }
    }
}
