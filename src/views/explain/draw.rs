//! An explanation for people: the short form first, then what is missing, the turn, and what helps.

use super::{
    ComparedByView, ExplanationView, HolderView, KeptRoomView, LeftOutView, LevelView, NodesView,
    ShortageView, SiblingView, StandingView, TogetherView,
};
use super::{eviction, start};
use gpu_batch_policies::explain::nodes_that;
use std::collections::BTreeSet;
use std::fmt::Write;

/// How many shapes without a place beside the others are named.
const LEFT_NAMED: usize = 4;
/// For how many shortages the text has what all nodes say: it should fit on one screen.
const IN_DETAIL: usize = 2;
/// How many refusals of nodes a line names.
const REFUSALS_NAMED: usize = 6;

/// The explanation as text. Ends with a line break.
#[must_use]
pub fn draw(view: &ExplanationView) -> String {
    let mut text = head(view);
    // A gang that runs has started: the remedies are for the members that wait.
    let start = match view.phase.as_str() {
        "Running" => "What would let the members that wait start",
        _ => "What would let it start",
    };
    let takers = view.takers.as_ref();
    let takers = takers.map_or(&[][..], |takers| &takers.sentences);
    let parts = [
        ("What is missing", missing(view)),
        (
            "Its turn",
            view.standing.as_ref().map_or_else(Vec::new, turn),
        ),
        (
            "When it will start",
            view.start.as_ref().map_or_else(Vec::new, start::lines),
        ),
        (
            "Whose room it could take",
            view.eviction
                .as_ref()
                .map_or_else(Vec::new, eviction::lines),
        ),
        (start, listed(&view.remedies)),
        ("Who could take its room", listed(takers)),
        ("Take note", listed(&view.notes)),
    ];
    for (title, lines) in parts {
        if lines.is_empty() {
            continue;
        }
        line(&mut text, &format!("\n{title}"));
        for one in lines {
            line(&mut text, &format!("  {one}"));
        }
    }
    text
}

fn listed(sentences: &[String]) -> Vec<String> {
    sentences.iter().map(|one| format!("- {one}")).collect()
}

fn line(text: &mut String, line: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{line}");
}

/// The name and the phase of a gang, and the short form that status and events carry.
fn head(view: &ExplanationView) -> String {
    let mut text = String::new();
    if let Some(pod) = &view.pod {
        let place = match &pod.node {
            Some(node) if pod.binding => format!("is not bound yet, and is to be on {node}"),
            Some(node) => format!("is on {node}"),
            None if pod.waits => "waits for a node".to_owned(),
            None => "has no node".to_owned(),
        };
        line(
            &mut text,
            &format!("The pod {} {place}; it belongs to {}.", pod.name, view.gang),
        );
    }
    let members = &view.members;
    let met = members.bound + members.succeeded;
    line(
        &mut text,
        &format!(
            "{} in the queue {} is {}: {met} of at least {} members are bound, {} exist.",
            view.gang, view.queue, view.phase, members.expected, members.created
        ),
    );
    let message = &view.message;
    let told = match (view.reason.as_deref(), view.proof.as_deref()) {
        (None, _) => "Nothing of it waits.".to_owned(),
        (Some("DoesNotFit"), Some("Proved")) => {
            format!("DoesNotFit, and that is proved: {message}.")
        }
        (Some(reason), Some("Proved")) => format!("{reason}: {message}; that is proved."),
        (Some(reason), Some(_)) => format!("{reason}, as far as the search went: {message}."),
        (Some(reason), None) => format!("{reason}: {message}."),
    };
    line(&mut text, &told);
    text
}

