use super::Failure;
use crate::kube::api;
use std::io::Write;

/// Print the CRD manifests.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gpu-batch crds | kubectl apply --server-side -f -")]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for crd in api::crds() {
        write!(out, "---\n{}", api::manifest(&crd)?)?;
    }
    Ok(())
}
