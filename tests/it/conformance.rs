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
//! The scheduler's own operations go through the shells, the simulator's and the live one: their
//! requests and what they make of the answers are compared, too, so that the two tables of outcomes
//! are one.
//!
//! `GPU_BATCH_CONFORMANCE_SEEDS=FROM..TO` runs other seeds than the first 500.
//!
//! It can fail. Each of these wrong facts was put into the model, and of the first 500 sequences so
//! many showed it:
//!
//! | wrong fact | sequences |
//! |---|---|
//! | a pod may be bound again to its node | 27 |
//! | a binding does not compare the UID | 30 |
//! | the eviction of a pod that does not run asks its budgets | 13 |
//! | an eviction compares the UID before it asks the budgets | 1 |
//! | a deletion does not compare the UID | 9 |
//! | the grace of a pod that leaves can be made longer | 4 |
//! | a status counts as a generation | 13 |
//! | a write that changes nothing takes a version | 113 |
//! | watches lose every seventh change | 154 |
//! | an old list shows what is there now | 51 |
//! | the lease is replaced whatever its version | 55 |
//! | a conflict means that it was done | 171 |

mod compaction;
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
use gpu_batch::lab::local::Options;
use gpu_batch_policies::command::Action;
use gpu_batch_policies::facts::UnixMs;
use gpu_batch_policies::lease::LeaseCall;
use gpu_batch_simulator::api_server::{Answer, ApiServer, Name, Request};
use gpu_batch_simulator::client;
use gpu_batch_simulator::random::Random;
use http::Method;
use kube::Client;
use serde_json::json;

use crate::cluster;
use compare::{Comparison, outcomes};
use objects::Place;
use reply::Reply;
use sequence::{Operation, Sequence};
use server::Server;
use watches::Watches;

const SEEDS: Range<u64> = 0..500;
/// Sequences that run at the same time.
const PARALLEL: usize = 24;

/// A sequence that has run without a difference so far.
struct Run {
    place: Place,
    model: ApiServer,
    server: Server,
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
    let ids = seeds.clone().map(|seed| seed.to_string());
    prepare(client, ids.chain(["end".to_owned()])).await;
    let mut watches = Watches::start(client).await;
    let sequences = seeds.clone().map(|seed| {
        let client = client.clone();
        async move { (seed, run(client, seed).await) }
    });
    let mut ended: Vec<_> = futures::stream::iter(sequences)
        .buffer_unordered(PARALLEL)
        .collect()
        .await;
    ended.sort_by_key(|(seed, _)| *seed);
    end(client).await;
    watches.have_heard_of("end").await;
    let mut operations = 0;
    let mut differences = Vec::new();
    for (_, ended) in ended {
        let judged = ended.and_then(|mut run| {
            operations += run.log.len();
            judge_watches(&mut run, &watches).map_err(|why| run.difference(&why))
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
async fn prepare(client: &Client, ids: impl IntoIterator<Item = String>) {
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
    for kind in objects::kinds() {
        let random = &mut Random::new(1);
        let object = objects::object(place.name(kind, random), &place, random);
        let create = Operation::Ask(Request::Create(object));
        let made = server.perform(&create, &Answer::Done, &names, 0).await;
        assert!(matches!(made, Ok((Reply::Created(_), None))), "{made:?}");
    }
}

/// Runs one sequence to its end or to the first difference.
async fn run(client: Client, seed: u64) -> Result<Run, String> {
    let mut sequence = Sequence::new(seed);
    let mut run = Run::new(client, sequence.place.clone());
    while let Some(operation) = sequence.next(&run.model) {
        let answer = run.step(&operation).await?;
        sequence.remember(&answer);
        // An answer that shows nothing: the object is read back.
        if let (Answer::Done, Some(name)) = (&answer, object_of(&operation)) {
            let answer = run.step(&Operation::Ask(Request::Get(name))).await?;
            sequence.remember(&answer);
        }
    }
    Ok(run)
}

impl Run {
    fn new(client: Client, place: Place) -> Self {
        Self {
            server: Server::new(client, place.clone()),
            place,
            model: ApiServer::default(),
            comparison: Comparison::default(),
            log: Vec::new(),
        }
    }

    async fn step(&mut self, operation: &Operation) -> Result<Answer, String> {
        self.log.push(format!("{operation:?}"));
        let now_ms = now_ms();
        let answer = apply(&mut self.model, operation, now_ms);
        let names = &self.comparison.names;
        let server = &mut self.server;
        let performed = server.perform(operation, &answer, names, now_ms).await;
        let took_ms = self::now_ms().saturating_sub(now_ms);
        let slack_ms = &mut self.comparison.slack_ms;
        *slack_ms = (*slack_ms).max(took_ms + 1_000);
        self.comparison.lasted_ms += took_ms;
        let compared = performed.and_then(|(reply, outcome)| {
            let compared = self.comparison.answers(&answer, &reply);
            let compared = compared.and_then(|()| match (operation, &outcome) {
                (Operation::Act(action), Some(real)) => outcomes(action, &answer, &reply, real),
                _ => Ok(()),
            });
            compared.map_err(|why| format!("{why}\n{answer:?}\n{reply:?}"))
        });
        match compared {
            Ok(()) => Ok(answer),
            Err(why) => Err(self.difference(&why)),
        }
    }

    fn difference(&self, why: &str) -> String {
        let log = self.log.join("\n  ");
        format!("sequence {}:\n  {log}\n{why}", self.place.id)
    }
}

/// The object that an operation without much of an answer is about.
fn object_of(operation: &Operation) -> Option<Name> {
    let pod = match operation {
        Operation::Act(Action::Bind(bind)) => &bind.pod,
        Operation::Act(Action::Evict(evict)) => &evict.pod,
        Operation::Ask(Request::Delete { name, .. }) => return Some(name.clone()),
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
        Operation::Act(action) => model.handle(client::request(&action), now_ms),
        Operation::Ask(request) => model.handle(request, now_ms),
        Operation::DeleteLease => {
            let read = model.handle(Request::Lease(LeaseCall::Read), now_ms);
            model.delete_lease();
            match read {
                Answer::Lease(_) => Answer::Done,
                answer => answer,
            }
        }
    }
}

/// What the watches said of a sequence is what the model's say.
fn judge_watches(run: &mut Run, watches: &Watches) -> Result<(), String> {
    for kind in objects::kinds() {
        let watch = Request::Watch { kind, after: 0 };
        let Answer::Changes { changes, .. } = run.model.handle(watch, 0) else {
            return Err("the model forgot what happened".into());
        };
        let heard = watches.take(kind, &run.place.id);
        let compared = run.comparison.changes(&changes, &heard);
        compared.map_err(|why| format!("the watch of {kind:?}: {why}"))?;
    }
    Ok(())
}
