//! Codecs of the facts about objects.

use super::{Codec, Decoder, Encoder, Unreadable, fields, variants};
use gpu_batch_policies::facts::{
    AlignedContainer, AlignmentPolicy, AlignmentScope, CardClosed, CardEntries, CardFacts,
    CardLink, CardLock, CardMemory, CardModes, CardNeed, CardOrder, CardPart, CardRule, CardTerms,
    CellResource, ConditionStatus, ContainerCards, ContainerRole, Disk, DisruptionBudgetFacts,
    GangHints, GroupSource, HostPort, JobFacts, LabelSelector, LearnedRuntimes, MatchOperator,
    MatchRequirement, MigInstance, MigPlacement, MigProfile, NamespaceFacts, NodeCondition,
    NodeFacts, NodeFeature, NodeImage, NodeSelectorTerm, NumaCell, NumaFacts, OwnerReference,
    OwnerRuntimes, PastUse, Placement, PlacementChoice, PodFacts, PodGroupFacts, PodKind,
    PodLabels, PodPhase, PodSelection, PodShape, PodTerm, Preferences, PreferredImages,
    PreferredNodes, PreferredPods, PriorityClassFacts, Problem, Protocol, QueueFacts,
    QueueResource, Readiness, Relations, ScheduledCondition, SelectorRequirement, SpreadRule,
    SubGroupFacts, Taint, TaintEffect, TargetWorkload, Toleration, TolerationOperator,
    TopologyConstraint, TopologyFacts, TopologyLevel, TypicalPod, Uid,
};

impl Codec for Uid {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        u128::decode(input).map(Self)
    }
}

impl Codec for CardNeed {
    fn encode(&self, out: &mut Encoder) {
        self.count().encode(out);
        self.thousandths().encode(out);
        self.memory().encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        let count = input.field::<u16>("count")?;
        let thousandths = input.field::<u16>("thousandths")?;
        let memory = input.field("memory")?;
        let problem = || format!("{thousandths} thousandths of {count} cards cannot be asked for");
        let need = Self::new(count.into(), thousandths.into(), memory);
        need.ok_or_else(|| Unreadable::new(problem()))
    }
}

