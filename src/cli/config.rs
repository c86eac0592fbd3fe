use super::Failure;
use crate::config;
use std::io::Write;

/// Print the configuration with every default.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gpu-batch config --print-defaults > scheduler.yaml")]
pub(super) struct Args {
    /// Print the configuration file with every default and what each key means
    #[arg(long, required = true)]
    print_defaults: bool,
}

pub(super) fn run(_args: Args) -> Result<(), Failure> {
    let text = config::print_defaults()?;
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}