fn missing(view: &ExplanationView) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(excess) = &view.excess {
        lines.push(format!(
            "{} of {} in the queue {}: {} allowed, {} held, {} asked for",
            excess.bound, excess.resource, excess.queue, excess.allowed, excess.held, excess.asked
        ));
    }
    let together: Vec<String> = view.together.iter().flat_map(together).collect();
    // A shortage of what no node has is told before everything else.
    let in_vain = |one: &ShortageView| one.unknown_resources.len() + one.unknown_labels.len() > 0;
    let (first, last) = if view.shortages.first().is_some_and(in_vain) {
        (Vec::new(), together)
    } else {
        (together, Vec::new())
    };
    lines.extend(first);
    let mut said = BTreeSet::new();
    for one in &view.shortages {
        lines.extend(shortage(one, view.shortages.len() <= IN_DETAIL));
        if one.members_short == 0 && view.together.is_some() {
            continue;
        }
        // Several shapes may lack room that the same gangs hold.
        let held = one.holders.iter().map(holder);
        let held = held.chain(one.kept.iter().map(kept));
        let new = held.filter(|line| said.insert((one.domain.clone(), line.clone())));
        lines.extend(new);
    }
    lines.extend(last);
    lines
}

/// `, which is 4 GPUs`.
fn gpus(gpus: u64) -> String {
    match gpus {
        0 => String::new(),
        1 => ", which is 1 GPU".to_owned(),
        gpus => format!(", which is {gpus} GPUs"),
    }
}

/// How many members have a place together, and which have none.
fn together(together: &TogetherView) -> Vec<String> {
    let place = together.domain.as_deref().unwrap_or("the cluster");
    let (sure, most) = if together.proved {
        ("", "at best ")
    } else {
        ("as far as the search went, ", "")
    };
    let mut lines = vec![format!(
        "{sure}{place} has room for {most}{} of the {} members together: {} too few{}",
        together.placed,
        together.need,
        together.members_short,
        gpus(together.gpus_short)
    )];
    lines.extend(together.left.iter().take(LEFT_NAMED).map(left_out));
    let rest = together.left.iter().skip(LEFT_NAMED);
    match rest.map(|left| left.members).sum() {
        0 => {}
        1 => lines.push("  and 1 member of another shape".to_owned()),
        more => lines.push(format!("  and {more} members of other shapes")),
    }
    lines
}

/// `  left over: 2 of the 3 members of slices/b with 4 nvidia.com/gpu each; its others are in r1`.
fn left_out(left: &LeftOutView) -> String {
    let each = if left.members == 1 { "" } else { " each" };
    let who = match (&left.sub_group, left.members) {
        (Some(group), members) if left.need > 1 => {
            format!("{members} of the {} members of {group}", left.need)
        }
        (Some(group), _) => format!("the member of {group}"),
        (None, 1) => "1 member".to_owned(),
        (None, members) => format!("{members} members"),
    };
    let others = match (&left.domain, &left.level) {
        (Some(domain), _) => format!("; its others are in {domain}"),
        (None, Some(level)) if left.need > 1 => format!("; no {level} is left for them"),
        _ => String::new(),
    };
    format!("  left over: {who} with {}{each}{others}", left.asks)
}

/// The lines about one shortage. `in_detail`: with what all nodes say, where the shortage is about
/// a domain and not about all of them.
fn shortage(shortage: &ShortageView, in_detail: bool) -> Vec<String> {
    let place = shortage.domain.as_deref().unwrap_or("the cluster");
    let asked = shortage.requests.iter().filter(|(name, _)| *name != "pods");
    let requests: Vec<String> = asked
        .map(|(name, amount)| format!("{amount} {name}"))
        .collect();
    let short = match shortage.members_short {
        0 => match (shortage.domains_with_room, shortage.domains) {
            (_, 0 | 1) => "these alone would fit".to_owned(),
            (room, domains) => format!(
                "these alone would fit, in {room} of {domains} domains of the level {}",
                shortage.level
            ),
        },
        short => format!("{short} too few{}", gpus(shortage.gpus_short)),
    };
    let (member, each) = match shortage.sub_groups.as_slice() {
        [] => ("a member".to_owned(), ""),
        [group] => (format!("a member of the sub-group {group}"), ""),
        [groups @ .., last] => {
            let groups = groups.join(", ");
            let member = format!("a member of the sub-groups {groups} and {last}");
            (member, " of each")
        }
    };
    let nearest = &shortage.nearest;
    let selects = match shortage.selects.as_slice() {
        [] => String::new(),
        labels => format!(" on nodes with {}", labels.join(" and ")),
    };
    let mut lines = vec![format!(
        "{member} asks for {}{selects}",
        requests.join(", ")
    )];
    // What no node has comes first: other room would not help.
    let sentences = shortage.unknown_resources.iter();
    let sentences = sentences.chain(&shortage.unknown_labels);
    lines.extend(sentences.map(|sentence| format!("  {sentence}")));
    lines.push(format!(
        "{place} has room for {}, and {}{each} must be placed: {short}",
        shortage.fits, shortage.need
    ));
    lines.push(format!("  {}", nodes(nearest)));
    if shortage.domain.is_some() && shortage.all != *nearest {
        lines.push(match (shortage.fits_anywhere, shortage.members_short) {
            (0, _) => "the whole cluster has room for none".to_owned(),
            (fits, short) if short > 0 && fits >= shortage.need && shortage.need > 1 => {
                let level = &shortage.level;
                format!("the whole cluster has room for {fits}, but not in one {level}")
            }
            (fits, _) => format!("the whole cluster has room for {fits}"),
        });
        if in_detail {
            lines.push(format!("  {}", nodes(&shortage.all)));
        }
    }
    let sentences = shortage.unlabelled_level.iter();
    let sentence = sentences.chain(&shortage.model_limits);
    lines.extend(sentence.map(|sentence| format!("  {sentence}")));
    lines
}

