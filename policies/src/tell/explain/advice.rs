//! What would let a gang start.

use super::{ExcessReport, Explanation, Occupant, Proof, Shortage, Standing, Together};
use crate::facts::{Amount, queue_quantity};
use crate::names::joined;
use crate::reason::Reason;
use crate::status::Phase;
use alloc::{boxed::Box, collections::BTreeSet, format, string::String, vec::Vec};

/// How many of the occupants whose ends would help are named.
const OCCUPANTS_NAMED: usize = 5;
/// How many of the shapes that need more room are named.
const SHAPES_NAMED: usize = 3;

/// The remedy where the members could be on new nodes.
const MORE_NODES: &str = "more nodes that take its members";
/// The remedy where the members could not be on new nodes.
const OTHER_NODES: &str = "to be allowed on other nodes: new ones could not take its members";

/// The remedy where nothing is missing any more.
const TRIED_SOON: &str = "nothing more: there is room now, and it is about to be tried";

/// The occupants whose ends would let a gang start, found by trying.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) occupants: Vec<Occupant>,
    /// All these occupants must end; otherwise the end of any one is enough.
    pub(crate) together: bool,
    /// There are more occupants whose end alone is enough.
    pub(crate) others_alike: bool,
    /// The domain or node that they hold; `None`: the area is the cluster.
    pub(crate) domain: Option<String>,
}

/// What was found, by trying, that would let the gang start once it has its turn.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    /// All needed members have places now.
    pub(crate) fits: bool,
    /// All needed members have places on nodes, whatever the bounds of queues say; counts where
    /// such a bound keeps the gang waiting.
    pub(crate) nodes_have_room: bool,
    /// Where the members may go depends on other pods.
    pub(crate) is_related: bool,
    pub(crate) ends: Option<Ends>,
    /// The positions of the shortages that are gone once their level is preferred and not required.
    pub(crate) wishes: Vec<usize>,
    /// Nodes of GPU models whose limits are not reached would help; counts where limits on GPU
    /// models alone keep the gang waiting.
    pub(crate) other_models_help: bool,
    pub(crate) model_limits: ModelLimits,
}

/// What limits on GPU models leave to a gang; counts where they alone keep it waiting.
#[derive(Debug, Default)]
pub(crate) struct ModelLimits {
    /// The limit that the gang would exceed on the nodes that there are; `None`: it may run on
    /// several models.
    pub(crate) excess: Option<ExcessReport>,
    /// A release under these limits lets in more members.
    pub(crate) releases_help: bool,
}

/// A sentence for each thing that would help; the nearest comes first. `only_anew`: what has to be
/// created anew so that the gang can name another queue.
pub(crate) fn remedies(
    explanation: &Explanation,
    tried: &Tried,
    only_anew: Option<&str>,
) -> Vec<String> {
    let mut remedies = Vec::new();
    let Some(reason) = explanation.reason else {
        return remedies;
    };
    match (&explanation.excess, explanation.shortages.as_slice()) {
        (Some(excess), []) => {
            let more = of_excess(excess).into_iter();
            remedies.extend(
                more.map(|(remedy, raises)| match raises && !tried.nodes_have_room {
                    true => {
                        format!("{remedy}, together with free nodes: there is no room for it now")
                    }
                    false => remedy,
                }),
            );
        }
        (None, []) if reason == Reason::PodGroupNotFound && explanation.phase == Phase::Running => {
            remedies.push(
                "create the PodGroup, or correct the pods' label: the members that wait can start \
                 then; those that run go on meanwhile"
                    .into(),
            );
        }
        (None, []) => remedies.extend(of_reason(reason, only_anew)),
        _ => {}
    }
    match explanation.shortages.as_slice() {
        [_, ..] if tried.fits => remedies.push(TRIED_SOON.into()),
        [_, ..] if reason == Reason::OverLimit && explanation.excess.is_none() => {
            of_model_limits(tried, &mut remedies);
        }
        shortages => of_room(explanation, shortages, tried, &mut remedies),
    }
    if let (Some(excess), [_, ..]) = (&explanation.excess, explanation.shortages.as_slice()) {
        // Room under the bound does not help by itself. A smaller gang, the first remedy where the
        // gang asks for more than the bound, has been named for the shortages.
        let too_large = usize::from(excess.asked > excess.allowed && excess.allowed > 0);
        let more = of_excess(excess).into_iter().skip(too_large);
        remedies.extend(more.map(|(remedy, _)| format!("beside that, {remedy}")));
    }
    if reason == Reason::MembersLost {
        remedies.push(
            "a smaller minimum: what runs goes on with it, and is not evicted as stale".into(),
        );
    }
    let shares_room = !explanation.shortages.is_empty() && !tried.fits && !reason.is_of_queue();
    if let Some(Err(no_plan)) = explanation.eviction.as_ref().filter(|_| shares_room) {
        remedies.extend(of_claims(&explanation.queue, &no_plan.more_quota));
    }
    let standing = explanation.standing.as_ref().filter(|_| shares_room);
    remedies.extend(standing.and_then(those_before));
    let mut said = BTreeSet::new();
    remedies.retain(|remedy| said.insert(remedy.clone()));
    remedies
}

