//! What the engine says of a gang, as a view: names and quantities in words.

use super::{
    AheadView, ComparedByView, ExcessView, ExplanationView, HolderView, KeptRoomView, LeftOutView,
    LevelView, NodesView, PodView, QuotaView, RefusedView, ShortageView, SiblingView, StandingView,
    TogetherView,
};
use crate::kube::format::{seconds, share};
use gpu_batch_policies::explain::{
    ComparedBy, DecidingQuota, DominantShare, Explanation, KeptRoom, NodeCounts, Occupant,
    QueueStanding, Shortage, Standing, Together,
};
use gpu_batch_policies::facts::{quantity as quantity_of, queue_quantity};
use gpu_batch_policies::reason::Reason;

impl From<Explanation> for ExplanationView {
    fn from(explanation: Explanation) -> Self {
        Self {
            gang: explanation.gang,
            pod: explanation.pod.map(|pod| PodView {
                name: format!("{}/{}", pod.namespace, pod.name),
                waits: pod.reason.is_some(),
                binding: pod.binding,
                node: pod.node.map(String::from),
            }),
            queue: explanation.queue.into(),
            phase: explanation.phase.as_str().to_owned(),
            members: explanation.members.into(),
            needed: explanation.needed,
            protected: explanation.protected,
            reason: explanation.reason.map(|reason| reason.as_str().to_owned()),
            message: explanation.message,
            proof: explanation.proof.map(|proof| proof.as_str().to_owned()),
            together: explanation.together.map(Into::into),
            shortages: explanation.shortages.into_iter().map(Into::into).collect(),
            excess: explanation.excess.map(|excess| {
                let in_words = |amount| queue_quantity(&excess.resource, amount);
                ExcessView {
                    bound: excess.bound.to_owned(),
                    allowed: in_words(excess.allowed),
                    held: in_words(excess.allocated),
                    asked: in_words(excess.asked),
                    queue: excess.queue.into(),
                    resource: excess.resource.into(),
                }
            }),
            standing: explanation.standing.map(Into::into),
            start: explanation.expected_start.map(Into::into),
            eviction: explanation.eviction.map(Into::into),
            takers: explanation.takers.map(Into::into),
            remedies: explanation.remedies,
            notes: explanation.notes,
        }
    }
}

impl From<Together> for TogetherView {
    fn from(together: Together) -> Self {
        let left = together.left.iter().cloned();
        let left = left.map(|left| LeftOutView {
            sub_group: left.sub_group,
            need: left.need,
            members: left.members,
            asks: left.asks,
            gpus: left.gpus,
            level: left.level.map(String::from),
            domain: left.domain,
        });
        Self {
            left: left.collect(),
            members_short: together.members_short(),
            level: together.level.into(),
            domain: together.domain,
            need: together.need,
            placed: together.placed,
            proved: together.proved,
            gpus_short: together.gpus_short,
        }
    }
}

