//! Why a gang waits, as it is told. Nothing here decides anything.
//!
//! What a gang waits for is in [`Wait`](crate::state::gang::Wait). Bindings that fail again and
//! again keep it waiting, too, while every member has a place: what the API server says of them
//! comes before all else.

use crate::gangs::wait::Verdict;
use crate::ids::ById;
use crate::ids::GangId;
use crate::plan::waiting::Waiting;
use crate::reason::Reason;
use crate::state::ClusterState;
use alloc::borrow::Cow;

/// The reason and the sentence that are told of a gang that waits.
pub(crate) fn why_it_waits<'a>(
    state: &ClusterState,
    waiting: &'a ById<GangId, Waiting>,
    id: GangId,
) -> Option<Cow<'a, Verdict>> {
    let gang = &state.gangs[id];
    let members = gang.members.iter().map(|pod| &state.pods[*pod]);
    let failing = members.filter_map(|pod| Some((&pod.name, pod.failure()?)));
    match failing.min() {
        Some((_, sentence)) => Some(Cow::Owned(Verdict::new(Reason::BindingFailed, sentence))),
        None => waiting[id].wait.verdict().map(Cow::Borrowed),
    }
}
