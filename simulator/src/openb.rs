//! The fill-up experiment of Weng et al., Beware of Fragmentation, USENIX ATC 2023, on the Alibaba
//! trace openb: pods arrive one after the other until 130 % of the GPUs were asked for. Each pod is
//! tried once, and no placed pod ever leaves. Measured is how many GPUs are in use, and how many
//! free GPUs have become of no use.
//!
//! Nothing here chooses a node or a card: both come from the engine's Bind commands. The measure of
//! fragmentation comes from the engine, too.

mod curves;
mod input;
mod summary;
#[cfg(test)]
mod tests;
mod world;

use crate::input::Table;
use crate::report::openb::{Curve, Metric};
use crate::timeline::{Timeline, undisturbed};
use curves::Bins;
use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::{Placement, TargetWorkload};
use gpu_batch_policies::settings::Settings;
use input::{Machine, Orders, PodRow};
use std::path::Path;

pub use crate::input::InputError;
pub use curves::{read_published, write_csv};

/// The policy by which pods are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Fragmentation gradient descent.
    Fgd,
    /// The node that has the least CPU and GPUs left.
    BestFit,
    /// The node whose free room points least in the direction of the request.
    DotProd,
    /// First cards that are shared already, then nodes that are in use, then empty nodes.
    GpuPacking,
    /// Nodes whose pods ask for the same sort of GPUs.
    GpuClustering,
    /// Any node that fits, drawn from the seed.
    Random,
}

impl Policy {
    /// The policies that draw nothing: every point of their curves follows from the rules.
    pub const DETERMINISTIC: [Self; 5] = [
        Self::Fgd,
        Self::BestFit,
        Self::DotProd,
        Self::GpuPacking,
        Self::GpuClustering,
    ];

    /// The name of the policy in the published curves.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fgd => "FGD",
            Self::BestFit => "BestFit",
            Self::DotProd => "DotProd",
            Self::GpuPacking => "GpuPacking",
            Self::GpuClustering => "GpuClustering",
            Self::Random => "Random",
        }
    }

    fn placement(self, seed: u64) -> Placement {
        match self {
            Self::Fgd => Placement::Fragmentation,
            Self::BestFit => Placement::BestFit,
            Self::DotProd => Placement::DotProduct,
            Self::GpuPacking => Placement::GpuPacking,
            Self::GpuClustering => Placement::GpuClustering,
            Self::Random => Placement::Random { seed },
        }
    }
}

/// The inputs of the experiment.
#[derive(Debug)]
pub struct Experiment {
    workload: String,
    machines: Vec<Machine>,
    pods: Vec<PodRow>,
    orders: Orders,
    target: TargetWorkload,
}

/// Where the inputs are, in the published layout, gzip or not.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// `sn,cpu_milli,memory_mib,gpu,model`.
    pub nodes: &'a Path,
    /// `name,cpu_milli,memory_mib,num_gpu,gpu_milli` and, if it is there, `gpu_spec`.
    pub pods: &'a Path,
    /// `seed,kind,pos,row`: for each seed the order in which pods arrive (kind `pod`), and in which
    /// nodes of equal score are taken (kind `node`). `row` is the row in the file of pods or nodes,
    /// from 0.
    pub order: &'a Path,
    /// `cpu_milli,gpu_milli,num_gpu,gpu_spec,freq`: the target workload. `None`: the most frequent
    /// kinds of pods in the list. A file that has these kinds with rounded frequencies makes no
    /// difference.
    pub typical: Option<&'a Path>,
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The curves, one for each [`Metric`].
    pub curves: Vec<Curve>,
    /// Pods that found a place.
    pub placed: usize,
    /// Pods that found no place.
    pub failed: usize,
    /// The GPUs that the placed pods hold, in thousandths of a GPU.
    pub used_thousandths: u64,
}

impl Experiment {
    /// Reads and checks all inputs.
    ///
    /// # Errors
    /// The first mistake, with file, line and field. A pod that fits on no empty node is a mistake,
    /// too.
    pub fn read(files: Files<'_>) -> Result<Self, InputError> {
        let machines = input::machines(Table::open(files.nodes, &input::NODES, &[])?)?;
        let pods = input::pods(
            Table::open(files.pods, &input::PODS, &input::PODS_OPTIONAL)?,
            &machines,
        )?;
        let orders = Table::open(files.order, &input::ORDER, &[])?;
        let orders = Orders::read(orders, machines.len(), pods.len())?;
        let mut target = world::target(&pods);
        if let Some(path) = files.typical {
            let given = input::typical(Table::open(path, &input::TYPICAL, &[])?)?;
            // Frequencies that are only rounded in the file are not better than those of the pod
            // list.
            if !world::is_rounded(&given, &target) {
                target = given;
            }
        }
        let workload = input::workload(files.pods);
        Ok(Self {
            workload,
            machines,
            pods,
            orders,
            target,
        })
    }

    /// The name of the pod list: `default` for `openb_pod_list_default.csv.gz`.
    #[must_use]
    pub fn workload(&self) -> &str {
        &self.workload
    }

    /// The seeds whose order is known.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + '_ {
        self.orders.seeds()
    }

    /// The target workload.
    #[must_use]
    pub fn target(&self) -> &TargetWorkload {
        &self.target
    }

    /// How many pods arrive in one run of a seed; `None`: the order of the seed is not known.
    #[must_use]
    pub fn arrivals(&self, seed: u64) -> Option<usize> {
        Some(self.orders.of(seed)?.pods.len())
    }

    /// Lets all pods of a seed arrive. `tried` is called after each pod. `None`: the order of the
    /// seed is not known.
    pub fn run(&self, policy: Policy, seed: u64, mut tried: impl FnMut()) -> Option<Run> {
        let order = self.orders.of(seed)?;
        let placement = policy.placement(seed);
        let settings = Settings {
            gpu_placement: placement,
            cpu_placement: placement,
            target_workload: Some(self.target.clone()),
            ..undisturbed()
        };
        let nodes = world::nodes(&self.machines, &order.ranks);
        let mut timeline = Timeline::new(settings, 0, nodes);
        let shapes = world::shapes(&self.pods);
        let capacity = self.machines.iter().map(|machine| machine.gpus).sum();
        let mut bins = Bins::new(capacity);
        let mut leaving = None;
        let (mut placed, mut failed) = (0, 0);
        for (position, row) in (0u64..).zip(&order.pods) {
            let facts = world::pod(position, &shapes[*row]);
            let uid = facts.uid;
            let arrival = Event::from(Object::Pod(facts));
            let moment = timeline.advance(position, leaving.take().into_iter().chain([arrival]));
            let fits = moment.bound.iter().any(|bind| bind.pod.uid == uid);
            if fits {
                placed += 1;
            } else {
                failed += 1;
                leaving = Some(Event::Deleted(ObjectKey::Pod(uid)));
            }
            let fragmentation = timeline.engine_mut().fragmentation();
            bins.add(self.pods[*row].gpu_thousandths(), fits, &fragmentation);
            tried();
        }
        let curves = Metric::ALL.map(|metric| Curve {
            workload: self.workload.clone(),
            policy: policy.name().to_owned(),
            seed,
            metric,
            values: bins.values(metric),
        });
        Some(Run {
            curves: curves.into(),
            placed,
            failed,
            used_thousandths: bins.used_thousandths(),
        })
    }
}
