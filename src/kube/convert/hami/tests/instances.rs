use super::{cases, list, with_problems};
use crate::kube::convert::hami::allocation::parts;
use crate::kube::convert::hami::instances::{of, written};
use crate::kube::convert::hami::register::cards;
use crate::kube::objects::Pod;
use gpu_batch_policies::facts::{CardClosed, CardPart, MigInstance, MigPlacement};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const INSTANCES: &str = "hami.io/vgpu-mig-allocations";

fn pod(instances: &str, cards: &str) -> Pod {
    let pod = json!({
        "metadata": {"annotations": {
            INSTANCES: instances, "hami.io/vgpu-devices-allocated": cards,
        }},
        "spec": {"initContainers": [{}], "containers": [{}]},
    });
    serde_json::from_value(pod).unwrap()
}

fn instance(profile: &str, start: u8, size: u8) -> MigInstance {
    MigInstance {
        placement: MigPlacement { start, size },
        profile: profile.into(),
    }
}

/// An instance that HAMi has read or chosen.
fn of_hami(value: &Value) -> MigInstance {
    let [start, size] = ["start", "size"].map(|key| value["placement"][key].as_u64().unwrap());
    let profile = value["profile"].as_str().unwrap();
    instance(profile, start.try_into().unwrap(), size.try_into().unwrap())
}

#[test]
fn instances_are_read_as_hami_reads_them() {
    let cases = cases("codec", Some("mig"));
    let (mut read, mut refused, mut stricter) = (0, 0, 0);
    for case in &cases {
        let text = case["input"]["value"].as_str().unwrap();
        let (found, problems) = with_problems(|problems| of(&pod(text, ""), problems));
        let Some(theirs) = case["answer"].get("allocations") else {
            assert_eq!((found.len(), problems.len()), (0, 1), "{case}");
            refused += 1;
            continue;
        };
        if let Some(problem) = problems.first() {
            // HAMi looks at no placement here.
            let message = &*problem.message;
            assert!(
                message.contains("slices from") || message.contains("one place"),
                "{case}"
            );
            stricter += 1;
            continue;
        }
        let mut expected: BTreeMap<Box<str>, Vec<MigInstance>> = BTreeMap::new();
        for one in list(theirs) {
            let card = one["gpuUUID"].as_str().unwrap().into();
            expected.entry(card).or_default().push(of_hami(one));
        }
        expected.values_mut().for_each(|of_card| of_card.sort());
        assert_eq!(found, expected, "{case}");
        read += 1;
    }
    println!("{read} lists read, {refused} refused, {stricter} refused by us alone");
    assert!(read > 50 && refused > 30 && stricter < 20);
}

#[test]
fn instances_are_written_as_hami_writes_them() {
    let mut compared = 0;
    for case in cases("fit", None) {
        for node in case["answer"]["nodes"].as_object().into_iter().flatten() {
            let annotations = &node.1["annotations"];
            let Some(theirs) = annotations[INSTANCES].as_str() else {
                continue;
            };
            let devices = node.1["devices"].as_array().unwrap().iter();
            let entries = devices.map(|entry| {
                let devices = entry.as_array().unwrap().iter();
                let part = |device: &Value| CardPart {
                    card: device["uuid"].as_str().unwrap().into(),
                    slots: 1,
                    thousandths: 0,
                    memory_mib: 0,
                    instances: match device["profile"].is_null() {
                        true => Vec::new(),
                        false => vec![of_hami(device)],
                    },
                };
                devices.map(part).collect()
            });
            let entries: Vec<Vec<CardPart>> = entries.collect();
            let ours: Value = serde_json::from_str(&written(&entries).unwrap()).unwrap();
            let theirs: Value = serde_json::from_str(theirs).unwrap();
            assert_eq!(ours, theirs, "{}", case["id"]);
            compared += 1;
        }
    }
    println!("{compared} lists of instances written");
    assert!(compared > 200);
    assert_eq!(written(&[vec![], vec![]]), None);
}

#[test]
fn a_pod_holds_the_instances_of_all_its_containers() {
    let text = r#"[{"containerIndex":1,"gpuUUID":"a","profile":"1g.10gb",
        "placement":{"start":6,"size":1},"migUUID":"MIG-1","gpuInstanceID":9,
        "computeInstanceID":0},
        {"gpuUUID":"a","profile":"2g.20gb","placement":{"size":2}}]"#;
    let pod = pod(text, "a,NVIDIA,20096,25:;a,NVIDIA,9984,13:;");
    let (found, problems) = with_problems(|problems| parts(&pod, problems));
    // HAMi counts the most that the init containers or the others use.
    let expected = CardPart {
        card: "a".into(),
        slots: 1,
        thousandths: 250,
        memory_mib: 20_096,
        instances: vec![instance("2g.20gb", 0, 2), instance("1g.10gb", 6, 1)],
    };
    assert_eq!((found, problems), (vec![expected], Vec::new()));
}

