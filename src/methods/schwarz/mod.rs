//! Preconditioners over subdomains: block Jacobi and restricted additive Schwarz with overlap (Cai and Sarkis
//! 1999), where each subdomain has one of its own, any in the registry; and those of the whole matrix, [`exact`] factors
//! and [`products`].

pub mod exact;
pub(crate) mod interfaces;
pub mod order;
pub mod products;
mod rows;

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::base::memory;
use crate::base::parse::{as_text, whole};
use crate::compute::Bytes;
use crate::compute::distributed::halo::Halo;
use crate::compute::distributed::part::Part;
use crate::compute::distributed::{Distributed, Local};
use crate::compute::preconditioner::{FactorSize, Preconditioner, SetupFailure};
use crate::matrix::Csr;
use crate::methods::precond::{self, Kept, Phase, Phases, Ready, Settings, Setup, jacobi};

/// A preconditioner over ranks that takes new values.
pub trait Renewed<K: Local>: Preconditioner<Distributed<K>> {
    /// Takes the values of `a`, which has the pattern, and the rows, of the part that it was made of; collective. What
    /// was kept on this rank.
    ///
    /// # Errors
    /// Those of the setup; the other ranks do not hear of them. Then it is of no use.
    fn renew(
        &mut self,
        k: &Distributed<K>,
        a: &Part,
        settings: &Settings,
        phases: &mut dyn Phases,
    ) -> Result<Kept, SetupFailure>;
}

/// The preconditioners of a rank's subdomains.
pub struct Schwarz<K: Local> {
    parts: Vec<Subdomain<K>>,
    /// Layers of block rows around each.
    overlap: usize,
    /// Of the transposed matrix.
    transposed: bool,
    /// Values of other ranks that the overlaps take.
    halo: Halo<K>,
}

/// A subdomain with its overlap.
struct Subdomain<K: Local> {
    m: Box<dyn Preconditioner<K>>,
    /// Where the subdomain and its overlap differ from all that the rank has.
    extended: Option<Extended<K>>,
}

struct Extended<K: Local> {
    /// Unknowns, and of each its place in the rank's vector, or behind that among the ghost values.
    count: usize,
    places: K::Places,
    /// Places of the subdomain's own unknowns among these, and the first of them in the rank's vector.
    own: K::Places,
    first: usize,
    scratch: RefCell<[K::Vector; 2]>,
}

/// Which preconditioners subdomains have, written `jacobi`, `ras:D`, `exact`, `exact:interface`, `exact:interface:M` or
/// `exact:natural`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Choice {
    /// Block Jacobi.
    #[default]
    Jacobi,
    /// Restricted additive Schwarz with so many layers of overlap.
    Restricted(usize),
    /// One preconditioner of the whole matrix: products, or block ILU(k) in one of the orders that follow.
    Exact,
    /// Block ILU(k), interfaces last, with so many more levels of fill in their rows and columns.
    Interface(usize),
    /// The same in the given order.
    Natural,
}

const EXACT: &str = "exact";
const INTERFACE: &str = "exact:interface";
const NATURAL: &str = "exact:natural";

/// Most layers of overlap.
const MOST_LAYERS: usize = 100;

/// Most levels of fill that interfaces have more than other rows.
const MOST_LEVELS: usize = 4;

impl Choice {
    /// Layers of block rows around those of a rank that it must know for fill level k.
    pub fn layers(self, k: usize) -> usize {
        match self {
            Self::Jacobi => 0,
            Self::Restricted(layers) => layers,
            Self::Exact | Self::Interface(_) | Self::Natural => order::layers(k),
        }
    }

