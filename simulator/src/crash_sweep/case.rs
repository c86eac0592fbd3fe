//! What happens in a run.

/// One run of the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The members of the gang, all of which start together.
    pub members: usize,
    /// How many binds and evictions may be under way at a time.
    pub in_flight: u32,
    /// What happens to the world at the moment of the fault.
    pub story: Story,
    /// What happens to the command's request.
    pub fault: Fault,
    /// What happens to the process, and which process leads then.
    pub successor: Successor,
    /// The number of the command at which the fault happens, counted from 0.
    pub command: usize,
}

impl Case {
    /// Whether the case can be judged. A process that goes on after it has lost a request still
    /// counts on the room for the pod. If other pods take that room, nothing can be said about the
    /// gang.
    pub(super) fn makes_sense(self) -> bool {
        let survives = self.successor == Successor::Survivor;
        let answered = self.fault == Fault::None;
        !(survives && (answered || self.story == Story::RoomTaken))
    }
}

/// What happens to the world at the moment of the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// Nothing.
    RoomKept,
    /// Pods of another scheduler take all room that is left.
    RoomTaken,
    /// The nodes without a member are gone.
    NodesGone,
    /// Gangs of another queue, which comes first in the order, ask for all room that is left.
    Contended,
    /// A webhook refuses to bind the last member. It does so from the beginning of the run.
    Refused,
    /// Nothing. From the beginning of the run pods of lower priority have all nodes, which are one
    /// more than the gang needs, so that the gang takes the room of as many of them as it has
    /// members.
    Taken,
}

impl Story {
    /// Every story.
    pub const ALL: [Self; 6] = [
        Self::RoomKept,
        Self::RoomTaken,
        Self::NodesGone,
        Self::Contended,
        Self::Refused,
        Self::Taken,
    ];
}

/// What happens to the command's request. Requests that were sent before it are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request never arrives. Later requests were never sent.
    RequestLost,
    /// The request is carried out and its answer never arrives. Later requests were never sent.
    ResponseLost,
    /// The network delivers the request a second time, when the scheduler may have decided
    /// otherwise.
    Repeated,
    /// The network delivers the request late, when the scheduler may have decided otherwise.
    Late,
    /// The request is answered, and the process ends with the step that reads the answer.
    None,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 5] = [
        Self::RequestLost,
        Self::ResponseLost,
        Self::Repeated,
        Self::Late,
        Self::None,
    ];
}

/// What happens to the process, and which process leads then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Successor {
    /// The process goes on and leads.
    Survivor,
    /// The process ends, and its container is started again with the identity that it had.
    Restarted,
    /// The process ends; another process stands by, and has watched all along.
    Standby,
    /// The process ends; another process is started with another identity.
    Stranger,
    /// The process is stopped, another process that stood by takes over, and then the first one
    /// goes on where it was.
    Both,
}

impl Successor {
    /// Every successor.
    pub const ALL: [Self; 5] = [
        Self::Survivor,
        Self::Restarted,
        Self::Standby,
        Self::Stranger,
        Self::Both,
    ];
}
