mod generate;
mod jobs;
mod openb;

use super::Failure;
use clap::Subcommand;

/// Run a cluster in virtual time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples, a month without data of your own, and the fill-up experiment on the Alibaba trace openb:
  gpu-batch simulate generate --like philly --seed 1 --out month
  gpu-batch simulate jobs --trace month/trace.csv --queues month/queues.csv --policy fifo,drf \
    --out results
  gpu-batch simulate openb --nodes nodes.csv --pods pods.csv --order order.csv --out openb")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Jobs(jobs::Args),
    Generate(generate::Args),
    Openb(openb::Args),
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Jobs(args) => jobs::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Openb(args) => openb::run(args),
    }
}
