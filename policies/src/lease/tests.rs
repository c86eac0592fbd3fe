mod model;

use super::{Election, LeaseAnswer, LeaseCall, LeaseSeen, LeaseSettings};
use alloc::boxed::Box;
use alloc::format;

/// The defaults, for a candidate of this name.
fn settings(identity: &str) -> LeaseSettings {
    LeaseSettings {
        identity: identity.into(),
        duration_ms: 15_000,
        renew_deadline_ms: 10_000,
        retry_ms: 2_000,
    }
}

/// An answer with the lease in this version and with this holder, after three transitions.
fn held(version: u32, holder: &str) -> LeaseAnswer {
    LeaseAnswer::Seen(LeaseSeen {
        resource_version: Some(format!("{version}").into()),
        holder: holder.into(),
        transitions: 3,
        duration_ms: 15_000,
    })
}

fn absent() -> LeaseAnswer {
    LeaseAnswer::Seen(LeaseSeen {
        resource_version: None,
        holder: "".into(),
        transitions: 0,
        duration_ms: 0,
    })
}

/// What a poll must yield.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Nothing,
    Read,
    /// A write: the version that it replaces, the holder, the transitions, a new acquireTime.
    Write(Option<&'static str>, &'static str, u32, bool),
}

impl Sent {
    fn request(self) -> Option<LeaseCall> {
        match self {
            Self::Nothing => None,
            Self::Read => Some(LeaseCall::Read),
            Self::Write(version, holder, transitions, acquire) => Some(LeaseCall::Write {
                resource_version: version.map(Box::from),
                holder: holder.into(),
                transitions,
                acquire,
                duration_ms: 15_000,
            }),
        }
    }
}

/// One thing that happens to the candidate `me`, and when.
#[derive(Debug, Clone)]
enum At {
    /// The candidate is polled and must send this.
    Poll(u64, Sent),
    /// The request under way is answered.
    Answer(u64, LeaseAnswer),
    /// The candidate must lead, or not.
    Leads(u64, bool),
    /// The candidate must want to be polled at this time.
    Deadline(u64),
    /// The candidate is told to give the lease back.
    Release,
    /// The candidate must be done with giving the lease back, or not.
    Released(bool),
}
use At::{Answer, Deadline, Leads, Poll, Release, Released};
use Sent::{Nothing, Read, Write};

