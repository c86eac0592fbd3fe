//! Why a gang waits, as it is told.
//!
//! Of a gang that was refused, planning keeps what refused it. The sentence is made when it is
//! told, from what the bounds of queues and counting over nodes say by then; only what a search has
//! found, which they do not see, is told as it was. So what is told follows from the state as it
//! is, and nobody is tried for it.
//!
//! Bindings that fail again and again keep a gang waiting, too, while every member has a place:
//! what the API server says of them comes before all else.

use super::explain::{Descriptions, model_limits, more_nodes_would_help, tree_to_place};
use crate::facts::UnixMs;
use crate::gangs::counts::{Counts, count};
use crate::gangs::demand;
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Verdict, Wait, Wake};
use crate::ids::{ById, GangId};
use crate::place::{
    Choice, Refusal, Request, Tree, counted_of, counted_of_tree, merged, pods_of, widest_scope,
};
use crate::plan::bounds;
use crate::plan::refusal::{reason, wake};
use crate::plan::waiting::Waiting;
use crate::queues::{Excess, QueueId};
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::tell::Teller;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// What is told of a refused gang and of all its members.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) verdict: Verdict,
    /// What must change before it starts, as of the sentence.
    pub(crate) wake: Wake,
    /// How much had happened when the sentence was made (see `review`).
    pub(crate) as_of: u64,
}

impl Teller {
    /// The reason and the sentence that are told of a gang that waits. Of one that was just refused
    /// the sentence may still be missing.
    pub(super) fn why_it_waits<'a>(
        &'a self,
        state: &ClusterState,
        waiting: &'a ById<GangId, Waiting>,
        id: GangId,
    ) -> Option<Cow<'a, Verdict>> {
        let members = state.gangs[id].members.iter();
        let members = members.map(|pod| &state.pods[*pod]);
        let failing = members.filter_map(|pod| Some((&pod.name, pod.failure()?)));
        if let Some((_, sentence)) = failing.min() {
            return Some(Cow::Owned(Verdict::new(Reason::BindingFailed, sentence)));
        }
        match &waiting[id].wait {
            Wait::Nothing | Wait::Turn => None,
            Wait::Held(verdict) => Some(Cow::Borrowed(verdict)),
            Wait::Room(refused, _) => Some(match &self.told[id].said {
                Some(said) => Cow::Borrowed(&said.verdict),
                None => Cow::Owned(Verdict::new(refused.reason, String::new())),
            }),
        }
    }

    /// Why a gang waits, as far as planning goes.
    pub(super) fn reason(&self, waiting: &ById<GangId, Waiting>, id: GangId) -> Option<Reason> {
        let said = self.told[id].said.as_ref();
        let said = said.filter(|_| waiting[id].is_parked());
        let said = said.map(|said| said.verdict.reason);
        said.or_else(|| waiting[id].wait.reason())
    }

    /// Makes the sentence of a gang that was refused, unless there is one that will do.
    pub(super) fn say(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &ById<GangId, Progress>,
        waiting: &ById<GangId, Waiting>,
        id: GangId,
        now_ms: UnixMs,
    ) {
        let Waiting { wait, place, .. } = &waiting[id];
        let (Wait::Room(refused, wake), Some((queue, _))) = (wait, place) else {
            self.told[id].said = None;
            return;
        };
        if !core::mem::take(&mut self.told[id].is_stale) && self.told[id].said.is_some() {
            return;
        }
        let counts = count(state, id, now_ms);
        let gang = (id, *queue);
        let asked = asked(state, settings, progress, gang, &counts, now_ms);
        let found = match asked {
            Err(over) => {
                let verdict = Verdict::new(over.reason(), state.queues.describe(&over));
                Some((verdict, Wake::Over(over.into())))
            }
            Ok(asked) => asked.and_then(|asked| {
                let (descriptions, known) = (&mut self.descriptions, &refused.by_nodes);
                of_nodes(
                    state,
                    descriptions,
                    &progress[id],
                    &counts,
                    asked,
                    known.as_deref(),
                )
            }),
        };
        let (verdict, wake) = found.unwrap_or_else(|| {
            let verdict = Verdict::new(refused.reason, "it is about to be tried again");
            (verdict, wake.clone())
        });
        self.told[id].said = Some(Said {
            verdict,
            wake,
            as_of: self.review.now(),
        });
    }
}

/// The members that a gang asks for next.
struct Asked {
    tree: Tree,
    request: Request,
    /// They are those that it would take first, of a gang without sub-groups.
    is_plain: bool,
}

/// What a gang asks for next of what its queue has room for. `None`: nothing.
///
/// # Errors
/// The bound that it would exceed.
fn asked(
    state: &ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    (id, queue): (GangId, QueueId),
    counts: &Counts,
    now_ms: UnixMs,
) -> Result<Option<Asked>, Excess> {
    let tree = tree_to_place(state, settings, progress, (id, queue), counts, now_ms);
    let Some(tree) = tree else {
        return Ok(None);
    };
    let over = bounds::over(state, settings, progress, id, queue, now_ms);
    if over.is_none() && tree.groups.len() == 1 {
        let request = tree.flat(tree.pods_below(0), tree.fewest(0));
        let is_plain = true;
        return Ok(Some(Asked {
            tree,
            request,
            is_plain,
        }));
    }
    let is_allowed = |choice: &Choice| {
        let demand = demand::demand_of_pods(state, pods_of(choice).collect::<Vec<_>>().iter());
        bounds::within_bounds(state, id, queue, &demand).is_ok()
    };
    let mut choices = tree.choices().0.into_iter();
    let (tree, choice) = match over {
        None => (tree, choices.next()),
        Some(over) => {
            let choice = choices.find(is_allowed).ok_or(over)?;
            (tree.chosen(&choice), Some(choice))
        }
    };
    Ok(choice.map(|choice| Asked {
        request: tree.flat(merged(&choice), pods_of(&choice).count()),
        tree,
        is_plain: false,
    }))
}

/// The sentence about nodes that refuse what is asked for: for what counting says, else for what is
/// known of the last try. `None`: for neither.
fn of_nodes(
    state: &mut ClusterState,
    descriptions: &mut Descriptions,
    progress: &Progress,
    counts: &Counts,
    asked: Asked,
    known: Option<&Refusal>,
) -> Option<(Verdict, Wake)> {
    let Asked {
        tree,
        mut request,
        is_plain,
    } = asked;
    let counted = match tree.groups.len() {
        1 => {
            let scope = match known {
                // A lone pod is looked for everywhere at once.
                Some(Refusal::TooFew { scope, .. }) if request.groups.len() == 1 => *scope,
                _ => widest_scope(state, request.near, request.anchor),
            };
            counted_of(state, &request, scope)
        }
        _ => counted_of_tree(state, &tree),
    };
    let refusal = counted.or_else(|| known.cloned())?;
    let wake = match is_plain {
        true => wake(state, &request, &refusal),
        false => Wake::AnyRoom(tree.classes(), None),
    };
    let reason = reason(state, progress, counts, &mut request, &refusal);
    let message = match reason {
        Reason::OverLimit => model_limits(state, &request, &refusal),
        _ => descriptions.refusal(state, &request, &refusal, counts.needed == 0),
    };
    let more_nodes_help = more_nodes_would_help(state, &request, &refusal);
    let verdict = Verdict {
        reason,
        message,
        more_nodes_help,
    };
    Some((verdict, wake))
}
