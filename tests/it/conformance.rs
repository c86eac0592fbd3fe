//! The model of the API server is true: sequences of operations, drawn from seeds, are carried out
//! by `simulator::api_server` and by a real kube-apiserver, and every answer, every object and
//! every watch is compared.
//!
//! ```text
//!  seed -> Sequence -> Operation --> model  --> Answer --+
//!                          |                             +--> Comparison
//!                          +-------> Server --> Reply ---+
//! ```
//!
//! `GPU_BATCH_CONFORMANCE_SEEDS=FROM..TO` runs other seeds than the first 500.

mod compare;
mod manifest;
mod names;
mod objects;
mod reply;
mod sequence;
mod server;
mod watches;

use std::ops::Range;
use std::time::{Instant, SystemTime};

use futures::StreamExt;
use gpu_batch::local::Options;
use gpu_batch_policies::event::{Kind, Object, Outcome, PodSeen};
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::lease::{LeaseRequest, LeaseSeen};
use gpu_batch_simulator::api_server::{Answer, ApiServer, Name, Request};
use gpu_batch_simulator::random::Random;
use http::Method;
use kube::Client;
use serde_json::json;

use crate::cluster;
use compare::{Comparison, same};
use objects::Place;
use reply::Reply;
use sequence::{Operation, Sequence};
use server::Server;
use watches::Watches;

const SEEDS: Range<u64> = 0..500;
/// Sequences that run at the same time.
const PARALLEL: usize = 24;

/// A sequence that has run without a difference so far.
struct Finished {
    seed: u64,
    place: Place,
    model: ApiServer,
    comparison: Comparison,
    log: Vec<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_answers_as_the_real_api_server() {
    let options = Options {
        native_gangs: true,
        ..Options::default()
    };
    let Some(cluster) = cluster::own("conformance", options).await else {
        return;
    };
    cluster.define_kinds().await;
    let start = Instant::now();
    let (seeds, client) = (seeds(), cluster.client());
    prepare(client, &seeds).await;
    let mut watches = Watches::start(client).await;
    let sequences = seeds.clone().map(|seed| run(client.clone(), seed));
    let ended: Vec<_> = futures::stream::iter(sequences)
        .buffer_unordered(PARALLEL)
        .collect()
        .await;
    end(client).await;
    watches.have_heard_of("end").await;
    let mut operations = 0;
    let mut differences = Vec::new();
    for ended in ended {
        let judged = ended.and_then(|mut finished| {
            operations += finished.log.len();
            judge_watches(&mut finished, &watches).map_err(|why| finished.difference(&why))
        });
        differences.extend(judged.err());
    }
    println!(
        "{} sequences, {operations} operations in {:.1?}, {} differences",
        seeds.end - seeds.start,
        start.elapsed(),
        differences.len()
    );
    assert!(
        differences.is_empty(),
        "{} of the seeds {seeds:?} differ; the first:\n{}",
        differences.len(),
        differences[..differences.len().min(5)].join("\n\n")
    );
}

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("GPU_BATCH_CONFORMANCE_SEEDS") else {
        return SEEDS;
    };
    let range = text.split_once("..").and_then(|(from, to)| {
        let range = from.parse().ok()?..to.parse().ok()?;
        (!range.is_empty()).then_some(range)
    });
    range.unwrap_or_else(|| panic!("GPU_BATCH_CONFORMANCE_SEEDS={text} is not FROM..TO"))
}

/// Makes the namespaces first: the API server takes a moment to notice each.
async fn prepare(client: &Client, seeds: &Range<u64>) {
    let ids = seeds.clone().map(|seed| seed.to_string());
    let ids = ids.chain(["end".to_owned()]);
    futures::stream::iter(ids)
        .for_each_concurrent(PARALLEL, async |id| {
            let place = Place::new(&id);
            let body = json!({"metadata": {"name": place.namespace}});
            let server = Server::new(client.clone(), place);
            let path = "/api/v1/namespaces".to_owned();
            let made = server.send(Method::POST, path, &body).await.unwrap();
            assert_eq!(made.status, 201);
        })
        .await;
}

/// One object of each kind, after everything else.
async fn end(client: &Client) {
    let place = Place::new("end");
    let mut server = Server::new(client.clone(), place.clone());
    let names = names::Names::default();
    for kind in Kind::ALL {
        let random = &mut Random::new(1);
        let object = objects::object(place.name(kind, random), &place, random);
        let create = Operation::Ask(Request::Create(object));
        let made = server.perform(&create, &Answer::Done, &names, 0).await;
        assert!(matches!(made, Ok((Reply::Created(_), None))), "{made:?}");
    }
}

/// Runs one sequence to its end or to the first difference.
async fn run(client: Client, seed: u64) -> Result<Finished, String> {
    let mut sequence = Sequence::new(seed);
    let mut server = Server::new(client, sequence.place.clone());
    let mut finished = Finished {
        seed,
        place: sequence.place.clone(),
        model: ApiServer::default(),
        comparison: Comparison::default(),
        log: Vec::new(),
    };
    while let Some(operation) = sequence.next(&finished.model) {
        let answer = finished.step(&mut server, &operation).await?;
        sequence.remember(&answer);
        // An answer that shows nothing: the object is read back.
        if let (Answer::Done, Some(name)) = (&answer, object_of(&operation)) {
            let get = Operation::Ask(Request::Get(name));
            let answer = finished.step(&mut server, &get).await?;
            sequence.remember(&answer);
        }
    }
    Ok(finished)
}

