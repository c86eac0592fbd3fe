use super::{cases, list};
use crate::kube::convert::hami::lock::{LOCK, read, written};
use gpu_batch_policies::facts::{
    CardFacts, CardLock, CardMemory, CardNeed, HAMI_REGISTER, NodeFacts, PodFacts, Uid,
};
use gpu_batch_testing::{LockRace, START_MS, World, conflict, lost, node, pod};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};

#[test]
fn locks_are_read_as_hami_reads_them() {
    let cases = cases("lock", Some("parse"));
    let (mut unreadable, mut with_short_hour) = (0, 0);
    for case in &cases {
        let value = case["input"]["value"].as_str().unwrap();
        let answer = &case["answer"];
        let found = read(value);
        if value.as_bytes().get(12) == Some(&b':') && answer["error"].is_null() {
            // Go reads an hour of one digit, which RFC 3339 does not have and nobody writes.
            assert_eq!(found.at_ms, None, "{case}");
            with_short_hour += 1;
            continue;
        }
        let expected = answer["unix"].as_u64().map(|unix| {
            let text = |name: &str| answer[name].as_str().unwrap().into();
            let is_named = ["ns", "name"].iter().all(|key| answer[key] != json!(""));
            let holder = is_named.then(|| (text("ns"), text("name")));
            (unix, holder)
        });
        unreadable += usize::from(expected.is_none());
        assert_eq!(&*found.value, value);
        let found = found.at_ms.map(|at_ms| (at_ms / 1_000, found.holder));
        assert_eq!(found, expected, "{case}");
    }
    println!(
        "{} locks compared, {unreadable} unreadable; {with_short_hour} with an hour of one digit",
        cases.len() - with_short_hour
    );
    assert!(unreadable > 50 && unreadable < cases.len() - 50 && with_short_hour < 10);
}

#[test]
fn a_lock_that_names_half_of_a_pod_names_nobody() {
    for value in [
        "2026-11-21T10:00:00Z,,new",
        "2026-11-21T10:00:00Z,team,",
        "2026-11-21T10:00:00Z,,",
    ] {
        let lock = read(value);
        assert_eq!(lock.at_ms, Some(1_795_255_200_000), "{value}");
        assert_eq!(lock.holder, None, "{value}");
    }
}

#[test]
fn our_lock_is_read_again() {
    let text = written(1_795_255_200_999, "team", "pair-0");
    assert_eq!(text, "2026-11-21T10:00:00Z,team,pair-0");
    let expected = CardLock {
        value: text.clone().into(),
        holder: Some(("team".into(), "pair-0".into())),
        at_ms: Some(1_795_255_200_000),
    };
    assert_eq!(read(&text), expected);
}

#[test]
fn of_a_lock_that_is_too_long_the_beginning_is_kept() {
    let lock = read(&format!("2026-11-21T10:00:00Z,team,{}", "x".repeat(5_000)));
    assert_eq!((lock.at_ms, lock.holder), (None, None));
    assert_eq!(lock.value.len(), 320);
}

/// A time of a case, `{T-30}`, `{T+30|+08:00}` or `{NOW}`, with the time of the call put in.
fn with_times(text: &str, now_ms: u64) -> String {
    let Some((before, rest)) = text.split_once('{') else {
        return text.to_owned();
    };
    let (time, after) = rest.split_once('}').unwrap();
    let (offset, zone) = time.split_once('|').unwrap_or((time, "Z"));
    let seconds: i64 = match offset {
        "NOW" => 0,
        other => other.strip_prefix('T').unwrap().parse().unwrap(),
    };
    let now = jiff::Timestamp::from_millisecond(now_ms.cast_signed()).unwrap();
    let time = now + jiff::SignedDuration::from_secs(seconds);
    let of_zone = match zone {
        "Z" => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        zone => {
            let hours: i8 = zone[..3].parse().unwrap();
            let local = time.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(hours)));
            local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        }
    };
    format!("{before}{of_zone}{after}")
}

/// What comes of a look at the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// The pod has taken it.
    Taken,
    /// The pod had it.
    Own,
    /// Another has it.
    Held,
}

/// Why our verdict is meant to be another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Meant {
    Agreed,
    /// A lock of a pod that has ended is replaced at once: the plugin serves the pod no more.
    HolderEnded,
    /// After how long a lock expires is a setting of HAMi, and is 5 minutes here.
    OtherExpiry,
    /// HAMi gives up after some tries, and the pod waits for another round of its scheduler.
    TriedOn,
    /// HAMi cannot ask whether the pod that has the lock is there.
    NotAsked,
    /// The server of the cases lets a request through that another one has overtaken.
    Overwritten,
}

