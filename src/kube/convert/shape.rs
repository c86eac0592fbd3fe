//! What decides where a pod can run.

use super::preference::ClusterPreferences;
use super::problems::Problems;
use super::{
    alignment, disks, hami, limits, preference, relation, resources, selector, unsupported,
};
use crate::kube::objects::{self, ContainerPort, Pod, PodSpec};
use gpu_batch_policies::facts::{
    CardEntries, HostPort, NodeFeature, PodShape, Protocol, TaintEffect, Toleration,
    TolerationOperator,
};

/// The shape of a pod that this scheduler places, and where the containers stand that ask for parts
/// of cards.
pub(super) fn own(
    pod: &Pod,
    added: ClusterPreferences,
    problems: &mut Problems,
) -> (PodShape, CardEntries) {
    let spec = &pod.spec;
    let affinity = spec.affinity.as_ref();
    let node_affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
    let node_selector = problems.at_most(limits::PAIRS, &spec.node_selector.0, "spec.nodeSelector");
    let mut unsupported = unsupported::fields(pod);
    let requests = resources::requests(pod, problems);
    let asked = hami::asked(pod, problems).unwrap_or_default();
    let mut shape = PodShape {
        requests,
        largest_container: resources::largest_container(spec),
        aligned: alignment::aligned(spec),
        cards: asked.need,
        card_terms: asked.terms.boxed(),
        node_selector: node_selector.to_vec(),
        node_affinity: selector::node_affinity(node_affinity, problems),
        tolerations: tolerations(pod, &mut unsupported, problems),
        host_ports: host_ports(pod, problems),
        disks: disks::exclusive(spec),
        features: features(&pod.spec),
        relations: relation::own(pod, problems),
        preferences: preference::own(pod, added, problems),
        volumes: None,
        unsupported,
    };
    shape.unsupported.truncate(limits::PROBLEMS);
    let text = text_of(&shape);
    if text > limits::SHAPE_TEXT {
        problems.push(
            "spec",
            format_args!(
                "{text} bytes of selectors, affinity, tolerations and rules are more than {}",
                limits::SHAPE_TEXT
            ),
        );
        shape.node_selector.clear();
        shape.node_affinity = None;
        shape.tolerations.clear();
        shape.relations = None;
        shape.preferences = None;
        shape.card_terms = None;
    }
    (shape, asked.entries)
}

/// The features that a node must declare before the pod runs there (NodeDeclaredFeatures).
fn features(spec: &PodSpec) -> Vec<NodeFeature> {
    let rules = resources::all_containers(spec)
        .filter_map(|(_, container)| container.restart_policy_rules.as_deref());
    let restarts_all = rules
        .flatten()
        .any(|rule| &*rule.action == "RestartAllContainers");
    let needs = |feature: &NodeFeature| match feature {
        NodeFeature::RestartAllContainers => restarts_all,
        NodeFeature::UserNamespacesHostNetwork => spec.has_own_users_in_host_network(),
    };
    NodeFeature::ALL.into_iter().filter(needs).collect()
}

/// The shape of another scheduler's pod: the room that it takes, and which pods it keeps away or
/// would rather have near it, or far from it.
pub(super) fn foreign(pod: &Pod) -> PodShape {
    let mut unread = Problems::default();
    PodShape {
        requests: resources::requests(pod, &mut unread),
        aligned: alignment::aligned(&pod.spec),
        host_ports: host_ports(pod, &mut unread),
        disks: disks::exclusive(&pod.spec),
        relations: relation::foreign(pod),
        preferences: preference::foreign(pod),
        ..PodShape::default()
    }
}

/// The effect of a taint.
pub(super) fn taint_effect(text: &str) -> Option<TaintEffect> {
    Some(match text {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        _ => return None,
    })
}

