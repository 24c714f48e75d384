//! FGBILU on the GPU (Luo et al. 2015): the paper's two styles (`kernels/fgbilu/acc.cu`,
//! `kernels/fgbilu/cl.cu`), and our block ILU(0).

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use crate::compute::{Breakdown, Bytes, DiluFactors, FactorInfo, Factors, SingularBlock, Trisolve};
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig, result};

use super::device::{Device, grid};
use super::launch::{GridArg, address, launch};
use super::memory::failed;
use super::sources::{FGBILU_ACC, FGBILU_CL};
use super::{BlockIlu, Cuda, sptrsv};
use crate::base::choices::{FactorPrecision, FgbiluStyle};
use crate::base::error::{Error, Result};
use crate::matrix::Csr;
use crate::symbolic::GridPattern;

/// Largest blocks of the style `cl`: a thread block has a thread for each element.
const LARGEST_CL: usize = 32;

/// Arrays of couplings and the diagonal among them; mirrors `fgbilu/grid.cuh`.
const ARRAYS: usize = 7;
const DELTA: usize = 3;

/// Threads of a block of the kernels in `fgbilu/acc.cu`.
const THREADS: u32 = 256;

/// Storage and order of an execution of FGBILU.
pub(super) fn analyse(
    k: &Cuda,
    grid: &Arc<GridPattern>,
    style: FgbiluStyle,
) -> Result<Box<dyn DiluFactors<Cuda>>> {
    if k.vendor {
        return Err(Error::input("cuSPARSE has no execution of fgbilu")
            .hint("`bilu` of level 0 is the same preconditioner, and cuSPARSE has that"));
    }
    let (block_size, float64) = (grid.factors.block_size(), FactorPrecision::Float64);
    let ours = |trisolve| k.ilu_analyse(&grid.factors, trisolve, float64);
    let d = &k.device;
    Ok(match style {
        FgbiluStyle::Auto => Box::new(Tiles(ours(Trisolve::AUTO)?)),
        FgbiluStyle::Tiles => Box::new(Tiles(ours(sptrsv::STENCILS)?)),
        FgbiluStyle::Acc => {
            let way = Acc::new(d, grid, block_size)?;
            Box::new(Elementwise::new(d, grid, block_size, Way::Acc(way))?)
        }
        FgbiluStyle::Cl => {
            fits_cl(block_size)?;
            let way = Cl::new(d, block_size)?;
            Box::new(Elementwise::new(d, grid, block_size, Way::Cl(way))?)
        }
    })
}

/// Whether a thread block has a thread for each element of a block.
fn fits_cl(block_size: usize) -> Result<()> {
    if block_size <= LARGEST_CL {
        return Ok(());
    }
    let message = format!(
        "the style `cl` of fgbilu takes up to {LARGEST_CL} unknowns per point, not {block_size}: \
         choose `acc`"
    );
    Err(Error::input(message)
        .hint("a thread block has at most 1024 threads, and `cl` needs one per matrix element"))
}

/// Our block ILU(0), whose factors are `L = (D + E) D^-1` and `U' = D^-1 (D + F)`.
struct Tiles(BlockIlu);

impl DiluFactors<Cuda> for Tiles {
    fn factor(&mut self, k: &Cuda, a: &Csr, shift: f64) -> Result<(), Breakdown> {
        k.ilu_factor(&mut self.0, a, shift)
    }

    fn factor_seconds(&self, _k: &Cuda) -> Option<f64> {
        self.0.factor_seconds()
    }

    fn apply(&self, k: &Cuda, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) {
        k.ilu_apply(&self.0, r, z);
    }

    fn bytes(&self, _k: &Cuda) -> Bytes {
        self.0.bytes()
    }
}

/// A thread per matrix element, hyperplane after hyperplane.
struct Elementwise {
    grid: Arc<GridPattern>,
    block_size: usize,
    /// Points by hyperplanes.
    order: CudaSlice<u32>,
    /// The seven arrays of A.
    blocks: CudaSlice<f64>,
    diagonal: CudaSlice<f64>,
    load: CudaFunction,
    residual: CudaFunction,
    way: Way,
    seconds: f64,
}

enum Way {
    Acc(Acc),
    Cl(Cl),
}

/// A hyperplane: its first point in the order, and how many it has.
#[derive(Clone, Copy)]
struct Plane {
    first: u32,
    count: u32,
}

impl Elementwise {
    fn new(d: &Device, grid: &Arc<GridPattern>, block_size: usize, way: Way) -> Result<Self> {
        let numbers = grid.factors.rows() * block_size * block_size;
        Ok(Self {
            order: d.copied(&grid.hyperplanes.rows)?,
            // couplings that A does not have stay zero
            blocks: d.zeros(ARRAYS * numbers)?,
            diagonal: d.alloc(numbers)?,
            load: d.kernel(&FGBILU_ACC, block_size, "load")?,
            residual: d.kernel(&FGBILU_ACC, block_size, "residual")?,
            grid: Arc::clone(grid),
            block_size,
            way,
            seconds: f64::NAN,
        })
    }

