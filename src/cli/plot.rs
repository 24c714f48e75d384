//! `plot`: figures of result files, those of a paper or of a general kind.

use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::input::say;
use crate::base::parse::pieces;
use crate::case::Case;
use crate::cli::{complete, output};
use crate::config::Experiment;
use crate::config::library::{Entry, Library};
use crate::config::quantity::quantity;
use crate::record::{Record, gather};
use crate::report::batch::Batches;
use crate::report::plot;
use crate::report::plot::kinds::{KINDS, Kind};
use crate::report::plot::{Form, from_records, kinds};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --kind, draws the figure of a paper, which the cases of the files \
                        determine. `reproduce PAPER -o FOLDER/` draws it as well; this command draws \
                        it again without running anything. With --kind, draws figures of `report`; \
                        several figures are numbered before the extension. A .csv file holds the \
                        data of the figure."
)]
pub(super) struct PlotArgs {
    /// Result files, .csv, .jsonl or .json; with --kind also folders of them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Figure to write, .svg, .png or .csv (repeatable)
    #[arg(short, long, required = true, value_name = "FILE")]
    output: Vec<PathBuf>,

    /// Overwrite existing figures
    #[arg(long)]
    force: bool,

    /// Draw the figures of this kind
    #[arg(long, value_name = "KIND", conflicts_with_all = ["experiment", "show"], help = kind_help(), add = complete::one_of(kinds))]
    kind: Option<String>,

    /// Draw the figure of this experiment, such as `luo/figure9`, where the cases do not determine it
    #[arg(long, value_name = "PAPER/FIGURE", add = complete::one_of(complete::papers))]
    experiment: Option<String>,

    /// Quantities to plot instead of the figure's own, such as `product-percent-of-copy`
    #[arg(long, value_name = "NAMES")]
    show: Option<String>,

    /// Folder of papers to use instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    configs: Option<PathBuf>,
}

fn kinds() -> Vec<String> {
    KINDS.iter().map(|kind| kind.name.to_owned()).collect()
}

pub(super) fn run(args: &PlotArgs) -> Result<()> {
    for path in &args.output {
        Form::of(path).map_err(|e| e.in_file("--output"))?;
        files::refuse_existing(path, args.force)?;
    }
    files::refuse_overlap(&args.output, &args.files)?;
    if let Some(name) = &args.kind {
        let kind = kinds::kind(name).map_err(|e| e.in_file("--kind"))?;
        return of_kind(args, kind);
    }
    let records = output::aggregated(&args.files)?;
    let library = args.configs.clone().map_or(Library::Embedded, Library::Folder);
    let experiment = match &args.experiment {
        Some(name) => named(&library, name).map_err(|e| e.in_file("--experiment"))?,
        None => of_records(&library, &records)?,
    };
    let Some(mut spec) = experiment.figure else { return Err(no_figure(&library)?) };
    if let Some(names) = &args.show {
        let found = pieces(names).and_then(|names| names.iter().map(|n| quantity(n)).collect());
        spec.y = found.map_err(|e: Error| e.in_file("--show"))?;
    }
    let figure = from_records::figure(&spec, experiment.title.as_deref(), &records, None);
    if figure.panels.is_empty() {
        return Err(Error::input("the files hold no case that succeeded"));
    }
    plot::write(&figure, &args.output)
}

fn kind_help() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    format!("Figures of this kind: {}", names.join(", "))
}

/// Draws all figures of a kind.
fn of_kind(args: &PlotArgs, kind: &Kind) -> Result<()> {
    let mut gathered = gather::gather(&args.files)?;
    gathered.set_apart();
    output::notes(&gathered.notes);
    let library = args.configs.clone().map_or(Library::Embedded, Library::Folder);
    let plots = kind.figures(&Batches::of(&gathered, &library)?);
    if plots.is_empty() {
        let error = Error::input(format!("the files have nothing for a figure `{}`", kind.name));
        return Err(error.hint(kind.summary));
    }
    let numbers = (1..=plots.len()).map(|i| (plots.len() > 1).then_some(i));
    let names = |number| args.output.iter().map(|path| numbered(path, number)).collect();
    let paths: Vec<Vec<PathBuf>> = numbers.map(names).collect();
    for path in paths.iter().flatten() {
        files::refuse_existing(path, args.force)?;
    }
    files::refuse_overlap(&paths.concat(), &gathered.paths)?;
    for (plot, paths) in plots.iter().zip(paths) {
        plot::write(&plot.figure, &paths)?;
        let first = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
        say(&format!("{first}: {}", plot.figure.title));
    }
    Ok(())
}

/// `a/b.svg` as `a/b-2.svg`.
fn numbered(path: &Path, number: Option<usize>) -> PathBuf {
    let Some(number) = number else { return path.to_owned() };
    let part = |text: Option<&std::ffi::OsStr>| text.unwrap_or_default().to_os_string();
    let mut name = part(path.file_stem());
    name.push(format!("-{number}."));
    name.push(part(path.extension()));
    path.with_file_name(name)
}

/// Experiments that declare a figure.
fn figures(library: &Library) -> Result<Vec<(Entry, Experiment)>> {
    let mut figures = Vec::new();
    for entry in library.entries()? {
        let experiment = library.open(&entry)?;
        if experiment.figure.is_some() {
            figures.push((entry, experiment));
        }
    }
    Ok(figures)
}

fn no_figure(library: &Library) -> Result<Error> {
    let names = listed(&figures(library)?);
    Ok(Error::input("the experiment has no figure").hint(format!("figures: {names}")))
}

/// `luo/figure10, luo/figure9`.
fn listed(figures: &[(Entry, Experiment)]) -> String {
    let names = figures.iter().map(|(entry, _)| format!("{}/{}", entry.paper, entry.table));
    names.collect::<Vec<_>>().join(", ")
}

fn named(library: &Library, name: &str) -> Result<Experiment> {
    let found = library.find(name)?;
    match found.as_slice() {
        [entry] => library.open(entry),
        _ => Err(Error::input(format!("`{name}` is a paper"))
            .hint(format!("name one of: {}", listed(&figures(library)?)))),
    }
}

/// The one experiment with a figure that has all cases of `records`.
fn of_records(library: &Library, records: &[Record]) -> Result<Experiment> {
    let mut figures = figures(library)?;
    let all = listed(&figures);
    let mut fitting = Vec::new();
    for (entry, experiment) in figures.drain(..) {
        let cases: Vec<Case> = experiment.cases()?.0;
        if records.iter().all(|r| cases.contains(&r.case)) {
            fitting.push((entry, experiment));
        }
    }
    if fitting.len() > 1 {
        let hint = format!("give --experiment with one of: {}", listed(&fitting));
        return Err(Error::input("the cases are those of several figures").hint(hint));
    }
    fitting.pop().map(|(_, experiment)| experiment).ok_or_else(|| {
        let hint = format!("give --experiment with one of: {all}");
        Error::input("the cases are not all of one figure").hint(hint)
    })
}
