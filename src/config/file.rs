//! Reads an experiment from TOML. Every error names file, line and column.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::base::error::{Error, Place, Result};
use crate::base::input;
use crate::base::input::Compression;
use crate::base::parse::pieces;
use crate::config::axes;
use crate::config::figure::figure;
use crate::config::keys;
use crate::config::measure::{MeasureOptions, SETTINGS};
use crate::config::phases::Show;
use crate::config::published::{Device, PublishedSpec};
use crate::config::sweep::{AXES, Axis, Sweep, axis};
use crate::config::{Experiment, History, Phases, Published};
use crate::problem;

type Entry<'i> = (Spanned<DeString<'i>>, Spanned<DeValue<'i>>);

/// Where the text of an experiment and of the files it names comes from.
pub struct Source<'a> {
    /// Name of the file for messages.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
    /// From where paths of matrices and right-hand sides count; none for those that the program carries.
    pub folder: Option<&'a Path>,
    /// Reads a file named relative to it.
    pub beside: &'a dyn Fn(&str) -> Result<String>,
}

impl<'a> Source<'a> {
    /// The whole text as a table.
    ///
    /// # Errors
    /// When it is not TOML: the first message, with its place.
    pub fn document(&self) -> Result<DeTable<'a>> {
        let document = DeTable::parse(self.text).map_err(|e| {
            let message = e.message().lines().next().unwrap_or("not valid TOML").to_owned();
            self.error(e.span().unwrap_or(0..0), Error::input(message))
        })?;
        Ok(document.into_inner())
    }
}

/// Bytes of an experiment, or of a file that it names, at most.
const LARGEST: u64 = 16 << 20;

/// The text of a file, of a pipe or of standard input (`-`).
///
/// # Errors
/// When it cannot be read, is a folder or a device, has more than 16 MiB, or at the first line that is not
/// UTF-8.
pub fn text(path: &Path) -> Result<String> {
    let bytes = input::whole(path, "an experiment", LARGEST)?;
    if let Some(other) = Compression::of(&bytes) {
        return Err(other.refused(&path.display().to_string()));
    }
    String::from_utf8(bytes).map_err(|e| {
        let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = memchr::memchr_iter(b'\n', valid).count() + 1;
        Error::input("not valid UTF-8")
            .at(path.display().to_string(), line, None)
            .hint("save the file as UTF-8")
    })
}

/// Parses and checks an experiment.
pub fn parse(source: &Source<'_>) -> Result<Experiment> {
    let document = source.document()?;
    let mut experiment = Experiment::default();
    for (key, value) in document {
        if source.heading(&key, &value, &mut experiment.title, &mut experiment.notes)? {
            continue;
        }
        match &**key.get_ref() {
            "inferred" => experiment.inferred = source.strings(&value)?,
            "measure" => experiment.measure = measure(source, value)?,
            "sweep" => sweeps(source, value, &mut experiment)?,
            "published" => experiment.published = Some(published(source, value)?),
            "history" => experiment.history = Some(history(source, value)?),
            "phases" => experiment.phases = Some(phases(source, value)?),
            "figure" => experiment.figure = Some(figure(source, value)?),
            _ => return Err(source.unknown(&key, "key", &keys::FILE.names())),
        }
    }
    if experiment.sweeps.is_empty() {
        return Err(Error::input("no [[sweep]] table").in_file(source.name).hint(
            "an experiment has at least one, such as `[[sweep]]` and `matrix = \"poisson3d:60\"`",
        ));
    }
    Ok(experiment)
}

