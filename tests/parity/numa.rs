//! Kubelets reject the pods that gpu-batch expects them to reject, and no others: pods that come to
//! a generated node, one after the other.
//!
//! Each pod is judged twice. With a *fresh* object, which has what each NUMA node has free by then,
//! the verdicts are equal, unless a container of the pod got something from several NUMA nodes and
//! another follows. Which devices the first gets the kubelet leaves to chance, so all that it could
//! have got counts as taken, and the pod may wait, which is counted and bounded. With the object of
//! the *empty* node the engine itself keeps count of what earlier pods got; where these got
//! something from several NUMA nodes, or took CPUs that an init container had, it may reject more,
//! or may be wrong, which is counted and bounded.

use std::collections::BTreeMap;

use gpu_batch::kube::convert::{Converter, Watched};
use gpu_batch::kube::objects::{Node, NodeResourceTopology, Pod};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::settings::{Leadership, Settings};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::families::draw::Draw;
use crate::oracle::{Answer, Oracle};
use crate::{cases, seed};

/// When every object is seen.
const NOW_MS: u64 = 1_795_255_200_000;
/// What the device plugins of a node give out.
const DEVICES: [&str; 2] = ["example.com/nic", "nvidia.com/gpu"];
/// The reason of a kubelet that cannot align a pod.
const MISALIGNED: &str = "TopologyAffinityError";
/// A lie of the oracle.
const LIE: &str = "Lie";

/// A node and the pods that come to it, as the oracle takes them.
fn case(seed: u64, number: u64) -> Value {
    let draw = &mut Draw::new(seed, number);
    let count = 1 + draw.below(4);
    let mut first = 1;
    let cells = draw.several(count, |draw| {
        let mut devices = BTreeMap::new();
        for name in DEVICES {
            // Of a resource that no plugin gives out the Topology Manager knows nothing.
            devices.insert(name, first + draw.below(5 - first));
        }
        first = 0;
        json!({"cpus": 2 + draw.below(7), "devices": devices})
    });
    let policies = ["single-numa-node", "restricted", "best-effort"];
    // `best-effort` rejects nothing.
    let known = if draw.percent(90) { 2 } else { 3 };
    let policy = *draw.pick(&policies[..known]);
    let scope = *draw.pick(&["container", "pod"]);
    let is_static = draw.percent(70);
    let pods = 1 + draw.below(6);
    let mut index = 0;
    let pods = draw.several(pods, |draw| {
        index += 1;
        pod(draw, index)
    });
    json!({"numa": {"policy": policy, "scope": scope, "static": is_static, "cells": cells,
                    "pods": pods}})
}

fn pod(draw: &mut Draw, index: u64) -> Value {
    let is_guaranteed = draw.percent(70);
    let init = if draw.percent(30) { 2 } else { 0 };
    let init = draw.fewer(init + 1, |draw| {
        let mut container = container(draw, is_guaranteed);
        if draw.percent(40) {
            container["restartPolicy"] = "Always".into();
        }
        container
    });
    let main = 1 + draw.below(3);
    let main = draw.several(main, |draw| container(draw, is_guaranteed));
    let named = |stem: &str, containers: Vec<Value>| -> Vec<Value> {
        let containers = containers.into_iter().enumerate();
        let named = containers.map(|(number, mut container)| {
            container["name"] = format!("{stem}{number}").into();
            container
        });
        named.collect()
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": format!("p{index}"), "namespace": "default",
                     "creationTimestamp": format!("2026-11-01T10:00:{index:02}Z")},
        "spec": {"schedulerName": "gpu-batch", "initContainers": named("i", init),
                 "containers": named("c", main)},
    })
}

