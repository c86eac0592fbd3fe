//! What happens in a run.

/// One run of the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The members of the gang, all of which start together.
    pub members: usize,
    /// How many binds and evictions may be under way.
    pub in_flight: u32,
    /// What happens to the world.
    pub story: Story,
    /// What happens to the request.
    pub fault: Fault,
    /// What happens to the process, and who leads then.
    pub successor: Successor,
    /// The number of the command at which it happens, counted from 0.
    pub command: usize,
}

impl Case {
    /// Whether the case says anything. A process that outlives the loss of its request still counts
    /// on the room that it has taken, so nothing can be said where another takes that room.
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
    /// The nodes on which no member is are gone.
    NodesGone,
    /// Gangs of another queue, whose turn it would be, ask for all room that is left.
    Contended,
    /// A webhook refuses to bind the last member, from the beginning.
    Refused,
}

impl Story {
    /// Every story.
    pub const ALL: [Self; 5] = [
        Self::RoomKept,
        Self::RoomTaken,
        Self::NodesGone,
        Self::Contended,
        Self::Refused,
    ];
}

/// What happens to the request. Those that were sent before it are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It never arrives. Those after it were never sent.
    RequestLost,
    /// It is carried out and the answer never arrives. Those after it were never sent.
    ResponseLost,
    /// The network delivers it a second time, when somebody may have decided something else.
    Repeated,
    /// The network delivers it late, when somebody may have decided something else.
    Late,
    /// It is answered, and the process ends with the step that reads the answer.
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

/// What happens to the process, and who leads then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Successor {
    /// It goes on.
    Survivor,
    /// It ends and its container is started again, under the same name.
    Restarted,
    /// It ends; another process stands by, and has watched all along.
    Standby,
    /// It ends; another process is started under another name.
    Stranger,
    /// It is stopped, another that stood by takes over, and then it goes on where it was.
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
