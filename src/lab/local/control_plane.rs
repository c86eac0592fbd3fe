//! A running control plane.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::LocalError;
use super::binaries::{Binaries, Program};
use super::certificates::Certificates;
use super::command_lines::{AUDIT_LOG, AUDIT_POLICY, CONTROLLER_QPS, Options, Setting};
use super::process::Processes;
use super::scheduler::address_in;

/// How long the API server may take to become ready. On an idle machine it takes 4 s.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// How often the API server is asked whether it is ready.
const READY_POLL: Duration = Duration::from_millis(50);

/// How often a start is tried when another process takes a port between its choice and its use.
const PORT_ATTEMPTS: u32 = 3;

/// This scheduler has no other beside it, and the cluster has no namespace for its Lease; another
/// process of this machine may have the default port.
const SCHEDULER_CONFIG: &str = "\
apiVersion: gpu-batch.io/v1alpha1
kind: Configuration
serveAddress: 127.0.0.1:0
leaderElection: {enabled: false}
";

/// The requests that an API server writes down: all of them, without their bodies.
const AUDIT_RULES: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

/// A control plane that runs until this is dropped, or until this process ends in whatever way.
///
/// Dropping this blocks for some milliseconds and removes all data of the control plane.
#[derive(Debug)]
pub struct ControlPlane {
    processes: Processes,
    kubeconfig: PathBuf,
    etcd_port: u16,
}

impl ControlPlane {
    /// Starts the programs and waits until the API server is ready and the namespace `default`
    /// exists. Asynchronous because it waits by asking the API server.
    ///
    /// # Errors
    /// [`LocalError::Ended`] if a program ends (its log says why), [`LocalError::NotReady`] if the
    /// API server does not become ready within two minutes.
    pub async fn start(binaries: &Binaries, options: Options) -> Result<Self, LocalError> {
        let mut attempt = 1;
        loop {
            match Self::try_start(binaries, options).await {
                Err(LocalError::Ended { log, .. })
                    if attempt < PORT_ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn try_start(binaries: &Binaries, options: Options) -> Result<Self, LocalError> {
        let processes = Processes::new()?;
        let folder = processes.folder().to_owned();
        let certificates = Certificates::create(&folder)?;
        let [etcd_port, api_port] = free_ports()?;
        let kubeconfig = folder.join("kubeconfig");
        write_kubeconfig(&kubeconfig, &certificates, api_port)?;
        if options.audit {
            let policy = folder.join(AUDIT_POLICY);
            fs::write(&policy, AUDIT_RULES).map_err(LocalError::io("write", policy))?;
        }
        let setting = Setting {
            folder: &folder,
            certificates: &certificates,
            kubeconfig: &kubeconfig,
            etcd_port,
            api_port,
            options,
        };
        let mut control_plane = Self {
            processes,
            kubeconfig: kubeconfig.clone(),
            etcd_port,
        };
        for program in options.programs() {
            let arguments = match program {
                Program::Etcd => setting.etcd(),
                Program::KubeApiserver => setting.kube_apiserver(),
                Program::KubeControllerManager => setting.kube_controller_manager(),
                Program::KubeScheduler => setting.kube_scheduler(),
                Program::Kwok => setting.kwok(&binaries.stages()?),
                Program::Kubectl | Program::Helm | Program::GpuBatch => continue,
            };
            if !matches!(program, Program::Etcd | Program::KubeApiserver) {
                // All other programs give up when they find no API server.
                control_plane.wait_until_ready().await?;
            }
            control_plane
                .processes
                .start(program, binaries.path(program), arguments)?;
        }
        control_plane.wait_until_ready().await?;
        Ok(control_plane)
    }

    /// Starts Kubernetes' own scheduler with a KubeSchedulerConfiguration, which this completes
    /// with how the API server is reached. For a control plane without
    /// [`Options::kube_scheduler`].
    ///
    /// # Errors
    /// [`LocalError::Io`] if the scheduler cannot be started. It is no error here if the scheduler
    /// ends at once, as it does with a configuration that it refuses; its log says why.
    pub fn start_kube_scheduler(
        &mut self,
        binaries: &Binaries,
        configuration: &serde_json::Value,
    ) -> Result<(), LocalError> {
        let mut configuration = configuration.clone();
        let connection = serde_json::json!({
            "kubeconfig": self.kubeconfig, "qps": CONTROLLER_QPS, "burst": CONTROLLER_QPS,
        });
        configuration["clientConnection"] = connection;
        configuration["leaderElection"] = serde_json::json!({"leaderElect": false});
        let file = self.folder().join("kube-scheduler.json");
        fs::write(&file, configuration.to_string()).map_err(LocalError::io("write", &file))?;
        let arguments = vec![
            format!("--config={}", file.display()),
            "--secure-port=0".into(),
        ];
        let program = Program::KubeScheduler;
        self.processes
            .start(program, binaries.path(program), arguments)
    }

    /// The kubeconfig for kubectl and other clients. Its user may do everything.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Where etcd serves its API, by gRPC and by the JSON gateway, to every process of this
    /// machine.
    pub fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port)
    }

    /// The file of the requests that the API server has answered so far, an `audit.k8s.io/v1` Event
    /// a line, without bodies; it does not exist without [`Options::audit`].
    pub fn audit_log(&self) -> PathBuf {
        self.folder().join(AUDIT_LOG)
    }

    /// The folder with the data and the logs (`PROGRAM.log`).
    pub fn folder(&self) -> &Path {
        self.processes.folder()
    }

    /// A new client, which never retries by itself. It belongs to the runtime in which it is made:
    /// do not share it between tests.
    ///
    /// # Errors
    /// [`LocalError::Client`] if the kubeconfig is damaged.
    pub async fn client(&self) -> Result<Client, LocalError> {
        let failed = |error: &dyn std::fmt::Display| LocalError::Client(error.to_string());
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).map_err(|e| failed(&e))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|e| failed(&e))?;
        config.default_retry = false;
        // A proxy of the environment does not lead to our loopback interface.
        config.proxy_url = None;
        Client::try_from(config).map_err(|e| failed(&e))
    }

    /// Starts `executable`, which is a `gpu-batch`, as the scheduler. Its log is `gpu-batch.log`.
    ///
    /// # Errors
    /// [`LocalError::Io`] if the scheduler cannot be started.
    pub fn start_scheduler(&mut self, executable: PathBuf) -> Result<(), LocalError> {
        let config = self.folder().join("gpu-batch.yaml");
        fs::write(&config, SCHEDULER_CONFIG).map_err(LocalError::io("write", &config))?;
        let arguments = vec![
            "run".into(),
            format!("--kubeconfig={}", self.kubeconfig.display()),
            format!("--config={}", config.display()),
        ];
        self.processes
            .start(Program::GpuBatch, executable, arguments)
    }

    /// Where the scheduler serves health and explanations; `None` until it says so in its log.
    #[must_use]
    pub fn scheduler_address(&self) -> Option<SocketAddr> {
        address_in(&self.processes.log(Program::GpuBatch))
    }

    /// Stops `program` with SIGSTOP: its connections stay open and nothing is answered.
    pub fn pause(&mut self, program: Program) {
        self.processes.pause(program);
    }

    /// Lets a paused `program` go on.
    pub fn resume(&mut self, program: Program) {
        self.processes.resume(program);
    }

    /// Kills `program` and waits until it is gone. Its data stay.
    pub fn kill(&mut self, program: Program) {
        self.processes.kill(program);
    }

    /// Starts `program` again, on the same port and with the same data, killing it first if it
    /// still runs; returns when the API server is ready.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub async fn restart(&mut self, program: Program) -> Result<(), LocalError> {
        self.processes.restart(program)?;
        self.wait_until_ready().await
    }

    /// Lets the control plane run on when this process ends. Do not pause a program then: the
    /// kernel sends SIGHUP to stopped programs whose parent is gone. The control plane ends when
    /// the returned file is created (`touch`), and then removes its data.
    #[must_use]
    pub fn keep(self) -> PathBuf {
        self.processes.keep()
    }

    /// Asks the API server until it is ready, for as long as all programs run.
    async fn wait_until_ready(&mut self) -> Result<(), LocalError> {
        let client = self.client().await?;
        let start = Instant::now();
        loop {
            let answer = readiness(&client).await;
            if let Some((program, status)) = self.processes.ended() {
                let log = self.processes.log_tail(program);
                return Err(LocalError::Ended {
                    program,
                    status,
                    log,
                });
            }
            match answer {
                Ok(()) => return Ok(()),
                Err(error) if start.elapsed() > READY_WITHIN => {
                    return Err(LocalError::NotReady {
                        waited_s: READY_WITHIN.as_secs(),
                        last_answer: error,
                        log: self.processes.log_tail(Program::KubeApiserver),
                    });
                }
                Err(_) => tokio::time::sleep(READY_POLL).await,
            }
        }
    }
}

