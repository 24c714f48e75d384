//! The subcommands, one file each.

mod advise;
mod alternate;
mod claims;
mod compare;
pub mod complete;
mod completions;
mod docs;
mod doctor;
mod flags;
#[cfg(feature = "cuda")]
mod kernels;
mod list;
mod man;
pub mod matrix;
mod obstacle;
pub mod output;
mod plot;
mod ranks;
mod report;
mod reproduce;
mod run;
mod session;
mod threads;
mod tune;
mod versus;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::base::error::Result;
use crate::compute::cpu::simd;
use crate::record::environment::REVISION;

/// Benchmark for preconditioned sparse solvers.
#[derive(Debug, Parser)]
#[command(
    name = "bilu-bench",
    version = REVISION,
    about,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 a run failed or did not converge, 2 wrong input, \
                  130 stopped by Ctrl-C."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a sweep given by flags, a TOML file or both
    Run(run::RunArgs),
    /// Run the tables of a paper and compare them with the published values
    Reproduce(reproduce::ReproduceArgs),
    /// Judge the claims of papers by the committed results
    Claims(claims::ClaimsArgs),
    /// Search for the settings that solve a system fastest on this machine
    Advise(advise::AdviseArgs),
    /// Solve evolution obstacle problems by projected Richardson: CPU, GPUs, MPI
    Obstacle(obstacle::ObstacleArgs),
    /// List, inspect, fetch, generate and convert matrices
    Matrix(matrix::MatrixArgs),
    /// List solvers, preconditioners, backends, formats, generators and experiments
    List(list::ListArgs),
    /// Compare two result files, or two alternating commands, with a verdict that accounts for noise
    Compare(compare::CompareArgs),
    /// Compare our GPU kernels with cuSPARSE, from result files, system by system
    Versus(versus::VersusArgs),
    /// Draw figures of result files
    Plot(plot::PlotArgs),
    /// Write one page of figures and tables from result files
    Report(report::ReportArgs),
    /// Compile the CUDA kernels and show their registers, shared memory and spills
    #[cfg(feature = "cuda")]
    Kernels(kernels::KernelsArgs),
    /// Tune compile and launch parameters of GPU kernels, for later runs on this device
    Tune(tune::TuneArgs),
    /// Show the capabilities of this machine: processor, memory, bandwidth, GPU, folders; test the GPU
    Doctor(doctor::DoctorArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write the pages of all commands to a folder
    Man(man::ManArgs),
    /// Print the reference of CSV columns or TOML keys as Markdown
    Docs(docs::DocsArgs),
}

/// Runs the subcommand.
///
/// # Errors
/// Those of the subcommand, and an invalid environment variable that no subcommand checks itself.
pub fn dispatch(cli: &Cli) -> Result<ExitCode> {
    simd::check_environment()?;
    threads::start()?;
    let done = |()| ExitCode::SUCCESS;
    match &cli.command {
        Command::Run(args) => ranks::lead(|| run::run(args)),
        Command::Reproduce(args) => ranks::lead(|| reproduce::run(args)),
        Command::Claims(args) => claims::run(args),
        Command::Advise(args) => ranks::alone("advise", || advise::run(args)),
        Command::Obstacle(args) => obstacle::run(args),
        Command::Matrix(args) => matrix::run(args).map(done),
        Command::List(args) => list::run(args).map(done),
        Command::Compare(args) => compare::run(args),
        Command::Versus(args) => versus::run(args),
        Command::Plot(args) => plot::run(args).map(done),
        Command::Report(args) => report::run(args).map(done),
        #[cfg(feature = "cuda")]
        Command::Kernels(args) => kernels::run(args),
        Command::Tune(args) => ranks::alone("tune", || tune::run(args)),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => completions::run(args).map(done),
        Command::Man(args) => man::run(args).map(done),
        Command::Docs(args) => docs::run(args).map(done),
    }
}
