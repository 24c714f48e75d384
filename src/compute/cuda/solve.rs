//! Common trait of the triangular-solve algorithms.

use std::rc::Rc;

use cudarc::driver::CudaSlice;

use super::analysis::Analysis;
use super::cusparse::Handle;
use super::device::Device;
use super::launch::{Address, PartsArg};
use super::numbers::Values;
use super::storage::Structure;
use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::compute::Bytes;

/// Solves with both triangles: `z = (L D U')^-1 r`.
pub(super) trait Solve {
    /// Takes over the values of the factors. Returns the seconds spent on a choice among the ways of
    /// a library, which no phase should be charged with.
    fn set_values(&mut self, d: &Device, f: &Structure, values: Values) -> Result<f64>;

    /// Whether it takes vectors in the order that its system names.
    fn in_order(&self) -> bool {
        false
    }

    /// Bytes of its own storage and of one application, where they are not those of the pattern.
    fn bytes(&self) -> Option<Bytes> {
        None
    }

    /// What solves within another kernel need, where they are prepared for.
    fn parts(&self) -> Option<Parts> {
        None
    }

    /// `z = (L D U')^-1 r`. Asynchronous.
    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()>;
}

/// Factors as a kernel takes them whose thread blocks have a part each.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub(super) lower: PartsArg,
    pub(super) upper: PartsArg,
    /// Inverse diagonal blocks.
    pub(super) diagonal: Address,
    /// Place of the forward solution.
    pub(super) y: Address,
    /// Block rows that it has shared memory for.
    pub(super) slots: usize,
}

/// What a way is made for.
pub(super) struct System<'a> {
    pub(super) device: &'a Device,
    pub(super) structure: &'a Structure,
    pub(super) analysis: &'a Analysis,
    /// Block row of the vectors of each block row of the factors, where it is another one.
    pub(super) order: Option<&'a [u32]>,
    /// Numbers in which the solves read the factors.
    pub(super) precision: FactorPrecision,
    /// Whether a kernel solves that stays for a whole method.
    pub(super) resident: bool,
    /// Opens cuSPARSE.
    pub(super) library: &'a dyn Fn() -> Result<Rc<Handle>>,
}
