//! The provisioner, which makes volumes where claims say.

use super::Cluster;
use crate::api_server::{Answer, Request, Sort, Version};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{ClaimFacts, StorageFacts, StorageKind, UnixMs};

impl Cluster {
    /// Makes the volumes of claims for which a node was selected since a version, and binds the
    /// claims to them. The volumes are reached from every node.
    pub(super) fn provision(&mut self, after: Version, now_ms: UnixMs) {
        let kind = Kind::Storage(StorageKind::Claim);
        let Answer::Changes { changes, .. } =
            self.api.handle(Request::Watch { kind, after }, now_ms)
        else {
            return;
        };
        for change in changes {
            let is_there = change.sort != Sort::Deleted;
            if let Object::Storage(StorageFacts::Claim(claim)) = &change.object.object
                && is_there
                && claim.volume.is_none()
                && claim.selected_node.is_some()
            {
                for facts in provisioned(&mut claim.clone()) {
                    self.put(Object::Storage(facts), now_ms);
                }
            }
        }
    }
}

/// Makes the volume of a claim for which a node was selected, unless it has one. Returns what is
/// new: the volume, and the claim.
pub(crate) fn provisioned(claim: &mut ClaimFacts) -> Vec<StorageFacts> {
    let mut new: Vec<_> = claim
        .provision()
        .map(StorageFacts::Volume)
        .into_iter()
        .collect();
    new.push(StorageFacts::Claim(claim.clone()));
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_server::Name;
    use crate::faults::Faults;
    use crate::random::Random;
    use gpu_batch_policies::command::SelectNode;
    use gpu_batch_policies::facts::Uid;
    use gpu_batch_testing::claim;

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
        let react = |cluster: &mut Cluster| {
            cluster.react(&mut Faults::none(), &mut Random::new(1), 0);
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
