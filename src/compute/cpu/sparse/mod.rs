//! Sparse matrices with which setups compute, on the host.

pub mod dense;
pub mod diagonal;
mod extracted;
mod gauss_seidel;
pub mod inverses;

use crate::compute::{Platform, Products};
use std::borrow::Cow;
use std::sync::Arc;

use super::Cpu;
use crate::base::error::Result;
use crate::base::measure::memory_free;
use crate::base::threads::Threads;
use crate::compute::preconditioner::Failure;
use crate::compute::setup::{Part, SetupOps, Triangles};
use crate::matrix::pattern::{Pattern, block_pattern_on};
use crate::matrix::{Asymmetry, Csr, Sums};
use crate::symbolic::{FillPattern, power, scalar_order};
pub use extracted::extracted;

/// A matrix of blocks.
#[derive(Clone, Debug)]
pub struct Sparse {
    /// By scalar rows.
    pub matrix: Arc<Csr>,
    /// Unknowns per block.
    pub block_size: usize,
}

impl Sparse {
    /// `matrix` in the blocks of `like`.
    fn like(like: &Self, matrix: Csr) -> Self {
        Self { matrix: Arc::new(matrix), block_size: like.block_size }
    }

    /// [`SetupOps::largest_row_sum`] on one thread or all.
    pub fn largest_row_sum(&self) -> f64 {
        let sum = |i: usize| self.matrix.row(i).1.iter().map(|v| v.abs()).sum::<f64>();
        (0..self.matrix.rows()).map(sum).fold(0.0, f64::max)
    }

    /// [`SetupOps::transposed`].
    #[must_use]
    pub fn transposed(&self) -> Self {
        Self::like(self, self.matrix.transposed())
    }

    /// [`SetupOps::times`].
    ///
    /// # Errors
    /// When there are more entries than indices.
    pub fn times(&self, other: &Self, threads: Threads) -> Result<Self> {
        Ok(Self::like(self, self.matrix.times(&other.matrix, threads)?))
    }

    /// [`SetupOps::mean`].
    ///
    /// # Errors
    /// When there are more entries than indices.
    pub fn mean(&self, other: &Self, threads: Threads) -> Result<Self> {
        let n = self.matrix.rows();
        let made: Result<Csr> = Csr::by_rows(
            threads,
            [n, n],
            || Sums::new(n),
            |sums, i, to| {
                for m in [self, other] {
                    sums.add_row(m.matrix.row(i), 0.5);
                }
                sums.finish(to);
                Ok(())
            },
        );
        Ok(Self::like(self, made?))
    }

    /// [`SetupOps::identity_minus`].
    ///
    /// # Errors
    /// When there are more entries than indices.
    pub fn identity_minus(&self, threads: Threads) -> Result<Self> {
        let n = self.matrix.rows();
        let made: Result<Csr> = Csr::by_rows(
            threads,
            [n, n],
            || (),
            |(), i, to| {
                let (columns, values) = self.matrix.row(i);
                let before = columns.partition_point(|&j| (j as usize) < i);
                (0..before).for_each(|at| to.push(columns[at], -values[at]));
                to.push(i as u32, 1.0);
                (before..columns.len()).for_each(|at| to.push(columns[at], -values[at]));
                Ok(())
            },
        );
        Ok(Self::like(self, made?))
    }

    /// [`SetupOps::scaled`].
    ///
    /// # Errors
    /// When a diagonal block that is needed cannot be inverted.
    pub fn scaled(&self, part: Part, threads: Threads) -> Result<Self, Failure> {
        let b = self.block_size;
        let made = diagonal::scaled(threads, &self.matrix, b, |i, j| part.holds(i, j))?;
        Ok(Self::like(self, made))
    }

    /// [`SetupOps::permuted`].
    #[must_use]
    pub fn permuted(&self, order: &[u32], threads: Threads) -> Self {
        let order = match self.block_size {
            1 => Cow::Borrowed(order),
            b => Cow::Owned(scalar_order(order, b)),
        };
        Self::like(self, self.matrix.permuted_on(threads, &order))
    }

    /// [`SetupOps::gauss_seidel`].
    ///
    /// # Errors
    /// When a diagonal block cannot be inverted.
    pub fn gauss_seidel(&self, omega: f64, threads: Threads) -> Result<Self, Failure> {
        let made = gauss_seidel::product(threads, &self.matrix, self.block_size, omega)?;
        Ok(Self::like(self, made))
    }

    /// [`SetupOps::with_gauss_seidel`].
    ///
    /// # Errors
    /// When a diagonal block cannot be inverted.
    pub fn with_gauss_seidel(&self, sizes: &[usize], threads: Threads) -> Result<Self, Failure> {
        let made = gauss_seidel::with_rest(threads, &self.matrix, sizes, self.block_size)?;
        Ok(Self::like(self, made))
    }

    /// [`SetupOps::inverse_diagonal`].
    ///
    /// # Errors
    /// When a diagonal block cannot be inverted.
    pub fn inverse_diagonal(&self, threads: Threads) -> Result<Self, Failure> {
        Ok(Self::like(self, diagonal::inverse(threads, &self.matrix, self.block_size)?))
    }

