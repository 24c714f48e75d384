//! Reads an experiment from TOML. Every error names file, line and column.

use std::cell::RefCell;
use std::path::Path;

use itertools::Itertools as _;
use toml::Spanned;
use toml::de::DeValue;

use crate::base::error::{Error, Place, Result};
use crate::base::parse::{number, pieces, whole};
use crate::config::figure::figure;
use crate::config::measure::{MeasureOptions, SETTINGS};
use crate::config::phases::Show;
use crate::config::published::Device;
use crate::config::source::{Entry, Source, text};
use crate::config::sweep::{AXES, Axis, Sweep, axis};
use crate::config::{Experiment, History, Phases, Published, keys};

/// Parses and checks an experiment.
pub fn parse(source: &Source<'_>) -> Result<Experiment> {
    let mut document = source.document()?;
    let mut experiment = Experiment::default();
    let mut remarks = Vec::new();
    for table in source.sweeps(&mut document)? {
        experiment.matrix_places.extend(matrices(source, &table)?);
        experiment.sweeps.push(sweep(source, table, &mut remarks)?);
    }
    // a setting of all sweeps has one remark
    experiment.remarks = remarks.into_iter().unique().collect();
    for (key, value) in document {
        if source.heading(&key, &value, &mut experiment.title, &mut experiment.notes)? {
            continue;
        }
        match &**key.get_ref() {
            "inferred" => experiment.inferred = source.strings(&value)?,
            "measure" => experiment.measure = measure(source, value)?,
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

fn measure(source: &Source<'_>, value: Spanned<DeValue<'_>>) -> Result<MeasureOptions> {
    let mut options = MeasureOptions::default();
    let span = value.span();
    for (key, value) in source.table(value, "a table")? {
        let Some(setting) = SETTINGS.iter().find(|s| s.name == &**key.get_ref()) else {
            let known: Vec<&str> = SETTINGS.iter().map(|s| s.name).collect();
            return Err(source.unknown(&key, "measuring option", &known));
        };
        source.parsed(&value, |text| setting.set(&mut options, text))?;
    }
    options.resolve().map_err(|e| source.error(span, e))?;
    Ok(options)
}

/// The matrices that a table names, with their places.
fn matrices(source: &Source<'_>, value: &Spanned<DeValue<'_>>) -> Result<Vec<(String, Place)>> {
    let mut places = Vec::new();
    for setting in ["matrix", "sequence"] {
        let Some(value) = value.get_ref().get(setting) else { continue };
        for (word, span) in source.words(value)? {
            let (line, column) = source.place(span);
            let file = source.name.to_owned();
            let place = Place { file, line: Some(line), column: Some(column) };
            // a wrong list has its error when the sweep is read
            let names = pieces(&source.located(setting, &word)).unwrap_or_default();
            places.extend(names.into_iter().map(|name| (name, place.clone())));
        }
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

fn published(source: &Source<'_>, value: Spanned<DeValue<'_>>) -> Result<Published> {
    let span = value.span();
    let mut published = Published { tolerance_percent: 5.0, ..Published::default() };
    let (mut csv, mut csv_span) = (String::new(), span.clone());
    let (mut columns, mut iterations) = (Vec::new(), String::new());
    for (key, value) in source.table(value, "a table")? {
        match &**key.get_ref() {
            "csv" => (csv, csv_span) = (source.string(&value)?, value.span()),
            "citation" => published.citation = source.string(&value)?,
            "keys" => (published.keys, columns) = key_columns(source, value)?.into_iter().unzip(),
            "iterations" => iterations = source.string(&value)?,
            "tolerance-percent" => {
                let percent = |text: &str| number(text, "0 to 100", |v| (0.0..=100.0).contains(&v));
                published.tolerance_percent = source.parsed(&value, percent)?;
            }
            "slow" => published.slow = Some(device(source, value, true)?),
            "fast" => published.fast = Some(device(source, value, true)?),
            _ => return Err(source.unknown(&key, "key", &keys::PUBLISHED.names())),
        }
    }
    let lacking = [
        ("csv", csv.is_empty()),
        ("keys", columns.is_empty()),
        ("iterations", iterations.is_empty()),
    ];
    if let Some((name, _)) = lacking.iter().find(|(_, lacking)| *lacking) {
        return Err(source.error(span, Error::input(format!("[published] lacks `{name}`"))));
    }
    let text = (source.beside)(&csv).map_err(|e| source.error(csv_span, e))?;
    published.read(&csv, &text, (&columns, &iterations))
}

fn history(source: &Source<'_>, value: Spanned<DeValue<'_>>) -> Result<History> {
    let span = value.span();
    let (mut history, mut csv) = (History::default(), None);
    for (key, value) in source.table(value, "a table")? {
        let whole = |most| source.parsed(&value, |text| whole(text, 1, most));
        match &**key.get_ref() {
            "csv" => csv = Some(source.beside(&value)?),
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
            "show" => phases.show = source.choice(&value, "table of phases", &Show::NAMES)?,
            "csv" => csv = Some(source.beside(&value)?),
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
    let column = |(key, value): Entry<'_>| {
        let axis = axis(key.get_ref()).map_err(|e| source.error(key.span(), e))?;
        Ok((axis, source.string(&value)?))
    };
    entries.into_iter().map(column).collect()
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

impl Experiment {
    /// Reads a TOML file; the files that it names, matrices and right-hand sides included, are resolved against its folder.
    pub fn open(path: &Path) -> Result<Self> {
        let contents = text(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let files = RefCell::new(vec![path.to_owned()]);
        let beside = |name: &str| {
            files.borrow_mut().push(folder.join(name));
            text(&folder.join(name))
        };
        let name = path.display().to_string();
        let experiment =
            parse(&Source { name: &name, text: &contents, folder: Some(folder), beside: &beside })?;
        Ok(Self { files: files.into_inner(), ..experiment })
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
