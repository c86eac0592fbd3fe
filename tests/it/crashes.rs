//! Crash safety on the real control plane: in the middle of binding 40 gangs a scheduler is killed,
//! stopped or cut off, or etcd stands still. More gangs come after each fault, so that something is
//! left to bind however fast it went.
//!
//! However it went, in the end every gang is whole, no node holds too much, and no pod was ever on
//! two nodes. A [`Witness`] that follows the pods by itself sees to the last.

mod proxy;
mod replica;
mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use futures::StreamExt;
use gpu_batch::lab::local::{Options, Program};
use serde_json::json;

use crate::cluster::{self, Cluster};
use proxy::Proxy;
use replica::Replica;
use witness::Witness;

/// Gangs that are there at first, after one fault, and after two.
const WAITING: usize = 40;
const MORE: usize = 44;
const GANGS: usize = 48;
const PODS: usize = 480;
const RACKS: usize = 5;
const NODES_OF_A_RACK: usize = 16;

/// How long a successor may take to bind, after a leader that gave nothing back: the lease's 15 s,
/// and 5 s for the rest.
const TAKEOVER: Duration = Duration::from_secs(20);

/// Members and GPUs of each. All gangs together leave room on the nodes.
fn shape(number: usize) -> (usize, u32) {
    [(4, 2), (16, 1), (12, 1), (8, 1)][number % 4]
}

/// Every third gang must be in one rack.
fn needs_one_rack(number: usize) -> bool {
    number.is_multiple_of(3)
}

/// A control plane with the nodes, and the first gangs waiting there.
async fn crowd(namespace: &str) -> Option<(Cluster, Witness)> {
    let cluster = cluster::own(namespace, Options::default()).await?;
    cluster.define_kinds().await;
    cluster.racks("default").await;
    let nodes = (0..RACKS * NODES_OF_A_RACK).map(|number| {
        let rack = format!("r{}", number / NODES_OF_A_RACK);
        cluster.node(&format!("{rack}-{number}"), &rack)
    });
    cluster.add_nodes(nodes).await;
    arrive(&cluster, 0..WAITING).await;
    let witness = Witness::start(&cluster);
    Some((cluster, witness))
}

/// Makes the gangs of these numbers.
async fn arrive(cluster: &Cluster, gangs: Range<usize>) {
    let create = async |number| {
        let (members, gpus) = shape(number);
        let topology = needs_one_rack(number).then(|| json!({"required": "rack"}));
        let name = format!("g{number}");
        let spec = json!({"minMember": members, "topology": topology.unwrap_or_default()});
        cluster.group(&name, &spec).await;
        cluster.members(&name, members, gpus, &json!({})).await;
    };
    let gangs = futures::stream::iter(gangs);
    gangs.for_each_concurrent(8, create).await;
}

/// Two replicas, of which the first leads and is amid binding.
async fn leader_and_standby(cluster: &Cluster, witness: &Witness) -> (Replica, Replica) {
    let first = Replica::start(cluster, "a", None);
    // A process that binds has the lease.
    witness.bound(1).await;
    let standby = Replica::start(cluster, "b", None);
    witness.bound(60).await;
    (first, standby)
}

/// What must hold at the end.
async fn check(cluster: &Cluster, witness: &Witness, leader: &Replica) {
    witness.bound(PODS).await;
    let path = format!("/api/v1/namespaces/{}/pods", cluster.namespace);
    let pods = cluster.list(&path).await.unwrap();
    let mut nodes_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut held: BTreeMap<&str, u64> = BTreeMap::new();
    for pod in &pods {
        let gang = pod["metadata"]["labels"]["gpu-batch.io/pod-group"].as_str();
        let node = pod["spec"]["nodeName"].as_str().unwrap();
        nodes_of.entry(gang.unwrap()).or_default().push(node);
        *held.entry(node).or_default() += witness::gpus_of(pod);
    }
    for number in 0..GANGS {
        let name = format!("g{number}");
        let nodes = &nodes_of[&*name];
        assert_eq!(nodes.len(), shape(number).0, "members of {name}");
        let rack = |node: &&str| node.split('-').nth_back(1).unwrap().to_owned();
        let racks: BTreeSet<String> = nodes.iter().map(rack).collect();
        let together = !needs_one_rack(number) || racks.len() == 1;
        assert!(together, "{name} must be in one rack: {nodes:?}");
    }
    for (node, gpus) in &held {
        assert!(*gpus <= 8, "{gpus} GPUs are taken on {node}");
    }
    witness.check();
    for page in ["/debug/audit", "/debug/compare"] {
        assert_eq!(leader.page(page).await, (200, "ok\n".to_owned()), "{page}");
    }
}

