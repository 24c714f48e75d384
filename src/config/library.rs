//! The papers' experiments: embedded in the program, or in a folder of the user.
//!
//! A paper is a folder, a table of it a TOML file in that folder.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::base::embedded::unpack_texts;
use crate::base::error::{Error, Result};
use crate::config::source::{self, Source};
use crate::config::{Experiment, file};

/// The paper whose experiments are of the command `obstacle`, and its folder below `configs/`.
pub(crate) const OBSTACLE: &str = "obstacle";

/// Name, without `.toml`, of the file that has the claims of a paper.
pub(crate) const CLAIMS: &str = "claims";

/// Path below `configs/` and text of every TOML and CSV file there.
static EMBEDDED: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| unpack_texts(include_bytes!(concat!(env!("OUT_DIR"), "/configs"))));

/// Source of experiments.
#[derive(Clone, Debug, Default)]
pub enum Library {
    /// Those that the program carries.
    #[default]
    Embedded,
    /// A folder laid out like `configs/`.
    Folder(PathBuf),
}

/// One table or figure of a paper.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Folder name.
    pub paper: String,
    /// File name without `.toml`.
    pub table: String,
}

impl Library {
    /// All tables, sorted.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = match self {
            Self::Embedded => EMBEDDED.iter().filter_map(|(path, _)| entry(path)).collect(),
            Self::Folder(folder) => folder_files(folder)?.iter().filter_map(|p| entry(p)).collect(),
        };
        entries.sort();
        Ok(entries)
    }

    /// The tables that `name` means: `paper` for all of it, `paper/table` for one.
    pub fn find(&self, name: &str) -> Result<Vec<Entry>> {
        let all = self.entries()?;
        let name = name.trim_end_matches('/');
        let (paper, table) = match name.split_once('/') {
            Some((paper, table)) => (paper, Some(table.trim_end_matches(".toml"))),
            None => (name, None),
        };
        if paper == OBSTACLE {
            let table = table.unwrap_or("NAME");
            return Err(Error::input(format!("`{name}` has a command of its own"))
                .hint(format!("run `bilu-bench obstacle {table}`; `--list` shows the names")));
        }
        let of_paper: Vec<Entry> = all.iter().filter(|e| e.paper == paper).cloned().collect();
        if of_paper.is_empty() {
            let mut papers: Vec<&str> = all.iter().map(|e| e.paper.as_str()).collect();
            papers.dedup();
            return Err(Error::unknown("paper", paper, &papers));
        }
        let Some(table) = table else { return Ok(of_paper) };
        let tables: Vec<&str> = of_paper.iter().map(|e| e.table.as_str()).collect();
        match of_paper.iter().find(|e| e.table == table) {
            Some(entry) => Ok(vec![entry.clone()]),
            None => Err(Error::unknown(&format!("table of {paper}"), table, &tables)),
        }
    }

    /// The folders of papers that have claims, sorted.
    pub(crate) fn with_claims(&self) -> Result<Vec<String>> {
        let folder = |path: &str| {
            path.strip_suffix(".toml")?.strip_suffix(CLAIMS)?.strip_suffix('/').map(str::to_owned)
        };
        let mut folders: Vec<String> = match self {
            Self::Embedded => EMBEDDED.iter().filter_map(|(path, _)| folder(path)).collect(),
            Self::Folder(of) => folder_files(of)?.iter().filter_map(|path| folder(path)).collect(),
        };
        folders.sort();
        Ok(folders)
    }

    /// The text of a file by its path below `configs/`, and its name for messages.
    pub(crate) fn text(&self, path: &str) -> Result<(String, String)> {
        match self {
            Self::Embedded => Ok((format!("configs/{path}"), embedded(path)?)),
            Self::Folder(folder) => {
                let path = folder.join(path);
                Ok((path.display().to_string(), source::text(&path)?))
            }
        }
    }

    /// Reads the experiment of a table.
    pub fn open(&self, entry: &Entry) -> Result<Experiment> {
        let path = format!("{}/{}.toml", entry.paper, entry.table);
        match self {
            Self::Folder(folder) => Experiment::open(&folder.join(path)),
            Self::Embedded => {
                let beside = |name: &str| embedded(&format!("{}/{name}", entry.paper));
                let text = embedded(&path)?;
                file::parse(&Source {
                    name: &format!("configs/{path}"),
                    text: &text,
                    folder: None,
                    beside: &beside,
                })
            }
        }
    }
}

/// The experiment `PAPER/TABLE` that the program carries.
#[cfg(test)]
pub(crate) fn experiment(name: &str) -> Experiment {
    let library = Library::Embedded;
    library.open(&library.find(name).unwrap()[0]).unwrap()
}

/// Paths, below the folder of a paper, of its files.
pub(crate) fn embedded_below(paper: &str) -> impl Iterator<Item = &'static str> {
    EMBEDDED
        .iter()
        .filter_map(move |(path, _)| path.strip_prefix(paper).and_then(|p| p.strip_prefix('/')))
}

/// The text of a file below `configs/`.
pub(crate) fn embedded(path: &str) -> Result<String> {
    let found = EMBEDDED.iter().find(|(name, _)| *name == path);
    found
        .map(|(_, text)| (*text).to_owned())
        .ok_or_else(|| Error::input(format!("no such file `configs/{path}`")))
}

fn entry(path: &str) -> Option<Entry> {
    let (paper, table) = path.strip_suffix(".toml")?.split_once('/')?;
    // those have settings of their own
    (!table.contains('/') && paper != OBSTACLE && table != CLAIMS)
        .then(|| Entry { paper: paper.into(), table: table.into() })
}

