//! `claims`: what papers claim, and the verdict of the committed results.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::base::error::{Error, Result};
use crate::cli::{complete, output};
use crate::config::claims;
use crate::config::library::Library;
use crate::report::ReportFormat;
use crate::report::claims::{Files, judge, report};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A claim names the rows of committed result files that it rests on and a condition on a \
                  quantity made of them; docs/report.md describes the file. Exit code 2 if a file states \
                  another verdict than the records."
)]
pub(super) struct ClaimsArgs {
    /// Folder below `configs/`; all without it
    #[arg(value_name = "PAPER", add = complete::one_of(complete::with_claims))]
    paper: Option<String>,

    /// Folder that holds `results`, such as a clone of the repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,

    /// Folder of papers to use instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    configs: Option<PathBuf>,

    /// Format of the table
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    format: ReportFormat,
}

pub(super) fn run(args: &ClaimsArgs) -> Result<ExitCode> {
    if !args.root.join("results").is_dir() {
        let root = args.root.display();
        return Err(Error::input(format!("no folder `results` in `{root}`")).hint(
            "claims are judged by committed results: run it in a clone, or give `--root DIR`",
        ));
    }
    let library = args.configs.clone().map_or(Library::Embedded, Library::Folder);
    let all = claims::of(&library, args.paper.as_deref())?;
    let files = Files::below(&args.root, &library);
    output::tables(&report(&all, &files)?, args.format)?;
    for claim in all.iter().flat_map(|claims| &claims.claims) {
        judge(claim, &files)?.check()?;
    }
    Ok(ExitCode::SUCCESS)
}
