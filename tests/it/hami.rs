//! Parts of cards on the real control plane. No kubelet runs here; the tests list cards as HAMi's
//! device plugin does, and serve pods by the model of it (`plugin`).

mod plugin;

use std::collections::BTreeMap;
use std::time::Duration;

use gpu_batch::lab::local::Options;
use gpu_batch_testing::{BIND_PHASE, CARD_LOCK};
use plugin::serve;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, stays, until};
use crate::work::{ensure, patched};

const ALLOCATED: &str = "hami.io/vgpu-devices-allocated";
const INSTANCES: &str = "hami.io/vgpu-mig-allocations";

/// How long it is looked at whether something stays as it is.
const A_WHILE: Duration = Duration::from_secs(2);

/// What HAMi's plugin gives away of each card here.
const SLOTS: u64 = 10;
const MEMORY_MIB: u64 = 16_000;
const PERCENT: u64 = 100;

/// Creates a node with two cards of HAMi, and returns its name and the ids of the cards.
async fn node(cluster: &Cluster, name: &str, annotations: &Value) -> (String, [String; 2]) {
    node_with(cluster, name, &json!({"mode": "hami-core"}), annotations).await
}

/// As [`node`]; `card`: what the register says of each card beside what is the same everywhere.
async fn node_with(
    cluster: &Cluster,
    name: &str,
    card: &Value,
    annotations: &Value,
) -> (String, [String; 2]) {
    let node = cluster.node(name, "r1");
    let cards = ["a", "b"].map(|card| format!("GPU-{name}-{card}"));
    let listed = cards.each_ref().map(|id| {
        let listed = json!({"id": id, "count": SLOTS, "devmem": MEMORY_MIB, "devcore": PERCENT,
                            "type": "NVIDIA H100 80GB HBM3", "health": true});
        patched(listed, card)
    });
    let slots = json!({"nvidia.com/gpu": (2 * SLOTS).to_string()});
    let object = patched(
        node.object(),
        &json!({
            "metadata": {"annotations": {
                "hami.io/node-nvidia-register": json!(listed).to_string(),
            }},
            "status": {"capacity": slots, "allocatable": slots},
        }),
    );
    let annotations = json!({"metadata": {"annotations": annotations}});
    cluster.create(&patched(object, &annotations)).await;
    (node.name, cards)
}

/// What a pod asks for beside one slot.
fn part(memory_mib: u64, percent: u64) -> Value {
    json!({"spec": {"containers": [{
        "name": "c", "image": "none",
        "resources": {"limits": {
            "nvidia.com/gpu": "1", "nvidia.com/gpumem": memory_mib.to_string(),
            "nvidia.com/gpucores": percent.to_string(),
        }},
    }]}})
}

async fn annotation(cluster: &Cluster, path: &str, name: &str) -> Option<String> {
    let object = cluster.get(path).await.unwrap();
    object["metadata"]["annotations"][name]
        .as_str()
        .map(str::to_owned)
}

async fn lock_of(cluster: &Cluster, node: &str) -> Option<String> {
    annotation(cluster, &format!("/api/v1/nodes/{node}"), CARD_LOCK).await
}

async fn unlock(cluster: &Cluster, node: &str) {
    let unlocked = json!({"metadata": {"annotations": {CARD_LOCK: null}}});
    cluster
        .merge(&format!("/api/v1/nodes/{node}"), &unlocked)
        .await;
}

/// Serves nodes until so many pods have been served.
async fn serve_all(cluster: &Cluster, nodes: &[&str], count: usize) {
    let mut served = 0;
    until("pods are served", async || {
        for node in nodes {
            served += usize::from(serve(cluster, node).await);
        }
        ensure(served == count, served)
    })
    .await;
    for node in nodes {
        assert!(!serve(cluster, node).await);
        assert_eq!(lock_of(cluster, node).await, None);
    }
}

/// What pods hold of each card: how many, percent and MiB.
async fn held(cluster: &Cluster) -> BTreeMap<String, [u64; 3]> {
    let mut held: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for pod in cluster.list("/api/v1/pods").await.unwrap() {
        let Some(text) = pod["metadata"]["annotations"][ALLOCATED].as_str() else {
            continue;
        };
        for part in text.split([':', ';']).filter(|part| !part.is_empty()) {
            let fields: Vec<&str> = part.split(',').collect();
            let sums = held.entry(fields[0].to_owned()).or_default();
            let amounts = [1, fields[3].parse().unwrap(), fields[2].parse().unwrap()];
            for (sum, amount) in sums.iter_mut().zip(amounts) {
                *sum += amount;
            }
        }
    }
    held
}

async fn prepared(namespace: &str) -> Option<Cluster> {
    let cluster = cluster::own(namespace, Options::default()).await?;
    cluster.define_kinds().await;
    Some(cluster)
}

