//! The bugs: each is a mistake that a scheduler has made somewhere, in one changed line or two.
//!
//! A bug finds its place by a marker, a comment on a line of its own in the sources of `policies`
//! or `simulator`:
//!
//! ```text
//! // tests plant bugs here: renew-deadline
//! ```
//!
//! The name says what the code is for; bugs for one place share a marker. The code is the
//! statement, match arm, field or last expression whose first line stands below the marker. As
//! rustfmt lays it out, it ends before the first line that is indented less, or as much and begins
//! with none of `)`, `]`, `}`, `{`, `.`, `|` and `else`. Planted code takes the place of the whole,
//! or, if it ends with `{`, of the lines through the first that ends so.
//!
//! So code takes its bugs along wherever it is moved with its marker. What planted code names must
//! be there: a bug that does not compile fails the tests, as one does that no seed catches.

use gpu_batch_simulator::run::{
    AILING_SEEDS_FROM, ALIGNED_SEEDS_FROM, CLAIMING_SEEDS_FROM, EXTENDED_SEEDS_FROM,
    PATIENT_SEEDS_FROM, RELATED_SEEDS_FROM, RESERVING_SEEDS_FROM, SHARING_SEEDS_FROM,
};

/// A bug to be planted.
pub(crate) struct Bug {
    /// The mistake, as a reviewer would put it.
    pub(crate) name: &'static str,
    /// The name of the marker above the code that is replaced.
    pub(crate) marker: &'static str,
    /// The code with the bug; nothing if the bug is that the code is missing.
    pub(crate) planted: &'static str,
    pub(crate) catcher: Catcher,
    /// The seed, or the world, that is tried before all others: it has caught the bug. If it does
    /// not any more, all are tried, which takes minutes; the output then names another.
    pub(crate) first: u64,
}

impl Bug {
    const fn first_tried(self, first: u64) -> Self {
        Self { first, ..self }
    }
}

/// The tests that must catch a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Catcher {
    /// The seeds of every test run.
    Seeds,
    /// The seeds of every test run in which pods have rules about other pods.
    Rules,
    /// The seeds of every test run in which HAMi shares cards.
    Cards,
    /// The seeds of every test run in which kubelets align pods to NUMA nodes.
    Alignment,
    /// The seeds of every test run in which pods have volumes.
    Volumes,
    /// The seeds of every test run in which starts are promised and nothing fails.
    Promises,
    /// Eviction plans against brute force: `policies/tests/victims`.
    BruteForce,
    /// Promised starts against counting: `policies/tests/promises`.
    Counting,
    /// Promised starts where gangs take room from each other: `policies/tests/promises`.
    Rest,
}

const fn bug(name: &'static str, marker: &'static str, planted: &'static str) -> Bug {
    Bug {
        name,
        marker,
        planted,
        catcher: Catcher::Seeds,
        first: 0,
    }
}

/// A bug in eviction plans, which brute force catches at once.
const fn bug_of_plans(name: &'static str, marker: &'static str, planted: &'static str) -> Bug {
    Bug {
        catcher: Catcher::BruteForce,
        ..bug(name, marker, planted)
    }
}

/// A bug in rules or preferences about other pods.
const fn bug_of_rules(name: &'static str, marker: &'static str, planted: &'static str) -> Bug {
    Bug {
        catcher: Catcher::Rules,
        first: RELATED_SEEDS_FROM,
        ..bug(name, marker, planted)
    }
}

/// A bug in cards that are shared.
const fn bug_of_cards(name: &'static str, marker: &'static str, planted: &'static str) -> Bug {
    Bug {
        catcher: Catcher::Cards,
        first: SHARING_SEEDS_FROM,
        ..bug(name, marker, planted)
    }
}

/// A bug in what kubelets align.
const fn bug_of_alignment(name: &'static str, marker: &'static str, planted: &'static str) -> Bug {
    Bug {
        catcher: Catcher::Alignment,
        first: ALIGNED_SEEDS_FROM,
        ..bug(name, marker, planted)
    }
}

/// A bug in where the volumes of pods can be.
const fn bug_of_volumes(name: &'static str, marker: &'static str, planted: &'static str) -> Bug {
    Bug {
        catcher: Catcher::Volumes,
        first: CLAIMING_SEEDS_FROM,
        ..bug(name, marker, planted)
    }
}

