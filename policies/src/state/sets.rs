//! Maps of sets, which have no empty set.

use alloc::collections::{BTreeMap, BTreeSet};
use core::borrow::Borrow;

/// Adds a member to the set of a key.
pub(crate) fn put_in<K: Ord, T: Ord>(sets: &mut BTreeMap<K, BTreeSet<T>>, key: K, member: T) {
    sets.entry(key).or_default().insert(member);
}

/// Removes a member from the set of a key, and the set if it is empty then.
pub(crate) fn take_out<K, T, Key, Member>(
    sets: &mut BTreeMap<K, BTreeSet<T>>,
    key: &Key,
    member: &Member,
) where
    K: Ord + Borrow<Key>,
    T: Ord + Borrow<Member>,
    Key: Ord + ?Sized,
    Member: Ord + ?Sized,
{
    if let Some(set) = sets.get_mut(key) {
        set.remove(member);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