    fn argument(&self) -> GridArg {
        let [ni, nj, nk] = self.grid.extents.map(|extent| extent as u32);
        let (order, block) = (address(&self.order), address(&self.blocks));
        GridArg { ni, nj, nk, order, block, d: address(&self.diagonal) }
    }

    /// Numbers of a vector.
    fn rows(&self) -> usize {
        self.grid.factors.rows() * self.block_size
    }

    /// The hyperplanes in the order of the factorisation.
    fn planes(&self) -> impl DoubleEndedIterator<Item = Plane> + '_ {
        let ends = self.grid.hyperplanes.level_ptr.windows(2);
        ends.map(|ends| Plane { first: ends[0], count: ends[1] - ends[0] })
    }

    /// The inner result tells of a block without a pivot.
    fn run(&mut self, d: &Device, a: &Csr, shift: f64) -> Result<Result<(), SingularBlock>> {
        let fault = |e: DriverError| failed("factorisation", e);
        let (row_ptr, col_ind) = (d.copied(a.row_ptr())?, d.copied(a.col_ind())?);
        let values = d.copied(a.values())?;
        let error = d.least()?;
        let start = d.event().map_err(fault)?;
        self.launch_factor(d, [&row_ptr, &col_ind], &values, shift, &error).map_err(fault)?;
        let end = d.event().map_err(fault)?;
        let found = d.found(&error)?;
        self.seconds = f64::from(start.elapsed_ms(&end).map_err(fault)?) / 1e3;
        let Some(found) = found else {
            return Ok(Ok(()));
        };
        let (row, within) = ((found >> 32) as usize, found as u32 as usize);
        let absent = self.grid.factors.lacks_diagonal(row);
        // the pivot itself is not kept
        Ok(Err(SingularBlock { row, within, pivot: 0.0, absent }))
    }

    fn launch_factor(
        &self,
        d: &Device,
        [row_ptr, col_ind]: [&CudaSlice<u32>; 2],
        values: &CudaSlice<f64>,
        shift: f64,
        error: &CudaSlice<u64>,
    ) -> Result<(), DriverError> {
        let g = self.argument();
        let config = threads(self.rows());
        launch!(d, &self.load, config; g, *row_ptr, *col_ind, *values, shift)?;
        match &self.way {
            Way::Acc(way) => {
                // d is delta before the factorisation
                let bytes = 8 * self.diagonal.len();
                let delta = g.block + (DELTA * bytes) as u64;
                // SAFETY: delta is the fourth of seven arrays of that many bytes
                unsafe { result::memcpy_dtod_async(g.d, delta, bytes, d.stream().cu_stream()) }?;
                self.planes().try_for_each(|plane| way.factor(d, g, plane, self.block_size, error))
            }
            Way::Cl(way) => self.planes().try_for_each(
                |p| launch!(d, &way.factor, way.config(p); g, p.first, p.count, *error),
            ),
        }
    }

    fn launch_sweeps(
        &self,
        d: &Device,
        r: &CudaSlice<f64>,
        z: &CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        let g = self.argument();
        let b = self.block_size;
        match &self.way {
            Way::Acc(way) => {
                for p in self.planes() {
                    let config = threads(p.count as usize * b);
                    launch!(d, &way.forward_rest, config; g, p.first, p.count, *r, *z, way.rest)?;
                    launch!(d, &way.forward_solve, config; g, p.first, p.count, way.rest, *z)?;
                }
                for p in self.planes().rev() {
                    let config = threads(p.count as usize * b);
                    launch!(d, &way.backward_rest, config; g, p.first, p.count, *z, way.rest)?;
                    launch!(d, &way.backward_solve, config; g, p.first, p.count, way.rest, *z)?;
                }
            }
            Way::Cl(way) => {
                for p in self.planes() {
                    launch!(d, &way.forward, way.config(p); g, p.first, p.count, *r, *z)?;
                }
                for p in self.planes().rev() {
                    launch!(d, &way.backward, way.config(p); g, p.first, p.count, *z)?;
                }
            }
        }
        Ok(())
    }
}

impl DiluFactors<Cuda> for Elementwise {
    fn factor(&mut self, k: &Cuda, a: &Csr, shift: f64) -> Result<(), Breakdown> {
        let shift = if shift == 0.0 { 0.0 } else { shift * a.largest_diagonal() };
        let done = self.run(&k.device, a, shift).unwrap_or_else(|e| {
            k.failed(e);
            Ok(())
        });
        Ok(done?)
    }

    fn factor_seconds(&self, _: &Cuda) -> Option<f64> {
        Some(self.seconds)
    }

    fn apply(&self, k: &Cuda, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) {
        assert!(r.len() >= self.rows() && z.len() >= self.rows());
        k.note("sweeps", self.launch_sweeps(&k.device, r, z));
    }