#[tokio::test]
async fn a_leader_that_is_killed_amid_binding_is_replaced_by_itself_and_by_a_standby() {
    let Some((cluster, witness)) = crowd("killed").await else {
        return;
    };
    let (first, standby) = leader_and_standby(&cluster, &witness).await;
    drop(first);
    let before = witness.count_at_rest().await;
    arrive(&cluster, WAITING..MORE).await;
    let started = Instant::now();
    let again = Replica::start(&cluster, "a", None);
    witness.bound(before + 1).await;
    let took = started.elapsed();
    eprintln!("killed at {before} binds, bound again {took:?} after its start");

    drop(again);
    let killed = Instant::now();
    let before = witness.count_at_rest().await;
    arrive(&cluster, MORE..GANGS).await;
    witness.bound(before + 1).await;
    let pause = killed.elapsed();
    eprintln!("killed at {before} binds, a standby bound after {pause:?}");
    assert!(pause <= TAKEOVER, "{pause:?}");
    check(&cluster, &witness, &standby).await;
}

#[tokio::test]
async fn a_leader_that_was_stopped_for_20_s_beside_a_standby_binds_nothing_when_it_wakes() {
    let Some((cluster, witness)) = crowd("paused").await else {
        return;
    };
    let (mut first, standby) = leader_and_standby(&cluster, &witness).await;
    first.pause();
    let stopped = Instant::now();
    let before = witness.count_at_rest().await;
    arrive(&cluster, WAITING..GANGS).await;
    witness.bound(before + 1).await;
    let pause = stopped.elapsed();
    eprintln!("stopped at {before} binds, a standby bound after {pause:?}");
    assert!(pause <= TAKEOVER, "{pause:?}");
    tokio::time::sleep(Duration::from_secs(20).saturating_sub(stopped.elapsed())).await;
    first.resume();
    first.ready("standby").await;
    check(&cluster, &witness, &standby).await;
    // Only what was under way when it stopped may have been bound by the other meanwhile.
    let late = first.commands("action=\"bind\",outcome=\"conflict\"").await;
    assert!(
        late <= replica::ACTIONS as u64,
        "{late} binds were sent late"
    );
}

#[tokio::test]
async fn etcd_may_stand_still_for_30_s_amid_binding() {
    let Some((mut cluster, witness)) = crowd("frozen").await else {
        return;
    };
    let scheduler = Replica::start(&cluster, "a", None);
    witness.bound(60).await;
    cluster.control_plane().pause(Program::Etcd);
    tokio::time::sleep(Duration::from_secs(30)).await;
    cluster.control_plane().resume(Program::Etcd);
    let (before, resumed) = (witness.count(), Instant::now());
    arrive(&cluster, WAITING..GANGS).await;
    witness.bound(PODS).await;
    eprintln!(
        "etcd stood still at {before} binds; all bound {:?} later",
        resumed.elapsed()
    );
    check(&cluster, &witness, &scheduler).await;
}

#[tokio::test]
async fn connections_may_be_cut_at_random_and_the_api_server_restarted_amid_binding() {
    let Some((mut cluster, witness)) = crowd("cut").await else {
        return;
    };
    let proxy = Proxy::start(&cluster.kubeconfig, 7).await;
    let scheduler = Replica::start(&cluster, "a", Some(&proxy));
    witness.bound(60).await;
    let kube_apiserver = Program::KubeApiserver;
    cluster
        .control_plane()
        .restart(kube_apiserver)
        .await
        .unwrap();
    let restarted = Instant::now();
    arrive(&cluster, WAITING..GANGS).await;
    witness.bound(PODS).await;
    eprintln!(
        "{} connections cut; all bound {:?} after the restart",
        proxy.calm(),
        restarted.elapsed()
    );
    check(&cluster, &witness, &scheduler).await;
    let unknown = scheduler.commands("outcome=\"unknown\"").await;
    assert!(unknown > 0, "no answer was lost");
}
