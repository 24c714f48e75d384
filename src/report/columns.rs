//! Selects the columns of a table: those that fit a terminal, all, or those requested.

use itertools::Itertools as _;
use serde_json::{Map, Value};
use tabled::grid::util::string::get_text_width;

use crate::base::error::{Error, Result, nearest};
use crate::base::parse::pieces;
use crate::base::units::{grouped, residual, seconds, significant};
use crate::report::cells::shown;
use crate::report::{Head, Report, Sheet};

/// Columns to omit on a narrow terminal, the least important first. All others stay: settings, iterations,
/// solve, total, verdict, status.
const LEAST: [&str; 4] = [
    // of runs and preconditioners
    "10 systems | 1000 solves | most of setup | rows/level | % of copy | application | factor blocks | levels L/U | vectors | \
     setup/solve | % bytes/iter | ms/iter | fill | symbolic | numeric | ordering time | break-even | setup speedup | \
     residual | frontier | setup",
    // of products, of what an iteration and triangular solves are made of
    "tuned | bytes/entry | % bytes | µs/level | steps/iteration | convert | MB | nnz | \
     GFLOP/s | % update | % inner product | % preconditioner | % product",
    // of obstacle problems
    "contact | step norm | of copy | GB/s | a sweep | min(AU-G, U-Phi)",
    // of advice and comparisons
    "levels | of the best | setup new/old | slow paper | fast paper | variant",
];

/// Characters beside each cell: two blanks and the line to the next one.
const BESIDE: usize = 3;

/// Heads whose name differs from the column of the record.
const ALIASES: &[(&str, &str)] = &[("block", "block-size"), ("k", "fill")];

/// Which columns are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// Those that fit.
    #[default]
    Fit,
    /// All.
    All,
    /// These.
    Named(Vec<String>),
}

impl Columns {
    /// Parses `all`, or a list of `known` names.
    ///
    /// # Errors
    /// At an unknown name.
    pub fn parse(text: &str, known: &[&str]) -> Result<Self> {
        if text == "all" {
            return Ok(Self::All);
        }
        let names = pieces(text)?;
        let unknown = names.iter().find(|name| !known.contains(&name.as_str()));
        let Some(name) = unknown else { return Ok(Self::Named(names)) };
        let hint = shown(nearest(name, known), |best| format!("did you mean `{best}`? "));
        Err(Error::input(format!("unknown column `{name}`")).hint(format!(
            "{hint}heads of the table and `bilu-bench list columns` are known, and `all`"
        )))
    }
}

impl Report {
    /// The report without the columns that do not fit a terminal of `width` characters; every table names
    /// them, and `how` to show them.
    #[must_use]
    pub fn fitted(mut self, width: usize, how: &str) -> Self {
        for sheet in &mut self.sheets {
            let gone = sheet.fit(width);
            if !gone.is_empty() {
                let note = format!("left out for want of room: {}; {how}", gone.join(", "));
                sheet.notes.insert(0, note);
            }
        }
        self
    }

    /// The report with the columns `names` alone: heads of tables, or columns of the records. Tables without
    /// a row for each record are left out where there is one with; `false` where no table has any of them,
    /// and everything is as it was.
    pub fn choose(&mut self, names: &[String]) -> bool {
        let of_records = self.sheets.iter().any(|sheet| !sheet.records.is_empty());
        let mut chosen = Vec::new();
        for sheet in &self.sheets {
            if of_records && !sheet.records.is_empty() {
                chosen.push(sheet.with(names, &self.rows));
            } else if !of_records {
                let own = |name: &&String| sheet.columns.iter().any(|c| c.text == **name);
                let own: Vec<String> = names.iter().filter(own).cloned().collect();
                chosen.extend((!own.is_empty()).then(|| sheet.with(&own, &self.rows)));
            }
        }
        let any = !chosen.is_empty();
        if any {
            self.sheets = chosen;
        }
        any
    }
}

impl Sheet {
    /// Characters of a row, with what would stand between it and a further cell.
    fn width(&self) -> usize {
        let cells = |i: usize| self.rows.iter().map(move |row| get_text_width(&row[i]));
        let columns = self.columns.iter().enumerate();
        let widest =
            |(i, head): (usize, &Head)| cells(i).max().unwrap_or(0).max(get_text_width(&head.text));
        columns.map(|column| widest(column) + BESIDE).sum()
    }

    /// Removes columns until the table fits; yields their heads in the order of the table.
    fn fit(&mut self, width: usize) -> Vec<String> {
        let before: Vec<String> = self.columns.iter().map(|c| c.text.clone()).collect();
        for least in LEAST.iter().flat_map(|group| group.split(" | ")) {
            // the last cell has nothing behind it
            if self.width() < width + BESIDE {
                break;
            }
            let used: Vec<bool> = self.columns.iter().map(|head| head.text != least).collect();
            self.keep(&used);
        }
        self.drop_notes_of(&before);
        let stays = |head: &String| self.columns.iter().any(|c| c.text == *head);
        before.into_iter().filter(|head| !stays(head)).dedup().collect()
    }

    /// Removes the notes that explain only columns `before` which are no longer there: `HEAD: ...; HEAD: ...`.
    fn drop_notes_of(&mut self, before: &[String]) {
        let stays = |head: &str| self.columns.iter().any(|c| c.text == head);
        let explained = |note: &str| -> Vec<bool> {
            let heads = note.split("; ").filter_map(|part| Some(part.split_once(": ")?.0));
            heads.filter(|head| before.iter().any(|b| b == head)).map(stays).collect()
        };
        self.notes.retain(|note| {
            let explained = explained(note);
            explained.is_empty() || explained.contains(&true)
        });
    }

