//! `plot`: a paper's figure from result files.

use std::path::PathBuf;

use crate::case::Case;
use crate::cli::compare;
use crate::config::Experiment;
use crate::config::library::{Entry, Library};
use crate::config::parse::pieces;
use crate::error::{Error, Result};
use crate::plot::quantity::quantity;
use crate::plot::{self, Form, from_records};
use crate::result::Record;

/// Arguments of `plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Which figure it is shows in the cases of the files. `reproduce PAPER -o \
                        FOLDER/` draws it, too; this draws it again, without running anything.")]
pub struct PlotArgs {
    /// Result files, .csv, .jsonl or .json
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Figure to write, .svg or .png; one that exists is replaced (repeatable)
    #[arg(short, long, required = true, value_name = "FILE")]
    output: Vec<PathBuf>,

    /// Figure of this experiment, such as `luo/figure9`, where the cases do not tell
    #[arg(long, value_name = "PAPER/FIGURE")]
    experiment: Option<String>,

    /// Quantities to show in place of the figure's own, such as `product-percent-of-copy`
    #[arg(long, value_name = "NAMES")]
    show: Option<String>,

    /// Folder of papers to use in place of those in the program
    #[arg(long, value_name = "DIR")]
    configs: Option<PathBuf>,
}

/// Draws the figure.
pub fn run(args: &PlotArgs) -> Result<()> {
    for path in &args.output {
        Form::of(path).map_err(|e| e.in_file("--output"))?;
    }
    let mut records = Vec::new();
    for path in &args.files {
        records.extend(compare::records(path)?);
    }
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
