//! `run`: a sweep given by flags, a TOML file or both.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::base::error::{Error, Result};
use crate::cli::flags::{self, IsolationFlags, OutputFlags, PeerFlags, SweepFlags};
use crate::cli::session::{Session, check};
use crate::cli::{complete, output};
use crate::config::library::Library;
use crate::config::sweep::axis;
use crate::config::{Experiment, Sweep};
use crate::matrix::file::{ENDINGS, looks_like};
use crate::record::table::COLUMNS;
use crate::report;

#[derive(Debug, clap::Args)]
#[command(after_help = "The cases are the cross product of all values, in the order of the flags \
                        above: the matrix is the outermost loop, the backend the innermost.")]
pub(super) struct RunArgs {
    /// Matrices, as for `--matrix`, or an experiment (`FILE.toml`), whose settings flags override
    #[arg(value_name = "MATRIX|FILE.toml", add = complete::matrix_or_experiment())]
    inputs: Vec<OsString>,

    #[command(flatten)]
    sweep: SweepFlags,

    #[command(flatten)]
    isolation: IsolationFlags,

    #[command(flatten)]
    peers: PeerFlags,

    #[command(flatten)]
    output: OutputFlags,
}

pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    args.peers.apply()?;
    let mut overrides = args.sweep.resolve()?;
    let inputs = Inputs::of(&args.inputs)?;
    inputs.add_matrices(&mut overrides.sweep)?;
    let experiment = match &inputs.experiment {
        Some(path) => Experiment::open(path)?,
        None => Experiment::of(Sweep::default()),
    };
    let experiment = experiment
        .overridden_by(&overrides.sweep, &overrides.measure)
        .restricted_to(&overrides.only);
    let columns = args.output.columns(&report::runs::heads(), &COLUMNS)?;
    check(&experiment)?;
    let mut session = Session::start(&args.output, args.isolation, &overrides)?;
    let solutions = session.solutions(&[&experiment])?;
    let mut outputs = session.open(&[&experiment], std::slice::from_ref(&args.output.output))?;
    let outcome = session.run(&experiment, &mut outputs[0], solutions.first())?;
    if outcome.records.is_empty() {
        // stopped before the first record: nothing to show
        return Session::end(&[&experiment], &[outcome], &outputs);
    }
    let report = report::of_experiment("run", &experiment, &outcome.records, None);
    output::report(&report, args.output.format, &columns, flags::ALL)?;
    Session::end(&[&experiment], &[outcome], &outputs)
}

/// What is run, as the arguments name it.
#[derive(Debug, Default, PartialEq)]
struct Inputs {
    experiment: Option<PathBuf>,
    matrices: Vec<String>,
}

impl Inputs {
    fn of(arguments: &[OsString]) -> Result<Self> {
        let mut inputs = Self::default();
        for argument in arguments {
            if !is_experiment(Path::new(argument))? {
                let text = argument.to_str().ok_or_else(|| {
                    Error::input(format!("the matrix `{}` has no UTF-8 name", argument.display()))
                })?;
                inputs.matrices.push(text.to_owned());
            } else if let Some(first) = inputs.experiment.replace(argument.into()) {
                let (first, second) = (first.display(), argument.display());
                return Err(Error::input(format!("two experiments, `{first}` and `{second}`"))
                    .hint("run one after the other, or put their sweeps in one file"));
            }
        }
        Ok(inputs)
    }

    fn add_matrices(&self, sweep: &mut Sweep) -> Result<()> {
        if self.matrices.is_empty() {
            return Ok(());
        }
        if sweep.matrix.is_some() {
            let first = &self.matrices[0];
            return Err(Error::input(format!("`{first}` beside --matrix")).hint(
                "name all matrices in one way: `run a.mtx b.mtx` or `--matrix a.mtx,b.mtx`",
            ));
        }
        axis("matrix")?.set(sweep, &self.matrices).map(drop)
    }
}