/// What helps a gang that limits on GPU models alone keep waiting.
fn of_model_limits(tried: &Tried, remedies: &mut Vec<String>) {
    let limits = &tried.model_limits;
    match &limits.excess {
        Some(excess) => remedies.extend(under_bound(excess)),
        None if limits.releases_help => {
            remedies.push("gangs of the queue that release GPUs of the limited models".into());
        }
        None => {}
    }
    if tried.other_models_help {
        remedies.push("nodes of other models that its members may run on".into());
    }
    remedies.push(match &limits.excess {
        Some(excess) => higher_bound(excess),
        None => "higher limits for these models".into(),
    });
}

/// What helps a gang whose queue may claim too little from others; `None`: it may claim enough.
fn of_claims(queue: &str, more_quota: &[(Box<str>, Amount)]) -> Option<String> {
    let quotas = more_quota.iter();
    let quotas: Vec<String> = quotas.map(|(key, quota)| in_words(key, *quota)).collect();
    (!quotas.is_empty()).then(|| {
        format!(
            "a quota of {} for the queue {queue}: up to its quota a queue may take back what other \
             queues hold beyond theirs",
            joined(&quotas)
        )
    })
}

/// What helps a gang that lacks room on nodes.
fn of_room(
    explanation: &Explanation,
    shortages: &[Shortage],
    tried: &Tried,
    remedies: &mut Vec<String>,
) {
    remedies.extend(tried.ends.as_ref().map(of_ends));
    if tried.is_related {
        remedies.push("pods that come or go which its rules about other pods name".into());
    }
    if fit_alone(shortages) {
        remedies.push(match &explanation.together {
            Some(together) => of_together(together),
            None => "more free room: what there is would do for each of these alone".into(),
        });
        return;
    }
    // Of several shapes, a shape that has room needs no remedy.
    let short = |one: &Shortage| one.members_short() > 0 || shortages.len() == 1;
    for (position, shortage) in shortages.iter().enumerate() {
        if short(shortage) {
            of_shortage(shortage, explanation, remedies);
        }
        if tried.wishes.contains(&position) {
            remedies.push(elsewhere(shortage));
        }
    }
}

/// What helps a gang that a bound keeps waiting, each with whether it lets the gang exceed the
/// bound, so that nodes need room for it beside all that runs.
fn of_excess(excess: &ExcessReport) -> Vec<(String, bool)> {
    let mut remedies = Vec::new();
    remedies.extend(under_bound(excess).map(|remedy| (remedy, false)));
    remedies.push((higher_bound(excess), true));
    if excess.bound == "quota" {
        remedies.push(("`preemptible: true`, if it may be evicted".into(), true));
    }
    remedies
}

