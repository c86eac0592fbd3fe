//! Free volumes: those that exist and that no claim has, and the claims that wait for one.
//!
//! A claim of one pod, whose class makes no volumes, takes one of the volumes that suit it. How
//! many of these a node reaches is an amount of the node, as CPU is, and each such claim asks for
//! one. A volume that suits a claim for much suits a claim for little, too: so a claim also asks
//! for one of the volumes that suit others which are content with any volume that suits it. Where
//! claims differ in size alone, and each volume is reached from one node, the amounts are exact.
//! Elsewhere they let too much through, and [`super::choice`] has the last word.
//!
//! Volumes that were chosen are not free, although that is not written to them yet.
//!
//! Sources: `findMatchingVolumes` of the plugin VolumeBinding, `FindMatchingVolume`.

use super::Named;
use crate::facts::{
    AccessModes, Amount, Amounts, ClaimFacts, LabelSelector, Labels, MatchOperator,
    NodeSelectorTerm, Uid, VolumeFacts, label, quantity,
};
use crate::filter;
use crate::state::sets::{put_in, take_out};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};

/// What the names of amounts of free volumes begin with.
pub(super) const FREE: &str = "free volumes of class ";

/// The label by which most volumes say on which node they are.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What a claim asks of a volume that exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Want {
    pub(super) class: Box<str>,
    pub(super) size: Amount,
    access: AccessModes,
    is_block: bool,
    attributes_class: Box<str>,
    selector: Option<LabelSelector>,
}

impl Want {
    pub(super) fn of(claim: &ClaimFacts) -> Self {
        Self {
            class: claim.class.clone(),
            size: claim.size.unwrap_or(0),
            access: claim.access,
            is_block: claim.is_block,
            attributes_class: claim.attributes_class.clone(),
            selector: claim.selector.clone(),
        }
    }

    /// Whether a free volume is what is wanted, wherever it is.
    pub(super) fn is_met_by(&self, volume: &VolumeFacts) -> bool {
        let value = |key: &str| label(&volume.labels, key);
        volume.class == self.class
            && volume.size >= self.size
            && volume.access.has(self.access)
            && volume.is_block == self.is_block
            && volume.attributes_class == self.attributes_class
            && (self.selector.as_ref()).is_none_or(|selector| selector.selects(value))
    }

    /// Whether every volume that meets this meets the other, too.
    fn is_stricter_than(&self, other: &Self) -> bool {
        self.class == other.class
            && self.size >= other.size
            && self.access.has(other.access)
            && self.is_block == other.is_block
            && self.attributes_class == other.attributes_class
            && (other.selector.is_none() || other.selector == self.selector)
    }

    /// The name of the amount of volumes that meet this; no other want has it.
    fn name(&self) -> Box<str> {
        let mut name = format!(
            "{FREE}{} with {}",
            self.class,
            quantity("memory", self.size)
        );
        let modes = [
            (AccessModes::ONE_NODE, "ReadWriteOnce"),
            (AccessModes::READ_ONLY, "ReadOnlyMany"),
            (AccessModes::MANY, "ReadWriteMany"),
            (AccessModes::ONE_POD, "ReadWriteOncePod"),
        ];
        for (_, mode) in modes.iter().filter(|(bit, _)| self.access.has(*bit)) {
            name += " ";
            name += mode;
        }
        if self.is_block {
            name += " Block";
        }
        if !self.attributes_class.is_empty() {
            name += &format!(" of attributes {}", self.attributes_class);
        }
        for (key, value) in self.selector.iter().flat_map(|it| &it.match_labels) {
            name += &format!(" {key}={value}");
        }
        let expressions = self.selector.iter().flat_map(|it| &it.match_expressions);
        for asked in expressions {
            name += &format!(" {} {:?} {:?}", asked.key, asked.operator, asked.values);
        }
        // A slash is a sign of devices.
        name.replace('/', ":").into()
    }
}

/// How a claim without a volume depends on free volumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It takes one of those that are counted as amounts of nodes.
    Counted(Want),
    /// Where it may go follows from where those of its class are, one by one: the claim is used by
    /// several pods or by one on a node, or a volume could be made for it as well.
    Listed(Box<str>),
}

