//! What can go wrong, by name: each kind is drawn per seed, and counted when it strikes.

use crate::random::Random;
use std::fmt;

/// How a kind strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// At each opportunity, in so many of a thousand cases at most.
    Chance(u32),
    /// So many times at most while there are faults.
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
    /// The network carries a request twice; the client hears of either answer.
    RequestRepeated: Mode::Chance(60),
    /// A request is overtaken by later ones within 300 ms.
    RequestsReordered: Mode::Chance(150),
    /// It is done, and the answer never arrives.
    ResponseLost: Mode::Chance(60),
    /// The answer takes up to 8 s.
    ResponseLate: Mode::Chance(80),
    /// The API server answers 5xx and has done nothing.
    ErrorBeforeEffect: Mode::Chance(60),
    /// The API server answers 5xx and has done it.
    ErrorAfterEffect: Mode::Chance(60),
    /// Flow control turns one request away.
    Throttled: Mode::Chance(60),
    /// An admission webhook of somebody else refuses a binding or an eviction.
    WebhookRefuses: Mode::Chance(50),
    /// For up to 4 s flow control turns everything away except the lease.
    FlowControlStorm: Mode::Times(2),
    /// For up to 6 s every request takes seconds.
    ApiServerSlow: Mode::Times(2),
    /// A change is delivered up to 5 s late, and what follows of its kind with it.
    NewsLate: Mode::Chance(150),
    /// A change is delivered twice.
    NewsRepeated: Mode::Chance(100),
    /// One kind is not delivered for up to 20 s, while the others are.
    KindHeldBack: Mode::Times(3),
    /// A watch ends and goes on later where it was.
    WatchCut: Mode::Times(4),
    /// A watch ends and its history is compacted away: 410, and a list.
    HistoryCompacted: Mode::Times(2),
    /// A list comes from an API server whose cache lags.
    ListStale: Mode::Chance(300),
    /// A list is answered with an error and asked again.
    ListFails: Mode::Chance(200),
    /// The process gets no time for up to 3 s: what happens meanwhile arrives as one batch.
    BatchesLate: Mode::Times(2),
    /// A node is deleted; its pods go with garbage collection.
    NodeVanishes: Mode::Times(2),
    /// A node is deleted and comes back as another machine, maybe with less.
    NodeReplaced: Mode::Times(2),
    /// A node takes no new pods for a while.
    NodeCordoned: Mode::Times(2),
    /// A node is tainted for a while.
    NodeTainted: Mode::Times(1),
    /// GPUs of a node are sick for a while, under running pods.
    GpusFallOut: Mode::Times(2),
    /// A kubelet fails a pod although there is room (UnexpectedAdmissionError).
    KubeletRefuses: Mode::Chance(60),
    /// A kubelet starts a pod up to 10 s late.
    KubeletSlow: Mode::Chance(150),
    /// A pod takes up to its whole grace to end.
    TerminationSlow: Mode::Chance(300),
    /// A user deletes a pod, whatever is under way for it.
    PodDeleted: Mode::Times(4),
    /// A running pod fails.
    PodFails: Mode::Times(2),
    /// An owner makes the replacement of a pod up to 10 s late.
    OwnerSlow: Mode::Chance(150),
    /// Another scheduler binds a pod of ours.
    RivalBinds: Mode::Times(2),
    /// Another scheduler binds a pod of its own without asking whether there is room.
    ForeignPodBound: Mode::Times(3),
    /// A disruption budget forbids to evict members of a gang for a while.
    BudgetRefuses: Mode::Times(2),
    /// A scheduler is killed; requests that were sent still happen; it comes back.
    ContenderCrashes: Mode::Times(2),
    /// A scheduler that comes back is another replica.
    NewIdentity: Mode::Chance(400),
    /// A scheduler is stopped for up to 30 s (SIGSTOP) and goes on as if nothing had been.
    ContenderPaused: Mode::Times(2),
    /// During a pause the monotonic clock stood still, too (a suspended machine).
    ClockStalls: Mode::Chance(300),
    /// The wall clock jumps by up to ten years before a scheduler starts.
    ClockJumps: Mode::Chance(500),
    /// A second replica stands by.
    SecondContender: Mode::Times(1),
    /// A user deletes the lease.
    LeaseDeleted: Mode::Times(1),
    /// A scheduler is told to stop, and another follows (a rolling upgrade).
    ShutDown: Mode::Times(1),
}

/// How many kinds there are.
pub const KINDS: usize = FaultKind::ALL.len();

/// The faults of one run: how often each kind strikes, and how often it has.
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

    /// These kinds, each so often: of a thousand opportunities, or in all.
    #[must_use]
    pub fn of(kinds: &[(FaultKind, u32)]) -> Self {
        let mut faults = Self::none();
        for (kind, intensity) in kinds {
            faults.intensity[*kind as usize] = *intensity;
        }
        faults
    }

    /// A random subset of the kinds, each with an intensity of its own.
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

    /// No more from now on; what has struck stays counted.
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

    /// The kinds that strike at times of their own, each as often as it is to.
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
    /// The kinds that are on.
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
