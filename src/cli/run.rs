use super::Failure;

/// Run the scheduler.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> Result<(), Failure> {
    Err(anyhow::anyhow!("being built").into())
}
