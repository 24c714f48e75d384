//! Right-hand sides.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::base::choices::ReadAs;
use crate::base::error::{Error, Result};
use crate::base::measure::check_memory;
use crate::base::units::plural;
use crate::compute::multivectors::MOST_COLUMNS;
use crate::matrix::file::{read_matrix, read_vector, read_vector_to, vector_columns};

use super::several::counted;
use super::{Problem, file};

/// How right-hand sides are written.
const KNOWN: &[&str] =
    &["ones", "a-ones", "random", "random:SEED", "own", "file:PATH", "random*COUNT"];

/// What to do with an array that has a column for each unknown.
const TRANSPOSED: &str = "a row for each unknown is read: transpose the array";

/// Seed of `random`.
const RANDOM_SEED: u64 = 1;

/// Which right-hand side a spec names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Ones,
    /// The product of A with ones.
    AOnes,
    /// Of a seed.
    Random(u64),
    /// What came with the matrix.
    Own,
    File(PathBuf),
}

impl Named {
    /// The one that `spec` names.
    ///
    /// # Errors
    /// When there is none, or several are asked for.
    pub(crate) fn find(spec: &str) -> Result<Self> {
        let (name, count) = counted(spec)?;
        if count.is_some_and(|count| count > 1) {
            return Err(Error::input(format!("`{spec}`: one right-hand side is taken here")));
        }
        Self::of_name(name)
    }

    /// The one of a name without a count.
    fn of_name(name: &str) -> Result<Self> {
        if file::is_rhs_file(name) {
            return Ok(Self::File(name.into()));
        }
        let (kind, argument) = match name.split_once(':') {
            Some((kind, argument)) => (kind, Some(argument)),
            None => (name, None),
        };
        match (kind, argument) {
            ("ones", None) => Ok(Self::Ones),
            ("a-ones", None) => Ok(Self::AOnes),
            ("random", None) => Ok(Self::Random(RANDOM_SEED)),
            ("random", Some(seed)) => seed.parse().map(Self::Random).map_err(|_| {
                Error::input(format!("right-hand side `{name}`: `{seed}` is not a seed"))
                    .hint("a seed is an integer from 0 to 2^64 - 1")
            }),
            ("own", None) => Ok(Self::Own),
            ("file", None | Some("")) => {
                Err(Error::input("right-hand side `file` without a path").hint("write `file:PATH`"))
            }
            ("file", Some(path)) => Ok(Self::File(path.into())),
            _ => Err(Error::unknown("right-hand side", name, KNOWN)),
        }
    }

    /// As it is always written.
    fn text(&self) -> String {
        match self {
            Self::Ones => "ones".into(),
            Self::AOnes => "a-ones".into(),
            Self::Random(RANDOM_SEED) => "random".into(),
            Self::Random(seed) => format!("random:{seed}"),
            Self::Own => "own".into(),
            Self::File(path) => format!("file:{}", path.display()),
        }
    }
}

/// `spec` as it is always written; whether a vector fits the matrix shows when both are there.
///
/// # Errors
/// When there is no such right-hand side, or no several ones of that name.
pub(crate) fn canonical(spec: &str) -> Result<String> {
    let (name, count) = counted(spec)?;
    let named = Named::of_name(name)?;
    if let Named::File(path) = &named
        && !path.is_file()
    {
        let path = path.display();
        return Err(match std::fs::metadata(path.to_string()) {
            Ok(found) if found.is_dir() => Error::input(format!("`{path}` is a folder")),
            Ok(_) => Error::input(format!("`{path}` is no regular file"))
                .hint("a right-hand side is read more than once: write it to a file"),
            Err(_) => Error::input(format!("no such file `{path}`")),
        });
    }
    let text = named.text();
    Ok(match (named, count) {
        (Named::Random(_), Some(2..)) | (Named::File(_), Some(_)) => {
            format!("{text}*{}", count.unwrap_or(1))
        }
        (Named::Own, Some(2..)) => {
            return Err(Error::input(format!("right-hand side `{spec}`: `own` has one column"))
                .hint("name the file that has several: `a_rhs.npy*3`"));
        }
        (_, Some(2..)) => {
            return Err(Error::input(format!(
                "right-hand side `{spec}`: all columns would be equal"
            ))
            .hint("`random*COUNT` and files with several columns have several"));
        }
        _ => text,
    })
}

/// The right-hand side that `spec` names (see [`crate::case::Case::rhs`]), of length n.
///
/// `ones`; `a-ones`, the product of A with ones, whose solution is known; `random[:SEED]`, uniform
/// in [0, 1) from `ChaCha8`, seed 1 by default; `own`, what came with the matrix; `file:PATH`.
///
/// # Errors
/// When there is no such right-hand side, it does not have n finite values in one column, or the file is
/// broken.
pub fn right_hand_side(problem: &Problem, spec: &str) -> Result<Vec<f64>> {
    of_named(problem, Named::find(spec)?)
}

fn of_named(problem: &Problem, named: Named) -> Result<Vec<f64>> {
    let n = problem.matrix.rows();
    match named {
        Named::Ones => Ok(vec![1.0; n]),
        Named::AOnes => a_ones(problem),
        Named::Random(seed) => Ok(random(0..n as u64, seed)),
        Named::Own => {
            problem.own_rhs.clone().ok_or_else(|| no_own(&problem.name, &problem.remarks))
        }
        Named::File(path) => of_file(&path, n),
    }
}

