//! HAMi's device plugin of the tests against HAMi's own, and what bindings say against it.

use super::{cases, list};
use crate::kube::convert::hami::annotations_of_cards;
use gpu_batch_policies::facts::{CardPart, MigInstance, MigPlacement};
use gpu_batch_testing::{BIND_PHASE, CARD_LOCK, DevicePlugin, Given, NotGiven, ServedPod};
use serde_json::{Value, json};
use std::collections::BTreeMap;

type Annotations = BTreeMap<String, String>;

fn annotations_of(object: &Value) -> Annotations {
    serde_json::from_value(object["metadata"]["annotations"].clone()).unwrap_or_default()
}

/// The places of the containers for which instances are reserved; `None`: the list is broken.
fn reserved(annotations: &Annotations) -> Option<Vec<usize>> {
    let Some(text) = annotations.get("hami.io/vgpu-mig-allocations") else {
        return Some(Vec::new());
    };
    let listed: Value = serde_json::from_str(text).ok()?;
    let place = |of: &Value, key: &str| usize::try_from(of[key].as_u64().unwrap_or(0)).unwrap();
    let places = list(&listed).map(|of| (place(of, "containerIndex"), place(of, "deviceIndex")));
    let mut places: Vec<(usize, usize)> = places.collect();
    places.sort_unstable();
    let is_sound = places.windows(2).all(|pair| pair[0] != pair[1]);
    is_sound.then(|| places.iter().map(|(container, _)| *container).collect())
}

fn served(pod: &Value) -> ServedPod {
    let annotations = annotations_of(pod);
    ServedPod {
        node: pod["spec"]["nodeName"].as_str().map(str::to_owned),
        is_pending: pod["status"]["phase"] == "Pending",
        containers: containers(pod).count(),
        reserved: reserved(&annotations),
        annotations,
    }
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let spec = &pod["spec"];
    list(&spec["initContainers"]).chain(list(&spec["containers"]))
}

fn name(pod: &Value) -> (String, String) {
    let name = ["namespace", "name"].map(|key| pod["metadata"][key].as_str().unwrap().to_owned());
    name.into()
}

fn plugin(input: &Value) -> DevicePlugin {
    let node = &input["node"]["metadata"];
    DevicePlugin {
        node: node["name"].as_str().unwrap().into(),
        lock: node["annotations"][CARD_LOCK].as_str().map(str::to_owned),
        pods: list(&input["pods"])
            .map(|pod| (name(pod), served(pod)))
            .collect(),
        is_mig: input["options"]["operatingMode"] == "mig",
    }
}

/// The annotations that have changed of each pod; null for a pod that is gone.
fn changed(plugin: &DevicePlugin, input: &Value) -> Value {
    let mut changed = json!({});
    for pod in list(&input["pods"]) {
        let (namespace, name) = name(pod);
        let key = format!("{namespace}/{name}");
        let before = annotations_of(pod);
        let Some(now) = plugin.pods.get(&(namespace, name)) else {
            changed[key] = Value::Null;
            continue;
        };
        let new = now.annotations.iter();
        let new: BTreeMap<_, _> = new
            .filter(|(key, now)| before.get(*key) != Some(*now))
            .collect();
        if !new.is_empty() {
            changed[key] = json!(new);
        }
    }
    changed
}

/// Whether a container gets what HAMi's plugin gives it: cards, memory, power and cache folder.
fn is_given(given: &Given, theirs: &Value, input: &Value) -> bool {
    let envs = &theirs["envs"];
    // What is preferred for a container, or named through mounts, is no part of the annotations.
    let options = &input["options"];
    let are_named =
        options["enableGetPreferredAllocation"] != true && options["deviceListStrategy"].is_null();
    let ids: Vec<&str> = given.cards.iter().map(|card| &*card.0).collect();
    let mut limits = given.cards.iter().enumerate();
    let power = given.cards[0].2.to_string();
    let folder = list(&theirs["mounts"]).find_map(|mount| {
        let path = mount[1].as_str()?;
        path.split_once("/vgpu/containers/")
            .map(|(_, folder)| folder)
    });
    let container = |pod: &Value| {
        let uid = pod["metadata"]["uid"].as_str()?;
        let container = containers(pod).nth(given.container)?;
        Some(format!("{uid}_{}", container["name"].as_str()?))
    };
    let mut folders = list(&input["pods"]).filter_map(container);
    (!are_named || envs["NVIDIA_VISIBLE_DEVICES"] == ids.join(","))
        && limits.all(|(number, (_, memory_mib, _))| {
            envs[format!("CUDA_DEVICE_MEMORY_LIMIT_{number}")] == format!("{memory_mib}m")
        })
        && envs["CUDA_DEVICE_SM_LIMIT"] == power
        && folder.is_none_or(|folder| folders.any(|known| known == folder))
}

