use super::Failure;
use crate::extender::setup::kube_scheduler_configuration;
use crate::live::config::{self, Configuration};
use std::io::Write;
use std::path::PathBuf;

/// Print the configuration with every default, or check a file.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  gpu-batch config --print-defaults > scheduler.yaml\n  \
    gpu-batch config --check scheduler.yaml\n  \
    gpu-batch config --kube-scheduler --config scheduler.yaml > kube-scheduler.yaml"
)]
pub(super) struct Args {
    #[command(flatten)]
    what: What,
    /// With --kube-scheduler: the configuration file of gpu-batch
    #[arg(
        long,
        value_name = "FILE",
        requires = "kube_scheduler",
        conflicts_with_all = ["print_defaults", "check"]
    )]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Print the configuration file with every default and what each key means
    #[arg(long)]
    print_defaults: bool,
    /// Check a configuration file: everything that is wrong is named with its key
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Print the configuration of a kube-scheduler that has gpu-batch as its extender
    #[arg(long)]
    kube_scheduler: bool,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let load = |file| Configuration::load(file).map_err(|error| Failure::BadInput(error.into()));
    if let Some(file) = &args.what.check {
        load(Some(file))?;
        println!("{}: ok", file.display());
        return Ok(());
    }
    let text = if args.what.kube_scheduler {
        let configuration = load(args.config.as_deref())?;
        kube_scheduler_configuration(configuration.extender.as_ref())
    } else {
        config::print_defaults()?
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}
