mod generate;
mod jobs;

use super::Failure;
use clap::Subcommand;

/// Run a cluster in virtual time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, a month without data of your own:
  gpu-batch simulate generate --like philly --seed 1 --out month
  gpu-batch simulate jobs --trace month/trace.csv --queues month/queues.csv --policy fifo,drf \
    --out results")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Jobs(jobs::Args),
    Generate(generate::Args),
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Jobs(args) => jobs::run(args),
        Command::Generate(args) => generate::run(args),
    }
}
