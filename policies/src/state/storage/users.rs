//! Which pods use which claims, and what they ask for with them.

use super::stock::{Standing, Want, is_among};
use super::{Named, Storage};
use crate::facts::{AccessModes, ClaimFacts, ClaimUse, PodShape, UnixMs, VolumeFacts};
use crate::ids::PodId;
use crate::state::ClusterState;
use crate::state::pod::{Pod, Stage};
use crate::state::sets::{put_in, take_out};
use alloc::{boxed::Box, collections::BTreeSet, format, string::String, sync::Arc, vec::Vec};

impl ClusterState {
    /// Notes which claims a pod uses that has come or changed: none once it has ended.
    pub(in crate::state) fn note_claims(&mut self, pod: PodId, claims: &[ClaimUse]) {
        let record = &mut self.pods[pod];
        if record.claims.as_deref().map_or(&[][..], Vec::as_slice) == claims {
            return;
        }
        let before = match claims.is_empty() {
            true => record.claims.take(),
            false => record.claims.replace(Box::new(claims.to_vec())),
        };
        let namespace = record.namespace.clone();
        let named = |claim: &ClaimUse| key(&namespace, claim);
        for claim in before.into_iter().flat_map(|claims| *claims) {
            let name = named(&claim);
            self.storage.changed.insert(name.clone());
            take_out(&mut self.storage.users, &name, &pod);
            if let Some((driver, _)) = claim.disk()
                && !self.storage.users.contains_key(&name)
            {
                self.storage.forget_disk(&name, driver);
            }
        }
        for claim in claims {
            let name = named(claim);
            if let Some((driver, handle)) = claim.disk() {
                self.storage.know_disk(&name, driver, handle);
            }
            self.storage.changed.insert(name.clone());
            put_in(&mut self.storage.users, name, pod);
        }
    }

    /// Notes that a pod has got a node or lost it: which pod may use a claim for one pod alone
    /// follows from that.
    pub(in crate::state) fn claims_may_pass_on(&mut self, pod: PodId) {
        let record = &self.pods[pod];
        for claim in record.claims.as_deref().into_iter().flatten() {
            let name = key(&record.namespace, claim);
            self.storage.changed.insert(name);
        }
    }

    /// The shape of a pod together with what its claims ask for now.
    pub(in crate::state) fn with_claims(&self, pod: PodId, shape: &Arc<PodShape>) -> Arc<PodShape> {
        let record = &self.pods[pod];
        let Some(claims) = record.claims.as_deref() else {
            return shape.clone();
        };
        let mut with = (**shape).clone();
        // Where a pod of another scheduler may go is not ours to judge.
        let needs = self.volume_needs(record, claims);
        with.volumes = record.own.is_some().then(|| Box::new(needs));
        self.set_amounts(&mut with, &record.namespace, claims);
        Arc::new(with)
    }

    /// Works out anew what pods ask for whose claims, or what these depend on, have changed.
    pub(crate) fn follow_storage(&mut self, now_ms: UnixMs) {
        let changed = self.follow_stock();
        self.follow_users_on_nodes(&changed);
        let storage = &mut self.storage;
        if core::mem::take(&mut storage.all_nodes_changed) {
            storage.nodes_changed = self.node_ids.keys().cloned().collect();
        }
        let nodes = core::mem::take(&mut storage.nodes_changed);
        for node in nodes {
            self.limit_node(&node, now_ms);
        }
        if self.storage.is_unused() {
            return;
        }
        let users = changed
            .iter()
            .filter_map(|claim| self.storage.users.get(claim));
        let pods: BTreeSet<PodId> = users.flatten().copied().collect();
        for pod in pods {
            if let Stage::Assumed(_) = self.pods[pod].stage {
                self.claims_changed.insert(self.pods[pod].uid);
            }
            let shape = &self.classes[self.pods[pod].class].shape;
            let now = self.with_claims(pod, shape);
            if *shape != now {
                self.move_to_class(pod, &now);
                self.touched.extend(self.pods[pod].gang());
            }
        }
    }

    /// Notes the nodes of pods whose claims have changed: they may use what is attached there now,
    /// or not any more.
    fn follow_users_on_nodes(&mut self, changed: &BTreeSet<Named>) {
        let users = changed
            .iter()
            .filter_map(|claim| self.storage.users.get(claim));
        let placed = users.flatten().filter_map(|pod| {
            let node = self.pods[*pod].stage.node()?;
            Some((*pod, node))
        });
        for (pod, node) in placed.collect::<Vec<_>>() {
            self.attachments_may_be_used(pod, node);
        }
    }

