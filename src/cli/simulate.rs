mod generate;

use super::Failure;
use clap::Subcommand;

/// Run a cluster in virtual time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, a month without data of your own:
  gpu-batch simulate generate --like philly --seed 1 --out month")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Generate(generate::Args),
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Generate(args) => generate::run(args),
    }
}