#[tokio::test]
async fn a_gang_shares_cards_of_two_nodes_one_pod_of_a_node_at_a_time() {
    let Some(cluster) = prepared("hami").await else {
        return;
    };
    let (first, _) = node(&cluster, "n1", &json!({})).await;
    let (second, _) = node(&cluster, "n2", &json!({})).await;
    let _scheduler = cluster.scheduler("").await;
    cluster.group("train", &json!({"minMember": 10})).await;
    // Three of them fill a card: 15,000 MiB and 90 %.
    let members = cluster.members("train", 10, 1, &part(5_000, 30)).await;
    serve_all(&cluster, &[&first, &second], members.len()).await;
    cluster.bound(&members).await;
    let held = held(&cluster).await;
    assert_eq!(held.values().map(|held| held[0]).sum::<u64>(), 10);
    for (card, [slots, percent, memory_mib]) in &held {
        let fits = *slots <= SLOTS && *percent <= PERCENT && *memory_mib <= MEMORY_MIB;
        assert!(fits, "{card}: {held:?}");
    }
    for member in &members {
        let pod = cluster.get(&cluster.pod_path(member)).await.unwrap();
        let (metadata, node) = (&pod["metadata"], &pod["spec"]["nodeName"]);
        let annotations = &metadata["annotations"];
        let card = annotations[ALLOCATED]
            .as_str()
            .unwrap()
            .split(',')
            .next()
            .unwrap();
        assert_eq!(annotations[ALLOCATED], format!("{card},NVIDIA,5000,30:;"));
        assert_eq!(annotations[BIND_PHASE], "success");
        assert_eq!(annotations["hami.io/vgpu-node"], *node);
        assert_eq!(
            annotations["hami.io/vgpu-time"],
            annotations["hami.io/bind-time"]
        );
        assert_eq!(metadata["labels"]["hami.io/vgpu-node"], *node);
        let of_node = card.strip_suffix(['a', 'b']).unwrap();
        assert!(
            node.as_str()
                .unwrap()
                .ends_with(&of_node["GPU-".len()..of_node.len() - 1])
        );
    }

    // No card has fewer than one of them, so that at most 11,000 MiB are free.
    let large = cluster.pod("large", 1, &part(12_000, 50));
    cluster.create(&large).await;
    cluster.pod_waits("large", "Unschedulable").await;
    cluster.create(&cluster.pod("plain", 1, &json!({}))).await;
    cluster.pod_waits("plain", "Unsupported").await;
}

#[tokio::test]
async fn the_entry_of_a_container_is_where_hamis_plugin_looks_for_it() {
    let Some(cluster) = prepared("hami-entries").await else {
        return;
    };
    let (node, cards) = node(&cluster, "n1", &json!({})).await;
    let _scheduler = cluster.scheduler("").await;
    let none = |name: &str| json!({"name": name, "image": "none"});
    let asking = json!({
        "name": "asks", "image": "none",
        "resources": {"limits": {"nvidia.com/gpu": "2", "nvidia.com/gpumem-percentage": "25"}},
    });
    let patch = json!({"spec": {
        "initContainers": [none("first")], "containers": [none("second"), asking, none("last")],
    }});
    cluster.create(&cluster.pod("four", 0, &patch)).await;
    serve_all(&cluster, &[&node], 1).await;
    let text = annotation(&cluster, &cluster.pod_path("four"), ALLOCATED)
        .await
        .unwrap();
    let [a, b] = cards;
    assert_eq!(text, format!(";;{a},NVIDIA,4000,0:{b},NVIDIA,4000,0:;;"));

    // What annotations ask for is in the entry, too, where alone the plugin looks for it.
    for (name, key) in [
        ("quarter", "gpu-batch.io/gpu-fraction"),
        ("of-kai", "gpu-fraction"),
    ] {
        let annotated = json!({"metadata": {"annotations": {key: "0.25"}}});
        cluster.create(&cluster.pod(name, 1, &annotated)).await;
        serve_all(&cluster, &[&node], 1).await;
        let text = annotation(&cluster, &cluster.pod_path(name), ALLOCATED).await;
        let (_, part) = text.as_deref().unwrap().split_once(',').unwrap();
        assert_eq!(part, "NVIDIA,4000,25:;");
    }
}

