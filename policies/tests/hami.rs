//! Whether a pod that asks for parts of cards fits on a node, compared with HAMi's own answers.
//!
//! In the shared cases a node is registered as HAMi's device plugin does it, and the cards that
//! pods hold stand in their annotations. Cases are left out, and counted, that ask for what the
//! engine does not know yet, or in which HAMi is known to count otherwise.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use flate2::read::GzDecoder;
use gpu_batch_policies::facts::{
    CARD_RULES, CardClosed, CardFacts, CardMemory, CardModes, CardNeed, CardPart, CardRule,
    CardTerms, ContainerCards, ContainerRole, HAMI_REGISTER, MigInstance, MigPlacement, MigProfile,
    NodeFacts, PodFacts,
};
use gpu_batch_testing::{Sketch, World, node, pod};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Pod annotations that only order what fits.
const ORDERING: [&str; 3] = [
    "hami.io/node-scheduler-policy",
    "hami.io/gpu-scheduler-policy",
    "hami.io/device-scoring-weights",
];

/// The annotation about the modes of cards.
const MODE: &str = "nvidia.com/vgpu-mode";

/// The directory of the cases, if it is there.
fn directory() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/cases/hami");
    let path = std::env::var_os("GPU_BATCH_HAMI_CASES").unwrap_or_else(|| beside.into());
    Some(PathBuf::from(path)).filter(|path| path.is_dir())
}

fn lines(path: &Path) -> impl Iterator<Item = Value> {
    let lines = BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["annotations"][key]
        .as_str()
        .unwrap_or_default()
}

/// What the containers of the pod ask for; an error says why the case is left out.
fn containers(case: &Value) -> Result<Vec<ContainerCards>, &'static str> {
    let (pod, answer) = (&case["input"]["pod"], &case["answer"]);
    // Other settings order what fits, or are in the requests that HAMi derived.
    let order = case["config"]["gpuSchedulerPolicy"].as_str();
    if case["input"].get("quotas").is_some() {
        return Err("quotas of HAMi");
    }
    if order.is_some_and(|order| order.contains("mutex")) {
        return Err("the policy mutex as HAMi's default");
    }
    if answer.get("noRequest").is_some() || answer.get("error").is_some() {
        return Err("HAMi sees no request, or an invalid one");
    }
    let annotations = pod["metadata"]["annotations"].as_object();
    let mut keys = annotations
        .into_iter()
        .flat_map(|annotations| annotations.keys());
    let policy = annotation(pod, "hami.io/gpu-scheduler-policy");
    let known = |key: &&String| {
        ORDERING.contains(&&***key) || CARD_RULES.contains(&&***key) || **key == MODE
    };
    if !keys.all(|key| known(&key)) || ["mutex", "numa"].iter().any(|it| policy.contains(it)) {
        return Err("annotations that are not supported: numa-bind, mutex, numa");
    }
    let inits = list(&pod["spec"]["initContainers"]).count();
    let asks = list(&answer["requests"]).enumerate();
    let asks = asks.filter(|(_, request)| request["nums"].as_u64() > Some(0));
    let container = |(position, request): (usize, &Value)| {
        let number = |key: &str| request[key].as_u64().unwrap_or(0);
        let memory = match (number("mem"), number("memPct")) {
            (0, 101) => CardMemory::Percent(100),
            (0, percent) => CardMemory::Percent(u32::try_from(percent).unwrap()),
            (memory_mib, _) => CardMemory::Mib(memory_mib),
        };
        let power = number("cores").min(100) * 10;
        let need = CardNeed::new(number("nums"), power, memory).ok_or("too many cards")?;
        let role = match position < inits {
            true => ContainerRole::Init,
            false => ContainerRole::Main,
        };
        Ok(ContainerCards { role, need })
    };
    asks.map(container).collect()
}

