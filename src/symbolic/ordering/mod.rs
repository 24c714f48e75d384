//! Orderings: the blocks of a system renumbered before anything else is done, `P A P'` and `P b`.
//!
//! One file each, and one line in the registry below.

mod levels;
mod min_degree;
mod multicolour;
mod natural;
mod nested_dissection;
mod random;
mod rcm;
mod red_black;
mod shortest_axis_last;

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::matrix::pattern::{Pattern, block_pattern_on};
use crate::symbolic::grid::detect_grid;
use crate::symbolic::symmetrised;

/// How the unknowns of a system are renumbered, block by block.
///
/// Written as its name; `random` also with a seed, `random:SEED`, 1 without it. Records of before
/// orderings had names say `none` for `natural`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
pub struct Ordering {
    name: &'static str,
    /// Of `random`.
    seed: u64,
}

/// Makes the old number of each block, in the new order.
type Make = fn(&Task) -> Result<Vec<u32>>;

macro_rules! registry {
    ($($name:literal, $make:expr, $summary:literal;)*) => {
        /// Orderings by name, with a line about each.
        pub const NAMES: &[(&str, &str)] = &[$(($name, $summary)),*];

        fn make(name: &str) -> Option<Make> {
            match name {
                $($name => Some($make),)*
                _ => None,
            }
        }
    };
}

registry! {
    "natural", |task| Ok(natural::order(task)), "the order of the source";
    "rcm", |task| Ok(rcm::order(task)), "reverse Cuthill-McKee: small bandwidth";
    "red-black", red_black::order, "two colours, where two are enough: fewest levels on a seven-point grid";
    "multicolour", |task| Ok(multicolour::order(task)), "colour by colour, first fit: few levels";
    "nested-dissection", |task| Ok(nested_dissection::order(task)), "separators last: little fill, few levels";
    "min-degree", |task| Ok(min_degree::order(task)), "approximate minimum degree: little fill";
    "shortest-axis-last", shortest_axis_last::order, "axes of a box grid by length, the longest fastest";
    "random", |task| Ok(random::order(task)), "random order of the blocks; `random:SEED` from another seed than 1";
}

/// Seed of `random`.
const SEED: u64 = 1;

impl Default for Ordering {
    fn default() -> Self {
        Self { name: "natural", seed: SEED }
    }
}

impl fmt::Display for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            "random" => write!(f, "random:{}", self.seed),
            name => f.write_str(name),
        }
    }
}

impl FromStr for Ordering {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (if text == "none" { "natural" } else { text }, None),
        };
        let entry = NAMES.iter().find(|(known, _)| *known == name).ok_or_else(|| {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            Error::unknown("ordering", text, &known)
        })?;
        let seed = match parameter {
            None => SEED,
            Some(seed) if name == "random" => seed.parse().map_err(|_| {
                Error::input(format!("ordering `{text}`: `{seed}` is not a seed"))
                    .hint("a seed is an integer from 0 to 2^64 - 1")
            })?,
            Some(_) => {
                return Err(Error::input(format!(
                    "ordering `{text}`: `{name}` takes no parameter"
                )));
            }
        };
        Ok(Self { name: entry.0, seed })
    }
}

impl From<Ordering> for String {
    fn from(ordering: Ordering) -> Self {
        ordering.to_string()
    }
}

// derived, it would borrow the name from the text
impl<'de> Deserialize<'de> for Ordering {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// What is to be ordered.
struct Task<'a> {
    matrix: &'a Csr,
    /// Extents of the box that the source knows.
    grid: Option<[usize; 3]>,
    block_size: usize,
    seed: u64,
}

impl Task<'_> {
    /// Blocks, a last one that is not full among them.
    fn blocks(&self) -> usize {
        self.matrix.rows().div_ceil(self.block_size)
    }

    /// Blocks that are full.
    fn full_blocks(&self) -> usize {
        self.matrix.rows() / self.block_size
    }

    /// Which blocks are coupled, in either direction; every diagonal is there.
    fn graph(&self) -> Pattern<'static> {
        let blocks = block_pattern_on(Threads::Pool, self.matrix, self.block_size);
        symmetrised(Threads::Pool, &blocks).into_owned()
    }

    /// The box whose points the blocks are, x fastest: that of the source, or the one that the
    /// pattern shows.
    fn grid(&self) -> Option<[usize; 3]> {
        if self.blocks() > self.full_blocks() {
            return None;
        }
        let fits = |extents: &[usize; 3]| extents.iter().product::<usize>() == self.blocks();
        self.grid
            .filter(fits)
            .or_else(|| detect_grid(self.matrix, self.block_size).map(|grid| grid.size))
    }
}

impl Ordering {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_natural(self) -> bool {
        self.name == "natural"
    }

    /// Name in the registry.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The old number of each unknown of a square matrix, in the new order. `grid` has the extents of
    /// the box whose points the blocks are, where the source knows them.
    ///
    /// The `block_size` unknowns of a block stay together and in their order; a last block that is
    /// not full stays the last.
    ///
    /// # Errors
    /// When the system has no such order: a grid or a number of colours that it must have.
    pub fn order(
        self,
        matrix: &Csr,
        grid: Option<[usize; 3]>,
        block_size: usize,
    ) -> Result<Vec<u32>> {
        let task = Task { matrix, grid, block_size, seed: self.seed };
        let make = make(self.name).expect("every name in the registry has its file");
        let mut blocks = make(&task)?;
        debug_assert_eq!(blocks.len(), task.blocks());
        if let Some(last) = (task.full_blocks()..task.blocks()).next() {
            blocks.retain(|&block| block as usize != last);
            blocks.push(last as u32);
        }
        let (b, n) = (block_size, matrix.rows());
        let unknowns = blocks.into_iter().flat_map(|i| i as usize * b..(i as usize + 1) * b);
        Ok(unknowns.take(n).map(|i| i as u32).collect())
    }
}

/// The entries of `v` in another order.
#[must_use]
pub fn reordered(v: &[f64], order: &[u32]) -> Vec<f64> {
    order.iter().map(|&old| v[old as usize]).collect()
}

/// The inverse of [`reordered`]: a solution of the reordered system in the order of the source.
#[must_use]
pub fn restored(v: &[f64], order: &[u32]) -> Vec<f64> {
    let mut of_source = vec![0.0; v.len()];
    for (&value, &old) in v.iter().zip(order) {
        of_source[old as usize] = value;
    }
    of_source
}

#[cfg(test)]
mod tests;
