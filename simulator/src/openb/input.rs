//! The files of the experiment, checked.

use crate::input::{InputError, Row, Table};
use gpu_batch_policies::facts::{CardNeed, PodKind, TargetWorkload, TypicalPod};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The most CPU of a node or pod, in thousandths of a core: more than any machine has.
const CPU_MILLI_MAX: u64 = 1 << 32;
/// The most memory of a node or pod, in MiB: a pebibyte, more than any machine has.
const MEMORY_MIB_MAX: u64 = 1 << 30;
/// The most GPUs of one node that the engine knows.
const GPUS_MAX: u64 = 256;
/// The largest position in an order: more nodes or pods than any of these files has.
const ROWS_MAX: u64 = 10_000_000;

/// The columns of the nodes.
pub(super) const NODES: [&str; 5] = ["sn", "cpu_milli", "memory_mib", "gpu", "model"];
/// The columns of the pods.
pub(super) const PODS: [&str; 5] = ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"];
/// Columns that a list of pods may lack.
pub(super) const PODS_OPTIONAL: [&str; 1] = ["gpu_spec"];
/// The columns of the orders of arrival.
pub(super) const ORDER: [&str; 4] = ["seed", "kind", "pos", "row"];
/// The columns of the target workload.
pub(super) const TYPICAL: [&str; 5] = ["cpu_milli", "gpu_milli", "num_gpu", "gpu_spec", "freq"];

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) cpu_milli: u64,
    pub(super) memory_mib: u64,
    pub(super) gpus: u64,
    pub(super) model: String,
}

/// What one pod asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodRow {
    pub(super) memory_mib: u64,
    pub(super) kind: PodKind,
}

impl PodRow {
    /// The request for all its GPUs together.
    pub(super) fn gpu_thousandths(&self) -> u64 {
        let cards = self.kind.cards;
        cards.map_or(0, |cards| {
            u64::from(cards.count()) * u64::from(cards.thousandths())
        })
    }

    /// Whether the pod fits on the empty machine, whatever GPU model the machine has.
    fn fits(&self, machine: &Machine) -> bool {
        let gpus = self.kind.cards.map_or(0, |cards| cards.count());
        machine.cpu_milli >= self.kind.cpu_milli
            && machine.memory_mib >= self.memory_mib
            && machine.gpus >= u64::from(gpus)
    }
}

/// The nodes, in the order of the file.
pub(super) fn machines(mut table: Table) -> Result<Vec<Machine>, InputError> {
    let mut machines = Vec::new();
    let mut names = BTreeSet::new();
    while let Some(row) = table.next_row()? {
        check_unique(&row, 0, &mut names)?;
        let gpus = row.whole(3, GPUS_MAX)?;
        let model = if gpus == 0 {
            row.text(4)?
        } else {
            row.name(4)?
        };
        machines.push(Machine {
            cpu_milli: row.whole(1, CPU_MILLI_MAX)?,
            memory_mib: row.whole(2, MEMORY_MIB_MAX)?,
            gpus,
            model: model.to_owned(),
        });
    }
    if machines.iter().all(|machine| machine.gpus == 0) {
        return Err(InputError::of_file(table.file(), "has no node with a GPU"));
    }
    Ok(machines)
}

fn check_unique(
    row: &Row<'_>,
    column: usize,
    names: &mut BTreeSet<String>,
) -> Result<(), InputError> {
    let name = row.name(column)?;
    if names.insert(name.to_owned()) {
        return Ok(());
    }
    Err(row.error(column, format!("{name:?} occurs twice")))
}