/// `vision/old holds 8 nvidia.com/gpu there on 1 node`.
/// `8 nvidia.com/gpu there on 1 node are kept for the gang default/a, for which others leave`.
fn kept(kept: &KeptRoomView) -> String {
    let on = match kept.nodes {
        1 => "on 1 node".to_owned(),
        nodes => format!("on {nodes} nodes"),
    };
    let until = match &kept.until {
        Some(until) => format!(", until {until} at most"),
        None => String::new(),
    };
    format!(
        "{} there {on} are kept for {}{until}",
        kept.amount, kept.r#for
    )
}

fn holder(holder: &HolderView) -> String {
    let (who, holds) = match &holder.gang {
        Some(gang) => (gang.as_str(), "holds"),
        None => ("pods of other schedulers", "hold"),
    };
    let on = match holder.nodes {
        1 => "on 1 node".to_owned(),
        nodes => format!("on {nodes} nodes"),
    };
    let ends = match &holder.ends {
        Some(ends) => format!(", until {ends} if it runs as long as was said"),
        None => String::new(),
    };
    format!("{who} {holds} {} there {on}{ends}", holder.holds)
}

/// `4 nodes: 2 had room, 1 was unschedulable`.
fn nodes(counts: &NodesView) -> String {
    let mut parts = vec![format!("{} had room", counts.with_room)];
    let named = counts.refused.iter().take(REFUSALS_NAMED);
    parts.extend(named.map(|refused| nodes_that(refused.nodes, &refused.because)));
    let rest = counts.refused.iter().skip(REFUSALS_NAMED);
    let rest: u32 = rest.map(|refused| refused.nodes).sum();
    if rest > 0 {
        parts.push(nodes_that(rest, "were refused for other reasons"));
    }
    let nodes = match counts.nodes {
        1 => "1 node".to_owned(),
        nodes => format!("{nodes} nodes"),
    };
    format!("{nodes}: {}", parts.join(", "))
}

fn turn(standing: &StandingView) -> Vec<String> {
    let mut lines = Vec::new();
    let mut because = vec![format!("priority {}", standing.priority)];
    if standing.unfinished {
        because.insert(0, "a part of it is bound".to_owned());
    }
    if standing.replacement {
        because.insert(0, "it replaces lost members".to_owned());
    }
    if standing.surplus {
        because.push("beyond its minimum".to_owned());
    }
    because.push(format!("created {}", standing.created));
    lines.push(format!(
        "number {} of {} that wait in its queue: {}",
        standing.position,
        standing.length,
        because.join(", ")
    ));
    for ahead in &standing.before {
        let (gang, reason, because) = (&ahead.gang, &ahead.reason, &ahead.because);
        lines.push(format!("  before it {gang} ({reason}): {because}"));
    }
    lines.extend(standing.levels.iter().flat_map(level));
    lines
}

