//! `man`: manual pages, generated from the descriptions of `--help`.

use std::path::PathBuf;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::base::error::{Error, Result};
use crate::cli::{Cli, output};

#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// Folder for the pages of the program and of every command; without it, prints the program's page
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints a page or writes all of them.
pub(super) fn run(args: &ManArgs) -> Result<()> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        let failed = |e: std::io::Error| Error::run(e.to_string());
        Man::new(Cli::command()).render(&mut page).map_err(failed)?;
        return output::print(&String::from_utf8_lossy(&page));
    };
    std::fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, &e))?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(|e| Error::io("write to", folder, &e))
}
