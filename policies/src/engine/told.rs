//! Why a gang waits, as it is told. Nothing here decides anything.
//!
//! What a gang waits for is in [`Wait`](crate::state::gang::Wait). Bindings that fail again and
//! again keep it waiting, too, while every member has a place: what the API server says of them
//! comes before all else.

use super::Engine;
use crate::engine::outbox::StatusKey;
use crate::facts::Uid;
use crate::ids::GangId;
use crate::reason::Reason;
use crate::state::gang::Verdict;
use crate::state::pod::{Pod, Stage};
use alloc::{borrow::Cow, boxed::Box};

impl Engine {
    /// The reason and the sentence that are told of a gang that waits.
    pub(crate) fn why_it_waits(&self, id: GangId) -> Option<Cow<'_, Verdict>> {
        let gang = &self.state.gangs[id];
        let members = gang.members.iter().map(|pod| &self.state.pods[*pod]);
        let failing = members.filter_map(|pod| Some((&pod.name, failure(pod)?)));
        match failing.min() {
            Some((_, sentence)) => Some(Cow::Owned(Verdict::new(Reason::BindingFailed, sentence))),
            None => gang.verdict().map(Cow::Borrowed),
        }
    }

    /// Remembers the sentence about a binding that has failed.
    pub(crate) fn note_failure(&mut self, uid: Uid, sentence: Box<str>) {
        let id = self.state.pod_ids[&uid];
        if let Some(own) = &mut self.state.pods[id].own {
            own.failure = Some(sentence);
        }
    }

    /// Sees to it that a failure is told while its binding is still uncertain.
    pub(crate) fn tell_failure(&mut self, uid: Uid) {
        let id = self.state.pod_ids[&uid];
        let pod = &self.state.pods[id];
        let gang = pod.own.as_ref().and_then(|own| own.gang);
        if let (Some(gang), Some(_)) = (gang, failure(pod)) {
            self.outbox.status(StatusKey::Gang(gang));
            self.outbox.status(StatusKey::Pod(uid));
        }
    }
}

/// The sentence about the failed binding of a pod that has a place and no node.
pub(crate) fn failure(pod: &Pod) -> Option<&str> {
    let assumed = matches!(pod.stage, Stage::Assumed(_));
    pod.own.as_ref().filter(|_| assumed)?.failure.as_deref()
}