impl Source<'_> {
    pub(crate) fn error(&self, span: Range<usize>, error: Error) -> Error {
        let (line, column) = self.place(span);
        error.at(self.name, line, Some(column))
    }

    /// Line and column of the beginning.
    fn place(&self, span: Range<usize>) -> (usize, usize) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
    }

    pub(crate) fn unknown(&self, key: &Spanned<DeString<'_>>, what: &str, known: &[&str]) -> Error {
        self.error(key.span(), Error::unknown(what, key.get_ref(), known))
    }

    /// Takes what the head of every experiment has, its title and notes; whether `key` is of these.
    pub(crate) fn heading(
        &self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        title: &mut Option<String>,
        notes: &mut Vec<String>,
    ) -> Result<bool> {
        match &**key.get_ref() {
            "title" => *title = Some(self.string(value)?),
            "notes" => *notes = self.strings(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The values that a `[[sweep]]` table has for some of `axes`; what was given more than once is
    /// added to `remarks`.
    pub(crate) fn sweep<C, S: Default>(
        &self,
        table: Spanned<DeValue<'_>>,
        axes: &'static [axes::Axis<C, S>],
        remarks: &mut Vec<String>,
    ) -> Result<S> {
        let mut sweep = S::default();
        for (key, value) in self.table(table, "a table")? {
            let Some(axis) = axes.iter().find(|a| a.name == &**key.get_ref()) else {
                let known: Vec<&str> = axes.iter().map(|a| a.name).collect();
                return Err(self.unknown(&key, "setting", &known));
            };
            let mut words = self.words(&value)?;
            for (word, _) in &mut words {
                *word = self.located(axis.name, word);
            }
            for (word, span) in &words {
                // alone first, so that the error points at the one bad item of a list
                axis.set(&mut S::default(), std::slice::from_ref(word))
                    .map_err(|e| self.error(span.clone(), e))?;
            }
            let words: Vec<String> = words.into_iter().map(|(word, _)| word).collect();
            let repeated = axis.set(&mut sweep, &words);
            let repeated = repeated.map_err(|e| self.error(value.span(), e))?;
            remarks.extend(repeated_remark(&format!("{}: {}", self.name, axis.name), &repeated));
        }
        Ok(sweep)
    }

    /// The values of a setting as they are written in `word`, paths among them from where the program runs.
    fn located(&self, setting: &str, word: &str) -> String {
        let folder = self.folder.filter(|folder| !folder.as_os_str().is_empty());
        // a wrong list has its error when the setting is read
        let (Some(folder), Ok(values)) = (folder, pieces(word)) else { return word.to_owned() };
        let located = |value: String| match setting {
            "matrix" => problem::located(&value, folder),
            "rhs" => problem::located_rhs(&value, folder),
            _ => value,
        };
        values.into_iter().map(located).collect::<Vec<_>>().join(",")
    }

    fn wrong_type(&self, value: &Spanned<DeValue<'_>>, expected: &str) -> Error {
        let found = value.get_ref().type_str();
        self.error(value.span(), Error::input(format!("expected {expected}, found {found}")))
    }

    pub(crate) fn string(&self, value: &Spanned<DeValue<'_>>) -> Result<String> {
        let text = value.get_ref().as_str();
        text.map(str::to_owned).ok_or_else(|| self.wrong_type(value, "a string"))
    }

    /// A string or an array of them.
    pub(crate) fn strings(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>> {
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| self.string(item)).collect(),
            _ => self.string(value).map(|text| vec![text]),
        }
    }

    pub(crate) fn table<'i>(
        &self,
        value: Spanned<DeValue<'i>>,
        what: &str,
    ) -> Result<Vec<Entry<'i>>> {
        if !value.get_ref().is_table() {
            return Err(self.wrong_type(&value, what));
        }
        match value.into_inner() {
            DeValue::Table(table) => Ok(table.into_iter().collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// One `[name]` or several `[[name]]`.
    pub(crate) fn tables<'i>(
        &self,
        value: Spanned<DeValue<'i>>,
    ) -> Result<Vec<Spanned<DeValue<'i>>>> {
        if !value.get_ref().is_array() {
            return if value.get_ref().is_table() {
                Ok(vec![value])
            } else {
                Err(self.wrong_type(&value, "a table"))
            };
        }
        Ok(match value.into_inner() {
            DeValue::Array(items) => items.into_iter().collect(),
            _ => Vec::new(),
        })
    }

    /// A scalar as the word that a flag would take.
    fn word(&self, value: &Spanned<DeValue<'_>>) -> Result<String> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            _ => Err(self.wrong_type(value, "a string or a number")),
        }
    }

    /// A scalar or an array of scalars, as words with their places.
    pub(crate) fn words(
        &self,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<(String, Range<usize>)>> {
        let one = |v: &Spanned<DeValue<'_>>| Ok((self.word(v)?, v.span()));
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(one).collect(),
            _ => Ok(vec![one(value)?]),
        }
    }
}

