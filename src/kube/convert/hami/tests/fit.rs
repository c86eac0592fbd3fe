//! Whether a pod that asks for parts of cards fits on a node, and what its containers get: from
//! the objects to the annotations of the binding, as HAMi's own scheduler answers.
//!
//! Registers, and what other pods hold, are read as they stand. What the pod asks for is written
//! as HAMi has understood it; how requests are read is compared elsewhere.

use super::{cases, list};
use crate::kube::convert::hami::{annotations_of_cards, by_container, cards};
use crate::kube::convert::problems::Problems;
use crate::kube::convert::{Converter, Watched};
use crate::kube::objects::{Annotations, Node, Pod};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{CardClosed, CardFacts, CardPart};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{START_MS, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ALLOCATED: &str = "hami.io/vgpu-devices-allocated";
const REGISTER: &str = "hami.io/node-nvidia-register";
const MODE: &str = "nvidia.com/vgpu-mode";
const ORDER: &str = "hami.io/gpu-scheduler-policy";
const NUMA_BIND: &str = "nvidia.com/numa-bind";
const SCORES: &str = "hami.io/node-nvidia-score";

fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    let annotations = &object["metadata"]["annotations"];
    annotations[key].as_str().unwrap_or_default()
}

fn converted<T: Watched>(object: Value, converter: &mut Converter) -> Option<Object> {
    let object: T = serde_json::from_value(object).unwrap();
    object.convert(converter)
}

/// The pod, which asks for what HAMi has understood; an error says why the case is left out.
fn asking(case: &Value) -> Result<Value, &'static str> {
    let answer = &case["answer"];
    let mut pod = case["input"]["pod"].clone();
    let order = annotation(&pod, ORDER).to_owned();
    let default_order = case["config"]["gpuSchedulerPolicy"].as_str();
    if case["input"].get("quotas").is_some() {
        return Err("quotas of HAMi");
    }
    if answer.get("noRequest").is_some() || answer.get("error").is_some() {
        return Err("HAMi sees no request, or an invalid one");
    }
    if let (true, Some(default_order)) = (order.is_empty(), default_order) {
        pod["metadata"]["annotations"][ORDER] = default_order.into();
    }
    pod["spec"]["schedulerName"] = "gpu-batch".into();
    let inits = list(&pod["spec"]["initContainers"]).count();
    for (position, asked) in list(&answer["requests"]).enumerate() {
        let number = |key: &str| asked[key].as_u64().unwrap_or(0);
        let mut limits = json!({});
        if number("nums") > 0 {
            limits["nvidia.com/gpu"] = number("nums").to_string().into();
            limits["nvidia.com/gpucores"] = number("cores").min(100).to_string().into();
            let (key, amount) = match (number("mem"), number("memPct")) {
                (0, percent) => ("nvidia.com/gpumem-percentage", percent.min(100)),
                (mib, _) => ("nvidia.com/gpumem", mib),
            };
            limits[key] = amount.to_string().into();
        }
        let container = match position.checked_sub(inits) {
            None => &mut pod["spec"]["initContainers"][position],
            Some(position) => &mut pod["spec"]["containers"][position],
        };
        container["resources"] = json!({"limits": limits});
    }
    // HAMi gives whole cards as instances, too; here a pod has to say so.
    if annotation(&pod, MODE).is_empty() {
        pod["metadata"]["annotations"][MODE] = "hami-core,mig".into();
    }
    Ok(pod)
}

/// The node as it would be with HAMi's plugin.
fn node(object: &Value) -> Value {
    let mut node = object.clone();
    let amounts = json!({"nvidia.com/gpu": "1000", "cpu": "100", "memory": "1Ti", "pods": "100"});
    node["status"] = json!({"capacity": amounts, "allocatable": amounts});
    node
}

fn cards_of(node: &Value) -> Vec<CardFacts> {
    let annotations = node["metadata"]["annotations"].clone();
    let annotations: Annotations = serde_json::from_value(annotations).unwrap_or_default();
    cards(&annotations, &mut Problems::default())
}

