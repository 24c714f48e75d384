//! Right-hand sides.

use std::path::Path;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::base::error::{Error, Result};
use crate::matrix::market;

use super::{Problem, file};

/// How right-hand sides are written.
const KNOWN: &[&str] = &["ones", "a-ones", "random", "random:SEED", "own", "file:PATH"];

/// Seed of `random`.
pub(crate) const RANDOM_SEED: u64 = 1;

/// The right-hand side that `spec` names (see [`crate::case::Case::rhs`]), of length n.
///
/// `ones`; `a-ones`, the product of A with ones, whose solution is known; `random[:SEED]`, uniform
/// in [0, 1) from `ChaCha8`, seed 1 by default; `own`, what came with the matrix; `file:PATH`.
///
/// # Errors
/// When there is no such right-hand side, it does not have n finite values in one column, or the file is
/// broken.
pub fn right_hand_side(problem: &Problem, spec: &str) -> Result<Vec<f64>> {
    let n = problem.matrix.rows();
    let (kind, argument) = match spec.split_once(':') {
        Some((kind, argument)) => (kind, Some(argument)),
        None => (spec, None),
    };
    match (kind, argument) {
        ("ones", None) => Ok(vec![1.0; n]),
        ("a-ones", None) => a_ones(problem),
        ("random", None) => Ok(random(n, RANDOM_SEED)),
        ("random", Some(seed)) => seed.parse().map(|seed| random(n, seed)).map_err(|_| {
            Error::input(format!("right-hand side `{spec}`: `{seed}` is not a seed"))
                .hint("a seed is an integer from 0 to 2^64 - 1")
        }),
        ("own", None) => problem.own_rhs.clone().ok_or_else(|| no_own(problem)),
        ("file", None | Some("")) => {
            Err(Error::input("right-hand side `file` without a path").hint("write `file:PATH`"))
        }
        ("file", Some(path)) => {
            let path = Path::new(path);
            let read = market::read_vector(path, None)?;
            file::check_columns(path, &read)?;
            file::check_length(path, read.values.len(), n)?;
            Ok(read.values)
        }
        _ => Err(Error::unknown("right-hand side", spec, KNOWN)),
    }
}

fn a_ones(problem: &Problem) -> Result<Vec<f64>> {
    let mut b = vec![0.0; problem.matrix.rows()];
    problem.matrix.multiply(&vec![1.0; problem.matrix.cols()], &mut b);
    match b.iter().position(|v| !v.is_finite()) {
        None => Ok(b),
        Some(i) => Err(Error::input(format!(
            "right-hand side `a-ones`: the sum of row {} of `{}` is not finite",
            i + 1,
            problem.name
        ))),
    }
}

fn random(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| rng.random::<f64>()).collect()
}

fn no_own(problem: &Problem) -> Error {
    let error = Error::input(format!("`{}` has no right-hand side of its own", problem.name));
    match problem.remarks.iter().find(|r| r.starts_with(file::UNUSED)) {
        Some(remark) => error.hint(remark.clone()),
        None => error.hint("choose `ones`, `a-ones`, `random[:SEED]` or `file:PATH`"),
    }
}