impl From<Shortage> for ShortageView {
    fn from(shortage: Shortage) -> Self {
        let requests = shortage.requests.iter();
        let requests = requests.map(|(name, n)| (name.to_string(), quantity_of(name, *n)));
        Self {
            requests: requests.collect(),
            members_short: shortage.members_short(),
            sub_groups: shortage.sub_groups,
            required_by: shortage.required_by,
            domains: shortage.domains,
            domains_with_room: shortage.domains_with_room,
            asks: shortage.asks,
            selects: shortage.selects,
            unknown_resources: shortage.unknown_resources,
            unknown_labels: shortage.unknown_labels,
            unlabelled_level: shortage.unlabelled_level,
            model_limits: shortage.model_limits,
            level: shortage.level.into(),
            domain: shortage.domain,
            need: shortage.need,
            fits: shortage.fits,
            gpus_short: shortage.gpus_short,
            fits_empty: shortage.fits_empty,
            fits_anywhere: shortage.fits_anywhere,
            nearest: shortage.nearest.into(),
            all: shortage.all.into(),
            holders: shortage.occupants.into_iter().map(Into::into).collect(),
            kept: shortage.kept.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<NodeCounts> for NodesView {
    fn from(counts: NodeCounts) -> Self {
        let refused = counts.refused.into_iter().map(|refused| RefusedView {
            because: refused.because,
            nodes: refused.nodes,
            would_hold: refused.would_hold,
        });
        Self {
            nodes: counts.nodes,
            with_room: counts.with_room,
            refused: refused.collect(),
        }
    }
}

impl From<Occupant> for HolderView {
    fn from(holder: Occupant) -> Self {
        Self {
            gang: holder.gang,
            holds: holder.holds,
            nodes: holder.nodes,
            makes_room_for: holder.makes_room_for,
            ends: holder.ends_ms.map(seconds),
        }
    }
}

impl From<KeptRoom> for KeptRoomView {
    fn from(kept: KeptRoom) -> Self {
        Self {
            r#for: kept.beneficiary,
            amount: kept.amount,
            nodes: kept.nodes,
            until: kept.until_ms.map(seconds),
        }
    }
}

impl From<Standing> for StandingView {
    fn from(standing: Standing) -> Self {
        let rank = standing.rank;
        let before = standing.before.into_iter().map(|ahead| AheadView {
            gang: ahead.gang,
            because: ahead.because.to_owned(),
            reason: Reason::as_str(ahead.reason).to_owned(),
        });
        Self {
            position: standing.position,
            length: standing.length,
            unfinished: rank.unfinished,
            replacement: rank.replacement,
            priority: rank.priority,
            surplus: rank.surplus,
            created: seconds(rank.created_ms),
            before: before.collect(),
            levels: standing.levels.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<QueueStanding> for LevelView {
    fn from(standing: QueueStanding) -> Self {
        let level = standing.level;
        let before = level.before.zip(standing.sent_before);
        let before = before.map(|(before, (gang, reason))| SiblingView {
            queue: before.queue.into(),
            compared_by: before.compared_by.into(),
            decided_by: before.decided_by.as_str().to_owned(),
            gang,
            reason: reason.as_str().to_owned(),
        });
        Self {
            queue: level.queue.into(),
            parent: level.parent.map(String::from),
            position: level.position,
            siblings: level.siblings,
            compared_by: level.compared_by.into(),
            before,
        }
    }
}

impl From<DecidingQuota> for QuotaView {
    fn from(deciding: DecidingQuota) -> Self {
        let in_words = |amount| queue_quantity(&deciding.resource, amount);
        Self {
            held: in_words(deciding.allocated),
            asked: (deciding.allocated < deciding.quota).then(|| in_words(deciding.asked)),
            quota: in_words(deciding.quota),
            counts_as: in_words(deciding.counts_as),
            resource: deciding.resource.into(),
        }
    }
}

impl From<ComparedBy> for ComparedByView {
    fn from(compared: ComparedBy) -> Self {
        let dominant = compared.dominant.as_ref();
        let in_words = |amount: fn(&DominantShare) -> u64| {
            dominant.map(|dominant| queue_quantity(&dominant.resource, amount(dominant)))
        };
        let counted = dominant.and_then(|dominant| dominant.counted_weight_millionths);
        Self {
            has_quota: compared.has_quota,
            quota_used: compared.quota_used,
            quota_used_after: compared.quota_used_after,
            quota: compared.quota.map(QuotaView::from),
            priority: compared.priority,
            weightless: compared.weightless,
            share: compared.share,
            share_after: compared.share_after,
            dominant_share: share(dominant.map_or(0, |dominant| dominant.millionths)),
            resource: dominant.map(|dominant| dominant.resource.to_string()),
            used: in_words(|dominant| dominant.used),
            of: in_words(|dominant| dominant.capacity),
            weight: dominant.map(|dominant| dominant.weight),
            counted_weight: counted.map(share),
        }
    }
}
