//! How many members a gang has, by what has become of them.

use crate::facts::UnixMs;
use crate::ids::GangId;
use crate::state::ClusterState;
use crate::state::pod::Stage;

/// The members of a gang, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The minimum.
    pub(crate) expected: u32,
    /// Pods that exist.
    pub(crate) created: u32,
    /// Pods on nodes, alive and not leaving.
    pub(crate) bound: u32,
    /// Pods whose binding is on its way.
    pub(crate) assumed: u32,
    /// Pods that run, leaving or not.
    pub(crate) running: u32,
    pub(crate) succeeded: u32,
    pub(crate) failed: u32,
    /// Pods without a node that are not leaving.
    pub(crate) waiting: u32,
    /// Those of them that nothing keeps from being placed.
    pub(crate) placeable: u32,
    /// How many more the minimum wants: minimum - bound - on their way - succeeded. Failed and
    /// deleted members do not count.
    pub(crate) needed: u32,
}

/// Counts the members of a gang.
pub(crate) fn count(state: &ClusterState, id: GangId, now_ms: UnixMs) -> Counts {
    let gang = &state.gangs[id];
    let mut counts = Counts {
        expected: gang.spec.minimum,
        ..Counts::default()
    };
    for member in &gang.members {
        let pod = &state.pods[*member];
        counts.created += 1;
        counts.running += u32::from(pod.running && pod.stage.is_bound());
        match pod.stage {
            Stage::Ended { succeeded: true } => counts.succeeded += 1,
            Stage::Ended { succeeded: false } => counts.failed += 1,
            _ if pod.deleting => {}
            Stage::Waiting => {
                counts.waiting += 1;
                counts.placeable += u32::from(
                    pod.can_be_placed(now_ms)
                        && state.classes[pod.class].shape.unsupported.is_empty()
                        && state
                            .job_deadline(pod)
                            .is_none_or(|deadline| deadline <= now_ms),
                );
            }
            Stage::Assumed(_) => counts.assumed += 1,
            Stage::Bound(_) => counts.bound += 1,
        }
    }
    let held = counts.bound + counts.assumed + counts.succeeded;
    counts.needed = counts.expected.saturating_sub(held);
    counts
}
