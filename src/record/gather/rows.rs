//! Rows of every kind, each known by its columns; damaged ones are skipped and listed.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Rows, Trial};
use crate::base::units::plural;
use crate::record::Record;
use crate::record::columns::{ADDED, COMPARE, VERSUS};
use crate::record::read::{FileFormat, Lines, without_bom};
use crate::record::table::{Reader, Row, cell, command};

/// Number of damaged rows of a file that are listed individually.
const NAMED: usize = 5;

/// Skipped rows of a file.
struct Damage<'a> {
    file: &'a str,
    notes: Vec<String>,
    count: usize,
}

impl Damage<'_> {
    fn add(&mut self, place: &str, why: &str) {
        self.count += 1;
        if self.count <= NAMED {
            self.notes.push(format!("{}:{place}: {why}", self.file));
        }
    }

    fn into_notes(mut self) -> Vec<String> {
        if self.count > NAMED {
            let more = plural(self.count - NAMED, "damaged row");
            self.notes.push(format!("{}: {more} more", self.file));
        }
        self.notes
    }
}

/// The kind of rows with these columns.
enum Known {
    Runs,
    Obstacle,
    Tuning,
    Derived,
}

fn known(columns: &[&str]) -> Option<Known> {
    let has = |all: &[&str]| all.iter().all(|name| columns.contains(name));
    if let Some(command) = command(columns) {
        Some(if command == Record::COMMAND { Known::Runs } else { Known::Obstacle })
    } else if has(&["kernel", "choices", "seconds"]) {
        Some(Known::Tuning)
    } else if COMPARE.iter().chain(VERSUS).any(|(name, _)| columns.contains(name)) {
        Some(Known::Derived)
    } else {
        None
    }
}

const UNKNOWN: &str = "its columns are of no rows that this program writes";

/// The rows of a file called `name`, if there are any, and what is to be said of it. A Markdown table cannot be
/// read back.
pub(super) fn read(
    format: Option<FileFormat>,
    name: &str,
    bytes: &[u8],
) -> (Option<Rows>, Vec<String>) {
    let mut damage = Damage { file: name, notes: Vec::new(), count: 0 };
    let bytes = without_bom(bytes);
    let rows = match format {
        Some(FileFormat::Csv) => csv_rows(bytes, &mut damage),
        Some(FileFormat::Json) => objects(bytes).and_then(|all| json_rows(all, &mut damage)),
        Some(FileFormat::JsonLines) => json_rows(lines(bytes, &mut damage), &mut damage),
        Some(FileFormat::Markdown) | None => Ok(None),
    };
    let rows = rows.unwrap_or_else(|why| {
        damage.notes.push(format!("{name}: {why}"));
        None
    });
    (rows, damage.into_notes())
}

/// A row and its place in the file.
type Placed<T> = (String, T);

/// The cells of the rows of a CSV file.
type Table = [Placed<csv::StringRecord>];

