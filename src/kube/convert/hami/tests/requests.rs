use super::{cases, with_problems};
use crate::kube::convert::hami::request::{asked, asks_for_parts, of};
use crate::kube::convert::resources::all_containers;
use crate::kube::objects::{Pod, PodSpec};
use gpu_batch_policies::facts::{
    CardEntries, CardMemory, CardNeed, ContainerCards, ContainerRole, Problem,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What HAMi does where nothing is configured.
const DEFAULTS: [(&str, i64); 4] = [
    ("defaultMemory", 0),
    ("defaultCores", 0),
    ("defaultGPUNum", 1),
    ("memoryFactor", 1),
];

fn spec(pod: &Value) -> PodSpec {
    serde_json::from_value::<Pod>(pod.clone()).unwrap().spec
}

/// The requests of all containers, init containers first.
fn read(spec: &PodSpec) -> Vec<(Option<CardNeed>, Vec<Problem>)> {
    let containers = all_containers(spec);
    let read = |(field, container)| with_problems(|problems| of(container, field, problems));
    containers.map(read).collect()
}

fn has_defaults(case: &Value) -> bool {
    let config = &case["config"];
    DEFAULTS
        .iter()
        .all(|(name, value)| config[name].is_null() || config[name] == json!(value))
}

/// A request in HAMi's words. Without a percentage HAMi notes 101; with memory the percentage does
/// not count.
fn in_hamis_words(request: CardNeed) -> [u64; 4] {
    let (memory_mib, percent) = match request.memory() {
        CardMemory::Any => panic!("HAMi counts the memory of every pod"),
        CardMemory::Mib(mib) => (mib, 0),
        CardMemory::Percent(percent) => (0, percent.into()),
    };
    let power_percent = u64::from(request.thousandths()) / 10;
    [request.count().into(), power_percent, memory_mib, percent]
}

fn of_hami(answer: &Value) -> [u64; 4] {
    let number = |name: &str| answer[name].as_u64().unwrap();
    let percent = if number("mem") > 0 {
        0
    } else {
        number("memPct")
    };
    // More than 100 is taken back to 100 where nodes are judged.
    [
        number("nums"),
        number("cores").min(100),
        number("mem"),
        percent,
    ]
}

/// How a container was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Compared {
    /// Neither sees a request.
    Nothing,
    /// Both read the same.
    Same,
    /// Both read the same, once HAMi's webhook has given a whole card its whole computing power.
    SameButExclusive,
    /// HAMi drops `0.5Gi`, which the API server writes as `512Mi` before anybody sees it.
    NotCanonical,
    /// A problem where HAMi drops the request without a word, or refuses the pod.
    ProblemOfBoth,
    /// A problem where HAMi's webhook adds a card.
    CardMissing,
    /// A problem with a number that HAMi reads in its own way.
    NumberOutOfRange,
    /// A problem where HAMi refuses the pod because it is privileged.
    Privileged,
}

fn compare(
    (found, problems): &(Option<CardNeed>, Vec<Problem>),
    raw: &Value,
    mutated: &Value,
    case: &Value,
) -> Compared {
    let answer = if mutated.is_null() { raw } else { mutated };
    if let Some(request) = found {
        assert!(problems.is_empty(), "{case}: {problems:?}");

        if answer.is_null() {
            assert!(case["input"].to_string().contains(".5Gi\""), "{case}");
            return Compared::NotCanonical;
        }
        let (found, expected) = (in_hamis_words(*request), of_hami(answer));
        if found == expected {
            return Compared::Same;
        }
        let exclusive = [expected[0], 100, expected[2], expected[3]];
        assert!(
            mutated.is_null() && found == exclusive,
            "{case}: {found:?} {expected:?}"
        );
        return Compared::SameButExclusive;
    }
    let Some(problem) = problems.first() else {
        assert!(raw.is_null(), "{case}");
        return Compared::Nothing;
    };
    if problem.message.starts_with("asks for a part") {
        assert!(raw.is_null(), "{case}: {problems:?}");
        Compared::CardMissing
    } else if problem.field.ends_with("privileged") {
        assert!(mutated.is_null(), "{case}");
        Compared::Privileged
    } else if answer.is_null() {
        Compared::ProblemOfBoth
    } else {
        Compared::NumberOutOfRange
    }
}

