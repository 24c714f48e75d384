//! Matrices on the command line.

use crate::error::Result;

/// Arguments of `matrix`.
#[derive(Debug, clap::Args)]
pub struct MatrixArgs {}

/// Runs it.
pub fn run(args: &MatrixArgs) -> Result<()> {
    let _ = args;
    Ok(())
}
