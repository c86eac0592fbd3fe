//! The provisioner, which makes volumes where claims say, the controller that binds claims to
//! volumes which are kept for them, and the one that makes the claims of ephemeral volumes.

use super::{Cluster, Task};
use crate::api_server::{Answer, Name, Request, Sort, Version};
use crate::random::Random;
use crate::volumes::{self, DRIVER};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    AccessModes, ClaimFacts, ClaimReference, PodFacts, StorageClassFacts, StorageFacts,
    StorageKind, UnixMs, VolumeFacts, label,
};

const CLAIM: Kind = Kind::Storage(StorageKind::Claim);
const VOLUME: Kind = Kind::Storage(StorageKind::Volume);
const CLASS: Kind = Kind::Storage(StorageKind::Class);

impl Cluster {
    /// Plans that the provisioner looks at claims which have changed since a version, or whose
    /// class is new.
    pub(super) fn plan_provision(&mut self, after: Version, random: &mut Random, now_ms: UnixMs) {
        let is_new = |sort: Sort| sort != Sort::Deleted;
        let claims = self.changed(CLAIM, after);
        let is_class_new = self.changed(CLASS, after).iter().any(|it| is_new(it.0));
        let pods = match self.api.has_had(CLAIM) || self.api.has_had(CLASS) {
            true => self.changed(Kind::Pod, after),
            false => Vec::new(),
        };
        let has_ephemeral = |object: &Object| match object {
            Object::Pod(facts) => facts.claims.iter().any(|claim| claim.is_ephemeral),
            Object::Storage(StorageFacts::Claim(claim)) => claim.pod.is_some(),
            _ => false,
        };
        let mut changed = pods.iter().chain(&claims);
        if changed.any(|(_, object)| has_ephemeral(object)) {
            let at_ms = now_ms + random.between(10, 1_000);
            self.tasks.push((at_ms, Task::KeepEphemeral));
        }
        let mut names: Vec<Name> = Vec::new();
        match is_class_new {
            true => names.extend(self.api.objects(CLAIM).map(|it| Name::of(&it.object))),
            false => names.extend(claims.iter().map(|(_, object)| Name::of(object))),
        }
        for (_, object) in self.changed(VOLUME, after) {
            let unbound = as_volume(&object).filter(|volume| volume.is_available);
            let claim = unbound.and_then(|volume| volume.claim.as_ref());
            let name = claim.map(|claim| Name {
                kind: CLAIM,
                namespace: claim.namespace.clone(),
                name: claim.name.clone(),
            });
            names.extend(name.filter(|name| !names.contains(name)));
        }
        for name in names {
            if self.is_open(&name) {
                let at_ms = now_ms + delay_ms(random);
                self.tasks.push((at_ms, Task::Provision(name)));
            }
        }
    }

    /// The objects of a kind that have changed since a version of the store; all objects of the
    /// kind, if the store has forgotten the changes since then.
    fn changed(&mut self, kind: Kind, after: Version) -> Vec<(Sort, Object)> {
        match self.api.handle(Request::Watch { kind, after }, 0) {
            Answer::Changes { changes, .. } => {
                let changes = changes.into_iter();
                let changes = changes.map(|change| (change.sort, change.object.object.clone()));
                changes.collect()
            }
            _ => {
                let objects = self.api.objects(kind);
                objects.map(|it| (Sort::Added, it.object.clone())).collect()
            }
        }
    }

    /// Whether the provisioner has something to do for a claim.
    fn is_open(&self, name: &Name) -> bool {
        let Some(claim) = self.claim(name) else {
            return false;
        };
        let waits = self.class(&claim.class).is_some_and(|class| class.waits);
        let has_volume = || claim.volume.is_some() || self.kept_for(claim).is_some();
        !claim.is_lost
            && !claim.is_bound()
            && (claim.selected_node.is_some() || !waits || has_volume())
    }

    /// A claim by name.
    fn claim(&self, name: &Name) -> Option<&ClaimFacts> {
        as_claim(&self.api.get(name)?.object)
    }

    fn claims(&self) -> impl Iterator<Item = &ClaimFacts> {
        let claims = self.api.objects(CLAIM);
        claims.filter_map(|stored| as_claim(&stored.object))
    }

