//! Claims judged by the records they rest on: verdicts, tables of them, and the numbers of sentences.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use itertools::Itertools as _;

use crate::base::error::{Error, Result};
use crate::base::input;
use crate::base::status::Status;
use crate::config::claims::formula::filled;
use crate::config::claims::{Basis, Claim, Claims, Evidence, RowSet, Verdict};
use crate::config::library::Library;
use crate::record::read::{FileFormat, read_rows_from};
use crate::record::table::{self, Row as _};
use crate::record::{Record, rounds};
use crate::report::build::Columns;
use crate::report::cells;
use crate::report::{Report, Sheet};

/// Bytes of a file of records at most.
const LARGEST: u64 = 256 << 20;

/// Values of a claim, each with the cells that identify it.
pub type Values = Vec<(String, f64)>;

/// A claim that was judged.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// What the records say; missing without any.
    pub verdict: Verdict,
    /// The values on which that rests.
    pub values: Values,
}

impl Judged<'_> {
    /// `text` with the numbers of the values.
    fn filled(&self, text: &str) -> Result<String> {
        filled(text, &self.values).map_err(|e| self.claim.error(e))
    }

    /// What was measured, or why nothing was.
    pub fn measured(&self) -> Result<String> {
        match &self.claim.basis {
            Basis::Missing(reason) => Ok(reason.clone()),
            Basis::Records(_) => self.filled(&self.claim.measured),
        }
    }

    /// The sentence of the first screen, if the claim has one.
    pub fn finding(&self) -> Result<Option<String>> {
        let finding = Some(&self.claim.finding).filter(|text| !text.is_empty());
        finding.map(|text| self.filled(text)).transpose()
    }

    /// Files with the sentences that must stand in them.
    pub fn texts(&self) -> Result<Vec<(&str, String)>> {
        let texts = self.claim.texts.iter();
        texts.map(|(file, text)| Ok((file.as_str(), self.filled(text)?))).collect()
    }

    /// The files of records that it rests on.
    pub fn files(&self) -> Vec<&str> {
        self.claim.files()
    }

    /// That the file states another verdict than the records.
    ///
    /// # Errors
    /// Then.
    pub fn check(&self) -> Result<()> {
        if self.verdict == self.claim.verdict {
            return Ok(());
        }
        let (stated, found) = (self.claim.verdict.name(), self.verdict.name());
        let error = Error::input(format!(
            "claim `{}` is stated as {stated}, but the records say {found}",
            self.claim.id
        ));
        let numbers = self.filled("{count} values from {min} to {max}, median {median}")?;
        Err(self.claim.error(error).hint(numbers))
    }
}

impl Claim {
    fn error(&self, error: Error) -> Error {
        error.at(&self.place.file, self.place.line.unwrap_or(1), None)
    }

    /// The files of records that it rests on, each once.
    pub fn files(&self) -> Vec<&str> {
        match &self.basis {
            Basis::Missing(_) => Vec::new(),
            Basis::Records(evidence) => {
                let files = evidence.sets.iter().flat_map(|set| &set.files).map(String::as_str);
                files.filter(|file| !file.starts_with("configs/")).unique().collect()
            }
        }
    }
}

/// Rows of a file as text; those of runs have the columns of this version.
#[derive(Clone, Default)]
struct Rows {
    /// The file, or the files, for messages.
    name: String,
    header: HashMap<String, usize>,
    cells: Vec<Vec<String>>,
}

