//! What can go wrong. Which kinds of faults there are, and how often, is drawn from the seed; each
//! is counted when it strikes.

use crate::random::Random;
use std::fmt;

/// How a kind of fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// At each opportunity, with a chance that is drawn; at most so many in a thousand.
    Chance(u32),
    /// At times of its own while there are faults, as often as is drawn; at most so many times.
    Times(u32),
}

macro_rules! fault_kinds {
    ($($(#[$doc:meta])* $name:ident: $mode:expr,)*) => {
        /// One kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultKind {
            $($(#[$doc])* $name,)*
        }

        impl FaultKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            fn mode(self) -> Mode {
                match self {
                    $(Self::$name => $mode,)*
                }
            }
        }
    };
}

fault_kinds! {
    /// A request never arrives; the client waits for its deadline.
    RequestLost: Mode::Chance(60),
    /// A request never arrives, and the client is told at once that the connection is gone.
    ConnectionReset: Mode::Chance(60),
    /// A request takes up to 8 s; past its deadline it still takes effect.
    RequestLate: Mode::Chance(80),
    /// The network carries a request twice; the client hears one of the two answers.
    RequestRepeated: Mode::Chance(60),
    /// A request is overtaken by later ones within 300 ms.
    RequestsReordered: Mode::Chance(150),
    /// A request is carried out, and its answer never arrives.
    ResponseLost: Mode::Chance(60),
    /// An answer takes up to 8 s.
    ResponseLate: Mode::Chance(80),
    /// The API server answers 5xx and has not carried out the request.
    ErrorBeforeEffect: Mode::Chance(60),
    /// The API server answers 5xx and has carried out the request.
    ErrorAfterEffect: Mode::Chance(60),
    /// Flow control turns one request away.
    Throttled: Mode::Chance(60),
    /// An admission webhook refuses a binding or an eviction.
    WebhookRefuses: Mode::Chance(50),
    /// For up to 4 s flow control turns every request away except those for the lease.
    FlowControlStorm: Mode::Times(2),
    /// For up to 6 s every request, except those for the lease, takes 0.5 to 3.5 s longer.
    ApiServerSlow: Mode::Times(2),
    /// A change is delivered up to 5 s late, and with it all later changes of its kind.
    NewsLate: Mode::Chance(150),
    /// A change is delivered twice.
    NewsRepeated: Mode::Chance(100),
    /// Objects of one kind are not delivered for up to 20 s, while other kinds are.
    KindHeldBack: Mode::Times(3),
    /// About half of the watches end, and go on later where they were.
    WatchCut: Mode::Times(4),
    /// About half of the watches end and the history is compacted: 410, and a new list.
    HistoryCompacted: Mode::Times(2),
    /// A list comes from an API server whose cache lags.
    ListStale: Mode::Chance(300),
    /// A list is answered with an error, and asked for again.
    ListFails: Mode::Chance(200),
    /// A scheduler gets no time for up to 3 s: what happens meanwhile arrives as one batch.
    BatchesLate: Mode::Times(2),
    /// A node is deleted; its pods are removed by garbage collection.
    NodeVanishes: Mode::Times(2),
    /// A node is deleted and comes back as another machine, maybe with half of the GPUs.
    NodeReplaced: Mode::Times(2),
    /// A node takes no new pods for a while.
    NodeCordoned: Mode::Times(2),
    /// A node is tainted for a while.
    NodeTainted: Mode::Times(1),
    /// Half of the GPUs of a node are not allocatable for a while, whatever pods run there.
    GpusFallOut: Mode::Times(2),
    /// A kubelet fails a pod although there is room (UnexpectedAdmissionError).
    KubeletRefuses: Mode::Chance(60),
    /// A kubelet starts a pod up to 10 s late.
    KubeletSlow: Mode::Chance(150),
    /// A pod takes up to its whole grace to end.
    TerminationSlow: Mode::Chance(300),
    /// A user deletes a pod, whatever requests are under way for it.
    PodDeleted: Mode::Times(4),
    /// A running pod fails.
    PodFails: Mode::Times(2),
    /// An owner makes the replacement of a pod up to 10 s late.
    OwnerSlow: Mode::Chance(150),
    /// Another scheduler binds a pod of this scheduler.
    RivalBinds: Mode::Times(2),
    /// Another scheduler binds a pod of its own without asking whether there is room.
    ForeignPodBound: Mode::Times(3),
    /// A disruption budget forbids to evict members of a gang for a while.
    BudgetRefuses: Mode::Times(2),
    /// A scheduler is killed and comes back; requests that it has sent still arrive.
    ContenderCrashes: Mode::Times(2),
    /// A scheduler that comes back has another identity.
    NewIdentity: Mode::Chance(400),
    /// A scheduler is stopped for up to 30 s (SIGSTOP) and goes on where it was.
    ContenderPaused: Mode::Times(2),
    /// During a pause the monotonic clock stood still, too (a suspended machine).
    ClockStalls: Mode::Chance(300),
    /// The wall clock jumps by up to ten years before a scheduler starts.
    ClockJumps: Mode::Chance(500),
    /// A second scheduler starts, and stands by.
    SecondContender: Mode::Times(1),
    /// A user deletes the lease.
    LeaseDeleted: Mode::Times(1),
    /// A scheduler is told to stop, and another follows (a rolling upgrade).
    ShutDown: Mode::Times(1),
}

/// How many kinds of faults there are.
pub const KINDS: usize = FaultKind::ALL.len();

/// The faults of one run: how often each kind is to strike, and how often it has struck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    intensity: [u32; KINDS],
    struck: [u32; KINDS],
}

impl Faults {
    /// No faults at all.
    #[must_use]
    pub fn none() -> Self {
        Self {
            intensity: [0; KINDS],
            struck: [0; KINDS],
        }
    }

    /// Faults of these kinds, each with its number: how many of a thousand opportunities it takes,
    /// or how many times it strikes.
    #[must_use]
    pub fn of(kinds: &[(FaultKind, u32)]) -> Self {
        let mut faults = Self::none();
        for (kind, intensity) in kinds {
            faults.intensity[*kind as usize] = *intensity;
        }
        faults
    }

    /// Draws which kinds strike, and how often each.
    #[must_use]
    pub fn draw(random: &mut Random) -> Self {
        let mut faults = Self::none();
        let share = random.between(15, 60);
        for (kind, intensity) in FaultKind::ALL.iter().zip(&mut faults.intensity) {
            if random.percent(share) {
                let (Mode::Chance(most) | Mode::Times(most)) = kind.mode();
                *intensity = u32::try_from(random.between(1, most.into())).unwrap_or(1);
            }
        }
        faults
    }

    /// Lets no more faults strike at opportunities. What has struck stays counted.
    pub fn stop(&mut self) {
        self.intensity = [0; KINDS];
    }

    /// Whether a kind strikes at this opportunity; counts it.
    pub fn strikes(&mut self, kind: FaultKind, random: &mut Random) -> bool {
        let chance = self.intensity[kind as usize];
        let strikes = chance > 0 && random.below(1_000) < u64::from(chance);
        self.struck[kind as usize] += u32::from(strikes);
        strikes
    }

    /// The kinds that strike at times of their own, each as many times as it is to strike.
    pub fn timed(&self) -> impl Iterator<Item = FaultKind> {
        let timed = FaultKind::ALL.iter().copied();
        timed
            .filter(|kind| matches!(kind.mode(), Mode::Times(_)))
            .flat_map(|kind| (0..self.intensity[kind as usize]).map(move |_| kind))
    }

    /// Counts a kind that has struck at a time of its own.
    pub fn count(&mut self, kind: FaultKind) {
        self.struck[kind as usize] += 1;
    }

    /// How often a kind has struck.
    #[must_use]
    pub fn struck(&self, kind: FaultKind) -> u32 {
        self.struck[kind as usize]
    }
}

impl fmt::Display for Faults {
    /// The kinds that can strike, each with its number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (kind, intensity) in FaultKind::ALL.iter().zip(self.intensity) {
            if intensity > 0 {
                write!(formatter, "{separator}{kind:?} {intensity}")?;
                separator = ", ";
            }
        }
        Ok(())
    }
}
