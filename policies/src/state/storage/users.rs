//! Which pods use which claims, and what they ask for with them.

use super::{Named, Storage};
use crate::facts::{AccessModes, ClaimFacts, ClaimUse, PodShape, UnixMs};
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
        let named = |claim: &ClaimUse| (namespace.clone(), claim.name.clone());
        for claim in before.into_iter().flat_map(|claims| *claims) {
            let name = named(&claim);
            self.storage.changed.insert(name.clone());
            take_out(&mut self.storage.users, &name, &pod);
        }
        for claim in claims {
            let name = named(claim);
            self.storage.changed.insert(name.clone());
            put_in(&mut self.storage.users, name, pod);
        }
    }

    /// Notes that a pod has got a node or lost it: which pod may use a claim for one pod alone
    /// follows from that.
    pub(in crate::state) fn claims_may_pass_on(&mut self, pod: PodId) {
        let record = &self.pods[pod];
        for claim in record.claims.as_deref().into_iter().flatten() {
            let name = (record.namespace.clone(), claim.name.clone());
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
        self.set_attached(&mut with, &record.namespace, claims);
        Arc::new(with)
    }

    /// Works out anew what pods ask for whose claims, or what these depend on, have changed.
    pub(crate) fn follow_storage(&mut self, now_ms: UnixMs) {
        let storage = &mut self.storage;
        if core::mem::take(&mut storage.all_nodes_changed) {
            storage.nodes_changed = self.node_ids.keys().cloned().collect();
        }
        let nodes = core::mem::take(&mut storage.nodes_changed);
        let changed = storage.take_changed();
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

impl Storage {
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