    /// The volume that is kept for a claim.
    fn kept_for(&self, claim: &ClaimFacts) -> Option<&VolumeFacts> {
        let volumes = self.api.objects(VOLUME);
        let mut volumes = volumes.filter_map(|stored| as_volume(&stored.object));
        volumes.find(|volume| volume.is_available && volume.claim == Some(claim.reference()))
    }

    fn class(&self, name: &str) -> Option<&StorageClassFacts> {
        match self.object(CLASS, name)? {
            Object::Storage(StorageFacts::Class(class)) => Some(class),
            _ => None,
        }
    }

    /// Makes the volume of a claim, or takes its node back: the node is gone, or has no room for a
    /// volume just then. Nothing is made for a class that is gone.
    pub(super) fn provision(&mut self, name: &Name, random: &mut Random, now_ms: UnixMs) {
        if !self.is_open(name) {
            return;
        }
        let Some(mut claim) = self.claim(name).cloned() else {
            return;
        };
        let Some(class) = self.class(&claim.class).cloned() else {
            return;
        };
        if let Some(mut volume) = self.kept_for(&claim).cloned() {
            claim.bind_to(&mut volume);
            // Kubernetes writes the two one by one, and the end of the binding last.
            claim.bind_completed = random.percent(80);
            self.put(Object::Storage(StorageFacts::Volume(volume)), now_ms);
            self.put(Object::Storage(StorageFacts::Claim(claim)), now_ms);
            return;
        }
        let node = claim.selected_node.clone();
        let zone = node.as_ref().map(|node| {
            let node = self.node(node)?;
            Some(label(&node.labels, "zone").map(str::to_owned))
        });
        let is_refused = class.waits && !self.settling && random.percent(15);
        let mut put = |claim: ClaimFacts| {
            self.put(Object::Storage(StorageFacts::Claim(claim)), now_ms);
        };
        if claim.volume.is_some() {
            claim.bind_completed = true;
            put(claim);
            return;
        }
        if class.waits && (is_refused || zone == Some(None)) {
            claim.selected_node = None;
            put(claim);
            return;
        }
        let selected = claim.selected_node.get_or_insert_default().clone();
        let Some(mut volume) = claim.provision() else {
            return;
        };
        claim.selected_node = Some(selected).filter(|_| node.is_some());
        volume.csi = Some((DRIVER.into(), volume.name.clone()));
        let zone = zone.flatten().flatten();
        volume.affinity = zone.map(|zone| vec![volumes::zone_is(&zone)]);
        // Kubernetes may write the name of the volume and the end of the binding one by one.
        claim.bind_completed = random.percent(80);
        self.put(Object::Storage(StorageFacts::Volume(volume)), now_ms);
        self.put(Object::Storage(StorageFacts::Claim(claim)), now_ms);
    }

    /// Makes the claims of ephemeral volumes that pods have, and deletes those of pods that are
    /// gone.
    pub(super) fn keep_ephemeral(&mut self, now_ms: UnixMs) {
        let pods: Vec<PodFacts> = self.api.pods().cloned().collect();
        let claims: Vec<ClaimFacts> = self.claims().cloned().collect();
        for claim in &claims {
            let is_gone = |uid| pods.iter().all(|pod| pod.uid != uid);
            if claim.pod.is_some_and(is_gone) {
                let claim = Object::Storage(StorageFacts::Claim(claim.clone()));
                self.delete(Name::of(&claim), None, now_ms);
            }
        }
        for pod in pods.iter().filter(|pod| pod.deletion_ms.is_none()) {
            for used in pod.claims.iter().filter(|used| used.is_ephemeral) {
                let mut facts = volumes::claim(&used.name, "anywhere", AccessModes::ONE_NODE);
                facts.pod = Some(pod.uid);
                let claim = Object::Storage(StorageFacts::Claim(facts));
                if self.api.get(&Name::of(&claim)).is_none() {
                    self.put(claim, now_ms);
                }
            }
        }
    }

    /// Gives a free volume to a claim of somebody else: the one with this number, modulo their
    /// count.
    pub(crate) fn take_volume(&mut self, number: u64, now_ms: UnixMs) {
        let volumes = self.api.objects(VOLUME);
        let volumes = volumes.filter_map(|stored| as_volume(&stored.object));
        let free = volumes.filter(|volume| volume.is_available && volume.claim.is_none());
        let free: Vec<&VolumeFacts> = free.collect();
        if let Some(index) = number.checked_rem(free.len() as u64) {
            let mut volume = free[usize::try_from(index).unwrap_or(0)].clone();
            volume.claim = Some(ClaimReference {
                namespace: "others".into(),
                name: "theirs".into(),
                uid: None,
            });
            self.put(Object::Storage(StorageFacts::Volume(volume)), now_ms);
        }
    }

