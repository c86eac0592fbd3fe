//! A cluster and its work, drawn from a seed: small, so that every corner is met often.
//!
//! In half of the worlds some gangs have trees of sub-groups (`trees`). In a fifth of all worlds
//! past use counts (`past`), and in a fourth disruption budgets guard pods (`budgets`). In worlds
//! of their own, evicting takes patience (`farewells`), pods have rules about other pods
//! (`related`), kube-scheduler chooses nodes (`extended`), gangs are promised starts (`expected`),
//! pods have volumes (`volumes`), or disks (`disks`), GPUs fail (`ailing`), HAMi shares cards
//! (`sharing`), or kubelets align pods to NUMA nodes (`aligned`).

mod ailing;
mod aligned;
mod budgets;
mod disks;
mod expected;
mod extended;
mod farewells;
mod past;
mod related;
mod sharing;
mod trees;
mod volumes;
mod work;

pub(crate) use ailing::{ail, health};
pub(crate) use aligned::align;
pub(crate) use budgets::guard;
pub(crate) use disks::equip;
pub(crate) use expected::{expect, order_of, orderly};
pub(crate) use extended::extend;
pub(crate) use farewells::{linger, protect};
pub(crate) use past::{Later, Past, past};
pub(crate) use related::relate;
pub(crate) use sharing::{Part, share};
pub(crate) use trees::grow;
pub(crate) use volumes::furnish;
pub(crate) use work::{Arrival, arrivals};

use crate::cluster::Cluster;
use crate::objects::{GPU, NAMESPACE, node, topology};
use crate::random::Random;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    CARD, LabelSelector, NamespaceFacts, PriorityClassFacts, QueueFacts, QueueResource, Uid, UnixMs,
};

/// The labels of nodes that make domains.
pub(crate) const LEVELS: [&str; 2] = ["zone", "rack"];
/// The leaf queues. The queue `research` is above the first two.
pub(crate) const QUEUES: [&str; 4] = ["red", "blue", "green", "default"];
/// A label that some pods select.
pub(crate) const DISK: &str = "disk";
/// A label of pods, and its values.
const APP: &str = "example.com/app";
const APPS: [&str; 2] = ["train", "serve"];

/// The UID of an object that is to be created: the API server sets the real one.
const NONE: Uid = Uid(0);

/// Fills a cluster with the objects that exist before work arrives.
pub(crate) fn build(cluster: &mut Cluster, random: &mut Random, now_ms: UnixMs) {
    let mut objects = vec![
        Object::Namespace(NamespaceFacts {
            name: NAMESPACE.into(),
            uid: NONE,
            labels: vec![("team".into(), "vision".into())],
            problems: Vec::new(),
        }),
        Object::Topology(topology("default", NONE, &LEVELS)),
        Object::Topology(topology("zones", NONE, &LEVELS[..1])),
    ];
    for (name, value) in [("low", -10), ("high", 100)] {
        objects.push(Object::PriorityClass(PriorityClassFacts {
            name: name.into(),
            value,
            never_preempts: false,
        }));
    }
    objects.extend(queues(random).into_iter().map(Object::Queue));
    for number in 0..random.between(2, 7) {
        let zone = format!("z{}", random.below(2));
        let rack = format!("r{}", random.below(3));
        let mut labels = vec![("zone", zone.as_str()), ("rack", rack.as_str())];
        labels.truncate(usize::try_from(random.between(0, 5)).unwrap_or(2));
        if random.percent(40) {
            labels.push((DISK, "fast"));
        }
        let gpus = *random.pick(&[0, 2, 4, 8, 8]);
        let name = format!("n{number}");
        let facts = node(&name, NONE, random.between(4, 16), gpus, &labels);
        objects.push(Object::Node(facts));
    }
    for object in objects {
        cluster.put(object, now_ms);
    }
}

fn queues(random: &mut Random) -> Vec<QueueFacts> {
    let mut queues = Vec::new();
    for name in ["research", "red", "blue", "green"] {
        let mut facts = QueueFacts::new(NONE, name);
        if matches!(name, "red" | "blue") {
            facts.parent = Some("research".into());
        }
        facts.priority = i32::from(random.percent(20));
        if random.percent(50) {
            facts.resources.push(entry(GPU, CARD, random));
        }
        if random.percent(20) {
            facts.resources.insert(0, entry("cpu", 1_000, random));
        }
        if name == "green" && random.percent(50) {
            facts.namespace_selector = Some(LabelSelector {
                match_labels: vec![("team".into(), "vision".into())],
                ..LabelSelector::default()
            });
        }
        queues.push(facts);
    }
    queues
}

fn entry(name: &str, unit: u64, random: &mut Random) -> QueueResource {
    QueueResource {
        name: name.into(),
        product: None,
        quota: random.below(8) * unit,
        limit: random.percent(50).then(|| random.between(8, 24) * unit),
        weight: u16::try_from(random.below(4)).unwrap_or(1),
    }
}
