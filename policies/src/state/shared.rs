//! Volumes that several pods use: each counts once on a node, however many pods there use it.
//!
//! How many volumes can be attached to a node is an amount, of which each volume of a pod takes
//! one. Of a volume that pods share the first pod on a node takes one, and the last gives it back.
//! Room that is leaving and room that is held follow the same rule: the attachment of a volume
//! comes free once all pods that use the volume are leaving, and a hold needs the attachment only
//! if no pod keeps the volume on the node.
//!
//! Source: the plugin NodeVolumeLimits, which counts different volumes.

use crate::facts::{Amount, SharedVolume};
use crate::ids::ResourceId;
use crate::resources::{ResourceNames, Resources, amount_of};
use alloc::{boxed::Box, format, vec::Vec};

/// What the names of amounts of attached volumes begin with; the name of the driver follows. They
/// stand in sentences about what is missing.
pub(crate) const ATTACHED: &str = "attachable volumes of ";

/// The name of the amount that says how many volumes of a driver can be attached.
pub(crate) fn attachments_of(driver: &str) -> Box<str> {
    format!("{ATTACHED}{driver}").into()
}

/// A shared volume: what it takes one of, and what tells it from others.
type Volume = (ResourceId, Box<str>);

/// The shared volumes of the pods of a class.
#[derive(Debug)]
pub(crate) struct ClassVolumes {
    /// What a pod takes beside them.
    pub(crate) apart: Resources,
    volumes: Vec<Volume>,
}

impl ClassVolumes {
    /// `requests`: what a pod asks for, with its shared volumes. `None`: it has none.
    pub(crate) fn new(
        shared: &[SharedVolume],
        requests: &Resources,
        names: &mut ResourceNames,
    ) -> Option<Box<Self>> {
        if shared.is_empty() {
            return None;
        }
        let mut volumes: Vec<Volume> = Vec::new();
        for SharedVolume { driver, handle } in shared {
            let amounts = Vec::from([(attachments_of(driver), 1)]);
            let resources = names.vector(&amounts).into_iter();
            volumes.extend(resources.map(|(resource, _)| (resource, handle.clone())));
        }
        let mut class = Self {
            apart: Resources::new(),
            volumes,
        };
        let apart = requests.iter().map(|(resource, amount)| {
            let shared = class.count(*resource);
            (*resource, amount.saturating_sub(shared))
        });
        class.apart = apart.filter(|(_, amount)| *amount > 0).collect();
        Some(Box::new(class))
    }

    /// Each volume: what it takes one of, and what tells it from others.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = (ResourceId, &str)> {
        self.volumes
            .iter()
            .map(|(resource, handle)| (*resource, &**handle))
    }

    /// How many of the volumes take one of a resource each.
    pub(crate) fn count(&self, resource: ResourceId) -> Amount {
        let of_resource = self.volumes().filter(|(of, _)| *of == resource);
        of_resource.count() as Amount
    }

    /// What one pod takes of a resource beside its shared volumes.
    pub(crate) fn apart_of(&self, resource: ResourceId) -> Amount {
        amount_of(&self.apart, resource)
    }
}

/// Which number of a volume changes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Use {
    /// A pod that is on the node uses the volume.
    Pod,
    /// A pod that is leaving uses the volume.
    Leaving,
    /// Room is held for a pod that uses the volume.
    Held,
}

/// How many use a volume on a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Users {
    pods: u32,
    /// How many of the pods are leaving.
    leaving: u32,
    held: u32,
}

/// How much of a resource shared volumes take: what is used, of it what is leaving, and what is
/// held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) used: u128,
    pub(crate) leaving: u128,
    pub(crate) held: u128,
}

impl Users {
    fn taken(self) -> Taken {
        let stays = self.pods > self.leaving;
        Taken {
            used: u128::from(self.pods > 0),
            leaving: u128::from(self.pods > 0 && !stays),
            held: u128::from(self.held > 0 && !stays),
        }
    }

    fn shift(&mut self, which: Use, adds: bool) {
        let number = match which {
            Use::Pod => &mut self.pods,
            Use::Leaving => &mut self.leaving,
            Use::Held => &mut self.held,
        };
        *number = match adds {
            true => number.saturating_add(1),
            false => number.saturating_sub(1),
        };
    }
}

/// The shared volumes that pods on a node use, and those that are held there. Sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeVolumes(Vec<(Volume, Users)>);

impl NodeVolumes {
    fn position(&self, resource: ResourceId, handle: &str) -> Result<usize, usize> {
        let key = (resource, handle);
        self.0
            .binary_search_by(|((resource, handle), _)| (*resource, &**handle).cmp(&key))
    }

    fn users(&self, resource: ResourceId, handle: &str) -> Users {
        let found = self.position(resource, handle).ok();
        found.map_or(Users::default(), |at| self.0[at].1)
    }

    /// Whether a pod on the node uses a volume.
    pub(crate) fn is_used(&self, resource: ResourceId, handle: &str) -> bool {
        self.users(resource, handle).pods > 0
    }

    /// Whether one pod alone uses a volume on the node.
    pub(crate) fn has_one_user(&self, resource: ResourceId, handle: &str) -> bool {
        self.users(resource, handle).pods == 1
    }

    /// Counts one use more of a volume, or one less. Returns what the volume took before, and what
    /// it takes now.
    pub(crate) fn change(
        &mut self,
        (resource, handle): (ResourceId, &str),
        which: Use,
        adds: bool,
    ) -> (Taken, Taken) {
        let at = match self.position(resource, handle) {
            Ok(at) => at,
            Err(at) => {
                let volume = (resource, handle.into());
                self.0.insert(at, (volume, Users::default()));
                at
            }
        };
        let users = &mut self.0[at].1;
        let before = users.taken();
        // tests plant bugs here: use-of-a-shared-volume
        users.shift(which, adds);
        let now = users.taken();
        if *users == Users::default() {
            self.0.remove(at);
        }
        (before, now)
    }

    /// How what the volumes of a class take of a resource would change with one more pod of it.
    pub(crate) fn with_one_more(&self, class: &ClassVolumes, resource: ResourceId) -> Change {
        let mut change = Change::default();
        for (_, handle) in class.volumes().filter(|(of, _)| *of == resource) {
            let mut users = self.users(resource, handle);
            change.before.add(users.taken());
            users.shift(Use::Pod, true);
            change.after.add(users.taken());
        }
        change
    }

    /// How much of each resource the volumes take, one by one.
    pub(crate) fn taken(&self) -> impl Iterator<Item = (ResourceId, Taken)> {
        let volumes = self.0.iter();
        volumes.map(|((resource, _), users)| (*resource, users.taken()))
    }
}

/// What volumes take before and after a change.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) before: Taken,
    pub(crate) after: Taken,
}

impl Taken {
    fn add(&mut self, other: Self) {
        self.used += other.used;
        self.leaving += other.leaving;
        self.held += other.held;
    }
}