impl Rows {
    /// Records as the tables show them, rounds of a case together; other files as they are.
    fn read(name: &str, bytes: &[u8]) -> Result<Self> {
        let mut reader = ::csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(bytes);
        let broken = |e: ::csv::Error| {
            let line = e.position().map_or(1, |place| place.line() as usize);
            Error::input(e.to_string()).at(name, line, None)
        };
        let header: Vec<String> =
            reader.headers().map_err(broken)?.iter().map(str::to_owned).collect();
        let columns: Vec<&str> = header.iter().map(String::as_str).collect();
        let (header, cells) = if table::command(&columns) == Some(Record::COMMAND) {
            let records = read_rows_from::<Record>(name, FileFormat::Csv, bytes)?.records;
            let rows = rounds::aggregated(&records).iter().map(table::to_cells).collect();
            (Record::schema().iter().map(|column| column.name.clone()).collect(), rows)
        } else {
            let owned = |row: ::csv::StringRecord| row.iter().map(str::to_owned).collect();
            let rows = reader.records().map(|row| row.map(owned).map_err(broken));
            (header, rows.collect::<Result<_>>()?)
        };
        let header = header.into_iter().enumerate().map(|(i, name)| (name, i)).collect();
        Ok(Self { name: name.to_owned(), header, cells })
    }

    /// The number in a cell, or the one at a place of its list.
    fn number(&self, row: usize, column: &str, place: Option<usize>) -> Result<Option<f64>> {
        let at = self.column(&[column.to_owned()])?;
        let word = self.cells[row][at].split_whitespace().nth(place.unwrap_or(0));
        Ok(word.and_then(|word| word.parse().ok()))
    }

    /// The place of the first of `names` that is a column.
    fn column(&self, names: &[String]) -> Result<usize> {
        let found = names.iter().find_map(|name| self.header.get(name).copied());
        found.ok_or_else(|| {
            let mut known: Vec<&str> = self.header.keys().map(String::as_str).collect();
            known.sort_unstable();
            Error::unknown(&format!("column of {}", self.name), &names.join("|"), &known)
        })
    }
}

/// Files of records below a folder, each read once.
pub struct Files<'a> {
    root: PathBuf,
    library: &'a Library,
    read: RefCell<HashMap<String, Rc<Rows>>>,
}

impl<'a> Files<'a> {
    /// Those below `root`, the folder that holds `results`; published values are those of `library`.
    pub fn below(root: &Path, library: &'a Library) -> Self {
        Self { root: root.to_owned(), library, read: RefCell::default() }
    }

    /// The rows of a file.
    fn rows(&self, file: &str) -> Result<Rc<Rows>> {
        if let Some(rows) = self.read.borrow().get(file) {
            return Ok(rows.clone());
        }
        let bytes = match file.strip_prefix("configs/") {
            Some(published) => self.library.text(published)?.1.into_bytes(),
            None => input::whole(&self.root.join(file), "a result file", LARGEST)?,
        };
        let rows = Rc::new(Rows::read(file, &bytes)?);
        self.read.borrow_mut().insert(file.to_owned(), rows.clone());
        Ok(rows)
    }

    /// The rows of several files with the same columns.
    fn all(&self, files: &[String]) -> Result<Rc<Rows>> {
        if let [one] = files {
            return self.rows(one);
        }
        let mut all = Rows { name: files.join(", "), ..Rows::default() };
        for file in files {
            let own = self.rows(file)?;
            if !all.header.is_empty() && all.header != own.header {
                return Err(Error::input(format!("{file} has other columns than {}", files[0])));
            }
            all.header.clone_from(&own.header);
            all.cells.extend(own.cells.iter().cloned());
        }
        Ok(Rc::new(all))
    }
}

/// The rows of a set by their keys: of those with one key the one that is least, or the only one.
struct Chosen {
    rows: Rc<Rows>,
    by_key: Vec<(Vec<String>, usize)>,
}