/// What makes room under a bound as it is; `None`: nothing, because the bound is 0.
fn under_bound(excess: &ExcessReport) -> Option<String> {
    let ExcessReport {
        queue,
        resource,
        bound,
        ..
    } = excess;
    if excess.asked <= excess.allowed {
        let whose = match *bound {
            "quota" => "non-preemptible gangs",
            _ => "gangs",
        };
        let over = in_words(resource, wanted(excess).saturating_sub(excess.allowed));
        return Some(format!("{whose} of the queue {queue} that release {over}"));
    }
    let all = in_words(resource, excess.allowed);
    (excess.allowed > 0)
        .then(|| format!("a smaller gang: alone it asks for more than the whole {bound}, {all}"))
}

fn higher_bound(excess: &ExcessReport) -> String {
    let wanted = in_words(&excess.resource, wanted(excess));
    format!(
        "a {} of {wanted} for the queue {}",
        excess.bound, excess.queue
    )
}

/// An amount as queues count it, with the name of the resource: `8 nvidia.com/gpu`.
fn in_words(key: &str, amount: Amount) -> String {
    format!("{} {key}", queue_quantity(key, amount))
}

/// How much would be held under a bound with the gang.
fn wanted(excess: &ExcessReport) -> Amount {
    excess.allocated.saturating_add(excess.asked)
}

/// Whether several shapes or sub-groups do not fit together, although each would fit alone.
fn fit_alone(shortages: &[Shortage]) -> bool {
    let several = match shortages {
        [] => false,
        [only] => only.sub_groups.len() > 1,
        _ => true,
    };
    several && shortages.iter().all(|one| one.members_short() == 0)
}

fn of_shortage(shortage: &Shortage, explanation: &Explanation, remedies: &mut Vec<String>) {
    let place = match &shortage.domain {
        Some(domain) => format!("in {domain}"),
        None => "in the cluster".into(),
    };
    let short = shortage.members_short();
    remedies.extend_from_slice(&shortage.other_layouts);
    if let Some(sentence) = &shortage.unlabelled_level
        && shortage.fits_anywhere > shortage.fits
    {
        remedies.push(format!(
            "a label on the nodes, or a Topology without the level: {sentence}"
        ));
    }
    if shortage.fits_empty < shortage.need {
        let level = &*shortage.level;
        let held = match (shortage.fits_empty, level) {
            (0, "cluster") => "even an empty cluster would hold none".into(),
            (0, _) => format!("even empty, no {level} would hold any"),
            (held, "cluster") => format!("even an empty cluster would hold {held}"),
            (held, _) => format!("even empty, no {level} would hold more than {held}"),
        };
        let held = format!("{held} of {}", shortage.need);
        remedies.extend(match (shortage.more_nodes_help, shortage.fits_empty > 0) {
            (true, true) => Vec::from([format!("{MORE_NODES}, or a smaller gang: {held}")]),
            (true, false) => Vec::from([format!("{MORE_NODES}: {held}")]),
            (false, true) => Vec::from([format!("a smaller gang: {held}"), OTHER_NODES.into()]),
            (false, false) => Vec::from([OTHER_NODES.into()]),
        });
        remedies.extend(of_unknown(shortage));
    } else if short > 0 {
        remedies.push(match &explanation.together {
            Some(together) => of_together(together),
            None if shortage.more_nodes_help => MORE_NODES.into(),
            None => OTHER_NODES.into(),
        });
    } else if explanation.proof == Some(Proof::Proved) {
        remedies.push("more free room where all its members may be together".into());
    } else {
        remedies.push(TRIED_SOON.into());
    }
    if let Some(limits) = shortage.model_limits.as_ref().filter(|_| short > 0) {
        remedies.push(format!("beside that, a higher limit: {limits}"));
    }
    for refused in &shortage.nearest.refused {
        if refused.would_hold > 0 {
            let (because, hold) = (&refused.because, members(refused.would_hold));
            if refused.for_volumes {
                let have = match refused.nodes {
                    1 => format!("1 node that {because} has"),
                    nodes => format!("{nodes} nodes that {because} have"),
                };
                remedies.push(format!(
                    "volumes that other nodes {place} reach: {have} free room for {hold}"
                ));
                continue;
            }
            let have = match refused.nodes {
                1 => "1 node has".into(),
                nodes => format!("{nodes} nodes have"),
            };
            let what = if refused.closed {
                "the return of"
            } else {
                "to be allowed on"
            };
            remedies.push(format!(
                "{what} nodes {place} that {because}: {have} free room for {hold}"
            ));
        }
    }
}

