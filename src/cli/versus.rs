//! `versus`: compares our kernels with cuSPARSE, from result files.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::base::error::Result;
use crate::cli::output;
use crate::report::{ReportFormat, versus};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Compares, for each system, the fastest algorithm of `cuda` with the fastest of \
                        cuSPARSE: for one application of the preconditioner (cuSPARSE's solves \
                        with our factors count as cuSPARSE's), for the factorisation on the device, \
                        and for numeric phase and solve together. Where several of our algorithms \
                        were measured (`--trisolve all`), a table lists all of them with their \
                        percentage of the roofline. Geometric means follow."
)]
pub(super) struct VersusArgs {
    /// Result files of `run` with the backends cuda and cusparse
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    format: ReportFormat,
}

pub(super) fn run(args: &VersusArgs) -> Result<ExitCode> {
    let records = output::aggregated(&args.files)?;
    output::tables(&versus::report(&records)?, args.format)?;
    Ok(ExitCode::SUCCESS)
}
