use super::Failure;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print what a shell needs to complete the command line.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch completions bash > ~/.local/share/bash-completion/completions/gpu-batch
  gpu-batch completions zsh > ~/.zfunc/_gpu-batch
  gpu-batch completions fish > ~/.config/fish/completions/gpu-batch.fish")]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut super::Cli::command(),
        "gpu-batch",
        &mut script,
    );
    super::output::print(&String::from_utf8_lossy(&script))
}