    /// Whether there is one preconditioner of the whole matrix.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Exact | Self::Interface(_) | Self::Natural)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jacobi => f.write_str(jacobi::METHOD.name),
            Self::Restricted(layers) => write!(f, "ras:{layers}"),
            Self::Exact => f.write_str(EXACT),
            Self::Interface(0) => f.write_str(INTERFACE),
            Self::Interface(levels) => write!(f, "{INTERFACE}:{levels}"),
            Self::Natural => f.write_str(NATURAL),
        }
    }
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            None if text == jacobi::METHOD.name => Ok(Self::Jacobi),
            None if text == EXACT => Ok(Self::Exact),
            _ if text == INTERFACE => Ok(Self::Interface(0)),
            _ if text == NATURAL => Ok(Self::Natural),
            Some(("ras", layers)) => whole(layers, 1, MOST_LAYERS)
                .map(Self::Restricted)
                .map_err(|e| Error::input(format!("schwarz `{text}`: {}", e.message()))),
            Some((EXACT, of)) if let Some(levels) = of.strip_prefix("interface:") => {
                whole(levels, 0, MOST_LEVELS)
                    .map(Self::Interface)
                    .map_err(|e| Error::input(format!("schwarz `{text}`: {}", e.message())))
            }
            _ => Err(Error::unknown(
                "schwarz",
                text,
                &[jacobi::METHOD.name, "ras:D", EXACT, INTERFACE, "exact:interface:M", NATURAL],
            )),
        }
    }
}

as_text!(Choice);

/// Block rows of a range and of `overlap` layers around it, ascending. `inside` has a place for each block row,
/// all false, and is left so.
fn with_overlap(a: &Csr, rows: Range<u32>, overlap: usize, inside: &mut [bool]) -> Vec<u32> {
    let b = a.block_size() as u32;
    let (mut all, mut layer): (Vec<u32>, Vec<u32>) = (rows.clone().collect(), rows.collect());
    for &row in &all {
        inside[row as usize] = true;
    }
    for _ in 0..overlap {
        let mut next = Vec::new();
        for row in layer.iter().flat_map(|&block| block * b..(block + 1) * b) {
            for &column in a.row(row as usize).0 {
                let block = column / b;
                if !std::mem::replace(&mut inside[block as usize], true) {
                    next.push(block);
                }
            }
        }
        all.extend(&next);
        layer = next;
    }
    for &row in &all {
        inside[row as usize] = false;
    }
    all.sort_unstable();
    all
}

/// Rows and columns `blocks` of A, ascending, most of which are `near`.
fn principal(a: &Csr, blocks: &[u32], near: Range<u32>) -> Result<Csr> {
    let b = a.block_size();
    let first = blocks.partition_point(|&row| row < near.start) as u32;
    let number = |block: u32| {
        let far = || blocks.binary_search(&block).ok().map(|at| at as u32);
        if near.contains(&block) { Some(first + block - near.start) } else { far() }
    };
    let of_near = a.row_ptr()[near.end as usize * b] - a.row_ptr()[near.start as usize * b];
    let (mut row_ptr, mut col_ind, mut values) =
        (vec![0], memory::with_capacity(of_near as usize), memory::with_capacity(of_near as usize));
    for row in blocks.iter().flat_map(|&block| block as usize * b..(block as usize + 1) * b) {
        let (of_row, entries) = a.row(row);
        for (&column, &value) in of_row.iter().zip(entries) {
            if let Some(at) = number(column / b as u32) {
                col_ind.push(at * b as u32 + column % b as u32);
                values.push(value);
            }
        }
        row_ptr.push(col_ind.len() as u32);
    }
    let n = row_ptr.len() - 1;
    Ok(Csr::new(n, n, row_ptr, col_ind, values)?.in_blocks(b))
}