/// The rules of the pod about the cards that will do.
fn rules(pod: &Value) -> Vec<CardRule> {
    let names = |key: &str| -> Option<Vec<Box<str>>> {
        let text = pod["metadata"]["annotations"][key].as_str()?;
        let is_of_models = key.ends_with("type");
        let names = text.split(',').map(str::trim);
        let names = names
            .filter(|name| !name.is_empty())
            .map(|name| match is_of_models {
                true => name.to_lowercase().into(),
                false => name.into(),
            });
        (!text.trim().is_empty()).then(|| names.collect())
    };
    let [models, not_models, ids, not_ids] = CARD_RULES.map(names);
    let rules = [
        models.map(CardRule::Models),
        not_models.map(CardRule::NotModels),
        ids.map(CardRule::Ids),
        not_ids.map(CardRule::NotIds),
    ];
    rules.into_iter().flatten().collect()
}

/// Whether cards in MIG mode will do for the pod. Without a word HAMi takes both.
fn modes(pod: &Value) -> Result<CardModes, &'static str> {
    let text = annotation(pod, MODE);
    match (text.contains("hami-core"), text.contains("mig")) {
        _ if text.is_empty() => Ok(CardModes::Any),
        (true, true) => Ok(CardModes::Any),
        (true, false) => Ok(CardModes::Shared),
        (false, true) => Ok(CardModes::Mig),
        (false, false) => Err("a mode that is not supported"),
    }
}

fn placement(value: &Value) -> MigPlacement {
    let [start, size] = ["start", "size"].map(|key| value[key].as_u64().unwrap_or(0));
    MigPlacement::new(start.try_into().unwrap(), size.try_into().unwrap()).unwrap()
}

/// What a card in MIG mode can be cut into.
fn profiles(card: &Value) -> Vec<MigProfile> {
    let profiles = list(&card["migProfiles"]).map(|profile| MigProfile {
        name: profile["name"].as_str().unwrap().into(),
        memory_mib: profile["memoryMB"].as_u64().unwrap(),
        thousandths: 10 * u32::try_from(profile["core"].as_u64().unwrap()).unwrap(),
        placements: list(&profile["placements"]).map(placement).collect(),
    });
    profiles.collect()
}

/// The cards of a node.
fn cards(object: &Value) -> Result<Vec<CardFacts>, &'static str> {
    let register = annotation(object, HAMI_REGISTER);
    let Ok(Value::Array(cards)) = serde_json::from_str(register) else {
        return Err("a register from before 2.8, or a broken one");
    };
    let cordon = annotation(object, "hami.io/device-cordon");
    let cards = cards.iter().map(|card| {
        let number = |key: &str| card[key].as_u64().unwrap_or(0);
        let id = card["id"].as_str().unwrap_or_default();
        let profiles = match card["mode"].as_str() {
            None | Some("hami-core") => Vec::new(),
            Some("mig") if card["migProfiles"].is_array() => profiles(card),
            Some(_) => return Err("a card in another mode"),
        };
        let model = card["type"].as_str().unwrap_or_default();
        if !model.to_lowercase().contains("nvidia") {
            return Err("a card that HAMi does not see, because its model does not name NVIDIA");
        }
        let closed = if card["health"] != true {
            Some(CardClosed::Unhealthy)
        } else if cordon.split(',').any(|cordoned| cordoned.trim() == id) {
            Some(CardClosed::Cordoned)
        } else {
            None
        };
        Ok(CardFacts {
            id: id.into(),
            model: model.into(),
            memory_mib: number("devmem"),
            thousandths: u32::try_from(number("devcore") * 10).unwrap(),
            slots: u32::try_from(number("count")).unwrap(),
            numa: u32::try_from(number("numa")).unwrap(),
            profiles,
            closed,
        })
    });
    let mut cards = cards.collect::<Result<Vec<CardFacts>, _>>()?;
    cards.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(cards)
}

/// Slots, thousandths and MiB by card.
type Held = BTreeMap<String, [u64; 3]>;