/// The pods, in the order of the file. Each must fit on one of the empty machines. A pod that fits
/// only on machines of another GPU model than it asks for is no mistake (openb has such pods); it
/// will find no place.
pub(super) fn pods(mut table: Table, machines: &[Machine]) -> Result<Vec<PodRow>, InputError> {
    let mut pods: Vec<PodRow> = Vec::new();
    let mut names = BTreeSet::new();
    let mut known = BTreeSet::new();
    while let Some(row) = table.next_row()? {
        check_unique(&row, 0, &mut names)?;
        let kind = kind(&row, [1, 3, 4, 5])?;
        let memory_mib = row.whole(2, MEMORY_MIB_MAX)?;
        let pod = PodRow { memory_mib, kind };
        if known.insert((pod.memory_mib, pod.kind.clone()))
            && !machines.iter().any(|machine| pod.fits(machine))
        {
            return Err(row.error(too_large(&pod, machines), "is more than any node has"));
        }
        pods.push(pod);
    }
    if pods.is_empty() {
        return Err(InputError::of_file(table.file(), "has no pods"));
    }
    Ok(pods)
}

/// The column of a value that is too large: without it the pod would fit on a machine.
fn too_large(pod: &PodRow, machines: &[Machine]) -> usize {
    let mut relaxed = pod.clone();
    let fits = |pod: &PodRow| machines.iter().any(|machine| pod.fits(machine));
    relaxed.kind.cpu_milli = 0;
    if fits(&relaxed) {
        return 1;
    }
    relaxed.memory_mib = 0;
    if fits(&relaxed) { 2 } else { 3 }
}

/// The kind of a pod, from the columns for CPU, number of GPUs, thousandths of each GPU, and
/// models.
fn kind(row: &Row<'_>, columns: [usize; 4]) -> Result<PodKind, InputError> {
    let [cpu, number, thousandths, models] = columns;
    let cpu_milli = row.whole(cpu, CPU_MILLI_MAX)?;
    let gpus = row.whole(number, GPUS_MAX)?;
    if gpus == 0 {
        // The columns about GPUs mean nothing for a pod without GPUs.
        return Ok(PodKind {
            cpu_milli,
            cards: None,
            models: Vec::new(),
        });
    }
    let part = row.whole(thousandths, 1000)?;
    let cards = match (gpus, part) {
        (_, 0) => return Err(row.error(thousandths, "is 0 for a pod with GPUs")),
        (_, 1000) => CardNeed::whole(gpus, 0),
        (1, part) => CardNeed::fraction(part, 0),
        _ => return Err(row.error(thousandths, "is a part of a GPU for a pod with several")),
    };
    let names = row.text(models)?.split('|').map(str::trim);
    let mut models: Vec<Box<str>> = names
        .filter(|name| !name.is_empty())
        .map(Into::into)
        .collect();
    // A model that is named twice makes another kind, as in the published experiment.
    models.sort_unstable();
    Ok(PodKind {
        cpu_milli,
        cards,
        models,
    })
}

/// The target workload, in the order of the file.
pub(super) fn typical(mut table: Table) -> Result<TargetWorkload, InputError> {
    /// The file has frequencies with 12 decimals.
    const UNITS: f64 = 1e12;
    let mut typical = Vec::new();
    let mut known = BTreeSet::new();
    while let Some(row) = table.next_row()? {
        let kind = kind(&row, [0, 2, 1, 3])?;
        if !known.insert(kind.clone()) {
            return Err(row.error(0, "this kind of pods occurs twice"));
        }
        let share = row.decimal(4)?;
        if !(share > 0.0 && share <= 1.0) {
            return Err(row.error(4, "is not above 0 and at most 1"));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 1e12"
        )]
        let weight = (share * UNITS).round() as u64;
        typical.push(TypicalPod { kind, weight });
    }
    if typical.is_empty() {
        return Err(InputError::of_file(table.file(), "has no kinds of pods"));
    }
    if typical.len() > 10_000 {
        return Err(InputError::of_file(
            table.file(),
            "has over 10000 kinds of pods",
        ));
    }
    let weight = typical.iter().map(|pod| pod.weight).sum();
    Ok(TargetWorkload { typical, weight })
}

/// One order of arrival.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// The rows of the pods that arrive, the first one first. Pods may arrive more than once.
    pub(super) pods: Vec<usize>,
    /// For each node its rank: of nodes with equal score the one with the lowest rank is taken.
    pub(super) ranks: Vec<usize>,
}