impl Finished {
    async fn step(&mut self, server: &mut Server, operation: &Operation) -> Result<Answer, String> {
        self.log.push(format!("{operation:?}"));
        let now_ms = now_ms();
        let answer = apply(&mut self.model, operation, now_ms);
        let names = &self.comparison.names;
        let performed = server.perform(operation, &answer, names, now_ms).await;
        let took_ms = self::now_ms().saturating_sub(now_ms);
        let slack_ms = &mut self.comparison.slack_ms;
        *slack_ms = (*slack_ms).max(took_ms + 1_000);
        let compared = performed.and_then(|(reply, outcome)| {
            let compared = self.comparison.answers(&answer, &reply);
            let compared = compared.map_err(|why| format!("{why}\n{answer:?}\n{reply:?}"));
            match (compared, outcome) {
                (Ok(()), Some(outcome)) => compare_outcomes(operation, &answer, &outcome),
                (compared, _) => compared,
            }
        });
        match compared {
            Ok(()) => Ok(answer),
            Err(why) => Err(self.difference(&why)),
        }
    }

    fn difference(&self, why: &str) -> String {
        let log = self.log.join("\n  ");
        format!("seed {}:\n  {log}\n{why}", self.seed)
    }
}

/// The object that an operation without much of an answer is about.
fn object_of(operation: &Operation) -> Option<Name> {
    let Operation::Ask(request) = operation else {
        return None;
    };
    let pod = match request {
        Request::Bind(bind) => &bind.pod,
        Request::Evict(evict) => &evict.pod,
        Request::Delete { name, .. } => return Some(name.clone()),
        _ => return None,
    };
    Some(Name::pod(&pod.namespace, &pod.name))
}

fn now_ms() -> UnixMs {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(now.unwrap().as_millis()).unwrap()
}

fn apply(model: &mut ApiServer, operation: &Operation, now_ms: UnixMs) -> Answer {
    match operation.clone() {
        Operation::Ask(request) => model.handle(request, now_ms),
        Operation::Observe(pod) => {
            let name = Name::pod(&pod.namespace, &pod.name);
            model.handle(Request::Get(name), now_ms)
        }
        Operation::SetBudget(name, budget) => {
            model.budgets.insert(name, budget);
            Answer::Done
        }
        Operation::RemoveBudget(name) => match model.budgets.remove(&name) {
            Some(_) => Answer::Done,
            None => Answer::NotFound,
        },
        Operation::DeleteLease => {
            let read = model.handle(Request::Lease(LeaseRequest::Read), now_ms);
            model.delete_lease();
            match read {
                Answer::Lease(_) => Answer::Done,
                answer => answer,
            }
        }
    }
}

/// What the shell makes of the real answer is what the engine is to hear of the model's.
fn compare_outcomes(operation: &Operation, answer: &Answer, real: &Outcome) -> Result<(), String> {
    let expected = match (operation, answer) {
        (Operation::Observe(pod), Answer::Found(stored)) => {
            Outcome::Observed(match &stored.object {
                Object::Pod(facts) if facts.uid == pod.uid => {
                    facts.node.clone().map_or(PodSeen::Unbound, PodSeen::Bound)
                }
                _ => PodSeen::Gone,
            })
        }
        (Operation::Observe(_), Answer::NotFound) => Outcome::Observed(PodSeen::Gone),
        (Operation::Ask(Request::Lease(LeaseRequest::Read)), Answer::NotFound) => {
            Outcome::Lease(LeaseSeen {
                resource_version: None,
                holder: "".into(),
                transitions: 0,
                duration_ms: 0,
            })
        }
        // The lease itself is compared already, and messages are the API server's own.
        (_, Answer::Lease(_)) if matches!(real, Outcome::Lease(_)) => return Ok(()),
        (
            _,
            Answer::Invalid(_)
            | Answer::TooManyRequests {
                by_budget: true, ..
            },
        ) if matches!(real, Outcome::Refused { .. }) => return Ok(()),
        (_, Answer::Created(_) | Answer::Found(_) | Answer::Done) => Outcome::Done,
        (_, Answer::NotFound) => Outcome::NotFound,
        (_, Answer::AlreadyExists | Answer::Conflict(_)) => Outcome::Conflict,
        _ => Outcome::Unknown,
    };
    same("the outcome", &expected, real)
}

/// What the watches said of a sequence is what the model's say.
fn judge_watches(finished: &mut Finished, watches: &Watches) -> Result<(), String> {
    for kind in Kind::ALL {
        let watch = Request::Watch { kind, after: 0 };
        let Answer::Changes { changes, .. } = finished.model.handle(watch, 0) else {
            return Err("the model forgot what happened".into());
        };
        let heard = watches.take(kind, &finished.place.id);
        let compared = finished.comparison.changes(&changes, &heard);
        compared.map_err(|why| format!("the watch of {kind:?}: {why}"))?;
    }
    Ok(())
}
