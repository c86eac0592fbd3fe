//! Compares an answer of the model with one of the API server.

use std::fmt::Debug;
use std::sync::Arc;

use gpu_batch_policies::command::Action;
use gpu_batch_policies::event::{Object, Outcome};
use gpu_batch_policies::facts::{Labels, PodFacts, PodLabels, PodShape, Uid, UnixMs};
use gpu_batch_policies::lease::LeaseSeen;
use gpu_batch_policies::status::{PodGroupStatus, QueueStatus};
use gpu_batch_simulator::api_server::{Answer, Change, PodStatus, Sort, Status, Stored};
use gpu_batch_simulator::client;
use gpu_batch_simulator::objects::pod;
use serde_json::Value;

use super::names::Names;
use super::reply::{Reply, Seen};
use super::server;

/// Compares answers, and learns what the API server calls things.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) names: Names,
    /// How far times may differ: the model has those at which requests were sent, and the API
    /// server those at which it carried them out.
    pub(super) slack_ms: u64,
    /// How long the sequence has taken so far.
    pub(super) lasted_ms: u64,
}

impl Comparison {
    pub(super) fn answers(&mut self, model: &Answer, real: &Reply) -> Result<(), String> {
        match (model, real) {
            (Answer::Created(stored), Reply::Created(seen))
            | (Answer::Found(stored), Reply::Found(seen)) => self.objects(stored, seen),
            (Answer::Listed { version, objects }, Reply::Listed(real, seen)) => {
                self.names.listed(*version, *real)?;
                same("how many are listed", &objects.len(), &seen.len())?;
                let mut pairs = objects.iter().zip(seen);
                pairs.try_for_each(|(stored, seen)| self.objects(stored, seen))
            }
            (Answer::Changes { changes, .. }, Reply::Changes(seen)) => self.changes(changes, seen),
            (Answer::Lease(model), Reply::Lease(real)) => self.leases(model, real),
            (Answer::Conflict(model), Reply::Conflict(real)) => same("the conflict", model, real),
            (
                Answer::TooManyRequests {
                    retry_after_s,
                    by_budget,
                },
                Reply::TooManyRequests {
                    retry_after_s: real_s,
                    by_budget: real,
                },
            ) => same("the 429", &(retry_after_s, by_budget), &(real_s, real)),
            (Answer::Done, Reply::Done)
            | (Answer::NotFound, Reply::NotFound)
            | (Answer::AlreadyExists, Reply::AlreadyExists)
            | (Answer::Gone, Reply::Gone)
            | (Answer::Invalid(_), Reply::Invalid(_))
            | (Answer::TooLarge, Reply::TooLarge) => Ok(()),
            (Answer::InternalError(model), Reply::InternalError(real)) if real.contains(model) => {
                Ok(())
            }
            (_, Reply::Other(words)) => Err(format!("the model never says: {words}")),
            _ => Err("the answers are of two sorts".into()),
        }
    }

    fn leases(&mut self, model: &LeaseSeen, real: &LeaseSeen) -> Result<(), String> {
        let version = |seen: &LeaseSeen| seen.resource_version.as_deref()?.parse().ok();
        if let (Some(model), Some(real)) = (version(model), version(real)) {
            self.names.written(model, real)?;
        }
        let real = LeaseSeen {
            resource_version: model.resource_version.clone(),
            ..real.clone()
        };
        same("the lease", model, &real)
    }

    pub(super) fn changes(
        &mut self,
        changes: &[Change],
        seen: &[(Sort, Seen)],
    ) -> Result<(), String> {
        for (number, (change, (sort, seen))) in changes.iter().zip(seen).enumerate() {
            same("the change", &change.sort, sort)
                .and_then(|()| self.objects(&change.object, seen))
                .map_err(|why| format!("change {}: {why}", number + 1))?;
        }
        same("how many changes there are", &changes.len(), &seen.len())
    }