/// Whether the API server is ready; else what it answered. Waits at most a second, because a paused
/// API server does not answer.
async fn readiness(client: &Client) -> Result<(), String> {
    let ask = async {
        for path in ["/readyz", "/api/v1/namespaces/default"] {
            let request = http::Request::get(path)
                .body(Vec::new())
                .map_err(|e| e.to_string())?;
            client
                .request_text(request)
                .await
                .map_err(|e| e.to_string())?;
        }
        Ok(())
    };
    tokio::time::timeout(Duration::from_secs(1), ask)
        .await
        .unwrap_or(Err("no answer".into()))
}

/// Ports that no process uses now. All are held until the last is found, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N], LocalError> {
    let find = || -> std::io::Result<[u16; N]> {
        let listeners = (0..N)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .collect::<std::io::Result<Vec<_>>>()?;
        let mut ports = [0; N];
        for (port, listener) in ports.iter_mut().zip(&listeners) {
            *port = listener.local_addr()?.port();
        }
        Ok(ports)
    };
    find().map_err(LocalError::io("listen on", "127.0.0.1"))
}

fn write_kubeconfig(
    path: &Path,
    certificates: &Certificates,
    api_port: u16,
) -> Result<(), LocalError> {
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {
            "server": format!("https://127.0.0.1:{api_port}"),
            "certificate-authority": certificates.authority,
        }}],
        "users": [{"name": "admin", "user": {
            "client-certificate": certificates.admin,
            "client-key": certificates.admin_key,
        }}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin"}}],
        "current-context": "local",
    });
    fs::write(path, kubeconfig.to_string()).map_err(LocalError::io("write", path))
}
