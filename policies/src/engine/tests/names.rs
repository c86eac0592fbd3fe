//! Numbers of names whose objects come and go.

use super::{NOW_MS, node, pod};
use crate::engine::Engine;
use crate::event::{Event, Object, ObjectKey};
use crate::facts::{
    ClaimFacts, ClaimUse, PodFacts, StorageClassFacts, StorageFacts, StorageKind, Uid, VolumeFacts,
};
use crate::settings::Settings;
use alloc::{borrow::ToOwned, boxed::Box, collections::BTreeSet, vec::Vec};

/// A claim for a volume of so many bytes.
fn claim(size: u64) -> ClaimFacts {
    ClaimFacts {
        uid: Uid(u128::from(size)),
        class: "local".into(),
        size: Some(size),
        ..ClaimFacts::new("default", "c")
    }
}

/// Each claim asks for a volume of another size, so that nodes have another amount.
#[test]
fn names_of_free_volumes_that_are_gone_are_forgotten() {
    let class = StorageClassFacts {
        name: "local".into(),
        provisioner: "kubernetes.io/no-provisioner".into(),
        waits: true,
        topologies: None,
    };
    let claims = Vec::from([ClaimUse {
        name: "c".into(),
        is_ephemeral: false,
    }]);
    // It asks for more GPUs than there are, so that its claim waits.
    let pod = PodFacts {
        claims,
        ..pod(0, 9)
    };
    let uid = pod.uid;
    let mut engine = Engine::new(Settings::default());
    engine.step(
        NOW_MS,
        Event::lists([
            Object::Node(node(0, 8)),
            Object::Storage(StorageFacts::Class(class)),
        ]),
    );
    let mut sizes = BTreeSet::new();
    let mut most = 0;
    for size in 1..=1_500 {
        let volume = VolumeFacts {
            class: "local".into(),
            ..VolumeFacts::new("v", size)
        };
        let came = [
            Object::Storage(StorageFacts::Claim(claim(size))),
            Object::Storage(StorageFacts::Volume(volume)),
            Object::Pod(pod.clone()),
        ];
        engine.step(
            NOW_MS,
            came.into_iter()
                .map(|object| Event::Applied(Box::new(object)))
                .collect::<Vec<_>>(),
        );
        let names = &engine.state.resource_names;
        let class = &engine.state.classes[engine.state.pods[engine.state.pod_ids[&uid]].class];
        let asked = class.requests.iter().map(|(resource, _)| *resource);
        sizes.extend(asked.map(|resource| names.name(resource).to_owned()));
        most = names.count().max(most);
        let gone = [
            ObjectKey::Pod(uid),
            ObjectKey::Storage(StorageKind::Claim, "default".into(), "c".into()),
            ObjectKey::Storage(StorageKind::Volume, "".into(), "v".into()),
        ];
        engine.step(
            NOW_MS,
            gone.into_iter().map(Event::Deleted).collect::<Vec<_>>(),
        );
    }
    assert!(sizes.len() > 1_500, "{} names", sizes.len());
    assert!(most <= 600, "{most} names at once");
}