/// The same of one or several: n rows of as many numbers as there are right-hand sides. Column j of `random*COUNT` has
/// the j-th seed from that of the first on; a file has all its columns, or the first COUNT.
///
/// # Errors
/// As [`right_hand_side`], and when there are not so many columns.
pub fn right_hand_sides(problem: &Problem, spec: &str) -> Result<Vec<f64>> {
    let n = problem.matrix.rows();
    let (name, count) = counted(spec)?;
    match (Named::of_name(name)?, count) {
        (Named::Random(seed), Some(count @ 2..)) => {
            check_memory(8 * n.saturating_mul(count + 1))?;
            let mut all = vec![0.0; n * count];
            for j in 0..count {
                let column = random(0..n as u64, seed.wrapping_add(j as u64));
                all.iter_mut().skip(j).step_by(count).zip(column).for_each(|(to, v)| *to = v);
            }
            Ok(all)
        }
        (Named::File(path), count) => of_columns(&path, n, count),
        (named, _) => of_named(problem, named),
    }
}

/// The first `count` columns of a file, or all.
fn of_columns(path: &Path, n: usize, count: Option<usize>) -> Result<Vec<f64>> {
    let named = || path.display().to_string();
    let columns = vector_columns(path)?;
    let taken = count.unwrap_or(columns);
    if taken > columns {
        let text = format!("{} where {taken} are asked for", plural(columns, "column"));
        return Err(Error::input(text).in_file(named()));
    }
    if taken > MOST_COLUMNS {
        let error = Error::input(format!("{columns} columns for a matrix of {}", plural(n, "row")));
        let hint = if columns == n {
            TRANSPOSED.to_owned()
        } else {
            format!("`PATH*COUNT` takes the first of them, at most {MOST_COLUMNS}")
        };
        return Err(error.in_file(named()).hint(hint));
    }
    if columns <= 1 {
        return of_file(path, n);
    }
    let read = read_matrix(path, ReadAs::Expanded)?.matrix;
    let transposed = |e: Error| if columns == n { e.hint(TRANSPOSED) } else { e };
    file::check_length(path, read.rows(), n).map_err(transposed)?;
    check_memory(8 * n.saturating_mul(taken)).map_err(|e| e.in_file(named()))?;
    let mut all = vec![0.0; n * taken];
    for (i, row) in all.chunks_exact_mut(taken).enumerate() {
        let (places, values) = read.row(i);
        for (&j, &v) in places.iter().zip(values).filter(|(j, _)| (**j as usize) < taken) {
            row[j as usize] = v;
        }
    }
    Ok(all)
}

/// The vector of n values in a file.
///
/// # Errors
/// When it has another length, several columns, or is broken.
fn of_file(path: &Path, n: usize) -> Result<Vec<f64>> {
    let read = read_vector(path)?;
    file::check_columns(path, [read.values.len(), read.columns])?;
    file::check_length(path, read.values.len(), n)?;
    Ok(read.values)
}

/// The same, where `take` gets the values in pieces.
///
/// # Errors
/// As there.
pub(crate) fn of_file_to(path: &Path, n: usize, take: &mut dyn FnMut(&[f64])) -> Result<()> {
    let (length, read) = read_vector_to(path, take)?;
    file::check_columns(path, [length, read.columns])?;
    file::check_length(path, length, n)
}

fn a_ones(problem: &Problem) -> Result<Vec<f64>> {
    let mut b = vec![0.0; problem.matrix.rows()];
    problem.matrix.multiply(&vec![1.0; problem.matrix.cols()], &mut b);
    match b.iter().position(|v| !v.is_finite()) {
        None => Ok(b),
        Some(i) => Err(not_finite(i as u64, &problem.name)),
    }
}

/// The error of a row of the matrix called `name` whose sum is not finite.
pub(crate) fn not_finite(row: u64, name: &str) -> Error {
    let row = row + 1;
    Error::input(format!(
        "right-hand side `a-ones`: the sum of row {row} of `{name}` is not finite"
    ))
}

/// The numbers of some rows.
pub(crate) fn random(rows: Range<u64>, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // a number takes two words
    rng.set_word_pos(2 * u128::from(rows.start));
    rows.map(|_| rng.random::<f64>()).collect()
}

/// The error of a system without a right-hand side of its own.
pub(crate) fn no_own(name: &str, remarks: &[String]) -> Error {
    let error = Error::input(format!("`{name}` has no right-hand side of its own"));
    match remarks.iter().find(|r| r.starts_with(file::UNUSED)) {
        Some(remark) => error.hint(remark.clone()),
        None => error.hint("choose `ones`, `a-ones`, `random[:SEED]` or `file:PATH`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_of_some_rows_are_those_of_all() {
        let all = random(0..1000, 7);
        assert!(all.windows(2).all(|two| two[0] != two[1]));
        for (start, end) in [(0, 3), (1, 999), (517, 640), (1000, 1000)] {
            assert_eq!(random(start..end, 7), all[start as usize..end as usize]);
        }
    }
}
