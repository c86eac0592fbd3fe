//! Carries out the operations of a sequence on the real API server: the scheduler's own through the
//! requests of the live shell, the others as whoever makes them would.

use gpu_batch::kube::execute::{self, Answer, LeaseName, Request as HttpRequest, Stamp, exchange};
use gpu_batch_policies::command::{
    Action, Bind, CommandId, Evict, Lift, PodReference, StatusPatch,
};
use gpu_batch_policies::event::{Kind, Outcome};
use gpu_batch_policies::facts::{PodGroupFacts, QueueFacts, UnixMs};
use gpu_batch_policies::lease::LeaseCall;
use gpu_batch_policies::status::{PodGroupStatus, QueueStatus};
use gpu_batch_simulator::api_server::{Answer as ModelAnswer, Expected, Name, Request};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::manifest::{self, collection, path, selector};
use super::names::Names;
use super::objects::{NO_VOLUMES, Place};
use super::reply::{Expecting, Reply, reply};
use super::sequence::Operation;
use super::watches;

const JSON: &str = "application/json";

/// The API server, as one sequence sees it.
pub(super) struct Server {
    client: Client,
    place: Place,
    lease: LeaseName,
    commands: u64,
}

impl Server {
    pub(super) fn new(client: Client, place: Place) -> Self {
        let lease = LeaseName {
            namespace: place.namespace.to_string(),
            name: "leader".into(),
        };
        Self {
            client,
            place,
            lease,
            commands: 0,
        }
    }

    /// Carries out one operation. `model` is what the model answered, of which only the number of
    /// changes is used, to know how long to watch. With a request of the scheduler comes what its
    /// shell makes of the answer.
    pub(super) async fn perform(
        &mut self,
        operation: &Operation,
        model: &ModelAnswer,
        names: &Names,
        now_ms: UnixMs,
    ) -> Result<(Reply, Option<Outcome>), String> {
        let reply = match operation {
            Operation::Act(action) => {
                let (action, expecting) = renamed(action, names);
                let (reply, outcome) = self.act(&action, expecting, now_ms).await?;
                return Ok((reply, Some(outcome)));
            }
            Operation::Ask(request) => self.ask(request, model, names).await?,
            Operation::DeleteLease => {
                let LeaseName { namespace, name } = &self.lease;
                let leases = "/apis/coordination.k8s.io/v1/namespaces";
                let path = format!("{leases}/{namespace}/leases/{name}");
                let answer = self.send(Method::DELETE, path, &Value::Null).await?;
                reply(&answer, Expecting::Word)?
            }
        };
        Ok((reply, None))
    }

    async fn act(
        &mut self,
        action: &Action,
        expecting: Expecting,
        now_ms: UnixMs,
    ) -> Result<(Reply, Outcome), String> {
        self.commands += 1;
        let stamp = Stamp {
            lease: &self.lease,
            instance: "conformance",
            scheduler: "gpu-batch",
            id: CommandId(self.commands),
            acquired_ms: now_ms,
            now_ms,
        };
        let answer = exchange(&self.client, execute::request(action, &stamp)).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let reply = reply(&answer, expecting)?;
        let outcome = execute::outcome(action, Ok(answer));
        match outcome {
            Outcome::Lease(seen) if !matches!(reply, Reply::NotFound) => {
                Ok((Reply::Lease(seen.clone()), Outcome::Lease(seen)))
            }
            outcome => Ok((reply, outcome)),
        }
    }