/// `PAPER/FILE` of every file in a folder of papers.
fn folder_files(folder: &Path) -> Result<Vec<String>> {
    let list = |path: &Path| std::fs::read_dir(path).map_err(|e| Error::io("read", path, &e));
    let mut files = Vec::new();
    for paper in list(folder)?.flatten().filter(|e| e.path().is_dir()) {
        for file in list(&paper.path())?.flatten() {
            files.push(format!("{}/{}", paper.file_name().display(), file.file_name().display()));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, RunKind, Trisolve};

    #[test]
    fn every_embedded_experiment_is_valid_and_every_case_of_a_paper_has_a_published_row() {
        let library = Library::Embedded;
        let mut papers = 0;
        for entry in library.entries().unwrap() {
            let experiment = library.open(&entry).unwrap();
            assert!(experiment.title.is_some(), "{entry:?}");
            let (cases, repeated) = experiment.cases().unwrap();
            assert_eq!(repeated, 0, "{entry:?}");
            let Some(published) = experiment.published else {
                let beside = experiment.history.is_some() || experiment.phases.is_some();
                assert_eq!(beside, entry.paper == "luo", "{entry:?}");
                // a comparison of our own, a paper whose figures have no printed values, and one whose
                // tables are not at hand
                let unpublished = ["almouhamed", "gupta", "orderings", "scaling", "trisolve"]
                    .contains(&entry.paper.as_str());
                assert!(beside || unpublished, "{entry:?} publishes nothing");
                continue;
            };
            papers += 1;
            assert!(cases.iter().all(|case| published.find(case).is_some()), "{entry:?}");
            for row in &published.rows {
                let found = cases.iter().filter(|c| published.find(c) == Some(row)).count();
                assert!(found > 0, "{entry:?} {row:?}");
            }
        }
        assert_eq!(papers, 3);
    }

    #[test]
    fn triangular_solves_are_compared_on_every_system_with_every_algorithm() {
        let algorithms = 1 + <Trisolve as clap::ValueEnum>::value_variants().len();
        for (table, systems) in [
            ("point-grids", 3 * 4),
            ("block-grids", 6 * 4),
            ("general", 4 * 4),
            ("reservoirs", 2 * 4),
            ("real", (13 * 2 + 8 * 3) * 4),
        ] {
            let entry = Entry { paper: "trisolve".into(), table: table.into() };
            let (cases, _) = Library::Embedded.open(&entry).unwrap().cases().unwrap();
            assert_eq!(cases.len(), systems * algorithms, "{table}");
            // all algorithms for one factor in sequence: they share its pattern
            for of_one in cases.chunks(algorithms) {
                let shared = |c: &Case| Case { trisolve: Trisolve::AUTO, ..c.on("cuda") };
                assert!(of_one.iter().all(|c| shared(c) == shared(&of_one[0])), "{table}");
                assert_eq!(of_one.iter().filter(|c| c.backend == "cusparse").count(), 1);
            }
        }
    }

    #[test]
    fn reservoirs_are_stored_in_blocks_of_their_cells() {
        let mut cases = Vec::new();
        for entry in Library::Embedded.find("almouhamed").unwrap() {
            let of_table = Library::Embedded.open(&entry).unwrap().cases().unwrap().0;
            cases.extend(of_table.into_iter().map(|case| (entry.table == "large", case)));
        }
        let count = |large: bool, of: &dyn Fn(&Case) -> bool| {
            cases.iter().filter(|(of_large, case)| *of_large == large && of(case)).count()
        };
        let (product, vendor) =
            (|case: &Case| case.kind == RunKind::Spmv, |case: &Case| case.backend == "cusparse");
        // 15 sizes on two backends; 15 systems and twice 5 in six formats on two, in three on cusparse
        assert_eq!(count(false, &|c| product(c) && !vendor(c)), 2 * (15 + 15 * 6 + 2 * 5 * 6));
        assert_eq!(count(false, &|c| product(c) && vendor(c)), 3 * (15 + 2 * 5));
        // 15 systems: 9 and 3 of them on a backend in five formats, all of them on one with two methods and 6 on
        // another; on a GPU in five formats and two executions with two formats of the library, with two methods in
        // four executions, and in four executions with two formats of the library; 9 systems with two preconditioners
        // in three executions
        let on_gpu = 5 * 2 + 2 + 2 * 4 + 4 + 2;
        let with_factors = 9 * 2 * 3;
        let on_cores = (9 + 3) * 5 + (15 + 6) * 2;
        assert_eq!(count(false, &|c| !product(c)), on_cores + 15 * on_gpu + with_factors);
        // on two backends: a system in five formats, two in six, three in three, two in one
        assert_eq!(count(true, &product), 2 * (5 + 2 * 6 + 3 * 3 + 2));
        for (_, case) in &cases {
            // what 4^3 cells have room for
            let wells = if case.matrix.starts_with("reservoir:4,") { 12 } else { 50 };
            let of = format!(",k={},wells={wells}", case.block_size);
            assert!(case.matrix.contains(&of), "{case:?}");
        }
    }

    #[test]
    fn the_folder_and_the_program_hold_the_same() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
        let (own, disk) = (Library::Embedded, Library::Folder(folder));
        assert_eq!(own.entries().unwrap(), disk.entries().unwrap());
        for entry in own.entries().unwrap() {
            let cases = |library: &Library| library.open(&entry).unwrap().cases().unwrap();
            assert_eq!(cases(&own), cases(&disk));
        }
    }

    #[test]
    fn unknown_papers_and_tables_are_named() {
        let error = |name| Library::Embedded.find(name).unwrap_err();
        assert_eq!(error("yagn").to_string(), "unknown paper `yagn`");
        assert_eq!(error("yang/table9").to_string(), "unknown table of yang `table9`");
        assert_eq!(Library::Embedded.find("yang/table1").unwrap()[0].table, "table1");
    }
}
