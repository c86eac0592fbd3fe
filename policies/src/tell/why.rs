//! Why a gang waits, as it is told. Nothing here decides anything.
//!
//! What a gang waits for is in [`Wait`](crate::state::gang::Wait). Bindings that fail again and
//! again keep it waiting, too, while every member has a place: what the API server says of them
//! comes before all else.

use crate::facts::Uid;
use crate::gangs::wait::Verdict;
use crate::ids::ById;
use crate::ids::GangId;
use crate::plan::waiting::Waiting;
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::pod::{Pod, Stage};
use alloc::borrow::Cow;
use alloc::boxed::Box;

/// The reason and the sentence that are told of a gang that waits.
pub(crate) fn why_it_waits<'a>(
    state: &ClusterState,
    waiting: &'a ById<GangId, Waiting>,
    id: GangId,
) -> Option<Cow<'a, Verdict>> {
    let gang = &state.gangs[id];
    let members = gang.members.iter().map(|pod| &state.pods[*pod]);
    let failing = members.filter_map(|pod| Some((&pod.name, failure(pod)?)));
    match failing.min() {
        Some((_, sentence)) => Some(Cow::Owned(Verdict::new(Reason::BindingFailed, sentence))),
        None => waiting[id].wait.verdict().map(Cow::Borrowed),
    }
}

/// Remembers the sentence about a binding that has failed.
pub(crate) fn note_failure(state: &mut ClusterState, uid: Uid, sentence: Box<str>) {
    let id = state.pod_ids[&uid];
    if let Some(own) = &mut state.pods[id].own {
        own.failure = Some(sentence);
    }
}

/// The sentence about the failed binding of a pod that has a place and no node.
pub(crate) fn failure(pod: &Pod) -> Option<&str> {
    let assumed = matches!(pod.stage, Stage::Assumed(_));
    pod.own.as_ref().filter(|_| assumed)?.failure.as_deref()
}
