//! Three candidates against a model of the lease, with requests and answers that are late or lost,
//! pauses, restarts and clocks of different speed.

use super::super::{Election, LeaseAnswer, LeaseCall, LeaseSeen};
use super::settings;
use alloc::collections::BTreeMap;
use alloc::{boxed::Box, format, vec::Vec};
use proptest::prelude::*;

const CANDIDATES: usize = 3;
/// After this time the shell reports an outcome as unknown.
const TIMEOUT_MS: u64 = 5_000;
/// From this time on nothing goes wrong any more.
const HEALED_MS: u64 = 120_000;
/// From this time on there must be a leader: requests under way, a lease on the slowest clock and
/// some further requests have passed since [`HEALED_MS`].
const SETTLED_MS: u64 = HEALED_MS + 45_000;
/// How long two processes may lead after the lease was deleted.
const RENEW_DEADLINE_MS: u64 = 10_000;

/// What becomes of one request.
#[derive(Debug, Clone, Copy)]
struct Fate {
    /// `None`: the request is lost before it is carried out.
    request_ms: Option<u64>,
    /// `None`: the request is carried out, and the answer is lost.
    answer_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The process neither sends nor hears anything for this time.
    Pause(usize, u64),
    /// The process ends, and another with its identity starts.
    Restart(usize),
    /// The process gives the lease back, and starts anew when that is done.
    Release(usize),
    /// The lease is deleted by hand.
    Delete,
}

#[derive(Debug)]
enum Happening {
    Arrives {
        candidate: usize,
        number: u64,
        call: LeaseCall,
        answer_ms: Option<u64>,
    },
    Answered {
        candidate: usize,
        number: u64,
        answer: LeaseAnswer,
    },
    Fault(Fault),
}

struct Candidate {
    election: Election,
    /// The speed of the process's clock, in hundredths of the world's.
    speed: u64,
    under_way: Option<u64>,
    paused_until_ms: u64,
    led: bool,
}

impl Candidate {
    fn new(index: usize, speed: u64) -> Self {
        let election = Election::new(settings(["a", "b", "c"][index]));
        Self {
            election,
            speed,
            under_way: None,
            paused_until_ms: 0,
            led: false,
        }
    }

    /// The time on the clock of the process. No clock starts where another does.
    fn clock_ms(&self, now_ms: u64) -> u64 {
        now_ms * self.speed / 100 + self.speed * 1_000
    }

    /// When the clock of the process will show this time.
    fn world_ms(&self, clock_ms: u64) -> u64 {
        (clock_ms.saturating_sub(self.speed * 1_000))
            .saturating_mul(100)
            .div_ceil(self.speed)
    }
}

struct World {
    now_ms: u64,
    sequence: u64,
    agenda: BTreeMap<(u64, u64), Happening>,
    candidates: Vec<Candidate>,
    fates: Vec<Fate>,
    version: u64,
    lease: Option<LeaseSeen>,
    deleted_ms: Option<u64>,
    acquisitions: u32,
}

impl World {
    fn new(speeds: [u64; CANDIDATES], fates: Vec<Fate>, faults: &[(u64, Fault)]) -> Self {
        let candidates = speeds.into_iter().enumerate();
        let mut world = Self {
            now_ms: 0,
            sequence: 0,
            agenda: BTreeMap::new(),
            candidates: candidates
                .map(|(index, speed)| Candidate::new(index, speed))
                .collect(),
            fates,
            version: 0,
            lease: None,
            deleted_ms: None,
            acquisitions: 0,
        };
        for (at_ms, fault) in faults {
            world.plan(*at_ms, Happening::Fault(*fault));
        }
        world
    }

    fn plan(&mut self, at_ms: u64, happening: Happening) {
        self.sequence += 1;
        self.agenda.insert((at_ms, self.sequence), happening);
    }

