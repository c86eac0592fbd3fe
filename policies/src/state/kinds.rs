//! Kinds of pods, as placements by score see them, and how many pods of each kind were seen.

use super::ClusterState;
use crate::facts::{CardNeed, PodKind, TargetWorkload};
use crate::ids::{ClassId, Interner, KindId, ModelId, Slab};
use crate::state::Lookup;
use alloc::collections::BTreeMap;
use smallvec::SmallVec;

/// When this many pods are counted, or [`KINDS_COUNTED`] kinds, every count is halved: recent pods
/// count most, and kinds that come no more are forgotten.
const PODS_COUNTED: u64 = 1 << 20;
/// When this many kinds are counted, every count is halved, see [`PODS_COUNTED`].
const KINDS_COUNTED: usize = 1024;

/// One kind of pod.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) pod: PodKind,
    models: SmallVec<[ModelId; 2]>,
    /// How many classes are of this kind.
    classes: u32,
    /// How many pods of ours of this kind were seen, halved now and then (see [`PODS_COUNTED`]).
    seen: u64,
}

impl Kind {
    /// What a pod of this kind takes of all its cards together, in thousandths of a card.
    pub(crate) fn gpu_thousandths(&self) -> u64 {
        self.pod.cards.map_or(0, |cards| cards.in_all())
    }

    /// Whether a pod of this kind may run on GPUs of a model; `None`: of an unnamed model.
    pub(crate) fn runs_on(&self, model: Option<ModelId>) -> bool {
        self.models.is_empty() || model.is_some_and(|model| self.models.contains(&model))
    }
}

/// All kinds of pods, and the names of GPU models.
#[derive(Debug)]
pub(crate) struct Kinds {
    kinds: Slab<KindId, Kind>,
    ids: Lookup<PodKind, KindId>,
    models: Interner<ModelId>,
    /// The sum of the counts of all kinds.
    seen: u64,
    /// How many kinds have a count above 0.
    counted: usize,
    /// How many pods of ours were ever seen; never halved.
    ever: u64,
}

impl Kinds {
    pub(crate) fn new() -> Self {
        Self {
            kinds: Slab::new(),
            ids: Lookup::default(),
            models: Interner::new(),
            seen: 0,
            counted: 0,
            ever: 0,
        }
    }

    pub(crate) fn model(&mut self, name: &str) -> ModelId {
        self.models.intern(name)
    }

    pub(crate) fn model_name(&self, model: ModelId) -> &str {
        self.models.name(model)
    }

    /// The id of a kind, for one more class of this kind. The kind stays at least as long as its
    /// classes.
    pub(crate) fn enter(&mut self, pod: PodKind) -> KindId {
        if let Some(id) = self.ids.get(&pod) {
            self.kinds[*id].classes += 1;
            return *id;
        }
        let models = pod.models.iter().map(|model| self.models.intern(model));
        let models = models.collect();
        let id = self.kinds.insert(Kind {
            pod: pod.clone(),
            models,
            classes: 1,
            seen: 0,
        });
        self.ids.insert(pod, id);
        id
    }

    /// Takes in that one class of a kind is gone. Returns whether the kind is gone too.
    pub(crate) fn leave(&mut self, id: KindId) -> bool {
        self.kinds[id].classes -= 1;
        self.forget_if_unused(id)
    }

    fn forget_if_unused(&mut self, id: KindId) -> bool {
        let kind = &self.kinds[id];
        if kind.classes > 0 || kind.seen > 0 {
            return false;
        }
        self.ids.remove(&self.kinds[id].pod);
        self.kinds.remove(id);
        true
    }

    /// Counts a pod of ours that was seen for the first time. Returns whether all counts were
    /// halved, so that kinds may be gone.
    fn count(&mut self, id: KindId) -> bool {
        self.ever += 1;
        self.seen += 1;
        self.kinds[id].seen += 1;
        self.counted += usize::from(self.kinds[id].seen == 1);
        let full = self.seen >= PODS_COUNTED || self.counted > KINDS_COUNTED;
        if full {
            self.halve();
        }
        full
    }

    fn halve(&mut self) {
        (self.seen, self.counted) = (0, 0);
        for id in self.kinds.ids() {
            let kind = &mut self.kinds[id];
            kind.seen /= 2;
            self.seen += kind.seen;
            self.counted += usize::from(kind.seen > 0);
            self.forget_if_unused(id);
        }
    }

    /// How many pods of ours were ever seen.
    pub(crate) fn ever_seen(&self) -> u64 {
        self.ever
    }

    /// The target workload that the counted pods make up.
    pub(crate) fn target(&self) -> TargetWorkload {
        let mut counted: BTreeMap<PodKind, u64> = BTreeMap::new();
        for (_, kind) in self.kinds.iter().filter(|(_, kind)| kind.seen > 0) {
            let mut pod = kind.pod.clone();
            pod.cards = pod.cards.map(CardNeed::without_memory);
            *counted.entry(pod).or_insert(0) += kind.seen;
        }
        TargetWorkload::of(counted)
    }
}

impl core::ops::Index<KindId> for Kinds {
    type Output = Kind;

    fn index(&self, id: KindId) -> &Kind {
        &self.kinds[id]
    }
}

/// A number of plain GPUs as whole cards, at most the 256 that a node can have; `None` for 0.
pub(crate) fn whole_cards(gpus: u64) -> Option<CardNeed> {
    CardNeed::whole(gpus.min(256), 0)
}

impl ClusterState {
    /// Counts a pod of ours of this class that was seen for the first time.
    pub(crate) fn count_kind(&mut self, class: ClassId) {
        if self.kinds.count(self.classes[class].kind) {
            self.scores.forget_lanes();
        }
    }
}
