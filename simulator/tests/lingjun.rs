//! The three-tier network of Alibaba's Lingjun cluster (Cao et al., Crux, SIGCOMM 2024): gangs are
//! kept below as few switches as possible, beside first-fit and random. The file lies outside of
//! the repository.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "shared/public_traces.rs"]
mod public_traces;

use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::{GroupSource, TopologyRequest, Uid};
use gpu_batch_policies::settings::Settings;
use gpu_batch_simulator::objects::{NAMESPACE, node, pod, pod_group, topology};
use gpu_batch_simulator::random::Random;
use gpu_batch_simulator::timeline::{Moment, Timeline};
use std::collections::{BTreeMap, BTreeSet};

const LEVELS: [&str; 3] = ["dsw", "psw", "asw"];
const HOUR_MS: u64 = 3_600_000;
const MONTH_MS: u64 = 30 * 24 * HOUR_MS;

/// A host and the switches above it, farthest first.
struct Host {
    name: String,
    switches: [String; 3],
}

fn hosts() -> Vec<Host> {
    let text = std::fs::read_to_string(public_traces::file("lingjun/topo.csv")).unwrap();
    let mut hosts: Vec<Host> = text
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let [ip, dsw, psw, asw] = fields[..] else {
                panic!("a line without four columns: {line}");
            };
            Host {
                name: ip[..16].to_owned(),
                switches: [dsw, psw, asw].map(str::to_owned),
            }
        })
        .collect();
    hosts.sort_by(|a, b| a.name.cmp(&b.name));
    hosts
}

fn world(hosts: &[Host]) -> Vec<Object> {
    let nodes = hosts.iter().zip(1..).map(|(host, uid)| {
        let labels: Vec<(&str, &str)> = LEVELS
            .into_iter()
            .zip(host.switches.iter().map(String::as_str))
            .collect();
        Object::Node(node(&host.name, Uid(uid), 128, 8, &labels))
    });
    let topology = Object::Topology(topology("default", Uid(1 << 64), &LEVELS));
    nodes.chain([topology]).collect()
}

/// A gang of pods that take a host each.
fn gang(number: u32, members: u32, now_ms: u64, near: &TopologyRequest) -> Vec<Event> {
    let name = format!("g{number}");
    let mut group = pod_group(&name, Uid(2 << 64 | u128::from(number)), now_ms, members);
    group.topology = Some(near.clone());
    let mut events = vec![Object::PodGroup(group).into()];
    events.extend((0..members).map(|member| {
        let uid = pod_uid(number, member);
        let mut pod = pod(&format!("{name}-{member}"), uid, now_ms, 1, 8);
        pod.pod_group = Some(name.as_str().into());
        Object::Pod(pod).into()
    }));
    events
}

fn pod_uid(gang: u32, member: u32) -> Uid {
    Uid(3 << 64 | u128::from(gang) << 16 | u128::from(member))
}

fn required(level: &str) -> TopologyRequest {
    TopologyRequest {
        required: Some(level.into()),
        ..TopologyRequest::default()
    }
}

fn preferred(level: &str) -> TopologyRequest {
    TopologyRequest {
        preferred: Some(level.into()),
        ..TopologyRequest::default()
    }
}

/// How many hosts are below each switch of a level; switches are their whole path.
fn below(hosts: &[Host], level: usize) -> BTreeMap<&[String], usize> {
    let mut below: BTreeMap<&[String], usize> = BTreeMap::new();
    for host in hosts {
        *below.entry(&host.switches[..=level]).or_default() += 1;
    }
    below
}

/// The switches of the lowest tier that the bound pods are below.
fn switches<'a>(hosts: &'a [Host], moment: &Moment) -> BTreeSet<&'a [String]> {
    let by_name: BTreeMap<&str, &Host> = hosts.iter().map(|h| (h.name.as_str(), h)).collect();
    let bound = moment.bound.iter();
    bound
        .map(|bind| &by_name[&*bind.node].switches[..])
        .collect()
}

#[test]
fn the_network_is_the_one_that_was_published() {
    let hosts = hosts();
    assert_eq!(hosts.len(), 847);
    let numbers = [0, 1, 2].map(|level| below(&hosts, level).len());
    assert_eq!(numbers, [1, 3, 119]);
}