    /// The same table with these columns; the cells of those that it lacks come from `rows`.
    fn with(&self, names: &[String], rows: &[Map<String, Value>]) -> Self {
        let mut sheet = Self { columns: Vec::new(), rows: Vec::new(), ..self.clone() };
        sheet.rows.resize(self.rows.len(), Vec::new());
        for name in names {
            let own = self.columns.iter().position(|c| c.text == *name);
            let alias = ALIASES.iter().find(|(head, _)| head == name).map(|(_, key)| *key);
            let key = alias.unwrap_or(name);
            let mut words = false;
            for (i, row) in sheet.rows.iter_mut().enumerate() {
                let value = self.records.get(i).and_then(|&record| rows.get(record)?.get(key));
                words |= matches!(value, Some(Value::String(_)));
                row.push(match own {
                    Some(at) => self.rows[i][at].clone(),
                    None => value.map(|value| cell(key, value)).unwrap_or_default(),
                });
            }
            let head = own.map(|at| self.columns[at].clone());
            sheet.columns.push(head.unwrap_or_else(|| Head { text: name.clone(), words }));
        }
        let before: Vec<String> = self.columns.iter().map(|c| c.text.clone()).collect();
        sheet.drop_notes_of(&before);
        sheet
    }
}

/// A value of a record as tables show it.
fn cell(key: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) if !key.ends_with("-s") => grouped(whole as usize),
            (_, Some(v)) if key.ends_with("-s") => seconds(v),
            (_, Some(v)) if key.ends_with("residual") => residual(v),
            (_, Some(v)) => significant(v, 4),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Report {
        let heads = ["k", "fill", "setup", "solve"].map(Head::number);
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let record = |fill: usize, apply: f64| {
            let row = json!({ "fill": fill, "block-size": 4, "apply-s": apply, "backend": "cpu" });
            row.as_object().unwrap().clone()
        };
        let sheet = Sheet {
            columns: heads.to_vec(),
            rows: vec![
                row(["0", "1.00", "2 ms", "24.18 ± 0.46 ms"]),
                row(["1", "1.83", "3 ms", "x"]),
            ],
            notes: vec!["setup: matrix and factors".into(), "last".into()],
            // the first record is of another table
            records: vec![1, 2],
            ..Sheet::default()
        };
        let other = Sheet { columns: vec![Head::words("frontier")], ..Sheet::default() };
        let rows = vec![record(9, 9.0), record(0, 0.002), record(1, 0.25)];
        Report { sheets: vec![sheet, other], rows }
    }

    #[test]
    fn the_least_important_columns_go_first() {
        let table = |width| {
            let sheet = report().fitted(width, "`--columns all` shows them").sheets.remove(0);
            assert!(sheet.rows.iter().all(|row| row.len() == sheet.columns.len()));
            (sheet.heads().join(" "), sheet.notes.join("; "))
        };
        // 1, 4, 5 and 15 characters, a blank before the first, three between
        let explained = "setup: matrix and factors; last";
        assert_eq!(table(35), ("k fill setup solve".into(), explained.into()));
        let how = "`--columns all` shows them";
        assert_eq!(
            table(34),
            (
                "k setup solve".into(),
                format!("left out for want of room: fill; {how}; {explained}")
            )
        );
        assert_eq!(
            table(27),
            ("k solve".into(), format!("left out for want of room: fill, setup; {how}; last"))
        );
        // what is never left out is wider than the terminal
        assert_eq!(table(5).0, "k solve");
    }

    #[test]
    fn chosen_columns_come_from_the_table_or_the_records() {
        let mut chosen = report();
        let names = ["solve", "block", "apply-s", "backend", "k", "fill"].map(str::to_owned);
        assert!(chosen.choose(&names));
        assert_eq!(chosen.sheets.len(), 1);
        let sheet = &chosen.sheets[0];
        assert_eq!(sheet.heads(), names);
        assert_eq!(sheet.rows[0], ["24.18 ± 0.46 ms", "4", "2.000 ms", "cpu", "0", "1.00"]);
        assert_eq!(sheet.rows[1], ["x", "4", "250.0 ms", "cpu", "1", "1.83"]);
        assert!(sheet.columns[3].words && !sheet.columns[2].words);
        assert_eq!(sheet.notes, ["last"]);
        // tables that have no row for each record have heads alone
        let mut plain = report();
        plain.sheets.iter_mut().for_each(|sheet| sheet.records.clear());
        let before = plain.clone();
        assert!(!plain.choose(&["apply-s".into()]));
        assert_eq!(plain, before);
        assert!(plain.choose(&["setup".into(), "apply-s".into()]));
        assert_eq!(plain.sheets.len(), 1);
        assert_eq!(plain.sheets[0].rows, [["2 ms"], ["3 ms"]]);
    }

    #[test]
    fn unknown_columns_are_refused() {
        let known = ["solve", "apply-s"];
        assert_eq!(Columns::parse("all", &known), Ok(Columns::All));
        let named = Columns::Named(vec!["solve".into(), "apply-s".into()]);
        assert_eq!(Columns::parse("solve,apply-s", &known), Ok(named));
        let error = Columns::parse("solve,aply-s", &known).unwrap_err();
        assert_eq!(error.to_string(), "unknown column `aply-s`");
        assert_eq!(
            error.hint_text(),
            Some(
                "did you mean `apply-s`? heads of the table and `bilu-bench list columns` are \
                 known, and `all`"
            )
        );
    }
}
