//! `report`: one page of all results.

use std::path::PathBuf;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::cli::output;
use crate::config::library::Library;
use crate::record::gather;
use crate::report::page::{Options, Page};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The page is a single file with figures and tables, without scripts or network \
                        access. All kinds of result files are read: solves, products, obstacle \
                        problems, tuning, comparisons. Damaged rows are skipped and listed. \
                        `plot --kind` draws each of its figures to a separate file."
)]
pub(super) struct ReportArgs {
    /// Result files, .csv, .jsonl or .json, and folders of them
    #[arg(required = true, value_name = "RESULTS")]
    results: Vec<PathBuf>,

    /// Page to write, .html
    #[arg(short, long, required = true, value_name = "FILE")]
    output: PathBuf,

    /// Title of the page
    #[arg(long, default_value = "bilu-bench results")]
    title: String,

    /// Largest number of rows of a table
    #[arg(long, default_value_t = 1000, value_name = "N")]
    rows: usize,

    /// Folder for the tables of the page as CSV files, created if necessary; tables.csv lists them
    #[arg(long, value_name = "FOLDER")]
    tables: Option<PathBuf>,

    /// Overwrite an existing page and existing tables
    #[arg(long)]
    force: bool,

    /// Folder of papers to use instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    configs: Option<PathBuf>,
}

pub(super) fn run(args: &ReportArgs) -> Result<()> {
    let extension = args.output.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if !["html", "htm"].contains(&extension) {
        return Err(Error::input(format!("`{}` is no name of a page", args.output.display()))
            .in_file("--output")
            .hint("pages end in .html"));
    }
    files::refuse_existing(&args.output, args.force)?;
    files::check_folder(&args.output)?;
    let mut gathered = gather::gather(&args.results)?;
    files::refuse_overlap(&[&args.output], &gathered.paths)?;
    gathered.set_apart();
    output::notes(&gathered.notes);
    let library = args.configs.clone().map_or(Library::Embedded, Library::Folder);
    let options = Options { title: &args.title, rows: args.rows, library: &library };
    let page = Page::of(&gathered, &options)?;
    if let Some(folder) = &args.tables {
        std::fs::create_dir_all(folder).map_err(|e| Error::io("make", folder, &e))?;
        let tables = page.tables()?;
        let paths: Vec<PathBuf> = tables.iter().map(|(name, _)| folder.join(name)).collect();
        paths.iter().try_for_each(|path| files::refuse_existing(path, args.force))?;
        files::refuse_overlap(&paths, &gathered.paths)?;
        for (path, (_, text)) in paths.iter().zip(&tables) {
            files::write(path, text.as_bytes())?;
        }
    }
    files::write(&args.output, page.html().as_bytes())
}