    /// [`SetupOps::lower_power`], whose numbers may take `free` bytes. Blocks above the diagonal are there,
    /// too: they are passed over.
    ///
    /// # Errors
    /// When it has more entries.
    pub fn lower_power(
        &self,
        q: usize,
        free: usize,
        threads: Threads,
    ) -> Result<Pattern<'static>, Failure> {
        let each = 12 * self.block_size * self.block_size;
        let point = block_pattern_on(threads, &self.matrix, self.block_size);
        power(threads, &point, q, free / each).map_err(|at| Failure::TooLarge {
            at,
            needed: each * at.entries,
            free,
        })
    }

    /// [`SetupOps::factorised_inverse`].
    ///
    /// # Errors
    /// When a small system is not definite, or too large.
    pub fn factorised_inverse(&self, pattern: &Pattern, threads: Threads) -> Result<Self, Failure> {
        let b = self.block_size;
        let whole = diagonal::whole_blocks(threads, &self.matrix, b);
        Ok(Self::like(self, inverses::factorised(threads, &whole, pattern, b)?))
    }

    /// [`SetupOps::least_squares_inverse`].
    ///
    /// # Errors
    /// When columns depend on each other, or are too many.
    pub fn least_squares_inverse(&self, threads: Threads) -> Result<Self, Failure> {
        let whole = diagonal::whole_blocks(threads, &self.matrix, self.block_size);
        Ok(Self::like(self, inverses::least_squares(threads, &whole)?))
    }

    /// [`SetupOps::triangular_inverse`].
    ///
    /// # Errors
    /// When there are more entries than indices.
    pub fn triangular_inverse(&self, threads: Threads) -> Result<Self, Failure> {
        Ok(Self::like(self, inverses::triangular(threads, &self.matrix)?))
    }
}

/// [`SetupOps::triangles`].
///
/// # Errors
/// When a diagonal block cannot be inverted.
pub fn triangles(
    threads: Threads,
    pattern: &Arc<FillPattern>,
    block_size: usize,
    (a, shift): (&Csr, f64),
) -> Result<Triangles<Sparse>, Failure> {
    let Triangles { lower, inverse_diagonal, upper } =
        extracted(threads, pattern, block_size, (a, shift))??;
    let of = |m: Csr| Sparse { matrix: Arc::new(m), block_size };
    let (lower, inverse_diagonal, upper) = (of(lower), of(inverse_diagonal), of(upper));
    Ok(Triangles { lower, inverse_diagonal, upper })
}

impl SetupOps for Cpu {
    type Sparse = Sparse;
    type Pattern = Pattern<'static>;

    fn sparse(&self, a: &Arc<Csr>, block_size: usize) -> Result<Sparse> {
        Ok(Sparse { matrix: Arc::clone(a), block_size })
    }

    fn entries(&self, a: &Sparse) -> usize {
        a.matrix.nnz()
    }

    fn to_host(&self, a: &Sparse) -> Result<Csr> {
        Ok(Csr::clone(&a.matrix))
    }

    fn asymmetry(&self, a: &Sparse, tolerance: f64) -> Result<Option<Asymmetry>> {
        Ok(self.on_host(|_| a.matrix.asymmetry_beyond(tolerance)))
    }

    fn largest_row_sum(&self, a: &Sparse) -> Result<f64> {
        Ok(a.largest_row_sum())
    }

    fn transposed(&self, a: &Sparse) -> Result<Sparse> {
        Ok(self.on_host(|_| a.transposed()))
    }

    fn times(&self, a: &Sparse, b: &Sparse) -> Result<Sparse> {
        self.on_host(|threads| a.times(b, threads))
    }

    fn mean(&self, a: &Sparse, b: &Sparse) -> Result<Sparse> {
        self.on_host(|threads| a.mean(b, threads))
    }

    fn identity_minus(&self, a: &Sparse) -> Result<Sparse> {
        self.on_host(|threads| a.identity_minus(threads))
    }

    fn scaled(&self, a: &Sparse, part: Part) -> Result<Sparse, Failure> {
        self.on_host(|threads| a.scaled(part, threads))
    }

    fn permuted(&self, a: &Sparse, order: &[u32]) -> Result<Sparse> {
        Ok(self.on_host(|threads| a.permuted(order, threads)))
    }

    fn gauss_seidel(&self, a: &Sparse, omega: f64) -> Result<Sparse, Failure> {
        self.on_host(|threads| a.gauss_seidel(omega, threads))
    }

    fn with_gauss_seidel(&self, a: &Sparse, sizes: &[usize]) -> Result<Sparse, Failure> {
        self.on_host(|threads| a.with_gauss_seidel(sizes, threads))
    }

    fn inverse_diagonal(&self, a: &Sparse) -> Result<Sparse, Failure> {
        self.on_host(|threads| a.inverse_diagonal(threads))
    }

    fn lower_power(&self, a: &Sparse, q: usize) -> Result<Pattern<'static>, Failure> {
        self.on_host(|threads| a.lower_power(q, memory_free(), threads))
    }

    fn factorised_inverse(&self, a: &Sparse, lower: &Pattern) -> Result<Sparse, Failure> {
        self.on_host(|threads| a.factorised_inverse(lower, threads))
    }

    fn least_squares_inverse(&self, mirrored: &Sparse) -> Result<Sparse, Failure> {
        self.on_host(|threads| mirrored.least_squares_inverse(threads))
    }

    fn triangular_inverse(&self, lower: &Sparse) -> Result<Sparse, Failure> {
        self.on_host(|threads| lower.triangular_inverse(threads))
    }

    fn triangles(
        &self,
        pattern: &Arc<FillPattern>,
        block_size: usize,
        a: &Csr,
        shift: f64,
    ) -> Result<Triangles<Sparse>, Failure> {
        self.on_host(|threads| triangles(threads, pattern, block_size, (a, shift)))
    }

    fn operator(&self, a: Sparse, block_size: usize) -> Result<crate::compute::cpu::Matrix> {
        self.matrix(&a.matrix, block_size, crate::base::choices::Format::Auto)
    }
}
