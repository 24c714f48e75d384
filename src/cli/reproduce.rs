//! `reproduce`: runs the tables of a paper and compares them with the published values.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::units::aligned;
use crate::bench::engine::SweepEnd;
use crate::cli::flags::{self, IsolationFlags, OutputFlags, Overrides, PeerFlags, SweepFlags};
use crate::cli::session::{Session, check};
use crate::cli::{complete, output};
use crate::config::Experiment;
use crate::config::library::{Entry, Library};
use crate::config::scale::Scale;
use crate::record::Record;
use crate::record::output::Existing;
use crate::record::table::COLUMNS;
use crate::report::{self, Report, plot};

#[derive(Debug, clap::Args)]
#[command(after_help = "Without a paper, lists the papers and their tables. Flags override the \
                        settings of the tables: `reproduce yang/table1 --level-rule overwrite,min` \
                        runs the textbook rule next to the published one.")]
pub(super) struct ReproduceArgs {
    /// `yang` for all tables of a paper, `yang/table1` for one
    #[arg(value_name = "PAPER[/TABLE]", add = complete::one_of(complete::papers))]
    name: Option<String>,

    /// Smaller grid: a factor below 1, or the longest grid edge (disables the verdict)
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    scale: Option<String>,

    /// Folder of papers to use instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    configs: Option<PathBuf>,

    #[command(flatten)]
    sweep: SweepFlags,

    #[command(flatten)]
    isolation: IsolationFlags,

    #[command(flatten)]
    peers: PeerFlags,

    #[command(flatten)]
    output: OutputFlags,
}