    /// Runs until the end and calls `check` after each happening.
    fn run(&mut self, check: impl Fn(&Self)) {
        while let Some(next_ms) = self.next_ms().filter(|next_ms| *next_ms <= SETTLED_MS) {
            self.now_ms = next_ms;
            if let Some(first) = self.agenda.first_entry()
                && first.key().0 <= next_ms
            {
                let happening = first.remove();
                self.happen(happening);
            }
            for candidate in 0..CANDIDATES {
                self.let_act(candidate);
            }
            check(self);
        }
        self.now_ms = SETTLED_MS;
        check(self);
    }

    /// When something happens next: on the agenda, or because a candidate wants to be polled.
    fn next_ms(&self) -> Option<u64> {
        let polls = self.candidates.iter().map(|candidate| {
            let due_ms = candidate.world_ms(candidate.election.deadline());
            due_ms.max(candidate.paused_until_ms).max(self.now_ms)
        });
        let agenda = self.agenda.keys().next().map(|(at_ms, _)| *at_ms);
        agenda.into_iter().chain(polls).min()
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrives {
                candidate,
                number,
                call,
                answer_ms,
            } => {
                let answer = self.carry_out(call);
                if let Some(delay_ms) = answer_ms {
                    let answered = Happening::Answered {
                        candidate,
                        number,
                        answer,
                    };
                    self.plan(self.now_ms + delay_ms, answered);
                }
            }
            Happening::Answered {
                candidate,
                number,
                answer,
            } => {
                let process = &mut self.candidates[candidate];
                if process.under_way != Some(number) {
                    return;
                }
                if self.now_ms < process.paused_until_ms {
                    let later_ms = process.paused_until_ms;
                    self.plan(
                        later_ms,
                        Happening::Answered {
                            candidate,
                            number,
                            answer,
                        },
                    );
                    return;
                }
                process.under_way = None;
                let clock_ms = process.clock_ms(self.now_ms);
                process.election.answered(clock_ms, answer);
            }
            Happening::Fault(Fault::Pause(candidate, pause_ms)) => {
                self.candidates[candidate].paused_until_ms = self.now_ms + pause_ms;
            }
            Happening::Fault(Fault::Restart(candidate)) => self.restart(candidate),
            Happening::Fault(Fault::Release(candidate)) => {
                self.candidates[candidate].election.release();
            }
            Happening::Fault(Fault::Delete) => {
                self.lease = None;
                self.deleted_ms = Some(self.now_ms);
            }
        }
    }

    fn restart(&mut self, candidate: usize) {
        let speed = self.candidates[candidate].speed;
        self.candidates[candidate] = Candidate::new(candidate, speed);
    }

    /// The API server.
    fn carry_out(&mut self, call: LeaseCall) -> LeaseAnswer {
        if let LeaseCall::Write {
            resource_version,
            holder,
            transitions,
            duration_ms,
            ..
        } = call
        {
            let current = self
                .lease
                .as_ref()
                .and_then(|lease| lease.resource_version.clone());
            if current != resource_version {
                return LeaseAnswer::Conflict;
            }
            self.version += 1;
            let resource_version: Option<Box<str>> = Some(format!("{}", self.version).into());
            self.lease = Some(LeaseSeen {
                resource_version,
                holder,
                transitions,
                duration_ms,
            });
        }
        let nobody = || LeaseSeen {
            resource_version: None,
            holder: "".into(),
            transitions: 0,
            duration_ms: 0,
        };
        LeaseAnswer::Seen(self.lease.clone().unwrap_or_else(nobody))
    }

    /// Lets a candidate send what it wants, and looks whether it has begun to lead.
    fn let_act(&mut self, index: usize) {
        let now_ms = self.now_ms;
        if self.candidates[index].election.is_released() {
            self.restart(index);
        }
        let candidate = &mut self.candidates[index];
        let clock_ms = candidate.clock_ms(now_ms);
        let leads = candidate.election.is_leader(clock_ms);
        self.acquisitions += u32::from(leads && !candidate.led);
        candidate.led = leads;
        if now_ms < candidate.paused_until_ms {
            return;
        }
        if let Some(call) = candidate.election.poll(clock_ms) {
            self.send(index, call);
        }
    }

    fn send(&mut self, candidate: usize, call: LeaseCall) {
        self.sequence += 1;
        let number = self.sequence;
        let before = self.candidates[candidate].under_way.replace(number);
        assert_eq!(before, None, "two requests under way");
        let healthy = Fate {
            request_ms: Some(5),
            answer_ms: Some(5),
        };
        let fate = match self.fates.pop() {
            Some(fate) if self.now_ms < HEALED_MS => fate,
            _ => healthy,
        };
        if let Some(delay_ms) = fate.request_ms {
            let answer_ms = fate.answer_ms;
            let arrives = Happening::Arrives {
                candidate,
                number,
                call,
                answer_ms,
            };
            self.plan(self.now_ms + delay_ms, arrives);
        }
        let unknown = Happening::Answered {
            candidate,
            number,
            answer: LeaseAnswer::Failed,
        };
        self.plan(self.now_ms + TIMEOUT_MS, unknown);
    }

    fn leaders(&self) -> usize {
        let leads = |one: &&Candidate| one.election.is_leader(one.clock_ms(self.now_ms));
        self.candidates.iter().filter(leads).count()
    }
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let delay = || prop_oneof![6 => 0..50u64, 2 => 0..3_000u64, 1 => 0..20_000u64];
    let fate = (
        prop::option::weighted(0.8, delay()),
        prop::option::weighted(0.8, delay()),
    );
    let fate = fate.prop_map(|(request_ms, answer_ms)| Fate {
        request_ms,
        answer_ms,
    });
    prop::collection::vec(fate, 0..150)
}