/// What a pod gets on a node, container by container, or why it gets nothing.
fn given(
    case: &Value,
    node_object: &Value,
    asking: &Value,
) -> Result<Vec<Vec<CardPart>>, Option<Reason>> {
    let mut converter = Converter::new("gpu-batch", START_MS);
    let converter = &mut converter;
    let mut world = World::new();
    world.apply(converted::<Node>(node(node_object), converter).unwrap());
    let name = &node_object["metadata"]["name"];
    for (number, holder) in list(&case["input"]["pods"]).enumerate() {
        let mut holder = holder.clone();
        holder["metadata"]["uid"] = format!("holder-{number}").into();
        if holder["spec"]["nodeName"] == *name {
            world.apply(
                converted::<Pod>(holder, converter)
                    .into_iter()
                    .collect::<Vec<_>>(),
            );
        }
    }
    world.apply(converted::<Pod>(asking.clone(), converter).unwrap());
    world.settle();
    if !world.is_placed("new") {
        return Err(world.reason_of_pod("new"));
    }
    let bind = world.last_bind.as_ref().unwrap();
    let entries = &bind.assignment.as_ref().unwrap().entries;
    // What is written is read again.
    let mut pod = asking.clone();
    for (key, value) in annotations_of_cards("n", entries, START_MS) {
        pod["metadata"]["annotations"][key] = value.into();
    }
    let read = by_container(&serde_json::from_value(pod).unwrap());
    assert_eq!(read.as_ref(), Some(entries), "{}", case["id"]);
    Ok(read.unwrap())
}

/// Why our verdict is meant to be another, or HAMi is known to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Meant {
    /// HAMi finds no cards for a later container, since it goes back on no choice.
    MoreFound,
    /// HAMi gives an init container and a later one one instance of MIG.
    OneInstanceForTwo,
    /// HAMi gives an instance with less computing power than is asked for.
    WeakerInstance,
    /// HAMi counts a percentage of more memory than all instances have together.
    PercentOfInstances,
    /// HAMi forgets a pod as soon as it is being deleted.
    Leaving,
    /// HAMi counts nothing of a pod that names no node, or whose annotation has a mistake.
    NotCounted,
    /// Entries do not say whose they are: all are counted side by side.
    Shifted,
    /// HAMi sees no card whose model does not name NVIDIA.
    OtherModel,
    /// One part of MIG's list says something else than the other annotation.
    BrokenInstances,
    /// HAMi gives away cards in modes such as `mps`, in which nothing keeps pods apart.
    OtherMode,
    /// HAMi gives away a card whose entry makes no sense, such as one without computing power.
    SenselessCard,
    /// HAMi goes through the cards once, and throws away a NUMA node that has enough when it comes
    /// to another one.
    NumaThrownAway,
    /// HAMi gives several instances of one card that nobody else uses.
    SeveralOfIdle,
}

/// What on a node, in its cards and in the pods that hold some, leads HAMi to another verdict.
fn peculiarities(case: &Value, node: &Value) -> Vec<Meant> {
    let name = &node["metadata"]["name"];
    let mut found = Vec::new();
    let cards = cards_of(node);
    if cards
        .iter()
        .any(|card| !card.model.to_lowercase().contains("nvidia"))
    {
        found.push(Meant::OtherModel);
    }
    if cards
        .iter()
        .any(|card| card.closed == Some(CardClosed::OtherMode))
    {
        found.push(Meant::OtherMode);
    }
    let listed: Value = serde_json::from_str(annotation(node, REGISTER)).unwrap();
    if cards.len() < list(&listed).count() {
        found.push(Meant::SenselessCard);
    }
    for (number, pod) in list(&case["input"]["pods"]).enumerate() {
        let phase = pod["status"]["phase"].as_str();
        let (here, there) = (
            &pod["spec"]["nodeName"],
            annotation(pod, "hami.io/vgpu-node"),
        );
        if matches!(phase, Some("Succeeded" | "Failed")) || here != name && there != name {
            continue;
        }
        if pod["metadata"].get("deletionTimestamp").is_some() {
            found.push(Meant::Leaving);
        }
        let spec = &pod["spec"];
        let has_init = list(&spec["initContainers"]).next().is_some();
        let count = list(&spec["initContainers"])
            .chain(list(&spec["containers"]))
            .count();
        let text = annotation(pod, ALLOCATED);
        let entries = text.strip_suffix(';').unwrap_or(text).split(';').count();
        if there != name || by_container(&serde_json::from_value(pod.clone()).unwrap()).is_none() {
            found.push(Meant::NotCounted);
        }
        let is_seen_again = list(&case["input"]["resync"]).any(|seen| *seen == number);
        if has_init && (entries != count || is_seen_again) {
            found.push(Meant::Shifted);
        }
        if !annotation(pod, "hami.io/vgpu-mig-allocations").is_empty()
            || cards.iter().any(|card| !card.profiles.is_empty())
        {
            found.push(Meant::BrokenInstances);
        }
    }
    found
}

