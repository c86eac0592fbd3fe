//! Numbers and names of the fields that [`Pod`](crate::kube::objects::Pod),
//! [`Node`](crate::kube::objects::Node) and errors are read from.
//!
//! A field that a struct of [`objects`](crate::kube::objects) gains needs its line here; the test
//! that lists one world in both forms shows where one is missing. Source: `generated.proto` of
//! `k8s.io/api/core/v1` and `k8s.io/apimachinery/pkg/apis/meta/v1`, v0.36.

use super::Content::{
    Embedded, Flag, Integer, List, Map, Message as Inner, Present, Quantity, Text, Time,
};
use super::{Forms, Message};

/// What a list of any kind has before its objects.
pub static LIST_HEAD: Message = Message(&[(1, "metadata", Inner(&LIST_META))]);

/// `Pod` and `PodList`.
pub static POD_FORMS: Forms = Forms {
    object: &POD,
    list: &Message(&[
        (1, "metadata", Inner(&LIST_META)),
        (2, "items", List(&Inner(&POD))),
    ]),
};

/// `Node` and `NodeList`.
pub static NODE_FORMS: Forms = Forms {
    object: &NODE,
    list: &Message(&[
        (1, "metadata", Inner(&LIST_META)),
        (2, "items", List(&Inner(&NODE))),
    ]),
};

/// `Status`: the answer of an API server that refuses a request.
pub static STATUS: Message = Message(&[
    (3, "message", Text),
    (4, "reason", Text),
    (5, "details", Inner(&STATUS_DETAILS)),
    (6, "code", Integer),
]);

static STATUS_DETAILS: Message = Message(&[(1, "name", Text), (5, "retryAfterSeconds", Integer)]);

static LIST_META: Message = Message(&[(2, "resourceVersion", Text), (3, "continue", Text)]);

