//! Why a gang waits, as it is told.
//!
//! Of a refused gang, planning keeps the refusal. The sentence is made when it is told, from what
//! the bounds of queues and counting over nodes say at that time. Only what a search has found, and
//! bounds and counting do not see, is told as of the search. So the sentence follows from the state
//! as it is, and no gang is tried to make it.
//!
//! Bindings that fail again and again also keep a gang waiting, although every member has a place:
//! what the API server says of these bindings is told before all else.

use crate::facts::UnixMs;
use crate::gangs::counts::count;
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Refused, Verdict, Wait, Wake};
use crate::gangs::{demand, wanted};
use crate::ids::{ById, GangId, PodId};
use crate::place::{
    Choice, Refusal, Request, counted_again, pods_of, refused_by_counting, widest_scope,
};
use crate::plan::bounds;
use crate::plan::refusal::{reason, wake};
use crate::plan::waiting::{Awaited, Waiting};
use crate::queues::{Excess, QueueId};
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::pod::Pod;
use crate::tell::taken;
use crate::tell::words::{
    Descriptions, bound_in_words, date_and_time, model_limits, more_nodes_would_help,
};
use crate::tell::{Scene, Teller};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// How much work a sentence is but for what grows with members and nodes, in units of about ten
/// nanoseconds.
const SENTENCE_WORK: u64 = 200;

/// What is told of a refused gang and of all its members.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) verdict: Verdict,
    /// What must change before the gang starts, as of the sentence.
    pub(crate) wake: Wake,
    /// How much had happened when the sentence was made (see `review`).
    pub(crate) as_of: u64,
}

impl Said {
    /// The reason that is told, and what must change before the gang starts.
    pub(crate) fn reason_and_wake(&self) -> (Reason, &Wake) {
        (self.verdict.reason, &self.wake)
    }
}

impl Teller {
    /// The reason and the sentence that are told of a waiting gang; `None`: it waits for its turn,
    /// or for nothing. Until a refusal is told, its sentence is a short one.
    pub(super) fn why_it_waits<'a>(
        &'a self,
        state: &ClusterState,
        waiting: &'a ById<GangId, Waiting>,
        id: GangId,
    ) -> Option<Cow<'a, Verdict>> {
        let members = state.gangs[id].members.iter();
        let members = members.map(|pod| &state.pods[*pod]);
        let prepares = |pod: &Pod| pod.own.as_ref().is_some_and(|own| own.prepares);
        let failing = members.filter_map(|pod| Some((prepares(pod), &pod.name, pod.failure()?)));
        if let Some((prepares, _, sentence)) = failing.min() {
            let reason = match prepares {
                true => Reason::WaitingForVolumes,
                false => Reason::BindingFailed,
            };
            return Some(Cow::Owned(Verdict::new(reason, sentence)));
        }
        Some(match cause(&waiting[id])? {
            Cause::Eviction(awaited) => Cow::Owned(taken::waiting_for_eviction(state, awaited)),
            Cause::Delay(blocked_ms, until_ms) => Cow::Owned(taken::delayed(blocked_ms, until_ms)),
            Cause::Barred(verdict) => Cow::Borrowed(verdict),
            Cause::Refused(refused) => match &self.told[id].said {
                Some(said) => Cow::Borrowed(&said.verdict),
                None => Cow::Owned(refused.in_short()),
            },
        })
    }

    /// Why a gang waits, as events and the conditions of its pods tell it: with the start that the
    /// gang is promised, in whole seconds, unless the status of its PodGroup has that.
    pub(super) fn why_pods_wait<'a>(
        &'a self,
        state: &ClusterState,
        waiting: &'a ById<GangId, Waiting>,
        id: GangId,
    ) -> Option<Cow<'a, Verdict>> {
        let verdict = self.why_it_waits(state, waiting, id)?;
        let Some(promised_ms) = waiting[id].promised_ms else {
            return Some(verdict);
        };
        let gang = &state.gangs[id];
        if gang.is_explicit() && gang.native_name().is_none() {
            return Some(verdict);
        }
        let mut verdict = verdict.into_owned();
        let start = date_and_time(promised_ms);
        verdict.message = format!("{}; it is promised to start by {start}", verdict.message);
        Some(Cow::Owned(verdict))
    }

    /// Makes the sentence of a refused gang, unless it has one that is not stale; forgets the
    /// sentence of any other gang. Returns how much work that was, in units of about ten
    /// nanoseconds.
    pub(super) fn say(&mut self, scene: &mut Scene<'_>, id: GangId) -> u64 {
        let (waiting, now_ms) = (scene.waiting, scene.now_ms);
        let Waiting { wait, place, .. } = &waiting[id];
        let (Wait::Room(refused, wake), Some((queue, _))) = (wait, place) else {
            if self.told[id].said.is_some() {
                self.told[id].said = None;
            }
            return 0;
        };
        let as_of = self.review.now();
        let is_stale = core::mem::take(&mut self.told[id].is_stale);
        let is_of_now = |said: &Said| said.as_of == as_of;
        if !is_stale && self.told[id].said.as_deref().is_some_and(is_of_now) {
            return 0;
        }
        let described = self.descriptions.work;
        let obstacle = obstacle_now(scene, (id, *queue), refused);
        let state = &mut *scene.state;
        let (verdict, wake) = match obstacle {
            Some(Obstacle::Bound(excess)) => {
                let verdict = Verdict::new(excess.reason(), bound_in_words(&state.queues, &excess));
                (verdict, Wake::Eased(excess.into()))
            }
            Some(Obstacle::Nodes(by_nodes)) => {
                let surplus = count(state, id, now_ms).needed == 0;
                by_nodes.in_words(state, &mut self.descriptions, surplus)
            }
            Some(Obstacle::TooFewMembers) => {
                let message = "its waiting members are too few to complete one more sub-group";
                (
                    Verdict::new(Reason::WaitingForMembers, message),
                    wake.clone(),
                )
            }
            None if refused.reason == Reason::Reserved => {
                let verdict = behind(state, waiting, refused);
                (verdict.unwrap_or_else(|| refused.in_short()), wake.clone())
            }
            None => {
                let message = match waiting[id].promised_ms {
                    Some(_) => "it waits for the start that it was promised",
                    None => "it is about to be tried again",
                };
                let verdict = Verdict {
                    more_nodes_help: false,
                    ..Verdict::new(refused.reason, message)
                };
                (verdict, wake.clone())
            }
        };
        self.told[id].said = Some(Box::new(Said {
            verdict,
            wake,
            as_of,
        }));
        let members = state.gangs[id].members.len() as u64;
        SENTENCE_WORK + 20 * members + self.descriptions.work - described
    }
}

