//! Factorisation of a stencil on a box whose updates hit the diagonal alone (`kernels/pivots.cu`).

use cudarc::driver::{CudaFunction, CudaSlice, DriverError};

use super::device::{Device, failed, grid};
use super::entries::Scalars;
use super::ilu::{DevicePattern, Factors};
use super::launch::{ScalarsArg, SolveArg, address, launch};
use super::numbers::Numbers;
use super::solve::Stencils;
use super::sources::PIVOTS;
use super::triangles::Triangle as _;
use super::wavefront::{Role, Triangle};
use crate::case::FactorPrecision;
use crate::error::Result;
use crate::matrix::Csr;
use crate::symbolic::{FillPattern, Stencil};

/// Rows that a thread block of the kernels takes.
const ROWS_PER_BLOCK: usize = 256;

/// What a factorisation needs apart from values; blocks of one.
pub(super) struct Pivots {
    march: Triangle,
    products: CudaFunction,
    scale: CudaFunction,
    a: Option<Scalars>,
}

/// The stencil of the triangles if this factorisation is one for them.
pub(super) fn stencil<'a>(
    pattern: &FillPattern,
    block_size: usize,
    stencils: &'a Stencils,
) -> Option<&'a Stencil> {
    match stencils {
        Ok([Some(lower), Some(upper)])
            if block_size == 1
                && pattern.no_diagonal.is_empty()
                && lower.updates_diagonal_alone(upper) =>
        {
            Some(lower)
        }
        _ => None,
    }
}

impl Pivots {
    pub(super) fn new(d: &Device, stencil: &Stencil) -> Result<Self> {
        Ok(Self {
            march: Triangle::new(d, 1, FactorPrecision::Float64, stencil, Role::Pivots)?,
            products: d.kernel(&PIVOTS, 1, "pivot_products")?,
            scale: d.kernel(&PIVOTS, 1, "scale_rows")?,
            a: None,
        })
    }

    /// Brings `a` to the device.
    pub(super) fn take(&mut self, d: &Device, a: &Csr) -> Result<()> {
        self.a = Some(Scalars::of(d, a, self.a.take())?);
        Ok(())
    }

    /// Factors of the matrix that was taken. The first row without a pivot goes to `error`, a
    /// number on the device, in the upper half.
    pub(super) fn factor(
        &mut self,
        d: &Device,
        shift: f64,
        [lower, upper]: [&DevicePattern; 2],
        factors: &Factors,
        error: &CudaSlice<u64>,
    ) -> Result<()> {
        let fault = |e: DriverError| failed("factorisation", e);
        let a = self.a.as_ref().expect("taken before");
        let rows = lower.row_ptr.len() - 1;
        let (count, config) = (rows as u32, grid(rows.div_ceil(ROWS_PER_BLOCK), 256));
        let matrix = ScalarsArg {
            row_ptr: address(&a.row_ptr),
            col_ind: address(&a.col_ind),
            val: address(&a.val),
            shift,
        };
        let nothing = Numbers::alloc(d, 0, FactorPrecision::Float64)?;
        // L has the products until it is made
        let diagonal = d.alloc::<f64>(rows)?;
        let l = lower.argument();
        launch!(d, &self.products, config; count, matrix, l, factors.lower, diagonal)
            .map_err(fault)?;
        self.march.set_values(d, lower, &factors.lower, &nothing)?;
        let (r, y) = (address(&diagonal), address(&factors.diagonal));
        self.march.solve(d, SolveArg { r, diagonal: 0, y, z: 0 }).map_err(fault)?;
        let u = upper.argument();
        launch!(
            d, &self.scale, config;
            count, matrix, l, u, factors.diagonal, factors.lower, factors.upper, *error
        )
        .map_err(fault)
    }
}
