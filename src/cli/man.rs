use super::Failure;
use super::output::Results;
use clap::CommandFactory;
use std::path::PathBuf;

/// Write the manual: a page for the program and one for each of its commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch man --out ~/.local/share/man/man1
  man gpu-batch-plan")]
pub(super) struct Args {
    /// The folder for the pages; it is made if it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let mut program = super::Cli::command();
    // After this each command knows its whole name, and `help` is a command.
    program.build();
    let results = Results::make(&args.out)?;
    write(&program, &results)
}

/// Writes the page of a command and the pages of all commands below it, except of hidden ones.
fn write(command: &clap::Command, results: &Results) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    // With a long version, the second line of the page would show it.
    let page = clap_mangen::Man::new(command.clone().long_version(None));
    results.write(&format!("{name}.1"), |file| page.render(file))?;
    let shown = command.get_subcommands();
    let mut shown = shown.filter(|command| !command.is_hide_set() && command.get_name() != "help");
    shown.try_for_each(|command| write(command, results))
}
