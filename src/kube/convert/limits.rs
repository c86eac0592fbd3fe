//! How large an object may be before it is refused.
//!
//! The API server takes objects of 1.5 MB and does not count labels, taints or tolerations. What is
//! above a limit here is left out, and a problem of the object says so. So a flood of labels harms
//! only the object that carries it, and not the scheduler. Pods are accounted in full whatever
//! their size: requests are never left out.
//!
//! The arithmetic, for names of at most 317 bytes (a prefix of 253, a slash, 63) and values of at
//! most 63, with 32 bytes of pointers and 32 of allocation for each pair:
//!
//! | object at its limit | bytes | a usual one |
//! |---|---|---|
//! | labels of a node or namespace: 512 x (317 + 63 + 64) | 227 kB | 60 labels: 6 kB |
//! | resources of a node: 2 x 512 x (317 + 40) | 366 kB | 10: 1 kB |
//! | annotations of a node: 64 KiB | 66 kB | 0.5 kB |
//! | images of a node, if the cluster prefers nodes by them: 1,024 x (317 + 48) | 374 kB | 15 kB |
//! | shape of a pod: 64 KiB of text | 66 kB | 0.3 kB, shared by all pods alike |
//! | problems of an object: 16 x (2 x 256) | 8 kB | none |
//!
//! So 5,000 nodes take 40 MB as they usually are; a node at every limit takes 1.1 MB.

/// Labels of one object, resources of a node, entries of a pod's node selector.
pub(crate) const PAIRS: usize = 512;

/// Taints, tolerations, ports, terms, requirements of a term, values of a requirement, gates.
pub(crate) const ENTRIES: usize = 1_024;

/// Required terms of a pod about other pods, of each sort. Each is a count of pods by domain.
pub(crate) const POD_TERMS: usize = 32;

/// All text of a pod's selectors, affinity and tolerations, in bytes: a thousand node names.
pub(crate) const SHAPE_TEXT: usize = 64 * 1_024;

/// All kept annotations of a node, in bytes.
pub(crate) const ANNOTATION_TEXT: usize = 64 * 1_024;

/// One name or annotation value that is kept, in bytes: the longest label key.
pub(crate) const TEXT: usize = 317;

/// Container images of a pod, with those that it uses twice; more are left out without a problem,
/// since they only order nodes. A node has [`ENTRIES`] names of images.
pub(crate) const IMAGES: usize = 256;

/// The message of a pod's condition, in bytes; longer ones are cut.
pub(crate) const MESSAGE: usize = 4_096;

/// `spec.resources` of a queue.
pub(crate) const QUEUE_RESOURCES: usize = 256;

/// `spec.subGroups` of a PodGroup.
pub(crate) const SUB_GROUPS: usize = 1_024;

/// The groups that a pod is in: its gang, and sub-groups inside each other down to its leaf.
pub(crate) const GROUPS_OF_A_POD: usize = 17;

/// `spec.levels` of a Topology.
pub(crate) const TOPOLOGY_LEVELS: usize = 16;

/// Problems and unsupported fields of one object; the first ones are kept.
pub(crate) const PROBLEMS: usize = 16;

/// The field or the message of a problem, in bytes.
pub(crate) const PROBLEM_TEXT: usize = 256;

/// Members of a gang, as in the schema of PodGroup.
pub(crate) const MEMBERS: u32 = 1_000_000;