impl<K: Local + 'static> Schwarz<K> {
    /// Sets up `setup` on each subdomain of this rank with `overlap` layers of block rows around it; 0 is block
    /// Jacobi. `a` is the matrix in the order of the layout; rows outside this rank and its overlap are not read.
    /// Collective.
    ///
    /// # Errors
    /// When a subdomain has no such preconditioner; the other ranks do not hear of it.
    pub fn new(
        k: &Distributed<K>,
        a: &Part,
        overlap: usize,
        setup: fn(Setup<K>) -> Ready<K>,
        settings: &Settings,
        phases: &mut dyn Phases,
    ) -> Result<Self, SetupFailure> {
        Self::both(k, a, (overlap, false), setup, settings, phases).map(|(m, _)| m)
    }

    /// Block Jacobi and its transpose, each of which [`new`](Self::new) sets up.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn with_transposed(
        k: &Distributed<K>,
        a: &Part,
        setup: fn(Setup<K>) -> Ready<K>,
        settings: &Settings,
        phases: &mut dyn Phases,
    ) -> Result<(Self, Self), SetupFailure> {
        let (m, other) = Self::both(k, a, (0, true), setup, settings, phases)?;
        Ok((m, other.expect("asked for")))
    }

    fn both(
        k: &Distributed<K>,
        part: &Part,
        (overlap, transposed): (usize, bool),
        setup: fn(Setup<K>) -> Ready<K>,
        settings: &Settings,
        phases: &mut dyn Phases,
    ) -> Result<(Self, Option<Self>), SetupFailure> {
        phases.begin(Phase::Analysis);
        let (layout, a, b) = (k.layout(), part.matrix(), part.block_size());
        let rank = k.communicator().rank();
        let mine = part.places();
        let blocks = blocks(part, k.starts(), overlap);
        let mut others: Vec<u32> = blocks.iter().flat_map(|(_, rows)| rows).copied().collect();
        others.retain(|&row| !mine.contains(&(row as usize)));
        others.sort_unstable();
        others.dedup();
        let ghosts: Vec<u64> = others.iter().map(|&row| part.number(row as usize)).collect();
        let halo = || Halo::new(k, &ghosts, b, |i| i);
        let (of_m, of_other) = (halo(), transposed.then(halo));
        let (of_m, ghost_places) = of_m?;
        let of_other = of_other.transpose()?.map(|(halo, _)| halo);
        let n = layout.unknowns(rank).len();
        let place = |row: u32| match others.binary_search(&row) {
            Ok(ghost) => n + ghost_places[ghost] as usize * b,
            Err(_) => (row as usize - mine.start) * b,
        };
        let (mut parts, mut others) = (Vec::with_capacity(blocks.len()), Vec::new());
        for (s, (own, blocks)) in blocks.iter().enumerate() {
            let matrix = Arc::new(principal(a, blocks, own.clone())?);
            let number = layout.subdomains(rank).start + s;
            let mirrored = transposed.then(|| Arc::new(matrix.transposed()));
            let both = (&matrix, mirrored.as_ref());
            let (m, other) = precond::transposed::set_up(k.local(), setup, both, settings, phases)
                .map_err(|why| of_subdomain(why, number, layout.count()))?;
            let [first, end] = [k.starts()[s], k.starts()[s + 1]];
            let extended = || -> Result<_> {
                if [0, n] == [first, end] && blocks.len() * b == n {
                    return Ok(None);
                }
                let unknowns = |at: usize| (at..at + b).map(|i| i as u32);
                let places: Vec<u32> = blocks.iter().flat_map(|&r| unknowns(place(r))).collect();
                let is_own = |i: &u32| (first..end).contains(&(places[*i as usize] as usize));
                let own = (0..places.len() as u32).filter(is_own).collect();
                let (local, count) = (k.local(), places.len());
                let scratch = RefCell::new([local.vector(count)?, local.vector(count)?]);
                let (places, own) = (local.places(places)?, local.places(own)?);
                Ok(Some(Extended { count, places, own, first, scratch }))
            };
            parts.push(Subdomain { m, extended: extended()? });
            if let Some(m) = other {
                others.push(Subdomain { m, extended: extended()? });
            }
        }
        let other = of_other.map(|halo| Self { parts: others, overlap, transposed, halo });
        Ok((Self { parts, overlap, transposed: false, halo: of_m }, other))
    }
}

/// Block rows of each subdomain of a rank, which begin at the unknowns `starts`, and these with `overlap` layers around
/// them: places in the part.
fn blocks(part: &Part, starts: &[usize], overlap: usize) -> Vec<(Range<u32>, Vec<u32>)> {
    let (a, b, mine) = (part.matrix(), part.block_size(), part.places());
    let mut inside = vec![false; part.blocks()];
    let at = |start: usize| (mine.start + start / b) as u32;
    let own = starts.windows(2).map(|w| at(w[0])..at(w[1]));
    own.map(|own| (own.clone(), with_overlap(a, own, overlap, &mut inside))).collect()
}

