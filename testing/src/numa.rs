//! NUMA nodes of a small world, in few words.

use crate::{GPU, Sketch, amounts};
use gpu_batch_policies::facts::{
    AlignedContainer, AlignmentPolicy, AlignmentScope, CellResource, ContainerRole, NumaCell,
    NumaFacts, PodFacts, Uid,
};

/// What an exporter says of nodes: how many GPUs each NUMA node has, and how many of these are in
/// use. The kubelet wants each container in a single NUMA node.
#[must_use]
pub fn numa(names: &str, gpus: &[(u64, u64)]) -> Sketch<NumaFacts> {
    let cell = |(number, (has, used)): (u16, &(u64, u64))| NumaCell {
        number,
        resources: vec![CellResource {
            name: GPU.into(),
            capacity: *has,
            allocatable: *has,
            available: has.saturating_sub(*used),
        }],
    };
    let cells: Vec<NumaCell> = (0..).zip(gpus).map(cell).collect();
    Sketch::each(names, |name| NumaFacts {
        name: name.into(),
        uid: Uid(7 << 64),
        policy: AlignmentPolicy::SingleCell,
        scope: AlignmentScope::Container,
        cells: cells.clone(),
        problems: Vec::new(),
    })
}

impl Sketch<NumaFacts> {
    /// The policy of the kubelet.
    #[must_use]
    pub fn policy(self, policy: AlignmentPolicy) -> Self {
        self.with(|facts| facts.policy = policy)
    }

    /// The kubelet aligns pods as a whole.
    #[must_use]
    pub fn whole_pods(self) -> Self {
        self.with(|facts| facts.scope = AlignmentScope::Pod)
    }

    /// Each NUMA node has so much of another resource.
    #[must_use]
    pub fn each_has(self, resource: &str, amount: u64) -> Self {
        self.with(|facts| {
            for cell in &mut facts.cells {
                cell.resources.push(CellResource {
                    name: resource.into(),
                    capacity: amount,
                    allocatable: amount,
                    available: amount,
                });
                cell.resources
                    .sort_by(|one, other| one.name.cmp(&other.name));
            }
        })
    }
}

impl Sketch<PodFacts> {
    /// A container for each of these numbers of GPUs, which the kubelet aligns.
    #[must_use]
    pub fn aligned(self, gpus: &[u64]) -> Self {
        self.aligned_as(ContainerRole::Main, gpus)
    }

    /// Containers of this role, as [`Sketch::aligned`], after those that there are.
    #[must_use]
    pub fn aligned_as(self, role: ContainerRole, gpus: &[u64]) -> Self {
        self.shape(|shape| {
            let containers = gpus.iter().map(|gpus| AlignedContainer {
                role,
                amounts: amounts(&[(GPU, *gpus)]),
            });
            shape.aligned.extend(containers);
        })
    }
}
