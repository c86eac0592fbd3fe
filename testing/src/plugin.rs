//! HAMi's device plugin on one node: what it makes of annotations when a kubelet asks it.
//!
//! Sources: `Allocate` of `NvidiaDevicePlugin`, `GetPendingPod` and `ReleaseNodeLock` of HAMi 2.10.

use std::collections::BTreeMap;

/// The annotation of a node that names the pod that is served.
pub const CARD_LOCK: &str = "hami.io/mutex.lock";
/// The annotation with the cards that the containers of a pod are still to get.
pub const TO_ALLOCATE: &str = "hami.io/vgpu-devices-to-allocate";
/// The annotation that says how far the plugin has come with a pod.
pub const BIND_PHASE: &str = "hami.io/bind-phase";

/// The annotations of a pod without which the plugin does not look at it unless a lock names it.
const BIND_TIME: &str = "hami.io/bind-time";
const NODE: &str = "hami.io/vgpu-node";

/// A pod as the plugin sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServedPod {
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The node that it is bound to.
    pub node: Option<String>,
    /// Whether its phase is Pending.
    pub is_pending: bool,
    /// How many containers it has, with init containers.
    pub containers: usize,
    /// Of each reserved instance of MIG the place of its container among all; `None`: the list
    /// cannot be read.
    pub reserved: Option<Vec<usize>>,
}

/// What a container gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The place of the container for which the plugin takes this one, init containers first.
    pub container: usize,
    /// The cards: id, memory in MiB, computing power in percent.
    pub cards: Vec<(String, i64, i64)>,
}

/// Why a container gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotGiven {
    /// The kubelet is told of an error.
    Refused(&'static str),
    /// The plugin ends.
    Panicked,
}

/// The plugin of one node.
#[derive(Debug, Clone, Default)]
pub struct DevicePlugin {
    /// The name of the node.
    pub node: String,
    /// [`CARD_LOCK`].
    pub lock: Option<String>,
    /// All pods, by namespace and name.
    pub pods: BTreeMap<(String, String), ServedPod>,
    /// Whether the plugin cuts cards into instances of MIG.
    pub is_mig: bool,
}

type Entries = Vec<Vec<(String, String, i64, i64)>>;

impl DevicePlugin {
    /// A kubelet asks, for containers in their order, for so many slots each.
    ///
    /// # Errors
    /// If the plugin gives them nothing.
    pub fn allocate(&mut self, asked: &[usize]) -> Result<Vec<Given>, NotGiven> {
        let name = self.pod_to_serve().map_err(NotGiven::Refused)?;
        let is_mig = self.is_mig;
        let Some(pod) = self.pods.get_mut(&name) else {
            return Err(NotGiven::Refused("pod not found"));
        };
        let given = pod.take(asked, is_mig);
        let phase = match &given {
            Err(NotGiven::Panicked) => return given,
            Err(NotGiven::Refused(_)) => "failed",
            Ok(_) if pod.annotations[TO_ALLOCATE].contains("NVIDIA") => return given,
            Ok(_) => "success",
        };
        pod.annotations.insert(BIND_PHASE.into(), phase.into());
        let is_own = |lock: &String| match lock.split_once(',') {
            None => true,
            Some((_, holder)) => holder == format!("{},{}", name.0, name.1),
        };
        self.lock = self.lock.take().filter(|lock| !is_own(lock));
        given
    }