impl RowSet {
    fn chosen(&self, per: &[Vec<String>], files: &Files<'_>) -> Result<Chosen> {
        let rows = files.all(&self.files)?;
        let filtered = self.filters.iter().map(|f| rows.column(std::slice::from_ref(&f.column)));
        let filtered: Vec<usize> = filtered.collect::<Result<_>>()?;
        let per = if self.once { &[] } else { per };
        let keys: Vec<usize> = per.iter().map(|names| rows.column(names)).collect::<Result<_>>()?;
        // a run that failed speaks where it is asked for alone
        let status = rows.header.get("status").copied().filter(|at| !filtered.contains(at));
        let succeeded = |row: &Vec<String>| {
            status.is_none_or(|at| ended(&row[at]).is_some_and(Status::succeeded))
        };
        let accepted = (0..rows.cells.len()).filter(|&i| {
            let row = &rows.cells[i];
            succeeded(row) && self.filters.iter().zip(&filtered).all(|(f, &at)| f.accepts(&row[at]))
        });
        let key = |i: &usize| keys.iter().map(|&at| plain(&rows.cells[*i][at])).collect::<Vec<_>>();
        let mut by_key = Vec::new();
        for (key, own) in cells::by_key(accepted, key) {
            match (&self.least, &own[..]) {
                (Some(formula), _) => {
                    let mut timed = Vec::new();
                    for i in own {
                        let cell = |_: &str, column: &str, place| rows.number(i, column, place);
                        timed.extend(formula.value(&cell)?.map(|value| (value, i)));
                    }
                    let best = timed.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
                    by_key.extend(best.map(|(_, i)| (key, i)));
                }
                (None, [i]) => by_key.push((key, *i)),
                (None, several) => {
                    let (count, name, file) = (several.len(), &self.name, &rows.name);
                    let error = format!("{count} rows of `{name}` in {file} agree in {key:?}");
                    let error = Error::input(error);
                    return Err(error.hint("narrow `where`, add to `per`, or give `least`"));
                }
            }
        }
        if by_key.is_empty() {
            let error = format!("no row of {} meets the conditions of `{}`", rows.name, self.name);
            return Err(Error::input(error));
        }
        Ok(Chosen { rows, by_key })
    }
}

/// The status of that name.
fn ended(name: &str) -> Option<Status> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
}

/// A cell as a key: numbers are equal that are written differently.
fn plain(cell: &str) -> String {
    cell.parse::<f64>().map_or_else(|_| cell.to_owned(), |number| number.to_string())
}

impl Chosen {
    /// The row of that key; its only one if the set has one for all.
    fn row(&self, key: &[String], once: bool) -> Option<usize> {
        let found = self.by_key.iter().find(|(own, _)| once || own == key);
        found.map(|(_, row)| *row)
    }
}

impl Evidence {
    /// One value for each key that all sets have.
    fn values(&self, files: &Files<'_>) -> Result<Values> {
        let sets = self.sets.iter().map(|set| Ok((set, set.chosen(&self.per, files)?)));
        let sets: Vec<(&RowSet, Chosen)> = sets.collect::<Result<_>>()?;
        let keys = sets.iter().find(|(set, _)| !set.once).map(|(_, chosen)| &chosen.by_key);
        let mut values = Vec::new();
        for (key, _) in keys.into_iter().flatten() {
            let rows = sets.iter().map(|(set, chosen)| chosen.row(key, set.once));
            let Some(rows) = rows.collect::<Option<Vec<_>>>() else { continue };
            let cell = |name: &str, column: &str, place: Option<usize>| {
                let at = sets.iter().position(|(set, _)| set.name == name).unwrap_or_default();
                sets[at].1.rows.number(rows[at], column, place)
            };
            if let Some(value) = self.value.value(&cell)? {
                let named = self.per.iter().zip(key).map(|(names, cell)| match names[0].as_str() {
                    "matrix" | "precond" | "backend" | "ordering" => cell.clone(),
                    name => format!("{name} {cell}"),
                });
                values.push((named.collect::<Vec<_>>().join(", "), value));
            }
        }
        if values.is_empty() {
            return Err(Error::input("the sets have no row in common that has a value"));
        }
        Ok(values)
    }
}

/// Judges a claim by the records in `files`.
///
/// # Errors
/// When a file cannot be read, a column is unknown, rows are ambiguous, or there is no value. All name the claim's file
/// and line.
pub fn judge<'a>(claim: &'a Claim, files: &Files<'_>) -> Result<Judged<'a>> {
    let Basis::Records(evidence) = &claim.basis else {
        return Ok(Judged { claim, verdict: Verdict::Missing, values: Vec::new() });
    };
    let values = evidence.values(files).map_err(|e| {
        let error = Error::input(format!("claim `{}`: {e}", claim.id));
        let error = if let Some(hint) = e.hint_text() { error.hint(hint) } else { error };
        claim.error(error)
    })?;
    let numbers: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let verdict = if evidence.exceeds.as_ref().is_some_and(|c| c.holds(&numbers)) {
        Verdict::Exceeded
    } else if evidence.holds.holds(&numbers) {
        Verdict::Reproduced
    } else {
        Verdict::Contradicted
    };
    Ok(Judged { claim, verdict, values })
}