    fn objects(&mut self, stored: &Stored, seen: &Seen) -> Result<(), String> {
        let mut real = seen.object.clone();
        match (&stored.object, &mut real) {
            (Object::Pod(model), Some(Object::Pod(real))) => self.rename_pod(model, real)?,
            (Object::Node(model), Some(Object::Node(real))) => {
                self.rename(model.uid, &mut real.uid)?;
            }
            (Object::Queue(model), Some(Object::Queue(real))) => {
                self.rename(model.uid, &mut real.uid)?;
                self.forgive(model.created_ms, &mut real.created_ms);
            }
            (Object::PodGroup(model), Some(Object::PodGroup(real))) => {
                self.rename(model.uid, &mut real.uid)?;
                self.forgive(model.created_ms, &mut real.created_ms);
            }
            (Object::Topology(model), Some(Object::Topology(real))) => {
                self.rename(model.uid, &mut real.uid)?;
            }
            (Object::Job(model), Some(Object::Job(real))) => {
                self.rename(model.uid, &mut real.uid)?;
            }
            (Object::DisruptionBudget(model), Some(Object::DisruptionBudget(real))) => {
                self.rename(model.uid, &mut real.uid)?;
            }
            (Object::Namespace(model), Some(Object::Namespace(real))) => {
                self.rename(model.uid, &mut real.uid)?;
            }
            _ => {}
        }
        same("the object", &as_read(&stored.object), &real)?;
        self.names.written(stored.version, seen.version)?;
        self.statuses(stored, &seen.raw)
    }

    fn rename(&mut self, model: Uid, real: &mut Uid) -> Result<(), String> {
        self.names.meet(model, *real)?;
        *real = model;
        Ok(())
    }

    fn rename_pod(&mut self, model: &PodFacts, real: &mut PodFacts) -> Result<(), String> {
        self.rename(model.uid, &mut real.uid)?;
        self.forgive(model.created_ms, &mut real.created_ms);
        for (model_ms, real_ms) in [
            (model.bound_ms, &mut real.bound_ms),
            (model.deletion_ms, &mut real.deletion_ms),
        ] {
            if let (Some(model_ms), Some(real_ms)) = (model_ms, real_ms) {
                self.forgive(model_ms, real_ms);
            }
        }
        if let Some(owner) = &mut real.owner {
            owner.uid = self.names.model_uid(owner.uid);
        }
        Ok(())
    }

    /// A time that is near enough counts as the model's.
    fn forgive(&self, model_ms: UnixMs, real_ms: &mut UnixMs) {
        if model_ms.abs_diff(*real_ms) <= self.slack_ms {
            *real_ms = model_ms;
        }
    }

    fn statuses(&self, stored: &Stored, raw: &Value) -> Result<(), String> {
        match (&stored.status, &stored.object) {
            (Status::Nothing, _) => Ok(()),
            (Status::Pod(model), _) => {
                let mut real = pod_status(raw);
                for (model_s, real_s) in [
                    (model.scheduled_since_s, &mut real.scheduled_since_s),
                    (model.deletion_s, &mut real.deletion_s),
                ] {
                    let mut real_ms = *real_s * 1_000;
                    self.forgive(model_s * 1_000, &mut real_ms);
                    *real_s = real_ms / 1_000;
                }
                // A grace may run out between the two clocks: its last second is the kubelet's.
                if real.deletion_grace_s == Some(1)
                    && let Some(grace_s @ 2..) = model.deletion_grace_s
                    && self.lasted_ms >= grace_s * 1_000
                {
                    real.deletion_grace_s = model.deletion_grace_s;
                }
                same("the status", model, &real)
            }
            (Status::DisruptionBudget { observed }, _) => {
                let generation = raw["metadata"]["generation"].as_i64();
                let seen = raw["status"]["observedGeneration"].as_i64();
                same("whether the status is new", observed, &(seen >= generation))
            }
            (Status::Queue(model), Object::Queue(facts)) => {
                let sent = |status: &QueueStatus| server::queue_status(facts, status);
                same_json(model.as_ref().map(sent), &raw["status"])
            }
            (Status::PodGroup(model), Object::PodGroup(facts)) => {
                let sent = |status: &PodGroupStatus| server::group_status(facts, status);
                let sent = model.as_ref().map(sent);
                let merged = sent.as_ref().and_then(|sent| sent["conditions"].as_array());
                match merged {
                    // Of a native group only the conditions are sent, to be merged in.
                    Some(conditions) if sent.as_ref().unwrap().get("phase").is_none() => same_json(
                        Some(conditions.clone().into()),
                        &raw["status"]["conditions"],
                    ),
                    _ => same_json(sent, &raw["status"]),
                }
            }
            (status, object) => Err(format!("{object:?} has the status {status:?}")),
        }
    }
}