fn level(level: &LevelView) -> Vec<String> {
    let below = match &level.parent {
        Some(parent) => format!("below {parent}"),
        None => "of the first level".to_owned(),
    };
    let mut lines = vec![format!(
        "the queue {} is number {} of {} {below}: {}",
        level.queue,
        level.position,
        level.siblings,
        compared_by(&level.compared_by)
    )];
    let own = &level.compared_by;
    lines.extend(level.before.as_ref().map(|sibling| before(sibling, own)));
    lines
}

/// `  before it prod, whose vision/train waits with OverLimit: its quota goes first (...)`.
fn before(before: &SiblingView, own: &ComparedByView) -> String {
    let because = match before.decided_by.as_str() {
        "Quota" => "its quota goes first".to_owned(),
        "QuotaAfterStart" => {
            let used = |by: &ComparedByView| by.quota_used_after.clone().unwrap_or_default();
            let (its, own) = (used(&before.compared_by), used(own));
            format!("after the start it would have used less of its quota, {its} instead of {own}")
        }
        "Priority" => "its priority is higher".to_owned(),
        "Weight" => "its weight is not 0".to_owned(),
        "Share" => "its share is smaller".to_owned(),
        "ShareAfterStart" => {
            let (its, own) = (&before.compared_by.share_after, &own.share_after);
            format!("its share would be smaller after the start, {its} instead of {own}")
        }
        "Age" => "it is older".to_owned(),
        _ => "it is as old, and its name comes first".to_owned(),
    };
    let waits = match before.reason.as_str() {
        "WaitingForTurn" => "is tried before".to_owned(),
        reason => format!("waits with {reason}"),
    };
    let (queue, gang, by) = (
        &before.queue,
        &before.gang,
        compared_by(&before.compared_by),
    );
    format!("  before it {queue}, whose {gang} {waits}: {because} ({by})")
}

/// `0.5 of its quota used: 8 of 16 nvidia.com/gpu`, `no quota of memory`.
fn quota(by: &ComparedByView) -> String {
    let Some(quota) = by.quota.as_ref() else {
        return match by.has_quota {
            true => "no quota for it".to_owned(),
            false => "it has no quota".to_owned(),
        };
    };
    let (held, all, resource) = (&quota.held, &quota.quota, &quota.resource);
    match (&by.quota_used, &quota.asked) {
        (None, _) if all == "0" => format!("no quota of {resource}"),
        (None, None) => format!("no quota left: {held} of {all} {resource} used"),
        (None, Some(asked)) => {
            format!("too little quota left: {held} of {all} {resource} used, {asked} asked for")
        }
        (Some(used), _) if quota.counts_as == *all => {
            format!("{used} of its quota used: {held} of {all} {resource}")
        }
        (Some(used), _) => {
            let counts_as = &quota.counts_as;
            format!(
                "{used} of its quota used: {held} of {all} {resource}, which counts as {counts_as}"
            )
        }
    }
}

/// `it has no quota, priority 0, share 0.25 (8 of 32 nvidia.com/gpu) over weight 3 = 0.083333`.
fn compared_by(by: &ComparedByView) -> String {
    let quota = quota(by);
    let weightless = if by.weightless { ", weight 0" } else { "" };
    let (priority, share) = (by.priority, &by.share);
    let before = format!("{quota}, priority {priority}{weightless}");
    let (Some(resource), Some(used), Some(of), Some(weight)) =
        (&by.resource, &by.used, &by.of, by.weight)
    else {
        return format!("{before}, share {share}");
    };
    let plain = by.counted_weight.is_none() && weight <= 1;
    let whole = if plain { share } else { &by.dominant_share };
    let over = match (&by.counted_weight, weight) {
        (Some(counted), _) => {
            format!(" over weight {weight}, counted as {counted} for past use, = {share}")
        }
        (None, 0 | 1) => String::new(),
        (None, _) => format!(" over weight {weight} = {share}"),
    };
    format!("{before}, share {whole} ({used} of {of} {resource}){over}")
}