/// Whether an argument is an experiment; otherwise it names a matrix.
///
/// # Errors
/// When it is neither.
fn is_experiment(path: &Path) -> Result<bool> {
    let name = path.display();
    let lower = path.to_string_lossy().to_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| lower.ends_with(ending));
    // a stream cannot be inspected: it is taken as an experiment
    if ends(&[".toml"]) || path.starts_with("/dev") {
        return Ok(true);
    }
    if lower == "-" || ends(&ENDINGS) {
        return Ok(false);
    }
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() && !looks_like(path) => Err(Error::input(format!(
            "`{name}` is neither a matrix nor an experiment"
        ))
        .hint(
            "a matrix is a file of Matrix Market (.mtx, .mtx.gz), NumPy (.npz, .npy) or PETSc, an experiment's name ends in \
             .toml; `--matrix` names any file",
        )),
        Ok(found) if found.is_dir() => Err(Error::input(format!("`{name}` is a folder"))
            .hint("name a matrix (`a.mtx`, `poisson3d:40`) or an experiment (`a.toml`)")),
        Ok(found) => Ok(!found.is_file()),
        Err(_) => match better(path) {
            Some(hint) => Err(Error::input(format!("no matrix is called `{name}`")).hint(hint)),
            None => Ok(false),
        },
    }
}

/// A suggestion for a name that is neither a file nor a matrix.
fn better(path: &Path) -> Option<String> {
    let name = path.to_str()?;
    for ending in std::iter::once(".toml").chain(ENDINGS) {
        let longer = format!("{name}{ending}");
        if Path::new(&longer).is_file() {
            return Some(format!("did you mean `{longer}`?"));
        }
    }
    let of_a_paper = Library::Embedded.find(name).is_ok();
    of_a_paper.then(|| format!("a paper is run by `bilu-bench reproduce {name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Result<Inputs> {
        Inputs::of(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn matrices_and_an_experiment_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (plain, other) = (at("plain"), at("other"));
        std::fs::write(&plain, "%%MatrixMarket matrix coordinate real general\n").unwrap();
        std::fs::write(&other, "title = 'x'\n").unwrap();
        let found = of(&["poisson3d:10,poisson3d:20", "sub/a.mtx.gz", "X.TOML", &plain]).unwrap();
        assert_eq!(found.experiment, Some("X.TOML".into()));
        assert_eq!(found.matrices, ["poisson3d:10,poisson3d:20", "sub/a.mtx.gz", &plain]);
        let refused = |arguments: &[&str]| {
            let error = of(arguments).unwrap_err();
            (error.to_string(), error.hint_text().unwrap_or_default().to_owned())
        };
        let (message, hint) = refused(&[&other]);
        assert_eq!(message, format!("`{other}` is neither a matrix nor an experiment"));
        assert_eq!(
            hint,
            "a matrix is a file of Matrix Market (.mtx, .mtx.gz), NumPy (.npz, .npy) or PETSc, an experiment's name ends in \
             .toml; `--matrix` names any file"
        );
        assert_eq!(refused(&["a.toml", "b.toml"]).0, "two experiments, `a.toml` and `b.toml`");
        std::fs::write(at("sweep.toml"), "").unwrap();
        let (message, hint) = refused(&[&at("sweep")]);
        assert_eq!(message, format!("no matrix is called `{}`", at("sweep")));
        assert_eq!(hint, format!("did you mean `{}.toml`?", at("sweep")));
        let (_, hint) = refused(&["yang/table1"]);
        assert_eq!(hint, "a paper is run by `bilu-bench reproduce yang/table1`");
        assert_eq!(refused(&["src"]).0, "`src` is a folder");
    }

    #[test]
    fn a_matrix_is_named_in_one_way() {
        let mut sweep = Sweep::default();
        of(&["p:1,q:2", "a.mtx"]).unwrap().add_matrices(&mut sweep).unwrap();
        let named = ["p:1", "q:2", "a.mtx"].map(str::to_owned);
        assert_eq!(sweep.matrix.as_deref(), Some(&named[..]));
        let error = of(&["b.mtx"]).unwrap().add_matrices(&mut sweep).unwrap_err();
        assert_eq!(error.to_string(), "`b.mtx` beside --matrix");
    }
}