#[test]
fn what_makes_no_sense_in_a_list_is_a_problem_and_the_list_says_nothing() {
    let one = |device: u32, start: u32, size: u32| {
        json!({"containerIndex": 0, "deviceIndex": device, "gpuUUID": "a", "profile": "1g.10gb",
            "placement": {"start": start, "size": size}})
    };
    let mut half = one(0, 0, 1);
    half["migUUID"] = "MIG-1".into();
    for (list, expected) in [
        (
            json!([one(0, 1, 1), one(0, 2, 1)]),
            "gives device 0 of container 0 twice",
        ),
        (
            json!([one(0, 1, 1), one(1, 0, 2)]),
            "gives one place of a card twice",
        ),
        (json!([one(0, 8, 1)]), "places 1g.10gb at 1 slices from 8"),
        (json!([one(0, 7, 2)]), "places 1g.10gb at 2 slices from 7"),
        (json!([one(0, 3, 0)]), "places 1g.10gb at 0 slices from 3"),
        (
            json!([one(0, u32::MAX, u32::MAX)]),
            "places 1g.10gb at 4294967295 slices from 4294967295",
        ),
        (json!([half]), "says half of what was made for 1g.10gb"),
        (json!([{}]), "lists an instance that is incomplete"),
        (json!({}), "must be a list, not an object"),
    ] {
        let pod = pod(&list.to_string(), ";a,NVIDIA,9984,13:;");
        let (found, problems) = with_problems(|problems| parts(&pod, problems));
        assert_eq!(problems.len(), 1, "{list}");
        assert_eq!(&*problems[0].message, expected, "{list}");
        // The engine takes the whole card for taken then.
        assert_eq!((found[0].slots, found[0].instances.len()), (1, 0), "{list}");
    }
}

/// The register of a node with one card in MIG mode.
fn register(profiles: &Value) -> Value {
    let card = json!([{"id": "a", "count": 7, "devmem": 81559, "devcore": 100, "mode": "mig",
        "type": "NVIDIA H100 80GB HBM3", "health": true, "migProfiles": profiles}]);
    json!({"hami.io/node-nvidia-register": card.to_string()})
}

fn profile(name: &str, placements: &Value) -> Value {
    json!({"name": name, "memoryMB": 9984, "core": 13, "sliceCount": 1, "placements": placements})
}

#[test]
fn a_card_in_mig_mode_takes_pods_where_it_lists_profiles() {
    let two = json!([{"start": 4, "size": 1}, {"size": 1}]);
    let profiles = json!([profile("1g.10gb", &two)]);
    let annotations = super::annotations(&register(&profiles));
    let (found, problems) = with_problems(|problems| cards(&annotations, problems));
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!((found[0].closed, found[0].profiles.len()), (None, 1));
    let profile = &found[0].profiles[0];
    assert_eq!((profile.memory_mib, profile.thousandths), (9_984, 130));
    let starts: Vec<u8> = profile.placements.iter().map(|it| it.start).collect();
    assert_eq!(starts, [0, 4]);
    for none in [json!([]), json!(null)] {
        let annotations = super::annotations(&register(&none));
        let (found, problems) = with_problems(|problems| cards(&annotations, problems));
        assert!(problems.is_empty());
        assert_eq!(found[0].closed, Some(CardClosed::OtherMode));
    }
}

#[test]
fn a_card_whose_profiles_make_no_sense_is_left_out_and_a_problem() {
    let one = json!([{"start": 0, "size": 1}]);
    let with = |key: &str, value: Value| {
        let mut profile = profile("1g.10gb", &one);
        profile[key] = value;
        json!([profile])
    };
    let of = |placements: Value| json!([profile("1g.10gb", &placements)]);
    for (profiles, expected) in [
        (
            of(json!([{"start": 0, "size": 2}, {"start": 1, "size": 2}])),
            "gives the card a the MIG profile 1g.10gb with placements that overlap",
        ),
        (
            of(json!([{"start": 8, "size": 1}])),
            "gives the card a the MIG profile 1g.10gb with 1 slices from 8, and cards have 8",
        ),
        (
            of(json!([{"start": 1}])),
            "gives the card a the MIG profile 1g.10gb with 0 slices from 1, and cards have 8",
        ),
        (
            of(json!([])),
            "gives the card a the MIG profile 1g.10gb without placements",
        ),
        (
            with("name", json!("")),
            "gives the card a a MIG profile without a name, or with a very long one",
        ),
        (
            with("memoryMB", json!(-1)),
            "gives the card a the MIG profile 1g.10gb with memoryMB -1 and core 13",
        ),
        (
            with("core", json!(101)),
            "gives the card a the MIG profile 1g.10gb with memoryMB 9984 and core 101",
        ),
        (
            json!([profile("1g.10gb", &one), profile("1g.10gb", &one)]),
            "gives the card a the MIG profile 1g.10gb twice",
        ),
        (
            Value::from(vec![profile("1g.10gb", &one); 65]),
            "gives the card a more than 64 MIG profiles",
        ),
    ] {
        let annotations = super::annotations(&register(&profiles));
        let (cards, problems) = with_problems(|problems| cards(&annotations, problems));
        assert!(cards.is_empty(), "{profiles}");
        assert_eq!(problems.len(), 1, "{profiles}");
        assert_eq!(&*problems[0].message, expected);
    }
}
