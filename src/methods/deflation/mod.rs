//! Deflation, the second level of a preconditioner (Gupta et al. 2015; Tang, Nabben, Vuik and Erlangga
//! 2009).
//!
//! With the vectors Z and `E = Z' A Z` it is `P = I - A Z E^-1 Z'`: what A makes of Z is taken out of
//! every residual, and the solution's part in Z comes back at the end. Z is never stored: the sums over
//! its pieces are products with a matrix of ones, and `A Z` has entries at interfaces alone.

mod choice;
mod coarse;
mod subdomains;
mod vectors;

use std::cell::RefCell;
use std::sync::Arc;

use crate::base::choices::Format;
use crate::base::error::Result;
use crate::base::measure::spans::span;
use crate::base::threads::Threads;
use crate::compute::krylov::Projection;
use crate::compute::preconditioner::Preconditioner;
use crate::compute::{Backend, Bytes, Operations};
use crate::matrix::Csr;
use crate::matrix::pattern::Pattern;
pub use choice::Choice;
pub(crate) use choice::OVER_RANKS;
use coarse::Coarse;
pub use subdomains::SubdomainDeflation;
pub use vectors::Vectors;

/// Unknowns that are added up together before their sums are: enough parts for every multiprocessor.
const PART: usize = 4096;

/// Deflation by some vectors on a backend.
pub struct Deflation<K: Backend> {
    count: usize,
    dependent: usize,
    /// Sums over the parts of pieces.
    parts: K::Matrix,
    coarse: Coarse<K>,
    /// `A Z`, and `-Z`.
    az: K::Matrix,
    minus_z: K::Matrix,
    scratch: RefCell<Scratch<K>>,
}

/// Vectors of the length of the parts, of the pieces and of the system.
struct Scratch<K: Backend> {
    sums: K::Vector,
    y: K::Vector,
    other: K::Vector,
}

impl<K: Backend> Deflation<K> {
    /// For a matrix and vectors of its order.
    ///
    /// # Errors
    /// When memory is short, or E cannot be factored.
    pub fn new(k: &K, a: &Csr, vectors: &Vectors) -> Result<Self> {
        let count = vectors.count;
        let stored = |m: Csr| span("stored", || k.matrix(&Arc::new(m), Format::Csr));
        let az = span("A Z", || k.on_host(|threads| vectors::applied(threads, a, vectors)))?;
        let e = span("E", || k.on_host(|threads| coarse::matrix(threads, &az, vectors)))?;
        let [parts, of_parts] = span("sums", || k.on_host(|threads| sums(threads, vectors)))?;
        let part_count = parts.rows();
        let (coarse, dependent) = span("inverse of E", || Coarse::new(k, &e, of_parts))?;
        let minus_z = span("-Z", || k.on_host(|threads| vectors::negative(threads, vectors)));
        let scratch = Scratch {
            sums: k.vector(part_count)?,
            y: k.vector(count)?,
            other: k.vector(a.rows())?,
        };
        Ok(Self {
            count,
            dependent,
            parts: stored(parts)?,
            coarse,
            az: stored(az)?,
            minus_z: stored(minus_z)?,
            scratch: RefCell::new(scratch),
        })
    }

    /// Vectors.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Vectors that depend on others and play no part.
    pub fn dependent(&self) -> usize {
        self.dependent
    }
}

impl<K: Backend> Projection<K> for Deflation<K> {
    fn project(&self, k: &K, v: &mut K::Vector) {
        let Scratch { sums, y, other } = &mut *self.scratch.borrow_mut();
        k.spmv(&self.parts, v, sums);
        self.coarse.apply(k, sums, y);
        k.subtract(&self.az, y, v, other);
    }

    fn correct(&self, k: &K, r: &K::Vector, x: &mut K::Vector) {
        {
            let Scratch { sums, y, .. } = &mut *self.scratch.borrow_mut();
            k.spmv(&self.parts, r, sums);
            self.coarse.apply(k, sums, y);
        }
        self.correct_projected(k, x);
    }

    fn correct_projected(&self, k: &K, x: &mut K::Vector) {
        let Scratch { y, other, .. } = &mut *self.scratch.borrow_mut();
        k.subtract(&self.minus_z, y, x, other);
    }

    fn bytes(&self, k: &K) -> Bytes {
        let [parts, az, z] = [&self.parts, &self.az, &self.minus_z].map(|m| k.matrix_bytes(m));
        Bytes {
            held: parts.held + az.held + z.held,
            moved: parts.moved + self.coarse.moved(k) + k.subtract_moved(&self.az),
        }
    }
}

/// Ones for the unknowns of each part of a piece, and for the parts of each piece.
fn sums(threads: Threads, vectors: &Vectors) -> Result<[Csr; 2]> {
    let (unknowns, start) = vectors::by_piece(threads, vectors);
    let (mut ends, mut pieces) = (vec![0_u32], vec![0_u32]);
    for piece in start.windows(2) {
        let mut at = piece[0];
        while at < piece[1] {
            at = (at + PART).min(piece[1]);
            ends.push(at as u32);
        }
        pieces.push(ends.len() as u32 - 1);
    }
    let count = ends.len() - 1;
    let parts = Csr::constant(threads, Pattern::new(ends, unknowns), vectors.of.len(), 1.0);
    let of_parts =
        Csr::new(vectors.count, count, pieces, (0..count as u32).collect(), vec![1.0; count])?;
    Ok([parts, of_parts])
}

/// A preconditioner and deflation as one, for methods that know of no deflation: A-DEF1 of Tang et al.,
/// `M^-1 P + Z E^-1 Z'`.
pub struct Adapted<'a, K: Operations> {
    /// The first level.
    pub m: &'a dyn Preconditioner<K>,
    /// The second.
    pub deflation: &'a dyn Projection<K>,
    /// A vector of the order of the system.
    pub scratch: RefCell<K::Vector>,
}

impl<K: Operations> Preconditioner<K> for Adapted<'_, K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        let projected = &mut *self.scratch.borrow_mut();
        k.copy(r, projected);
        self.deflation.project(k, projected);
        self.m.apply(k, projected, z);
        self.deflation.correct_projected(k, z);
    }

    fn bytes(&self, k: &K) -> Bytes {
        let (m, d) = (self.m.bytes(k), self.deflation.bytes(k));
        Bytes { held: m.held + d.held, moved: m.moved + d.moved }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
