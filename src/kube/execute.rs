//! One command, one request, one outcome.
//!
//! Each command becomes one HTTP request that is sent once, under the command's deadline, in a task
//! of its own; the engine bounds how many there are. Whatever happens to the task, the driver gets
//! exactly one outcome. Nothing is repeated here: what an outcome means is the engine's business.

mod claims;
mod classify;
mod exchange;
mod lease;
mod nodes;
mod pods;
mod telling;
mod translate;

pub use exchange::{Answer, ExchangeError, Request, exchange};
pub use lease::LeaseName;
pub use translate::{Stamp, outcome, request};

pub(crate) use nodes::lock_cards;

#[cfg(test)]
pub(crate) use telling::{pod_group as pod_group_status, queue as queue_status};

use crate::handles::Handles;
use crate::handles::health::Outage;
use crate::handles::inbox::Inbox;
use crate::kube::connection::{self, ConnectionError};
use gpu_batch_policies::command::{Action, Command, CommandId};
use gpu_batch_policies::event::{Event, Outcome};
use gpu_batch_policies::lease::LeaseCall;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tracing::{debug, info, warn};

/// No request takes longer, whatever its command says: the driver relies on it when it drains.
const DEADLINE_MAX: Duration = Duration::from_secs(20);
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// Sends commands.
pub(crate) struct Executor {
    runtime: Handle,
    requests: kube::Client,
    /// A client for the lease alone, so that its requests never wait behind others.
    lease_requests: kube::Client,
    lease: LeaseName,
    /// When the holder of the lease took it, in Unix milliseconds, as far as that was seen; else 0.
    acquired_ms: AtomicU64,
    /// The `reportingInstance` of our Kubernetes events.
    instance: String,
    /// Our `schedulerName`, which statuses say.
    scheduler: String,
    handles: Handles,
    /// When each sort of request was last warned about.
    warned: Mutex<BTreeMap<&'static str, Instant>>,
}

impl Executor {
    /// An executor whose requests run on the current runtime.
    pub(crate) fn new(
        config: &kube::Config,
        lease: LeaseName,
        instance: String,
        scheduler: &str,
        handles: &Handles,
    ) -> Result<Self, ConnectionError> {
        Ok(Self {
            runtime: Handle::current(),
            requests: connection::client(config)?,
            lease_requests: connection::client(config)?,
            lease,
            acquired_ms: AtomicU64::new(0),
            instance,
            scheduler: scheduler.to_owned(),
            handles: handles.clone(),
            warned: Mutex::default(),
        })
    }

    /// Sends one command; returns at once.
    pub(crate) fn start(self: &Arc<Self>, command: Command) {
        let executor = Arc::clone(self);
        // Made before the task, so that there is an outcome even if the task never runs.
        let mut reply = Reply {
            id: command.id,
            inbox: Arc::clone(&self.handles.inbox),
            outcome: unanswered("the request was given up"),
        };
        self.runtime.spawn(async move {
            let limit = executor
                .handles
                .clock
                .until(command.deadline_ms)
                .min(DEADLINE_MAX);
            let started = Instant::now();
            // A process that was stopped for a while may find commands whose time is over: another
            // process may lead by now. A timeout alone would send the request before it looks at
            // the clock.
            if limit.is_zero() {
                reply.outcome = unanswered("its time was over before it was sent");
            } else {
                let performed = tokio::time::timeout(limit, executor.perform(&command)).await;
                reply.outcome = performed.unwrap_or_else(|_| {
                    let silent = unanswered(&format!(
                        "the API server has not answered within {limit:.1?}"
                    ));
                    // Perhaps only etcd pauses: other requests may be answered meanwhile.
                    if matches!(command.action, Action::Lease(_)) {
                        executor.lease_failed(&silent, "");
                    }
                    silent
                });
            }
            executor.record(&command.action, &reply.outcome, started.elapsed());
        });
    }

    async fn perform(&self, command: &Command) -> Outcome {
        let now_ms = self.handles.clock.now_ms();
        let client = match &command.action {
            Action::Lease(request) => {
                if let LeaseCall::Write { acquire: true, .. } = request {
                    self.acquired_ms.store(now_ms, Ordering::Relaxed);
                }
                &self.lease_requests
            }
            _ => &self.requests,
        };
        let stamp = Stamp {
            lease: &self.lease,
            instance: &self.instance,
            scheduler: &self.scheduler,
            id: command.id,
            acquired_ms: self.acquired_ms.load(Ordering::Relaxed),
            now_ms,
        };
        let answer = exchange(client, request(&command.action, &stamp)).await;
        self.tell_health(&answer);
        match &command.action {
            Action::Lease(request) => self.lease_answered(request, answer),
            action => outcome(action, answer),
        }
    }

