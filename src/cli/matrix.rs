//! `bilu-bench matrix`: list, inspect, fetch, generate and convert matrices.

mod info;
mod list;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::base::error::{Error, Result};
use crate::base::files::{refuse_existing, refuse_overlap, same};
use crate::base::interrupt;
use crate::base::parse::whole;
use crate::base::threads::Threads;
use crate::case::{MAX_BLOCK_SIZE, MAX_FILL, MAX_SUBDOMAINS, Partition, ReadAs};
use crate::cli::complete;
use crate::matrix::cache::Cache;
use crate::matrix::file::{self, WRITTEN};
use crate::matrix::market::Symmetry;
use crate::matrix::{Csr, SYMMETRY_TOLERANCE};
use crate::problem::{Folders, Source, download, right_hand_side};

/// Arguments of `bilu-bench matrix`.
#[derive(Args, Clone, Debug)]
pub struct MatrixArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// List generators and known matrices
    List(ListArgs),
    /// Show the structure of a matrix: symmetry, blocks, grid, fill of its factors
    Info(InfoArgs),
    /// Fetch a matrix of the catalogue from the SuiteSparse collection
    Get(GetArgs),
    /// Write a generated matrix to a file
    Generate(GenerateArgs),
    /// Read a matrix and write it in another format, with its right-hand side: in a `.petsc` file, or beside others
    Convert(ConvertArgs),
}

#[derive(Args, Clone, Debug)]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Clone, Debug)]
struct InfoArgs {
    /// Generator with its size (`poisson3d:60`), name in the catalogue, or file
    #[arg(add = complete::matrix())]
    spec: String,
    /// How a symmetric file is read
    #[arg(long, value_enum, default_value_t)]
    read_as: ReadAs,
    /// Fill levels k of ILU(k) to compute: `0..3`, `2` or `none`
    #[arg(long, value_name = "LEVELS", default_value = "0..3", value_parser = parse_levels, allow_negative_numbers = true)]
    fill: Levels,
    /// Divide the block rows among subdomains: couplings that are cut, halos, balance
    #[arg(long, value_enum, value_name = "HOW", requires = "subdomains")]
    partition: Option<Partition>,
    /// Number of these
    #[arg(long, value_name = "N", requires = "partition", value_parser = |t: &str| whole(t, 1, MAX_SUBDOMAINS), allow_negative_numbers = true)]
    subdomains: Option<usize>,
    /// Unknowns per block of what is divided
    #[arg(long, value_name = "N", requires = "partition", default_value = "1", value_parser = |t: &str| whole(t, 1, MAX_BLOCK_SIZE), allow_negative_numbers = true)]
    block_size: usize,
    /// Run GMRES(20) with ILU(k), k = 0..2, as it is, scaled and shifted: pivots, condition of the factors, what helps
    #[arg(long)]
    ilu: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Clone, Debug)]
struct GetArgs {
    /// Name in the catalogue
    #[arg(add = complete::one_of(complete::known_matrices))]
    name: String,
    /// Server with the layout of the SuiteSparse collection
    #[arg(long, value_name = "URL", env = download::SUITESPARSE, default_value = download::BASE_URL)]
    base_url: String,
    /// Destination folder, instead of the program's data folder
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
struct GenerateArgs {
    /// Generator with its size, such as `poisson3d:60` or `fem-p1:parabolic_fem`
    #[arg(add = complete::matrix())]
    spec: String,
    /// File to write: `.mtx`, `.mtx.gz`, `.npz` (`SciPy`) or `.petsc` (`PETSc`)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Also write this right-hand side: beside `<stem>.mtx` as `<stem>_rhs.mtx`, beside `<stem>.npz` as `<stem>_rhs.npy`,
    /// behind the matrix in a `.petsc` file
    #[arg(long, value_name = "RHS")]
    rhs: Option<String>,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(tolerance) if (0.0..1.0).contains(&tolerance) => Ok(tolerance),
        _ => Err("at least 0 and below 1".into()),
    }
}