/// How the verdicts on nodes go with HAMi's.
#[derive(Default)]
struct Compared {
    fit: usize,
    refused: usize,
    /// What each container is told was compared, too.
    written: usize,
    /// As many profiles as HAMi's were chosen.
    profiles: usize,
    /// Several cards were compared by their links: how often, and how often ours are better.
    linked: usize,
    better_linked: usize,
    /// How often HAMi's are better, since they leave room for fewer further pods.
    worse_linked: usize,
    /// Single cards were compared that are to leave good links alone, and are HAMi's.
    single: usize,
    same_single: usize,
    /// The pod is held, with this reason.
    held: BTreeMap<Reason, usize>,
    meant: BTreeMap<Meant, usize>,
    wrong: Vec<String>,
}

impl Compared {
    fn add(&mut self, case: &Value, asking: &Value) {
        for node in list(&case["input"]["nodes"]) {
            let theirs = &case["answer"]["nodes"][node["metadata"]["name"].as_str().unwrap()];
            let ours = given(case, node, asking);
            match (&ours, theirs["fit"] == true) {
                (Err(Some(reason @ (Reason::Unsupported | Reason::InvalidSpec))), _) => {
                    *self.held.entry(*reason).or_default() += 1;
                }
                (Ok(ours), true) => {
                    self.fit += 1;
                    self.compare(case, node, ours, &theirs["devices"]);
                    self.compare_links(node, asking, ours, &theirs["devices"]);
                }
                (Err(_), false) => self.refused += 1,
                (ours, _) => match why(case, node, asking, ours.is_ok()) {
                    Some(why) => *self.meant.entry(why).or_default() += 1,
                    None => self
                        .wrong
                        .push(format!("{}: {ours:?}, {theirs}", case["id"])),
                },
            }
        }
    }

    /// Compares what containers get. Where some ask for none, HAMi shifts the entries, but not
    /// their order. Which of several cards is taken depends on their order.
    fn compare(&mut self, case: &Value, node: &Value, ours: &[Vec<CardPart>], theirs: &Value) {
        let mut cards = cards_of(node);
        let is_mig = |card: &CardFacts| !card.profiles.is_empty();
        let theirs = list(theirs).filter(|entry| list(entry).next().is_some());
        let theirs: Vec<&Value> = theirs.collect();
        let ours = ours.iter().filter(|entry| !entry.is_empty());
        if cards.iter().all(is_mig) {
            let profiles = |parts: &Vec<CardPart>| -> Vec<String> {
                let parts = parts.iter().flat_map(|part| &part.instances);
                let mut profiles: Vec<_> = parts.map(|it| it.profile.to_string()).collect();
                profiles.sort_unstable();
                profiles
            };
            let of_hami = |entry: &&Value| -> Vec<String> {
                let profiles = list(entry).filter_map(|it| it["profile"].as_str());
                let mut profiles: Vec<_> = profiles.map(str::to_owned).collect();
                profiles.sort_unstable();
                profiles
            };
            let asked = list(&case["answer"]["requests"]);
            let mut asked = asked.filter(|asked| asked["nums"].as_u64() > Some(0));
            // HAMi looks at memory alone, and at the whole card's where a percentage is asked for.
            if asked.all(|it| it["cores"].as_u64() == Some(0) && it["mem"].as_u64() > Some(0)) {
                let ours: Vec<_> = ours.map(profiles).collect();
                let theirs: Vec<_> = theirs.iter().map(of_hami).collect();
                self.profiles += 1;
                if ours != theirs {
                    self.wrong
                        .push(format!("{}: {ours:?}, {theirs:?}", case["id"]));
                }
            }
            return;
        }
        cards.dedup_by_key(|card| card.memory_mib);
        if cards.len() > 1 || cards.iter().any(is_mig) {
            return;
        }
        let told = |part: &CardPart| (part.memory_mib, u64::from(part.thousandths) / 10);
        let ours = ours.map(|parts| parts.iter().map(told).collect::<Vec<_>>());
        let number = |part: &Value, key: &str| part[key].as_u64().unwrap();
        let of_hami = |part| (number(part, "mem"), number(part, "cores"));
        let theirs = theirs
            .iter()
            .map(|parts| list(parts).map(of_hami).collect::<Vec<_>>());
        let (ours, theirs): (Vec<_>, Vec<_>) = (ours.collect(), theirs.collect());
        self.written += 1;
        if ours != theirs {
            self.wrong
                .push(format!("{}: {ours:?}, {theirs:?}", case["id"]));
        }
    }
}