/// The claims that want the same.
#[derive(Debug)]
struct Wanting {
    claims: BTreeSet<Named>,
    /// See [`Want::name`].
    name: Box<str>,
    /// Some free volume meets the want.
    is_met: bool,
}

/// A volume that was chosen for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chosen {
    claim: Named,
    /// The pod with which the claim got the volume.
    pod: Uid,
}

/// The free volumes, and the claims that wait for one.
#[derive(Debug, Default)]
pub(super) struct Stock {
    /// The free volumes of each class, the smallest first.
    by_class: BTreeMap<Box<str>, BTreeSet<(Amount, Box<str>)>>,
    /// The free volumes by the names of the hosts that reach them; by an empty name: those that
    /// say it in another way.
    by_host: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    chosen: BTreeMap<Box<str>, Chosen>,
    chosen_for: BTreeMap<Named, Box<str>>,
    standings: BTreeMap<Named, Standing>,
    wanting: BTreeMap<Want, Wanting>,
    /// The claims that are [`Standing::Listed`], by class.
    listed: BTreeMap<Box<str>, BTreeSet<Named>>,
    /// Classes with other free volumes than before, and the hosts that reached or reach these.
    classes_changed: BTreeSet<Box<str>>,
    hosts_changed: BTreeSet<Box<str>>,
}

impl Stock {
    /// Takes in that a volume has changed, come or gone.
    /// Returns the claim for which the volume was chosen, if it is free no more.
    pub(super) fn change(
        &mut self,
        before: Option<&VolumeFacts>,
        after: Option<&VolumeFacts>,
    ) -> Option<Named> {
        if let Some(volume) = before {
            self.take_out(volume);
        }
        match after.filter(|volume| is_free(volume)) {
            Some(volume) => {
                self.put_in(volume);
                None
            }
            None => self.unchoose(&before.or(after)?.name),
        }
    }

    /// Adds a volume, unless it was chosen.
    fn put_in(&mut self, volume: &VolumeFacts) {
        if self.chosen.contains_key(&volume.name) {
            return;
        }
        let sized = (volume.size, volume.name.clone());
        put_in(&mut self.by_class, volume.class.clone(), sized);
        for host in hosts(volume) {
            put_in(&mut self.by_host, host.clone(), volume.name.clone());
            self.hosts_changed.insert(host);
        }
        self.classes_changed.insert(volume.class.clone());
    }

    /// Removes a volume, if it is there.
    fn take_out(&mut self, volume: &VolumeFacts) {
        let sized = (volume.size, volume.name.clone());
        let of_class = self.by_class.get(&volume.class);
        if !of_class.is_some_and(|sizes| sizes.contains(&sized)) {
            return;
        }
        take_out(&mut self.by_class, &volume.class, &sized);
        for host in hosts(volume) {
            take_out(&mut self.by_host, &host, &volume.name);
            self.hosts_changed.insert(host);
        }
        self.classes_changed.insert(volume.class.clone());
    }

    /// Notes that a free volume is to be kept for a claim, which it gets with a pod.
    pub(super) fn choose(&mut self, volume: &VolumeFacts, claim: Named, pod: Uid) {
        self.take_out(volume);
        let name = volume.name.clone();
        self.chosen_for.insert(claim.clone(), name.clone());
        self.chosen.insert(name, Chosen { claim, pod });
    }

    /// Forgets for which claim a volume was chosen, which is returned. Whether the volume is free
    /// now is up to the caller.
    pub(super) fn unchoose(&mut self, volume: &str) -> Option<Named> {
        let Chosen { claim, .. } = self.chosen.remove(volume)?;
        self.chosen_for.remove(&claim);
        Some(claim)
    }

    /// Takes in again a volume that was not kept for its claim in the end.
    pub(super) fn return_volume(&mut self, volume: &VolumeFacts) {
        if is_free(volume) {
            self.put_in(volume);
        }
    }

    /// The volumes that claims were to get with a pod.
    pub(super) fn chosen_with(&self, pod: Uid) -> Vec<Box<str>> {
        let chosen = self.chosen.iter().filter(|(_, it)| it.pod == pod);
        chosen.map(|(volume, _)| volume.clone()).collect()
    }