    fn residual(
        &self,
        k: &Cuda,
        x: &CudaSlice<f64>,
        b: &CudaSlice<f64>,
        r: &mut CudaSlice<f64>,
    ) -> bool {
        let d = &k.device;
        let config = threads(self.rows());
        k.note("residual", launch!(d, &self.residual, config; self.argument(), *x, *b, *r));
        true
    }

    fn bytes(&self, _: &Cuda) -> Bytes {
        let values = 8 * (self.blocks.len() + self.diagonal.len());
        // the couplings that A has, d in both sweeps, four passes over a vector
        let bb = self.block_size * self.block_size;
        let (blocks, points) = (self.grid.factors.blocks(), self.grid.factors.rows());
        let moved = 8 * bb * (blocks + points) + 4 * points + 4 * 8 * self.rows();
        Bytes { held: values + 4 * self.order.len(), moved }
    }
}

/// A launch of at least `count` threads for a kernel of `fgbilu/acc.cu`.
fn threads(count: usize) -> LaunchConfig {
    grid(count.div_ceil(THREADS as usize).max(1), THREADS)
}

/// Kernels of Algorithms 4 and 6, and what is handed on between them.
struct Acc {
    products: CudaFunction,
    subtract: CudaFunction,
    /// Row and column of a pivot, and the other entries; blocks of one have none.
    beside: Option<[CudaFunction; 2]>,
    invert_pivot: CudaFunction,
    forward_rest: CudaFunction,
    forward_solve: CudaFunction,
    backward_rest: CudaFunction,
    backward_solve: CudaFunction,
    /// Three blocks for each point of the largest hyperplane.
    product: CudaSlice<f64>,
    /// A segment for each point of it.
    rest: CudaSlice<f64>,
}

impl Acc {
    fn new(d: &Device, grid: &GridPattern, b: usize) -> Result<Self> {
        let kernel = |name| d.kernel(&FGBILU_ACC, b, name);
        let planes = grid.hyperplanes.level_ptr.windows(2);
        let most = planes.map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0);
        let beside = (b > 1).then(|| Ok([kernel("divide")?, kernel("eliminate")?]));
        Ok(Self {
            products: kernel("products")?,
            subtract: kernel("subtract")?,
            beside: beside.transpose()?,
            invert_pivot: kernel("invert_pivot")?,
            forward_rest: kernel("forward_rest")?,
            forward_solve: kernel("forward_solve")?,
            backward_rest: kernel("backward_rest")?,
            backward_solve: kernel("backward_solve")?,
            product: d.alloc(3 * most * b * b)?,
            rest: d.alloc(most * b)?,
        })
    }

    /// Algorithm 4 on one hyperplane.
    fn factor(
        &self,
        d: &Device,
        g: GridArg,
        p: Plane,
        b: usize,
        error: &CudaSlice<u64>,
    ) -> Result<(), DriverError> {
        let count = p.count as usize;
        let each = threads(count * b * b);
        launch!(d, &self.products, each; g, p.first, p.count, self.product)?;
        launch!(d, &self.subtract, each; g, p.first, p.count, self.product)?;
        for r in 0..b as u32 {
            if let Some([divide, eliminate]) = &self.beside {
                launch!(d, divide, threads(count * 2 * (b - 1)); g, p.first, p.count, r)?;
                let others = threads(count * (b - 1) * (b - 1));
                launch!(d, eliminate, others; g, p.first, p.count, r)?;
            }
            launch!(d, &self.invert_pivot, threads(count); g, p.first, p.count, r, *error)?;
        }
        Ok(())
    }
}

/// Kernels of Algorithms 9 and 10.
struct Cl {
    factor: CudaFunction,
    forward: CudaFunction,
    backward: CudaFunction,
    /// Threads and points of a thread block.
    threads: u32,
    points: u32,
}

impl Cl {
    fn new(d: &Device, b: usize) -> Result<Self> {
        let kernel = |name| d.kernel(&FGBILU_CL, b, name);
        let fault = |e: DriverError| failed("cannot prepare the factorisation", e);
        let module = d.module(&FGBILU_CL, b)?;
        let mut numbers = [0_u32; 2];
        let global = module.get_global("fgbilu_launch", d.stream()).map_err(fault)?;
        let bytes = bytemuck::cast_slice_mut::<u32, u8>(&mut numbers);
        d.stream().memcpy_dtoh(&global, bytes).map_err(fault)?;
        d.stream().synchronize().map_err(fault)?;
        let [threads, points] = numbers;
        Ok(Self {
            factor: kernel("factor")?,
            forward: kernel("forward")?,
            backward: kernel("backward")?,
            threads,
            points,
        })
    }

    /// The launch for a hyperplane.
    fn config(&self, plane: Plane) -> LaunchConfig {
        grid(plane.count.div_ceil(self.points).max(1) as usize, self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_too_large_for_a_thread_block_are_told_the_other_style() {
        assert_eq!(fits_cl(32), Ok(()));
        assert_eq!(
            fits_cl(33).unwrap_err().to_string(),
            "the style `cl` of fgbilu takes up to 32 unknowns per point, not 33: choose `acc`"
        );
    }
}