/// The scores of pairs of cards; `None`: there are none, or some differ by their direction.
fn scores(node: &Value) -> Option<BTreeMap<(String, String), u64>> {
    let entries: Value = serde_json::from_str(annotation(node, SCORES)).ok()?;
    let mut scores = BTreeMap::new();
    for entry in list(&entries) {
        for (other, score) in entry["score"].as_object().into_iter().flatten() {
            let one = entry["uuid"].as_str()?.to_owned();
            scores.insert((one, other.clone()), score.as_u64()?);
        }
    }
    let back = |(one, other): &(String, String)| scores.get(&(other.clone(), one.clone()));
    let holds = scores.iter().all(|(pair, score)| back(pair) == Some(score));
    holds.then_some(scores)
}

impl Compared {
    /// Compares the links of the cards that the one container of a pod gets that asks for cards
    /// with good links.
    fn compare_links(
        &mut self,
        node: &Value,
        asking: &Value,
        ours: &[Vec<CardPart>],
        theirs: &Value,
    ) {
        let is_mig = cards_of(node).iter().any(|card| !card.profiles.is_empty());
        let wants_links = annotation(asking, ORDER).contains("topology-aware");
        let theirs = list(theirs).filter(|entry| list(entry).next().is_some());
        let theirs: Vec<&Value> = theirs.collect();
        let ours = ours.iter().filter(|entry| !entry.is_empty());
        let ours: Vec<&Vec<CardPart>> = ours.collect();
        let ([ours], [theirs]) = (&*ours, &*theirs) else {
            return;
        };
        let Some(scores) = scores(node).filter(|_| wants_links && !is_mig) else {
            return;
        };
        let ours: Vec<String> = ours.iter().map(|part| part.card.to_string()).collect();
        let theirs = list(theirs).map(|part| part["uuid"].as_str().unwrap().to_owned());
        let theirs: Vec<String> = theirs.collect();
        if let ([ours], [theirs]) = (&*ours, &*theirs) {
            self.single += 1;
            self.same_single += usize::from(ours == theirs);
            return;
        }
        let sum = |cards: &[String]| -> u64 {
            let inside = |(one, other): &(String, String)| {
                one < other && cards.contains(one) && cards.contains(other)
            };
            let inside = scores.iter().filter(|(pair, _)| inside(pair));
            inside.map(|(_, score)| score).sum()
        };
        self.linked += 1;
        self.better_linked += usize::from(sum(&ours) > sum(&theirs));
        self.worse_linked += usize::from(sum(&ours) < sum(&theirs));
    }
}

