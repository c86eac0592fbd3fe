//! The manifests in `deploy/`, on a real API server: the definitions with their rules, and the
//! chart with the program that it installs.

mod installed;
mod requests;
mod upgraded;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use gpu_batch::lab::local::Options;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::cluster::{self, Cluster};

fn documents(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(file);
    serde_saphyr::from_multiple(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test]
async fn good_objects_are_accepted_and_bad_ones_refused_with_the_rule_that_they_break() {
    let Some(cluster) = cluster::own("definitions", Options::default()).await else {
        return;
    };
    cluster.kubectl(&["apply", "-k", "deploy/crds"]).await;
    cluster.kubectl(&["apply", "-k", "deploy"]).await;
    cluster.kubectl(&["create", "-k", "deploy/defaults"]).await;
    for object in documents("good_manifests.yaml") {
        if let Err(message) = cluster.try_create(&object).await {
            panic!("{message}\n{object:#}");
        }
    }
    let bad = documents("bad_manifests.yaml");
    assert!(bad.len() > 40, "{}", bad.len());
    for object in bad {
        let annotations = &object["metadata"]["annotations"];
        let expected = annotations["expect"].as_str().unwrap();
        let refusal = match annotations["before"].as_str() {
            None => cluster.try_create(&object).await,
            Some(before) => {
                let mut first = object.clone();
                first["spec"] = serde_saphyr::from_str(before).unwrap();
                let mut second = cluster.create(&first).await;
                second["spec"] = object["spec"].clone();
                cluster.replace(&second).await
            }
        };
        let refusal = refusal.expect_err(expected);
        assert!(refusal.contains(expected), "{expected}: {refusal}");
    }
    let again = cluster.kubectl(&["apply", "-k", "deploy"]).await;
    let changed: Vec<_> = again
        .lines()
        // kubectl sends the selector of a disruption budget each time.
        .filter(|l| !l.ends_with("unchanged") && !l.starts_with("poddisruptionbudget"))
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
}

impl Cluster {
    async fn replace(&self, object: &Value) -> Result<Value, String> {
        let path = format!(
            "{}/{}?fieldValidation=Strict",
            self.collection(object),
            object["metadata"]["name"].as_str().unwrap()
        );
        let body = serde_json::to_vec(object).unwrap();
        self.send(http_put(&path, body)).await
    }

    /// A kubeconfig for the service account of `deploy/`.
    async fn kubeconfig_of_the_account(&self) -> tempfile::TempPath {
        let token = self
            .kubectl(&["create", "token", "gpu-batch", "-n", "gpu-batch"])
            .await;
        let text = std::fs::read_to_string(&self.kubeconfig).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        config["users"][0]["user"] = json!({"token": token.trim()});
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, config.to_string()).unwrap();
        file.into_temp_path()
    }
}

fn http_put(path: &str, body: Vec<u8>) -> ::http::Request<Vec<u8>> {
    ::http::Request::put(path).body(body).unwrap()
}

/// `gpu-batch run` as a process, killed when the test ends.
struct Program {
    child: Child,
    address: SocketAddr,
    _files: [tempfile::TempPath; 2],
    log: tempfile::TempPath,
}

impl Program {
    async fn start(cluster: &Cluster) -> Self {
        let kubeconfig = cluster.kubeconfig_of_the_account().await;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = address.local_addr().unwrap();
        let config = tempfile::NamedTempFile::new().unwrap();
        let text = format!(
            "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\nserveAddress: {address}\n\
             extender: {{serveAddress: '127.0.0.1:0'}}\n"
        );
        std::fs::write(&config, text).unwrap();
        let config = config.into_temp_path();
        let log = tempfile::NamedTempFile::new().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
            .args(["run", "--kubeconfig"])
            .arg(&*kubeconfig)
            .arg("--config")
            .arg(&*config)
            .stdin(Stdio::null())
            .stderr(log.reopen().unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            child,
            address,
            _files: [kubeconfig, config],
            log: log.into_temp_path(),
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Asks it to stop, and waits until it has, without an error.
    async fn stop(&mut self) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        let asked = Instant::now();
        kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(6), self.child.wait()).await;
        let status = ended.expect("it ends within 6 s").unwrap();
        eprintln!("ended {:?} after SIGTERM", asked.elapsed());
        assert_eq!(status.code(), Some(0), "{}", self.log());
    }
}
