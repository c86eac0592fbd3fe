//! Codecs of the engine's commands.

use super::{Codec, Decoder, Encoder, Unreadable, fields, variants};
use gpu_batch_policies::command::{
    Action, Announcement, Beneficiary, Bind, CardAssignment, ClaimKind, Command, CommandId, Evict,
    EvictionCause, KeepVolume, Lift, LockCards, ObjectReference, OwnCardLock, PodReference,
    SelectNode, StatusPatch, UnlockCards,
};
use gpu_batch_policies::lease::LeaseCall;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::{
    MemberCounts, Phase, PodGroupStatus, QueueFault, QueueStatus, Staleness,
};

impl Codec for CommandId {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        u64::decode(input).map(Self)
    }
}

fields! {
    Command { id, deadline_ms, action }
    PodReference { namespace, name, uid }
    Bind { pod, node, cards, assignment, queue, pod_group, minima }
    CardAssignment { entries, at_ms }
    OwnCardLock { namespace, name, at_ms }
    LockCards { node, lock, seen }
    UnlockCards { node, lock }
    Evict { pod, cause, beneficiary }
    Lift { pod, node }
    SelectNode { namespace, name, uid, node }
    KeepVolume { volume, version, claim }
    Beneficiary { gang, claim, is_optimal }
    Announcement { regarding, warning, reason, message, once }
    ObjectReference { api_version, kind, namespace, name, uid }
    PodGroupStatus {
        observed_generation, phase, members, reason, message, scheduled, scheduled_since_ms,
        staleness, protected, estimated_start_ms,
    }
    Staleness { stale, since_ms }
    MemberCounts { expected, created, bound, running, succeeded, failed }
    QueueStatus {
        observed_generation, fault, note, ready_since_ms, allocated, requested, fair_share,
        dominant_share_millionths, past_use, runtimes, pending, running,
    }
}

variants! {
    Action {
        0 Bind { 0: bind },
        1 Evict { 0: evict },
        2 Observe { 0: pod },
        3 PatchStatus { 0: status },
        4 Lease { 0: lease },
        5 Publish { 0: announcement },
        6 Lift { 0: lift },
        7 SelectNode { 0: select },
        8 KeepVolume { 0: keep },
        9 LockCards { 0: lock },
        10 UnlockCards { 0: unlock },
    }
    ClaimKind { 0 Quota, 1 FairShare }
    EvictionCause { 0 Stale, 1 Unwind, 2 Reclaim, 3 Preempt, 4 Consolidate, 5 CardFailed }
    StatusPatch {
        0 PodGroup {
            source: source, namespace: namespace, name: name, uid: uid, status: status
        },
        1 Queue { name: name, uid: uid, status: status },
        2 Unscheduled { pod: pod, reason: reason, message: message, since_ms: since_ms },
        3 Nominated { pod: pod, node: node },
    }
    LeaseCall {
        0 Read,
        1 Write {
            resource_version: resource_version, holder: holder, transitions: transitions,
            acquire: acquire, duration_ms: duration_ms
        },
    }
    Phase { 0 Pending, 1 Binding, 2 Running, 3 Succeeded, 4 Failed }
    QueueFault {
        0 ParentNotFound,
        1 Cycle,
        2 ParentNotReady,
        3 InvalidResources,
        4 InvalidSpec,
    }
    Reason {
        0 WaitingForMembers,
        1 PodGroupNotFound,
        2 SubGroupNotFound,
        3 ConflictingGroups,
        4 QueueNotFound,
        5 QueueNotLeaf,
        6 QueueClosed,
        7 NamespaceNotAllowed,
        8 OverLimit,
        9 NonPreemptibleOverQuota,
        10 TopologyNotFound,
        11 DoesNotFit,
        12 NotFoundWithinBound,
        13 WaitingForTurn,
        14 WaitingForEviction,
        15 Reserved,
        16 PreemptionDelay,
        17 InvalidSpec,
        18 Unsupported,
        19 SchedulingGated,
        20 MembersLost,
        21 BindingFailed,
        22 WaitingForKubeScheduler,
        23 WaitingForVolumes,
    }
}
