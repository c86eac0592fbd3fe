use super::Failure;
use crate::live::config::{self, Configuration};
use std::io::Write;
use std::path::PathBuf;

/// Print the configuration with every default, or check a file.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  gpu-batch config --print-defaults > scheduler.yaml\n  \
    gpu-batch config --check scheduler.yaml"
)]
#[group(required = true, multiple = false)]
pub(super) struct Args {
    /// Print the configuration file with every default and what each key means
    #[arg(long)]
    print_defaults: bool,
    /// Check a configuration file: everything that is wrong is named with its key
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    if let Some(file) = &args.check {
        Configuration::load(Some(file)).map_err(|error| Failure::BadInput(error.into()))?;
        println!("{}: ok", file.display());
        return Ok(());
    }
    let text = config::print_defaults()?;
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}