#[tokio::test]
async fn instances_of_mig_get_places_of_their_own_which_the_plugin_finds() {
    let Some(cluster) = prepared("hami-mig").await else {
        return;
    };
    let profile = |name: &str, memory_mib: u64, core: u64, size: u64, starts: &[u64]| {
        let starts = starts.iter();
        let placements: Vec<Value> = starts
            .map(|start| json!({"start": start, "size": size}))
            .collect();
        json!({"name": name, "memoryMB": memory_mib, "core": core, "sliceCount": size,
               "placements": placements})
    };
    let profiles = [
        profile("1g.2gb", 1_900, 14, 1, &[0, 1, 2, 3, 4, 5, 6]),
        profile("2g.4gb", 3_900, 28, 2, &[0, 2, 4]),
        profile("7g.16gb", 16_000, 100, 8, &[0]),
    ];
    let card = json!({"mode": "mig", "count": 7, "migProfiles": profiles});
    let (node, _) = node_with(&cluster, "n1", &card, &json!({})).await;
    let _scheduler = cluster.scheduler("").await;
    cluster.group("train", &json!({"minMember": 6})).await;
    let asks = json!({"metadata": {"annotations": {
        "gpu-batch.io/gpu-slice": "mig", "gpu-batch.io/gpu-fraction": "0.25",
    }}});
    let members = cluster.members("train", 6, 1, &asks).await;
    serve_all(&cluster, &[&node], members.len()).await;
    cluster.bound(&members).await;
    let mut places: Vec<(String, u64)> = Vec::new();
    for member in &members {
        let path = cluster.pod_path(member);
        let text = annotation(&cluster, &path, INSTANCES).await.unwrap();
        let listed: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(listed.len(), 1, "{text}");
        assert_eq!(listed[0]["profile"], "2g.4gb");
        let card = listed[0]["gpuUUID"].as_str().unwrap().to_owned();
        places.push((card, listed[0]["placement"]["start"].as_u64().unwrap()));
    }
    places.sort_unstable();
    let starts: Vec<u64> = places.iter().map(|(_, start)| *start).collect();
    assert_eq!(starts, [0, 2, 4, 0, 2, 4], "{places:?}");
    cluster.create(&cluster.pod("large", 1, &asks)).await;
    cluster.pod_waits("large", "Unschedulable").await;
}

#[tokio::test]
async fn locks_of_others_are_waited_for_and_those_of_nobody_are_replaced() {
    let Some(cluster) = prepared("hami-locks").await else {
        return;
    };
    let namespace = &cluster.namespace;
    let foreign = json!({"spec": {"schedulerName": "nobody"}});
    cluster.create(&cluster.pod("other", 1, &foreign)).await;
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let of_nobody = format!("{now},{namespace},ghost");
    let (node, _) = node(&cluster, "n1", &json!({CARD_LOCK: of_nobody})).await;
    let _scheduler = cluster.scheduler("").await;
    cluster.create(&cluster.pod("a", 1, &part(1_000, 10))).await;
    serve_all(&cluster, &[&node], 1).await;

    let path = format!("/api/v1/nodes/{node}");
    let locked = async |value: &str| {
        let lock = json!({"metadata": {"annotations": {CARD_LOCK: value}}});
        cluster.merge(&path, &lock).await;
    };
    let expired = format!("2026-01-01T10:00:00+08:00,{namespace},other");
    locked(&expired).await;
    cluster.create(&cluster.pod("b", 1, &part(1_000, 10))).await;
    serve_all(&cluster, &[&node], 1).await;

    let held = format!("{now},{namespace},other");
    for (name, lock) in [("c", &*held), ("d", "never")] {
        locked(lock).await;
        cluster
            .create(&cluster.pod(name, 1, &part(1_000, 10)))
            .await;
        let pod = [name.to_owned()];
        stays("the lock", A_WHILE, async || {
            cluster.none_bound(&pod).await?;
            let found = lock_of(&cluster, &node).await;
            ensure(found.as_deref() == Some(lock), found)
        })
        .await;
        unlock(&cluster, &node).await;
        serve_all(&cluster, &[&node], 1).await;
    }
}

#[tokio::test]
async fn a_plugin_that_serves_nobody_holds_up_the_pods_after_the_first() {
    let Some(cluster) = prepared("hami-silent").await else {
        return;
    };
    let (node, _) = node(&cluster, "n1", &json!({})).await;
    let _scheduler = cluster.scheduler("").await;
    cluster.create(&cluster.pod("a", 1, &part(1_000, 10))).await;
    cluster.bound(&["a".to_owned()]).await;
    cluster.create(&cluster.pod("b", 1, &part(1_000, 10))).await;
    let second = ["b".to_owned()];
    stays("the lock", A_WHILE, async || {
        cluster.none_bound(&second).await?;
        let found = lock_of(&cluster, &node).await;
        ensure(
            found
                .as_ref()
                .is_some_and(|it| it.ends_with(",hami-silent,a")),
            found,
        )
    })
    .await;
    // When the pod that has the lock is gone, the next pod has its turn.
    cluster.delete(&cluster.pod_path("a")).await;
    cluster.bound(&second).await;
    serve_all(&cluster, &[&node], 1).await;
}

/// For a test of the scheduler's rights: a pod gets a part of a card of a node of its own.
pub(crate) async fn a_pod_gets_a_part_of_a_card(cluster: &Cluster) {
    let (node, _) = node(cluster, "hami", &json!({})).await;
    cluster
        .create(&cluster.pod("part", 1, &part(1_000, 10)))
        .await;
    serve_all(cluster, &[&node], 1).await;
    cluster.delete(&cluster.pod_path("part")).await;
    cluster.delete(&format!("/api/v1/nodes/{node}")).await;
}