fn node_of(case: &Value) -> NodeFacts {
    let text = case["input"]["node"]["metadata"]["annotations"][LOCK].as_str();
    let card_lock = text.map(|text| read(&with_times(text, START_MS)));
    let node = node("n1", 10).with(|node| {
        node.annotations = vec![(HAMI_REGISTER.into(), "".into())];
        node.cards = vec![CardFacts::new("GPU-a", 16_000)];
        node.card_lock.clone_from(&card_lock);
    });
    node.facts()
}

fn pods_of(case: &Value) -> Vec<PodFacts> {
    let listed = list(&case["input"]["pods"]);
    let others = listed.enumerate().filter_map(|(number, object)| {
        let [namespace, name] = ["namespace", "name"].map(|key| {
            let text = object["metadata"][key].as_str();
            text.unwrap()
        });
        let has_ended = matches!(
            object["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        );
        let is_ours = (namespace, name) == ("default", "new");
        (!is_ours && !has_ended).then(|| {
            let pod = pod(name, 0).foreign().with(|pod| {
                pod.uid = Uid(100 + number as u128);
                pod.namespace = namespace.into();
            });
            pod.facts()
        })
    });
    let need = CardNeed::new(1, 0, CardMemory::Mib(1_000));
    let new = pod("new", 1).cards(need).with(|pod| pod.uid = Uid(1));
    others.chain([new.facts()]).collect()
}

/// What others write between requests for the lock, and what these come to.
fn races(case: &Value) -> VecDeque<LockRace> {
    let races = list(&case["input"]["races"]);
    let races = races.map(|race| {
        let set = race["set"].as_str();
        let set = set.map(|text| Some(read(&with_times(text, START_MS))));
        LockRace {
            written: set.or((race["del"] == true).then_some(None)),
            outcome: match race["status"].as_str() {
                Some("conflict") => Some(conflict()),
                Some("internal") => Some(lost()),
                _ => None,
            },
        }
    });
    races.collect()
}

/// What our pod makes of the lock, while others write it between its requests. `is_bound`: whether
/// the binding succeeds, after which the lock is the plugin's to take away.
fn ours(case: &Value, is_bound: bool) -> (Verdict, World) {
    let mut world = World::new();
    world.is_plugin_slow = true;
    world.apply(node_of(case));
    world.apply(pods_of(case));
    let mut races = races(case);
    // Pauses between tries are short, and the lock is not to grow old.
    for _ in 0..40 {
        world.race(
            "n1",
            &mut races,
            |lock| written(lock.at_ms, &lock.namespace, &lock.name),
            is_bound,
        );
        world.pass(50);
    }
    let has_taken = world.lock_requests.iter().any(|it| it == "new locks n1");
    let verdict = match (has_taken, world.binds > 0) {
        (true, _) => Verdict::Taken,
        (false, true) => Verdict::Own,
        (false, false) => Verdict::Held,
    };
    (verdict, world)
}

fn theirs(answer: &Value) -> Verdict {
    match answer["ok"] == true {
        true if answer["after"] == "{NOW},default,new" => Verdict::Taken,
        true => Verdict::Own,
        false => Verdict::Held,
    }
}

/// Whether the pod that the lock names has ended, in any of the locks that stood there.
fn names_an_ended_pod(case: &Value) -> bool {
    let input = &case["input"];
    let races = list(&input["races"]);
    let first = input["node"]["metadata"]["annotations"][LOCK].as_str();
    let locks = races.filter_map(|race| race["set"].as_str()).chain(first);
    let pods = list(&input["pods"]);
    let ended = pods.filter(|pod| {
        let phase = pod["status"]["phase"].as_str();
        matches!(phase, Some("Succeeded" | "Failed"))
    });
    let ended = ended.map(|pod| {
        let [namespace, name] = ["namespace", "name"].map(|key| pod["metadata"][key].as_str());
        format!(",{},{}", namespace.unwrap(), name.unwrap())
    });
    let ended: Vec<String> = ended.filter(|it| it != ",default,new").collect();
    let mut locks = locks;
    locks.any(|lock| ended.iter().any(|ended| lock.ends_with(&**ended)))
}

fn why(case: &Value, ours: Verdict, theirs: Verdict) -> Option<Meant> {
    let input = &case["input"];
    let has_races = input["races"].is_array();
    match (ours, theirs) {
        _ if ours == theirs => Some(Meant::Agreed),
        (Verdict::Taken, Verdict::Held) if names_an_ended_pod(case) => Some(Meant::HolderEnded),
        (Verdict::Taken, Verdict::Held) if input["podGetError"] == true => Some(Meant::NotAsked),
        _ if input["expireSeconds"].is_number() => Some(Meant::OtherExpiry),
        (Verdict::Taken | Verdict::Own, Verdict::Held) if has_races => Some(Meant::TriedOn),
        (Verdict::Held | Verdict::Own, Verdict::Taken) if has_races => Some(Meant::Overwritten),
        _ => None,
    }
}

/// Whether a container of the pod that is no init container asks for a card. Only then HAMi's
/// backend takes a lock; we do so for each pod with cards.
fn is_locked_for(input: &Value) -> bool {
    let containers = input["pod"]["spec"]["containers"].as_array();
    let mut containers = containers.into_iter().flatten();
    input["via"] == "nodelock"
        || containers.any(|it| it["resources"]["limits"]["nvidia.com/gpu"].is_string())
}

#[test]
fn a_lock_is_taken_left_or_ours_as_with_hami() {
    let mut counts: BTreeMap<(Meant, Verdict), usize> = BTreeMap::new();
    let (mut without, mut wrong) = (0, Vec::new());
    for case in cases("lock", Some("node")) {
        let (input, answer) = (&case["input"], &case["answer"]);
        if input["op"] != "lock" {
            continue;
        }
        if !is_locked_for(input) {
            without += 1;
            continue;
        }
        let (ours, world) = ours(&case, true);
        let theirs = theirs(answer);
        let Some(why) = why(&case, ours, theirs) else {
            wrong.push(format!("{ours:?} {theirs:?} {case}"));
            continue;
        };
        if (why, ours) == (Meant::Agreed, Verdict::Taken) {
            let holder = world.lock("n1").and_then(|lock| lock.holder.clone());
            assert_eq!(holder, Some(("default".into(), "new".into())), "{case}");
            assert!(answer["after"] == "{NOW},default,new", "{case}");
        }
        *counts.entry((why, ours)).or_default() += 1;
    }
    println!("locks compared: {counts:?}; {without} times HAMi locks nothing");
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
    let agreed = |verdict| counts[&(Meant::Agreed, verdict)];
    assert!(agreed(Verdict::Taken) > 150 && agreed(Verdict::Held) > 80);
    assert!(agreed(Verdict::Own) > 40);
    let meant = counts.iter().filter(|((why, _), _)| *why != Meant::Agreed);
    assert!(meant.map(|(_, count)| count).sum::<usize>() < 100);
}

#[test]
fn a_lock_of_ours_is_given_back_and_those_of_others_stay() {
    let (mut given_back, mut left, mut not_written, mut with_races) = (0, 0, 0, 0);
    for case in cases("lock", Some("node")) {
        let (input, answer) = (&case["input"], &case["answer"]);
        if input["op"] != "release" || !is_locked_for(input) {
            continue;
        }
        if input["races"].is_array() {
            // HAMi writes again and again, and we look at what the watch shows.
            with_races += 1;
            continue;
        }
        let before = input["node"]["metadata"]["annotations"][LOCK].as_str();
        let (verdict, world) = ours(&case, false);
        let stands = world.lock("n1").map(|lock| &*lock.value);
        if verdict == Verdict::Taken {
            // What stood there before may be replaced.
            assert_eq!(stands, None, "{case}");
            given_back += 1;
            continue;
        }
        let before = before.unwrap();
        let text = with_times(before, START_MS);
        let is_in_our_words = text.ends_with("Z,default,new") && read(&text).at_ms.is_some();
        match (answer["after"].is_null(), stands) {
            (true, None) => given_back += 1,
            (false, Some(stands)) => {
                assert_eq!(stands, text, "{case}");
                left += 1;
            }
            // HAMi takes away what names nobody, or its pod in whatever words.
            (true, Some(stands)) => {
                assert_eq!(stands, text, "{case}");
                assert!(!is_in_our_words, "{case}");
                not_written += 1;
            }
            (false, None) => panic!("{case}"),
        }
    }
    println!(
        "{given_back} locks given back, {left} of others left; {not_written} that we cannot have \
         written left by us alone; {with_races} with races left out"
    );
    assert!(given_back > 40 && left > 10);
}
