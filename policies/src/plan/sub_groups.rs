//! Attempts for gangs with sub-groups.

use crate::gangs::progress::Progress;
use crate::gangs::wait::{Refused, Shortfall, Wake};
use crate::gangs::{demand, wanted};
use crate::ids::ById;
use crate::ids::{GangId, PodId};
use crate::place::{Tree, merged, place_tree, pods_of};
use crate::plan::attempt::Attempt;
use crate::plan::attempt::Attempted;
use crate::plan::{bounds, refusal};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::vec::Vec;

/// Tries what the gang wants to place next.
pub(crate) fn try_sub_groups(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    attempt: &mut Attempt<'_>,
) -> Attempted {
    let (id, queue, now_ms) = (attempt.gang, attempt.queue, attempt.now_ms);
    let (mut first, mut classes, mut full) = (None, Vec::new(), None);
    for tree in wanted::trees(state, settings, progress, id, queue, now_ms) {
        *attempt.work += 20 * tree.groups.len() as u64;
        match try_tree(state, progress, attempt, &tree) {
            Ok(placed) => return Ok(placed),
            Err((refused, wake)) => {
                match wake {
                    Wake::Over(Shortfall::Room { class, .. }) => classes.push(class),
                    Wake::AnyRoom(more, queues) => {
                        classes.extend(more);
                        if let Some(queues) = queues {
                            full = bounds::highest(state, queue, full, queues);
                        }
                    }
                    Wake::Queue(over) | Wake::Over(Shortfall::Bound { queue: over, .. }) => {
                        full = bounds::highest(state, queue, full, over);
                    }
                }
                first.get_or_insert(refused);
            }
        }
    }
    classes.sort_unstable();
    classes.dedup();
    let wake = match full {
        Some(full) if classes.is_empty() => Wake::Queue(full),
        full => Wake::AnyRoom(classes, full),
    };
    Err((first.unwrap_or_else(Refused::without_choice), wake))
}

/// Places what a tree needs, with members that the queue has room for.
fn try_tree(
    state: &mut ClusterState,
    progress: &ById<GangId, Progress>,
    attempt: &mut Attempt<'_>,
    tree: &Tree,
) -> Attempted {
    let (id, queue) = (attempt.gang, attempt.queue);
    let (choices, _) = tree.choices();
    let mut full = state.queues.highest_model_limit(queue);
    let (mut over, mut refused) = (None, None);
    // All choices at once, if the queue has room for the first of them.
    let whole = choices.first().map(|first| (first, tree.clone()));
    let single = choices.len() == 1;
    let each = choices.iter().filter(|_| !single);
    let each = each.map(|choice| (choice, tree.chosen(choice)));
    for (position, (choice, tree)) in whole.into_iter().chain(each).enumerate() {
        let pods: Vec<PodId> = pods_of(choice).collect();
        *attempt.work += 20 * pods.len() as u64;
        let demand = demand::demand_of_pods(state, pods.iter());
        if let Err(excess) = bounds::within_bounds(state, id, queue, &demand) {
            over.get_or_insert(excess.into());
            full = bounds::highest(state, queue, full, excess.queue);
            continue;
        }
        let mut request = tree.flat(merged(choice), pods.len());
        let mut txn = Txn::default();
        let start = txn.checkpoint();
        match place_tree(state, &mut txn, &tree, attempt.memo, attempt.work) {
            Ok(())
                if bounds::keeps_to_queue(
                    state,
                    (id, queue),
                    &request,
                    &demand,
                    start,
                    &mut txn,
                ) =>
            {
                return Ok(txn.commit());
            }
            // Others than those that were checked have found a place.
            Ok(()) => {}
            Err(refusal) => {
                let refusal = tree.told_by_sub_groups(refusal);
                let (why, wake) = refusal::refused(state, progress, attempt, &mut request, refusal);
                if position == 0 {
                    let wake = match wake {
                        // All choices were tried, whose classes may be others.
                        // tests plant bugs here: wake-of-other-choices
                        Wake::AnyRoom(_, full) => Wake::AnyRoom(tree.classes(), full),
                        wake => wake,
                    };
                    return Err((why, wake));
                }
                refused.get_or_insert(why);
            }
        }
    }
    Err(match (refused, over, full) {
        (None, Some(over), Some(full)) => (over, Wake::Queue(full)),
        (refused, over, full) => {
            let refused = refused.or(over);
            let refused = refused.unwrap_or_else(Refused::without_choice);
            (refused, Wake::AnyRoom(tree.classes(), full))
        }
    })
}