/// What an entry of the annotation lists.
fn entry(text: &str) -> Result<Held, &'static str> {
    let mut held = Held::new();
    for part in text.split(':').filter(|part| !part.is_empty()) {
        let fields: Vec<&str> = part.split(',').collect();
        let [card, _, memory_mib, cores] = fields.as_slice() else {
            return Err("a broken annotation of a pod");
        };
        let (Ok(memory_mib), Ok(cores)) = (memory_mib.parse::<u64>(), cores.parse::<u64>()) else {
            return Err("a broken annotation of a pod");
        };
        let sums = held.entry((*card).to_owned()).or_default();
        for (sum, more) in sums.iter_mut().zip([1, cores * 10, memory_mib]) {
            *sum += more;
        }
    }
    Ok(held)
}

/// What a pod holds: of each card the most that an init container holds, or the sum of all others
/// if that is more.
fn held(object: &Value) -> Result<Vec<CardPart>, &'static str> {
    let inits = list(&object["spec"]["initContainers"]).count();
    let (mut peak, mut sum) = (Held::new(), Held::new());
    let text = annotation(object, "hami.io/vgpu-devices-allocated");
    for (position, text) in text.split(';').enumerate() {
        for (card, amounts) in entry(text)? {
            let is_init = position < inits;
            let total = if is_init { &mut peak } else { &mut sum };
            let total = total.entry(card).or_default();
            for (total, amount) in total.iter_mut().zip(amounts) {
                *total = if is_init {
                    amount.max(*total)
                } else {
                    amount + *total
                };
            }
        }
    }
    for (card, amounts) in peak {
        let total = sum.entry(card).or_default();
        for (total, amount) in total.iter_mut().zip(amounts) {
            *total = amount.max(*total);
        }
    }
    let mut instances: BTreeMap<String, Vec<MigInstance>> = BTreeMap::new();
    let text = annotation(object, "hami.io/vgpu-mig-allocations");
    let listed: Value = serde_json::from_str(text).unwrap_or_default();
    for instance in list(&listed) {
        let card = instance["gpuUUID"].as_str().unwrap();
        if !sum.contains_key(card) {
            return Err("an instance on a card that the pod has no part of");
        }
        instances
            .entry(card.to_owned())
            .or_default()
            .push(MigInstance {
                placement: placement(&instance["placement"]),
                profile: instance["profile"].as_str().unwrap().into(),
            });
    }
    let part = |(card, [slots, thousandths, memory_mib]): (String, [u64; 3])| CardPart {
        instances: instances.remove(&card).unwrap_or_default(),
        card: card.into(),
        slots: u32::try_from(slots).unwrap(),
        thousandths: u32::try_from(thousandths).unwrap(),
        memory_mib,
    };
    Ok(sum.into_iter().map(part).collect())
}

/// The pods that hold cards of a node.
fn holders(case: &Value, node: &str) -> Result<Vec<Sketch<PodFacts>>, &'static str> {
    let input = &case["input"];
    let mut holders = Vec::new();
    for (position, object) in list(&input["pods"]).enumerate() {
        if matches!(
            object["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        ) {
            continue;
        }
        if object["metadata"].get("deletionTimestamp").is_some() {
            return Err("a pod is being deleted, which HAMi forgets at once");
        }
        let was_seen_again = list(&input["resync"]).any(|seen| *seen == position);
        if was_seen_again && object["spec"].get("initContainers").is_some() {
            return Err("init containers have ended, which HAMi counts no more");
        }
        let cards = held(object)?;
        if annotation(object, "hami.io/vgpu-node") == node {
            let name = format!("p{position}");
            holders.push(
                pod(&name, 0)
                    .foreign()
                    .on(node)
                    .with(|pod| pod.cards.clone_from(&cards)),
            );
        }
    }
    Ok(holders)
}

/// A pod whose containers ask for cards.
fn asking(containers: &[ContainerCards], rules: &[CardRule], modes: CardModes) -> Sketch<PodFacts> {
    let sum = |role| {
        let of_role = containers.iter().filter(move |it| it.role == role);
        of_role.map(|it| u64::from(it.need.count()))
    };
    let gpus = sum(ContainerRole::Main).sum::<u64>();
    let gpus = gpus.max(sum(ContainerRole::Init).max().unwrap_or(0));
    let is_plain = matches!(containers, [one] if one.role == ContainerRole::Main);
    let need = containers.first().map(|container| container.need);
    pod("new", gpus).cards(need).shape(|shape| {
        let containers = match is_plain {
            true => Vec::new(),
            false => containers.to_vec(),
        };
        shape.card_terms = CardTerms {
            containers,
            rules: rules.to_vec(),
            modes,
            order: None,
        }
        .boxed();
    })
}

