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
mod subdomains;
mod twisted;

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::matrix::Csr;
use crate::matrix::pattern::{Pattern, block_pattern_on};
use crate::symbolic::grid::box_of_blocks;
use crate::symbolic::symmetrised;

/// How the unknowns of a system are renumbered, block by block.
///
/// Written as its name, and its parameter where it has one: `random:7`, `subdomains:8`. Records of before orderings had
/// names say `none` for the order of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
pub struct Ordering {
    name: &'static str,
    parameter: Parameter,
}

/// What an ordering is given beside the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Parameter {
    None,
    Seed(u64),
    /// From both ends alone.
    Ends,
    Division(subdomains::Division),
}

/// Makes the old number of each block, in the new order.
type Make = fn(&Task) -> Result<Vec<u32>>;

/// Reads what stands behind a name and a colon, if anything does.
type Parse = fn(Option<&str>) -> Result<Parameter>;

/// What an ordering is: what it is called and what it can do.
struct Method {
    name: &'static str,
    /// A line about it.
    summary: &'static str,
    make: Make,
    /// Another name that records and files may have.
    alias: Option<&'static str>,
    /// Reads what stands behind its name and a colon, if it takes anything.
    parameter: Option<Parse>,
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
        parameter: None,
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
    natural shortest_axis_last rcm red_black multicolour nested_dissection min_degree twisted random subdomains
}

/// The ordering called `name`, one in the registry.
fn method(name: &str) -> &'static Method {
    METHODS.iter().find(|method| method.name == name).expect("a name in the registry")
}

/// Orderings that `advise` tries, each with the one that it makes needless.
pub fn advised() -> impl Iterator<Item = (Ordering, Option<&'static str>)> {
    let of = |method: &Method| {
        let Advised { instead_of } = method.advised.as_ref()?;
        Some((Ordering { name: method.name, parameter: Parameter::None }, *instead_of))
    };
    METHODS.iter().filter_map(of)
}

impl Default for Ordering {
    fn default() -> Self {
        Self { name: natural::METHOD.name, parameter: Parameter::None }
    }
}

impl fmt::Display for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match self.parameter {
            Parameter::None => Ok(()),
            Parameter::Seed(seed) => write!(f, ":{seed}"),
            Parameter::Ends => f.write_str(":ends"),
            Parameter::Division(division) => write!(f, ":{division}"),
        }
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
        let read = match (method.parameter, parameter) {
            (Some(read), given) => read(given),
            (None, None) => Ok(Parameter::None),
            (None, Some(_)) => Err(Error::input(format!("`{name}` takes no parameter"))),
        };
        let parameter = read.map_err(|why| {
            let named = Error::input(format!("ordering `{text}`: {}", why.message()));
            why.hint_text().map_or(named.clone(), |hint| named.hint(hint))
        })?;
        Ok(Self { name: method.name, parameter })
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
    parameter: Parameter,
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
        box_of_blocks(self.matrix, self.grid)
    }
}

impl Ordering {
    /// Whether nothing changes.
    #[must_use]
    pub(crate) fn is_natural(self) -> bool {
        self.name == natural::METHOD.name
    }

    /// Whether the blocks of a box grid remain those of a box, axis by axis.
    #[must_use]
    pub(crate) fn keeps_grids(self) -> bool {
        method(self.name).keeps_grids
    }

    /// Name in the registry.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The same for factors of fill level k, where it depends on that.
    #[must_use]
    pub(crate) fn for_fill(self, k: usize) -> Self {
        match self.parameter {
            Parameter::Division(division) => {
                let parameter = Parameter::Division(division.for_fill(k));
                Self { parameter, ..self }
            }
            _ => self,
        }
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
        let task = Task { matrix, grid, parameter: self.parameter };
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
pub(crate) fn reordered(v: &[f64], order: &[u32]) -> Vec<f64> {
    let columns = columns(v, order);
    let rows = order.iter().map(|&old| &v[old as usize * columns..][..columns]);
    rows.flatten().copied().collect()
}

/// The inverse of [`reordered`]: a solution of the reordered system in the order of the source.
#[must_use]
pub(crate) fn restored(v: &[f64], order: &[u32]) -> Vec<f64> {
    let columns = columns(v, order);
    let mut of_source = vec![0.0; v.len()];
    for (row, &old) in v.chunks_exact(columns).zip(order) {
        of_source[old as usize * columns..][..columns].copy_from_slice(row);
    }
    of_source
}

/// Numbers of an unknown.
fn columns(v: &[f64], order: &[u32]) -> usize {
    (v.len() / order.len().max(1)).max(1)
}

#[cfg(test)]
mod tests;
