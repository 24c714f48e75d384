//! The vendor's whole block ILU preconditioner.

use std::cell::RefCell;
use std::rc::Rc;

use cudarc::driver::CudaSlice;

use super::{
    DevicePattern, Diagonal, FactorFailure, Handle, Ilu02, Policy, Triangle, TriangularSolve,
    timing,
};
use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::compute::Bytes;
use crate::matrix::pattern::rows::{Lengths, laid};
use crate::matrix::pattern::{Pattern, PatternView};
use crate::symbolic::FillPattern;

/// Block ILU on a given filled pattern: csrilu02 and `SpSV` for blocks of one, bsrilu02 and bsrsv2
/// for larger ones.
///
/// Phases: [`analyse`](Self::analyse) looks at the pattern only; [`factor`](Self::factor) takes
/// values, as often as wanted. The analysis of `SpSV` depends on the values, so for blocks of one
/// it is part of the first `factor`; later ones update it (`cusparseSpSV_updateMatrix`) where the
/// library can. Call `analyse` again to have the next `factor` start afresh.
pub struct BlockIluVendor {
    pattern: Rc<DevicePattern>,
    factors: CudaSlice<f64>,
    ilu: Ilu02,
    lower: TriangularSolve,
    upper: TriangularSolve,
    /// What the forward solve hands to the backward solve.
    between: RefCell<CudaSlice<f64>>,
    factor_seconds: f64,
    handle: Rc<Handle>,
}

impl BlockIluVendor {
    /// Copies the pattern to the device and allocates the factors: both triangles and all diagonal
    /// blocks, columns increasing (see [`filled`]).
    ///
    /// # Errors
    /// When the library cannot take the pattern, or the device has no room.
    pub fn new(handle: &Rc<Handle>, block_size: usize, pattern: PatternView<'_>) -> Result<Self> {
        fits_block_routines(block_size, pattern.entries())?;
        let pattern = DevicePattern::new(handle, block_size, pattern)?;
        Ok(Self {
            ilu: Ilu02::new(handle, &pattern, Policy::Level)?,
            lower: TriangularSolve::new(handle, &pattern, Triangle::Lower, Diagonal::Unit)?,
            upper: TriangularSolve::new(handle, &pattern, Triangle::Upper, Diagonal::Stored)?,
            factors: handle.zeros(pattern.numbers())?,
            between: RefCell::new(handle.zeros(pattern.unknowns())?),
            factor_seconds: f64::NAN,
            handle: Rc::clone(handle),
            pattern,
        })
    }

    /// The pattern the factors have.
    pub fn pattern(&self) -> &Rc<DevicePattern> {
        &self.pattern
    }

    /// Symbolic phase, under the policies in use; waits.
    ///
    /// # Errors
    /// [`FactorFailure::ZeroPivot`] for the first block row without a diagonal block.
    pub fn analyse(&mut self) -> Result<(), FactorFailure> {
        let structural = self.ilu.analyse(&mut self.factors)?;
        if let Some(row) = structural {
            return Err(FactorFailure::ZeroPivot(row));
        }
        self.lower.analyse_pattern(&self.factors)?;
        self.upper.analyse_pattern(&self.factors)?;
        Ok(())
    }

    /// Runs every step under both policies on real values and keeps the faster for each; leaves the
    /// factors of `values`. Not part of any phase: for fairness, done once, outside the timing.
    ///
    /// # Errors
    /// As [`factor`](Self::factor).
    pub fn choose(&mut self, values: &CudaSlice<f64>) -> Result<(), FactorFailure> {
        self.pattern.assert_values(values);
        self.ilu = Ilu02::fastest(&self.handle, &self.pattern, values, &mut self.factors)?;
        self.factor(values)?;
        let x = self.handle.zeros(self.pattern.unknowns())?;
        let y = self.between.get_mut();
        self.lower.choose(&self.factors, &x, y)?;
        self.upper.choose(&self.factors, &x, y)?;
        Ok(())
    }

