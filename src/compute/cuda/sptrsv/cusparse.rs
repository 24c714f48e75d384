//! Triangular solves by cuSPARSE with factors of ours.

use std::cell::RefCell;
use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaSlice};

use super::triangles::BlockDiagonal;
use super::{Algorithm, Solve, System};
use crate::base::choices::FactorPrecision;
use crate::base::error::{Error, Result};
use crate::base::measure::timed;
use crate::compute::cuda::cusparse::{SolveWithOurFactors, Triangle, with_diagonal};
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::{address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::numbers::{Numbers, Values};
use crate::compute::cuda::sources::VENDOR;
use crate::compute::cuda::storage::{DevicePattern, Structure};
use crate::compute::trisolve::Description;

/// What it is, for every program.
pub(super) const ABOUT: Description = Description {
    name: "cusparse",
    summary: "SpSV or bsrsv2 of cuSPARSE with our factors",
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

/// Solves by cuSPARSE with factors of ours.
struct LibrarySolve {
    solve: SolveWithOurFactors,
    insert: CudaFunction,
    scale: BlockDiagonal,
    block_size: usize,
    block_rows: usize,
    diagonal: Option<Rc<Numbers>>,
    /// Forward solution, and D times it.
    between: RefCell<[CudaSlice<f64>; 2]>,
    chosen: bool,
}

/// An error unless the library can read factors of `precision`.
pub(in crate::compute::cuda) fn in_float64(precision: FactorPrecision) -> Result<()> {
    if precision == FactorPrecision::Float64 {
        return Ok(());
    }
    Err(Error::input("cuSPARSE solves in float64 with factors in float64 alone")
        .hint("leave `--factor-precision` at `float64` for it"))
}

fn solve(s: &System) -> Result<Box<dyn Solve>> {
    in_float64(s.precision)?;
    let (d, f, handle) = (s.device, s.structure, &(s.library)()?);
    let (b, p) = (f.block_size, &f.pattern);
    let (lower, upper) = (p.lower.view(), p.upper.view());
    let solve = if b == 1 {
        SolveWithOurFactors::new(handle, b, lower, upper)?
    } else {
        let (lower, upper) =
            (with_diagonal(lower, Triangle::Lower), with_diagonal(upper, Triangle::Upper));
        SolveWithOurFactors::new(handle, b, lower.view(), upper.view())?
    };
    let n = p.rows() * b;
    Ok(Box::new(LibrarySolve {
        solve,
        insert: d.kernel(&VENDOR, b, "insert_identity")?,
        scale: BlockDiagonal::new(d, f, s.precision)?,
        block_size: b,
        block_rows: p.rows(),
        diagonal: None,
        between: RefCell::new([d.alloc(n)?, d.alloc(n)?]),
        chosen: false,
    }))
}

impl LibrarySolve {
    fn with_identity(
        &self,
        d: &Device,
        pattern: &DevicePattern,
        entries: usize,
        blocks: &CudaSlice<f64>,
        first: u32,
    ) -> Result<Rc<CudaSlice<f64>>> {
        let bb = self.block_size * self.block_size;
        let out = d.alloc::<f64>((entries + self.block_rows) * bb)?;
        let (rows, config) = (self.block_rows as u32, grid(self.block_rows.div_ceil(8), 256));
        launch!(d, &self.insert, config; rows, pattern.row_ptr, *blocks, first, out)
            .map_err(|e| failed("insert_identity", e))?;
        Ok(Rc::new(out))
    }
}

impl Solve for LibrarySolve {
    fn set_values(&mut self, d: &Device, f: &Structure, v: Values) -> Result<f64> {
        let (lower, upper) = if self.block_size == 1 {
            (v.lower, v.upper)
        } else {
            let with = |pattern: &DevicePattern, entries, blocks: &CudaSlice<f64>, first| {
                self.with_identity(d, pattern, entries, blocks, first)
            };
            (
                with(&f.lower, f.pattern.lower.entries(), &v.lower, 0)?,
                with(&f.upper, f.pattern.upper.entries(), &v.upper, 1)?,
            )
        };
        self.diagonal = Some(v.diagonal);
        self.solve.analyse(lower, upper)?;
        if self.chosen {
            return Ok(0.0);
        }
        let (choice, seconds) = timed(|| {
            self.solve.choose()?;
            d.stream().synchronize().map_err(|e| failed("choice of policies", e))
        });
        self.chosen = true;
        choice.map(|()| seconds)
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