#[derive(Args, Clone, Debug)]
struct ConvertArgs {
    /// Matrix to read: a file, a name in the catalogue or a generator
    #[arg(add = complete::matrix())]
    input: String,
    /// File to write: `.mtx`, `.mtx.gz`, `.npz` (`SciPy`) or `.petsc` (`PETSc`)
    output: PathBuf,
    /// Read only the stored triangle of a symmetric matrix
    #[arg(long, conflicts_with = "symmetric")]
    as_stored: bool,
    /// Write only the lower triangle. The matrix must be symmetric up to rounding; if it is not exactly
    /// symmetric, it is averaged with its transpose
    #[arg(long)]
    symmetric: bool,
    /// Difference of entries (i, j) and (j, i) that `--symmetric` accepts as rounding, relative to the larger of both
    /// or to the largest entry of their rows
    #[arg(long, value_name = "X", default_value_t = SYMMETRY_TOLERANCE, value_parser = parse_tolerance, requires = "symmetric", allow_negative_numbers = true)]
    symmetry_tolerance: f64,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// Fill levels; empty for none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Levels(Option<RangeInclusive<usize>>);

fn parse_levels(text: &str) -> Result<Levels, String> {
    if text == "none" {
        return Ok(Levels(None));
    }
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim_start_matches('=').parse::<usize>();
    match (number(first), number(last)) {
        (Ok(first), Ok(last)) if last > MAX_FILL => {
            Err(format!("fill level {} is above {MAX_FILL}", first.max(last)))
        }
        (Ok(first), Ok(last)) if first <= last => Ok(Levels(Some(first..=last))),
        _ => Err("write `0..3`, `2` or `none`".into()),
    }
}

/// Runs the subcommand, printing to standard output.
///
/// # Errors
/// Those of the matrix or of a file that cannot be written. A reader that closes the pipe early is
/// no error.
pub fn run(args: &MatrixArgs) -> Result<()> {
    interrupt::install_for_reading()?;
    run_to(args, &mut anstream::stdout())
}

/// As [`run`], printing to `out`.
///
/// # Errors
/// As [`run`].
pub fn run_to(args: &MatrixArgs, out: &mut dyn Write) -> Result<()> {
    let text = match &args.command {
        Command::List(args) => list::text(args, &Folders::from_env()),
        Command::Info(args) => info::text(args)?,
        Command::Get(args) => get(args)?,
        Command::Generate(args) => generate(args)?,
        Command::Convert(args) => convert(args)?,
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::run(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

fn to_json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data");
    text.push('\n');
    text
}

fn get(args: &GetArgs) -> Result<String> {
    let folder = args.dir.clone().or(Folders::from_env().data).ok_or_else(|| {
        Error::input("there is no data folder for this user").hint("name a folder with --dir")
    })?;
    let bar = ProgressBar::no_length().with_style(
        ProgressStyle::with_template(
            "{msg} {bar:30} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec}",
        )
        .expect("a valid template"),
    );
    bar.set_message(args.name.clone());
    let path = download::get(&args.name, &args.base_url, &folder, &mut |received, announced| {
        if let Some(total) = announced {
            bar.set_length(total);
        }
        bar.set_position(received);
    });
    bar.finish_and_clear();
    Ok(format!("{}\n", path?.display()))
}

fn generate(args: &GenerateArgs) -> Result<String> {
    check_ending(&args.output)?;
    let rhs_file = args.rhs.as_ref().and_then(|_| rhs_beside(&args.output));
    for path in std::iter::once(&args.output).chain(&rhs_file) {
        refuse_existing(path, args.force)?;
    }
    let source = Source::find(&args.spec, &Folders::default())?;
    if matches!(source, Source::File(_)) {
        return Err(Error::input(format!("`{}` is a file, not a generator", args.spec))
            .hint("`bilu-bench matrix convert` reads files"));
    }
    refuse_overlap(&[&args.output], &source.files())?;
    let problem = source.load(ReadAs::Expanded, &Cache::off())?;
    let rhs = args.rhs.as_ref().map(|spec| right_hand_side(&problem, spec)).transpose()?;
    file::write_matrix(&args.output, &problem.matrix, Symmetry::General, rhs.as_deref())?;
    let mut text = format!("{}\n", args.output.display());
    if let (Some(b), Some(path)) = (rhs, rhs_file) {
        file::write_vector(&path, &b)?;
        _ = writeln!(text, "{}", path.display());
    }
    Ok(text)
}

/// `a_rhs.mtx` beside `a.mtx`, `a_rhs.mtx.gz` beside `a.mtx.gz`, `a_rhs.npy` beside `a.npz`.
fn rhs_beside(matrix: &std::path::Path) -> Option<PathBuf> {
    if file::takes_vectors(matrix) {
        return None;
    }
    let name = matrix.file_name().unwrap_or_default().to_string_lossy();
    let ending = WRITTEN.into_iter().rfind(|ending| name.ends_with(ending))?;
    let of_rhs = if ending == ".npz" { ".npy" } else { ending };
    let stem = name.strip_suffix(ending).unwrap_or(&name);
    Some(matrix.with_file_name(format!("{stem}_rhs{of_rhs}")))
}

fn check_ending(output: &std::path::Path) -> Result<()> {
    let name = output.to_string_lossy();
    if WRITTEN.iter().any(|ending| name.ends_with(ending)) {
        return Ok(());
    }
    Err(Error::input(format!("`{name}` is not the name of a file of a matrix that is written"))
        .hint("let it end in .mtx, .mtx.gz, .npz or .petsc"))
}

/// The average of `a` and its transpose, where they differ by rounding alone; `None` where they do not
/// differ.
fn symmetric(a: &Csr, tolerance: f64) -> Result<Option<Csr>> {
    if a.rows() != a.cols() {
        let (rows, cols) = (a.rows(), a.cols());
        return Err(Error::input(format!("a symmetric matrix is square, not {rows} x {cols}")));
    }
    let Some(found) = a.asymmetry() else { return Ok(None) };
    if found.relative > tolerance {
        return Err(Error::input(format!("{found}, and the tolerance is {tolerance:e}")).hint(
            "write it as a general matrix, or average it with a larger --symmetry-tolerance",
        ));
    }
    anstream::eprintln!("remark: {}", found.accepted("each entry is the mean of both"));
    a.averaged(Threads::Pool).map(Some)
}

fn convert(args: &ConvertArgs) -> Result<String> {
    check_ending(&args.output)?;
    if args.symmetric && !file::stores_triangles(&args.output) {
        let message = format!("--symmetric: `{}` would have all entries", args.output.display());
        return Err(Error::input(message).hint("files of Matrix Market store a triangle"));
    }
    refuse_existing(&args.output, args.force)?;
    let rhs_file = rhs_beside(&args.output);
    let read_as = if args.as_stored { ReadAs::AsStored } else { ReadAs::Expanded };
    let source = Source::find(&args.input, &Folders::from_env())?;
    refuse_overlap(&[&args.output], &source.files())?;
    let problem = source.load(read_as, &Cache::from_env())?;
    for remark in &problem.remarks {
        anstream::eprintln!("remark: {remark}");
    }
    let (symmetry, averaged) = if args.symmetric {
        (Symmetry::Symmetric, symmetric(&problem.matrix, args.symmetry_tolerance)?)
    } else {
        (Symmetry::General, None)
    };
    // the one beside the input may be the one beside the output
    let rhs = rhs_file
        .zip(problem.own_rhs.as_ref())
        .filter(|(path, _)| !source.files().iter().any(|input| same(input, path)));
    if let Some((path, _)) = &rhs {
        refuse_existing(path, args.force)?;
    }
    let matrix = averaged.as_ref().unwrap_or(&problem.matrix);
    file::write_matrix(&args.output, matrix, symmetry, problem.own_rhs.as_deref())?;
    let mut text = format!("{}\n", args.output.display());
    if let Some((path, b)) = rhs {
        file::write_vector(&path, b)?;
        _ = writeln!(text, "{}", path.display());
    }
    Ok(text)
}
