//! The world of one run: the API server, the processes that act on it, and the checks of every
//! moment.

mod objects;

use super::process::{Process, Pulse};
use super::{Case, Ending, Fault, Story, Successor};
use crate::api_server::{Answer, ApiServer, Expected, Name, Request};
use crate::client;
use gpu_batch_policies::command::{Action, Command, CommandId, Evict, EvictionCause};
use gpu_batch_policies::event::Outcome;
use gpu_batch_policies::facts::{PodFacts, UnixMs};
use gpu_batch_policies::settings::Settings;
use std::collections::BTreeMap;

/// The time at which every run begins.
const START_MS: UnixMs = 1_800_000_000_000;
/// When the gang is created. By then a process leads.
const CREATED_MS: UnixMs = START_MS + 1_000;
/// How long a request takes to arrive, and how long its answer takes.
const WAY_MS: u64 = 5;
/// How long a repeated or late request takes: it arrives after a restarted process has taken the
/// lease.
const STRAY_MS: u64 = 700;
/// How long a repeated or late request takes where the process survives: when it arrives, the
/// process has given the request up, has asked the API server, and is about to send the request
/// again.
const STRAY_AFTER_DEADLINE_MS: u64 = 4_013;
/// How long a container takes to start again, and an owner to make a pod anew.
const RESTART_MS: u64 = 300;
/// How long a pod takes to end.
const TERMINATION_MS: u64 = 200;
/// How long a stopped process stands still.
const STOPPED_MS: u64 = 22_000;
/// How long only a part of the gang may be bound while a process leads.
const PARTIAL_MAX_MS: u64 = 2_000;
/// How long it takes at most until a process leads: one that is started again under the identity of
/// the lease, and any other.
const OWN_LEASE_MAX_MS: u64 = 500;
const LEASE_MAX_MS: u64 = 20_000;
/// How long after the world was made whole the gang must be whole. A refused bind is tried ever
/// more rarely, at least once a minute.
const WHOLE_MAX_MS: u64 = 130_000;
/// A run that takes more steps than this is taken never to end.
const STEPS_MAX: u32 = 20_000;

/// Something that happens at a planned time.
#[derive(Debug)]
enum Happening {
    /// The gang is created.
    Begin,
    Start(&'static str),
    /// A request arrives at the API server; `answered`: its answer reaches the process.
    Arrives {
        process: usize,
        command: Box<Command>,
        answered: bool,
    },
    Answered(usize, CommandId, Outcome),
    /// The world changes as the case's story says.
    Turn,
    /// A stopped process goes on.
    Wake,
    /// The containers of a pod have ended.
    Terminated(Name),
    /// The owner of a pod makes it anew; its name.
    Recreate(Box<str>),
    /// The world is made whole again.
    Heal,
}

/// One run.
pub(super) struct Stage<'a> {
    case: Case,
    api: ApiServer,
    now_ms: UnixMs,
    queue: BTreeMap<(UnixMs, u32), Happening>,
    last_number: u32,
    processes: Vec<Process>,
    /// How many commands the first leader has sent before the fault.
    sent: usize,
    /// Takes the commands of the first leader, for a run without a fault.
    notes: Option<&'a mut Vec<String>>,
    /// The moment of the fault.
    struck_ms: Option<UnixMs>,
    /// The command after whose answer the process ends.
    last_words: Option<CommandId>,
    healed_ms: Option<UnixMs>,
    /// Since when only a part of the gang has been bound under a leader, or since the last excuse.
    partial_since_ms: Option<UnixMs>,
    /// Whether a process has led since the fault: a successor, the restarted process, or the
    /// survivor.
    succeeded: bool,
    /// How many pods were evicted for the gang.
    evicted: usize,
    ending: Ending,
}

impl<'a> Stage<'a> {
    pub(super) fn new(case: Case, notes: Option<&'a mut Vec<String>>) -> Self {
        let mut stage = Self {
            case,
            api: ApiServer::default(),
            now_ms: START_MS,
            queue: BTreeMap::new(),
            last_number: 0,
            processes: Vec::new(),
            sent: 0,
            notes,
            struck_ms: None,
            last_words: None,
            healed_ms: None,
            partial_since_ms: None,
            succeeded: false,
            evicted: 0,
            ending: Ending {
                left_in_part: false,
                unwound: false,
                whole: false,
            },
        };
        stage.furnish();
        stage.at(START_MS, Happening::Start("first"));
        if matches!(case.successor, Successor::Standby | Successor::Both) {
            stage.at(START_MS + 100, Happening::Start("second"));
        }
        stage.at(CREATED_MS, Happening::Begin);
        stage
    }

