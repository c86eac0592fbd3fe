//! What would let a gang start.

use super::words::amount_in_words as in_words;
use super::{ExcessReport, Explanation, Holder, Proof, Shortage};
use crate::names::joined;
use crate::reason::Reason;
use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

/// How many of those that hold what is missing are named.
const HOLDERS_NAMED: usize = 2;

/// A sentence for each thing that would help; the nearest comes first.
pub(crate) fn remedies(explanation: &Explanation) -> Vec<String> {
    let mut remedies = Vec::new();
    let Some(reason) = explanation.reason else {
        return remedies;
    };
    if let Some(excess) = &explanation.excess {
        remedies.extend(of_excess(excess));
    } else if explanation.shortages.is_empty() {
        remedies.extend(of_reason(reason).map(String::from));
    }
    match explanation.shortages.as_slice() {
        [_, ..] if reason == Reason::OverLimit => {
            remedies.push("gangs of the queue that release GPUs of the limited models".into());
            remedies.push("higher limits for these models".into());
        }
        shortages if fit_alone(shortages) => {
            let enough = "what there is would do for the members of each shape alone";
            remedies.push(format!("more free room: {enough}"));
        }
        shortages => {
            // Of several shapes those that have room are in nobody's way.
            let short = |one: &&Shortage| one.members_short() > 0 || shortages.len() == 1;
            for shortage in shortages.iter().filter(short) {
                of_shortage(shortage, explanation.proof, &mut remedies);
            }
        }
    }
    if reason == Reason::MembersLost {
        remedies.push(
            "a smaller minimum: what runs goes on with it, and is not evicted as stale".into(),
        );
    }
    let mut said = BTreeSet::new();
    remedies.retain(|remedy| said.insert(remedy.clone()));
    remedies
}

fn of_excess(excess: &ExcessReport) -> Vec<String> {
    let ExcessReport {
        queue,
        resource,
        bound,
        ..
    } = excess;
    let wanted = excess.held.saturating_add(excess.asked);
    let over = in_words(resource, wanted.saturating_sub(excess.allowed));
    let mut remedies = Vec::new();
    if excess.asked <= excess.allowed {
        let whose = match *bound {
            "quota" => "non-preemptible gangs",
            _ => "gangs",
        };
        remedies.push(format!("{whose} of the queue {queue} that release {over}"));
    } else {
        let all = in_words(resource, excess.allowed);
        remedies.push(format!(
            "a smaller gang: alone it asks for more than the whole {bound}, {all}"
        ));
    }
    let wanted = in_words(resource, wanted);
    remedies.push(format!("a {bound} of {wanted} for the queue {queue}"));
    if *bound == "quota" {
        remedies.push("`preemptible: true`, if it may be evicted".into());
    }
    remedies
}

/// Whether several things are missing together, each of which would fit alone.
fn fit_alone(shortages: &[Shortage]) -> bool {
    let several = match shortages {
        [] => false,
        [only] => only.sub_groups.len() > 1,
        _ => true,
    };
    several && shortages.iter().all(|one| one.members_short() == 0)
}

fn of_shortage(shortage: &Shortage, proof: Option<Proof>, remedies: &mut Vec<String>) {
    let place = match &shortage.domain {
        Some(domain) => format!("in {domain}"),
        None => "in the cluster".into(),
    };
    let short = shortage.members_short();
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
        let smaller = if shortage.fits_empty > 0 {
            ", or a smaller gang"
        } else {
            ""
        };
        remedies.push(format!(
            "more nodes that take its members{smaller}: {held} of {}",
            shortage.need
        ));
        remedies.extend(of_unknown(shortage));
    } else if short > 0 {
        remedies.extend(of_holders(
            &shortage.holders,
            short,
            shortage.domain.as_deref(),
        ));
        match shortage.sub_groups.len() {
            0 | 1 => {}
            several => remedies.push(format!(
                "beside that, for {}, a {} with room for {}",
                if several == 2 {
                    "the other sub-group"
                } else {
                    "each of the other sub-groups"
                },
                shortage.level,
                members(shortage.need)
            )),
        }
        remedies.push("more nodes that take its members".into());
    } else if proof == Some(Proof::Proved) {
        remedies.push("more free room where all its members may be together".into());
    } else {
        remedies.push("nothing more: there is room now, and it is about to be tried".into());
    }
    for refused in &shortage.nearest.refused {
        if refused.would_hold > 0 {
            let (because, hold) = (&refused.because, members(refused.would_hold));
            let have = match refused.nodes {
                1 => "1 node has".into(),
                nodes => format!("{nodes} nodes have"),
            };
            remedies.push(format!(
                "to be allowed on nodes {place} that {because}: {have} free room for {hold}"
            ));
        }
    }
    remedies.extend(elsewhere(shortage));
}

