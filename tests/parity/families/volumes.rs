//! Claims of pods, and the objects that say where their volumes are or can be.
//!
//! On purpose not drawn, because gpu-batch differs there:
//! - Disks that the judged pod names itself and that the CSI driver which has taken them over does
//!   not understand: kube-scheduler fails on nodes with a CSINode.
//! - Claims that were made for a pod on a node and that it does not own: kube-scheduler fails
//!   there.
//! - Several claims of one pod that wait for free volumes and differ in more than their sizes:
//!   kube-scheduler gives each the smallest that is left, and gpu-batch looks for other ways where
//!   that fails.
//! - A claim for one pod alone that a pod uses on a node that there is not: kube-scheduler does not
//!   count that pod.
//! - Two waiting pods that use one ReadWriteOncePod claim: only the older is let in.

mod draws;

use serde_json::{Value, json};

use super::draw::Draw;
use super::{each, relations, taints};
use draws::{CLASSES, Class, DRIVERS};

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// The keys of labels for zones and regions: today's, and those of before.
const TOPOLOGY: &str = "topology.kubernetes.io";
const BETA: &str = "failure-domain.beta.kubernetes.io";

/// Nodes in zones, pods on them with claims, and a pod with claims.
pub(crate) fn case(draw: &mut Draw) -> Value {
    let mut case = relations::of_pods(draw);
    if draw.percent(40) {
        case["pods"] = json!([]);
    }
    for node in each(&mut case, "nodes") {
        // What decides is where volumes are.
        node["status"]["allocatable"] = json!({"cpu": "64", "memory": "2Ti", "pods": "110"});
    }
    if draw.percent(10) {
        taints::add(draw, &mut case);
    }
    add(draw, &mut case);
    case
}

/// Gives nodes zones, pods volumes, and the cluster the objects for them.
pub(crate) fn add(draw: &mut Draw, case: &mut Value) {
    for node in each(case, "nodes") {
        draws::zones_of_node(draw, node);
    }
    let mut stock = Stock::new(draw, case);
    let count = 1 + draw.below(3);
    stock.free = draw.percent(45).then_some(count == 1);
    for pod in each(case, "pods") {
        // Few, so that limits decide and not amounts.
        if draw.percent(50) {
            stock.use_by_other(draw, pod);
        }
    }
    let volumes = (0..count).map(|index| stock.volume(draw, index));
    let volumes: Vec<Value> = volumes.collect();
    let shares = if draw.percent(40) {
        1 + draw.below(3)
    } else {
        0
    };
    for _ in 0..shares {
        stock.share(draw, case);
    }
    let attachments = if draw.percent(50) { draw.below(5) } else { 0 };
    for index in 0..attachments {
        let attachment = draws::attachment(draw, index, stock.volumes, &stock.nodes);
        stock.objects.push(attachment);
    }
    let pod = &mut case["pod"];
    pod["spec"]["volumes"] = volumes.into();
    let mut objects = stock.objects;
    if draw.percent(3) {
        // Objects may be missing.
        let at = draw.below(objects.len() as u64);
        objects.remove(usize::try_from(at).unwrap());
    }
    case["objects"] = objects.into();
}

/// The UID that the pod to be judged gets, as it has none: one that has a UID has been let in.
const JUDGED: &str = "Pod/default/judged";

/// The objects of a case, as they are made.
struct Stock {
    objects: Vec<Value>,
    nodes: Vec<String>,
    classes: Vec<Class>,
    /// The judged pod's claims that other pods may use.
    shared: Vec<String>,
    /// The claims of other pods, each with its namespace: pods may use one together.
    of_others: Vec<(String, String)>,
    /// How many volumes there are.
    volumes: usize,
    /// Whether there are free volumes for claims that wait: for the only claim of the judged pod,
    /// or for several, which then differ in size alone.
    free: Option<bool>,
}

impl Stock {
    /// What there is before pods: classes, drivers, and what they say of nodes.
    fn new(draw: &mut Draw, case: &mut Value) -> Self {
        let names = each(case, "nodes").map(|node| node["metadata"]["name"].as_str());
        let nodes = names.map(|name| name.unwrap().to_owned()).collect();
        let classes: Vec<Class> = CLASSES.iter().map(|name| Class::new(draw, name)).collect();
        let mut stock = Self {
            objects: classes.iter().map(|class| class.object.clone()).collect(),
            nodes,
            classes,
            shared: Vec::new(),
            of_others: Vec::new(),
            volumes: 0,
            free: None,
        };
        for driver in DRIVERS {
            if draw.percent(50) {
                let tells = draw.percent(60);
                stock.objects.push(json!({
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSIDriver",
                    "metadata": {"name": driver},
                    "spec": {"storageCapacity": tells},
                }));
            }
        }
        let capacities = draw.below(5);
        for index in 0..capacities {
            let capacity = draws::capacity(draw, index, &stock.nodes);
            stock.objects.push(capacity);
        }
        let limited = draw.percent(50);
        for node in stock.nodes.iter().filter(|_| limited) {
            if draw.percent(70) {
                stock.objects.push(draws::csi_node(draw, node));
            }
        }
        stock
    }

