//! Records as flat rows of text, for CSV.
//!
//! The columns are the fields of a record, so a field added there needs no change here.

use std::marker::PhantomData;
use std::sync::LazyLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::base::error::{Error, Result};
use crate::base::status::Status;
use crate::case::Case;
use crate::record::columns;
use crate::record::columns::{Described, Kind};
use crate::record::schema::{
    Convergence, Division, Environment, Record, SystemHash, SystemSize, Times, Traffic,
};

/// One column of the CSV file.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds; empty for the settings of `obstacle`, which have a help text.
    pub meaning: &'static str,
    pub(super) kind: Kind,
    pub(super) optional: bool,
}

/// Records that can be read as a table; `report` says how.
pub trait Rendered: Sized {
    /// The table, in Markdown.
    fn markdown(records: &[Self]) -> String;
}

/// A record that result files hold as a row.
pub trait Row: Rendered + Clone + Default + Serialize + DeserializeOwned {
    /// The command that makes them.
    const COMMAND: &'static str;
    /// What was run, which tells records apart.
    type Case: PartialEq;
    /// It.
    fn case(&self) -> &Self::Case;
    /// The round in which, which tells the records of a case apart.
    fn round(&self) -> Option<usize> {
        None
    }
    /// How it ended, and why or with what remarks.
    fn ending(&self) -> (Status, Option<&str>);
    /// All columns in order.
    fn schema() -> &'static [Column];
}

/// The command of runs of linear solvers.
const RUN: &str = "run";

/// The command of runs of the obstacle problem.
pub(super) const OBSTACLE: &str = "obstacle";

/// The command whose records have these columns, `run` or `obstacle`.
pub fn command(columns: &[&str]) -> Option<&'static str> {
    let has = |all: &[&str]| all.iter().all(|name| columns.contains(name));
    if has(&["matrix", "precond", "status"]) {
        Some(RUN)
    } else if has(&["obstacle", "relaxations"]) {
        Some(OBSTACLE)
    } else {
        None
    }
}

/// That records with these columns are of another command than `R`, if they are.
pub(crate) fn other_command<R: Row>(columns: &[&str]) -> Option<Error> {
    let found = command(columns).filter(|found| *found != R::COMMAND)?;
    let message = format!("these are records of `{found}`, not of `{}`", R::COMMAND);
    Some(Error::input(message).hint("`report` and `plot` take both"))
}

impl Row for Record {
    const COMMAND: &'static str = RUN;
    type Case = Case;

    fn case(&self) -> &Case {
        &self.case
    }

    fn round(&self) -> Option<usize> {
        self.round
    }

    fn ending(&self) -> (Status, Option<&str>) {
        (self.status, self.reason.as_deref())
    }

    fn schema() -> &'static [Column] {
        &SCHEMA
    }
}

/// All columns of a [`Record`] in order.
pub(crate) static SCHEMA: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let mut all = columns::<Record>(&[
        columns::ENDING,
        columns::FACTOR,
        columns::QUALITY,
        SystemSize::COLUMNS,
        SystemHash::COLUMNS,
        Times::COLUMNS,
        Convergence::COLUMNS,
        Traffic::COLUMNS,
        Division::COLUMNS,
        Environment::COLUMNS,
    ]);
    for (column, (name, meaning)) in all.iter_mut().zip(columns::SETTINGS) {
        assert_eq!(column.name, *name);
        column.meaning = meaning;
        if columns::NUMBER_OR_WORD.contains(name) {
            column.kind = Kind::Text;
        }
    }
    all
});

/// Name and meaning of the columns of a [`Record`], in their order; the keys of JSON are the same.
pub static COLUMNS: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| SCHEMA.iter().map(|c| (c.name.as_str(), c.meaning)).collect());

/// The columns of a kind of record, in the order of its fields. Those of its parts are described; the others,
/// its settings, have the type of the default.
pub(super) fn columns<R: Row>(parts: &[&[Described]]) -> Vec<Column> {
    let of = |(name, value): (String, Value)| {
        let optional = value.is_null();
        let (kind, meaning) = match (described(parts, &name), value) {
            (Some((_, kind, meaning)), _) => (*kind, *meaning),
            (None, Value::Number(n)) if n.is_f64() => (Kind::Number, ""),
            (None, Value::Number(_)) => (Kind::Whole, ""),
            (None, _) => (Kind::Text, ""),
        };
        Column { name, meaning, kind, optional }
    };
    fields(&R::default()).into_iter().map(of).collect()
}

