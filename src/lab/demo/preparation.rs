//! What comes before the first gang: programs, a control plane, nodes and queues.

use super::cluster::{CONTROL_PLANE, Cluster};
use super::setting::{self, GPUS, NODES, TEAMS};
use super::{ClusterOfTheUser, Options, Place};
use crate::lab::local::nodes::H100;
use crate::lab::local::{Binaries, LocalError, Program};
use anyhow::bail;
use console::{Term, style, truncate_str};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Finds the programs of the local control plane, or builds them: each step gets a line with a
/// clock that shows that the build goes on. It blocks, possibly for minutes.
///
/// # Errors
/// As [`Binaries::find_or_build`].
pub(super) fn find_binaries(keep: bool) -> Result<Binaries, LocalError> {
    let mut programs = CONTROL_PLANE.programs();
    if keep {
        programs.push(Program::Kubectl);
    }
    let (sender, lines) = mpsc::channel::<String>();
    let clock = std::thread::spawn(move || show_progress(&lines));
    let binaries = Binaries::find_or_build(&programs, |line| {
        // The thread that shows the lines lives longer than the build.
        let _ = sender.send(line.to_owned());
    });
    drop(sender);
    let _ = clock.join();
    binaries
}

/// Shows lines until no more can come.
fn show_progress(lines: &mpsc::Receiver<String>) {
    let terminal = Term::stdout();
    let start = Instant::now();
    let mut current = None::<String>;
    loop {
        let received = lines.recv_timeout(Duration::from_secs(1));
        if received == Err(RecvTimeoutError::Disconnected) {
            break;
        }
        let since = start.elapsed().as_secs();
        let clock = style(format!("{:>2}:{:02}", since / 60, since % 60)).dim();
        let is_new = received.is_ok();
        current = received.ok().or(current);
        let Some(line) = &current else { continue };
        if !is_new && !terminal.is_term() {
            continue;
        }
        if !is_new {
            let _ = terminal.clear_last_lines(1);
        }
        // A longer line would be wrapped, and clearing the last line would leave the first part of
        // it.
        let columns = usize::from(terminal.size().1);
        let line = format!("{clock}  {line}");
        let shown = if terminal.is_term() {
            truncate_str(&line, columns, "…")
        } else {
            line.as_str().into()
        };
        let _ = terminal.write_line(&shown);
    }
    if current.is_some() {
        let since = start.elapsed().as_secs();
        say!(
            "built in {}:{:02}; the next start takes seconds",
            since / 60,
            since % 60
        );
    }
}

/// The cluster with everything in it that gangs need.
pub(super) async fn prepare(
    options: &Options,
    binaries: Option<&Binaries>,
) -> anyhow::Result<Cluster> {
    let start = Instant::now();
    let mut cluster = match (&options.place, binaries) {
        (Place::Users(user), _) => connect(user).await?,
        (_, Some(binaries)) => start_local(binaries).await?,
        (_, None) => bail!("neither a cluster nor the programs of one"),
    };
    say!(
        "Creating {NODES} fake nodes with {GPUS} GPUs and {} team queues",
        TEAMS.len()
    );
    let objects = setting::objects(cluster.is_shared())?;
    if let Err(error) = cluster.prepare(objects).await {
        // An error of cleaning up would hide this one.
        let _ = cluster.clean_up().await;
        return Err(error);
    }
    say!("Ready after {:.1} s", start.elapsed().as_secs_f64());
    say!();
    Ok(cluster)
}

async fn start_local(binaries: &Binaries) -> anyhow::Result<Cluster> {
    say!("Starting etcd, kube-apiserver, kube-controller-manager and kwok");
    Cluster::local(binaries).await
}

/// A local cluster without gangs and teams.
pub(super) async fn prepare_empty(nodes: u32, binaries: &Binaries) -> anyhow::Result<Cluster> {
    let mut cluster = start_local(binaries).await?;
    let gpus = nodes * H100.gpus;
    say!("Creating {nodes} fake nodes with {gpus} GPUs and the queue default");
    cluster.prepare(setting::empty(nodes)?).await?;
    Ok(cluster)
}

async fn connect(user: &ClusterOfTheUser) -> anyhow::Result<Cluster> {
    let cluster = Cluster::of_the_user(&user.kubeconfig, user.context.as_deref()).await?;
    let real = cluster.real_nodes().await?;
    let namespaces: Vec<&str> = TEAMS.iter().map(|team| team.namespace).collect();
    say!(
        "Cluster {}, with {real} real nodes",
        cluster.config.cluster_url
    );
    say!("The demo creates there, and deletes at its end:");
    say!("  {NODES} fake nodes, tainted so that no other work comes to them");
    say!("  the custom resource definitions of gpu-batch, if they are missing");
    say!("  the Topology default and four Queues");
    say!(
        "  Jobs and PodGroups in the namespaces {}",
        namespaces.join(", ")
    );
    if !user.confirmed {
        bail!("nothing was done: add --yes to do it, on a cluster for tests only");
    }
    Ok(cluster)
}
