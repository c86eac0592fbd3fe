//! The bugs: each is a mistake that a scheduler has made somewhere, in one changed line or two.

/// A bug to be planted.
pub(crate) struct Bug {
    /// The mistake, as a reviewer would put it.
    pub(crate) name: &'static str,
    /// The file, seen from the workspace.
    pub(crate) file: &'static str,
    /// The code as it is; it occurs once in the file.
    pub(crate) code: &'static str,
    /// The code with the bug.
    pub(crate) planted: &'static str,
}

impl Bug {
    /// The source of its file with the bug in it.
    ///
    /// # Panics
    /// If the code to be changed is not there, or more than once.
    pub(crate) fn planted_in(&self, healthy: &str) -> String {
        let found = healthy.matches(self.code).count();
        assert_eq!(
            found, 1,
            "{}: the code to be changed occurs {found} times in {}:\n{}",
            self.name, self.file, self.code
        );
        healthy.replace(self.code, self.planted)
    }
}

const fn bug(
    name: &'static str,
    file: &'static str,
    code: &'static str,
    planted: &'static str,
) -> Bug {
    Bug {
        name,
        file,
        code,
        planted,
    }
}

/// All of them: requests first, then what is seen, then what is decided.
pub(crate) const BUGS: &[Bug] = &[
    bug(
        "a timeout counts as failure: the room is given to others while the bind may still happen",
        "policies/src/engine/bindings.rs",
        "            Outcome::Conflict { message } | Outcome::Unknown { message } => {
                self.ask_about(uid, message);
            }",
        "            Outcome::Unknown { .. } => self.take_back(uid),
            Outcome::Conflict { message } => self.ask_about(uid, message),",
    ),
    bug(
        "a 409 counts as failure: the pod is placed once more",
        "policies/src/engine/bindings.rs",
        "            Outcome::Conflict { message } | Outcome::Unknown { message } => {
                self.ask_about(uid, message);
            }",
        "            Outcome::Conflict { .. } => self.take_back(uid),
            Outcome::Unknown { message } => self.ask_about(uid, message),",
    ),
    bug(
        "a binding names no UID: it takes the pod's successor",
        "simulator/src/api_server/pods.rs",
        "        let conflict = if pod.facts.uid != bind.pod.uid {",
        "        let conflict = if pod.facts.uid != bind.pod.uid && bind.node.is_empty() {",
    ),
    bug(
        "who has lost the lease forgets the bindings that may still succeed",
        "policies/src/engine/bindings.rs",
        "        if binding.is_unsent() {
            self.take_back(uid);
        } else if",
        "        let _ = binding.is_unsent();
        if !self.leading {
            self.take_back(uid);
        } else if",
    ),
    bug(
        "an observation that failed is not repeated",
        "policies/src/engine/bindings.rs",
        "                let again_ms = now_ms.saturating_add(AGAIN_MS);
                self.timers.set(again_ms, Timer::Binding(uid));",
        "",
    ),
    bug(
        "a bind that flow control turned away is not sent again",
        "policies/src/engine/bindings.rs",
        "                self.bind_again(uid, now_ms, retry_after_ms.max(1));",
        "                let _ = retry_after_ms;",
    ),
    bug(
        "a pod that another bound elsewhere stays where we wanted it",
        "policies/src/engine/bindings.rs",
        "                let elsewhere = self.state.node_id(&name);
                let pod = self.state.pod_ids[&uid];
                self.state.move_pod(pod, Stage::Bound(elsewhere));",
        "                let _ = name;
                self.confirm(uid);",
    ),
    bug(
        "no deadline: who cannot renew the lease leads on",
        "policies/src/lease/election.rs",
        "now_ms.saturating_sub(sent_ms) < self.settings.renew_deadline_ms",
        "now_ms.saturating_sub(sent_ms) < 100 * self.settings.renew_deadline_ms",
    ),
    bug(
        "the lease of another is taken before it has run out",
        "policies/src/lease/election.rs",
        "            self.runs_out_ms(lease)
        };",
        "            0
        };",
    ),
    bug(
        "a list drops nothing: implied deletes are missed",
        "policies/src/state/listing.rs",
        "            if !listed.contains(&key) {
                self.delete(key);
            }",
        "            let _ = listed.contains(&key);",
    ),
    bug(
        "a list throws away what was assumed",
        "policies/src/state/pods.rs",
        "            (None, PodPhase::Pending | PodPhase::Running) => before,",
        "            (None, PodPhase::Pending | PodPhase::Running) => Stage::Waiting,",
    ),
    bug(
        "pods that ended keep their room",
        "policies/src/state/pods.rs",
        "        if before.node() != after.node() {
            if let Some(node) = before.node() {
                self.vacate(pod, node, true);",
        "        if before.node() != after.node() {
            if let Some(node) = before.node().filter(|_| after.node().is_some()) {
                self.vacate(pod, node, true);",
    ),
    bug(
        "room that comes free wakes nobody",
        "policies/src/state/accounts.rs",
        "        self.node_changed(node, announce);
        if self.account(pod).is_none() {",
        "        self.node_changed(node, false);
        if self.account(pod).is_none() {",
    ),
    bug(
        "a node that comes back with less keeps its old room",
        "policies/src/state/node.rs",
        "            grew |= now > slot.allocatable;
            slot.allocatable = now;",
        "            grew |= now > slot.allocatable;
            slot.allocatable = slot.allocatable.max(now);",
    ),
    bug(
        "a pod that is being deleted leaves its room at once",
        "policies/src/state/pods.rs",
        "            (_, PodPhase::Failed) => Stage::Ended { succeeded: false },",
        "            (_, PodPhase::Failed) => Stage::Ended { succeeded: false },
            (Some(_), _) if facts.deleting => Stage::Ended { succeeded: false },",
    ),
    bug(
        "a share is off by one: a limit lets one more in",
        "policies/src/queues/ledger.rs",
        "held.saturating_add(asked) > allowed",
        "held.saturating_add(asked) > allowed + 1",
    ),
    bug(
        "members that were bound before are not counted: a gang starts with too few",
        "policies/src/engine/counts.rs",
        "        self.needed = minimum.saturating_sub(held);",
        "        self.needed = minimum.saturating_sub(held + 1);",
    ),
    bug(
        "a returning member may go to another domain",
        "policies/src/engine/plan.rs",
        "            anchor: near.and_then(|near| self.anchor_among(&occupied, Some(near))),",
        "            anchor: None,",
    ),
    bug(
        "while the nodes of its members are gone a gang goes anywhere",
        "policies/src/engine/plan.rs",
        "        self.resolve_topology_now(id)?.required?;",
        "        self.resolve_topology_now(id).filter(|_| false)?.required?;",
    ),
    bug(
        "pods with gates are bound",
        "policies/src/state/pod.rs",
        "groups <= 1 && self.gates.is_empty() && self.problems.is_empty()",
        "groups <= 1 && self.problems.is_empty()",
    ),
    bug(
        "what is left of a gang is never evicted",
        "policies/src/engine/partial.rs",
        "            self.evict_members(id, EvictionCause::Stale);",
        "            let _ = EvictionCause::Stale;",
    ),
    bug(
        "a gang that cannot be completed is not unwound",
        "policies/src/engine/partial.rs",
        "            self.evict_members(id, EvictionCause::Unwind);",
        "            let _ = EvictionCause::Unwind;",
    ),
    bug(
        "a status that a late write has overwritten stays so",
        "policies/src/engine.rs",
        "                Timer::Rewrite(key) => self.rewrite(key),",
        "                Timer::Rewrite(_) => {}",
    ),
    bug(
        "who starts forgets what queues have used",
        "policies/src/queues/past.rs",
        "if self.past.kept.is_none() || self.past.used.contains_key(name) {",
        "if self.past.kept.is_some() || self.past.used.contains_key(name) {",
    ),
    bug(
        "who starts counts a minute twice",
        "policies/src/queues/past.rs",
        "let steps = now.saturating_sub(since);",
        "let steps = now.saturating_sub(since) + 1;",
    ),
    bug(
        "another half-life takes a restart",
        "policies/src/engine.rs",
        "        if settings.use_half_life_ms != self.settings.use_half_life_ms {",
        "        if settings.use_half_life_ms.is_none() {",
    ),
    bug(
        "a sub-group counts as complete with one member",
        "policies/src/state/gang/tree.rs",
        "                group.minimum = entry.min_member.unwrap_or(1);",
        "                group.minimum = entry.min_member.unwrap_or(1).min(1);",
    ),
    bug(
        "the required domain of a sub-group is only a wish",
        "policies/src/engine/sub_groups.rs",
        "        self.near(group.topology.as_ref()?)
    }",
        "        let near = self.near(group.topology.as_ref()?)?;
        let (required, preferred) = (None, near.required.or(near.preferred));
        Some(Near { required, preferred, ..near })
    }",
    ),
    bug(
        "a gang with sub-groups wakes for room for its first choice of members alone",
        "policies/src/engine/sub_groups.rs",
        "                            Wake::AnyRoom(_, full) => Wake::AnyRoom(tree.classes(), full),",
        "                            Wake::AnyRoom(first, full) => Wake::AnyRoom(first, full),",
    ),
    bug(
        "a start takes a minimum that was raised for the loss of members",
        "policies/src/engine/partial.rs",
        "                lost = lost_ms.is_some();",
        "                lost = lost_ms.is_some() || counts.needed > 0;",
    ),
];
