//! Stands before the API server and cuts connections at random times.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A connection lives so long at least, in milliseconds, and at most.
const LIFE_MS: std::ops::Range<u64> = 50..1_000;

/// The proxy; it ends when this is dropped.
pub(super) struct Proxy {
    kubeconfig: PathBuf,
    storm: Arc<Storm>,
    _folder: TempDir,
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Storm {
    over: AtomicBool,
    cuts: AtomicUsize,
}

impl Proxy {
    /// A proxy before the API server of a kubeconfig; the same seed gives the same lives.
    pub(super) async fn start(kubeconfig: &Path, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let text = fs::read_to_string(kubeconfig).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        let server = &mut config["clusters"][0]["cluster"]["server"];
        let target = server.as_str().unwrap().strip_prefix("https://").unwrap();
        let target: SocketAddr = target.parse().unwrap();
        *server = json!(format!("https://{}", listener.local_addr().unwrap()));
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        fs::write(&kubeconfig, config.to_string()).unwrap();
        let storm: Arc<Storm> = Arc::default();
        let mut task = JoinSet::new();
        task.spawn(carry(listener, target, seed, Arc::clone(&storm)));
        Self {
            kubeconfig,
            storm,
            _folder: folder,
            _task: task,
        }
    }

    /// The kubeconfig that leads through the proxy.
    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Cuts no connection any more; returns how many it has cut.
    pub(super) fn calm(&self) -> usize {
        self.storm.over.store(true, Ordering::Relaxed);
        self.storm.cuts.load(Ordering::Relaxed)
    }
}

async fn carry(listener: TcpListener, target: SocketAddr, seed: u64, storm: Arc<Storm>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut connections = JoinSet::new();
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let life = Duration::from_millis(random.u64(LIFE_MS));
        let storm = Arc::clone(&storm);
        connections.spawn(async move {
            // Without a server the client sees its connection closed.
            let Ok(mut server) = TcpStream::connect(target).await else {
                return;
            };
            let mut copy = std::pin::pin!(tokio::io::copy_bidirectional(&mut client, &mut server));
            let ended = tokio::time::timeout(life, &mut copy).await.is_ok();
            if !ended && storm.over.load(Ordering::Relaxed) {
                let _ = copy.await;
            } else if !ended {
                storm.cuts.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}