    async fn ask(
        &self,
        request: &Request,
        model: &ModelAnswer,
        names: &Names,
    ) -> Result<Reply, String> {
        let place = &self.place;
        match request {
            Request::Create(object) => {
                let kind = object.kind();
                let body = manifest::manifest(object, place, names);
                let path = collection(kind, place);
                let answer = self.send(Method::POST, path, &body).await?;
                reply(&answer, Expecting::Object(kind))
            }
            Request::Replace { object, version } => {
                let path = path(&Name::of(object), place);
                let now = self.now(&path).await?;
                let mut body = manifest::replacement(object, place, names, now);
                body["metadata"]["resourceVersion"] = version_text(*version, names);
                let answer = self.send(Method::PUT, path, &body).await?;
                reply(&answer, Expecting::Object(object.kind()))
            }
            Request::ReplaceStatus { object, version } => {
                let path = path(&Name::of(object), place);
                let now = self.now(&path).await?;
                let mut body = manifest::status_replacement(object, place, names, now);
                body["metadata"]["resourceVersion"] = version_text(*version, names);
                let path = format!("{path}/status");
                let answer = self.send(Method::PUT, path, &body).await?;
                reply(&answer, Expecting::Object(object.kind()))
            }
            Request::Delete {
                name,
                expected,
                grace_s,
            } => self.delete(name, *expected, *grace_s, names).await,
            Request::Get(name) => {
                let answer = self
                    .send(Method::GET, path(name, place), &Value::Null)
                    .await?;
                reply(&answer, Expecting::Object(name.kind))
            }
            Request::List { kind, at } => {
                let at = at.map_or_else(String::new, |at| {
                    let version = names.real_version(at);
                    format!("&resourceVersion={version}&resourceVersionMatch=Exact")
                });
                let (path, selector) = (collection(*kind, place), selector(*kind, place));
                let path = format!("{path}?limit=0{selector}{at}");
                let answer = self.send(Method::GET, path, &Value::Null).await?;
                reply(&answer, Expecting::List(*kind))
            }
            Request::Watch { kind, after } => {
                let expected = match model {
                    ModelAnswer::Changes { changes, .. } => changes.len(),
                    _ => 1,
                };
                let (path, selector) = (collection(*kind, place), selector(*kind, place));
                let after = names.real_version(*after);
                let path = format!("{path}?watch=true&resourceVersion={after}{selector}");
                watches::read(&self.client, path, *kind, expected).await
            }
            other => Err(format!("{other:?} is the scheduler's")),
        }
    }

    async fn delete(
        &self,
        name: &Name,
        expected: Expected,
        grace_s: Option<u64>,
        names: &Names,
    ) -> Result<Reply, String> {
        let uid = expected.uid.map(|uid| names.real_uid(uid).to_string());
        let options = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
            "gracePeriodSeconds": grace_s,
            "preconditions": {
                "uid": uid,
                "resourceVersion": version_text(expected.version, names),
            },
        });
        let path = path(name, &self.place);
        let answer = self.send(Method::DELETE, path.clone(), &options).await?;
        if answer.status.is_success() {
            self.finalize(name.kind, path).await?;
        }
        reply(&answer, Expecting::Word)
    }

    /// The object as it is, for whoever changes only a part of it; null where there is none.
    async fn now(&self, path: &str) -> Result<Value, String> {
        let answer = self
            .send(Method::GET, path.to_owned(), &Value::Null)
            .await?;
        if !answer.status.is_success() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer.body).map_err(|error| error.to_string())
    }

    /// What the controllers of namespaces and of native groups do once one is to be deleted and
    /// nothing needs it any more. The model has them act at once.
    async fn finalize(&self, kind: Kind, path: String) -> Result<(), String> {
        let to = match kind {
            Kind::Namespace => format!("{path}/finalize"),
            Kind::NativePodGroup => path.clone(),
            _ => return Ok(()),
        };
        let mut now = self.now(&path).await?;
        if now["metadata"]["deletionTimestamp"].is_null() {
            return Ok(());
        }
        if kind == Kind::Namespace {
            now["spec"]["finalizers"] = json!([]);
        } else {
            now["metadata"]["finalizers"] = json!([]);
        }
        let answer = self.send(Method::PUT, to, &now).await?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&answer.body).into_owned()),
        }
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: String,
        body: &Value,
    ) -> Result<Answer, String> {
        let body = match body {
            Value::Null => Vec::new(),
            body => serde_json::to_vec(body).unwrap(),
        };
        let request = HttpRequest {
            method,
            path,
            content_type: JSON,
            body,
        };
        let answer = exchange(&self.client, request).await;
        answer.map_err(|error| error.to_string())
    }
}