    /// Tells the health whether the API server answers at all.
    fn tell_health(&self, answer: &Result<Answer, ExchangeError>) {
        let outage = match answer {
            Ok(answer) if classify::is_unauthorized(answer) => {
                Some(Outage::Unauthorized(classify::message(answer)))
            }
            Ok(_) => return self.handles.health.answered(),
            Err(ExchangeError::Lost(error)) => connection::outage(error),
            Err(ExchangeError::Malformed(_)) => None,
        };
        if let Some(outage) = outage {
            self.handles.health.failed(outage);
        }
    }

    fn record(&self, action: &Action, outcome: &Outcome, took: Duration) {
        let (action_name, outcome_name) = (translate::name_of(action), classify::name_of(outcome));
        self.handles
            .metrics
            .command_ended(action_name, outcome_name);
        match action {
            Action::Bind(_) => self
                .handles
                .metrics
                .bind_seconds
                .observe(took.as_secs_f64()),
            Action::Evict(evict) if *outcome == Outcome::Done => {
                self.handles.metrics.evicted(evict);
                let (pod, why) = (&evict.pod, pods::why_evicted(evict.cause));
                info!("evicted {}/{}: {why}", pod.namespace, pod.name);
            }
            _ => {}
        }
        match outcome {
            // The health logs this, once and with what to do.
            Outcome::Refused { .. } | Outcome::Unknown { .. }
                if matches!(action, Action::Lease(_)) => {}
            Outcome::Unknown { .. } if self.handles.health.lease_trouble().is_some() => {}
            Outcome::Refused { message } if self.may_warn(action_name) => {
                warn!(
                    "{} was refused: {message}",
                    translate::name_with_object(action)
                );
            }
            Outcome::Unknown { message } if self.may_warn(action_name) => {
                let what = translate::name_with_object(action);
                warn!("{what} ended with an unknown outcome after {took:?}: {message}");
            }
            _ => debug!("{action_name} ended after {took:?}: {outcome:?}"),
        }
    }

    /// Tells the health whether the lease can be written: a candidate that cannot write it is no
    /// standby. That a lease without a holder can be read proves nothing. An API server that does
    /// not answer, or does not accept who we are, is an outage and not a trouble of the lease
    /// alone.
    fn lease_answered(
        &self,
        request: &LeaseCall,
        answer: Result<Answer, ExchangeError>,
    ) -> Outcome {
        let answered = answer.as_ref().ok();
        if let Some(acquired_ms) = answered.and_then(lease::acquired_ms) {
            self.acquired_ms.store(acquired_ms, Ordering::Relaxed);
        }
        let known = answered.filter(|answer| !classify::is_unauthorized(answer));
        let said = known.map(classify::message);
        let outcome = lease::outcome(request, answer);
        if let Some(said) = said {
            match &outcome {
                Outcome::Lease(seen) if *request == LeaseCall::Read && seen.holder.is_empty() => {}
                Outcome::Lease(_) => self.handles.health.lease_served(),
                other => self.lease_failed(other, &said),
            }
        }
        outcome
    }

    fn lease_failed(&self, outcome: &Outcome, said: &str) {
        if let Some(trouble) = lease::trouble(&self.lease, outcome, said) {
            self.handles.health.lease_failed(trouble);
        }
    }

    /// Whether a request may be warned about: at most once a second for each sort of request.
    fn may_warn(&self, action_name: &'static str) -> bool {
        let now = Instant::now();
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = warned.get(action_name);
        let may = quiet.is_none_or(|&at| now.duration_since(at) >= WARNING_INTERVAL);
        if may {
            warned.insert(action_name, now);
        }
        may
    }
}

/// Delivers the outcome when it is dropped, so that a task which panics or is cancelled delivers
/// one too.
struct Reply {
    id: CommandId,
    inbox: Arc<Inbox>,
    outcome: Outcome,
}

impl Drop for Reply {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, unanswered(""));
        self.inbox.ended(Event::Outcome(self.id, outcome));
    }
}

/// The outcome of a request without an answer.
fn unanswered(why: &str) -> Outcome {
    Outcome::Unknown {
        message: why.into(),
    }
}

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
