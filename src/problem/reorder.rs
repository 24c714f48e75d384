//! Systems with their unknowns renumbered: `P A P'`, `P b`.

use std::fmt;
use std::str::FromStr;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Problem;
use crate::error::{Error, Result};
use crate::matrix::Csr;

/// How the unknowns of a system are renumbered, block by block, before anything else is done.
///
/// Written `none`, `random` (seed 1) or `random:SEED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Reorder {
    /// The order of the source.
    #[default]
    None,
    /// A random order of the blocks, from `ChaCha8` with this seed.
    Random(u64),
}

/// How orders are written.
pub const KNOWN: &[&str] = &["none", "random", "random:SEED"];

/// Seed of `random`.
const SEED: u64 = 1;

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

impl FromStr for Reorder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None if text == "random" => Ok(Self::Random(SEED)),
            Some(("random", seed)) => seed.parse().map(Self::Random).map_err(|_| {
                Error::input(format!("order `{text}`: `{seed}` is not a seed"))
                    .hint("a seed is an integer from 0 to 2^64 - 1")
            }),
            _ => Err(Error::unknown("order", text, KNOWN)),
        }
    }
}

impl From<Reorder> for String {
    fn from(reorder: Reorder) -> Self {
        reorder.to_string()
    }
}

impl TryFrom<String> for Reorder {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl Reorder {
    /// The old number of each unknown of `a`, in the new order; `None` when nothing changes.
    ///
    /// The `block_size` unknowns of a block stay together and in their order; a last block that is
    /// not full stays the last.
    pub fn order(self, a: &Csr, block_size: usize) -> Option<Vec<u32>> {
        let full = a.rows() / block_size;
        let mut blocks: Vec<u32> = (0..full as u32).collect();
        match self {
            Self::None => return None,
            Self::Random(seed) => blocks.shuffle(&mut ChaCha8Rng::seed_from_u64(seed)),
        }
        let b = block_size as u32;
        let of_blocks = blocks.into_iter().flat_map(|block| block * b..(block + 1) * b);
        Some(of_blocks.chain((full * block_size) as u32..a.rows() as u32).collect())
    }
}

impl Problem {
    /// The same system with its unknowns in another `order` (see [`Reorder::order`]); its own
    /// right-hand side likewise. The grid is lost.
    ///
    /// # Panics
    /// If `order` is no permutation of the unknowns.
    #[must_use]
    pub fn reordered(&self, order: &[u32]) -> Self {
        Self {
            name: self.name.clone(),
            matrix: self.matrix.permuted(order).into(),
            grid: None,
            own_rhs: self.own_rhs.as_ref().map(|b| reordered(b, order)),
            remarks: self.remarks.clone(),
        }
    }
}

/// The entries of `v` in another order.
pub fn reordered(v: &[f64], order: &[u32]) -> Vec<f64> {
    order.iter().map(|&old| v[old as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::ReadAs;
    use crate::problem::load;

    #[test]
    fn orders_are_written_as_they_are_read() {
        for text in ["none", "random:1", "random:18446744073709551615"] {
            assert_eq!(text.parse::<Reorder>().unwrap().to_string(), text);
        }
        assert_eq!("random".parse(), Ok(Reorder::Random(1)));
        let message = |text: &str| text.parse::<Reorder>().unwrap_err().to_string();
        assert_eq!(message("rcm"), "unknown order `rcm`");
        assert_eq!(message("random:x"), "order `random:x`: `x` is not a seed");
        assert_eq!(message("none:1"), "unknown order `none:1`");
    }

    #[test]
    fn blocks_move_whole_and_an_incomplete_one_stays_last() {
        let a = load("poisson3d:25x2x1", ReadAs::Expanded).unwrap().matrix;
        assert_eq!(Reorder::None.order(&a, 3), None);
        let order = Reorder::Random(7).order(&a, 3).unwrap();
        assert_eq!(order[48..], [48, 49]);
        let mut blocks = Vec::new();
        for block in order[..48].chunks(3) {
            assert!(block[0] % 3 == 0 && block[1] == block[0] + 1 && block[2] == block[0] + 2);
            blocks.push(block[0] / 3);
        }
        assert!(!blocks.is_sorted());
        blocks.sort_unstable();
        assert!(blocks.into_iter().eq(0..16));
        assert_eq!(Reorder::Random(7).order(&a, 3).unwrap(), order);
        assert_ne!(Reorder::Random(8).order(&a, 3).unwrap(), order);
    }

    #[test]
    fn a_reordered_system_has_the_reordered_solution() {
        let p = load("convdiff3d:5x4x3,px=0.3", ReadAs::Expanded).unwrap();
        let order = Reorder::Random(2).order(&p.matrix, 1).unwrap();
        let q = Problem { own_rhs: Some((0..60).map(f64::from).collect()), ..p.clone() };
        let q = q.reordered(&order);
        let x: Vec<f64> = (0..60).map(|i| f64::from(i * i % 17)).collect();
        let (mut y, mut z) = (vec![0.0; 60], vec![0.0; 60]);
        p.matrix.multiply(&x, &mut y);
        q.matrix.multiply(&reordered(&x, &order), &mut z);
        let y = reordered(&y, &order);
        let difference = y.iter().zip(&z).map(|(a, b)| (a - b).abs());
        assert!(difference.fold(0.0, f64::max) < 1e-13);
        assert_eq!(q.matrix.nnz(), p.matrix.nnz());
        assert!(q.own_rhs.unwrap().iter().zip(&order).all(|(b, &old)| *b == f64::from(old)));
    }
}