/// A bug in promised starts.
const fn bug_of_promises(name: &'static str, marker: &'static str, planted: &'static str) -> Bug {
    Bug {
        catcher: Catcher::Promises,
        first: RESERVING_SEEDS_FROM,
        ..bug(name, marker, planted)
    }
}

/// A bug in what is ruled out beside promised starts, or not tried.
const fn bug_of_backfilling(
    name: &'static str,
    marker: &'static str,
    planted: &'static str,
) -> Bug {
    Bug {
        catcher: Catcher::Counting,
        ..bug(name, marker, planted)
    }
}

/// A bug that keeps gangs with promises from coming to rest.
const fn bug_of_rest(name: &'static str, marker: &'static str, planted: &'static str) -> Bug {
    Bug {
        catcher: Catcher::Rest,
        ..bug(name, marker, planted)
    }
}

/// All of them: requests first, then what is seen, then what is decided.
pub(crate) const BUGS: &[Bug] = &[
    bug(
        "a timeout counts as failure: the room is given to others while the bind may still happen",
        "unknown-outcome",
        "Outcome::Unknown { .. } => self.take_back(state, uid),
        Outcome::Conflict { message } => self.ask_about(state, uid, message),",
    ),
    bug(
        "a 409 counts as failure: the pod is placed once more",
        "unknown-outcome",
        "Outcome::Conflict { .. } => self.take_back(state, uid),
        Outcome::Unknown { message } => self.ask_about(state, uid, message),",
    )
    .first_tried(98),
    bug(
        "a binding names no UID: it takes the pod's successor",
        "uid-of-a-bind",
        "let conflict = if pod.facts.uid != bind.pod.uid && bind.node.is_empty() {",
    )
    .first_tried(210),
    bug(
        "who has lost the lease forgets the bindings that may still succeed",
        "stand-down",
        "if !self.leading {",
    )
    .first_tried(119),
    bug(
        "an observation that failed is not repeated",
        "ask-again",
        "",
    ),
    bug(
        "a bind that flow control turned away is not sent again",
        "throttled-bind",
        "",
    ),
    bug(
        "a pod that another bound elsewhere stays where we wanted it",
        "bound-elsewhere",
        "let elsewhere = node;",
    )
    .first_tried(4716),
    bug(
        "no deadline: who cannot renew the lease leads on",
        "renew-deadline",
        "let renewed =
            |sent_ms| now_ms.saturating_sub(sent_ms) < 100 * self.settings.renew_deadline_ms;",
    ),
    bug(
        "the lease of another is taken before it has run out",
        "lease-of-another",
        "0",
    ),
    bug(
        "a list drops nothing: implied deletes are missed",
        "implied-delete",
        "if false {",
    ),
    bug(
        "a list throws away what was assumed",
        "assumed-pod",
        "(None, PodPhase::Pending | PodPhase::Running) => Stage::Waiting,",
    ),
    bug(
        "pods that ended keep their room",
        "room-of-an-ended-pod",
        "if let Some(node) = before.node().filter(|_| after.node().is_some()) {",
    ),
    bug(
        "room that comes free wakes nobody",
        "room-comes-free",
        "self.node_changed(node, false);",
    ),
    bug(
        "a node that comes back with less keeps its old room",
        "node-shrinks",
        "slot.allocatable = slot.allocatable.max(now);",
    ),
    bug(
        "a pod that is being deleted leaves its room at once",
        "pod-being-deleted",
        "(Some(_), _) if facts.deletion_ms.is_some() => Stage::Ended { succeeded: false },
        (Some(name), PodPhase::Pending | PodPhase::Running) => Stage::Bound(self.node_id(name)),",
    ),
    bug(
        "a share is off by one: a limit lets one more in",
        "limit",
        "let more = allowed + self.ledger.grains.whole(key);
        let exceeds = asked > 0 && allocated.saturating_add(asked) > more;",
    ),
    bug(
        "members that were bound before are not counted: a gang starts with too few",
        "members-still-needed",
        "self.needed = minimum.saturating_sub(with_place + 1);",
    ),
    bug(
        "a returning member may go to another domain",
        "returning-member",
        "anchor: None,",
    ),
    bug(
        "while the nodes of its members are gone a gang goes anywhere",
        "domain-unknown",
        "return None;",
    )
    .first_tried(403),
    bug(
        "pods with gates are bound",
        "scheduling-gates",
        "ready: groups <= 1 && self.problems.is_empty(),",
    ),
    bug(
        "what is left of a gang is never evicted",
        "evict-the-rest",
        "",
    ),
    bug(
        "a gang that cannot be completed is not unwound",
        "unwind",
        "",
    )
    .first_tried(138),
    bug(
        "a status that a late write has overwritten stays so",
        "overwritten-status",
        "Timer::Rewrite(_) => {}",
    ),
    bug(
        "who starts forgets what queues have used",
        "past-after-a-start",
        "if self.past.kept.is_some() || self.past.used.contains_key(&queue) {",
    ),
    bug(
        "who starts counts a minute twice",
        "steps-to-catch-up",
        "let steps = now.saturating_sub(since) + 1;",
    ),
    bug(
        "another half-life takes a restart",
        "half-life",
        "if settings.use_half_life_ms.is_none() {",
    )
    .first_tried(129),
    bug(
        "a sub-group counts as complete with one member",
        "minimum-of-a-sub-group",
        "group.minimum = entry.min_member.unwrap_or(1).min(1);",
    ),
    bug(
        "the required domain of a sub-group is only a wish",
        "domain-of-a-sub-group",
        "let near = near(state, group.topology.as_ref()?)?;
        let (required, preferred) = (None, near.required.or(near.preferred));
        Some(Near { required, preferred, ..near })",
    )
    .first_tried(71),
    bug(
        "a gang with sub-groups wakes for room for its first choice of members alone",
        "wake-of-other-choices",
        "Wake::AnyRoom(first, full) => Wake::AnyRoom(first, full),",
    )
    .first_tried(1917),
    bug(
        "a start takes a minimum that was raised for the loss of members",
        "loss-before-a-start",
        "lost = lost_ms.is_some() || counts.needed > 0;",
    )
    .first_tried(138),
    bug(
        "victims are evicted before those are nominated for whom they leave",
        "nominations-first",
        "while let Some(taking) = self.takings.by_gang.get_mut(&gang)
            && taking.paused_until_ms <= now_ms
            && let Some(next) = taking.to_evict.front()
        {",
    ),
    bug(
        "a disruption budget is looked at once, when the plan is made",
        "budget-before-an-eviction",
        "match false {",
    )
    .first_tried(4375),
    bug(
        "a list makes the engine forget for whom it holds room",
        "listed-objects",
        "for holder in self.holds.iter().map(|hold| hold.holder).collect::<Vec<_>>() {
            self.end_hold(holder);
        }
        for object in objects {",
    )
    .first_tried(267),
    bug(
        "what a gang holds stays as it was when a member begins to leave",
        "holder-changes",
        "",
    )
    .first_tried(3),
    bug(
        "queues are to give for a plan what victims of it held that have gone",
        "givers-follow",
        "let gangs = BTreeSet::<GangId>::new();",
    )
    .first_tried(703),
    bug(
        "room is waited for however long a pod does not leave",
        "stuck-pod",
        "",
    )
    .first_tried(PATIENT_SEEDS_FROM + 96),
    bug(
        "what kube-scheduler asks to bind is bound without another look",
        "asked-bind",
        "let answers = Vec::from([NodeAnswer::Fits]);",
    )
    .first_tried(EXTENDED_SEEDS_FROM),
    bug(
        "who starts does not know planned pods whose gates were lifted",
        "planned-pod",
        "planned: facts.has_gang_gate() || was_planned,",
    )
    .first_tried(EXTENDED_SEEDS_FROM + 43),
    bug(
        "planned pods are bound before their gates are lifted",
        "offered-first",
        "step: Step::Queued,",
    )
    .first_tried(EXTENDED_SEEDS_FROM),
    bug_of_rules(
        "a pod that leaves still counts for the terms that select it",
        "pods-of-a-term",
        "for tally in tallies.into_iter().filter(|_| takes) {",
    ),
    bug_of_rules(
        "the anti-affinity of pods that run is ignored",
        "anti-affinity-of-others",
        "",
    ),
    bug_of_rules(
        "each pod that selects itself counts as the first of its kind",
        "first-of-its-kind",
        "class.likes_itself",
    ),
    bug_of_rules("minDomains is ignored", "min-domains", "fewest"),
    bug_of_rules(
        "a domain that takes pods again is not judged anew",
        "domain-opens",
        "if core::mem::replace(was_open, is_open) && !is_open {",
    ),
    bug_of_rules(
        "a gang with rules is not tried again when pods leave that its rules name",
        "related-gang-wakes",
        "if core::mem::replace(stamp, now) != now && false {",
    ),
    bug_of_rules(
        "a pod is drawn to the pods that it would rather keep off",
        "weight-of-a-preferred-term",
        "class.preferred.push((selected, term.weight.abs()));",
    )
    .first_tried(RELATED_SEEDS_FROM + 1),
    bug_of_rules(
        "pods draw those that they would rather keep off",
        "weight-by-which-pods-draw",
        "let preferred =
            preferred.map(|term| (&*term.topology_key, &term.selection, term.weight.abs()));",
    )
    .first_tried(RELATED_SEEDS_FROM + 1),
    bug_of_promises(
        "a backfilled gang may end a second after a promised start on its nodes",
        "end-of-a-backfilled-gang",
        "let meets = |other: &&Start| other.at_ms + 1_000 < end_ms;",
    ),
    bug_of_promises(
        "a reservation is made where sums over nodes say that a gang fits",
        "nodes-of-a-reservation",
        "let places = lay_out(state, basis, &starts, None, work);
        let places = places.unwrap_or_else(|| alloc::vec![Places::new(); starts.len()]);
        {",
    )
    .first_tried(RESERVING_SEEDS_FROM + 1),
    bug_of_promises(
        "a promise that may be pulled forward moves back",
        "promise-pulled-forward",
        "start.at_ms = start.at_ms + 1_000 + 0 * at_ms;",
    ),
    bug_of_promises(
        "a gang that overruns its time is expected to end when it was",
        "end-after-an-overrun",
        "",
    )
    .first_tried(RESERVING_SEEDS_FROM + 1),
    bug_of_backfilling(
        "sums rule out a start that leaves promised gangs just enough",
        "start-that-sums-rule-out",
        "needed >= room && needed <= room + own",
    ),
    bug_of_backfilling(
        "sums rule out an earlier start at the end of a gang, unless it fits at once",
        "promise-that-sums-hold-back",
        "own_needs > course.now",
    )
    .first_tried(8),
    bug_of_backfilling(
        "room that comes early is of use to no promise",
        "room-that-is-of-use",
        "left().next().is_none() && requests.next().is_none()",
    ),
    bug_of_backfilling(
        "of those alike behind promises one that ends before the first of them is not tried",
        "one-of-those-alike-that-ends-earlier",
        "Reason::Reserved => !ends_earlier(*other) && !is_told_truly(*other),",
    )
    .first_tried(60),
    bug_of_rest(
        "a gang whose room is free holds it instead of waiting behind promises",
        "room-that-is-there-already",
        "false",
    )
    .first_tried(698),
    bug_of_rest(
        "a gang with members that replace lost ones is counted beyond its end",
        "end-of-replaced-members",
        "let run_end_ms: Option<UnixMs> = None;",
    )
    .first_tried(1_029),
    bug_of_plans(
        "each victim is judged as if it were the only one: together they take what is protected",
        "largest-victim",
        "*most = most.saturating_add(*amount);",
    )
    .first_tried(2841),
    bug_of_plans(
        "two queues take GPUs of one model from each other: who claims is judged by all models alone",
        "entry-of-a-claim",
        "key == plain && queues.stands_over(*queue, key, 0, kind)",
    ),
    bug_of_plans(
        "what a victim gives back counts twice",
        "room-of-a-victim",
        "add_on(&mut frees, node, &class.requests);
            add_on(&mut frees, node, &class.requests);",
    )
    .first_tried(466),
    bug_of_plans(
        "gangs are evicted only to bring the claimant's queue under its fair share",
        "unneeded-victim",
        "false",
    )
    .first_tried(6320),
    bug_of_plans(
        "who preempts takes more than the fair share of its queue",
        "fair-share-of-a-preemptor",
        "if false {",
    )
    .first_tried(302),
    bug_of_plans(
        "surplus is protected with its gang",
        "surplus-of-a-protected-gang",
        "let is_protected = self.holding.is_protected;",
    )
    .first_tried(386),
    bug(
        "a bind that waits to be sent goes to its node although GPUs have failed there meanwhile",
        "failed-while-a-bind-waits",
        "let has_failed = false;",
    )
    .first_tried(AILING_SEEDS_FROM + 82),
    bug_of_cards(
        "a card has room while a slot is free",
        "room-on-a-card",
        "rooms[0].1",
    ),
    bug_of_cards(
        "a part of a card is freed twice",
        "part-of-a-card",
        "self.memory_mib = self.memory_mib.saturating_sub(part.memory_mib.into());
        self.memory_mib = self.memory_mib.saturating_sub(part.memory_mib.into());",
    ),
    bug_of_cards(
        "an instance of MIG gets a place that another has",
        "place-of-an-instance",
        "let free = places;",
    )
    .first_tried(SHARING_SEEDS_FROM + 6),
    bug_of_cards(
        "the place of an instance of MIG is never freed",
        "freed-instance",
        "",
    )
    .first_tried(SHARING_SEEDS_FROM + 4),
    bug_of_cards(
        "what an init container has of a card is added to what the others have later",
        "cards-of-an-init-container",
        "ContainerRole::Init if !stays => held[*room].raise_by(with),",
    ),
    bug_of_cards(
        "queues add what init containers ask for to what the others ask for later",
        "most-at-a-time",
        "most = u64::saturating_add(most, amount);",
    ),
    bug_of_cards(
        "a part of a card counts as a whole card in queues",
        "part-in-queues",
        "Some(_) if gpus > 0 => in_thousandths(gpus),",
    ),
    bug_of_cards(
        "an instance of MIG counts by its memory in queues, and not by its slices",
        "instance-in-queues",
        "let memory_mib = self.profiles.iter().map(|it| it.memory_mib).max()?;
        let slices = chosen.profile.memory_mib * u64::from(self.slices) / memory_mib;",
    ),
    bug_of_cards(
        "memory in MiB counts as a whole card in queues, also where the card is known",
        "counted-on-a-node",
        "counted.map_or(class.counted, |_| class.counted)",
    ),
    bug_of_cards(
        "fair shares are divided by the slots of cards, and not by the cards",
        "cards-behind-slots",
        "true if known.gpu.slots > 0 => (resource, in_thousandths(allocatable)),",
    ),
    bug_of_cards(
        "fair shares are cut to whole cards although pods ask for parts",
        "broken-demand",
        "if true {",
    ),
    bug_of_cards(
        "fair shares are cut to whole cards although quotas are parts",
        "promised-part",
        "let is_broken = false;",
    ),
    bug_of_cards(
        "a pod that is not bound leaves the lock on its node",
        "lock-of-a-pod-that-is-not-bound",
        "return true;",
    ),
    bug_of_cards(
        "a pod is bound under the lock of another",
        "turn-with-a-lock",
        "if true {",
    ),
    bug_of_cards(
        "a lock is replaced at once",
        "lock-that-may-be-replaced",
        "if true {",
    ),
    bug_of_alignment(
        "single-numa-node counts as restricted: a container may have GPUs of two NUMA nodes",
        "cells-of-a-container",
        "let is_possible = true;",
    ),
    bug_of_alignment(
        "what is free in NUMA nodes is not looked at",
        "room-in-cells",
        "",
    ),
    bug_of_volumes(
        "one volume more is attached to a node than its CSINode says",
        "attachable-volumes",
        "let limit = limit.saturating_sub(unused) + 1;",
    ),
    bug_of_volumes(
        "the node affinity of a volume is not looked at",
        "places-of-volumes",
        "",
    ),
    bug_of_volumes(
        "a shared volume is never detached",
        "use-of-a-shared-volume",
        "if adds {
            users.shift(which, adds);
        }",
    ),
    bug_of_plans(
        "a min-runtime counts from the creation of pods",
        "min-runtime",
        "let created_ms = minimum.core.iter().map(|pod| state.pods[*pod].created_ms);
        let since_ms = created_ms.max().unwrap_or(now_ms);",
    ),
    bug(
        "a search for a place begins behind a node that has room again",
        "node-that-opens",
        "*key = lane.key(node).map_or(*key, |open| open.max(*key));",
    ),
];