fn measure(source: &Source<'_>, value: Spanned<DeValue<'_>>) -> Result<MeasureOptions> {
    let mut options = MeasureOptions::default();
    let span = value.span();
    for (key, value) in source.table(value, "a table")? {
        let Some(setting) = SETTINGS.iter().find(|s| s.name == &**key.get_ref()) else {
            let known: Vec<&str> = SETTINGS.iter().map(|s| s.name).collect();
            return Err(source.unknown(&key, "measuring option", &known));
        };
        let word = source.word(&value)?;
        setting.set(&mut options, &word).map_err(|e| source.error(value.span(), e))?;
    }
    options.resolve().map_err(|e| source.error(span, e))?;
    Ok(options)
}

/// One `[sweep]` or several `[[sweep]]`.
fn sweeps(
    source: &Source<'_>,
    value: Spanned<DeValue<'_>>,
    experiment: &mut Experiment,
) -> Result<()> {
    for item in source.tables(value)? {
        experiment.matrix_places.extend(matrices(source, &item)?);
        let sweep = sweep(source, item, &mut experiment.remarks)?;
        experiment.sweeps.push(sweep);
    }
    Ok(())
}

/// The matrices that a table names, with their places.
fn matrices(source: &Source<'_>, value: &Spanned<DeValue<'_>>) -> Result<Vec<(String, Place)>> {
    let Some(value) = value.get_ref().get("matrix") else { return Ok(Vec::new()) };
    let mut places = Vec::new();
    for (word, span) in source.words(value)? {
        let (line, column) = source.place(span);
        let place = Place { file: source.name.to_owned(), line: Some(line), column: Some(column) };
        // a wrong list has its error when the sweep is read
        let names = pieces(&source.located("matrix", &word)).unwrap_or_default();
        places.extend(names.into_iter().map(|name| (name, place.clone())));
    }
    Ok(places)
}

fn sweep(
    source: &Source<'_>,
    value: Spanned<DeValue<'_>>,
    remarks: &mut Vec<String>,
) -> Result<Sweep> {
    let span = value.span();
    let sweep: Sweep = source.sweep(value, AXES, remarks)?;
    sweep.cases().map_err(|e| source.error(span, e))?;
    Ok(sweep)
}

/// The word about values that were given more than once.
pub fn repeated_remark(place: &str, repeated: &[String]) -> Option<String> {
    (!repeated.is_empty())
        .then(|| format!("{place}: {} given more than once, kept once", repeated.join(", ")))
}

fn published(source: &Source<'_>, value: Spanned<DeValue<'_>>) -> Result<Published> {
    let span = value.span();
    let mut spec = PublishedSpec::default();
    let mut csv_span = span.clone();
    for (key, value) in source.table(value, "a table")? {
        match &**key.get_ref() {
            "csv" => {
                csv_span = value.span();
                spec.csv = source.string(&value)?;
            }
            "citation" => spec.citation = source.string(&value)?,
            "keys" => spec.keys = key_columns(source, value)?,
            "iterations" => spec.iterations = source.string(&value)?,
            "tolerance-percent" => {
                let word = source.word(&value)?;
                spec.tolerance_percent =
                    crate::base::parse::number(&word, "0 to 100", |v| (0.0..=100.0).contains(&v))
                        .map_err(|e| source.error(value.span(), e))?;
            }
            "slow" => spec.slow = Some(device(source, value, true)?),
            "fast" => spec.fast = Some(device(source, value, true)?),
            _ => return Err(source.unknown(&key, "key", &keys::PUBLISHED.names())),
        }
    }
    for (name, missing) in [
        ("csv", spec.csv.is_empty()),
        ("keys", spec.keys.is_empty()),
        ("iterations", spec.iterations.is_empty()),
    ] {
        if missing {
            return Err(source.error(span, Error::input(format!("[published] lacks `{name}`"))));
        }
    }
    let text = (source.beside)(&spec.csv).map_err(|e| source.error(csv_span, e))?;
    Published::read(&spec, &text)
}