/// Follows one sequence; an error is what differs first. Returns how many calls were compared.
fn follow(case: &Value) -> Result<usize, String> {
    let input = &case["input"];
    let mut plugin = plugin(input);
    let mut calls = 0;
    for (call, step) in list(&input["calls"]).zip(list(&case["answer"]["steps"])) {
        if call["op"] == "deletePod" {
            let (namespace, name) = call["pod"].as_str().unwrap().split_once('/').unwrap();
            plugin.pods.remove(&(namespace.to_owned(), name.to_owned()));
        } else if call["devicesIds"].is_array() {
            let asked = list(&call["devicesIds"]).map(|ids| list(ids).count());
            let given = plugin.allocate(&asked.collect::<Vec<usize>>());
            let is_same = match &given {
                Err(NotGiven::Refused(_)) => step["error"].is_string(),
                Err(NotGiven::Panicked) => !step["panic"].is_null(),
                Ok(given) => {
                    let theirs: Vec<&Value> = list(&step["responses"]).collect();
                    let mut pairs = given.iter().zip(&theirs);
                    given.len() == theirs.len()
                        && pairs.all(|(given, theirs)| is_given(given, theirs, input))
                }
            };
            if !is_same {
                return Err(format!("{}: {given:?}, {step}", case["id"]));
            }
            calls += 1;
        }
        let lock = json!(plugin.lock);
        let changed = changed(&plugin, input);
        if lock != step["nodeLock"] || changed != step["podAnnotationsChanged"] {
            return Err(format!("{}: {lock} {changed}, {step}", case["id"]));
        }
    }
    Ok(calls)
}

#[test]
fn the_plugin_of_the_tests_answers_as_hamis_own_does() {
    let cases = cases("allocate", None);
    let (mut calls, mut wrong) = (0, Vec::new());
    for case in &cases {
        match follow(case) {
            Ok(compared) => calls += compared,
            Err(why) => wrong.push(why),
        }
    }
    println!(
        "{calls} calls of the plugin compared, in {} sequences",
        cases.len()
    );
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
    assert!(calls > 2_000);
}

/// What containers get at random, instances of MIG or shares, and nothing for about a third.
fn drawn(random: &mut fastrand::Rng, is_mig: bool) -> Vec<Vec<CardPart>> {
    let mut entries: Vec<Vec<CardPart>> = Vec::new();
    for _ in 0..random.usize(1..=5) {
        let count = random.usize(0..=3);
        let part = |number: usize| {
            let start = u8::try_from(number).unwrap();
            let instance = MigInstance {
                placement: MigPlacement { start, size: 1 },
                profile: "1g.10gb".into(),
            };
            CardPart {
                card: format!("GPU-{number}").into(),
                slots: 1,
                thousandths: 10 * random.u32(0..=100),
                memory_mib: random.u64(1..90_000),
                instances: if is_mig { vec![instance] } else { Vec::new() },
            }
        };
        entries.push((0..count).map(part).collect());
    }
    entries
}

#[test]
fn each_container_gets_from_the_plugin_what_the_binding_says() {
    let mut random = fastrand::Rng::with_seed(20);
    let (mut containers, mut unasked) = (0, 0);
    for round in 0..2_000 {
        let is_mig = round % 2 == 0;
        let entries = drawn(&mut random, is_mig);
        let written = annotations_of_cards("n1", &entries, 1_795_255_200_000);
        let written = written
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        let annotations: Annotations = written.collect();
        let pod = ServedPod {
            node: Some("n1".into()),
            is_pending: true,
            containers: entries.len(),
            reserved: reserved(&annotations),
            annotations,
        };
        let key = ("team".to_owned(), "p".to_owned());
        let mut plugin = DevicePlugin {
            node: "n1".into(),
            lock: Some("2026-11-21T10:00:00Z,team,p".into()),
            pods: [(key.clone(), pod)].into(),
            is_mig,
        };
        for (place, parts) in entries.iter().enumerate() {
            if parts.is_empty() {
                unasked += 1;
                continue;
            }
            let cards = parts.iter().map(|part| {
                let memory_mib = part.memory_mib.cast_signed();
                let percent = i64::from(part.thousandths / 10);
                (part.card.to_string(), memory_mib, percent)
            });
            let expected = Given {
                container: place,
                cards: cards.collect(),
            };
            assert_eq!(
                plugin.allocate(&[parts.len()]),
                Ok(vec![expected]),
                "{entries:?}"
            );
            containers += 1;
        }
        let asks = entries.iter().any(|parts| !parts.is_empty());
        let phase = if asks { "success" } else { "allocating" };
        assert_eq!(plugin.pods[&key].annotations[BIND_PHASE], phase);
        assert_eq!(plugin.lock.is_none(), asks);
    }
    println!("{containers} containers served, {unasked} that ask for nothing passed over");
    assert!(containers > 3_000 && unasked > 1_000);
}
