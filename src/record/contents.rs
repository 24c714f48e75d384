//! Detects records with the same name but different systems: another matrix or right-hand side.
//!
//! A file may change under its name, and a generator from version to version. Records hold a hash of what
//! was solved; those of earlier versions have n and nnz alone.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::base::error::{Error, Result};
use crate::base::units::grouped;
use crate::record::Record;

/// Difference of the systems of two records with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// In the matrix.
    Matrix,
    /// In the right-hand side.
    RightHandSide,
}

impl Difference {
    /// The part that differs, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Matrix => "other matrix",
            Self::RightHandSide => "other rhs",
        }
    }

    /// What there are several of.
    fn plural(self) -> &'static str {
        match self {
            Self::Matrix => "matrices",
            Self::RightHandSide => "right-hand sides",
        }
    }

    /// The hash of that part.
    fn hash(self, record: &Record) -> Option<&str> {
        match self {
            Self::Matrix => record.hash.matrix_hash.as_deref(),
            Self::RightHandSide => record.hash.rhs_hash.as_deref(),
        }
    }
}

/// The difference of the systems of two records with the same name; `None` if none is known or the names
/// differ.
pub(crate) fn difference(a: &Record, b: &Record) -> Option<Difference> {
    use Difference::{Matrix, RightHandSide};
    let hashes = |what: Difference| what.hash(a).zip(what.hash(b)).is_some_and(|(a, b)| a != b);
    let sizes = |a: usize, b: usize| a > 0 && b > 0 && a != b;
    if !one_name(a, b) {
        None
    } else if sizes(a.size.n, b.size.n) || sizes(a.size.nnz, b.size.nnz) || hashes(Matrix) {
        Some(Matrix)
    } else {
        (a.case.rhs == b.case.rhs && hashes(RightHandSide)).then_some(RightHandSide)
    }
}

/// Whether two records name the same system, apart from the right-hand side.
fn one_name(a: &Record, b: &Record) -> bool {
    let name = |r: &Record| (r.case.read_as, r.case.zeros);
    a.case.matrix == b.case.matrix && name(a) == name(b)
}

/// Rejects a result file whose records of the system of `new` have other contents.
///
/// # Errors
/// Names the file, the matrix, both contents and what to do.
pub(crate) fn refuse_others<'a>(
    file: &str,
    mut earlier: impl Iterator<Item = &'a Record>,
    new: &Record,
) -> Result<()> {
    let found = earlier.find_map(|old| Some((old, difference(old, new)?)));
    let Some((old, what)) = found else { return Ok(()) };
    let case = &new.case;
    let (name, of, [there, here]) = match what {
        Difference::Matrix => (&case.matrix, String::new(), [old, new].map(matrix)),
        Difference::RightHandSide => {
            let hash = |r: &Record| format!("hash {}", what.hash(r).unwrap_or_default());
            (&case.rhs, format!(" of `{}`", case.matrix), [old, new].map(hash))
        }
    };
    Err(Error::input(format!(
        "`{name}`{of} is not the system of its records: {there} in the file, {here} now"
    ))
    .in_file(file)
    .hint("write to another file, or start over with --force"))
}

/// Number of records of the system of `new` without hashes, which cannot be checked.
pub(crate) fn unchecked<'a>(earlier: impl Iterator<Item = &'a Record>, new: &Record) -> usize {
    let of = |r: &&Record| one_name(r, new);
    earlier.filter(of).filter(|r| r.hash.matrix_hash.is_none() && r.size.n > 0).count()
}

/// `n = 64, nnz = 288, hash 0123456789abcdef`
fn matrix(record: &Record) -> String {
    let (n, nnz) = (grouped(record.size.n), grouped(record.size.nnz));
    let mut text = format!("n = {n}, nnz = {nnz}");
    if let Some(hash) = &record.hash.matrix_hash {
        _ = write!(text, ", hash {hash}");
    }
    text
}

/// Renames records with the same name but different contents, so that no table or figure mixes them: `a.mtx#0123abcd`, with the first digits of the hash, or `a.mtx#n=64,nnz=288`. Right-hand sides
/// likewise. Says what was done.
pub(crate) fn set_apart(records: &mut [&mut Record]) -> Vec<String> {
    let mut notes = Vec::new();
    for what in [Difference::Matrix, Difference::RightHandSide] {
        let mut systems: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, record) in records.iter().enumerate() {
            let case = &record.case;
            let mut key = format!("{}\0{:?}\0{:?}", case.matrix, case.read_as, case.zeros);
            if what == Difference::RightHandSide {
                _ = write!(key, "\0{}", case.rhs);
            }
            systems.entry(key).or_default().push(i);
        }
        let mut found: Vec<Vec<usize>> = systems.into_values().collect();
        found.sort();
        for of in found {
            // of each contents one record: there are few, of many records
            let mut distinct: Vec<&Record> = Vec::new();
            for record in of.iter().map(|&i| &*records[i]) {
                let contents = |r: &Record| (r.size.n, r.size.nnz, r.hash.clone());
                if !distinct.iter().any(|known| contents(known) == contents(record)) {
                    distinct.push(record);
                }
            }
            let mixed = distinct
                .iter()
                .enumerate()
                .any(|(k, a)| distinct[..k].iter().any(|b| difference(a, b) == Some(what)));
            if !mixed {
                continue;
            }
            let mut labels: Vec<String> = Vec::new();
            let case = &records[of[0]].case;
            let name = match what {
                Difference::Matrix => case.matrix.clone(),
                Difference::RightHandSide => format!("{}, {}", case.matrix, case.rhs),
            };
            for i in of {
                let record = &mut *records[i];
                let Some(label) = label(record, what) else { continue };
                let place = match what {
                    Difference::Matrix => &mut record.case.matrix,
                    Difference::RightHandSide => &mut record.case.rhs,
                };
                place.push_str(&label);
                if !labels.contains(&label) {
                    labels.push(label);
                }
            }
            let (count, what, labels) = (labels.len(), what.plural(), labels.join(", "));
            notes.push(format!("{name}: {count} {what} under one name are set apart: {labels}"));
        }
    }
    notes
}

/// Suffix that distinguishes the system of a record from others of its name; `None` if nothing is known of it.
fn label(record: &Record, what: Difference) -> Option<String> {
    match what.hash(record) {
        Some(hash) => Some(format!("#{}", hash.chars().take(8).collect::<String>())),
        None if what == Difference::Matrix && record.size.n > 0 => {
            Some(format!("#n={},nnz={}", record.size.n, record.size.nnz))
        }
        None => None,
    }
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;