/// The rows that can be read; the others are damage.
fn sound<T>(
    rows: impl Iterator<Item = Placed<Result<T, String>>>,
    damage: &mut Damage<'_>,
) -> Vec<T> {
    rows.filter_map(|(place, row)| row.map_err(|why| damage.add(&place, &why)).ok()).collect()
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn csv_rows(bytes: &[u8], damage: &mut Damage<'_>) -> Result<Option<Rows>, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut records = reader.byte_records();
    let Some(header) = records.next() else { return Ok(None) };
    let header = header.map_err(|e| e.to_string())?;
    let header = csv::StringRecord::from_byte_record(header).map_err(|_| "not valid UTF-8")?;
    let names: Vec<&str> = header.iter().collect();
    let kind = known(&names).ok_or(UNKNOWN)?;
    let mut places = Lines::new(bytes);
    let mut checked = Vec::new();
    for record in records {
        let record = record.map_err(|e| e.to_string())?;
        let place = places.at(record.position()).to_string();
        let row = if record.len() == header.len() {
            csv::StringRecord::from_byte_record(record).map_err(|_| "not valid UTF-8".to_owned())
        } else {
            Err(format!("{} values under {} columns", record.len(), header.len()))
        };
        checked.push((place.clone(), row.map(|row| (place, row))));
    }
    let table = sound(checked.into_iter(), damage);
    Ok(Some(match kind {
        Known::Runs => Rows::Runs(cells(&names, &table, damage)?),
        Known::Obstacle => Rows::Obstacle(cells(&names, &table, damage)?),
        Known::Tuning => Rows::Tuning(trials(&names, &table, damage)),
        Known::Derived => {
            let rows = table.iter().map(|(_, row)| row.iter().map(str::to_owned).collect());
            Rows::Derived(owned(&names), rows.collect())
        }
    }))
}

fn cells<R: Row>(names: &[&str], table: &Table, damage: &mut Damage<'_>) -> Result<Vec<R>, String> {
    let header = owned(names);
    let reader = Reader::<R>::new(&header).map_err(|e| e.to_string())?;
    // what reports add to records is made again
    let added = |name: &&String| ADDED.iter().any(|(added, _)| added == name);
    for name in reader.unknown(&header).iter().filter(|name| !added(name)) {
        damage.notes.push(format!("{}: unknown column `{name}` is passed over", damage.file));
    }
    let read = |row: &csv::StringRecord| reader.read(row.iter()).map_err(|e| e.message().into());
    Ok(sound(table.iter().map(|(place, row)| (place.clone(), read(row))), damage))
}

fn trials(names: &[&str], table: &Table, damage: &mut Damage<'_>) -> Vec<Trial> {
    let value = |name: &&str, text: &str| match text {
        _ if ["system", "kernel", "choices", "search"].contains(name) => Value::from(text),
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    };
    let object = |row: &csv::StringRecord| -> Map<String, Value> {
        names.iter().zip(row).map(|(name, text)| ((*name).to_owned(), value(name, text))).collect()
    };
    values(table.iter().map(|(place, row)| (place.clone(), object(row).into())), damage)
}

/// The objects of a JSON array with their places.
fn objects(bytes: &[u8]) -> Result<Vec<Placed<Value>>, String> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let values: Vec<Value> = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    Ok(values.into_iter().enumerate().map(|(i, v)| (format!("record {}", i + 1), v)).collect())
}

/// The objects of JSON lines with their places.
fn lines(bytes: &[u8], damage: &mut Damage<'_>) -> Vec<Placed<Value>> {
    let lines = (1..).zip(bytes.split(|&b| b == b'\n'));
    let objects = lines.filter(|(_, line)| !line.trim_ascii().is_empty()).map(|(i, line)| {
        let place = i.to_string();
        let value = serde_json::from_slice(line).map_err(|_| "not a JSON object".to_owned());
        (place.clone(), value.map(|value| (place, value)))
    });
    sound(objects, damage)
}

fn json_rows(objects: Vec<Placed<Value>>, damage: &mut Damage<'_>) -> Result<Option<Rows>, String> {
    let Some(first) = objects.iter().find_map(|(_, value)| value.as_object()) else {
        return if objects.is_empty() { Ok(None) } else { Err(UNKNOWN.into()) };
    };
    let names: Vec<&str> = first.keys().map(String::as_str).collect();
    Ok(Some(match known(&names).ok_or(UNKNOWN)? {
        Known::Runs => Rows::Runs(values(objects.into_iter(), damage)),
        Known::Obstacle => Rows::Obstacle(values(objects.into_iter(), damage)),
        Known::Tuning => Rows::Tuning(values(objects.into_iter(), damage)),
        Known::Derived => {
            let text = |value: &Value, name: &&str| value.get(name).map(cell).unwrap_or_default();
            let row = |(_, value): &Placed<Value>| names.iter().map(|n| text(value, n)).collect();
            Rows::Derived(owned(&names), objects.iter().map(row).collect())
        }
    }))
}

fn values<T: DeserializeOwned>(
    objects: impl Iterator<Item = Placed<Value>>,
    damage: &mut Damage<'_>,
) -> Vec<T> {
    let read = |value| serde_json::from_value(value).map_err(|e| e.to_string());
    sound(objects.map(|(place, value)| (place, read(value))), damage)
}
