//! Which programs a control plane has, and the command line of each.
//!
//! Set for load on a small machine: no limit below what the machine can do, and no work whose
//! result is not used.

use std::path::{Path, PathBuf};

use super::binaries::Program;
use super::certificates::Certificates;

/// The names of the audit log of an API server, and of the policy that says what is written into
/// it.
pub(super) const AUDIT_LOG: &str = "audit.log";
pub(super) const AUDIT_POLICY: &str = "audit-policy.yaml";

/// What runs beside etcd and the API server. The default is nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The controllers of the controller manager, by the names of its flag `--controllers`; see
    /// [`CONTROLLERS`]. Empty: the controller manager does not run.
    pub controllers: &'static [&'static str],
    /// Kubernetes' own scheduler.
    pub kube_scheduler: bool,
    /// Fake kubelets: pods that are bound to a fake node run, end and go.
    pub kwok: bool,
    /// Workloads and PodGroups of Kubernetes itself (`scheduling.k8s.io/v1alpha2`).
    pub native_gangs: bool,
    /// The API server writes down which client asked for what: see
    /// [`ControlPlane::audit_log`](super::ControlPlane::audit_log).
    pub audit: bool,
}

/// The controllers that a cluster with batch work needs.
pub const CONTROLLERS: &[&str] = &[
    "job-controller",
    "replicaset-controller",
    "deployment-controller",
    "statefulset-controller",
    "pod-garbage-collector-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "disruption-controller",
    "ttl-after-finished-controller",
    "serviceaccount-controller",
    "persistentvolume-binder-controller",
    "ephemeral-volume-controller",
];

impl Options {
    /// The programs that a control plane with these options consists of.
    pub fn programs(&self) -> Vec<Program> {
        let mut programs = vec![Program::Etcd, Program::KubeApiserver];
        programs.extend((!self.controllers.is_empty()).then_some(Program::KubeControllerManager));
        programs.extend(self.kube_scheduler.then_some(Program::KubeScheduler));
        programs.extend(self.kwok.then_some(Program::Kwok));
        programs
    }
}

/// What the command lines of one control plane have in common.
pub(super) struct Setting<'a> {
    pub(super) folder: &'a Path,
    pub(super) certificates: &'a Certificates,
    pub(super) kubeconfig: &'a Path,
    pub(super) etcd_port: u16,
    pub(super) api_port: u16,
    pub(super) options: Options,
}

/// Admission that a cluster without kubelets and volumes does not miss.
///
/// `ServiceAccount` would refuse pods until a controller has made the namespace's account, and
/// `TaintNodesByCondition` would taint each new node until the node controller finds it ready.
const ADMISSION_OFF: &str = "ServiceAccount,TaintNodesByCondition,LimitRanger,ResourceQuota,\
    RuntimeClass,DefaultStorageClass,DefaultIngressClass,StorageObjectInUseProtection,\
    PersistentVolumeClaimResize";

/// The feature gates of gangs in Kubernetes itself (KEP-4671 and others on top of it), alpha in
/// 1.36.
const NATIVE_GANG_GATES: &str = "--feature-gates=GenericWorkload=true,GangScheduling=true,\
    TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true";

/// Requests a second that a controller may send; with the default of 20, that limit would be
/// measured.
pub(super) const CONTROLLER_QPS: u32 = 5000;

impl Setting<'_> {
    /// etcd without fsync: a crash of the machine may lose everything, which does no harm here.
    pub(super) fn etcd(&self) -> Vec<String> {
        let url = format!("http://127.0.0.1:{}", self.etcd_port);
        vec![
            format!("--data-dir={}", self.folder.join("etcd").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            // etcd has no peers: any port will do, and no other program has to know it.
            "--listen-peer-urls=http://127.0.0.1:0".into(),
            "--unsafe-no-fsync".into(),
            format!("--quota-backend-bytes={}", 8_u64 << 30),
            "--log-level=warn".into(),
        ]
    }

    pub(super) fn kube_apiserver(&self) -> Vec<String> {
        let file = |path: &PathBuf| path.display().to_string();
        let certificates = self.certificates;
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.api_port),
            "--advertise-address=127.0.0.1".into(),
            // The loopback address is not allowed in an Endpoints object.
            "--endpoint-reconciler-type=none".into(),
            "--service-cluster-ip-range=10.96.0.0/16".into(),
            format!("--cert-dir={}", self.folder.display()),
            format!("--client-ca-file={}", file(&certificates.authority)),
            format!("--tls-cert-file={}", file(&certificates.server)),
            format!("--tls-private-key-file={}", file(&certificates.server_key)),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!(
                "--service-account-key-file={}",
                file(&certificates.service_account_public_key)
            ),
            format!(
                "--service-account-signing-key-file={}",
                file(&certificates.service_account_key)
            ),
            "--authorization-mode=RBAC".into(),
            "--allow-privileged".into(),
            format!("--disable-admission-plugins={ADMISSION_OFF}"),
            "--max-requests-inflight=2000".into(),
            "--max-mutating-requests-inflight=1000".into(),
        ];
        if self.options.audit {
            for (flag, file) in [("policy-file", AUDIT_POLICY), ("log-path", AUDIT_LOG)] {
                let file = self.folder.join(file);
                arguments.push(format!("--audit-{flag}={}", file.display()));
            }
        }
        if self.options.native_gangs {
            arguments.push("--runtime-config=scheduling.k8s.io/v1alpha2=true".into());
            arguments.push(NATIVE_GANG_GATES.into());
        }
        arguments
    }

    pub(super) fn kube_controller_manager(&self) -> Vec<String> {
        let mut arguments = self.controller();
        arguments.extend([
            format!("--controllers={}", self.options.controllers.join(",")),
            format!(
                "--service-account-private-key-file={}",
                self.certificates.service_account_key.display()
            ),
            format!("--root-ca-file={}", self.certificates.authority.display()),
        ]);
        arguments
    }

    pub(super) fn kube_scheduler(&self) -> Vec<String> {
        self.controller()
    }

    /// One `--config` for each stage. No leases: no controller watches the heartbeats of fake
    /// nodes.
    pub(super) fn kwok(&self, stages: &[PathBuf]) -> Vec<String> {
        let mut arguments = vec![
            format!("--kubeconfig={}", self.kubeconfig.display()),
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".into(),
            "--node-lease-duration-seconds=0".into(),
            "--cidr=10.0.0.1/8".into(),
            "--node-ip=10.0.0.1".into(),
        ];
        arguments.extend(
            stages
                .iter()
                .map(|stage| format!("--config={}", stage.display())),
        );
        arguments
    }

    /// The arguments that controller manager and scheduler share. Port 0: neither serves anything.
    fn controller(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("--kubeconfig={}", self.kubeconfig.display()),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
            format!("--kube-api-qps={CONTROLLER_QPS}"),
            format!("--kube-api-burst={CONTROLLER_QPS}"),
        ];
        if self.options.native_gangs {
            arguments.push(NATIVE_GANG_GATES.into());
        }
        arguments
    }
}