/// The text of the file that `value` names, with its name.
pub(super) fn beside(
    source: &Source<'_>,
    value: &Spanned<DeValue<'_>>,
) -> Result<(String, String)> {
    let name = source.string(value)?;
    let text = (source.beside)(&name).map_err(|e| source.error(value.span(), e))?;
    Ok((name, text))
}

fn history(source: &Source<'_>, value: Spanned<DeValue<'_>>) -> Result<History> {
    let span = value.span();
    let (mut history, mut csv) = (History::default(), None);
    for (key, value) in source.table(value, "a table")? {
        let whole = |most| {
            let number = crate::base::parse::whole(&source.word(&value)?, 1, most);
            number.map_err(|e| source.error(value.span(), e))
        };
        match &**key.get_ref() {
            "csv" => csv = Some(beside(source, &value)?),
            "citation" => history.citation = source.string(&value)?,
            "corrections" => history.corrections = whole(10_000)?,
            "digits" => history.digits = whole(16)?,
            _ => return Err(source.unknown(&key, "key", &keys::HISTORY.names())),
        }
    }
    match csv {
        Some((name, text)) => history.read(&name, &text),
        None => Err(source.error(span, Error::input("[history] lacks `csv`"))),
    }
}

fn phases(source: &Source<'_>, value: Spanned<DeValue<'_>>) -> Result<Phases> {
    let (mut phases, mut csv) = (Phases::default(), None);
    for (key, value) in source.table(value, "a table")? {
        match &**key.get_ref() {
            "show" => {
                let word = source.string(&value)?;
                let names = Show::NAMES.map(|(name, _)| name);
                let found = Show::NAMES.iter().find(|(name, _)| *name == word);
                let unknown = || Error::unknown("table of phases", &word, &names);
                phases.show = found.ok_or_else(|| source.error(value.span(), unknown()))?.1;
            }
            "csv" => csv = Some(beside(source, &value)?),
            "citation" => phases.citation = source.string(&value)?,
            "slow" => {
                let device = device(source, value, false)?;
                phases.slow = Some((device.device, device.backend));
            }
            "fast" => phases.fast = Some(source.string(&value)?),
            _ => return Err(source.unknown(&key, "key", &keys::PHASES.names())),
        }
    }
    match csv {
        Some((name, text)) => phases.read(&name, &text),
        None => Ok(phases),
    }
}

/// `{ block-size = "block_size", fill = "k" }`: setting to column.
fn key_columns(
    source: &Source<'_>,
    value: Spanned<DeValue<'_>>,
) -> Result<Vec<(&'static Axis, String)>> {
    let entries = source.table(value, "a table of settings and columns")?;
    entries
        .into_iter()
        .map(|(key, value)| {
            let axis = axis(key.get_ref()).map_err(|e| source.error(key.span(), e))?;
            Ok((axis, source.string(&value)?))
        })
        .collect()
}

/// A device of the paper and its backend; with a column of its seconds where it is `timed`.
fn device(source: &Source<'_>, value: Spanned<DeValue<'_>>, timed: bool) -> Result<Device> {
    let span = value.span();
    let mut device = Device::default();
    for (key, value) in source.table(value, "a table")? {
        match &**key.get_ref() {
            "seconds" if timed => device.seconds = source.string(&value)?,
            "device" => device.device = source.string(&value)?,
            "backend" => {
                let word = source.string(&value)?;
                let backend = axis("backend").and_then(|axis| axis.canonical(&word));
                device.backend = backend.map_err(|e| source.error(value.span(), e))?;
            }
            _ => {
                let known = keys::DEVICE.names();
                return Err(source.unknown(&key, "key", &known[..2 + usize::from(timed)]));
            }
        }
    }
    let lacks_seconds = timed && device.seconds.is_empty();
    if lacks_seconds || device.backend.is_empty() || device.device.is_empty() {
        let column = if timed { "`seconds` (a column), " } else { "" };
        let message = format!("needs {column}`device` (its name) and `backend`");
        return Err(source.error(span, Error::input(message)));
    }
    Ok(device)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