fn tolerations(
    pod: &Pod,
    unsupported: &mut Vec<Box<str>>,
    problems: &mut Problems,
) -> Vec<Toleration> {
    let list = pod.spec.tolerations.as_deref().unwrap_or_default();
    let list = problems.at_most(limits::ENTRIES, list, "spec.tolerations");
    let mut tolerations = Vec::with_capacity(list.len());
    for (index, toleration) in list.iter().enumerate() {
        match read_toleration(toleration) {
            Ok(toleration) => tolerations.push(toleration),
            Err(Unread::Unsupported) => {
                unsupported.push(format!("spec.tolerations[{index}].operator").into());
            }
            Err(Unread::Wrong(field, text)) => problems.push_impossible(
                format_args!("spec.tolerations[{index}].{field}"),
                format_args!("`{text}` is not known"),
            ),
        }
    }
    tolerations
}

enum Unread<'a> {
    /// A comparison of numbers, which Kubernetes has behind a feature gate.
    Unsupported,
    /// A field, and its text that means nothing.
    Wrong(&'static str, &'a str),
}

fn read_toleration(toleration: &objects::Toleration) -> Result<Toleration, Unread<'_>> {
    let operator = match toleration.operator.as_deref() {
        None | Some("" | "Equal") => TolerationOperator::Equal,
        Some("Exists") => TolerationOperator::Exists,
        Some("Gt" | "Lt") => return Err(Unread::Unsupported),
        Some(other) => return Err(Unread::Wrong("operator", other)),
    };
    let effect = match toleration.effect.as_deref() {
        None | Some("") => None,
        Some(text) => Some(taint_effect(text).ok_or(Unread::Wrong("effect", text))?),
    };
    Ok(Toleration {
        key: toleration.key.clone().unwrap_or_default(),
        operator,
        value: toleration.value.clone().unwrap_or_default(),
        effect,
    })
}

/// Ports of the host that containers and sidecars open, sorted, each once.
fn host_ports(pod: &Pod, problems: &mut Problems) -> Vec<HostPort> {
    let host_network = pod.spec.host_network == Some(true);
    let mut ports = Vec::new();
    for (field, container) in resources::all_containers(&pod.spec) {
        if field.is_init() && !container.is_sidecar() {
            continue;
        }
        for (index, port) in container.ports.iter().flatten().enumerate() {
            match host_port(port, host_network) {
                Ok(port) => ports.extend(port),
                Err((part, message)) => {
                    let field = format_args!("{field}.ports[{index}].{part}");
                    problems.push_impossible(field, message);
                }
            }
        }
    }
    ports.sort_unstable();
    ports.dedup();
    problems
        .at_most(limits::ENTRIES, &ports, "spec.containers")
        .to_vec()
}

/// The port of the host that a container opens. The error names a part of the port.
fn host_port(
    port: &ContainerPort,
    host_network: bool,
) -> Result<Option<HostPort>, (&'static str, String)> {
    // In the host's network every port is a port of the host; the API server fills `hostPort` in.
    let number = match port.host_port {
        None | Some(0) if host_network => port.container_port.unwrap_or(0),
        None => 0,
        Some(number) => number,
    };
    if number == 0 {
        return Ok(None);
    }
    let protocol = match port.protocol.as_deref() {
        None | Some("" | "TCP") => Protocol::Tcp,
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        Some(other) => return Err(("protocol", format!("`{other}` is not a protocol"))),
    };
    let Ok(number) = u16::try_from(number) else {
        return Err(("hostPort", format!("{number} is not a port")));
    };
    let address = port
        .host_ip
        .as_deref()
        .filter(|address| *address != "0.0.0.0");
    Ok(Some(HostPort {
        port: number,
        protocol,
        host_ip: address.unwrap_or_default().into(),
    }))
}

fn text_of(shape: &PodShape) -> usize {
    let pairs = shape
        .node_selector
        .iter()
        .map(|(key, value)| key.len() + value.len());
    let terms = shape
        .node_affinity
        .iter()
        .flatten()
        .map(selector::text_of_term);
    let tolerations = shape
        .tolerations
        .iter()
        .map(|toleration| toleration.key.len() + toleration.value.len());
    let relations = shape.relations.as_deref().map(relation::text_of);
    let preferences = shape.preferences.as_deref().map(preference::text_of);
    let rules = shape.card_terms.iter().flat_map(|terms| &terms.rules);
    let own = pairs
        .chain(terms)
        .chain(tolerations)
        .chain(rules.map(hami::text_of));
    own.chain(relations).chain(preferences).sum()
}

#[cfg(test)]
mod tests;
