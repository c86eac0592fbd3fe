//! UIDs for objects: the API server's, or stable ones for objects from files; and who owns them.

use crate::kube::objects::{Meta, Pod};
use gpu_batch_policies::facts::{OwnerReference, Uid};

/// The identity of an object.
///
/// A UUID is read as it is. Any other text, and where there is none `kind/namespace/name`, is
/// hashed (128-bit FNV-1a), so that the same file gives the same identities on every machine. Two
/// objects cannot share a hashed identity by chance, but a file can be written so that they do;
/// that harms only the people who read this file.
pub(super) fn uid(kind: &str, meta: &Meta) -> Uid {
    named_uid(kind, &meta.namespace, &meta.name, &meta.uid)
}

/// The identity of an object by its parts, for references to the object.
pub(crate) fn named_uid(kind: &str, namespace: &str, name: &str, uid: &str) -> Uid {
    if uid.is_empty() {
        return Uid(hash(&[kind, "/", namespace, "/", name]));
    }
    Uid::parse(uid).unwrap_or_else(|| Uid(hash(&[uid])))
}

/// The owner that controls a pod.
pub(super) fn owner(pod: &Pod) -> Option<OwnerReference> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    let namespace = &pod.metadata.namespace;
    Some(OwnerReference {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: named_uid(&owner.kind, namespace, &owner.name, &owner.uid),
    })
}

fn hash(parts: &[&str]) -> u128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = parts.iter().flat_map(|part| part.bytes());
    bytes.fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(&[]), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(hash(&["a"]), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(
            hash(&["foo", "bar"]),
            0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18
        );
    }

    #[test]
    fn a_uuid_stays_itself_and_anything_else_is_hashed() {
        let text = "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234";
        assert_eq!(named_uid("Pod", "a", "b", text).to_string(), text);
        let hashed = named_uid("Pod", "a", "b", "pod-1");
        assert_eq!(hashed, named_uid("Job", "c", "d", "pod-1"));
        assert_ne!(hashed, named_uid("Pod", "a", "b", "pod-2"));
    }

    #[test]
    fn without_a_uid_kind_namespace_and_name_tell_objects_apart() {
        let all = [
            named_uid("Pod", "a", "b", ""),
            named_uid("Job", "a", "b", ""),
            named_uid("Pod", "b", "a", ""),
            named_uid("Pod", "", "ab", ""),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(one), "{index}");
        }
    }
}
