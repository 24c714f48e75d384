//! Solves by one or two colours in one launch, for scalar factors (`kernels/sptrsv/colours/stream.cu`).

use std::rc::Rc;

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use super::chunks::{Cut, Shape, UNIT};
use super::layout::{Laid, Placed};
use super::slices::{Layout, Plan};
use crate::base::error::Result;
use crate::compute::Bytes;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{
    ColourColumnsArg, ColourFactorArg, ColourRowsArg, ColourStreamArg, address, launch,
};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::Values;
use crate::compute::cuda::sources::{COLOUR_STREAM, Variant};
use crate::compute::cuda::sptrsv::{Solve, System};
use crate::compute::cuda::storage::Structure;

/// Compute capability from which there are bulk copies.
const OLDEST: (i32, i32) = (9, 0);

/// Threads of the kernels that lay chunks out; mirrors `sptrsv/colours/stream.cu`.
const LAYOUT_THREADS: u32 = 256;

/// A launch for both colours.
pub(super) struct ColourStream {
    solve: CudaFunction,
    values: CudaFunction,
    config: LaunchConfig,
    count: usize,
    /// [`Chunk`]s.
    chunks: CudaSlice<u32>,
    stream: CudaSlice<u8>,
    starts: CudaSlice<u32>,
    arrivals: CudaSlice<u32>,
    colours: usize,
    stages: usize,
    stage_bytes: usize,
    /// Whether all that a launch moves may stay in the L2 cache.
    stays: bool,
    rows: Rc<Placed>,
    pub(super) bytes: Bytes,
}

/// For one or two colours, with vectors in their own order, which is `row` by position. `None` where the device
/// or the shape of the factors does not let it.
pub(super) fn solve(
    s: &System,
    plan: &Plan,
    layouts: [&Layout; 2],
    (row, placed): (&[u32], &Rc<Placed>),
) -> Result<Option<ColourStream>> {
    let (d, f, n) = (s.device, s.structure, s.structure.pattern.rows());
    let stored = s.precision.bytes();
    // indices of four bytes lie behind the numbers
    if f.block_size > 1 || n == 0 || d.arch() < OLDEST || stored < 4 {
        return Ok(None);
    }
    let variant = || Variant::from(1).storing(s.precision);
    let [workers, entries, ring, most_stages] =
        d.constants(&COLOUR_STREAM, variant(), "colour_stream_shape")?.map(|v: u32| v as usize);
    let kernel = |name| d.kernel(&COLOUR_STREAM, variant(), name);
    let (solve, threads) = (kernel("colour_stream")?, 32 * (workers as u32 + 1));
    let ring = ring.min(d.shared_for_values());
    let prepared = |shared: usize| -> Result<u32> {
        solve
            .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
            .map_err(|e| failed("cannot prepare the solves by colours", e))?;
        d.resident(&solve, threads, shared as u32)
    };
    let blocks = prepared(ring)? as usize;
    let shape = Shape { workers, entries, ring, most_stages };
    let cut = match blocks {
        0 => None,
        _ => Cut::new(plan, layouts, row, stored, shape, blocks)?,
    };
    let Some(cut) = cut else { return Ok(None) };
    let config = LaunchConfig {
        grid_dim: (blocks as u32, 1, 1),
        block_dim: (threads, 1, 1),
        shared_mem_bytes: (workers * cut.stages * cut.stage_bytes) as u32,
    };
    let held = cut.units * UNIT;
    let all = ColourStream {
        solve,
        values: kernel("colour_stream_values")?,
        config,
        count: cut.chunks.len(),
        chunks: d.copied(bytemuck::cast_slice(&cut.chunks))?,
        stream: d.alloc(held)?,
        starts: d.copied(&cut.starts)?,
        arrivals: d.zeros(64)?,
        colours: cut.colours,
        stages: cut.stages,
        stage_bytes: cut.stage_bytes,
        rows: Rc::clone(placed),
        stays: held + 2 * 8 * n <= d.l2_bytes() / 2,
        bytes: Bytes { held, moved: held + 2 * 8 * n },
    };
    all.lay_out(d, &kernel("colour_stream_pattern")?, layouts)?;
    Ok(Some(all))
}

impl ColourStream {
    fn rows(&self) -> ColourRowsArg {
        ColourRowsArg {
            place: address(&self.rows.row),
            factor_row: address(&self.rows.factor_row),
            first: address(&self.rows.first),
        }
    }

    /// A warp for each chunk.
    fn each_chunk(&self) -> (u32, LaunchConfig) {
        (self.count as u32, grid(self.count.div_ceil(LAYOUT_THREADS as usize / 32), LAYOUT_THREADS))
    }

    /// All of the chunks but numbers.
    fn lay_out(&self, d: &Device, kernel: &CudaFunction, layouts: [&Layout; 2]) -> Result<()> {
        let fault = |e: DriverError| failed("cannot lay out the factors", e);
        let ((count, config), rows) = (self.each_chunk(), self.rows());
        let [lower, upper] = [Laid::new(d, layouts[0])?, Laid::new(d, layouts[1])?];
        let argument = |c: &Laid| ColourColumnsArg {
            shape: address(&c.shape),
            columns: address(&c.columns),
            index: address(&c.index),
        };
        let (of_lower, of_upper) = (argument(&lower), argument(&upper));
        launch!(d, kernel, config; count, self.chunks, rows, of_lower, of_upper, self.stream)
            .map_err(fault)?;
        // the columns go before the next use of the stream
        d.stream().synchronize().map_err(fault)
    }
}

impl Solve for ColourStream {
    fn set_values(&mut self, d: &Device, f: &Structure, v: Values) -> Result<f64> {
        let ((count, config), rows) = (self.each_chunk(), self.rows());
        let factor = |row_ptr, values| ColourFactorArg { row_ptr, values };
        let lower = factor(address(&f.lower.row_ptr), address(&v.lower));
        let upper = factor(address(&f.upper.row_ptr), address(&v.upper));
        let diagonal = v.diagonal.address();
        launch!(
            d, &self.values, config;
            count, self.chunks, rows, lower, upper, diagonal, self.stream
        )
        .map_err(|e| failed("cannot lay out the factors", e))?;
        Ok(0.0)
    }

    fn in_order(&self) -> bool {
        true
    }

    fn bytes(&self) -> Option<Bytes> {
        Some(self.bytes)
    }

    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        let arg = ColourStreamArg {
            chunks: address(&self.stream),
            starts: address(&self.starts),
            arrivals: address(&self.arrivals),
            colours: self.colours as u32,
            stages: self.stages as u32,
            stage_bytes: self.stage_bytes as u32,
            stays: u32::from(self.stays),
            r: address(r),
            z: address(z),
        };
        launch!(cooperative d, &self.solve, self.config; arg)
            .map_err(|e| failed("triangular solve", e))
    }
}