static OBJECT_META: Message = Message(&[
    (1, "name", Text),
    (3, "namespace", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (7, "generation", Integer),
    (8, "creationTimestamp", Time),
    (9, "deletionTimestamp", Time),
    (11, "labels", Map(&Text)),
    (12, "annotations", Map(&Text)),
    (13, "ownerReferences", List(&Inner(&OWNER_REFERENCE))),
]);

static OWNER_REFERENCE: Message = Message(&[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", Flag),
]);

static POD: Message = Message(&[
    (1, "metadata", Inner(&OBJECT_META)),
    (2, "spec", Inner(&POD_SPEC)),
    (3, "status", Inner(&POD_STATUS)),
]);

static POD_SPEC: Message = Message(&[
    (1, "volumes", List(&Inner(&VOLUME))),
    (2, "containers", List(&Inner(&CONTAINER))),
    (5, "activeDeadlineSeconds", Integer),
    (7, "nodeSelector", Map(&Text)),
    (10, "nodeName", Text),
    (11, "hostNetwork", Flag),
    (18, "affinity", Inner(&AFFINITY)),
    (19, "schedulerName", Text),
    (20, "initContainers", List(&Inner(&CONTAINER))),
    (22, "tolerations", List(&Inner(&TOLERATION))),
    (24, "priorityClassName", Text),
    (25, "priority", Integer),
    (31, "preemptionPolicy", Text),
    (32, "overhead", Map(&Quantity)),
    (
        33,
        "topologySpreadConstraints",
        List(&Inner(&TOPOLOGY_SPREAD_CONSTRAINT)),
    ),
    (37, "hostUsers", Flag),
    (38, "schedulingGates", List(&Inner(&NAMED))),
    (39, "resourceClaims", List(&Present)),
    (40, "resources", Inner(&RESOURCES)),
    // Only Kubernetes 1.35 has it, which has no `schedulingGroup`.
    (42, "workloadRef", Present),
    (43, "schedulingGroup", Inner(&SCHEDULING_GROUP)),
]);

static NAMED: Message = Message(&[(1, "name", Text)]);

static SCHEDULING_GROUP: Message = Message(&[(1, "podGroupName", Text)]);

static CONTAINER: Message = Message(&[
    (1, "name", Text),
    (2, "image", Text),
    (6, "ports", List(&Inner(&CONTAINER_PORT))),
    (8, "resources", Inner(&RESOURCES)),
    (15, "securityContext", Inner(&SECURITY_CONTEXT)),
    (24, "restartPolicy", Text),
    (25, "restartPolicyRules", List(&Inner(&RESTART_RULE))),
]);

static CONTAINER_PORT: Message = Message(&[
    (2, "hostPort", Integer),
    (3, "containerPort", Integer),
    (4, "protocol", Text),
    (5, "hostIP", Text),
]);

static SECURITY_CONTEXT: Message = Message(&[(2, "privileged", Flag)]);

static RESTART_RULE: Message = Message(&[(1, "action", Text)]);

static RESOURCES: Message = Message(&[
    (1, "limits", Map(&Quantity)),
    (2, "requests", Map(&Quantity)),
    (3, "claims", List(&Present)),
]);

static AFFINITY: Message = Message(&[
    (1, "nodeAffinity", Inner(&NODE_AFFINITY)),
    (2, "podAffinity", Inner(&POD_AFFINITY)),
    (3, "podAntiAffinity", Inner(&POD_AFFINITY)),
]);

static NODE_AFFINITY: Message = Message(&[
    (
        1,
        "requiredDuringSchedulingIgnoredDuringExecution",
        Inner(&NODE_SELECTOR),
    ),
    (
        2,
        "preferredDuringSchedulingIgnoredDuringExecution",
        List(&Inner(&PREFERRED_NODE_TERM)),
    ),
]);

static PREFERRED_NODE_TERM: Message = Message(&[
    (1, "weight", Integer),
    (2, "preference", Inner(&NODE_SELECTOR_TERM)),
]);

static NODE_SELECTOR: Message =
    Message(&[(1, "nodeSelectorTerms", List(&Inner(&NODE_SELECTOR_TERM)))]);

static NODE_SELECTOR_TERM: Message = Message(&[
    (1, "matchExpressions", List(&Inner(&REQUIREMENT))),
    (2, "matchFields", List(&Inner(&REQUIREMENT))),
]);

static REQUIREMENT: Message = Message(&[
    (1, "key", Text),
    (2, "operator", Text),
    (3, "values", List(&Text)),
]);

static POD_AFFINITY: Message = Message(&[
    (
        1,
        "requiredDuringSchedulingIgnoredDuringExecution",
        List(&Inner(&POD_AFFINITY_TERM)),
    ),
    (
        2,
        "preferredDuringSchedulingIgnoredDuringExecution",
        List(&Inner(&WEIGHTED_POD_AFFINITY_TERM)),
    ),
]);

static WEIGHTED_POD_AFFINITY_TERM: Message = Message(&[
    (1, "weight", Integer),
    (2, "podAffinityTerm", Inner(&POD_AFFINITY_TERM)),
]);

static POD_AFFINITY_TERM: Message = Message(&[
    (1, "labelSelector", Inner(&LABEL_SELECTOR)),
    (2, "namespaces", List(&Text)),
    (3, "topologyKey", Text),
    (4, "namespaceSelector", Inner(&LABEL_SELECTOR)),
    (5, "matchLabelKeys", List(&Text)),
    (6, "mismatchLabelKeys", List(&Text)),
]);

static LABEL_SELECTOR: Message = Message(&[
    (1, "matchLabels", Map(&Text)),
    (2, "matchExpressions", List(&Inner(&REQUIREMENT))),
]);

static TOLERATION: Message = Message(&[
    (1, "key", Text),
    (2, "operator", Text),
    (3, "value", Text),
    (4, "effect", Text),
]);

static TOPOLOGY_SPREAD_CONSTRAINT: Message = Message(&[
    (1, "maxSkew", Integer),
    (2, "topologyKey", Text),
    (3, "whenUnsatisfiable", Text),
    (4, "labelSelector", Inner(&LABEL_SELECTOR)),
    (5, "minDomains", Integer),
    (6, "nodeAffinityPolicy", Text),
    (7, "nodeTaintsPolicy", Text),
    (8, "matchLabelKeys", List(&Text)),
]);

static VOLUME: Message = Message(&[
    (1, "name", Text),
    (2, "volumeSource", Embedded(&VOLUME_SOURCE)),
]);

/// Claims, and other sources that restrict where a pod can run.
static VOLUME_SOURCE: Message = Message(&[
    (3, "gcePersistentDisk", Inner(&GOOGLE_DISK)),
    (4, "awsElasticBlockStore", Inner(&AMAZON_DISK)),
    (8, "iscsi", Inner(&ISCSI_DISK)),
    (10, "persistentVolumeClaim", Inner(&CLAIM_SOURCE)),
    (11, "rbd", Inner(&CEPH_DISK)),
    (13, "cinder", Inner(&NAMED_DISK)),
    (22, "azureDisk", Inner(&AZURE_DISK)),
    (24, "portworxVolume", Inner(&NAMED_DISK)),
    (29, "ephemeral", Present),
    (30, "image", Inner(&IMAGE_SOURCE)),
]);

static GOOGLE_DISK: Message = Message(&[(1, "pdName", Text), (4, "readOnly", Flag)]);

static AMAZON_DISK: Message = Message(&[(1, "volumeID", Text), (4, "readOnly", Flag)]);

static ISCSI_DISK: Message = Message(&[(2, "iqn", Text), (6, "readOnly", Flag)]);

static CEPH_DISK: Message = Message(&[
    (1, "monitors", List(&Text)),
    (2, "image", Text),
    (4, "pool", Text),
    (8, "readOnly", Flag),
]);

static NAMED_DISK: Message = Message(&[(1, "volumeID", Text), (3, "readOnly", Flag)]);

static AZURE_DISK: Message = Message(&[
    (2, "diskURI", Text),
    (5, "readOnly", Flag),
    (6, "kind", Text),
]);

static IMAGE_SOURCE: Message = Message(&[(1, "reference", Text)]);

static CLAIM_SOURCE: Message = Message(&[(1, "claimName", Text)]);

static POD_STATUS: Message = Message(&[
    (1, "phase", Text),
    (2, "conditions", List(&Inner(&POD_CONDITION))),
    (4, "reason", Text),
    (7, "startTime", Time),
    (8, "containerStatuses", List(&Inner(&CONTAINER_STATUS))),
    (10, "initContainerStatuses", List(&Inner(&CONTAINER_STATUS))),
    (11, "nominatedNodeName", Text),
    (19, "allocatedResources", Map(&Quantity)),
    (20, "resources", Inner(&RESOURCES)),
]);

static POD_CONDITION: Message = Message(&[
    (1, "type", Text),
    (2, "status", Text),
    (4, "lastTransitionTime", Time),
    (5, "reason", Text),
    (6, "message", Text),
]);

static CONTAINER_STATUS: Message = Message(&[
    (1, "name", Text),
    (10, "allocatedResources", Map(&Quantity)),
    (11, "resources", Inner(&RESOURCES)),
]);

static NODE: Message = Message(&[
    (1, "metadata", Inner(&OBJECT_META)),
    (2, "spec", Inner(&NODE_SPEC)),
    (3, "status", Inner(&NODE_STATUS)),
]);

static NODE_SPEC: Message = Message(&[
    (4, "unschedulable", Flag),
    (5, "taints", List(&Inner(&TAINT))),
]);

static TAINT: Message = Message(&[(1, "key", Text), (2, "value", Text), (3, "effect", Text)]);

static NODE_STATUS: Message = Message(&[
    (1, "capacity", Map(&Quantity)),
    (2, "allocatable", Map(&Quantity)),
    (4, "conditions", List(&Inner(&NODE_CONDITION))),
    (8, "images", List(&Inner(&CONTAINER_IMAGE))),
    (14, "declaredFeatures", List(&Text)),
]);

static CONTAINER_IMAGE: Message = Message(&[(1, "names", List(&Text)), (2, "sizeBytes", Integer)]);

static NODE_CONDITION: Message = Message(&[
    (1, "type", Text),
    (2, "status", Text),
    (4, "lastTransitionTime", Time),
    (5, "reason", Text),
    (6, "message", Text),
]);