fn version_text(version: Option<u64>, names: &Names) -> Value {
    version.map_or(Value::Null, |version| {
        json!(names.real_version(version).to_string())
    })
}

/// The scheduler's action, with the API server's names, and what its answer carries.
fn renamed(action: &Action, names: &Names) -> (Action, Expecting) {
    let pod = |pod: &PodReference| PodReference {
        uid: names.real_uid(pod.uid),
        ..pod.clone()
    };
    let action = match action {
        Action::Observe(seen) => {
            return (Action::Observe(pod(seen)), Expecting::Object(Kind::Pod));
        }
        Action::PatchStatus(patch) => return patch_renamed(patch, names),
        Action::Bind(bind) => Action::Bind(Bind {
            pod: pod(&bind.pod),
            ..bind.clone()
        }),
        Action::Evict(evict) => Action::Evict(Evict {
            pod: pod(&evict.pod),
            ..evict.clone()
        }),
        Action::Lift(lift) => {
            let (pod, node) = (pod(&lift.pod), lift.node.clone());
            let lift = Action::Lift(Lift { pod, node });
            return (lift, Expecting::Object(Kind::Pod));
        }
        Action::SelectNode(_)
        | Action::KeepVolume(_)
        | Action::LockCards(_)
        | Action::UnlockCards(_) => unreachable!("{NO_VOLUMES}"),
        Action::Lease(request) => {
            let mut request = request.clone();
            if let LeaseCall::Write {
                resource_version: Some(version),
                ..
            } = &mut request
            {
                let real = names.real_version(version.parse().unwrap());
                *version = real.to_string().into();
            }
            Action::Lease(request)
        }
        Action::Publish(announcement) => {
            let mut announcement = announcement.clone();
            announcement.regarding.uid = names.real_uid(announcement.regarding.uid);
            Action::Publish(announcement)
        }
    };
    (action, Expecting::Word)
}

fn patch_renamed(patch: &StatusPatch, names: &Names) -> (Action, Expecting) {
    let mut patch = patch.clone();
    let kind = match &mut patch {
        StatusPatch::PodGroup { source, uid, .. } => {
            *uid = names.real_uid(*uid);
            Kind::from(*source)
        }
        StatusPatch::Queue { uid, .. } => {
            *uid = names.real_uid(*uid);
            Kind::Queue
        }
        StatusPatch::Unscheduled { pod, .. } | StatusPatch::Nominated { pod, .. } => {
            pod.uid = names.real_uid(pod.uid);
            Kind::Pod
        }
    };
    (Action::PatchStatus(patch), Expecting::Object(kind))
}

/// A status as the shell sends it.
pub(super) fn queue_status(facts: &QueueFacts, status: &QueueStatus) -> Value {
    sent(StatusPatch::Queue {
        name: facts.name.clone(),
        uid: facts.uid,
        status: status.clone(),
    })
}

/// The status of a PodGroup as the shell sends it; of a native one only its conditions.
pub(super) fn group_status(facts: &PodGroupFacts, status: &PodGroupStatus) -> Value {
    sent(StatusPatch::PodGroup {
        source: facts.source,
        namespace: facts.namespace.clone(),
        name: facts.name.clone(),
        uid: facts.uid,
        status: status.clone(),
    })
}

fn sent(patch: StatusPatch) -> Value {
    let lease = LeaseName {
        namespace: String::new(),
        name: String::new(),
    };
    let stamp = Stamp {
        lease: &lease,
        instance: "",
        scheduler: "gpu-batch",
        id: CommandId(0),
        acquired_ms: 0,
        now_ms: 0,
    };
    let request = execute::request(&Action::PatchStatus(patch), &stamp);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    match body.get("status") {
        Some(status) => status.clone(),
        // A JSON patch: the UID is tested, then the status is put in.
        None => body[1]["value"].clone(),
    }
}