fn container(draw: &mut Draw, is_guaranteed: bool) -> Value {
    let mut limits = json!({});
    for name in DEVICES {
        if draw.percent(50) {
            limits[name] = (1 + draw.below(5)).to_string().into();
        }
    }
    let cpu = match draw.percent(80) {
        true => (1 + draw.below(5)).to_string(),
        false => "1500m".to_owned(),
    };
    let mut requests = limits.clone();
    requests["cpu"] = cpu.clone().into();
    requests["memory"] = "1Gi".into();
    if is_guaranteed {
        limits["cpu"] = cpu.into();
        limits["memory"] = "1Gi".into();
    }
    json!({"image": "none", "resources": {"limits": limits, "requests": requests}})
}

/// The node with all that its NUMA nodes have of devices, and more than enough of everything else.
fn node(numa: &Value) -> Value {
    let mut allocatable = json!({"cpu": "1000", "memory": "1000Gi", "pods": "110"});
    for name in DEVICES {
        let cells = numa["cells"].as_array().unwrap().iter();
        let count: u64 = cells
            .map(|cell| cell["devices"][name].as_u64().unwrap())
            .sum();
        allocatable[name] = count.to_string().into();
    }
    json!({"metadata": {"name": "n"}, "status": {
        "allocatable": allocatable, "capacity": allocatable,
        "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// What an exporter says when each NUMA node has so much free.
fn exported(numa: &Value, free: &[BTreeMap<String, u64>]) -> Value {
    let cells = numa["cells"].as_array().unwrap().iter();
    let zone = |(number, (cell, free)): (usize, (&Value, &BTreeMap<String, u64>))| {
        let mut resources = Vec::new();
        for (name, available) in free {
            let capacity = match &**name {
                "cpu" => &cell["cpus"],
                name => &cell["devices"][name],
            };
            let capacity = capacity.as_u64().unwrap();
            if capacity > 0 {
                resources.push(json!({
                    "name": name, "capacity": capacity.to_string(),
                    "allocatable": capacity.to_string(),
                    "available": available.to_string()}));
            }
        }
        json!({"name": format!("node-{number}"), "type": "Node", "resources": resources})
    };
    json!({
        "metadata": {"name": "n"},
        "attributes": [{"name": "topologyManagerPolicy", "value": numa["policy"]},
                       {"name": "topologyManagerScope", "value": numa["scope"]}],
        "zones": cells.zip(free).enumerate().map(zone).collect::<Vec<_>>(),
    })
}

fn seen<T: Watched + DeserializeOwned>(object: &Value, converter: &mut Converter) -> Object {
    let decoded: T = serde_json::from_value(object.clone()).unwrap();
    decoded.convert(converter).unwrap()
}

/// Why a pod may not run on the node, where these pods are already.
fn verdict(numa: &Value, free: &[BTreeMap<String, u64>], there: &[&Value], pod: &Value) -> String {
    let converter = &mut Converter::new("gpu-batch", NOW_MS);
    let mut objects = vec![
        seen::<NodeResourceTopology>(&exported(numa, free), converter),
        seen::<Node>(&node(numa), converter),
    ];
    for pod in there {
        let mut bound = (*pod).clone();
        bound["spec"]["nodeName"] = "n".into();
        objects.push(seen::<Pod>(&bound, converter));
    }
    let asked = seen::<Pod>(pod, converter);
    let uid = asked.uid().unwrap();
    objects.push(asked);
    let mut engine = Engine::new(Settings {
        // An engine that does not lead places nothing.
        leadership: Leadership::Elected(gpu_batch_policies::lease::LeaseSettings {
            identity: "parity".into(),
            duration_ms: 15_000,
            renew_deadline_ms: 10_000,
            retry_ms: 2_000,
        }),
        ..Settings::default()
    });
    engine.step(NOW_MS, Event::lists(objects));
    assert_eq!(engine.audit(), Vec::<String>::new());
    let verdicts = engine.verdicts(uid).unwrap();
    verdicts["n"].clone().unwrap_or_default()
}

/// What came of all pods of some cases.
#[derive(Debug, Default)]
struct Counts {
    admitted: usize,
    rejected: usize,
    /// The kubelet rejected the pod for another reason than its NUMA nodes.
    failed: usize,
    /// Pods that would wait although the kubelet admits them, because it is not known what their
    /// own containers get of several NUMA nodes.
    split_waits: usize,
    /// With the object of the empty node: pods that would wait although the kubelet admits them.
    stale_waits: usize,
    /// With the object of the empty node: pods that the kubelet rejects although they would be
    /// bound.
    stale_rejected: usize,
    differences: Vec<String>,
}

fn compare(case: &Value, answer: &Answer, counts: &mut Counts) {
    let numa = &case["numa"];
    let empty = &answer.steps[0].free;
    let mut there: Vec<&Value> = Vec::new();
    let pods = numa["pods"].as_array().unwrap();
    for (step, pod) in answer.steps.iter().zip(pods) {
        let is_admitted = step.verdict.is_empty();
        if !is_admitted && step.verdict != MISALIGNED && step.verdict != LIE {
            counts.failed += 1;
            continue;
        }
        let fresh = verdict(numa, &step.free, &there, pod);
        if is_admitted && step.split && !fresh.is_empty() {
            counts.split_waits += 1;
        } else if fresh.is_empty() != is_admitted {
            let (told, name) = (&step.verdict, &pod["metadata"]["name"]);
            let words = format!("{name}: `{fresh}`, and the kubelet says `{told}` of {case}");
            counts.differences.push(words);
            // What follows is about another node.
            return;
        }
        let stale = verdict(numa, empty, &there, pod);
        counts.stale_waits += usize::from(is_admitted && !stale.is_empty());
        counts.stale_rejected += usize::from(!is_admitted && stale.is_empty());
        match is_admitted {
            true => {
                counts.admitted += 1;
                there.push(pod);
            }
            false => counts.rejected += 1,
        }
    }
}

/// Compares so many cases. `None` without an oracle.
fn compare_all(seed: u64, count: u64, lie_every: usize) -> Option<Counts> {
    let mut oracle = Oracle::start(lie_every)?;
    let cases: Vec<Value> = (0..count).map(|number| case(seed, number)).collect();
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let answers = oracle.ask_all(&lines);
    let mut counts = Counts::default();
    for (case, answer) in cases.iter().zip(&answers) {
        compare(case, answer, &mut counts);
    }
    Some(counts)
}

#[test]
fn kubelets_align_the_pods_that_they_are_expected_to_align() {
    let (seed, count) = (seed(), cases() / 5);
    let Some(counts) = compare_all(seed, count, 0) else {
        return;
    };
    let Counts {
        admitted,
        rejected,
        failed,
        split_waits,
        stale_waits,
        stale_rejected,
        differences,
    } = counts;
    eprintln!(
        "{count} nodes of GPU_BATCH_SEED={seed}: {admitted} pods admitted, {rejected} rejected, \
         {failed} failed otherwise; {split_waits} wait because it is not known what their \
         containers get; from the empty node {stale_waits} wait and {stale_rejected} \
         are rejected unforeseen"
    );
    for difference in differences.iter().take(8) {
        eprintln!("{difference}");
    }
    assert_eq!(
        differences.len(),
        0,
        "differences, of which the first are above; seed {seed}"
    );
    let judged = admitted + rejected;
    assert!(
        admitted * 5 > judged && rejected * 5 > judged,
        "most pods fare alike"
    );
    assert!(failed * 20 <= judged, "too many pods are not judged");
    assert!(
        split_waits * 100 <= judged && stale_waits * 20 <= judged && stale_rejected * 50 <= judged,
        "counts go astray"
    );
}

/// The comparison is worth nothing if it cannot fail.
#[test]
fn every_lie_about_numa_nodes_is_found() {
    let Some(counts) = compare_all(seed(), 200, 1) else {
        return;
    };
    // A lie about a pod that fails otherwise may be believed.
    let found = counts.differences.len();
    assert!(found >= 190, "{found} of 200 lies");
}