/// Remedies where members ask for what no node has.
fn of_unknown(shortage: &Shortage) -> impl Iterator<Item = String> {
    let resources = shortage.unknown_resources.iter();
    let resources = resources.map(|sentence| format!("pods that ask for less: {sentence}"));
    let labels = shortage.unknown_labels.iter();
    resources.chain(labels.map(|sentence| format!("another selector: {sentence}")))
}

/// The remedy to prefer a level that is required.
fn elsewhere(shortage: &Shortage) -> String {
    let level = &shortage.level;
    let room = members(shortage.fits_anywhere);
    let of = match shortage.required_by.as_slice() {
        [] => String::new(),
        [only] => format!(" in the sub-group {only}"),
        several => format!(" in the sub-groups {}", joined(several)),
    };
    format!(
        "`preferred: {level}` instead of `required`{of}: all over the cluster there is room for \
         {room}"
    )
}

/// `the end of any of a, b` where each is enough, `the ends of a and b together` where all must
/// end.
fn of_ends(ends: &Ends) -> String {
    let named = ends.occupants.iter().take(OCCUPANTS_NAMED);
    let named: Vec<String> = named
        .map(|occupant| who(occupant, ends.domain.as_deref()))
        .collect();
    match (named.as_slice(), ends.occupants.len()) {
        ([only], _) => format!("the end of {only}"),
        (several, _) if !ends.together && ends.others_alike => {
            format!("the end of any of {} and others", several.join(", "))
        }
        (several, _) if !ends.together => format!("the end of any of {}", several.join(", ")),
        (all, occupants) if all.len() == occupants => {
            format!("the ends of {} together", joined(all))
        }
        (first, occupants) => {
            let first = first.join(", ");
            format!("the ends of {occupants} gangs together: {first} and those that hold less")
        }
    }
}

fn who(occupant: &Occupant, domain: Option<&str>) -> String {
    let who = occupant
        .gang
        .as_deref()
        .unwrap_or("pods of other schedulers");
    let on = match occupant.nodes {
        1 => "1 node".into(),
        nodes => format!("{nodes} nodes"),
    };
    let place = domain.map_or_else(String::new, |domain| format!(" in {domain}"));
    format!("{who} ({} on {on}{place})", occupant.holds)
}

/// The gangs and queues that get new room before the gang, as a sentence.
fn those_before(standing: &Standing) -> Option<String> {
    let mut before: Vec<String> = Vec::new();
    match standing.rivals.gangs {
        0 => {}
        1 => before.push("1 gang in its queue".into()),
        gangs => before.push(format!("{gangs} gangs in its queue")),
    }
    for level in &standing.rivals.levels {
        let Some(sibling) = &level.before else {
            continue;
        };
        before.push(match level.position {
            0..=2 => format!("the queue {}", sibling.queue),
            position => format!("{} queues beside {}", position - 1, level.queue),
        });
    }
    let before = (!before.is_empty()).then(|| joined(&before))?;
    Some(format!(
        "new room goes first to those before it that can use it: {before}"
    ))
}