/// What the shell reads of an object that the model stores: of other schedulers' pods it reads only
/// what takes room and their labels, and nothing once they have ended.
fn as_read(object: &Object) -> Option<Object> {
    let Object::Pod(facts) = object else {
        return Some(object.clone());
    };
    if facts.ours {
        return Some(object.clone());
    }
    let shape = PodShape {
        requests: facts.shape.requests.clone(),
        aligned: facts.shape.aligned.clone(),
        ..PodShape::default()
    };
    // The labels with which the manifest of the pod is written.
    let named = [
        ("pod-group", &facts.pod_group),
        ("subgroup", &facts.sub_group),
        ("queue", &facts.queue),
    ];
    let named = named.into_iter().filter_map(|(name, value)| {
        let key = format!("gpu-batch.io/{name}");
        Some((key.into(), value.clone()?))
    });
    let mut labels: Labels = named.collect();
    labels.sort();
    (!facts.phase.ended()).then(|| {
        Object::Pod(PodFacts {
            labels: PodLabels {
                implied: 0,
                stated: (!labels.is_empty()).then(|| Arc::new(labels)),
            },
            uid: facts.uid,
            namespace: facts.namespace.clone(),
            ours: false,
            node: facts.node.clone(),
            phase: facts.phase,
            nominated: facts.nominated.clone(),
            deletion_ms: facts.deletion_ms,
            bound_ms: facts.bound_ms,
            started_ms: facts.started_ms,
            shape: Arc::new(shape),
            ..pod(&facts.name, facts.uid, facts.created_ms, 0, 0)
        })
    })
}

fn pod_status(raw: &Value) -> PodStatus {
    let conditions = raw["status"]["conditions"].as_array().into_iter().flatten();
    let mut status = PodStatus {
        deletion_grace_s: raw["metadata"]["deletionGracePeriodSeconds"].as_u64(),
        deletion_s: seconds(&raw["metadata"]["deletionTimestamp"]),
        planned_at_ms: milliseconds(&raw["metadata"]["annotations"]["gpu-batch.io/planned-at"]),
        ..PodStatus::default()
    };
    for condition in conditions {
        match condition["type"].as_str() {
            Some("PodScheduled") => {
                status.scheduled = Some(condition["status"] == "True");
                status.scheduled_since_s = seconds(&condition["lastTransitionTime"]);
            }
            Some("DisruptionTarget") => status.disruption_target = condition["status"] == "True",
            _ => {}
        }
    }
    status
}

/// A time in seconds; 0 where there is none.
fn seconds(text: &Value) -> u64 {
    milliseconds(text) / 1_000
}

/// A time in milliseconds; 0 where there is none.
fn milliseconds(text: &Value) -> u64 {
    let time = text
        .as_str()
        .map(|text| text.parse::<jiff::Timestamp>().unwrap());
    time.map_or(0, |time| u64::try_from(time.as_millisecond()).unwrap())
}

/// An absent status and an empty one are the same.
fn same_json(model: Option<Value>, real: &Value) -> Result<(), String> {
    let absent = real.as_object().is_some_and(serde_json::Map::is_empty);
    let real = if absent { &Value::Null } else { real };
    same("the status", &model.unwrap_or(Value::Null), real)
}

/// What the live shell makes of an answer is what the simulator's makes of the model's. Leases are
/// compared as answers, and what is invalid is told in the API server's own words.
pub(super) fn outcomes(
    action: &Action,
    model: &Answer,
    reply: &Reply,
    real: &Outcome,
) -> Result<(), String> {
    let expected = match (client::outcome(action, model.clone()), reply, real) {
        (Outcome::Lease(_), Reply::Lease(seen), _) => Outcome::Lease(seen.clone()),
        (Outcome::Refused { .. }, Reply::Invalid(words), _) => Outcome::Refused {
            message: words.as_str().into(),
        },
        // Whatever the API server said is passed on.
        (Outcome::Conflict { .. }, _, Outcome::Conflict { message })
        | (Outcome::Unknown { .. }, _, Outcome::Unknown { message })
            if !message.is_empty() =>
        {
            real.clone()
        }
        (expected, ..) => expected,
    };
    same("the outcome", &expected, real)
}

pub(super) fn same<T: Debug + PartialEq + ?Sized>(
    what: &str,
    model: &T,
    real: &T,
) -> Result<(), String> {
    if model == real {
        return Ok(());
    }
    Err(format!(
        "{what} is\n  {model:?}\nin the model and\n  {real:?}\non the API server"
    ))
}