/// A breakdown with the number of its subdomain, where there are several.
fn of_subdomain(why: SetupFailure, number: usize, count: usize) -> SetupFailure {
    match why {
        SetupFailure::Breakdown(what) if count > 1 => {
            SetupFailure::Broken(format!("{what} of subdomain {number}"))
        }
        other => other,
    }
}

impl<K: Local + 'static> Renewed<K> for Schwarz<K> {
    fn renew(
        &mut self,
        k: &Distributed<K>,
        part: &Part,
        settings: &Settings,
        phases: &mut dyn Phases,
    ) -> Result<Kept, SetupFailure> {
        let (layout, mut kept) = (k.layout(), Kept::Analysis);
        let first = layout.subdomains(k.communicator().rank()).start;
        let blocks = blocks(part, k.starts(), self.overlap);
        for (s, (Subdomain { m, .. }, (own, blocks))) in
            self.parts.iter_mut().zip(blocks).enumerate()
        {
            let mut matrix = principal(part.matrix(), &blocks, own)?;
            if self.transposed {
                matrix = matrix.transposed();
            }
            let renewed = precond::renew(m, k.local(), &Arc::new(matrix), settings, phases);
            kept = kept.min(renewed.map_err(|e| of_subdomain(e, first + s, layout.count()))?);
        }
        Ok(kept)
    }
}

impl<K: Local> Preconditioner<Distributed<K>> for Schwarz<K> {
    fn apply(&self, k: &Distributed<K>, r: &K::Vector, z: &mut K::Vector) {
        let local = k.local();
        self.halo.start(local, r);
        self.halo.finish(local, |ghosts| {
            for Subdomain { m, extended } in &self.parts {
                let Some(extended) = extended else {
                    m.apply(local, r, z);
                    continue;
                };
                let [from, to] = &mut *extended.scratch.borrow_mut();
                local.extend(r, ghosts, &extended.places, from);
                m.apply(local, from, to);
                local.restrict(to, &extended.own, extended.first, z);
            }
        });
    }

    fn bytes(&self, k: &Distributed<K>) -> Bytes {
        let of = self.parts.iter().map(|part| {
            let of = part.m.bytes(k.local());
            // both vectors are written and read, with an index each
            let copied = part.extended.as_ref().map_or(0, |e| e.count);
            Bytes { held: of.held + 20 * copied, moved: of.moved + 40 * copied }
        });
        let [held, moved] = of.fold([0, 0], |[h, m], b| [h + b.held, m + b.moved]);
        k.bytes_of_all(Bytes { held, moved })
    }

    fn numeric_bytes(&self, k: &Distributed<K>) -> usize {
        let own: usize = self.parts.iter().map(|part| part.m.numeric_bytes(k.local())).sum();
        k.sum(own as f64) as usize
    }

    /// Sums over all subdomains, and their largest numbers of levels.
    fn size(&self, k: &Distributed<K>) -> FactorSize {
        let sizes: Vec<FactorSize> = self.parts.iter().map(|part| part.m.size(k.local())).collect();
        let sum = |of: fn(&FactorSize) -> Option<usize>| {
            let own: usize = sizes.iter().filter_map(of).sum();
            Some(k.sum(own as f64) as usize).filter(|&sum| sum > 0)
        };
        let largest = |of: fn(&FactorSize) -> Option<usize>| {
            let own = sizes.iter().filter_map(of).max().unwrap_or(0);
            Some(k.communicator().largest(own as f64) as usize).filter(|&largest| largest > 0)
        };
        // each searches its own
        let shift_used = sizes.iter().any(|size| size.shift_used.is_some());
        let shift = sizes.iter().filter_map(|size| size.shift_used).fold(0.0, f64::max);
        FactorSize {
            factor_blocks: sum(|size| size.factor_blocks),
            factor_entries: sum(|size| size.factor_entries),
            levels_lower: largest(|size| size.levels_lower),
            levels_upper: largest(|size| size.levels_upper),
            shift_used: shift_used.then(|| k.communicator().largest(shift)),
            ..FactorSize::default()
        }
    }
}

#[cfg(test)]
mod tests;