/// Name and meaning of the columns of `schema` that are those of `parts`.
pub(super) fn named<'a>(schema: &'a [Column], parts: &[&[Described]]) -> Vec<(&'a str, &'a str)> {
    let own = schema.iter().filter(|column| described(parts, &column.name).is_some());
    own.map(|column| (column.name.as_str(), column.meaning)).collect()
}

fn described<'a>(parts: &[&'a [Described]], name: &str) -> Option<&'a Described> {
    parts.iter().copied().flatten().find(|(field, ..)| field.replace('_', "-") == name)
}

/// The record as one flat object, in the order of the columns.
pub fn fields<R: Row>(record: &R) -> Map<String, Value> {
    match serde_json::to_value(record) {
        Ok(Value::Object(map)) => map,
        // a record holds strings, numbers, lists of numbers and unit enums only, under text keys
        _ => unreachable!("a record is a flat object"),
    }
}

/// The cells of a record, in the order of [`Row::schema`]; empty where there is no value.
pub(crate) fn to_cells<R: Row>(record: &R) -> Vec<String> {
    fields(record).values().map(cell).collect()
}

/// One value as text: strings bare, numbers in their shortest form, lists with spaces between,
/// nothing for null.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
/// The record that cells under `header` hold. A column that is missing takes its default, one that
/// is unknown is passed over.
pub(crate) fn from_cells<'a, R: Row>(
    header: &[String],
    cells: impl Iterator<Item = &'a str>,
) -> Result<R> {
    Reader::new(header)?.read(cells)
}

/// Refuses a record that was not read from cells when one of its times is negative.
pub(super) fn check_times<R: Row>(record: &R) -> Result<()> {
    let fields = fields(record);
    for column in R::schema().iter().filter(|column| column.is_time()) {
        if let Some(number) = fields[&column.name].as_f64().filter(|number| *number < 0.0) {
            return Err(column.negative(number));
        }
    }
    Ok(())
}

/// Reads rows under one header.
#[derive(Debug)]
pub struct Reader<R> {
    /// The columns of the header, in its order; none where this version knows no such column.
    columns: Vec<Option<&'static Column>>,
    /// A record without values.
    default: Map<String, Value>,
    row: PhantomData<R>,
}

impl<R: Row> Reader<R> {
    /// For rows under `header`.
    ///
    /// # Errors
    /// Names a column that is there twice, or the command whose columns these are.
    pub fn new(header: &[String]) -> Result<Self> {
        let names: Vec<&str> = header.iter().map(|name| columns::current(name)).collect();
        if let Some(error) = other_command::<R>(&names) {
            return Err(error);
        }
        if let Some(i) = (1..names.len()).find(|&i| names[..i].contains(&names[i])) {
            return Err(Error::input(format!("column `{}` is there twice", names[i])));
        }
        let columns =
            names.iter().map(|name| R::schema().iter().find(|c| c.name == *name)).collect();
        Ok(Self { columns, default: fields(&R::default()), row: PhantomData })
    }

    /// The columns of `header`, the one that this was made for, that are unknown.
    pub(super) fn unknown(&self, header: &[String]) -> Vec<String> {
        let none = self.columns.iter().zip(header).filter(|(column, _)| column.is_none());
        let none =
            none.map(|(_, name)| name).filter(|name| !columns::RETIRED.contains(&name.as_str()));
        none.cloned().collect()
    }

    /// The record of a row. A column that is missing takes its default.
    ///
    /// # Errors
    /// Names a cell that is not of its column's type.
    pub fn read<'a>(&self, cells: impl Iterator<Item = &'a str>) -> Result<R> {
        let mut map = self.default.clone();
        for (column, text) in self.columns.iter().zip(cells) {
            let Some(column) = column else { continue };
            let value = column.parse(text)?;
            match map.get_mut(&column.name) {
                Some(place) => *place = value,
                None => drop(map.insert(column.name.clone(), value)),
            }
        }
        serde_json::from_value(Value::Object(map)).map_err(|e| Error::input(e.to_string()))
    }
}

