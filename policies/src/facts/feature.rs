//! Features that a node must declare before certain pods run on it.

/// A feature of a kubelet or its container runtime that some pods need, and that nodes declare in
/// `status.declaredFeatures` (KEP-5328). All others that Kubernetes v1.36 knows matter only to
/// changes of running pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeFeature {
    /// The exit of one container restarts all containers of its pod.
    RestartAllContainers,
    /// Pods in the network of the host may have user namespaces of their own.
    UserNamespacesHostNetwork,
}

impl NodeFeature {
    /// Every feature.
    pub const ALL: [Self; 2] = [Self::RestartAllContainers, Self::UserNamespacesHostNetwork];

    /// The name under which nodes declare it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RestartAllContainers => "RestartAllContainersOnContainerExits",
            Self::UserNamespacesHostNetwork => "UserNamespacesHostNetworkSupport",
        }
    }
}