/// What the pod gets if the node is the only one: the parts of each of its containers that ask.
fn given(
    object: &Value,
    holders: Vec<Sketch<PodFacts>>,
    asking: Sketch<PodFacts>,
) -> Result<Option<Vec<Vec<CardPart>>>, &'static str> {
    let cards = cards(object)?;
    let slots = cards.iter().map(|card| u64::from(card.slots)).sum();
    let name = object["metadata"]["name"].as_str().unwrap();
    let node: Sketch<NodeFacts> = node(name, slots).with(|node| {
        node.annotations = vec![(HAMI_REGISTER.into(), "".into())];
        node.cards.clone_from(&cards);
    });
    let mut world = World::of(node);
    for holder in holders {
        world.apply(holder);
    }
    world.then(asking);
    let bind = world.last_bind.as_ref();
    let entries = bind.map(|bind| bind.assignment.clone().unwrap().entries);
    Ok(entries.filter(|_| world.is_placed("new")))
}

/// How our verdicts on the nodes of a case go with HAMi's.
#[derive(Default)]
struct Compared {
    /// Where the pod fits for both.
    fit: usize,
    /// Where it fits for neither.
    refused: usize,
    /// HAMi goes back on no choice for an earlier container, and finds no cards for a later one.
    more_found: usize,
    /// What each container is told was compared, too.
    written: usize,
    /// The pod fits on a card in MIG mode for both.
    cut: usize,
    /// As many profiles as HAMi's were chosen.
    profiles: usize,
    /// HAMi gives an init container and a later one the same instance.
    kept_out: usize,
    /// HAMi gives an instance with less computing power than is asked for.
    weaker: usize,
    /// HAMi counts a percentage of more memory than all instances have together.
    percent: usize,
    wrong: Vec<String>,
}

