//! The three-tier network of Alibaba's Lingjun cluster (Cao et al., Crux, SIGCOMM 2024): gangs are
//! kept below as few switches as possible, beside first-fit and random. The file lies outside of
//! the repository.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "shared/public_traces.rs"]
mod public_traces;

use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::{NodeFacts, TopologyConstraint, Uid};
use gpu_batch_simulator::generate::profile::Like;
use gpu_batch_simulator::generate::{self, GPUS_PER_NODE, Scale, generate};
use gpu_batch_simulator::jobs::nearness::{Choice, Network, measure};
use gpu_batch_simulator::objects::{node, pod, pod_group};
use gpu_batch_simulator::timeline::{Moment, Timeline, undisturbed};
use std::collections::{BTreeMap, BTreeSet};

fn network() -> Network {
    Network::read_lingjun(&public_traces::file("lingjun/topo.csv")).unwrap()
}

fn host_name(host: usize) -> String {
    format!("host-{host:03}")
}

fn world(network: &Network) -> Vec<Object> {
    let hosts = 0..network.hosts();
    let node = |host: usize| node(&host_name(host), Uid(1 + host as u128), 128, 8, &[]);
    let mut nodes: Vec<NodeFacts> = hosts.map(node).collect();
    let topology = network.label(&mut nodes);
    nodes
        .into_iter()
        .map(Object::Node)
        .chain([topology])
        .collect()
}

/// A gang of pods that take a host each.
fn gang(members: u32, near: &TopologyConstraint) -> Vec<Event> {
    let mut group = pod_group("g", Uid(2 << 64), 0, members);
    group.topology = Some(near.clone());
    let mut events = vec![Object::PodGroup(group).into()];
    events.extend((0..members).map(|member| {
        let uid = Uid(3 << 64 | u128::from(member));
        let mut pod = pod(&format!("g-{member}"), uid, 0, 1, 8);
        pod.pod_group = Some("g".into());
        Object::Pod(pod).into()
    }));
    events
}

fn required(level: &str) -> TopologyConstraint {
    TopologyConstraint {
        required: Some(level.into()),
        ..TopologyConstraint::default()
    }
}

fn preferred(level: &str) -> TopologyConstraint {
    TopologyConstraint {
        preferred: Some(level.into()),
        ..TopologyConstraint::default()
    }
}

/// How many hosts are below each switch of a level; switches are their whole path.
fn below(network: &Network, level: usize) -> BTreeMap<&[String], usize> {
    let mut below: BTreeMap<&[String], usize> = BTreeMap::new();
    for host in 0..network.hosts() {
        *below.entry(&network.path(host)[..=level]).or_default() += 1;
    }
    below
}

/// The switches of the lowest tier that the bound pods are below.
fn switches<'a>(network: &'a Network, moment: &Moment) -> BTreeSet<&'a [String]> {
    let hosts: BTreeMap<String, usize> = (0..network.hosts()).map(|h| (host_name(h), h)).collect();
    let bound = moment.bound.iter();
    bound.map(|bind| network.path(hosts[&*bind.node])).collect()
}

#[test]
fn the_network_is_the_one_that_was_published() {
    let network = network();
    assert_eq!(network.hosts(), 847);
    let numbers = [0, 1, 2].map(|level| below(&network, level).len());
    assert_eq!(numbers, [1, 3, 119]);
    assert_eq!(network.racks(), 119);
}

#[test]
fn a_gang_is_below_as_few_switches_as_possible() {
    let network = network();
    let largest = below(&network, 2).into_values().max().unwrap();
    let largest = u32::try_from(largest).unwrap();
    let run = |members, near: &TopologyConstraint| {
        let mut timeline = Timeline::new(undisturbed(), 0, world(&network));
        timeline.advance(0, gang(members, near))
    };
    for members in [1, 2, largest] {
        let moment = run(members, &required("asw"));
        assert_eq!(moment.bound.len(), members as usize);
        assert_eq!(switches(&network, &moment).len(), 1);
    }
    assert_eq!(run(largest + 1, &required("asw")).bound.len(), 0);
    // Where one switch is too small: the largest ones of one PSW, in which it fits.
    let members = 3 * largest;
    let moment = run(members, &preferred("asw"));
    assert_eq!(moment.bound.len(), members as usize);
    let found = switches(&network, &moment);
    let middle: BTreeSet<&[String]> = found.iter().map(|path| &path[..2]).collect();
    assert_eq!(middle.len(), 1, "{found:?}");
    let psw = middle.first().unwrap();
    let mut sizes: Vec<usize> = below(&network, 2)
        .into_iter()
        .filter(|(path, _)| path.starts_with(psw))
        .map(|(_, hosts)| hosts)
        .collect();
    sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
    let mut sum = 0;
    let fewest = sizes.iter().take_while(|size| {
        let more = sum < members as usize;
        sum += **size;
        more
    });
    assert_eq!(found.len(), fewest.count());
}

/// Eight days; `gpu-batch bench simulate --filter lingjun` has the month.
#[test]
fn gangs_are_nearer_than_with_first_fit_or_random() {
    let network = network();
    let gpus = u32::try_from(network.hosts()).unwrap() * GPUS_PER_NODE;
    let trace = generate(&generate::Settings {
        like: Like::Helios,
        seed: 1,
        days: 8,
        scale: Scale::Cluster {
            gpus: Some(gpus),
            load_percent: 85,
        },
        queues: Some(1),
    })
    .unwrap();
    let run = |choice| measure(&trace.jobs, &network, choice);
    let ours = run(Choice::Engine);
    assert_eq!(ours.started, trace.jobs.jobs.len() as u64);
    for other in [Choice::FirstFit, Choice::Random(1)].map(run) {
        assert_eq!(other.gangs, ours.gangs);
        assert!(
            ours.together > 10 * other.together && 2 * ours.racks < other.racks,
            "{ours:?} {other:?}"
        );
        assert!(
            2 * ours.open_in_rack_ms > 3 * other.open_in_rack_ms,
            "{ours:?} {other:?}"
        );
    }
    // Of a hundred gangs four need more than one switch, and the cluster is nearly full.
    assert!(100 * ours.together > 80 * ours.gangs, "{ours:?}");
}