    fn at(&mut self, at_ms: UnixMs, happening: Happening) {
        self.last_number += 1;
        self.queue.insert((at_ms, self.last_number), happening);
    }

    fn after(&mut self, wait_ms: u64, happening: Happening) {
        self.at(self.now_ms + wait_ms, happening);
    }

    /// Plays the case to its end.
    pub(super) fn play(mut self) -> Result<Ending, String> {
        for _ in 0..STEPS_MAX {
            self.moment()
                .map_err(|violation| format!("after {} ms: {violation}", self.now_ms - START_MS))?;
            if let Some(ending) = self.over()? {
                return Ok(ending);
            }
            let next_ms = self.queue.first_key_value().map(|((at_ms, _), _)| *at_ms);
            let due_ms = self.processes.iter().map(Process::due_ms);
            let next_ms = due_ms.chain(next_ms).min().unwrap_or(UnixMs::MAX);
            let until_ms = self.now_ms.saturating_add(PARTIAL_MAX_MS);
            self.now_ms = self.now_ms.max(next_ms.min(until_ms));
        }
        Err("I18: it does not come to rest".to_owned())
    }

    fn over(&mut self) -> Result<Option<Ending>, String> {
        let quiet_ms = self.struck_ms.or(self.notes.as_ref().map(|_| START_MS));
        let Some(struck_ms) = quiet_ms else {
            return if self.now_ms > START_MS + 60_000 {
                Err(format!("the command {} is never sent", self.case.command))
            } else {
                Ok(None)
            };
        };
        if self.struck_ms.is_none() {
            let over = self.now_ms >= struck_ms + 7_000;
            return Ok(over.then_some(self.ending));
        }
        let Some(healed_ms) = self.healed_ms else {
            return Ok(None);
        };
        if self.bound() == self.case.members {
            return Ok(Some(self.ending));
        }
        if self.now_ms > healed_ms + WHOLE_MAX_MS {
            return Err(format!(
                "I18: {} of {} members are bound though there is room",
                self.bound(),
                self.case.members
            ));
        }
        Ok(None)
    }

    /// Lets happen what is planned for this moment, and then steps all processes.
    fn moment(&mut self) -> Result<(), String> {
        while let Some(entry) = self.queue.first_entry()
            && entry.key().0 <= self.now_ms
        {
            let happening = entry.remove();
            self.happen(happening)?;
            self.check()?;
        }
        for index in 0..self.processes.len() {
            let (commands, gave_up) = self.processes[index].step(&mut self.api, self.now_ms)?;
            if gave_up {
                self.excuse();
            }
            if index == 0 {
                self.end_after_last_words();
            }
            for command in commands {
                self.send(index, command);
            }
        }
        self.check()
    }