impl Column {
    /// What its cells are, in words.
    pub fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Text => "text",
            Kind::Whole => "whole number",
            Kind::Number => "number",
            Kind::Numbers => "numbers",
        }
    }

    /// Whether it holds a measured or computed number: no count and no text.
    pub(super) fn is_number(&self) -> bool {
        self.kind == Kind::Number
    }

    /// Whether it holds seconds or milliseconds.
    fn is_time(&self) -> bool {
        self.kind == Kind::Number && (self.name.ends_with("-s") || self.name.starts_with("ms-"))
    }

    /// Whether a cell can be empty.
    pub(crate) fn can_be_empty(&self) -> bool {
        self.optional || self.kind == Kind::Numbers
    }

    fn parse(&self, text: &str) -> Result<Value> {
        if text.is_empty() && self.optional {
            return Ok(Value::Null);
        }
        let bad = |what| Error::input(format!("column {}: `{text}` is not {what}", self.name));
        Ok(match self.kind {
            Kind::Text => Value::from(text),
            Kind::Whole => Value::from(text.parse::<u64>().map_err(|_| bad("a whole number"))?),
            Kind::Number => self.number(text)?,
            Kind::Numbers => {
                let numbers = text.split_whitespace().map(|word| self.number(word));
                numbers.collect::<Result<Vec<Value>>>()?.into()
            }
        })
    }

    fn negative(&self, number: f64) -> Error {
        Error::input(format!("column {}: a time of {number}", self.name))
    }

    fn number(&self, text: &str) -> Result<Value> {
        let bad = |what| Error::input(format!("column {}: `{text}` is not {what}", self.name));
        let number = text.parse::<f64>().map_err(|_| bad("a number"))?;
        if self.is_time() && number < 0.0 {
            return Err(self.negative(number));
        }
        Ok(serde_json::Number::from_f64(number).ok_or_else(|| bad("a finite number"))?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_described() {
        let undescribed = |c: &&Column| c.meaning.is_empty();
        assert_eq!(SCHEMA.iter().find(undescribed).map(|c| &c.name), None);
        let settings = serde_json::to_value(Case::default()).unwrap();
        assert_eq!(settings.as_object().unwrap().len(), columns::SETTINGS.len());
        let kind = |name: &str| SCHEMA.iter().find(|c| c.name == name).unwrap().kind();
        let kinds = ["round", "n", "fill-ratio", "residual-history", "solve-interval"].map(kind);
        assert_eq!(kinds, ["whole number", "whole number", "number", "numbers", "text"]);
    }

    #[test]
    fn cells_are_checked_by_type() {
        let read = |name: &str, text: &'static str| {
            from_cells::<Record>(&[name.to_owned()], std::iter::once(text))
                .map_err(|e| e.to_string())
        };
        assert_eq!(read("solve-s", "2.5").unwrap().times.solve_s, Some(2.5));
        assert_eq!(read("solve-s", "").unwrap().times.solve_s, None);
        assert_eq!(read("solve-s", "x").unwrap_err(), "column solve-s: `x` is not a number");
        assert_eq!(
            read("solve-s", "inf").unwrap_err(),
            "column solve-s: `inf` is not a finite number"
        );
        assert_eq!(read("solve-s", "-1e-3").unwrap_err(), "column solve-s: a time of -0.001");
        assert_eq!(
            read("ms-per-iteration", "-2").unwrap_err(),
            "column ms-per-iteration: a time of -2"
        );
        assert_eq!(read("solve-s", "-0").unwrap().times.solve_s, Some(0.0));
        let history = |text| read("residual-history", text);
        assert_eq!(history("2.5 1e-3").unwrap().convergence.residual_history, [2.5, 1e-3]);
        assert!(history("").unwrap().convergence.residual_history.is_empty());
        assert_eq!(history("1 x").unwrap_err(), "column residual-history: `x` is not a number");
        assert_eq!(read("n", "").unwrap().size.n, 0);
        assert_eq!(read("padding", "").unwrap_err(), "column padding: `` is not a whole number");
        assert_eq!(read("solve", "1").unwrap(), Record::default(), "an unknown column");
        let twice = ["n", "reorder", "ordering"].map(str::to_owned);
        let error = Reader::<Record>::new(&twice).unwrap_err();
        assert_eq!(error.message(), "column `ordering` is there twice");
        assert!(read("status", "fine").unwrap_err().starts_with("unknown variant `fine`"));
    }
}