    /// Follows which volumes are free, and which claims wait for one. Returns the claims whose pods
    /// may ask for something else now.
    fn follow_stock(&mut self) -> BTreeSet<Named> {
        let mut changed = self.storage.take_changed();
        self.storage.with_sharers(&mut changed);
        let mut classes: BTreeSet<Box<str>> = BTreeSet::new();
        for name in &changed {
            let standing = self.standing(name);
            let Storage { stock, volumes, .. } = &mut self.storage;
            classes.extend(stock.stand(volumes, name, standing));
        }
        let Storage { stock, volumes, .. } = &mut self.storage;
        for class in classes {
            changed.extend(stock.counted(&class).cloned());
            stock.count_anew(volumes, &class);
        }
        stock.follow_volumes(volumes, &mut changed);
        let hosts = stock.take_hosts();
        if !hosts.is_empty() {
            for (_, node) in self.nodes.iter() {
                let known = node.known.as_ref();
                if known.is_some_and(|known| is_among(&known.facts.labels, &hosts)) {
                    self.storage.nodes_changed.insert(node.name.clone());
                }
            }
        }
        changed
    }

    /// How a claim depends on free volumes; `None`: it does not.
    fn standing(&self, name: &Named) -> Option<Standing> {
        let storage = &self.storage;
        let facts = storage.claim(name).filter(|facts| !facts.is_lost)?;
        let users = storage.users.get(name)?;
        if !storage.takes_free(facts) || facts.is_deleting {
            return None;
        }
        let class = storage.classes.get(&facts.class)?;
        if class.makes_volumes() || users.len() > 1 {
            return Some(Standing::Listed(facts.class.clone()));
        }
        let mut users = users.iter().map(|pod| &self.pods[*pod]);
        let waits = |pod: &Pod| pod.own.is_some() && !matches!(pod.stage, Stage::Bound(_));
        // A pod that is on a node takes no room for a volume.
        Some(match users.any(waits) {
            true => Standing::Counted(Want::of(facts)),
            false => Standing::Listed(facts.class.clone()),
        })
    }

    /// Checks that no other pod uses a claim of a pod which one pod alone may use, and comes first.
    /// Whether a claim that was made for a pod is used by others is not asked.
    ///
    /// # Errors
    /// What a sentence about the claim says of it.
    pub(super) fn check_first_user(
        &self,
        pod: &Pod,
        name: &Named,
        facts: &ClaimFacts,
        claim: &ClaimUse,
    ) -> Result<(), String> {
        if claim.is_ephemeral || !facts.access.has(AccessModes::ONE_POD) {
            return Ok(());
        }
        let first = self.storage.first_user(self, name);
        let first = first.map(|first| &self.pods[first]);
        match first.filter(|first| first.uid != pod.uid) {
            Some(first) => {
                let first = &first.name;
                Err(format!("is ReadWriteOncePod, and pod {first} uses it"))
            }
            None => Ok(()),
        }
    }

    /// The names of pods that are not judged by what their claims ask for, unless that is still to
    /// be worked out.
    pub(crate) fn pods_with_stale_claims(&self) -> Vec<&str> {
        if self.storage.is_changed() {
            return Vec::new();
        }
        let users = self.storage.users.values().flatten();
        let stale = users.filter(|pod| {
            let shape = &self.classes[self.pods[**pod].class].shape;
            *shape != self.with_claims(**pod, shape)
        });
        stale.map(|pod| &*self.pods[*pod].name).collect()
    }
}

/// By which name a claim of a pod is known. Disks that pods name themselves are in no namespace.
pub(super) fn key(namespace: &str, claim: &ClaimUse) -> Named {
    let namespace = if claim.disk().is_some() {
        ""
    } else {
        namespace
    };
    (namespace.into(), claim.name.clone())
}

impl Storage {
    /// Takes in a disk that a pod names itself: as a claim that is bound to a volume which every
    /// node reaches. Both are there as long as a pod uses the disk, and no shell knows them.
    fn know_disk(&mut self, name: &Named, driver: &str, handle: &str) {
        if self.users.contains_key(name) {
            return;
        }
        if driver.is_empty() {
            self.limit_any(true);
        }
        let mut volume = VolumeFacts {
            is_in_tree: true,
            csi: Some((driver.into(), handle.into())),
            ..VolumeFacts::new(&name.1, 0)
        };
        let mut claim = ClaimFacts {
            access: AccessModes::MANY,
            ..ClaimFacts::new(&name.0, &name.1)
        };
        claim.bind_to(&mut volume);
        self.set_volume(&name.1, Some(volume));
        self.set_claim(name, Some(claim));
    }

    fn forget_disk(&mut self, name: &Named, driver: &str) {
        if driver.is_empty() {
            self.limit_any(false);
        }
        self.set_claim(name, None);
        self.set_volume(&name.1, None);
    }

    /// The pod that may use a claim which one pod alone may use: one that is on a node, else one
    /// whose binding is on its way, else the oldest.
    fn first_user(&self, state: &ClusterState, claim: &Named) -> Option<PodId> {
        let users = self.users.get(claim)?.iter().copied();
        users.min_by_key(|pod| {
            let pod = &state.pods[*pod];
            let rank = match pod.stage {
                Stage::Assumed(_) => 1,
                stage if stage.node().is_some() => 0,
                _ => 2,
            };
            (rank, pod.created_ms, pod.uid)
        })
    }
}