fn why(case: &Value, node: &Value, asking: &Value, fits_here: bool) -> Option<Meant> {
    let limits = |key: &'static str, kind: &'static str| {
        let containers = list(&asking["spec"][kind]);
        containers.filter(move |it| it["resources"]["limits"].get(key).is_some())
    };
    let asks = |kind| limits("nvidia.com/gpu", kind).count();
    let kinds = ["initContainers", "containers"];
    let is_mig = cards_of(node).iter().any(|card| !card.profiles.is_empty());
    let mut percent = kinds
        .iter()
        .map(|kind| limits("nvidia.com/gpumem-percentage", kind).count());
    let asks_percent = percent.any(|count| count > 0);
    let mut powers = kinds
        .iter()
        .flat_map(|kind| limits("nvidia.com/gpucores", kind));
    let asks_power = powers.any(|it| it["resources"]["limits"]["nvidia.com/gpucores"] != "0");
    let found = peculiarities(case, node);
    let is = |meant| found.contains(&meant).then_some(meant);
    let common = || {
        let shifted = is(Meant::Shifted).or_else(|| is(Meant::NotCounted));
        let broken = || is(Meant::BrokenInstances);
        is(Meant::Leaving).or(shifted).or_else(broken)
    };
    let asking_annotation = |key| annotation(asking, key);
    let is_bound = ["1", "T", "true", "True"].contains(&asking_annotation(NUMA_BIND));
    // Only then HAMi looks at all cards, whether it has enough or not.
    let is_linked = asking_annotation(ORDER).contains("topology-aware");
    let is_idle = asking_annotation(ORDER).contains("mutex");
    match fits_here {
        true if is(Meant::OtherModel).is_some() => Some(Meant::OtherModel),
        true if is_bound && (is_linked || asks_for_several(case)) => Some(Meant::NumaThrownAway),
        false if is_mig && is_idle && asks_for_several(case) => Some(Meant::SeveralOfIdle),
        true if asks("containers") + asks("initContainers") > 1 => Some(Meant::MoreFound),
        true if is_mig && asks_percent => Some(Meant::PercentOfInstances),
        true => common(),
        false if is_mig && asks("initContainers") > 0 => Some(Meant::OneInstanceForTwo),
        false if is_mig && (asks_power || asks_percent) => Some(Meant::WeakerInstance),
        false => {
            let of_cards = is(Meant::OtherMode).or_else(|| is(Meant::SenselessCard));
            common().or(of_cards)
        }
    }
}

/// Whether a container asks for several cards.
fn asks_for_several(case: &Value) -> bool {
    let mut asked = list(&case["answer"]["requests"]);
    asked.any(|asked| asked["nums"].as_u64() > Some(1))
}

#[test]
fn a_pod_fits_where_hami_says_so_and_gets_as_much() {
    let mut compared = Compared::default();
    let mut left_out: BTreeMap<&str, usize> = BTreeMap::new();
    for file in ["fit", "crafted"] {
        for case in cases(file, None) {
            match asking(&case) {
                Ok(pod) => compared.add(&case, &pod),
                Err(why) => *left_out.entry(why).or_default() += 1,
            }
        }
    }
    let Compared {
        fit,
        refused,
        written,
        profiles,
        linked,
        better_linked,
        worse_linked,
        single,
        same_single,
        held,
        meant,
        wrong,
    } = compared;
    println!(
        "the pod fits on {fit} nodes, and does not on {refused}; {written} times what containers \
         are told was compared, and {profiles} times the profiles of instances"
    );
    println!("pods that are held, by reason: {held:?}; differences that are meant: {meant:?}");
    println!("cases left out: {left_out:?}");
    println!(
        "links: {linked} choices of several cards, of which {better_linked} are better than HAMi's \
         and {worse_linked} worse; {single} of a single one, of which {same_single} are HAMi's"
    );
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
    assert!(linked > 3 && worse_linked < 2 && same_single > 15);
    assert!(fit > 400 && refused > 400 && written > 150 && profiles > 30);
    assert!(meant.values().sum::<usize>() < 200);
}

#[test]
fn a_register_of_before_2_8_has_the_same_cards() {
    let mut compared = 0;
    for case in cases("fit", None).iter().take(500) {
        for node in list(&case["input"]["nodes"]) {
            let mut old = node.clone();
            let listed: Value = serde_json::from_str(annotation(node, REGISTER)).unwrap();
            let known = cards_of(node);
            let is_shared = |card: &CardFacts| {
                card.profiles.is_empty() && card.closed != Some(CardClosed::OtherMode)
            };
            if !known.iter().all(is_shared) || known.len() != list(&listed).count() {
                continue;
            }
            let record = |card: &Value| {
                let text = |key: &str| card[key].as_str().unwrap_or_default().to_owned();
                let number = |key: &str| card[key].as_i64().unwrap_or(0);
                let (id, model, health) = (text("id"), text("type"), card["health"] == true);
                let [count, memory, core, numa] =
                    ["count", "devmem", "devcore", "numa"].map(number);
                format!("{id},{count},{memory},{core},{model},{numa},{health}:")
            };
            let records: String = list(&listed).map(record).collect();
            old["metadata"]["annotations"][REGISTER] = records.into();
            assert_eq!(cards_of(&old), known, "{}", case["id"]);
            compared += 1;
        }
    }
    println!("{compared} registers compared in two forms");
    assert!(compared > 200);
}
