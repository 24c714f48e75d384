//! Triangular solves by cuSPARSE's `SpSV` with blocks taken apart: point triangular systems.

use std::cell::RefCell;
use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaSlice};

use super::triangles::BlockDiagonal;
use super::{Algorithm, Solve, System, in_float64};
use crate::base::error::Result;
use crate::base::threads::Threads;
use crate::compute::cuda::cusparse::SolveWithOurFactors;
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::{Numbers, Values};
use crate::compute::cuda::sources::VENDOR;
use crate::compute::cuda::storage::{DevicePattern, Structure};
use crate::compute::trisolve::Description;
use crate::matrix::pattern::rows::{Lengths, laid};
use crate::matrix::pattern::{Pattern, PatternView};

/// What it is, for every program.
pub(super) const ABOUT: Description = Description {
    name: "spsv",
    summary: "SpSV of cuSPARSE with our factors, blocks taken apart",
    library: true,
    ..Description::PLAIN
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    about: ABOUT,
    seconds: None,
    largest_block: usize::MAX,
    host_rows: true,
    new: solve,
    in_halves: None,
};

/// Both strict triangles as matrices of points; the inverse diagonal blocks stay what they are.
struct Points {
    solve: SolveWithOurFactors,
    take_apart: CudaFunction,
    scale: BlockDiagonal,
    diagonal: Option<Rc<Numbers>>,
    /// Forward solution, and D times it.
    between: RefCell<[CudaSlice<f64>; 2]>,
}

fn solve(s: &System) -> Result<Box<dyn Solve>> {
    in_float64(s.precision)?;
    let (d, f) = (s.device, s.structure);
    let (b, n) = (f.block_size, f.pattern.rows() * f.block_size);
    let [lower, upper] = [&f.pattern.lower, &f.pattern.upper].map(|p| points(p.view(), b));
    Ok(Box::new(Points {
        solve: SolveWithOurFactors::new(&(s.library)()?, 1, lower.view(), upper.view())?,
        take_apart: d.kernel(&VENDOR, b, "take_apart")?,
        scale: BlockDiagonal::new(d, f, s.precision)?,
        diagonal: None,
        between: RefCell::new([d.alloc(n)?, d.alloc(n)?]),
    }))
}

/// The pattern of the entries of blocks.
fn points(p: PatternView<'_>, b: usize) -> Pattern<'static> {
    let rows = (p.row_ptr.len() - 1) * b;
    let lengths = Lengths { rows, block_size: 1, of: |i: usize| [p.range(i / b).len() * b] };
    let [points] = laid(Threads::Pool, &lengths, |i, [to]| {
        for (to, &j) in to.chunks_exact_mut(b).zip(p.row(i / b)) {
            to.iter_mut().zip(j * b as u32..).for_each(|(to, j)| *to = j);
        }
    });
    points
}

impl Points {
    /// The values of blocks in the order of [`points`].
    fn apart(
        &self,
        d: &Device,
        f: &Structure,
        pattern: &DevicePattern,
        blocks: &Rc<CudaSlice<f64>>,
    ) -> Result<Rc<CudaSlice<f64>>> {
        if f.block_size == 1 {
            return Ok(Rc::clone(blocks));
        }
        let out = d.alloc::<f64>(blocks.len())?;
        let (rows, config) = (f.pattern.rows(), grid(f.pattern.rows().div_ceil(8), 256));
        launch!(d, &self.take_apart, config; rows as u32, pattern.row_ptr, **blocks, out)
            .map_err(|e| failed("take_apart", e))?;
        Ok(Rc::new(out))
    }
}

impl Solve for Points {
    fn set_values(&mut self, d: &Device, f: &Structure, v: Values) -> Result<f64> {
        let lower = self.apart(d, f, &f.lower, &v.lower)?;
        let upper = self.apart(d, f, &f.upper, &v.upper)?;
        self.diagonal = Some(v.diagonal);
        self.solve.analyse(lower, upper)?;
        Ok(0.0)
    }

    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        let mut between = self.between.borrow_mut();
        let [y, scaled] = &mut *between;
        self.solve.solve_lower(r, y)?;
        let diagonal = self.diagonal.as_ref().map_or(0, |diagonal| diagonal.address());
        self.scale
            .launch(d, diagonal, address(y), address(scaled))
            .map_err(|e| failed("block_diagonal", e))?;
        self.solve.solve_upper(scaled, z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_points_have_the_blocks_of_their_row_side_by_side() {
        let blocks = PatternView::new(&[0, 0, 1, 3], &[0, 0, 1]);
        let found = points(blocks, 2);
        assert_eq!(*found.row_ptr, [0, 0, 0, 2, 4, 8, 12]);
        assert_eq!(*found.col_ind, [0, 1, 0, 1, 0, 1, 2, 3, 0, 1, 2, 3]);
    }
}
