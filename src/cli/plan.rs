use super::Failure;

/// Say what the scheduler would do with objects from files.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: Args) -> Result<(), Failure> {
    Err(anyhow::anyhow!("being built").into())
}