    /// Deletes a volume: the one with this number, modulo their count. Its claim is lost.
    pub(crate) fn lose_volume(&mut self, number: u64, now_ms: UnixMs) {
        let volumes = self.api.objects(VOLUME);
        let names: Vec<Name> = volumes.map(|stored| Name::of(&stored.object)).collect();
        if let Some(index) = number.checked_rem(names.len() as u64) {
            let volume = names[usize::try_from(index).unwrap_or(0)].clone();
            let claims = self.claims();
            let lost = claims.filter(|claim| claim.volume.as_ref() == Some(&volume.name));
            let lost: Vec<ClaimFacts> = lost.cloned().collect();
            self.delete(volume, None, now_ms);
            for mut claim in lost {
                claim.is_lost = true;
                self.put(Object::Storage(StorageFacts::Claim(claim)), now_ms);
            }
        }
    }
}

fn as_claim(object: &Object) -> Option<&ClaimFacts> {
    match object {
        Object::Storage(StorageFacts::Claim(claim)) => Some(claim),
        _ => None,
    }
}

fn as_volume(object: &Object) -> Option<&VolumeFacts> {
    match object {
        Object::Storage(StorageFacts::Volume(volume)) => Some(volume),
        _ => None,
    }
}

/// How long the provisioner takes: most often a moment, sometimes half a minute.
fn delay_ms(random: &mut Random) -> u64 {
    match random.below(10) {
        0 => random.between(5_000, 30_000),
        1..4 => random.between(500, 5_000),
        _ => random.between(10, 500),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_server::Name;
    use crate::faults::Faults;
    use crate::random::Random;
    use gpu_batch_policies::command::SelectNode;
    use gpu_batch_policies::facts::Uid;
    use gpu_batch_testing::{claim, node, storage_class};

    #[test]
    fn a_volume_is_made_for_a_claim_once_a_node_is_selected() {
        let mut cluster = Cluster::default();
        let claim = Object::Storage(StorageFacts::Claim(claim("data", "fast").facts()));
        let name = Name::of(&claim);
        cluster.put(claim, 0);
        let claim = |cluster: &Cluster| match &cluster.api.get(&name).unwrap().object {
            Object::Storage(StorageFacts::Claim(claim)) => claim.clone(),
            other => panic!("{other:?}"),
        };
        let class = Object::Storage(StorageFacts::Class(storage_class("fast").facts()));
        cluster.put(class, 0);
        cluster.put(Object::Node(node("n1", 8).facts()), 0);
        // The provisioner does not refuse once the world is to come to rest.
        cluster.settle();
        let react = |cluster: &mut Cluster| {
            let (mut faults, mut random) = (Faults::none(), Random::new(1));
            while cluster.seen != cluster.api.revision() {
                cluster.react(&mut faults, &mut random, 0);
                for (at_ms, task) in std::mem::take(&mut cluster.tasks) {
                    cluster.perform(&task, &mut faults, &mut random, at_ms);
                }
            }
        };
        react(&mut cluster);
        let before = claim(&cluster);
        assert_eq!(before.volume, None);
        let mut select = |uid| {
            let (namespace, name) = (before.namespace.clone(), before.name.clone());
            let node = Some("n1".into());
            let select = SelectNode {
                namespace,
                name,
                uid,
                node,
            };
            cluster.api.handle(Request::SelectNode(select), 0)
        };
        assert!(matches!(select(Uid(77)), Answer::Invalid(_)));
        assert!(matches!(select(before.uid), Answer::Found(_)));
        react(&mut cluster);
        let after = claim(&cluster);
        assert_eq!(after.selected_node.as_deref(), Some("n1"));
        assert!(after.bind_completed);
        let volumes = cluster.api.objects(Kind::Storage(StorageKind::Volume));
        let names: Vec<_> = volumes
            .map(|stored| Name::of(&stored.object).name)
            .collect();
        assert_eq!(names, [after.volume.unwrap()]);
    }
}
