//! One scheduler process: an engine with its watches, which are never late.

use super::{Case, Story};
use crate::api_server::{Answer, ApiServer, Change, Name, Request, Sort, Version};
use crate::timeline::undisturbed;
use gpu_batch_policies::command::{Action, Command, CommandId};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Listing, Outcome};
use gpu_batch_policies::facts::{Uid, UnixMs};
use gpu_batch_policies::lease::LeaseSettings;
use gpu_batch_policies::settings::{Leadership, Settings};
use std::collections::BTreeMap;

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pulse {
    Running,
    /// The process does nothing, but its requests go on.
    Stopped,
    Ended,
}

/// One scheduler process.
#[derive(Debug)]
pub(super) struct Process {
    engine: Engine,
    pub(super) pulse: Pulse,
    /// Whether the process led at its last step.
    pub(super) leads: bool,
    seen: Version,
    events: Vec<Event>,
    deadlines: BTreeMap<CommandId, UnixMs>,
    /// Where pods may be: the node of each pod's last bind, unless the bind was refused, while the
    /// node exists and the process leads.
    uncertain: BTreeMap<Uid, Box<str>>,
}

impl Process {
    /// A process that starts now and has listed all kinds.
    pub(super) fn start(identity: &str, case: &Case, api: &mut ApiServer, now_ms: UnixMs) -> Self {
        let mut settings = Settings {
            leadership: Leadership::Elected(LeaseSettings {
                identity: identity.into(),
                duration_ms: 15_000,
                renew_deadline_ms: 10_000,
                retry_ms: 2_000,
            }),
            ..undisturbed()
        };
        settings.in_flight.actions = case.in_flight;
        if case.story == Story::Taken {
            settings.evictions = Settings::default().evictions;
        }
        let list = |kind| {
            let answer = api.handle(Request::List { kind, at: None }, now_ms);
            let Answer::Listed { objects, .. } = answer else {
                unreachable!("a quorum list always succeeds in this model")
            };
            let objects = objects.iter().map(|stored| stored.object.clone()).collect();
            Event::Listed(Listing { kind, objects })
        };
        Self {
            engine: Engine::new(settings),
            pulse: Pulse::Running,
            leads: false,
            events: Kind::ALL.map(list).into(),
            seen: api.revision(),
            deadlines: BTreeMap::new(),
            uncertain: BTreeMap::new(),
        }
    }

    pub(super) fn answered(&mut self, id: CommandId, outcome: Outcome) {
        if self.deadlines.remove(&id).is_some() {
            self.events.push(Event::Outcome(id, outcome));
        }
    }

    /// When the process next steps, if nothing else happens.
    pub(super) fn due_ms(&self) -> UnixMs {
        let first = self.deadlines.values().min().copied();
        let engine = self.engine.next_deadline();
        let due_ms = first.into_iter().chain(engine).min();
        match self.pulse {
            Pulse::Running if self.events.is_empty() => due_ms.unwrap_or(UnixMs::MAX),
            Pulse::Running => 0,
            Pulse::Stopped | Pulse::Ended => UnixMs::MAX,
        }
    }

    /// One step, if there is something to do. Returns the commands, and whether a request was given
    /// up.
    pub(super) fn step(
        &mut self,
        api: &mut ApiServer,
        now_ms: UnixMs,
    ) -> Result<(Vec<Command>, bool), String> {
        if self.pulse != Pulse::Running {
            return Ok((Vec::new(), false));
        }
        self.watch(api, now_ms);
        let over = self.deadlines.iter().filter(|(_, at_ms)| **at_ms <= now_ms);
        let over: Vec<CommandId> = over.map(|(id, _)| *id).collect();
        for id in &over {
            let message = "there was no answer in time".into();
            self.answered(*id, Outcome::Unknown { message });
        }
        if self
            .engine
            .next_deadline()
            .is_some_and(|at_ms| at_ms <= now_ms)
        {
            self.events.push(Event::Continue);
        }
        if self.events.is_empty() {
            return Ok((Vec::new(), false));
        }
        let commands = self.engine.step(now_ms, std::mem::take(&mut self.events));
        let violations = self.engine.audit();
        if !violations.is_empty() {
            return Err(violations.join("; "));
        }
        self.leads = self.engine.is_leader();
        let leads = self.leads;
        self.uncertain.retain(|_, node| leads && exists(api, node));
        for command in &commands {
            self.deadlines.insert(command.id, command.deadline_ms);
            self.judge(command)?;
        }
        Ok((commands, !over.is_empty()))
    }

    fn watch(&mut self, api: &mut ApiServer, now_ms: UnixMs) {
        for kind in Kind::ALL {
            let after = self.seen;
            let answer = api.handle(Request::Watch { kind, after }, now_ms);
            let Answer::Changes { changes, .. } = answer else {
                unreachable!("nothing is compacted here")
            };
            self.events.extend(changes.iter().map(event));
        }
        self.seen = api.revision();
    }

    /// I13: only a leader acts. I4: a pod is sent to one node only, until the API server has
    /// refused the bind, or the node is gone.
    fn judge(&mut self, command: &Command) -> Result<(), String> {
        if !self.leads && !matches!(command.action, Action::Lease(_)) {
            return Err(format!("I13: {:?} without the lease", command.action));
        }
        if let Action::Bind(bind) = &command.action {
            let before = self.uncertain.insert(bind.pod.uid, bind.node.clone());
            let other = before.filter(|node| *node != bind.node);
            if let Some(node) = other {
                let (name, target) = (&bind.pod.name, &bind.node);
                return Err(format!("I4: {name} goes to {target} and may be on {node}"));
            }
        }
        Ok(())
    }

    /// Whether the engine has read the answer to a command.
    pub(super) fn has_read(&self, id: CommandId) -> bool {
        !self.deadlines.contains_key(&id) && self.events.is_empty()
    }

    /// Notes that the API server has refused a bind, so that it has certainly not bound the pod.
    pub(super) fn refused(&mut self, uid: Uid) {
        self.uncertain.remove(&uid);
    }
}

fn exists(api: &ApiServer, node: &str) -> bool {
    let name = Name {
        kind: Kind::Node,
        namespace: "".into(),
        name: node.into(),
    };
    api.get(&name).is_some()
}

fn event(change: &Change) -> Event {
    match change.sort {
        Sort::Deleted => Event::Deleted(change.object.key()),
        Sort::Added | Sort::Modified => change.object.object.clone().into(),
    }
}