/// What members ask for and no node has.
fn of_unknown(shortage: &Shortage) -> impl Iterator<Item = String> {
    let resources = shortage.unknown_resources.iter();
    let resources = resources.map(|sentence| format!("pods that ask for less: {sentence}"));
    let labels = shortage.unknown_labels.iter();
    resources.chain(labels.map(|sentence| format!("another selector: {sentence}")))
}

/// What a wish would do where a level is required.
fn elsewhere(shortage: &Shortage) -> Option<String> {
    let level = &*shortage.level;
    let groups = shortage.sub_groups.len().max(1) as u64;
    let fits = shortage.fits_anywhere >= shortage.need.saturating_mul(groups);
    if level == "cluster" || shortage.members_short() == 0 || !fits {
        return None;
    }
    let room = members(shortage.fits_anywhere);
    let of = match shortage.required_by.as_slice() {
        [] => String::new(),
        [only] => format!(" in the sub-group {only}"),
        several => format!(" in the sub-groups {}", joined(several)),
    };
    Some(format!(
        "`preferred: {level}` instead of `required`{of}: all over the cluster there is room for \
         {room}"
    ))
}

/// Whose end makes room for so many members: each alone where one is enough, else several
/// together.
fn of_holders(holders: &[Holder], short: u64, domain: Option<&str>) -> Option<String> {
    let named = |holder: &Holder| {
        let who = holder.gang.as_deref().unwrap_or("pods of other schedulers");
        let on = match holder.nodes {
            1 => "1 node".into(),
            nodes => format!("{nodes} nodes"),
        };
        let place = domain.map_or_else(String::new, |domain| format!(" in {domain}"));
        format!("{who} ({} on {on}{place})", holder.holds)
    };
    let enough = holders
        .iter()
        .filter(|holder| holder.makes_room_for >= short);
    let enough: Vec<String> = enough.take(HOLDERS_NAMED).map(named).collect();
    match enough.as_slice() {
        [] => {}
        [only] => return Some(format!("the end of {only}")),
        several => return Some(format!("the end of any of {}", several.join(", "))),
    }
    let mut room = 0_u64;
    let mut together = Vec::new();
    for holder in holders.iter().filter(|holder| holder.makes_room_for > 0) {
        if room >= short {
            break;
        }
        room = room.saturating_add(holder.makes_room_for);
        together.push(named(holder));
    }
    if together.is_empty() {
        return None;
    }
    let together = together.join(" and ");
    Some(if room >= short {
        format!("the ends of {together}, together")
    } else {
        format!("the ends of more gangs, first of {together}")
    })
}

fn members(count: u64) -> String {
    match count {
        1 => "1 member".into(),
        _ => format!("{count} members"),
    }
}

/// What helps where no numbers do; the message names the object.
fn of_reason(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::WaitingForMembers => {
            "its controller creates the rest; if it does not, look for an admission rule or a \
             ResourceQuota, or correct the minimum"
        }
        Reason::PodGroupNotFound => "create the PodGroup, or correct the pods' label",
        Reason::SubGroupNotFound => "correct the pods' label gpu-batch.io/subgroup",
        Reason::ConflictingGroups => "take away the label or spec.schedulingGroup",
        Reason::QueueNotFound => "name a queue that is Ready, or ask an administrator for this one",
        Reason::QueueNotLeaf => "name one of the queues below it",
        Reason::QueueClosed => "name another queue, or wait until an administrator opens this one",
        Reason::NamespaceNotAllowed => {
            "name another queue, or ask its administrator to let the namespace in"
        }
        Reason::TopologyNotFound => "correct spec.topology, or ask for the Topology",
        Reason::WaitingForTurn => "nothing: those before it are tried first",
        Reason::InvalidSpec => "correct the field that the message names",
        Reason::Unsupported => "take away what the message names, or use another scheduler for it",
        Reason::SchedulingGated => "whoever put the gates there must take them away",
        Reason::BindingFailed => {
            "it is tried again by itself; if it stays, an admission rule stands in the way"
        }
        Reason::OverLimit | Reason::NonPreemptibleOverQuota => {
            "wait until gangs of the queue end, or ask for more"
        }
        Reason::DoesNotFit | Reason::NotFoundWithinBound | Reason::MembersLost => {
            "wait until gangs end, or add nodes"
        }
        Reason::WaitingForEviction | Reason::Reserved | Reason::PreemptionDelay => return None,
    })
}
