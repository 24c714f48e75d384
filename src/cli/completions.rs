//! `completions`: completion scripts for shells, which query this program.

use clap_complete::env::Shells;

use crate::base::error::{Error, Result};
use crate::cli::{complete, output};

#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// Shell of the script
    #[arg(value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

pub(super) fn run(args: &CompletionsArgs) -> Result<()> {
    const NAME: &str = "bilu-bench";
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell).expect("clap knows the shells");
    let mut script = Vec::new();
    shell
        .write_registration(complete::VARIABLE, NAME, NAME, NAME, &mut script)
        .map_err(|e| Error::run(e.to_string()))?;
    output::print(&String::from_utf8(script).map_err(|e| Error::run(e.to_string()))?)
}