    /// The volume that was chosen for a claim.
    pub(super) fn chosen_for(&self, claim: &Named) -> Option<&str> {
        self.chosen_for.get(claim).map(|volume| &**volume)
    }

    /// The names of the free volumes of a class, the smallest first.
    pub(super) fn of_class(&self, class: &str) -> impl Iterator<Item = &str> {
        let sizes = self.by_class.get(class).into_iter().flatten();
        sizes.map(|(_, name)| &**name)
    }

    /// The names of free volumes that a node with these labels may reach; those that it reaches
    /// are among them.
    pub(super) fn near(&self, labels: &Labels) -> impl Iterator<Item = &str> {
        let keys = [Some(""), label(labels, HOSTNAME)];
        let names = keys.into_iter().flatten();
        let names = names.filter_map(|host| self.by_host.get(host));
        names.flatten().map(|name| &**name)
    }

    /// What a claim that is counted wants.
    pub(super) fn want_of(&self, claim: &Named) -> Option<&Want> {
        match self.standings.get(claim)? {
            Standing::Counted(want) => Some(want),
            Standing::Listed(_) => None,
        }
    }

    /// Whether some free volume meets a want of claims.
    pub(super) fn is_met(&self, want: &Want) -> bool {
        self.wanting.get(want).is_some_and(|it| it.is_met)
    }

    /// The names of the amounts of which a claim asks for one each.
    pub(super) fn asked_by(&self, want: &Want) -> impl Iterator<Item = &Box<str>> {
        let wanting = self.wanting.iter();
        let met = wanting.filter(|(other, _)| want.is_stricter_than(other));
        met.map(|(_, wanting)| &wanting.name)
    }

    /// Adds to the amounts of a node with these labels how many free volumes it reaches.
    pub(super) fn add_free(
        &self,
        volumes: &BTreeMap<Box<str>, VolumeFacts>,
        labels: &Labels,
        allocatable: &mut Amounts,
    ) {
        if self.wanting.is_empty() {
            return;
        }
        let near = self.near(labels).filter_map(|name| volumes.get(name));
        let reached: Vec<_> = near.filter(|volume| reaches(labels, volume)).collect();
        for (want, wanting) in &self.wanting {
            let count = reached.iter().filter(|it| want.is_met_by(it)).count();
            if count > 0 {
                allocatable.push((wanting.name.clone(), count as Amount));
            }
        }
    }

    /// Works out anew which wants are met, and adds the claims whose pods may ask for something
    /// else now.
    pub(super) fn follow_volumes(
        &mut self,
        volumes: &BTreeMap<Box<str>, VolumeFacts>,
        changed: &mut BTreeSet<Named>,
    ) {
        for class in core::mem::take(&mut self.classes_changed) {
            changed.extend(self.listed.get(&class).into_iter().flatten().cloned());
            let wants = self.wanting.keys().filter(|want| want.class == class);
            for want in wants.cloned().collect::<Vec<_>>() {
                let is_met = self.meets(volumes, &want);
                if let Some(wanting) = self.wanting.get_mut(&want)
                    && core::mem::replace(&mut wanting.is_met, is_met) != is_met
                {
                    changed.extend(wanting.claims.iter().cloned());
                }
            }
        }
    }

    fn meets(&self, volumes: &BTreeMap<Box<str>, VolumeFacts>, want: &Want) -> bool {
        let free = self.of_class(&want.class);
        let mut free = free.filter_map(|name| volumes.get(name));
        free.any(|volume| want.is_met_by(volume))
    }