/// Why a gang waits although no binding of it fails.
enum Cause<'a> {
    /// Pods are still to leave for it.
    Eviction(&'a Awaited),
    /// It has an eviction plan, which waits for its `preemptionDelay`: since when the gang is
    /// refused, and when the delay ends.
    Delay(Option<UnixMs>, UnixMs),
    /// Something other than room must change first.
    Barred(&'a Verdict),
    /// It lacks room.
    Refused(&'a Refused),
}

/// Of several causes the one that is told; `None`: the gang waits for its turn, or for nothing.
fn cause(waiting: &Waiting) -> Option<Cause<'_>> {
    let Waiting { wait, claim, .. } = waiting;
    if let Some(awaited) = &claim.awaited {
        return Some(Cause::Eviction(awaited));
    }
    match (wait, claim.delayed_until_ms) {
        (Wait::Nothing | Wait::Turn, _) => None,
        (Wait::Barred(verdict), _) => Some(Cause::Barred(verdict)),
        (Wait::Room(..), Some(until_ms)) => Some(Cause::Delay(claim.blocked_ms, until_ms)),
        (Wait::Room(refused, _), None) => Some(Cause::Refused(refused)),
    }
}

/// Behind which gang a refused gang waits, and when the gang before it is to start; `None`: the
/// gang before it has gone, or is promised nothing any more.
fn behind(
    state: &ClusterState,
    waiting: &ById<GangId, Waiting>,
    refused: &Refused,
) -> Option<Verdict> {
    let promised = refused.behind?;
    let start_ms = waiting[promised].promised_ms?;
    let name = state.name_of(state.gangs.get(promised)?);
    let start = date_and_time(start_ms);
    let message = format!("its start would delay {name}, which is promised to start at {start}");
    Some(Verdict::new(Reason::Reserved, message))
}

/// What a gang runs into in the state as it is; `None`: nothing that counting over nodes and the
/// bounds of queues show.
pub(super) fn obstacle_in_words(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    gang: (GangId, QueueId),
    now_ms: UnixMs,
) -> Option<String> {
    match obstacle(state, settings, progress, gang, None, now_ms)? {
        Obstacle::Bound(excess) => Some(bound_in_words(&state.queues, &excess)),
        Obstacle::Nodes(by_nodes) => {
            let surplus = count(state, gang.0, now_ms).needed == 0;
            // What is known of nodes is not true of a state that is only looked at.
            let mut descriptions = Descriptions::default();
            let (verdict, _) = by_nodes.in_words(state, &mut descriptions, surplus);
            Some(verdict.message)
        }
        Obstacle::TooFewMembers => None,
    }
}

/// Why a gang in a line waits now, bindings that fail left aside: the reason that its sentence has
/// if it is made now. `None`: the gang waits for its turn, or for nothing.
pub(super) fn reason_now(scene: &mut Scene<'_>, id: GangId) -> Option<Reason> {
    let waiting = &scene.waiting[id];
    let refused = match cause(waiting)? {
        Cause::Eviction(_) => return Some(Reason::WaitingForEviction),
        Cause::Delay(..) => return Some(Reason::PreemptionDelay),
        Cause::Barred(verdict) => return Some(verdict.reason),
        Cause::Refused(refused) => refused,
    };
    let Some((queue, _)) = &waiting.place else {
        return Some(refused.reason);
    };
    let reserved = Some(refused.reason).filter(|reason| *reason == Reason::Reserved);
    let obstacle = obstacle_now(scene, (id, *queue), refused);
    obstacle.map(|it| it.reason()).or(reserved)
}

/// Why a refused gang finds no room now, whatever it was told last; `None`: it was not refused.
pub(crate) fn refused_now(scene: &mut Scene<'_>, id: GangId) -> Option<Reason> {
    let waiting = &scene.waiting[id];
    let (Wait::Room(refused, _), Some((queue, _))) = (&waiting.wait, &waiting.place) else {
        return None;
    };
    let obstacle = obstacle_now(scene, (id, *queue), refused);
    Some(obstacle.map_or(refused.reason, |it| it.reason()))
}

/// What a gang that was refused runs into now.
fn obstacle_now(
    scene: &mut Scene<'_>,
    gang: (GangId, QueueId),
    refused: &Refused,
) -> Option<Obstacle> {
    let (settings, progress, now_ms) = (scene.settings, scene.progress, scene.now_ms);
    obstacle(scene.state, settings, progress, gang, Some(refused), now_ms)
}

/// What a refused gang runs into now.
enum Obstacle {
    Bound(Excess),
    Nodes(Box<ByNodes>),
    /// The members that wait are surplus, and complete no sub-group.
    TooFewMembers,
}

impl Obstacle {
    fn reason(&self) -> Reason {
        match self {
            Self::Bound(excess) => excess.reason(),
            Self::Nodes(by_nodes) => by_nodes.reason,
            Self::TooFewMembers => Reason::WaitingForMembers,
        }
    }
}

/// What the nodes refuse now.
struct ByNodes {
    reason: Reason,
    asked: NextMembers,
    refusal: Refusal,
}

/// What a gang runs into now. `refused`: why its last attempt was refused. `None`: nothing refuses
/// the gang.
fn obstacle(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    gang: (GangId, QueueId),
    refused: Option<&Refused>,
    now_ms: UnixMs,
) -> Option<Obstacle> {
    let (id, queue) = gang;
    let mut alternatives = wanted::requests(state, settings, progress, id, queue, now_ms);
    if refused.is_none_or(|refused| refused.behind.is_none()) {
        // All were refused, and the first one is told. Behind promises there was room for one.
        alternatives.truncate(1);
    }
    let mut first = None;
    for request in alternatives {
        let met = obstacle_to(state, settings, progress, gang, (request, refused), now_ms)?;
        first.get_or_insert(met);
    }
    first.or(Some(Obstacle::TooFewMembers))
}

/// What one of the alternatives runs into that a gang may ask for next. `refused`: what became of
/// the last attempt. `None`: nothing refuses it.
fn obstacle_to(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    gang: (GangId, QueueId),
    (request, refused): (Request, Option<&Refused>),
    now_ms: UnixMs,
) -> Option<Obstacle> {
    let asked = match asked(state, settings, progress, gang, request, now_ms) {
        Err(excess) => return Some(Obstacle::Bound(excess)),
        Ok(None) => return Some(Obstacle::TooFewMembers),
        Ok(Some(asked)) => asked,
    };
    let known = refused.and_then(|refused| refused.by_nodes.as_deref());
    let refusal = asked.refusal(state, known)?;
    let found_room = refused.is_some_and(|refused| refused.behind.is_some());
    if found_room && refusal == (Refusal::NotTogether { proved: false }) {
        // The search found room, which promises keep for others, and counting does not refute it.
        return None;
    }
    let counts = count(state, gang.0, now_ms);
    let reason = reason(state, &progress[gang.0], &counts, asked.worded(), &refusal);
    Some(Obstacle::Nodes(Box::new(ByNodes {
        reason,
        asked,
        refusal,
    })))
}

/// The members that a gang asks for next.
struct NextMembers {
    request: Request,
    /// The first choice of these members, as the request of a plain gang: a refusal is told in its
    /// words. `None`: it is told in the words of `request`, which is plain.
    choice: Option<Request>,
}

/// The members that a gang asks for by one of its alternatives, as far as its queue has room for
/// them. `None`: no members.
///
/// # Errors
/// The bound that the gang would exceed, if no choice of these members keeps within the bounds.
fn asked(
    state: &ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    (id, queue): (GangId, QueueId),
    request: Request,
    now_ms: UnixMs,
) -> Result<Option<NextMembers>, Excess> {
    let excess_of = |choice: &Choice| {
        let pods: Vec<PodId> = pods_of(choice).collect();
        let demand = demand::demand_of_pods(state, pods.iter());
        bounds::within_bounds(state, id, queue, &demand).err()
    };
    let excess = match request.is_plain() {
        // The choices of a plain gang do not begin with the first members.
        true => bounds::excess(state, settings, progress, id, queue, now_ms),
        false => request.choices(state).0.first().and_then(excess_of),
    };
    if excess.is_none() && request.is_plain() {
        let choice = None;
        return Ok(Some(NextMembers { request, choice }));
    }
    let is_allowed = |choice: &Choice| excess_of(choice).is_none();
    let mut choices = request.choices(state).0.into_iter();
    let asked = match excess {
        None => choices.next().map(|choice| NextMembers {
            choice: Some(request.flat_choice(&choice)),
            request,
        }),
        Some(excess) => {
            let choice = choices.find(is_allowed).ok_or(excess)?;
            Some(NextMembers {
                request: request.chosen(&choice),
                choice: Some(request.flat_choice(&choice)),
            })
        }
    };
    Ok(asked)
}

impl NextMembers {
    /// The request in whose words a refusal is told.
    fn worded(&self) -> &Request {
        self.choice.as_ref().unwrap_or(&self.request)
    }

    /// What the nodes say against it: by what counting says, else by what the last search has found
    /// (`known`). `None`: nothing.
    fn refusal(&self, state: &mut ClusterState, known: Option<&Refusal>) -> Option<Refusal> {
        let root = self.request.root();
        let scope = match known {
            // Pods of one shape may be searched for everywhere at once: the search names the scope.
            Some(Refusal::TooFew { scope, .. })
                if self.request.is_plain() && root.pods.len() == 1 =>
            {
                *scope
            }
            _ => widest_scope(state, root.near, root.anchor),
        };
        refused_by_counting(state, &self.request, scope)
            .or_else(|| counted_again(state, self.worded(), known?))
    }
}

impl ByNodes {
    /// The sentence, and what must change. `surplus`: the members are surplus.
    fn in_words(
        self,
        state: &mut ClusterState,
        descriptions: &mut Descriptions,
        surplus: bool,
    ) -> (Verdict, Wake) {
        let Self {
            reason,
            asked,
            refusal,
        } = self;
        let worded = asked.worded();
        let wake = match &asked.choice {
            None => wake(state, worded, &refusal),
            Some(_) => Wake::AnyRoom(asked.request.classes(), None),
        };
        let message = match reason {
            Reason::OverLimit => model_limits(state, worded, &refusal),
            _ => descriptions.refusal(state, worded, &refusal, surplus),
        };
        let more_nodes_help = more_nodes_would_help(state, worded, &refusal);
        let verdict = Verdict {
            reason,
            message,
            more_nodes_help,
        };
        (verdict, wake)
    }
}
