//! What a device of a rank does beside the operations of one alone: sums by subdomain, and values for others.

use std::ops::Range;

use crate::compute::{Backend, Breakdown};
use crate::matrix::Csr;

/// Rows of a matrix that have entries outside their subdomain, in compressed rows of unknowns; columns count in
/// the ghost values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coupling {
    /// Unknowns of this rank, ascending.
    pub rows: Vec<u32>,
    /// Start of each row's entries; one more than `rows`.
    pub row_ptr: Vec<u32>,
    /// Places among the ghost values, in the order of the global columns.
    pub columns: Vec<u32>,
    /// Values.
    pub values: Vec<f64>,
}

impl Coupling {
    /// Bytes held, all of which a product reads; it reads and writes y there, too.
    pub fn bytes(&self) -> usize {
        12 * self.columns.len() + 8 * self.rows.len()
    }
}

/// The device of a rank. `starts` are the first unknowns of the rank's subdomains and their end; sums are those
/// that one device would make of the subdomain alone, bit for bit.
pub trait Local: Backend {
    /// `out[s] = x . y` over subdomain s.
    fn partial_dots(&self, x: &Self::Vector, y: &Self::Vector, starts: &[usize], out: &mut [f64]);
    /// `out[j][s] = basis[j] . w` over subdomain s.
    fn partial_multi_dots(
        &self,
        basis: &[Self::Vector],
        w: &Self::Vector,
        starts: &[usize],
        out: &mut [f64],
    );
    /// `w -= sum_j coef[j] basis[j]`; `out[s] = w . w` over subdomain s.
    fn partial_multi_axpy(
        &self,
        basis: &[Self::Vector],
        coef: &[f64],
        w: &mut Self::Vector,
        starts: &[usize],
        out: &mut [f64],
    );
    /// `out[i] = x[places[i]]`.
    fn gather(&self, x: &Self::Vector, places: &[u32], out: &mut [f64]);
    /// `y += sign C g`.
    fn add_coupling(&self, c: &Coupling, sign: f64, ghosts: &[f64], y: &mut Self::Vector);
    /// `to[i]` is the unknown `places[i]` of `from`, and behind its end one of `ghosts`.
    fn extend(&self, from: &Self::Vector, ghosts: &[f64], places: &[u32], to: &mut Self::Vector);
    /// `to[first + i] = from[places[i]]`.
    fn restrict(&self, from: &Self::Vector, places: &[u32], first: usize, to: &mut Self::Vector);
    /// `to[places[i]] = values[i]`.
    fn scatter(&self, values: &[f64], places: &[u32], to: &mut Self::Vector);
    /// `to[at + i] = from[range.start + i]`.
    fn copy_range(
        &self,
        from: &Self::Vector,
        range: Range<usize>,
        to: &mut Self::Vector,
        at: usize,
    );

    /// As [`ilu_factor`](crate::compute::Factors::ilu_factor), block rows `stages[0]`, then `stages[1]` and so on;
    /// `between(t, blocks)` follows stage t. Rows of no stage belong to others, who send what is needed of them.
    /// `shift` is that of every diagonal entry. Returns the first row of each range that has no pivot, after which
    /// the others go on; where all have one, the first of each that leaves the range of float32.
    fn ilu_factor_in_stages(
        &self,
        ilu: &mut Self::BlockIlu,
        a: &Csr,
        shift: f64,
        stages: &[Vec<Range<usize>>],
        between: &mut dyn FnMut(usize, &mut dyn FactorBlocks),
    ) -> Vec<Breakdown>;
    /// `L z = r` in the block rows `rows`; r has them from its unknown `at` on.
    fn ilu_forward(
        &self,
        ilu: &Self::BlockIlu,
        rows: Range<usize>,
        r: &Self::Vector,
        at: usize,
        z: &mut Self::Vector,
    );
    /// `U' z = D^-1 z` in the block rows `rows`.
    fn ilu_backward(&self, ilu: &Self::BlockIlu, rows: Range<usize>, z: &mut Self::Vector);
}

/// Blocks of factors while they are made. Place i is the inverse diagonal block of row i, place n + e of n rows the
/// entry e of U'.
pub trait FactorBlocks {
    /// Copies blocks, column-major.
    fn read(&mut self, places: &[u32], out: &mut [f64]);
    /// Sets blocks.
    fn write(&mut self, places: &[u32], from: &[f64]);
}