impl Compared {
    fn add(&mut self, case: &Value) -> Result<(), &'static str> {
        let containers = containers(case)?;
        let beside = containers
            .iter()
            .filter(|it| it.role == ContainerRole::Main);
        let several = beside.count() > 1;
        let mut modes = modes(&case["input"]["pod"])?;
        let mut roles = containers.iter().map(|it| it.role);
        let is_kept_out = modes == CardModes::Any && roles.any(|it| it == ContainerRole::Init);
        if is_kept_out {
            modes = CardModes::Shared;
        }
        let asks_power = containers.iter().any(|it| it.need.thousandths() > 0);
        let percent = |it: &ContainerCards| matches!(it.need.memory(), CardMemory::Percent(_));
        let asks_percent = containers.iter().any(percent);
        let mut verdicts = Vec::new();
        for object in list(&case["input"]["nodes"]) {
            let name = object["metadata"]["name"].as_str().unwrap();
            let asking = asking(&containers, &rules(&case["input"]["pod"]), modes);
            let ours = given(object, holders(case, name)?, asking)?;
            let is_mig = cards(object)?.iter().any(|card| !card.profiles.is_empty());
            verdicts.push((&case["answer"]["nodes"][name], ours, is_mig));
        }
        for (theirs, ours, is_mig) in verdicts {
            match (&ours, theirs["fit"] == true) {
                (Some(ours), true) if is_mig => {
                    self.cut += 1;
                    if !asks_power && !asks_percent {
                        self.compare_profiles(case, ours, &theirs["devices"]);
                    }
                }
                (Some(ours), true) => {
                    self.fit += 1;
                    self.compare_entries(case, ours, &theirs["devices"]);
                }
                (None, true) if is_mig && is_kept_out => self.kept_out += 1,
                (None, true) if is_mig && asks_power => self.weaker += 1,
                (Some(_), false) if is_mig && asks_percent => self.percent += 1,
                (None, false) => self.refused += 1,
                (Some(_), false) if several => self.more_found += 1,
                _ => self
                    .wrong
                    .push(format!("{}: {ours:?}, {theirs}", case["id"])),
            }
        }
        Ok(())
    }

    /// Compares the profiles of instances, where all devices are instances for both: which of the
    /// cards is taken first depends on their order.
    fn compare_profiles(&mut self, case: &Value, ours: &[Vec<CardPart>], theirs: &Value) {
        let theirs = list(theirs).flat_map(list);
        let theirs: Option<Vec<&str>> = theirs.map(|device| device["profile"].as_str()).collect();
        let ours = ours.iter().flatten();
        let ours = ours.map(|part| part.instances.first().map(|it| &*it.profile));
        let ours: Option<Vec<&str>> = ours.collect();
        if let Some((mut ours, mut theirs)) = ours.zip(theirs) {
            ours.sort_unstable();
            theirs.sort_unstable();
            self.profiles += 1;
            if ours != theirs {
                self.wrong
                    .push(format!("{}: {ours:?}, {theirs:?}", case["id"]));
            }
        }
    }

    /// Compares what each container is told. Where some ask for no cards, HAMi's entries are those
    /// of other containers.
    fn compare_entries(&mut self, case: &Value, ours: &[Vec<CardPart>], theirs: &Value) {
        let all_ask = list(&case["answer"]["requests"]).all(|it| it["nums"].as_u64() > Some(0));
        let mut sizes: Vec<u64> = Vec::new();
        for object in list(&case["input"]["nodes"]) {
            sizes.extend(cards(object).into_iter().flatten().map(|it| it.memory_mib));
        }
        sizes.dedup();
        if !all_ask || sizes.len() > 1 {
            return;
        }
        let ours = ours.iter().map(|parts| {
            let told = |part: &CardPart| (part.memory_mib, u64::from(part.thousandths) / 10);
            parts.iter().map(told).collect::<Vec<(u64, u64)>>()
        });
        let theirs = list(theirs).map(|parts| {
            let number = |part: &Value, key: &str| part[key].as_u64().unwrap();
            let told = |part| (number(part, "mem"), number(part, "cores"));
            list(parts).map(told).collect::<Vec<(u64, u64)>>()
        });
        let (ours, theirs): (Vec<_>, Vec<_>) = (ours.collect(), theirs.collect());
        self.written += 1;
        if ours != theirs {
            let wrong = format!("{}: {ours:?}, {theirs:?}", case["id"]);
            self.wrong.push(wrong);
        }
    }
}

#[test]
fn a_pod_fits_where_hami_says_so() {
    let Some(directory) = directory() else {
        println!("NOT COMPARED: the shared cases are missing; see GPU_BATCH_HAMI_CASES");
        return;
    };
    let mut compared = Compared::default();
    let mut left_out: BTreeMap<&str, u32> = BTreeMap::new();
    for file in ["fit.jsonl.gz", "crafted.jsonl.gz"] {
        for case in lines(&directory.join(file)) {
            if let Err(why) = compared.add(&case) {
                *left_out.entry(why).or_default() += 1;
            }
        }
    }
    let Compared {
        fit,
        refused,
        more_found,
        written,
        cut,
        profiles,
        kept_out,
        weaker,
        percent,
        wrong,
    } = compared;
    println!(
        "the pod fits on {fit} nodes, and does not on {refused}; on {more_found} HAMi finds no \
         cards for a later container; {written} times what containers are told was compared"
    );
    println!(
        "beside cards in MIG mode it fits {cut} times, {profiles} times with the profiles compared; \
         {kept_out} times HAMi gives two containers one instance, {weaker} times less power than \
         asked for, and {percent} times no instance where \
         a percentage is asked for"
    );
    for (why, number) in left_out {
        println!("{number} cases left out: {why}");
    }
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
    assert!(fit > 200 && refused > 200 && written > 100 && more_found < 30);
    assert!(cut > 80 && profiles > 30);
}