/// The orders by seed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Orders(BTreeMap<u64, Order>);

/// The rows of one seed and kind, by position; each with its line in the file.
type Positions = BTreeMap<u64, (usize, u64)>;

impl Orders {
    pub(super) fn of(&self, seed: u64) -> Option<&Order> {
        self.0.get(&seed)
    }

    pub(super) fn seeds(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.keys().copied()
    }

    pub(super) fn read(mut table: Table, nodes: usize, pods: usize) -> Result<Self, InputError> {
        const POS: usize = 2;
        const ROW: usize = 3;
        let mut seeds: BTreeMap<u64, [Positions; 2]> = BTreeMap::new();
        while let Some(row) = table.next_row()? {
            let seed = row.whole(0, u64::MAX)?;
            let (kind, rows, name) = match row.name(1)? {
                "pod" => (0, pods, "pods"),
                "node" => (1, nodes, "nodes"),
                other => {
                    let message = format!("{other:?} is neither `pod` nor `node`");
                    return Err(row.error(1, message));
                }
            };
            let position = row.whole(POS, ROWS_MAX)?;
            let number = row.whole(ROW, u64::MAX)?;
            let index = usize::try_from(number).ok().filter(|index| *index < rows);
            let Some(index) = index else {
                return Err(row.error(ROW, format!("{number}: there are {rows} {name}, from 0")));
            };
            let positions = &mut seeds.entry(seed).or_default()[kind];
            if positions.insert(position, (index, row.line())).is_some() {
                return Err(row.error(POS, format!("{position} occurs twice")));
            }
        }
        if seeds.is_empty() {
            return Err(InputError::of_file(table.file(), "has no orders"));
        }
        let path = table.file();
        let orders = seeds.into_iter().map(|(seed, [pods, ranks])| {
            let order = Order {
                pods: in_order(path, seed, "pod", &pods)?,
                ranks: ranks_of(path, seed, &ranks, nodes)?,
            };
            Ok((seed, order))
        });
        orders.collect::<Result<_, _>>().map(Self)
    }
}

/// The rows in the order of their positions; an error if a position is missing.
fn in_order(
    path: &Path,
    seed: u64,
    kind: &str,
    positions: &Positions,
) -> Result<Vec<usize>, InputError> {
    let gap = (0u64..)
        .zip(positions)
        .find(|(expected, (position, _))| expected != *position);
    if let Some((expected, (_, (_, line)))) = gap {
        return Err(InputError {
            line: Some(*line),
            field: Some("pos".to_owned()),
            ..InputError::of_file(path, format!("seed {seed} has no {kind} at {expected}"))
        });
    }
    if positions.is_empty() {
        return Err(InputError::of_file(
            path,
            format!("seed {seed} has no {kind}"),
        ));
    }
    Ok(positions.values().map(|(row, _)| *row).collect())
}

/// The rank of each node; an error if a node has none or two.
fn ranks_of(
    path: &Path,
    seed: u64,
    positions: &Positions,
    nodes: usize,
) -> Result<Vec<usize>, InputError> {
    let rows = in_order(path, seed, "node", positions)?;
    let mut ranks = vec![None; nodes];
    for ((rank, row), (_, line)) in rows.into_iter().enumerate().zip(positions.values()) {
        if ranks[row].replace(rank).is_some() {
            return Err(InputError {
                line: Some(*line),
                field: Some("row".to_owned()),
                ..InputError::of_file(path, format!("seed {seed} ranks node {row} twice"))
            });
        }
    }
    match ranks.iter().position(Option::is_none) {
        None => Ok(ranks.into_iter().flatten().collect()),
        Some(row) => Err(InputError::of_file(
            path,
            format!("seed {seed} does not rank node {row}"),
        )),
    }
}

/// The name of a pod list, without the prefix and suffix that all lists have.
pub(super) fn workload(path: &Path) -> String {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let name = name.strip_suffix(".csv").unwrap_or(name);
    name.strip_prefix("openb_pod_list_")
        .unwrap_or(name)
        .to_owned()
}