    /// Takes in how a claim depends on free volumes. Returns the class of which other amounts are
    /// counted now than before.
    pub(super) fn stand(
        &mut self,
        volumes: &BTreeMap<Box<str>, VolumeFacts>,
        claim: &Named,
        standing: Option<Standing>,
    ) -> Option<Box<str>> {
        if self.standings.get(claim) == standing.as_ref() {
            return None;
        }
        let mut counted = None;
        match self.standings.remove(claim) {
            Some(Standing::Listed(class)) => take_out(&mut self.listed, &class, claim),
            Some(Standing::Counted(want)) => {
                if let Some(wanting) = self.wanting.get_mut(&want) {
                    wanting.claims.remove(claim);
                    if wanting.claims.is_empty() {
                        self.wanting.remove(&want);
                        counted = Some(want.class);
                    }
                }
            }
            None => {}
        }
        match &standing {
            Some(Standing::Listed(class)) => {
                put_in(&mut self.listed, class.clone(), claim.clone());
            }
            Some(Standing::Counted(want)) => {
                if !self.wanting.contains_key(want) {
                    counted = Some(want.class.clone());
                    let wanting = Wanting {
                        claims: BTreeSet::new(),
                        name: want.name(),
                        is_met: self.meets(volumes, want),
                    };
                    self.wanting.insert(want.clone(), wanting);
                }
                if let Some(wanting) = self.wanting.get_mut(want) {
                    wanting.claims.insert(claim.clone());
                }
            }
            None => {}
        }
        if let Some(standing) = standing {
            self.standings.insert(claim.clone(), standing);
        }
        counted
    }

    /// The claims of a class that are counted.
    pub(super) fn counted(&self, class: &str) -> impl Iterator<Item = &Named> {
        let wanting = self.wanting.iter();
        let of_class = wanting.filter(move |(want, _)| *want.class == *class);
        of_class.flat_map(|(_, wanting)| &wanting.claims)
    }

    /// The amounts of a class are counted anew on all nodes that reach free volumes of it.
    pub(super) fn count_anew(&mut self, volumes: &BTreeMap<Box<str>, VolumeFacts>, class: &str) {
        let free: Vec<_> = self
            .of_class(class)
            .filter_map(|it| volumes.get(it))
            .collect();
        let reached: Vec<Box<str>> = free.into_iter().flat_map(hosts).collect();
        self.hosts_changed.extend(reached);
    }

    /// Whether there are other free volumes than when that was last followed.
    pub(super) fn is_changed(&self) -> bool {
        !self.classes_changed.is_empty() || !self.hosts_changed.is_empty()
    }

    /// Takes the hosts that reach other free volumes than before; an empty name: any may.
    pub(super) fn take_hosts(&mut self) -> BTreeSet<Box<str>> {
        core::mem::take(&mut self.hosts_changed)
    }
}

/// Whether a node with these labels is among the hosts, which may be all nodes.
pub(super) fn is_among(labels: &Labels, hosts: &BTreeSet<Box<str>>) -> bool {
    let host = label(labels, HOSTNAME);
    hosts.contains("") || host.is_some_and(|host| hosts.contains(host))
}

/// Whether a node with these labels reaches a volume.
pub(super) fn reaches(labels: &Labels, volume: &VolumeFacts) -> bool {
    let terms = volume.affinity.as_ref();
    terms.is_none_or(|terms| filter::one_term_holds(terms, labels))
}

/// Whether no claim has a volume, nor is to get it.
fn is_free(volume: &VolumeFacts) -> bool {
    volume.is_available && !volume.is_deleting && volume.claim.is_none()
}

/// The names of the hosts that reach a volume; an empty one: it says it in another way.
fn hosts(volume: &VolumeFacts) -> BTreeSet<Box<str>> {
    let terms = volume.affinity.as_deref().unwrap_or_default();
    let named = |term: &NodeSelectorTerm| -> Option<Vec<Box<str>>> {
        let mut asked = term.match_expressions.iter();
        let host = asked.find(|it| *it.key == *HOSTNAME && it.operator == MatchOperator::In)?;
        Some(host.values.clone())
    };
    let named: Option<Vec<_>> = terms.iter().map(named).collect();
    match named.filter(|_| volume.affinity.is_some()) {
        Some(hosts) => hosts.into_iter().flatten().collect(),
        None => BTreeSet::from(["".into()]),
    }
}

/// The claims of a pod in the order in which they take volumes: those for little come first.
pub(super) fn in_order(claims: &mut [&ClaimFacts]) {
    claims.sort_by_key(|claim| claim.size.unwrap_or(0));
}

/// Sorted amounts without those of free volumes.
pub(super) fn without_free(amounts: &mut Amounts) {
    amounts.retain(|(name, _)| !name.starts_with(FREE));
}

/// What a sentence says of a claim that no free volume suits.
pub(super) fn no_volume(class: &str) -> String {
    format!(
        "is not bound yet; its StorageClass {class} makes no volumes, and no free one that exists \
         suits the claim"
    )
}
