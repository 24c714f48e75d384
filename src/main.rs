//! Command line of `bilu-bench`: parse, dispatch, exit code.

use std::process::ExitCode;

use bilu_bench::base::memory;
use bilu_bench::cli::{self, Cli};
use bilu_bench::compute::distributed::launch;
use clap::Parser;

fn main() -> ExitCode {
    // ranks of a host share its memory
    if launch::ranks() == 1 {
        memory::keep_freed();
    }
    cli::complete::answer();
    match cli::dispatch(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            cli::output::error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