#[test]
fn a_gang_is_below_as_few_switches_as_possible() {
    let hosts = hosts();
    let mut largest: Vec<usize> = below(&hosts, 2).into_values().collect();
    largest.sort_unstable();
    let largest = u32::try_from(largest.pop().unwrap()).unwrap();
    let run = |members, near: &TopologyRequest| {
        let mut timeline = Timeline::new(Settings::default(), 0, world(&hosts));
        timeline.advance(0, gang(1, members, 0, near))
    };
    for members in [1, 2, largest] {
        let moment = run(members, &required("asw"));
        assert_eq!(moment.bound.len(), members as usize);
        assert_eq!(switches(&hosts, &moment).len(), 1);
    }
    assert_eq!(run(largest + 1, &required("asw")).bound.len(), 0);
    // Where one switch is too small: the largest ones of one PSW, in which it fits.
    let members = 3 * largest;
    let moment = run(members, &preferred("asw"));
    assert_eq!(moment.bound.len(), members as usize);
    let found = switches(&hosts, &moment);
    let middle: BTreeSet<&[String]> = found.iter().map(|path| &path[..2]).collect();
    assert_eq!(middle.len(), 1, "{found:?}");
    let psw = middle.first().unwrap();
    let mut sizes: Vec<usize> = below(&hosts, 2)
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

/// What the choice of hosts makes of a month.
#[derive(Debug, Default)]
struct Quality {
    gangs: u32,
    /// Gangs of several hosts below one switch.
    together: u32,
    /// Switches of all these gangs.
    spanned: u64,
    /// The free hosts below the emptiest switch, summed over the starts.
    largest: u64,
    starts: u64,
}

impl Quality {
    fn note(&mut self, hosts: &[Host], taken: &[usize], free: &BTreeSet<usize>) {
        let spanned: BTreeSet<&[String]> = taken
            .iter()
            .map(|host| &hosts[*host].switches[..])
            .collect();
        if taken.len() > 1 {
            self.gangs += 1;
            self.together += u32::from(spanned.len() == 1);
            self.spanned += spanned.len() as u64;
        }
        let mut open: BTreeMap<&[String], u64> = BTreeMap::new();
        for host in free {
            *open.entry(&hosts[*host].switches[..]).or_default() += 1;
        }
        self.largest += open.into_values().max().unwrap_or(0);
        self.starts += 1;
    }

    /// Gangs below one switch in per mille; switches a gang and hosts of the largest gang that
    /// would still fit below one switch in hundredths.
    fn figures(&self) -> [u64; 3] {
        [
            1_000 * u64::from(self.together) / u64::from(self.gangs),
            100 * self.spanned / u64::from(self.gangs),
            100 * self.largest / self.starts,
        ]
    }
}

/// A choice of hosts, its free ones, and what each gang holds.
struct Choice {
    free: BTreeSet<usize>,
    held: BTreeMap<u32, Vec<usize>>,
    quality: Quality,
}

impl Choice {
    fn start(&mut self, hosts: &[Host], gang: u32, taken: Vec<usize>) {
        for host in &taken {
            assert!(self.free.remove(host), "a host is taken twice");
        }
        self.quality.note(hosts, &taken, &self.free);
        self.held.insert(gang, taken);
    }

    fn end(&mut self, gang: u32) {
        self.free
            .extend(self.held.remove(&gang).unwrap_or_default());
    }
}

/// Members and hours of a gang.
fn drawn(random: &mut Random) -> (u32, u64) {
    let members = match random.below(100) {
        0..40 => 1,
        40..60 => 2,
        60..75 => 4,
        75..87 => 8,
        87..95 => 16,
        95..99 => 32,
        _ => 64,
    };
    (members, random.between(1, 23))
}

#[test]
fn over_a_month_gangs_are_nearer_than_with_first_fit_or_random() {
    let hosts = hosts();
    let numbers: BTreeMap<&str, usize> = hosts.iter().map(|h| h.name.as_str()).zip(0..).collect();
    let mut random = Random::new(2026);
    let mut other = Random::new(1);
    let mut timeline = Timeline::new(Settings::default(), 0, world(&hosts));
    let mut choices = [(); 3].map(|()| Choice {
        free: (0..hosts.len()).collect(),
        held: BTreeMap::new(),
        quality: Quality::default(),
    });
    let near = preferred("asw");
    let mut gangs: Vec<(u32, u64)> = Vec::new();
    let mut ends: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    let mut next_ms = 0;
    while next_ms < MONTH_MS {
        let now_ms = next_ms;
        next_ms += random.between(1, 2 * HOUR_MS / 11);
        let number = u32::try_from(gangs.len()).unwrap();
        let (members, hours) = drawn(&mut random);
        gangs.push((members, hours));
        let mut events = Vec::new();
        while let Some((_, ended)) = ends.first_key_value().filter(|(at, _)| **at <= now_ms) {
            for gang in ended {
                choices.iter_mut().for_each(|choice| choice.end(*gang));
                let members = 0..gangs[*gang as usize].0;
                let pods = members.map(|member| ObjectKey::Pod(pod_uid(*gang, member)));
                events.extend(pods.map(Event::Deleted));
                let name = format!("g{gang}").into();
                let group = ObjectKey::PodGroup(GroupSource::GpuBatch, NAMESPACE.into(), name);
                events.push(Event::Deleted(group));
            }
            ends.pop_first();
        }
        events.extend(gang(number, members, now_ms, &near));
        let moment = timeline.advance(now_ms, events);
        let mut started: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for bind in &moment.bound {
            let (gang, _) = bind.pod.name[1..].split_once('-').unwrap();
            let hosts = started.entry(gang.parse().unwrap()).or_default();
            hosts.push(numbers[&*bind.node]);
        }
        for (gang, ours) in started {
            let (members, hours) = gangs[gang as usize];
            assert_eq!(ours.len(), members as usize, "a gang starts whole");
            ends.entry(now_ms + hours * HOUR_MS).or_default().push(gang);
            // The others start the same gangs at the same times.
            let first: Vec<usize> = choices[1].free.iter().copied().take(ours.len()).collect();
            let mut open: Vec<usize> = choices[2].free.iter().copied().collect();
            let any = ours.iter().map(|_| {
                let at = other.below(open.len() as u64);
                open.swap_remove(usize::try_from(at).unwrap())
            });
            let any: Vec<usize> = any.collect();
            for (choice, taken) in choices.iter_mut().zip([ours, first, any]) {
                choice.start(&hosts, gang, taken);
            }
        }
    }
    let [ours, first, any] = choices.map(|choice| {
        println!(
            "{:?} of {} starts",
            choice.quality.figures(),
            choice.quality.starts
        );
        choice.quality.figures()
    });
    for others in [first, any] {
        assert!(ours[0] > others[0] && ours[1] < others[1] && ours[2] >= others[2]);
    }
    // Two fifths of them need a whole switch or more.
    assert!(ours[0] > 650, "{ours:?}");
}
