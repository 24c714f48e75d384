//! Experiments with the obstacle problem: TOML files under `configs/obstacle`, or of the user.

pub mod axes;

use std::path::Path;

use super::obstacle::axes::{AXES, Sweep};
use crate::base::error::{Error, Result};
use crate::config::library::{self, OBSTACLE};
use crate::config::source::{self, Source};
use crate::obstacle::case::{Case, Mode};

/// A published row: m, mode, nodes, seconds, relaxations.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// Points in each direction.
    pub m: usize,
    /// With or without waiting.
    pub mode: Mode,
    /// Nodes.
    pub nodes: usize,
    /// Seconds.
    pub seconds: Option<f64>,
    /// Sweeps of all nodes.
    pub relaxations: Option<u64>,
}

/// Published values of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// Where they come from.
    pub citation: String,
    /// On what they were measured.
    pub device: String,
    /// The rows.
    pub rows: Vec<PublishedRow>,
}

/// What is run.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// Title of its table.
    pub title: Option<String>,
    /// Remarks of its author.
    pub notes: Vec<String>,
    /// The sweeps, run one after the other.
    pub sweeps: Vec<Sweep>,
    /// What a paper has for it.
    pub published: Option<Published>,
}

/// The names of the experiments in the program, sorted.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = library::embedded_below(OBSTACLE)
        .filter_map(|path| path.strip_suffix(".toml").map(str::to_owned))
        .filter(|name| !name.contains('/') && name != library::CLAIMS)
        .collect();
    names.sort();
    names
}

impl Experiment {
    /// The experiment of the program called `name`, or that of a TOML file.
    ///
    /// # Errors
    /// When there is none, or it is not valid.
    pub fn open(name: &str) -> Result<Self> {
        if name.contains('/') || Path::new(name).extension().is_some_and(|e| e == "toml") {
            let path = Path::new(name);
            let folder = path.parent().unwrap_or(Path::new(""));
            let beside = |name: &str| source::text(&folder.join(name));
            return parse(&Source {
                name,
                text: &source::text(path)?,
                folder: None,
                beside: &beside,
            });
        }
        let known = names();
        if !known.iter().any(|k| k == name) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            return Err(Error::unknown("experiment", name, &known));
        }
        let text = library::embedded(&format!("{OBSTACLE}/{name}.toml"))?;
        let beside = |name: &str| library::embedded(&format!("{OBSTACLE}/{name}"));
        let path = format!("configs/{OBSTACLE}/{name}.toml");
        parse(&Source { name: &path, text: &text, folder: None, beside: &beside })
    }

    /// Settings given on the command line replace those of every sweep.
    #[must_use]
    pub(crate) fn overridden_by(mut self, flags: &Sweep) -> Self {
        for sweep in &mut self.sweeps {
            *sweep = sweep.overridden_by(flags);
        }
        self
    }

    /// All cases in order, each once.
    ///
    /// # Errors
    /// As [`Sweep::cases`].
    pub fn cases(&self) -> Result<Vec<Case>> {
        let mut cases: Vec<Case> = Vec::new();
        for sweep in &self.sweeps {
            for case in sweep.cases()? {
                if !cases.contains(&case) {
                    cases.push(case);
                }
            }
        }
        Ok(cases)
    }
}

const KEYS: [&str; 5] = ["title", "notes", "settings", "sweep", "published"];
const PUBLISHED_KEYS: [&str; 3] = ["csv", "citation", "device"];

fn parse(source: &Source<'_>) -> Result<Experiment> {
    let mut document = source.document()?;
    let mut experiment = Experiment::default();
    for table in source.sweeps(&mut document)? {
        // what is given twice is one setting
        experiment.sweeps.push(source.sweep(table, AXES, &mut Vec::new())?);
    }
    for (key, value) in document {
        if source.heading(&key, &value, &mut experiment.title, &mut experiment.notes)? {
            continue;
        }
        match &**key.get_ref() {
            "published" => {
                let mut published = Published::default();
                for (key, value) in source.table(value, "a table")? {
                    match &**key.get_ref() {
                        "csv" => {
                            let (name, text) = source.beside(&value)?;
                            published.rows = rows(&name, &text)?;
                        }
                        "citation" => published.citation = source.string(&value)?,
                        "device" => published.device = source.string(&value)?,
                        _ => return Err(source.unknown(&key, "key", &PUBLISHED_KEYS)),
                    }
                }
                experiment.published = Some(published);
            }
            _ => return Err(source.unknown(&key, "key", &KEYS)),
        }
    }
    if experiment.sweeps.is_empty() {
        return Err(Error::input("no [[sweep]] table").in_file(source.name).hint(format!(
            "settings: {}",
            AXES.iter().map(|a| a.name).collect::<Vec<_>>().join(", ")
        )));
    }
    experiment.cases().map_err(|e| e.in_file(source.name))?;
    Ok(experiment)
}

/// The rows of `m,mode,nodes,seconds,relaxations`.
fn rows(name: &str, text: &str) -> Result<Vec<PublishedRow>> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for row in reader.records() {
        let bad = |what: &str, line| Error::input(what).at(name, line, None);
        let row = row.map_err(|e| {
            let line = e.position().map_or(1, |p| p.line() as usize);
            bad("not five values", line)
        })?;
        let line = row.position().map_or(1, |p| p.line() as usize);
        let cell = |i: usize| row.get(i).unwrap_or_default();
        let whole =
            |i: usize| cell(i).parse::<usize>().map_err(|_| bad("not a whole number", line));
        let mode: Mode =
            crate::base::parse::choice("mode", cell(1)).map_err(|e| e.at(name, line, None))?;
        let some = |i: usize| Some(cell(i)).filter(|c| !c.is_empty());
        rows.push(PublishedRow {
            m: whole(0)?,
            mode,
            nodes: whole(2)?,
            seconds: some(3)
                .map(|c| c.parse().map_err(|_| bad("seconds are not a number", line)))
                .transpose()?,
            relaxations: some(4)
                .map(|c| c.parse().map_err(|_| bad("relaxations are not a whole number", line)))
                .transpose()?,
        });
    }
    Ok(rows)
}