pub(super) fn run(args: &ReproduceArgs) -> Result<ExitCode> {
    let library = match &args.configs {
        Some(folder) => Library::Folder(folder.clone()),
        None => Library::Embedded,
    };
    let Some(name) = &args.name else {
        output::print(&listing(&library)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    args.peers.apply()?;
    let overrides = args.sweep.resolve()?;
    let scale = args.scale.as_deref().map(Scale::parse).transpose();
    let scale = scale.map_err(|e| e.in_file("--scale"))?;
    let columns = args.output.columns(&report::published::heads(), &COLUMNS)?;
    // every table is read and checked before the first one runs
    let tables: Vec<Table> = library
        .find(name)?
        .iter()
        .map(|entry| Table::prepare(&library, entry, scale, &overrides))
        .collect::<Result<_>>()?;
    let mut session = Session::start(&args.output, args.isolation, &overrides)?;
    let experiments: Vec<&Experiment> = tables.iter().map(|table| &table.experiment).collect();
    let folder = folder(&args.output.output)?;
    let names = match folder {
        Some(folder) => tables.iter().map(|table| table.files(folder)).collect(),
        None => vec![args.output.output.clone()],
    };
    let records = names.concat().iter().any(|path| path.exists());
    if let Some(folder) = folder.filter(|_| args.output.existing() == Existing::Refuse && !records)
    {
        for table in &tables {
            let others = table.others(folder);
            others.iter().try_for_each(|path| files::refuse_existing(path, false))?;
        }
    }
    let solutions = session.solutions(&experiments)?;
    let mut outputs = session.open(&experiments, &names)?;
    let (mut outcomes, mut report) = (Vec::new(), Report::default());
    for (i, table) in tables.iter().enumerate() {
        // the files of the table, or those of all
        let own = i.min(outputs.len() - 1);
        let outcome = session.run(&table.experiment, &mut outputs[own], solutions.get(i))?;
        if !outcome.records.is_empty() {
            let own = table.report(&outcome.records);
            if let Some(folder) = folder {
                table.write(folder, &own, &outcome.records)?;
            }
            report.append(own);
        }
        let complete = outcome.end == SweepEnd::Complete;
        outcomes.push(outcome);
        if !complete {
            break;
        }
    }
    if outcomes.iter().any(|o| !o.records.is_empty()) {
        output::report(&report, args.output.format, &columns, flags::ALL)?;
    }
    Session::end(&experiments, &outcomes, &outputs)
}

/// The folder that `--output` names instead of files, created if necessary.
fn folder(paths: &[PathBuf]) -> Result<Option<&Path>> {
    let is_folder = |path: &&PathBuf| path.is_dir() || path.to_string_lossy().ends_with('/');
    let Some(folder) = paths.iter().find(is_folder) else { return Ok(None) };
    if paths.len() > 1 {
        return Err(Error::input(format!("`{}` is a folder", folder.display()))
            .in_file("--output")
            .hint("give one folder, or files"));
    }
    std::fs::create_dir_all(folder).map_err(|e| Error::io("make", folder, &e))?;
    Ok(Some(folder))
}

/// A table that is ready to run.
struct Table {
    name: String,
    experiment: Experiment,
    /// Why its iterations have no verdict: another matrix is run.
    not_comparable: Option<String>,
}

impl Table {
    fn prepare(
        library: &Library,
        entry: &Entry,
        scale: Option<Scale>,
        flags: &Overrides,
    ) -> Result<Self> {
        let name = format!("{}/{}", entry.paper, entry.table);
        let original = library.open(entry)?;
        let mut experiment =
            original.overridden_by(&flags.sweep, &flags.measure).restricted_to(&flags.only);
        let mut not_comparable = None;
        if let Some(scale) = scale {
            for sweep in &mut experiment.sweeps {
                let matrices = sweep
                    .matrix
                    .as_mut()
                    .ok_or_else(|| Error::input(format!("{name} names no matrix to scale")))?;
                for matrix in matrices {
                    let smaller = scale.apply(matrix)?;
                    if smaller != *matrix {
                        not_comparable =
                            Some(format!("the grid is {smaller}, the paper's is {matrix}"));
                        *matrix = smaller;
                    }
                }
            }
        }
        check(&experiment)?;
        Ok(Self { name, experiment, not_comparable })
    }

    /// A file of it in `folder`.
    fn file(&self, folder: &Path, extension: &str) -> PathBuf {
        let name = self.name.rsplit('/').next().unwrap_or(&self.name);
        folder.join(format!("{name}.{extension}"))
    }

    /// Its result files in `folder`.
    fn files(&self, folder: &Path) -> Vec<PathBuf> {
        vec![self.file(folder, "csv")]
    }

    /// What is made from its records in `folder`: the table, and the figure if it is one.
    fn others(&self, folder: &Path) -> Vec<PathBuf> {
        let figure = ["svg", "png"].into_iter().filter(|_| self.experiment.figure.is_some());
        std::iter::once("md").chain(figure).map(|extension| self.file(folder, extension)).collect()
    }

    /// Writes what is made from its records to `folder`: the table, and the figure if it is one.
    fn write(&self, folder: &Path, report: &Report, records: &[Record]) -> Result<()> {
        let table = self.file(folder, "md");
        files::write(&table, report.markdown().as_bytes())?;
        let Some(spec) = &self.experiment.figure else { return Ok(()) };
        let remark = self.not_comparable.as_ref().map(|why| format!("not the paper's size: {why}"));
        let title = self.experiment.title.as_deref();
        let figure = plot::from_records::figure(spec, title, records, remark.as_deref());
        plot::write(&figure, &["svg", "png"].map(|extension| self.file(folder, extension)))
    }

    fn report(&self, records: &[Record]) -> Report {
        report::of_experiment(&self.name, &self.experiment, records, self.not_comparable.as_deref())
    }
}

/// Papers, their tables and titles.
fn listing(library: &Library) -> Result<String> {
    let pairs = library.entries()?.into_iter().map(|entry| {
        let title = library.open(&entry)?.title.unwrap_or_default();
        Ok((format!("{}/{}", entry.paper, entry.table), title))
    });
    Ok(aligned(0, &pairs.collect::<Result<Vec<_>>>()?))
}