    /// The pod that the lock names; else the first that waits for its cards.
    fn pod_to_serve(&self) -> Result<(String, String), &'static str> {
        if let Some(lock) = &self.lock {
            let parts: Vec<&str> = lock.split(',').collect();
            let (time, holder) = match *parts.as_slice() {
                [time] => (time, None),
                [time, namespace, name] => (time, Some((namespace.to_owned(), name.to_owned()))),
                _ => return Err("the lock has another form"),
            };
            if !is_time(time) {
                return Err("the lock has no time");
            }
            if let Some(holder) = holder.filter(|(of, name)| !of.is_empty() && !name.is_empty()) {
                return match self.pods.contains_key(&holder) {
                    true => Ok(holder),
                    false => Err("the pod of the lock is not found"),
                };
            }
        }
        let waits = |pod: &ServedPod| {
            let phase = pod.annotations.get(BIND_PHASE).map(String::as_str);
            pod.is_pending
                && pod.node.as_ref() == Some(&self.node)
                && pod.annotations.contains_key(BIND_TIME)
                && pod.annotations.get(NODE) == Some(&self.node)
                && matches!(phase, Some("allocating" | "success"))
        };
        let waiting = self.pods.iter().find(|(_, pod)| waits(pod));
        waiting.map_or(Err("no binding pod found"), |(name, _)| Ok(name.clone()))
    }
}

impl ServedPod {
    /// Takes the next entries out of the annotation.
    fn take(&mut self, asked: &[usize], is_mig: bool) -> Result<Vec<Given>, NotGiven> {
        let text = self.annotations.get(TO_ALLOCATE);
        let text = text.ok_or(NotGiven::Refused("device request not found"))?;
        let mut entries = entries(text).map_err(NotGiven::Refused)?;
        let mut given = Vec::new();
        for &asked in asked {
            if asked == 0 {
                return Err(NotGiven::Panicked);
            }
            let container = entries.iter().position(|entry| !entry.is_empty());
            let none = NotGiven::Refused("no pending device allocation found");
            let container = container.ok_or(none)?;
            let cards = std::mem::take(&mut entries[container]);
            if cards.len() != asked {
                return Err(NotGiven::Refused("device number not matched"));
            }
            if container >= self.containers {
                return Err(NotGiven::Refused("container index out of range"));
            }
            if is_mig && self.reserved_for(container) != Some(asked) {
                return Err(NotGiven::Refused("other MIG reservations"));
            }
            let cards = cards.into_iter();
            let cards = cards.map(|(id, _, memory_mib, percent)| (id, memory_mib, percent));
            given.push(Given {
                container,
                cards: cards.collect(),
            });
        }
        let rest = entries.iter().map(|entry| {
            let cards = entry.iter();
            let cards =
                cards.map(|(id, vendor, mib, power)| format!("{id},{vendor},{mib},{power}:"));
            cards.collect::<String>() + ";"
        });
        let rest = rest.collect();
        self.annotations.insert(TO_ALLOCATE.into(), rest);
        Ok(given)
    }

    fn reserved_for(&self, container: usize) -> Option<usize> {
        let reserved = self.reserved.as_ref()?.iter();
        Some(reserved.filter(|reserved| **reserved == container).count())
    }
}

/// The cards of each entry. There is one more behind the last semicolon.
fn entries(text: &str) -> Result<Entries, &'static str> {
    let card = |text: &str| {
        let fields: Vec<&str> = text.split(',').collect();
        let [id, vendor, memory_mib, percent, ..] = fields.as_slice() else {
            return Err("pod annotation format error");
        };
        let number = |text: &str| text.parse::<i64>().map_err(|_| "invalid field");
        let numbers = (number(memory_mib)?, number(percent)?);
        Ok(((*id).to_owned(), (*vendor).to_owned(), numbers.0, numbers.1))
    };
    let entry = |text: &str| {
        let cards = text.split(':').filter(|card| card.contains(','));
        cards.map(card).collect()
    };
    text.split(';').map(entry).collect()
}

/// Whether a text has the form of a time in RFC 3339.
fn is_time(text: &str) -> bool {
    let form: String = text
        .chars()
        .map(|char| if char.is_ascii_digit() { '0' } else { char })
        .collect();
    let zone = form.strip_prefix("0000-00-00T00:00:00");
    matches!(zone, Some("Z" | "+00:00" | "-00:00"))
}