#[test]
fn requests_are_read_as_hami_reads_them() {
    let mut counts: BTreeMap<Compared, usize> = BTreeMap::new();
    let cases = cases("requests", None);
    let usual: Vec<&Value> = cases.iter().filter(|case| has_defaults(case)).collect();
    println!(
        "{} pods of {}: with the others HAMi is told other defaults",
        usual.len(),
        cases.len()
    );
    for case in usual {
        let answer = &case["answer"];
        let spec = spec(&case["input"]["pod"]);
        let asked_in_limits = all_containers(&spec).map(|(_, container)| {
            let limits = container
                .resources
                .as_ref()
                .map(|resources| &resources.limits);
            limits.is_some_and(|limits| limits.get("nvidia.com/gpu").is_some())
        });
        let read = read(&spec);
        for (index, (found, in_limits)) in read.iter().zip(asked_in_limits).enumerate() {
            // The webhook adds a card to limits where only requests have one. The API server takes
            // no such pod.
            let mutated = if in_limits {
                &answer["requests"][index]
            } else {
                &Value::Null
            };
            let how = compare(found, &answer["requestsRaw"][index], mutated, case);
            *counts.entry(how).or_default() += 1;
        }
    }
    println!("containers compared: {counts:?}");
    let at_least = |how, number| assert!(counts.get(&how).is_some_and(|it| *it >= number));
    at_least(Compared::Same, 400);
    at_least(Compared::SameButExclusive, 50);
    at_least(Compared::CardMissing, 50);
    at_least(Compared::Privileged, 10);
    assert!(counts[&Compared::NumberOutOfRange] < 200);
}

fn container(limits: Value) -> Value {
    json!({"resources": {"limits": limits}})
}

fn check(container: Value, expected: Result<CardNeed, (&str, &str)>) {
    let text = container.to_string();
    let spec = spec(&json!({"spec": {"containers": [container]}}));
    let (found, problems) = read(&spec).remove(0);
    match expected {
        Ok(request) => assert_eq!((found, problems.len()), (Some(request), 0), "{text}"),
        Err((field, message)) => {
            assert_eq!((found, problems.len()), (None, 1), "{text}: {problems:?}");
            let field = format!("spec.containers[0].{field}");
            assert_eq!(
                (&*problems[0].field, &*problems[0].message),
                (&*field, message)
            );
        }
    }
}

#[test]
fn a_part_is_memory_in_mib_or_percent_and_computing_power() {
    let request = |count, percent: u64, memory| CardNeed::new(count, 10 * percent, memory).unwrap();
    for (limits, expected) in [
        (
            json!({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000"}),
            request(2, 0, CardMemory::Mib(3_000)),
        ),
        (
            json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"}),
            request(1, 0, CardMemory::Percent(50)),
        ),
        (
            json!({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "30"}),
            request(1, 30, CardMemory::Percent(100)),
        ),
        (
            json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2k", "nvidia.com/gpucores": "130",
            "nvidia.com/gpumem-percentage": "10"}),
            request(1, 100, CardMemory::Mib(2_000)),
        ),
        (
            json!({"nvidia.com/gpu": "1"}),
            request(1, 100, CardMemory::Percent(100)),
        ),
    ] {
        check(container(limits), Ok(expected));
    }
}

#[test]
fn what_hamis_webhook_would_change_or_refuse_is_a_problem() {
    let missing = "asks for a part of a card, and of no card; write `nvidia.com/gpu: 1` too";
    check(
        container(json!({"nvidia.com/gpumem": "3000"})),
        Err(("resources.limits[nvidia.com/gpumem]", missing)),
    );
    check(
        container(json!({"nvidia.com/gpu": "0", "nvidia.com/gpucores": "30"})),
        Err(("resources.limits[nvidia.com/gpucores]", missing)),
    );
    check(
        container(json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "101"})),
        Err((
            "resources.limits[nvidia.com/gpumem-percentage]",
            "`101` is no whole number from 1 to 100",
        )),
    );
    check(
        container(json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1.5"})),
        Err((
            "resources.limits[nvidia.com/gpumem]",
            "`1.5` is no whole number from 1 to 2147483647",
        )),
    );
    let mut privileged = container(json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}));
    privileged["securityContext"] = json!({"privileged": true});
    check(
        privileged,
        Err((
            "securityContext.privileged",
            "is true, so that HAMi could not keep the container to its cards; write false",
        )),
    );
}