fn faults(deletions: bool) -> impl Strategy<Value = Vec<(u64, Fault)>> {
    let who = || 0..CANDIDATES;
    let fault = prop_oneof![
        3 => (who(), 0..30_000u64).prop_map(|(one, pause_ms)| Fault::Pause(one, pause_ms)),
        1 => who().prop_map(Fault::Restart),
        1 => who().prop_map(Fault::Release),
        2 => Just(if deletions { Fault::Delete } else { Fault::Restart(0) }),
    ];
    prop::collection::vec((0..HEALED_MS - 30_000, fault), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn two_never_lead_at_once(fates in fates(), faults in faults(false)) {
        let mut world = World::new([100; CANDIDATES], fates, &faults);
        world.run(|world| assert!(world.leaders() <= 1, "at {}", world.now_ms));
        assert_eq!(world.leaders(), 1, "nobody leads in the end");
        assert!(world.acquisitions > 0);
    }

    /// 15 s of the fastest clock are still longer than 10 s of the slowest.
    #[test]
    fn two_never_lead_at_once_on_clocks_that_differ_by_two_fifths(
        speeds: [bool; CANDIDATES],
        fates in fates(),
        faults in faults(false),
    ) {
        let mut world = World::new(speeds.map(|fast| if fast { 115 } else { 82 }), fates, &faults);
        world.run(|world| assert!(world.leaders() <= 1, "at {}", world.now_ms));
        assert_eq!(world.leaders(), 1, "nobody leads in the end");
    }

    #[test]
    fn two_lead_at_most_for_the_renew_deadline_after_somebody_deletes_the_lease(
        fates in fates(),
        faults in faults(true),
    ) {
        let mut world = World::new([100; CANDIDATES], fates, &faults);
        world.run(|world| {
            let since = |deleted_ms| world.now_ms - deleted_ms < RENEW_DEADLINE_MS;
            let excused = world.deleted_ms.is_some_and(since);
            assert!(world.leaders() <= 1 || excused, "at {}", world.now_ms);
        });
        assert_eq!(world.leaders(), 1, "nobody leads in the end");
    }
}