    fn happen(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::Begin => self.create_gang(),
            Happening::Start(identity) => {
                let process = Process::start(identity, &self.case, &mut self.api, self.now_ms);
                self.processes.push(process);
            }
            Happening::Arrives {
                process,
                command,
                answered,
            } => self.arrive(process, *command, answered)?,
            Happening::Answered(process, id, outcome) => {
                self.processes[process].answered(id, outcome);
            }
            Happening::Turn => self.turn(),
            Happening::Wake => self.processes[0].pulse = Pulse::Running,
            Happening::Terminated(name) => {
                self.delete(name.clone());
                self.after(RESTART_MS, Happening::Recreate(name.name));
            }
            Happening::Recreate(name) => self.recreate(&name),
            Happening::Heal => {
                self.ending.whole = self.bound() == self.case.members;
                self.heal();
            }
        }
        Ok(())
    }

    fn delete(&mut self, name: Name) {
        let expected = Expected::default();
        let grace_s = Some(0);
        let request = Request::Delete {
            name,
            expected,
            grace_s,
        };
        self.api.handle(request, self.now_ms);
    }

    /// Sends a command, unless its process has just come to its end.
    fn send(&mut self, process: usize, command: Command) {
        if self.processes[process].pulse != Pulse::Running {
            return;
        }
        let mut arrivals = [(WAY_MS, true), (WAY_MS, false)];
        let mut copies = 1;
        if process == 0 && self.struck_ms.is_none() {
            if let Some(notes) = &mut self.notes {
                notes.push(format!("{:?}", command.action));
            }
            let number = self.sent;
            self.sent += 1;
            if number == self.case.command {
                let survives = self.case.successor == Successor::Survivor;
                let stray_ms = if survives {
                    STRAY_AFTER_DEADLINE_MS
                } else {
                    STRAY_MS
                };
                match self.case.fault {
                    Fault::RequestLost => copies = 0,
                    Fault::ResponseLost => arrivals[0].1 = false,
                    Fault::Repeated => {
                        arrivals[1].0 = stray_ms;
                        copies = 2;
                    }
                    Fault::Late => arrivals[0].0 = stray_ms,
                    Fault::None => self.last_words = Some(command.id),
                }
                if self.case.fault != Fault::None {
                    self.strike();
                }
            }
        }
        for (wait_ms, answered) in arrivals.into_iter().take(copies) {
            let arrival = Happening::Arrives {
                process,
                command: Box::new(command.clone()),
                answered,
            };
            self.after(wait_ms, arrival);
        }
    }

    /// Ends the first process once it has read the answer to its last command and decided, but
    /// before it acts.
    fn end_after_last_words(&mut self) {
        if self.struck_ms.is_none()
            && let Some(id) = self.last_words
            && self.processes[0].has_read(id)
        {
            self.strike();
        }
    }

    /// The fault strikes: the process goes on, stops or ends as the case says, and the changes of
    /// the world are planned.
    fn strike(&mut self) {
        self.struck_ms = Some(self.now_ms);
        self.succeeded = self.case.successor == Successor::Survivor;
        let (pulse, heal_ms) = match self.case.successor {
            Successor::Survivor => (Pulse::Running, 10_000),
            Successor::Restarted => {
                self.after(RESTART_MS, Happening::Start("first"));
                (Pulse::Ended, 5_000)
            }
            Successor::Standby => (Pulse::Ended, 25_000),
            Successor::Stranger => {
                self.after(RESTART_MS, Happening::Start("third"));
                (Pulse::Ended, 25_000)
            }
            Successor::Both => {
                self.after(STOPPED_MS, Happening::Wake);
                (Pulse::Stopped, 30_000)
            }
        };
        self.processes[0].pulse = pulse;
        // Requests that were sent before the fault arrive before the world changes.
        self.after(WAY_MS + 1, Happening::Turn);
        self.after(heal_ms, Happening::Heal);
    }

    fn arrive(&mut self, process: usize, command: Command, answered: bool) -> Result<(), String> {
        if command.deadline_ms <= self.now_ms || !answered {
            // No leader could have known of this request's effect.
            self.excuse();
        }
        let outcome = self.handle(&command.action)?;
        if let (Action::Bind(bind), Outcome::Refused { .. }) = (&command.action, &outcome) {
            self.processes[process].refused(bind.pod.uid);
        }
        if answered {
            self.after(WAY_MS, Happening::Answered(process, command.id, outcome));
        }
        Ok(())
    }

    fn handle(&mut self, action: &Action) -> Result<Outcome, String> {
        match action {
            Action::Bind(bind) if self.refuses(&bind.pod.name) => {
                return Ok(Outcome::Refused {
                    message: "a webhook says no".into(),
                });
            }
            Action::Evict(evict) if evict.beneficiary.is_some() => {}
            Action::Evict(evict) if evict.cause != EvictionCause::Unwind || self.has_room() => {
                let (name, cause) = (&evict.pod.name, evict.cause);
                return Err(format!("I10: {name} is evicted: {cause:?}"));
            }
            _ => {}
        }
        let answer = self.api.handle(client::request(action), self.now_ms);
        if let (Action::Evict(evict), Answer::Done) = (action, &answer) {
            if evict.beneficiary.is_some() {
                self.check_victim(evict)?;
                self.evicted += 1;
            } else {
                self.ending.unwound = true;
            }
            let name = Name::pod(&evict.pod.namespace, &evict.pod.name);
            self.after(TERMINATION_MS, Happening::Terminated(name));
        }
        Ok(client::outcome(action, answer))
    }

    /// I10: no pod is evicted for the gang before every member is nominated, and no more pods than
    /// have to be. A successor that finds only some of the victims gone plans anew, and others may
    /// have taken their room by then: it evicts as many more. A stray request may arrive when the
    /// next leader has planned anew.
    fn check_victim(&self, evict: &Evict) -> Result<(), String> {
        let members = self.api.pods().filter(|facts| facts.pod_group.is_some());
        let mut waiting = members.filter(|facts| facts.node.is_none());
        let is_announced = waiting.all(|facts| facts.nominated.is_some());
        let most = match self.case.successor {
            Successor::Survivor => self.case.members,
            _ => 2 * self.case.members - 1,
        };
        let is_right = is_announced && self.evicted < most;
        let may_be = self.case.story == Story::Taken && evict.cause == EvictionCause::Preempt;
        if may_be && (is_right || self.strays()) {
            return Ok(());
        }
        let (name, cause, evicted) = (&evict.pod.name, evict.cause, self.evicted);
        Err(format!(
            "I10: {name} is evicted: {cause:?}, after {evicted} others; all members nominated: \
             {is_announced}"
        ))
    }

    /// Whether a gang of which a part is bound can always be completed.
    fn has_room(&self) -> bool {
        match self.case.story {
            Story::RoomKept => true,
            // A stray request that arrives when nothing was bound may find its room taken.
            Story::Contended | Story::Taken => !self.strays(),
            Story::RoomTaken | Story::NodesGone | Story::Refused => false,
        }
    }

    /// Whether a stray request arrives: one that the leader of that time knows nothing of. A
    /// process that survives knows it, and has kept the room.
    fn strays(&self) -> bool {
        let stray = matches!(self.case.fault, Fault::Late | Fault::Repeated);
        stray && self.case.successor != Successor::Survivor
    }

    fn refuses(&self, pod: &str) -> bool {
        let last = objects::member(self.case.members - 1);
        self.case.story == Story::Refused && self.healed_ms.is_none() && pod == last
    }

    /// Lets the time begin anew for which only a part of the gang may be bound.
    fn excuse(&mut self) {
        self.partial_since_ms = None;
    }

    fn leader(&self) -> bool {
        let leads = |process: &Process| process.leads && process.pulse == Pulse::Running;
        self.processes.iter().any(leads)
    }

    /// How many members are bound and not being deleted.
    fn bound(&self) -> usize {
        let bound = |facts: &&PodFacts| {
            facts.pod_group.is_some() && facts.node.is_some() && facts.deletion_ms.is_none()
        };
        self.api.pods().filter(bound).count()
    }

    /// What must hold at every moment.
    fn check(&mut self) -> Result<(), String> {
        self.check_lease()?;
        self.check_nodes()?;
        let bound = self.bound();
        let partial = bound > 0 && bound < self.case.members;
        let leader = self.leader();
        self.ending.left_in_part |= partial && !leader;
        if !(partial && leader) || self.waits_for_lost_answer() {
            self.partial_since_ms = None;
            return Ok(());
        }
        let since_ms = *self.partial_since_ms.get_or_insert(self.now_ms);
        if self.now_ms - since_ms >= PARTIAL_MAX_MS {
            return Err(format!(
                "I6: {bound} of {} members have been bound for two seconds",
                self.case.members
            ));
        }
        Ok(())
    }

    /// Whether the process has survived the fault, and may still wait for the answer until the
    /// deadline.
    fn waits_for_lost_answer(&self) -> bool {
        let deadline_ms = Settings::default().request_deadline_ms;
        let over_ms = self.struck_ms.map_or(0, |at_ms| at_ms + deadline_ms);
        self.case.successor == Successor::Survivor && self.now_ms <= over_ms
    }

    fn check_lease(&mut self) -> Result<(), String> {
        let Some(struck_ms) = self.struck_ms.filter(|_| !self.succeeded) else {
            return Ok(());
        };
        self.succeeded = self.leader();
        let restarted = self.case.successor == Successor::Restarted;
        let due_ms = if restarted {
            struck_ms + RESTART_MS + OWN_LEASE_MAX_MS
        } else {
            struck_ms + LEASE_MAX_MS
        };
        if !self.succeeded && self.now_ms > due_ms {
            return Err("F9: no scheduler leads".to_owned());
        }
        Ok(())
    }

    /// I2: no node is overfull. A stray request that arrives when other pods have the room
    /// overfills a node, and no scheduler can know it; in all other cases it is a mistake of the
    /// scheduler.
    fn check_nodes(&self) -> Result<(), String> {
        let is_full = matches!(
            self.case.story,
            Story::RoomTaken | Story::Contended | Story::Taken
        );
        if self.strays() && is_full {
            return Ok(());
        }
        objects::overfull(&self.api).map_or(Ok(()), |node| Err(format!("I2: {node} is overfull")))
    }
}