    /// Numeric phase: copies `values` (a number for each place of the pattern, blocks column by
    /// column, zeros where the matrix has no entry) and factorises; waits.
    ///
    /// # Errors
    /// [`FactorFailure::ZeroPivot`] with the first block row whose diagonal block is singular. The library
    /// sees exact zeros only, so a nearly singular block passes.
    ///
    /// # Panics
    /// Before [`analyse`](Self::analyse), or if there are fewer values than places.
    pub fn factor(&mut self, values: &CudaSlice<f64>) -> Result<(), FactorFailure> {
        self.pattern.assert_values(values);
        self.handle.copy(values, &mut self.factors, self.pattern.numbers())?;
        self.factor_seconds =
            f64::from(timing::once_ms(self.handle.stream(), || self.ilu.start(&mut self.factors))?)
                / 1e3;
        if let Some(row) = self.ilu.zero_pivot()? {
            return Err(FactorFailure::ZeroPivot(row));
        }
        self.lower.take_values(&self.factors)?;
        self.upper.take_values(&self.factors)?;
        Ok(())
    }

    /// Seconds of csrilu02 or bsrilu02 in the last [`factor`](Self::factor), values in place; not a
    /// number before the first.
    pub fn factor_seconds(&self) -> f64 {
        self.factor_seconds
    }

    /// `z = (L U)^-1 r`. Asynchronous.
    ///
    /// # Panics
    /// Before a successful [`factor`](Self::factor), or if a vector is shorter than the matrix.
    pub fn apply(&self, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        let mut between = self.between.borrow_mut();
        self.lower.solve(&self.factors, r, &mut between)?;
        self.upper.solve(&self.factors, &between, z)
    }

    /// The functions in use and their policies.
    pub fn name(&self) -> String {
        format!("{}, L {}, U {}", self.ilu.name(), self.lower.name(), self.upper.name())
    }

    /// The factors in place of the values, laid out as [`Ilu02`] says.
    pub fn factors(&self) -> &CudaSlice<f64> {
        &self.factors
    }

    /// Bytes held on the device, and bytes one application moves at least: the factors once, and
    /// four passes over vectors.
    pub fn bytes(&self) -> Bytes {
        let unknowns = 8 * self.pattern.unknowns();
        let factors = self.pattern.bytes() + 8 * self.pattern.numbers();
        let workspaces = self.ilu.workspace_bytes()
            + self.lower.workspace_bytes()
            + self.upper.workspace_bytes();
        Bytes { held: factors + unknowns + workspaces, moved: factors + 4 * unknowns }
    }
}

/// bsrilu02 counts the numbers of blocks with 32 bits: beyond that it accesses memory that is
/// not theirs, which ends all that the process does on the device (seen with CUDA 13.0).
fn fits_block_routines(block_size: usize, blocks: usize) -> Result<()> {
    let numbers = blocks.saturating_mul(block_size).saturating_mul(block_size);
    if block_size == 1 || i32::try_from(numbers).is_ok() {
        return Ok(());
    }
    let (most, factors) = (i32::MAX, "the factors have");
    Err(Error::input(format!("bsrilu02 takes {most} numbers, {factors} {numbers}"))
        .hint("`cuda` has no such limit"))
}

/// The pattern of L, D and U together: what [`BlockIluVendor::new`] asks for. Every diagonal is in
/// it, also those the fill did not reach.
pub fn filled(pattern: &FillPattern) -> Pattern<'static> {
    let FillPattern { lower, upper, .. } = pattern;
    let of = |i: usize| [lower.row(i).len() + 1 + upper.row(i).len()];
    let lengths = Lengths { rows: pattern.rows(), block_size: 1, of };
    let [whole] = laid(Threads::Pool, &lengths, |i, [to]| {
        let (before, behind) = to.split_at_mut(lower.row(i).len());
        before.copy_from_slice(lower.row(i));
        behind[0] = i as u32;
        behind[1..].copy_from_slice(upper.row(i));
    });
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_must_fit_32_bits() {
        assert_eq!(fits_block_routines(8, 33_554_431), Ok(()));
        assert_eq!(fits_block_routines(1, usize::MAX), Ok(()));
        let error = fits_block_routines(8, 41_809_582).unwrap_err();
        assert_eq!(
            error.message(),
            "bsrilu02 takes 2147483647 numbers, the factors have 2675813248"
        );
    }

    #[test]
    fn the_filled_pattern_has_every_diagonal() {
        let part =
            |row_ptr: &[u32], col_ind: &[u32]| Pattern::new(row_ptr.to_vec(), col_ind.to_vec());
        let fill =
            FillPattern::new(part(&[0, 0, 1, 2], &[0, 0]), part(&[0, 1, 1, 1], &[2]), vec![1]);
        assert_eq!(filled(&fill), part(&[0, 2, 4, 6], &[0, 2, 0, 1, 0, 2]));
    }
}
