//! What the real API server says, in the words of the model.

use gpu_batch::kube::convert::{Converter, Watched};
use gpu_batch::kube::execute::Answer;
use gpu_batch::kube::objects::{
    DisruptionBudget, Job, Namespace, NativePodGroup, Node, Pod, PodGroup, PriorityClass, Queue,
    Topology,
};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::lease::LeaseSeen;
use gpu_batch_simulator::api_server::{Conflict, Sort, Version};
use kube::core::Status;
use serde_json::Value;

use super::objects::NO_VOLUMES;

/// One answer.
#[derive(Debug)]
pub(super) enum Reply {
    Created(Box<Seen>),
    Found(Box<Seen>),
    Done,
    Lease(LeaseSeen),
    Listed(Version, Vec<Seen>),
    Changes(Vec<(Sort, Seen)>),
    NotFound,
    AlreadyExists,
    Conflict(Conflict),
    Gone,
    Invalid(String),
    TooManyRequests {
        retry_after_s: u64,
        by_budget: bool,
    },
    InternalError(String),
    TooLarge,
    /// Something that the model never says.
    Other(String),
}

/// An object as the API server shows it.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) version: Version,
    /// What the shell makes of it; `None`: an ended pod of another scheduler.
    pub(super) object: Option<Object>,
    /// All of it.
    pub(super) raw: Value,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (version, object, status) = (self.version, &self.object, &self.raw["status"]);
        write!(formatter, "version {version} of {object:?} with {status}")
    }
}

/// What an answer that says yes carries.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expecting {
    Object(Kind),
    List(Kind),
    Word,
}

pub(super) fn seen(kind: Kind, raw: Value) -> Result<Seen, String> {
    let version = version(&raw["metadata"]["resourceVersion"])?;
    let object = match kind {
        Kind::Node => convert::<Node>(&raw),
        Kind::Pod => convert::<Pod>(&raw),
        Kind::Queue => convert::<Queue>(&raw),
        Kind::PodGroup => convert::<PodGroup>(&raw),
        Kind::NativePodGroup => convert::<NativePodGroup>(&raw),
        Kind::Topology => convert::<Topology>(&raw),
        Kind::PriorityClass => convert::<PriorityClass>(&raw),
        Kind::Namespace => convert::<Namespace>(&raw),
        Kind::Job => convert::<Job>(&raw),
        Kind::DisruptionBudget => convert::<DisruptionBudget>(&raw),
        Kind::Storage(_) | Kind::Numa => unreachable!("{NO_VOLUMES}"),
    };
    Ok(Seen {
        version,
        object: object?,
        raw,
    })
}

/// As the watches of the shell read an object.
fn convert<T: Watched>(raw: &Value) -> Result<Option<Object>, String> {
    let read = T::deserialize(raw).map_err(|error| error.to_string())?;
    // No time of an object is in the future.
    Ok(read.convert(&mut Converter::new("gpu-batch", u64::MAX)))
}

pub(super) fn version(text: &Value) -> Result<Version, String> {
    let version = text.as_str().and_then(|text| text.parse().ok());
    version.ok_or_else(|| format!("{text} is not a version"))
}

pub(super) fn reply(answer: &Answer, expecting: Expecting) -> Result<Reply, String> {
    let body: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    if !answer.status.is_success() {
        let status = serde_json::from_value(body).map_err(|error| error.to_string())?;
        return Ok(refusal(&status));
    }
    Ok(match expecting {
        Expecting::Word => Reply::Done,
        Expecting::Object(kind) => {
            let seen = Box::new(seen(kind, body)?);
            match answer.status.as_u16() {
                201 => Reply::Created(seen),
                _ => Reply::Found(seen),
            }
        }
        Expecting::List(kind) => {
            let version = version(&body["metadata"]["resourceVersion"])?;
            let items = body["items"].as_array().into_iter().flatten();
            let items = items.map(|item| seen(kind, item.clone()));
            Reply::Listed(version, items.collect::<Result<_, _>>()?)
        }
    })
}

/// What a refusal is; conflicts have their cause in the message only.
pub(super) fn refusal(status: &Status) -> Reply {
    let details = status.details.as_ref();
    let caused = |reason: &str| {
        let mut causes = details.into_iter().flat_map(|details| &details.causes);
        causes.any(|cause| cause.reason == reason)
    };
    let message = status.message.clone();
    match (status.code, &*status.reason) {
        (404, _) => Reply::NotFound,
        (409, "AlreadyExists") => Reply::AlreadyExists,
        (409, _) => conflict(&message).map_or(Reply::Other(message), Reply::Conflict),
        (410, _) => Reply::Gone,
        (400 | 422, _) => Reply::Invalid(message),
        (429, _) => Reply::TooManyRequests {
            retry_after_s: details.map_or(0, |details| details.retry_after_seconds.into()),
            by_budget: caused("DisruptionBudget"),
        },
        (504, _) if caused("ResourceVersionTooLarge") => Reply::TooLarge,
        (500, _) => Reply::InternalError(message),
        (code, reason) => Reply::Other(format!("{code} {reason}: {message}")),
    }
}

fn conflict(message: &str) -> Option<Conflict> {
    let causes = [
        ("the UID in the precondition", Conflict::Uid),
        ("Precondition failed: UID", Conflict::Uid),
        ("the object has been modified", Conflict::Version),
        ("the ResourceVersion in the precondition", Conflict::Version),
        ("Precondition failed: ResourceVersion", Conflict::Version),
        ("is already assigned to node", Conflict::AlreadyBound),
        (
            "is being deleted, cannot be assigned",
            Conflict::BeingDeleted,
        ),
        ("has non-empty .spec.schedulingGates", Conflict::Gated),
    ];
    let found = causes.iter().find(|(text, _)| message.contains(text));
    found.map(|(_, conflict)| *conflict)
}
