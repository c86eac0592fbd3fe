//! A gang is never left half-bound: the scheduler is crashed around every single command.
//!
//! A run has one gang, a leader and, in some cases, a second process. The leader's commands are
//! numbered; around one of these commands something happens to the request, to the process and to
//! the world (see [`Case`]). [`cases`] lists every combination; nothing is drawn at random. At
//! every moment of each run these rules are checked:
//!
//! - while a process leads, the gang is whole or has no bound member at all, except for two seconds
//!   after the lease was taken, after a lost answer was given up, or after a stray request came
//!   through;
//! - a restarted process takes its own lease at once, any other successor within 20 s;
//! - no pod is sent to a second node while the first bind may still succeed;
//! - no node is filled above its capacity, and every engine's audit is clean;
//! - no pod is evicted for another cause than [`EvictionCause::Unwind`], and none at all where
//!   there is room to complete the gang; but where the gang takes room from others, as many of them
//!   are evicted as it needs, and only when all its members are nominated;
//! - when the world is whole again, so is the gang.
//!
//! [`EvictionCause::Unwind`]: gpu_batch_policies::command::EvictionCause::Unwind

mod case;
mod process;
mod stage;

pub use case::{Case, Fault, Story, Successor};

use stage::Stage;

/// What had become of the gang before the world was made whole again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// At some moment no process led and only a part of the gang was bound.
    pub left_in_part: bool,
    /// Members were evicted because the gang could not be completed.
    pub unwound: bool,
    /// All members of the gang were bound.
    pub whole: bool,
}

/// Runs one case.
///
/// # Errors
/// A sentence about the first rule that does not hold.
pub fn run(case: Case) -> Result<Ending, String> {
    Stage::new(case, None)
        .play()
        .map_err(|violation| format!("{case:?}: {violation}"))
}

/// The commands that the first leader sends if there is no fault, one line each.
///
/// # Panics
/// If a rule does not hold even without a fault.
#[must_use]
pub fn commands(case: Case) -> Vec<String> {
    let mut commands = Vec::new();
    let played = Stage::new(case, Some(&mut commands)).play();
    assert!(played.is_ok(), "{case:?} without a fault: {played:?}");
    commands
}

/// Every case of gangs of so many members.
#[must_use]
pub fn cases(members: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for in_flight in [1, 128] {
        for story in Story::ALL {
            let quiet = Case {
                members,
                in_flight,
                story,
                fault: Fault::RequestLost,
                successor: Successor::Survivor,
                command: usize::MAX,
            };
            let commands = commands(quiet).len();
            for successor in Successor::ALL {
                for fault in Fault::ALL {
                    let these = (0..commands).map(|command| Case {
                        fault,
                        successor,
                        command,
                        ..quiet
                    });
                    cases.extend(these.filter(|case| case.makes_sense()));
                }
            }
        }
    }
    cases
}