fields! {
    Problem { field, message }
    NodeFacts {
        name, uid, labels, annotations, taints, unschedulable, readiness, conditions, allocatable,
        capacity, features, cards, card_links, card_lock, images, problems,
    }
    NodeImage { name, size_bytes }
    NodeCondition { kind, status, since_ms }
    Taint { key, value, effect }
    PodFacts {
        uid, namespace, name, ours, extended, planned_node, node, nominated, cards,
        card_entries, is_of_hami, phase, is_misaligned, deletion_ms, created_ms, bound_ms,
        started_ms, priority, never_preempts, gates, shape, claims, labels, pod_group, sub_group,
        queue, native_group, owner, deployment, hints, bound_queue, bound_pod_group, bound_minima,
        unscheduled, problems, unknown_keys,
    }
    PodLabels { implied, stated }
    OwnerReference { api_version, kind, name, uid }
    GangHints {
        min_member, expected_runtime_ms, preemptible, placement, topology_required,
        topology_preferred, preemption_delay_ms, last_checkpoint_ms,
    }
    ScheduledCondition { reason, message }
    PodShape {
        requests, largest_container, aligned, cards, card_terms, node_selector, node_affinity,
        tolerations, host_ports, disks, features, relations, preferences, volumes, unsupported,
    }
    Relations { namespace, affinity, anti_affinity, spread }
    Preferences { namespace, nodes, pods, spread, spread_is_default, images }
    PreferredImages { names, containers }
    PreferredNodes { weight, term }
    PreferredPods { weight, topology_key, selection }
    PodTerm { topology_key, selection, selects_own_labels }
    PodSelection { namespaces, namespace_selector, labels }
    SpreadRule {
        topology_key, max_skew, min_domains, labels, selects_own_labels, honors_affinity,
        honors_taints,
    }
    NodeSelectorTerm { match_expressions, match_fields }
    MatchRequirement { key, operator, values }
    Toleration { key, operator, value, effect }
    HostPort { port, protocol, host_ip }
    Disk { name, read_only }
    PodGroupFacts {
        source, namespace, name, uid, generation, created_ms, queue, minimum, sub_groups,
        min_sub_groups, priority_class, priority, preemptible, topology, required_label, placement,
        expected_runtime_ms, preemption_delay_ms, staleness_grace_ms, unsupported, problems,
        unknown_keys, status, is_told_by_other,
    }
    SubGroupFacts { name, parent, min_member, min_sub_groups, topology }
    TopologyConstraint { name, required, preferred }
    PlacementChoice { gpu, cpu }
    JobFacts {
        uid, namespace, name, indexed, parallelism, completions, succeeded, active_deadline_ms,
        ignores_evictions, unknown_keys,
    }
    DisruptionBudgetFacts { uid, namespace, name, selector, allowed, problems }
    QueueFacts {
        name, uid, generation, created_ms, parent, priority, resources, preempt_min_runtime_ms,
        reclaim_min_runtime_ms, placement, namespace_selector, closed, past_use, runtimes,
        is_told_by_other, unknown_keys, problems,
    }
    PastUse { at_ms, averages }
    LearnedRuntimes { seconds, owners }
    OwnerRuntimes { owner, seconds }
    QueueResource { name, product, quota, limit, weight }
    LabelSelector { match_labels, match_expressions }
    SelectorRequirement { key, operator, values }
    PriorityClassFacts { name, value, never_preempts }
    NamespaceFacts { name, uid, labels, problems }
    TopologyFacts { name, uid, levels, problems }
    TopologyLevel { name, node_label }
    NumaFacts { name, uid, policy, scope, cells, problems }
    NumaCell { number, resources }
    CellResource { name, capacity, allocatable, available }
    AlignedContainer { role, amounts }
    CardFacts { id, model, memory_mib, thousandths, slots, numa, profiles, closed }
    MigProfile { name, memory_mib, thousandths, placements }
    MigPlacement { start, size }
    MigInstance { placement, profile }
    CardLink { one, other, score }
    CardPart { card, slots, thousandths, memory_mib, instances }
    CardLock { value, holder, at_ms }
    CardEntries { before, between, after }
    CardTerms { containers, rules, modes, in_one_cell, idle, order }
    ContainerCards { role, need }
    TargetWorkload { typical, weight }
    TypicalPod { kind, weight }
    PodKind { cpu_milli, cards, models }
}

variants! {
    CardClosed { 0 Unhealthy, 1 Cordoned, 2 OtherMode }
    CardMemory { 0 Any, 1 Mib { 0: memory_mib }, 2 Percent { 0: percent } }
    CardRule {
        0 Models { 0: names }, 1 NotModels { 0: names }, 2 Ids { 0: names }, 3 NotIds { 0: names },
    }
    CardOrder { 0 Binpack, 1 Spread, 2 Numa, 3 Links }
    CardModes { 0 Shared, 1 Mig, 2 Any }
    AlignmentPolicy { 0 None, 1 BestEffort, 2 Restricted, 3 SingleCell }
    AlignmentScope { 0 Container, 1 Pod }
    ContainerRole { 0 Init, 1 Sidecar, 2 Main }
    ConditionStatus { 0 True, 1 False, 2 Unknown }
    NodeFeature { 0 RestartAllContainers, 1 UserNamespacesHostNetwork }
    TaintEffect { 0 NoSchedule, 1 PreferNoSchedule, 2 NoExecute }
    Readiness { 0 Ready, 1 Lost { since_ms: since_ms }, 2 Unsaid }
    PodPhase { 0 Pending, 1 Running, 2 Succeeded, 3 Failed }
    MatchOperator { 0 In, 1 NotIn, 2 Exists, 3 DoesNotExist, 4 Gt, 5 Lt }
    TolerationOperator { 0 Equal, 1 Exists }
    Protocol { 0 Tcp, 1 Udp, 2 Sctp }
    GroupSource { 0 GpuBatch, 1 Native }
    Placement {
        0 Binpack,
        1 Spread,
        2 BestFit,
        3 Fragmentation,
        4 DotProduct,
        5 GpuPacking,
        6 GpuClustering,
        7 Random { seed: seed },
        8 Consolidated,
    }
}
