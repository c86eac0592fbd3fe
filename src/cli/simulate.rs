mod openb;

use super::Failure;
use clap::Subcommand;

/// Run a cluster in virtual time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, the fill-up experiment on the Alibaba trace openb:
  gpu-batch simulate openb --nodes nodes.csv --pods pods.csv --order order.csv --out openb")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Openb(openb::Args),
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Openb(args) => openb::run(args),
    }
}
