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
/// Written as its name; one that is seeded also with its seed, `name:SEED`, 1 without it. Records of before
/// orderings had names say `none` for the order of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
pub struct Ordering {
    name: &'static str,
    /// Of one that is seeded.
    seed: u64,
}

/// Makes the old number of each block, in the new order.
type Make = fn(&Task) -> Result<Vec<u32>>;

/// What an ordering is: what it is called and what it can do.
struct Method {
    name: &'static str,
    /// A line about it.
    summary: &'static str,
    make: Make,
    /// Another name that records and files may have.
    alias: Option<&'static str>,
    /// Whether it takes a seed: `name:SEED`.
    seeded: bool,
    /// Whether the blocks of a box grid remain those of a box, axis by axis.
    keeps_grids: bool,
    /// Where `advise` tries it.
    advised: Option<Advised>,
}

/// What `advise` is told of an ordering.
struct Advised {
    /// One that is as good for nothing where there is this one.
    instead_of: Option<&'static str>,
}

impl Method {
    /// What most are.
    const PLAIN: Self = Self {
        name: "",
        summary: "",
        make: |task| Ok(natural::order(task)),
        alias: None,
        seeded: false,
        keeps_grids: false,
        advised: None,
    };
}

macro_rules! registry {
    ($($module:ident)*) => {
        const METHODS: &[Method] = &[$($module::METHOD),*];

        /// Orderings by name, with a line about each.
        pub const NAMES: &[(&str, &str)] = &[$(($module::METHOD.name, $module::METHOD.summary)),*];
    };
}

registry! {
    natural shortest_axis_last rcm red_black multicolour nested_dissection min_degree random
}

/// The ordering called `name`, one in the registry.
fn method(name: &str) -> &'static Method {
    METHODS.iter().find(|method| method.name == name).expect("a name in the registry")
}

/// Orderings that `advise` tries, each with the one that it makes needless.
pub fn advised() -> impl Iterator<Item = (Ordering, Option<&'static str>)> {
    let of = |method: &Method| {
        let Advised { instead_of } = method.advised.as_ref()?;
        Some((Ordering { name: method.name, seed: SEED }, *instead_of))
    };
    METHODS.iter().filter_map(of)
}

/// Seed where none is given.
const SEED: u64 = 1;

impl Default for Ordering {
    fn default() -> Self {
        Self { name: natural::METHOD.name, seed: SEED }
    }
}

impl fmt::Display for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if method(self.name).seeded {
            write!(f, ":{}", self.seed)?;
        }
        Ok(())
    }
}

impl FromStr for Ordering {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let called = |method: &&Method| {
            method.name == name || (parameter.is_none() && method.alias == Some(name))
        };
        let method = METHODS.iter().find(called).ok_or_else(|| {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            Error::unknown("ordering", text, &known)
        })?;
        let seed = match parameter {
            None => SEED,
            Some(seed) if method.seeded => seed.parse().map_err(|_| {
                Error::input(format!("ordering `{text}`: `{seed}` is not a seed"))
                    .hint("a seed is an integer from 0 to 2^64 - 1")
            })?,
            Some(_) => {
                return Err(Error::input(format!(
                    "ordering `{text}`: `{name}` takes no parameter"
                )));
            }
        };
        Ok(Self { name: method.name, seed })
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
    seed: u64,
}

impl Task<'_> {
    /// Blocks, a last one that is not full among them.
    fn blocks(&self) -> usize {
        self.matrix.rows().div_ceil(self.matrix.block_size())
    }

    /// Blocks that are full.
    fn full_blocks(&self) -> usize {
        self.matrix.rows() / self.matrix.block_size()
    }

    /// Which blocks are coupled, in either direction; every diagonal is there.
    fn graph(&self) -> Pattern<'static> {
        let blocks = block_pattern_on(Threads::Pool, self.matrix);
        symmetrised(Threads::Pool, &blocks).into_owned()
    }

    /// The box whose points the blocks are, x fastest: that of the source, or the one that the
    /// pattern shows.
    fn grid(&self) -> Option<[usize; 3]> {
        if self.blocks() > self.full_blocks() {
            return None;
        }
        let fits = |extents: &[usize; 3]| extents.iter().product::<usize>() == self.blocks();
        self.grid.filter(fits).or_else(|| detect_grid(self.matrix).map(|grid| grid.size))
    }
}

impl Ordering {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_natural(self) -> bool {
        self.name == natural::METHOD.name
    }

    /// Whether the blocks of a box grid remain those of a box, axis by axis.
    #[must_use]
    pub fn keeps_grids(self) -> bool {
        method(self.name).keeps_grids
    }

    /// Name in the registry.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The old number of each unknown of a square matrix, in the new order. `grid` has the extents of
    /// the box whose points the blocks are, where the source knows them.
    ///
    /// The unknowns of a block of the matrix stay together and in their order; a last block that is not
    /// full stays the last.
    ///
    /// # Errors
    /// When the system has no such order: a grid or a number of colours that it must have.
    pub fn order(self, matrix: &Csr, grid: Option<[usize; 3]>) -> Result<Vec<u32>> {
        let task = Task { matrix, grid, seed: self.seed };
        let mut blocks = (method(self.name).make)(&task)?;
        debug_assert_eq!(blocks.len(), task.blocks());
        if let Some(last) = (task.full_blocks()..task.blocks()).next() {
            blocks.retain(|&block| block as usize != last);
            blocks.push(last as u32);
        }
        let (b, n) = (matrix.block_size(), matrix.rows());
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