const RENEWAL: fn(&'static str) -> Sent = |version| Write(Some(version), "me", 3, false);

fn check(story: &[At]) {
    let mut me = Election::new(settings("me"));
    play(&mut me, story);
}

fn play(me: &mut Election, story: &[At]) {
    for (line, at) in story.iter().enumerate() {
        match at.clone() {
            Poll(now, sent) => assert_eq!(me.poll(now), sent.request(), "line {line}: {at:?}"),
            Answer(now, answer) => me.answered(now, answer),
            Leads(now, leads) => {
                assert_eq!(me.is_leader(now), leads, "line {line}: {at:?}");
            }
            Deadline(due) => assert_eq!(me.deadline(), due, "line {line}"),
            Release => me.release(),
            Released(released) => assert_eq!(me.is_released(), released, "line {line}"),
        }
    }
}

/// A candidate of our identity that took the lease back in version 5 at 1,000 ms.
fn leader() -> Election {
    let mut me = Election::new(settings("me"));
    play(
        &mut me,
        &[
            Poll(1_000, Read),
            Answer(1_000, held(4, "me")),
            Poll(1_000, RENEWAL("4")),
            Answer(1_000, held(5, "me")),
            Leads(1_000, true),
        ],
    );
    me
}

#[test]
fn a_lease_that_does_not_exist_is_created_at_once() {
    check(&[
        Deadline(0),
        Poll(100, Read),
        Deadline(u64::MAX),
        Poll(5_000, Nothing),
        Answer(5_000, absent()),
        Poll(5_000, Write(None, "me", 0, true)),
        Leads(5_500, false),
        Answer(5_600, held(1, "me")),
        Leads(5_600, true),
    ]);
}

#[test]
fn a_lease_of_nobody_is_taken_at_once() {
    check(&[
        Poll(0, Read),
        Answer(10, held(7, "")),
        Poll(10, Write(Some("7"), "me", 4, true)),
    ]);
}

#[test]
fn a_restarted_container_takes_its_lease_back_at_once() {
    check(&[
        Poll(0, Read),
        Answer(10, held(7, "me")),
        Leads(10, false),
        Poll(10, RENEWAL("7")),
        Answer(20, held(8, "me")),
        Leads(20, true),
    ]);
}

#[test]
fn a_lease_of_another_is_taken_when_it_has_not_changed_for_its_duration() {
    check(&[
        Poll(0, Read),
        Answer(500, held(7, "other")),
        Deadline(2_000),
        Poll(1_999, Nothing),
        Poll(2_000, Read),
        Answer(2_100, held(7, "other")),
        Poll(14_900, Read),
        Answer(15_000, held(7, "other")),
        Deadline(15_500),
        Poll(15_499, Nothing),
        Poll(15_500, Write(Some("7"), "me", 4, true)),
    ]);
}

#[test]
fn a_lease_that_changes_is_left_alone() {
    check(&[
        Poll(0, Read),
        Answer(500, held(7, "other")),
        Poll(15_400, Read),
        Answer(15_499, held(8, "other")),
        Deadline(17_400),
        Poll(17_399, Nothing),
        Poll(30_498, Read),
        Answer(30_498, held(8, "other")),
        Poll(30_499, Write(Some("8"), "me", 4, true)),
    ]);
}

#[test]
fn the_holder_says_how_long_its_lease_holds() {
    let check = |stated_ms: u64, taken_ms: u64| {
        let mut me = Election::new(settings("me"));
        me.poll(0);
        let LeaseAnswer::Seen(mut seen) = held(7, "other") else {
            unreachable!()
        };
        seen.duration_ms = stated_ms;
        me.answered(0, LeaseAnswer::Seen(seen.clone()));
        let mut now = 0;
        while me.poll(now) == Some(LeaseCall::Read) || me.deadline() < u64::MAX {
            me.answered(now, LeaseAnswer::Seen(seen.clone()));
            now = me.deadline();
        }
        assert_eq!(now, taken_ms, "stated: {stated_ms}");
    };
    check(15_000, 15_000);
    check(40_000, 40_000);
    check(1_000, 1_000);
    // Where no duration is stated, our own setting counts.
    check(0, 15_000);
}

#[test]
fn a_leader_renews_every_retry_and_leads_from_the_sending_of_its_last_renewal() {
    play(
        &mut leader(),
        &[
            Deadline(3_000),
            Poll(2_999, Nothing),
            Poll(3_000, RENEWAL("5")),
            Answer(6_000, held(6, "me")),
            Poll(6_000, RENEWAL("6")),
            Leads(12_999, true),
            Leads(13_000, false),
        ],
    );
}

#[test]
fn a_renewal_of_unknown_outcome_is_read_before_it_is_repeated() {
    play(
        &mut leader(),
        &[
            Poll(3_000, RENEWAL("5")),
            Answer(3_001, LeaseAnswer::Failed),
            Leads(10_999, true),
            Deadline(5_000),
            Poll(5_000, Read),
            // The write had been carried out. To read that does not prolong our leadership; only a
            // write that succeeds does.
            Answer(5_010, held(6, "me")),
            Poll(5_010, RENEWAL("6")),
            Leads(11_000, false),
            Answer(10_500, held(7, "me")),
            Leads(15_009, true),
            Leads(15_010, false),
        ],
    );
}

#[test]
fn leadership_that_lapsed_begins_again() {
    play(
        &mut leader(),
        &[
            Poll(3_000, RENEWAL("5")),
            Answer(20_000, LeaseAnswer::Failed),
            Leads(20_000, false),
            Poll(20_000, Read),
            Answer(20_100, held(6, "me")),
            Poll(20_100, RENEWAL("6")),
            Answer(20_200, held(7, "me")),
            Leads(20_200, true),
        ],
    );
}

#[test]
fn an_answer_that_comes_after_the_deadline_makes_no_leader() {
    play(
        &mut leader(),
        &[
            Poll(3_000, RENEWAL("5")),
            Answer(13_000, held(6, "me")),
            Leads(13_000, false),
            Poll(13_000, RENEWAL("6")),
            Answer(13_100, held(7, "me")),
            Leads(13_100, true),
        ],
    );
}

#[test]
fn who_was_replaced_reads_at_once_and_stops_leading() {
    play(
        &mut leader(),
        &[
            Poll(3_000, RENEWAL("5")),
            Answer(3_010, LeaseAnswer::Conflict),
            Leads(3_010, true),
            Poll(3_010, Read),
            Answer(3_020, held(9, "other")),
            Leads(3_020, false),
            Deadline(5_010),
        ],
    );
}

#[test]
fn conflicts_without_end_are_paced() {
    let mut me = leader();
    let (mut now, mut writes) = (1_000, 0);
    while now < 11_000 {
        writes += u32::from(me.poll(now).is_some());
        me.answered(now, LeaseAnswer::Conflict);
        me.poll(now);
        me.answered(now, held(5, "me"));
        assert!(me.deadline() > now);
        now = me.deadline();
    }
    assert_eq!(writes, 4);
}

#[test]
fn a_leader_that_gives_up_stops_leading_and_clears_the_lease() {
    play(
        &mut leader(),
        &[
            Released(false),
            Release,
            Leads(1_100, false),
            Released(false),
            Poll(1_100, Write(Some("5"), "", 3, false)),
            Released(false),
            Answer(1_200, held(6, "")),
            Released(true),
            Deadline(u64::MAX),
            Poll(99_000, Nothing),
        ],
    );
}

#[test]
fn a_renewal_under_way_is_awaited_before_the_lease_is_given_up() {
    let story = |answer: LeaseAnswer, then: &[At]| {
        let mut me = leader();
        play(
            &mut me,
            &[
                Poll(3_000, RENEWAL("5")),
                Release,
                Poll(3_000, Nothing),
                Answer(3_100, answer),
                Leads(3_100, false),
            ],
        );
        play(&mut me, then);
    };
    story(
        held(6, "me"),
        &[Poll(3_100, Write(Some("6"), "", 3, false))],
    );
    story(
        LeaseAnswer::Failed,
        &[
            Poll(3_100, Read),
            Answer(3_200, held(6, "me")),
            Poll(3_200, Write(Some("6"), "", 3, false)),
            Answer(3_300, LeaseAnswer::Failed),
            Released(false),
            Deadline(5_200),
        ],
    );
    story(
        LeaseAnswer::Conflict,
        &[
            Poll(3_100, Read),
            Answer(3_200, held(8, "b")),
            Released(true),
        ],
    );
}

#[test]
fn who_does_not_hold_the_lease_has_nothing_to_give_up() {
    check(&[
        Poll(0, Read),
        Answer(10, held(7, "other")),
        Release,
        Released(true),
        Poll(20, Nothing),
    ]);
    // The lease may have been ours before a restart, so it is read first.
    check(&[
        Release,
        Poll(0, Read),
        Answer(10, held(7, "other")),
        Released(true),
    ]);
}

#[test]
fn a_failed_attempt_to_give_up_is_not_repeated_at_once_however_often_it_is_told_to() {
    check(&[
        Release,
        Poll(0, Read),
        Answer(10, LeaseAnswer::Failed),
        Release,
        Poll(20, Nothing),
        Poll(2_010, Read),
    ]);
}

#[test]
fn a_clock_that_jumps_or_stands_breaks_nothing() {
    play(
        &mut leader(),
        &[
            // The clock goes back, which counts as standing still.
            Leads(0, true),
            Poll(0, Nothing),
            Poll(u64::MAX, RENEWAL("5")),
            Answer(u64::MAX, held(6, "me")),
            Leads(u64::MAX, true),
            Poll(u64::MAX, RENEWAL("6")),
            Answer(u64::MAX, LeaseAnswer::Failed),
            Poll(u64::MAX, Read),
            Answer(u64::MAX, held(7, "other")),
            Leads(u64::MAX, false),
        ],
    );
}

#[test]
fn an_answer_without_a_request_is_ignored() {
    check(&[Answer(0, held(1, "me")), Leads(0, false), Poll(0, Read)]);
}