/// The remedy of room for the members that have no place beside the others.
fn of_together(together: &Together) -> String {
    let mut room: Vec<String> = Vec::new();
    for left in together.left.iter().take(SHAPES_NAMED) {
        let each = if left.members == 1 { "" } else { " each" };
        let whose = left.sub_group.iter().map(|path| format!(" of {path}"));
        let whose = whose.collect::<String>();
        let (members, asks) = (more_members(left.members), &left.asks);
        let place = match (&left.domain, &left.level, &together.domain) {
            (Some(domain), ..) | (None, None, Some(domain)) => format!(" in {domain}"),
            (None, Some(level), _) if left.members > 1 => format!(" in one {level}"),
            _ => String::new(),
        };
        room.push(format!("{members}{whose} with {asks}{each}{place}"));
    }
    if together.left.len() > SHAPES_NAMED {
        room.push("those of other shapes that have no place either".into());
    }
    format!("beside the room that is free, room for {}", joined(&room))
}

fn more_members(count: u64) -> String {
    match count {
        1 => "1 more member".into(),
        _ => format!("{count} more members"),
    }
}

pub(super) fn members(count: u64) -> String {
    match count {
        1 => "1 member".into(),
        _ => format!("{count} members"),
    }
}

/// The remedy where no amounts are missing; the gang's message names the object that is meant.
fn of_reason(reason: Reason, only_anew: Option<&str>) -> Option<String> {
    let of_queue = match reason {
        Reason::QueueNotFound => "a queue that is Ready, or ask an administrator for this one",
        Reason::QueueNotLeaf => "one of the queues below it",
        Reason::QueueClosed => "another queue, or wait until an administrator opens this one",
        Reason::NamespaceNotAllowed => {
            "another queue, or ask its administrator to let the namespace in"
        }
        _ => return of_other_reason(reason).map(String::from),
    };
    Some(match only_anew {
        Some(create) => format!("{create} with {of_queue}"),
        None => format!("name {of_queue}"),
    })
}

fn of_other_reason(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::WaitingForMembers => {
            "its controller creates the rest; if it does not, look for an admission rule or a \
             ResourceQuota, or correct the minimum"
        }
        Reason::PodGroupNotFound => "create the PodGroup, or correct the pods' label",
        Reason::SubGroupNotFound => "correct the pods' label gpu-batch.io/subgroup",
        Reason::ConflictingGroups => "take away the label or spec.schedulingGroup",
        Reason::TopologyNotFound => "correct spec.topology, or ask for the Topology",
        Reason::WaitingForTurn => "nothing: those before it are tried first",
        Reason::InvalidSpec => "correct the field that the message names",
        Reason::Unsupported => "take away what the message names, or use another scheduler for it",
        Reason::WaitingForVolumes => {
            "`kubectl describe pvc` says what the claim waits for; make it if it does not exist"
        }
        Reason::SchedulingGated => "whoever put the gates there must take them away",
        Reason::WaitingForKubeScheduler => {
            "`kubectl describe pod` shows what kube-scheduler says, with our words in it"
        }
        Reason::BindingFailed => {
            "it is tried again by itself; if it stays, an admission rule stands in the way"
        }
        Reason::OverLimit | Reason::NonPreemptibleOverQuota => {
            "wait until gangs of the queue end, or ask for more"
        }
        Reason::DoesNotFit | Reason::NotFoundWithinBound | Reason::MembersLost => {
            "wait until gangs end, or add nodes"
        }
        Reason::QueueNotFound
        | Reason::QueueNotLeaf
        | Reason::QueueClosed
        | Reason::NamespaceNotAllowed
        | Reason::WaitingForEviction
        | Reason::PreemptionDelay => return None,
        Reason::Reserved => {
            "an `expectedRuntime` with which it ends before that start, if that is how long it \
             runs; of pods without a PodGroup the annotation `gpu-batch.io/expected-runtime` says it"
        }
    })
}
