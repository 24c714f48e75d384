//! Sparse matrices with which setups compute, on the host: [`Csr`] in blocks.

pub mod dense;
pub(crate) mod diagonal;
mod extracted;
pub(crate) mod gauss_seidel;
pub mod inverses;

use std::borrow::Cow;
use std::sync::Arc;

use super::Cpu;
use crate::base::choices::Format;
use crate::base::error::Result;
use crate::base::measure::memory_free;
use crate::base::threads::Threads;
use crate::compute::preconditioner::SetupFailure;
use crate::compute::setup::{Part, SetupOps, Triangles};
use crate::compute::{Platform, Storage};
use crate::matrix::pattern::{Pattern, block_pattern_on};
use crate::matrix::{Asymmetry, Csr};
use crate::symbolic::{FillPattern, power, scalar_order};
pub use extracted::extracted;

/// [`SetupOps::largest_row_sum`].
pub(crate) fn largest_row_sum(a: &Csr) -> f64 {
    let sum = |i: usize| a.row(i).1.iter().map(|v| v.abs()).sum::<f64>();
    (0..a.rows()).map(sum).fold(0.0, f64::max)
}

/// [`SetupOps::identity_minus`].
pub(crate) fn identity_minus(threads: Threads, a: &Csr) -> Result<Csr> {
    a.by_rows_like(
        threads,
        || (),
        |(), i, to| {
            let (columns, values) = a.row(i);
            let before = columns.partition_point(|&j| (j as usize) < i);
            (0..before).for_each(|at| to.push(columns[at], -values[at]));
            to.push(i as u32, 1.0);
            (before..columns.len()).for_each(|at| to.push(columns[at], -values[at]));
            Ok(())
        },
    )
}

/// [`SetupOps::permuted`].
pub(crate) fn permuted(threads: Threads, a: &Csr, order: &[u32]) -> Csr {
    let order = match a.block_size() {
        1 => Cow::Borrowed(order),
        b => Cow::Owned(scalar_order(order, b)),
    };
    a.permuted_on(threads, &order)
}

/// [`SetupOps::lower_power`], whose numbers may take `free` bytes. Blocks above the diagonal are there,
/// too: they are passed over.
pub(crate) fn lower_power(
    threads: Threads,
    a: &Csr,
    q: usize,
    free: usize,
) -> Result<Pattern<'static>, SetupFailure> {
    let each = 12 * a.block_size() * a.block_size();
    let too_large = |at: crate::matrix::pattern::TooLarge| SetupFailure::TooLarge {
        at,
        needed: each * at.entries,
        free,
    };
    power(threads, &block_pattern_on(threads, a), q, free / each).map_err(too_large)
}

impl SetupOps for Cpu {
    type Sparse = Csr;
    type Pattern = Pattern<'static>;

    fn sparse(&self, a: &Csr) -> Result<Csr> {
        Ok(a.clone())
    }

    fn entries(&self, a: &Csr) -> usize {
        a.nnz()
    }

    fn to_host(&self, a: &Csr) -> Result<Csr> {
        Ok(a.clone())
    }

    fn asymmetry(&self, a: &Csr, tolerance: f64) -> Result<Option<Asymmetry>> {
        Ok(self.on_host(|_| a.asymmetry_beyond(tolerance)))
    }

    fn largest_row_sum(&self, a: &Csr) -> Result<f64> {
        Ok(largest_row_sum(a))
    }

    fn transposed(&self, a: &Csr) -> Result<Csr> {
        Ok(self.on_host(|_| a.transposed()))
    }

    fn times(&self, a: &Csr, b: &Csr) -> Result<Csr> {
        self.on_host(|threads| a.times(b, threads))
    }

    fn mean(&self, a: &Csr, b: &Csr) -> Result<Csr> {
        self.on_host(|threads| a.mean(b, threads))
    }

    fn identity_minus(&self, a: &Csr) -> Result<Csr> {
        self.on_host(|threads| identity_minus(threads, a))
    }

    fn scaled(&self, a: &Csr, part: Part) -> Result<Csr, SetupFailure> {
        self.on_host(|threads| diagonal::scaled(threads, a, |i, j| part.holds(i, j)))
    }

    fn permuted(&self, a: &Csr, order: &[u32]) -> Result<Csr> {
        Ok(self.on_host(|threads| permuted(threads, a, order)))
    }

    fn gauss_seidel(&self, a: &Csr, omega: f64) -> Result<Csr, SetupFailure> {
        self.on_host(|threads| gauss_seidel::product(threads, a, omega))
    }

    fn with_gauss_seidel(&self, a: &Csr, sizes: &[usize]) -> Result<Csr, SetupFailure> {
        self.on_host(|threads| gauss_seidel::with_rest(threads, a, sizes))
    }

    fn inverse_diagonal(&self, a: &Csr) -> Result<Csr, SetupFailure> {
        self.on_host(|threads| diagonal::inverse(threads, a))
    }

    fn lower_power(&self, a: &Csr, q: usize) -> Result<Pattern<'static>, SetupFailure> {
        self.on_host(|threads| lower_power(threads, a, q, memory_free()))
    }

    fn factorised_inverse(&self, a: &Csr, lower: &Pattern) -> Result<Csr, SetupFailure> {
        self.on_host(|threads| inverses::factorised(threads, a, lower))
    }

    fn least_squares_inverse(&self, mirrored: &Csr) -> Result<Csr, SetupFailure> {
        self.on_host(|threads| inverses::least_squares(threads, mirrored))
    }

    fn triangular_inverse(&self, lower: &Csr) -> Result<Csr, SetupFailure> {
        self.on_host(|threads| inverses::triangular(threads, lower))
    }

    fn triangles(
        &self,
        pattern: &Arc<FillPattern>,
        a: &Csr,
        shift: f64,
    ) -> Result<Triangles<Csr>, SetupFailure> {
        self.on_host(|threads| extracted(threads, pattern, (a, shift)))
    }

    fn operator(&self, a: Csr) -> Result<super::Matrix> {
        self.matrix(&Arc::new(a), Format::Auto)
    }
}
