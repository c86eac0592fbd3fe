//! Commands for tests, and the one outcome of each.

use super::Executor;
use crate::handles::Handles;
use gpu_batch_policies::command::{Action, Bind, Command, CommandId, PodReference, StatusPatch};
use gpu_batch_policies::event::{Event, Outcome};
use gpu_batch_policies::facts::{GroupSource, Uid};
use gpu_batch_policies::lease::LeaseCall;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::{MemberCounts, Phase, PodGroupStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// 2026-11-21T10:00:00Z.
pub(crate) const TEN_O_CLOCK_MS: u64 = 1_795_255_200_000;

/// Sends one command and waits for its one outcome.
pub(crate) async fn answered(
    executor: &Arc<Executor>,
    handles: &Handles,
    action: Action,
    deadline: Duration,
) -> Outcome {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = CommandId(NEXT.fetch_add(1, Ordering::Relaxed));
    executor.start(Command {
        id,
        deadline_ms: handles.clock.now_ms() + u64::try_from(deadline.as_millis()).unwrap(),
        action,
    });
    let mut events = Vec::new();
    while events.is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
        events = handles.inbox.take(Duration::ZERO, true).events;
    }
    // A second outcome would come now.
    tokio::time::sleep(Duration::from_millis(20)).await;
    events.extend(handles.inbox.take(Duration::ZERO, true).events);
    let [Event::Outcome(of, outcome)] = events.as_slice() else {
        panic!("not exactly one outcome: {events:?}");
    };
    assert_eq!(*of, id);
    outcome.clone()
}

/// Binds a pod to the node `n1`.
pub(crate) fn bind_of(pod: &PodReference) -> Action {
    Action::Bind(Bind {
        pod: pod.clone(),
        node: "n1".into(),
        cards: Vec::new(),
        assignment: None,
        queue: "team".into(),
        pod_group: Some("train".into()),
        minima: vec![2, 3],
    })
}

/// Writes the status of the PodGroup `train`, which waits.
pub(crate) fn gang_patch_of(source: GroupSource, namespace: &str, uid: Uid) -> Action {
    Action::PatchStatus(StatusPatch::PodGroup {
        source,
        namespace: namespace.into(),
        name: "train".into(),
        uid,
        status: gang_status(),
    })
}

/// Writes the lease as its holder: takes it, or renews it.
pub(crate) fn write_lease(resource_version: Option<&str>, acquire: bool) -> Action {
    Action::Lease(LeaseCall::Write {
        resource_version: resource_version.map(Into::into),
        holder: "me".into(),
        transitions: 2,
        acquire,
        duration_ms: 15_000,
    })
}

fn gang_status() -> PodGroupStatus {
    PodGroupStatus {
        observed_generation: 3,
        phase: Phase::Pending,
        members: MemberCounts {
            expected: 8,
            created: 8,
            ..MemberCounts::default()
        },
        reason: Some(Reason::OverLimit),
        message: "the queue team is at its limit".into(),
        scheduled: false,
        scheduled_since_ms: TEN_O_CLOCK_MS,
        staleness: None,
        protected: None,
        estimated_start_ms: Some(TEN_O_CLOCK_MS + 3_600_000),
    }
}
