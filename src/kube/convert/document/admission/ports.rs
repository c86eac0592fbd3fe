//! Ports of containers. Conversion looks at some of it, but only of ports of the host.

use super::one_of;
use crate::kube::convert::problems::Problems;
use crate::kube::convert::resources;
use crate::kube::objects::PodSpec;
use std::collections::BTreeSet;

/// The ports of all containers, and the network of the host.
pub(super) fn of_pod(spec: &PodSpec, problems: &mut Problems) {
    let in_host = spec.host_network == Some(true);
    if spec.has_own_users_in_host_network() {
        // The feature gate UserNamespacesHostNetworkSupport is off by default.
        problems.push("spec.hostNetwork", "is forbidden where hostUsers is false");
    }
    let mut all = BTreeSet::new();
    for (field, container) in resources::all_containers(spec) {
        // Init containers run one after the other, so each may take the same ports.
        let mut own = BTreeSet::new();
        let taken = if field.is_init() { &mut own } else { &mut all };
        for (index, port) in container.ports.iter().flatten().enumerate() {
            let inner = port.container_port.unwrap_or(0);
            if !is_port(inner) {
                let field = format_args!("{field}.ports[{index}].containerPort");
                problems.push(field, format_args!("{inner} is not from 1 to {}", u16::MAX));
            }
            let protocol = port.protocol.as_deref().filter(|it| !it.is_empty());
            let part = format_args!("{field}.ports[{index}].protocol");
            one_of(protocol, &["TCP", "UDP", "SCTP"], part, problems);
            let outer = match port.host_port {
                None | Some(0) if in_host => inner,
                outer => outer.unwrap_or(0),
            };
            if outer == 0 {
                continue;
            }
            let is_init = field.is_init();
            let field = format_args!("{field}.ports[{index}].hostPort");
            if !is_port(outer) {
                problems.push(field, format_args!("{outer} is not from 1 to {}", u16::MAX));
            }
            if in_host && outer != inner && !is_init {
                problems.push(
                    field,
                    "must be the containerPort in the network of the host",
                );
            }
            let address = port.host_ip.as_deref().unwrap_or_default();
            if !taken.insert((protocol.unwrap_or("TCP"), address, outer)) {
                problems.push(
                    field,
                    format_args!("{outer} is taken by another port of the pod"),
                );
            }
        }
    }
}

fn is_port(number: i64) -> bool {
    (1..=i64::from(u16::MAX)).contains(&number)
}
