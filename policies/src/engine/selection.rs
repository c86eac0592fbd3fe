//! Which members a gang takes when its queue has no room for the first of them.
//!
//! A gang with more members than it needs may begin with any of them. Their order decides, unless
//! the queue's limits refuse that choice: then the others are tried, as counts by class, those of
//! few GPUs first.

use super::Engine;
use super::counts::Counts;
use crate::ids::{GangId, NodeId, PodId};
use crate::place::{Memo, place, selections};
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::state::gang::{Verdict, Wake};
use crate::txn::Txn;
use alloc::vec::Vec;

impl Engine {
    /// Places `need` of the pods, whichever both the queue and the nodes have room for.
    ///
    /// # Errors
    /// What the nodes say where the queue agrees to a choice, else what the queue says.
    pub(crate) fn try_selections(
        &mut self,
        id: GangId,
        queue: QueueId,
        (pods, need): (Vec<PodId>, usize),
        counts: &Counts,
        memo: &mut Memo,
        work: &mut u64,
    ) -> Result<Vec<(PodId, NodeId)>, (Verdict, Wake)> {
        let mut groups = self.by_class(pods);
        groups.sort_by_key(|group| self.state.classes[group.class].gpus);
        let sizes: Vec<usize> = groups.iter().map(|group| group.pods.len()).collect();
        let mut full = self.state.queues.highest_model_limit(queue);
        let (mut over, mut refused) = (None, None);
        for taken in selections(&sizes, need).0 {
            let chosen = groups.iter().zip(taken);
            let chosen = chosen.flat_map(|(group, taken)| group.pods.iter().take(taken).copied());
            let chosen: Vec<PodId> = chosen.collect();
            *work += 20 * chosen.len() as u64;
            let demand = self.demand_of_pods(chosen.iter());
            if let Err((verdict, excess)) = self.check_queue(id, queue, &demand) {
                over.get_or_insert(verdict);
                full = self.highest(queue, full, excess.queue);
                continue;
            }
            let mut request = self.request(id, queue, chosen, need);
            let mut txn = Txn::default();
            match place(&mut self.state, &mut txn, &mut request, memo, work) {
                Ok(()) => return Ok(txn.commit()),
                Err(refusal) => refused.get_or_insert_with(|| {
                    self.explain_refusal(id, &mut request, counts, &refusal).0
                }),
            };
        }
        let classes = groups.into_iter().map(|group| group.class).collect();
        Err(match (refused, over, full) {
            (None, Some(verdict), Some(full)) => (verdict, Wake::Queue(full)),
            (refused, over, full) => {
                let unknown = || Verdict::new(Reason::NotFoundWithinBound, "no choice of members");
                let verdict = refused.or(over).unwrap_or_else(unknown);
                (verdict, Wake::AnyRoom(classes, full))
            }
        })
    }

    /// Which of two queues on the way up is nearer to the root: what is released below one is
    /// released in it, too.
    pub(crate) fn highest(
        &self,
        leaf: QueueId,
        known: Option<QueueId>,
        other: QueueId,
    ) -> Option<QueueId> {
        let path = self.state.queues.path(leaf);
        let mut both = path.filter(|queue| Some(*queue) == known || *queue == other);
        let first = both.next();
        both.last().or(first)
    }
}