#[test]
fn whole_cards_are_no_parts() {
    for (limits, expected) in [
        (json!({"nvidia.com/gpu": "1"}), false),
        (
            json!({"nvidia.com/gpu": "1", "nvidia.com/priority": "0"}),
            false,
        ),
        (json!({"nvidia.com/gpucores": "0"}), true),
    ] {
        let spec = spec(&json!({"spec": {"containers": [container(limits)]}}));
        let (_, container) = all_containers(&spec).next().unwrap();
        assert_eq!(asks_for_parts(container), expected);
    }
}

/// The gaps between the containers of a pod that ask for cards, and what they ask for: nothing
/// where one main container asks.
fn places(init: &[&Value], containers: &[&Value]) -> Option<(Vec<u32>, Vec<ContainerCards>)> {
    let pod = json!({"spec": {"initContainers": init, "containers": containers}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let (found, problems) = with_problems(|problems| asked(&pod, problems));
    assert!(problems.is_empty(), "{problems:?}");
    let found = found?;
    let CardEntries {
        before,
        between,
        after,
    } = found.entries;
    let gaps = [before].into_iter().chain(between).chain([after]);
    Some((gaps.collect(), found.terms.containers))
}

#[test]
fn entries_stand_in_the_order_of_containers_behind_those_of_init_containers() {
    let parts = container(json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}));
    let whole = container(json!({"nvidia.com/gpu": "1"}));
    let none = container(json!({"nvidia.com/gpu": "0", "cpu": "1"}));
    let mut sidecar = parts.clone();
    sidecar["restartPolicy"] = json!("Always");
    let of_part = |role| ContainerCards {
        role,
        need: CardNeed::new(1, 0, CardMemory::Mib(3_000)).unwrap(),
    };
    let of_whole = |role| ContainerCards {
        role,
        need: CardNeed::new(1, 1_000, CardMemory::Percent(100)).unwrap(),
    };
    let (init, beside, main) = (
        ContainerRole::Init,
        ContainerRole::Sidecar,
        ContainerRole::Main,
    );
    assert_eq!(places(&[], &[&parts]), Some((vec![0, 0], vec![])));
    assert_eq!(
        places(&[&none, &none], &[&none, &parts, &none]),
        Some((vec![3, 1], vec![]))
    );
    assert_eq!(
        places(&[], &[&none, &whole, &none, &none, &parts]),
        Some((vec![1, 2, 0], vec![of_whole(main), of_part(main)]))
    );
    assert_eq!(
        places(&[&parts, &sidecar], &[&none, &whole]),
        Some((
            vec![0, 0, 1, 0],
            vec![of_part(init), of_part(beside), of_whole(main)]
        ))
    );
    assert_eq!(
        places(&[&whole, &parts], &[&none]),
        Some((vec![0, 0, 1], vec![of_whole(init), of_part(init)]))
    );
    // Plain GPUs.
    assert_eq!(places(&[&whole], &[&whole]), None);
}

#[test]
fn more_cards_than_a_node_has_are_told_once_for_all_containers() {
    let many = container(json!({"nvidia.com/gpu": "200", "nvidia.com/gpumem": "1"}));
    let pod = json!({"spec": {"initContainers": [many], "containers": [many]}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let (found, problems) = with_problems(|problems| asked(&pod, problems));
    assert_eq!((found, problems.len()), (None, 1));
    assert_eq!(
        &*problems[0].message,
        "ask for 400 cards of HAMi in sum, and 256 are the most of a node"
    );
}
