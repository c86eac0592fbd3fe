//! The topology constraints of a gang and its sub-groups, resolved.

use crate::facts::TopologyConstraint;
use crate::gangs::wait::Verdict;
use crate::ids::GangId;
use crate::place::Near;
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::gang::{GroupTree, SubGroup};
use crate::state::topologies::DEFAULT_TOPOLOGY;
use crate::topology::Level;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Makes the topology of the label on which the nodes of a native group must agree, if the gang has
/// such a label.
pub(crate) fn make_label_topology(state: &mut ClusterState, id: GangId) {
    if let Some(label) = state.gangs[id].spec.required_label.clone() {
        state.label_topology(&label);
    }
}

/// Checks that the Topology and the levels that the gang itself names exist.
fn check_own(state: &ClusterState, id: GangId) -> Result<(), String> {
    let spec = &state.gangs[id].spec;
    let TopologyConstraint {
        name,
        required,
        preferred,
    } = &spec.topology;
    let names_none = name.is_none() && required.is_none() && preferred.is_none();
    if spec.required_label.is_some() || names_none {
        return Ok(());
    }
    check_levels(state, &spec.topology)
}

/// Checks that a Topology and the levels that a constraint names exist.
fn check_levels(state: &ClusterState, constraint: &TopologyConstraint) -> Result<(), String> {
    let topology = &state.topologies[state.topology_of(constraint)?];
    for level in constraint.levels() {
        if topology.level(level).is_none() {
            let known: Vec<&str> = topology.levels.iter().map(|l| &*l.name).collect();
            let known: String = match known.as_slice() {
                [] => "no level but node".into(),
                known => format!("{} and node", known.join(", ")),
            };
            let name = constraint.name.as_deref().unwrap_or(DEFAULT_TOPOLOGY);
            return Err(format!(
                "Topology {name:?} has no level {level:?}; it has {known}"
            ));
        }
    }
    Ok(())
}

/// The topology constraint of the gang itself, resolved; `None`: there is none, or its Topology
/// does not exist.
pub(crate) fn topology_of_gang(state: &ClusterState, id: GangId) -> Option<Near> {
    let spec = &state.gangs[id].spec;
    if let Some(label) = &spec.required_label {
        let topology = state.known_label_topology(label)?;
        return Some(Near {
            topology,
            required: Some(Level::Domain(0)),
            preferred: None,
            implied: false,
        });
    }
    near(state, &spec.topology)
}

/// A topology constraint, resolved; `None`: there is no such Topology. A level that does not exist
/// is left out.
fn near(state: &ClusterState, constraint: &TopologyConstraint) -> Option<Near> {
    let id = state.topology_of(constraint).ok()?;
    let topology = &state.topologies[id];
    let level = |name: Option<&str>| topology.level(name?);
    let required = level(constraint.required.as_deref());
    let mut preferred = level(constraint.preferred.as_deref());
    let implied = required.is_none() && preferred.is_none();
    if implied {
        // No level is named: the finest one is preferred.
        let finest = topology.levels.len().checked_sub(1)?;
        preferred = Some(Level::Domain(finest));
    }
    Some(Near {
        topology: id,
        required,
        preferred,
        implied,
    })
}

/// The topology constraint of the group at a position in a gang's tree, resolved; `None`: the group
/// has none, or its Topology does not exist.
pub(crate) fn near_of(
    state: &ClusterState,
    id: GangId,
    index: usize,
    group: &SubGroup,
) -> Option<Near> {
    if index == 0 {
        return topology_of_gang(state, id);
    }
    // tests plant bugs here: domain-of-a-sub-group
    near(state, group.topology.as_ref()?)
}

/// Checks the topology constraints of the gang and its sub-groups.
///
/// # Errors
/// A Topology or level does not exist, or a level is wider than that of a group above.
pub(crate) fn check_topologies(state: &ClusterState, id: GangId) -> Result<(), Verdict> {
    let missing = |message| Verdict::new(Reason::TopologyNotFound, message);
    check_own(state, id).map_err(missing)?;
    let Some(tree) = state.gangs[id].tree() else {
        return Ok(());
    };
    for (index, group) in tree.groups().skip(1) {
        let Some(constraint) = &group.topology else {
            continue;
        };
        let name = &group.name;
        check_levels(state, constraint)
            .map_err(|message| missing(format!("sub-group {name}: {message}")))?;
        if let Some(message) = wider_than_above(state, id, tree, index, constraint) {
            return Err(Verdict::new(Reason::InvalidSpec, message));
        }
    }
    Ok(())
}

/// Why the level that a sub-group requires is too wide: a group above it requires a narrower level
/// of its Topology. `None`: it is not.
fn wider_than_above(
    state: &ClusterState,
    id: GangId,
    tree: &GroupTree,
    index: usize,
    constraint: &TopologyConstraint,
) -> Option<String> {
    let own = near(state, constraint)?;
    let level = own.required?;
    for above in tree.path(index).skip(1) {
        let group = tree.group(above);
        let near = near_of(state, id, above, group);
        let near = near.filter(|near| near.topology == own.topology);
        if near
            .and_then(|near| near.required)
            .is_some_and(|above| level < above)
        {
            let parent = if above == 0 {
                "the PodGroup"
            } else {
                &*group.name
            };
            let level = constraint.required.as_deref().unwrap_or_default();
            return Some(format!(
                "sub-group {}: topology.required: {level} is wider than the level that \
                 {parent} requires",
                tree.group(index).name
            ));
        }
    }
    None
}
