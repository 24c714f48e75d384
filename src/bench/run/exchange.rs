//! The folder through which a peer gets a system and returns a solution.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::matrix::market::{Symmetry, write_matrix, write_vector};
use crate::matrix::{Csr, npy};

/// What is asked of the peer, and the same in lines for languages that read no JSON.
const SETTINGS: [&str; 2] = ["settings.json", "settings.txt"];
/// What it answers.
const SOLUTION: &str = "x.npy";
/// The system.
const SYSTEM: [&str; 4] = ["indptr.npy", "indices.npy", "values.npy", "b.npy"];
/// The same as Matrix Market, for peers that ask for it.
const MARKET: [&str; 2] = ["A.mtx", "b.mtx"];

/// A system in a folder of its own, for all cases that have it.
#[derive(Debug)]
pub(super) struct Exported {
    folder: TempDir,
    /// Its block size, to which it is padded, and the name of its right-hand side.
    of: (usize, String),
}

impl Exported {
    /// Writes a system.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn new(a: &Csr, b: &[f64], rhs: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("bilu-bench-peer-").tempdir();
        let folder = folder.map_err(|e| Error::run(format!("no folder for a peer: {e}")))?;
        let [row_ptr, col_ind, values, right] = SYSTEM.map(|name| folder.path().join(name));
        // 32 bits as long as they are enough, which libraries take as they are
        if i32::try_from(a.nnz()).is_ok() {
            npy::write_file(&row_ptr, a.row_ptr().iter().map(|&i| i as i32))?;
            npy::write_file(&col_ind, a.col_ind().iter().map(|&j| j as i32))?;
        } else {
            npy::write_file(&row_ptr, a.row_ptr().iter().map(|&i| i64::from(i)))?;
            npy::write_file(&col_ind, a.col_ind().iter().map(|&j| i64::from(j)))?;
        }
        npy::write_file(&values, a.values().iter().copied())?;
        npy::write_file(&right, b.iter().copied())?;
        Ok(Self { folder, of: (a.block_size(), rhs.to_owned()) })
    }

    /// Whether it is the system with these blocks and this right-hand side.
    pub(super) fn is_of(&self, block_size: usize, rhs: &str) -> bool {
        self.of.0 == block_size && self.of.1 == rhs
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Prepares the folder for a case: no file of an earlier one is left. Writes the system as Matrix Market, too,
    /// where that is asked for.
    ///
    /// # Errors
    /// When a file cannot be written or removed.
    pub(super) fn begin(&self, settings: &Value, market: Option<(&Csr, &[f64])>) -> Result<()> {
        let at = |name: &str| self.folder().join(name);
        let entries = std::fs::read_dir(self.folder());
        let entries = entries.map_err(|e| Error::io("read", self.folder(), &e))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default();
            if !SYSTEM.iter().chain(&MARKET).any(|own| name == *own) {
                let removed = if path.is_dir() && !path.is_symlink() {
                    std::fs::remove_dir_all(&path)
                } else {
                    std::fs::remove_file(&path)
                };
                removed.map_err(|e| Error::io("remove", &path, &e))?;
            }
        }
        let [matrix, right] = MARKET.map(at);
        if let Some((a, b)) = market.filter(|_| !right.exists()) {
            write_matrix(&matrix, a, Symmetry::General)?;
            write_vector(&right, b)?;
        }
        let [json, lines] = SETTINGS.map(at);
        files::write(&json, format!("{settings:#}\n").as_bytes())?;
        files::write(&lines, as_lines("", settings).as_bytes())
    }

    /// The solution that the peer left, of `n` numbers.
    ///
    /// # Errors
    /// When there is none, or it is none.
    pub(super) fn solution(&self, n: usize) -> Result<Vec<f64>> {
        npy::read_file(&self.folder().join(SOLUTION), n)
    }
}

/// Settings as lines `key value`, those of an object within as `outer.inner value`.
fn as_lines(before: &str, settings: &Value) -> String {
    let of = |(key, value): (&String, &Value)| match value {
        Value::Object(_) => as_lines(&format!("{before}{key}."), value),
        Value::String(text) => format!("{before}{key} {text}\n"),
        other => format!("{before}{key} {other}\n"),
    };
    settings.as_object().into_iter().flatten().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_case_finds_the_system_and_its_settings_and_nothing_of_another_case() {
        let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![4.0, -1.0, 2.0]).unwrap();
        let exported = Exported::new(&a, &[3.0, 2.0], "ones").unwrap();
        assert!(exported.is_of(1, "ones") && !exported.is_of(2, "ones"));
        assert!(!exported.is_of(1, "random"));
        let settings = serde_json::json!({ "fill": 2, "rtol": 1e-6, "solver": "gmres", "repeat": { "most": 3 } });
        exported.begin(&settings, None).unwrap();
        let folder = exported.folder();
        let system =
            ["b.npy", "indices.npy", "indptr.npy", "settings.json", "settings.txt", "values.npy"];
        assert_eq!(names(folder), system);
        let lines = std::fs::read_to_string(folder.join("settings.txt")).unwrap();
        assert_eq!(lines, "fill 2\nrtol 1e-6\nsolver gmres\nrepeat.most 3\n");
        assert_eq!(npy::read_file(&folder.join("values.npy"), 3).unwrap(), a.values());
        let pointers = std::fs::read(folder.join("indptr.npy")).unwrap();
        assert_eq!(pointers[128..], [0i32, 2, 3].map(i32::to_le_bytes).concat());
        npy::write_file(&folder.join("x.npy"), [1.0, 1.0].into_iter()).unwrap();
        std::fs::create_dir(folder.join("rest")).unwrap();
        assert_eq!(exported.solution(2).unwrap(), [1.0, 1.0]);
        exported.begin(&settings, Some((&a, &[3.0, 2.0]))).unwrap();
        assert_eq!(names(folder), [&["A.mtx", "b.mtx"], &system[..]].concat());
        let gone = exported.solution(2).unwrap_err().to_string();
        assert!(gone.contains("x.npy"), "{gone}");
    }
}