/// The table of verdicts.
///
/// # Errors
/// As [`judge`].
pub fn sheet(claims: &Claims, files: &Files<'_>) -> Result<Sheet> {
    let judged = claims.claims.iter().map(|claim| judge(claim, files));
    let judged = judged.collect::<Result<Vec<_>>>()?;
    let rows = judged.iter().map(|own| Ok((own, own.measured()?))).collect::<Result<Vec<_>>>()?;
    let sheet = Columns::new()
        .words("where", |(own, _): &(&Judged<'_>, String)| own.claim.source.clone())
        .words("claim", |(own, _)| own.claim.says.clone())
        .words("verdict", |(own, _)| own.verdict.name().to_owned())
        .words("measured", |(_, measured)| measured.clone())
        .words("caveat", |(own, _)| own.claim.caveat.clone())
        .sheet(rows);
    Ok(Sheet { title: Some(claims.title.clone()), ..sheet })
}

/// Columns of `claims --format csv` with their meanings.
pub const COLUMNS: [(&str, &str); 12] = [
    ("paper", "folder below `configs/`"),
    ("id", "name of the claim in its file"),
    ("where", "place of the claim in the paper"),
    ("claim", "what the paper says, in our words"),
    ("verdict", "what the records say: reproduced, exceeded, contradicted or missing"),
    ("stated", "verdict that the file states"),
    ("measured", "what the records say of it, or why nothing was measured"),
    ("caveat", "what restricts the verdict"),
    ("values", "number of values"),
    ("least", "smallest value"),
    ("most", "largest value"),
    ("files", "files of records"),
];

/// The tables of verdicts, and as rows every claim with its values.
///
/// # Errors
/// As [`judge`].
pub fn report(all: &[Claims], files: &Files<'_>) -> Result<Report> {
    let mut report = Report::default();
    for claims in all {
        report.sheets.push(sheet(claims, files)?);
        for claim in &claims.claims {
            let own = judge(claim, files)?;
            let number = |text: &str| {
                if own.values.is_empty() { Ok(String::new()) } else { own.filled(text) }
            };
            let cells = [
                claims.paper.clone(),
                claim.id.clone(),
                claim.source.clone(),
                claim.says.clone(),
                own.verdict.name().to_owned(),
                claim.verdict.name().to_owned(),
                own.measured()?,
                claim.caveat.clone(),
                own.values.len().to_string(),
                number("{min:6}")?,
                number("{max:6}")?,
                own.files().join(" "),
            ];
            let row = COLUMNS.iter().zip(cells);
            let row = row.map(|((name, _), text)| ((*name).to_owned(), text.into()));
            report.rows.push(row.collect());
        }
    }
    Ok(report)
}

/// Line before and after a generated table in a page of the documentation.
const MARKS: [&str; 2] = ["<!-- verdicts -->", "<!-- /verdicts -->"];

/// `page` with the table of `claims` between its marks.
///
/// # Errors
/// When there are no marks, and as [`judge`].
pub fn in_page(page: &str, claims: &Claims, files: &Files<'_>) -> Result<String> {
    let parts = page
        .split_once(MARKS[0])
        .and_then(|(before, behind)| Some((before, behind.split_once(MARKS[1])?.1)));
    let Some((before, behind)) = parts else {
        return Err(Error::input(format!("no lines {} and {}", MARKS[0], MARKS[1])));
    };
    let table = Sheet { title: None, ..sheet(claims, files)? };
    let table = Report { sheets: vec![table], rows: Vec::new() }.markdown();
    Ok(format!("{before}{}\n{table}{}{behind}", MARKS[0], MARKS[1]))
}
