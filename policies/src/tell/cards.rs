//! Gangs that run on nodes of which the GPUs have failed: their owners are told.

use crate::bind::outbox::Outbox;
use crate::command::Announcement;
use crate::gangs::failed_cards;
use crate::ids::{GangId, NodeId};
use crate::settings::Sign;
use crate::state::ClusterState;
use crate::tell::words::date_and_time;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The reason of the event on a gang that runs on failed cards, or is evicted from them.
pub(super) const CARD_FAILED: &str = "CardFailed";

/// How many nodes a sentence names.
const NAMED: usize = 3;

/// What the owners of gangs on failed cards were told last, and what they are still to be told.
#[derive(Debug, Default)]
pub(super) struct FailedCards {
    told: BTreeMap<GangId, BTreeSet<(NodeId, Sign)>>,
    untold: BTreeMap<GangId, Announcement>,
}

impl FailedCards {
    /// Notes on which failed cards a gang runs now. It is told anew where more have failed, and not
    /// of each member that leaves.
    pub(super) fn note(&mut self, state: &ClusterState, id: GangId) {
        let Some(sentence) = on_failed_cards(state, id) else {
            return self.forget(id);
        };
        let nodes = failed_cards::failed_nodes(state, id).into_keys();
        let signs = nodes.flat_map(|node| {
            let ailments = state.ailments.of(node).iter();
            ailments.map(move |ailment| (node, ailment.sign.clone()))
        });
        let signs: BTreeSet<(NodeId, Sign)> = signs.collect();
        if self.told.get(&id).is_some_and(|told| signs.is_subset(told)) {
            return;
        }
        let news = state
            .object_of(&state.gangs[id])
            .map(|regarding| Announcement {
                regarding,
                warning: true,
                reason: CARD_FAILED.into(),
                message: (&*sentence).into(),
                once: true,
            });
        self.untold.extend(news.map(|news| (id, news)));
        self.told.insert(id, signs);
    }

    /// Forgets a gang that is gone, or runs on no failed cards.
    pub(super) fn forget(&mut self, id: GangId) {
        self.told.remove(&id);
        self.untold.remove(&id);
    }

    /// Publishes what was not told yet. Only the leader may call this.
    pub(super) fn announce(&mut self, outbox: &mut Outbox) {
        for news in core::mem::take(&mut self.untold).into_values() {
            outbox.announce(news);
        }
    }
}

/// On which failed cards a gang runs, and what follows, as a sentence; `None`: on none.
pub(super) fn on_failed_cards(state: &ClusterState, id: GangId) -> Option<String> {
    let nodes = failed_cards::failed_nodes(state, id);
    let members = match nodes.values().sum() {
        0_usize => return None,
        1 => String::from("1 member runs"),
        members => format!("{members} members run"),
    };
    let follows = match failed_cards::evicts_ms(state, id) {
        None => "no rule evicts the gang for that".into(),
        Some(due_ms) => {
            let due = date_and_time(due_ms);
            match failed_cards::kept_by(state, id) {
                None => format!("the whole gang is evicted at {due}"),
                Some(budget) => format!(
                    "the whole gang is to be evicted at {due}, once the disruption budget \
                     {budget} allows it"
                ),
            }
        }
    };
    Some(format!(
        "{members} where GPUs may have failed: {}; {follows}",
        signs(state, id)
    ))
}

/// What the nodes show on which a gang runs on failed cards.
pub(super) fn signs(state: &ClusterState, id: GangId) -> String {
    let nodes = failed_cards::failed_nodes(state, id);
    let shown = |node: &NodeId| {
        let ailment = state.ailments.of(*node).first()?;
        Some(format!("{} has {}", state.nodes[*node].name, ailment.sign))
    };
    let mut named: Vec<String> = nodes.keys().filter_map(shown).collect();
    named.sort();
    let more = match named.len().saturating_sub(NAMED) {
        0 => String::new(),
        1 => ", and 1 more node".into(),
        more => format!(", and {more} more nodes"),
    };
    named.truncate(NAMED);
    format!("{}{more}", named.join(", "))
}
