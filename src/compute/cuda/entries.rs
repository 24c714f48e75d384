//! Entries of the matrix that is factorised, on the device (`kernels/ilu/tasks.cuh`).

use cudarc::driver::CudaSlice;

use super::device::Device;
use crate::base::error::Result;
use crate::matrix::{Csr, CsrPattern};

/// Values of a matrix, and their places in the rows of its factorisation.
pub(super) struct Entries {
    pattern: CsrPattern,
    pub(super) place: CudaSlice<u32>,
    pub(super) val: CudaSlice<f64>,
}

impl Entries {
    /// `place` is that of the entries of `a`; the values are unset.
    pub(super) fn new(d: &Device, a: &Csr, place: CudaSlice<u32>) -> Result<Self> {
        Ok(Self { pattern: a.pattern().clone(), place, val: d.alloc(a.nnz())? })
    }

    /// Whether they are those of `a`, but for the values.
    pub(super) fn are_of(&self, a: &Csr) -> bool {
        a.pattern().is(&self.pattern)
    }
}

/// A matrix by scalar rows.
pub(super) struct Scalars {
    pattern: CsrPattern,
    pub(super) row_ptr: CudaSlice<u32>,
    pub(super) col_ind: CudaSlice<u32>,
    pub(super) val: CudaSlice<f64>,
}

impl Scalars {
    /// Those of `a`; what is `known` of its pattern is kept.
    pub(super) fn of(d: &Device, a: &Csr, known: Option<Self>) -> Result<Self> {
        match known {
            Some(mut known) if known.pattern.is(a.pattern()) => {
                d.overwrite(a.values(), &mut known.val)?;
                Ok(known)
            }
            _ => Ok(Self {
                pattern: a.pattern().clone(),
                row_ptr: d.copied(a.row_ptr())?,
                col_ind: d.copied(a.col_ind())?,
                val: d.copied(a.values())?,
            }),
        }
    }
}