    /// A volume of the pod to be judged, with what it needs.
    fn volume(&mut self, draw: &mut Draw, index: u64) -> Value {
        let name = format!("v{index}");
        match draw.below(20) {
            0 => return json!({"name": name, "emptyDir": {}}),
            1 => return json!({"name": name, "configMap": {"name": "settings"}}),
            2..6 => return self.ephemeral(draw, &name),
            6 | 7 => return draws::disk(draw, &name),
            _ => {}
        }
        let claim = format!("claim-{index}");
        let alone = draw.percent(20);
        let modes = match alone {
            true => "ReadWriteOncePod",
            false => draw.pick(&["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]),
        };
        let mut object = draws::claim(draw, "default", &claim, modes);
        self.fill(draw, &mut object);
        self.shared.push(claim.clone());
        self.keep(draw, object);
        json!({"name": name, "persistentVolumeClaim": {"claimName": claim}})
    }

    /// A volume whose claim is made for the pod alone.
    fn ephemeral(&mut self, draw: &mut Draw, name: &str) -> Value {
        let modes = *draw.pick(&["ReadWriteOnce", "ReadWriteOncePod"]);
        let mut object = draws::claim(draw, "default", &format!("judged-{name}"), modes);
        self.fill(draw, &mut object);
        let owner = |uid: &str, controls: bool| {
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "judged", "uid": uid,
                    "controller": controls, "blockOwnerDeletion": true}])
        };
        match draw.below(45) {
            0 => {}
            1 => object["metadata"]["ownerReferences"] = owner("uid-before", true),
            2 => object["metadata"]["ownerReferences"] = owner(JUDGED, false),
            _ => object["metadata"]["ownerReferences"] = owner(JUDGED, true),
        }
        let spec = json!({
            "accessModes": [modes],
            "resources": {"requests": {"storage": "1Gi"}},
        });
        self.keep(draw, object);
        json!({"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}})
    }

    /// Adds a claim of the judged pod, unless it is missing; and perhaps one of the same name.
    fn keep(&mut self, draw: &mut Draw, claim: Value) {
        if draw.percent(10) {
            let mut other = claim.clone();
            other["metadata"]["namespace"] = json!("other");
            other["metadata"]["uid"] = json!(format!("other-{}", claim["metadata"]["uid"]));
            self.objects.push(other);
        }
        if draw.percent(97) {
            self.objects.push(claim);
        }
    }

    /// Gives a claim of the judged pod a state, and makes the volumes that go with it.
    fn fill(&mut self, draw: &mut Draw, claim: &mut Value) {
        match draw.below(70) {
            0 => claim["metadata"]["deletionTimestamp"] = json!("2026-11-01T10:00:00Z"),
            1 => claim["status"]["phase"] = json!("Lost"),
            _ => {}
        }
        if claim["metadata"].get("deletionTimestamp").is_some() {
            claim["metadata"]["finalizers"] = json!(["kubernetes.io/pvc-protection"]);
        }
        let class = draws::class_of_claim(draw, claim);
        if draw.percent(50) {
            self.wait(draw, claim, class);
            return;
        }
        let name = self.next_name();
        claim["spec"]["volumeName"] = json!(name);
        if claim["status"]["phase"] != "Lost" {
            claim["status"]["phase"] = json!("Bound");
        }
        if draw.percent(98) {
            claim["metadata"]["annotations"][BIND_COMPLETED] = json!("yes");
        }
        let mut volume = draws::volume(draw, &name, claim, &self.nodes);
        volume["spec"]["claimRef"] = draws::reference(claim, true);
        volume["status"]["phase"] = json!("Bound");
        if draw.percent(97) {
            self.objects.push(volume);
        }
    }

    /// Makes a volume that is kept for a claim, and others that it does not get.
    fn wait(&mut self, draw: &mut Draw, claim: &mut Value, class: Option<&'static str>) {
        if draw.percent(4) {
            // Without a volume, the claim is not bound, whatever it says.
            claim["metadata"]["annotations"][BIND_COMPLETED] = json!("yes");
        }
        if draw.percent(8) {
            let node = draw.pick(&self.nodes).clone();
            let key = "volume.kubernetes.io/selected-node";
            claim["metadata"]["annotations"][key] = json!(node);
        }
        let class = self.classes.iter().find(|it| Some(it.name) == class);
        let by_hand = class.is_none_or(|class| class.by_hand);
        let free = self.free.filter(|is_only| by_hand || *is_only);
        if free == Some(false) {
            draws::plain(claim);
        }
        // One at most: which of several a claim gets is a matter of chance to kube-scheduler.
        let is_kept = match (by_hand, free) {
            (_, Some(_)) => 15,
            (true, None) => 90,
            (false, None) => 30,
        };
        if draw.percent(is_kept) {
            let name = self.next_name();
            let mut volume = draws::volume(draw, &name, claim, &self.nodes);
            volume["spec"]["claimRef"] = draws::reference(claim, draw.percent(50));
            draws::change(draw, &mut volume);
            self.objects.push(volume);
        }
        for _ in 0..free.map_or(0, |_| 1 + draw.below(3)) {
            let name = self.next_name();
            let mut volume = draws::volume(draw, &name, claim, &self.nodes);
            draws::change(draw, &mut volume);
            self.objects.push(volume);
        }
        for _ in 0..draw.below(3) {
            let name = self.next_name();
            let mut volume = draws::volume(draw, &name, claim, &self.nodes);
            draws::spoil(draw, &mut volume, claim);
            self.objects.push(volume);
        }
    }

    /// Gives a pod on a node claims of its own.
    fn use_by_other(&mut self, draw: &mut Draw, pod: &mut Value) {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or("default");
        let pod_name = pod["metadata"]["name"].as_str().unwrap();
        let mut volumes = Vec::new();
        let count = 1 + draw.below(2);
        for index in 0..count {
            let mut others = self.of_others.iter();
            let known = others.find(|(of, _)| of == namespace);
            if let Some((_, name)) = known.filter(|_| draw.percent(30)) {
                volumes.push(json!({
                    "name": format!("data-{index}"),
                    "persistentVolumeClaim": {"claimName": name},
                }));
                continue;
            }
            if draw.percent(25) {
                let name = format!("data-{index}");
                volumes.push(match draw.percent(15) {
                    true => draws::unreadable_disk(draw, &name),
                    false => draws::disk(draw, &name),
                });
                continue;
            }
            let name = format!("{pod_name}-data-{index}");
            self.of_others.push((namespace.to_owned(), name.clone()));
            volumes.push(json!({
                "name": format!("data-{index}"),
                "persistentVolumeClaim": {"claimName": name},
            }));
            let mut claim = draws::claim(draw, namespace, &name, "ReadWriteOnce");
            draws::class_of_claim(draw, &mut claim);
            let bound = draw.percent(75);
            if bound {
                let volume_name = self.next_name();
                claim["spec"]["volumeName"] = json!(volume_name);
                claim["status"]["phase"] = json!("Bound");
                claim["metadata"]["annotations"][BIND_COMPLETED] = json!("yes");
                let mut volume = draws::volume(draw, &volume_name, &claim, &self.nodes);
                volume["spec"]["claimRef"] = draws::reference(&claim, true);
                volume["status"]["phase"] = json!("Bound");
                if draw.percent(92) {
                    self.objects.push(volume);
                }
            }
            if draw.percent(94) {
                self.objects.push(claim);
            }
        }
        pod["spec"]["volumes"] = volumes.into();
    }

    /// Lets a pod on a node use a claim of the judged pod, too.
    fn share(&mut self, draw: &mut Draw, case: &mut Value) {
        let mut pods: Vec<&mut Value> = each(case, "pods")
            .filter(|pod| {
                matches!(
                    pod["metadata"]["namespace"].as_str(),
                    None | Some("default")
                )
            })
            .filter(|pod| {
                self.nodes
                    .iter()
                    .any(|node| pod["spec"]["nodeName"] == **node)
            })
            .collect();
        if pods.is_empty() || self.shared.is_empty() {
            return;
        }
        let at = usize::try_from(draw.below(pods.len() as u64)).unwrap();
        let claim = draw.pick(&self.shared);
        let spec = &mut pods[at]["spec"];
        let name = format!("shared-{}", spec["volumes"].as_array().map_or(0, Vec::len));
        let volume = json!({"name": name, "persistentVolumeClaim": {"claimName": claim}});
        match spec["volumes"].as_array_mut() {
            Some(volumes) => volumes.push(volume),
            None => spec["volumes"] = json!([volume]),
        }
    }

    fn next_name(&mut self) -> String {
        self.volumes += 1;
        format!("volume-{}", self.volumes)
    }
}
