//! Factorisation of a stencil on a box whose updates hit the diagonal alone (`kernels/pivots.cu`).

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

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
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::symbolic::{FillPattern, Stencil};

/// Rows that a thread block of the kernels takes.
const ROWS_PER_BLOCK: usize = 256;

/// Offsets of a stencil at most: the entries of a thread block's rows must fit its shared memory.
const MOST_OFFSETS: usize = 12;

/// What a factorisation needs apart from values; blocks of one.
pub(super) struct Pivots {
    march: Triangle,
    products: CudaFunction,
    scale: CudaFunction,
    a: Option<Scalars>,
    /// Most entries of the rows of a thread block.
    room: usize,
    /// Diagonal of A.
    diagonal: CudaSlice<f64>,
    /// What a forward march has for inverse diagonal blocks.
    nothing: Numbers,
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
                && lower.offsets.len() <= MOST_OFFSETS
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
        let rows = stencil.extents.iter().product();
        let kernel = |name| {
            let kernel = d.kernel(&PIVOTS, 1, name)?;
            let most = d.shared_bytes() as i32;
            kernel
                .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most)
                .map_err(|e| failed("cannot prepare the factorisation", e))?;
            Ok::<_, Error>(kernel)
        };
        Ok(Self {
            march: Triangle::new(d, 1, FactorPrecision::Float64, stencil, Role::Pivots)?,
            products: kernel("pivot_products")?,
            scale: kernel("scale_rows")?,
            a: None,
            room: 0,
            diagonal: d.alloc(rows)?,
            nothing: Numbers::alloc(d, 0, FactorPrecision::Float64)?,
        })
    }

    /// Brings `a` to the device.
    pub(super) fn take(&mut self, d: &Device, a: &Csr) -> Result<()> {
        self.a = Some(Scalars::of(d, a, self.a.take())?);
        let starts = a.row_ptr()[..a.rows()].iter().step_by(ROWS_PER_BLOCK);
        let starts: Vec<u32> = starts.copied().chain([a.nnz() as u32]).collect();
        self.room = starts.windows(2).map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0);
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
        let count = rows as u32;
        let room = self.room as u32;
        let config = LaunchConfig {
            shared_mem_bytes: 12 * room,
            ..grid(rows.div_ceil(ROWS_PER_BLOCK), ROWS_PER_BLOCK as u32)
        };
        let matrix = ScalarsArg {
            row_ptr: address(&a.row_ptr),
            col_ind: address(&a.col_ind),
            val: address(&a.val),
            shift,
        };
        let l = lower.argument();
        // L has the products until it is made
        launch!(d, &self.products, config; count, room, matrix, l, factors.lower, self.diagonal)
            .map_err(fault)?;
        self.march.set_values(d, lower, &factors.lower, &self.nothing)?;
        let (r, y) = (address(&self.diagonal), address(&factors.diagonal));
        self.march.solve(d, SolveArg { r, diagonal: 0, y, z: 0 }).map_err(fault)?;
        let u = upper.argument();
        launch!(
            d, &self.scale, config;
            count, room, matrix, l, u, factors.diagonal, factors.lower, factors.upper, *error
        )
        .map_err(fault)
    }
}
