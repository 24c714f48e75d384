//! `completions`: scripts for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Cli, output};
use crate::error::{Error, Result};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// Shell to complete for
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "bilu-bench", &mut script);
    output::print(&String::from_utf8(script).map_err(|e| Error::run(e.to_string()))?)
}
