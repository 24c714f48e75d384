//! What the vendor's baseline is made of: factorisation and solves by cuSPARSE, and solves by
//! cuSPARSE with our factors.

use std::cell::RefCell;
use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaSlice};

use super::cusparse::{
    BlockIluVendor, Failure, Handle, SolveWithOurFactors, Triangle, filled, with_diagonal,
};
use super::device::{Device, grid};
use super::entries::Scalars;
use super::launch::{PatternArg, address, launch};
use super::memory::failed;
use super::numbers::{Numbers, Values};
use super::solve::{Solve, System};
use super::sources::VENDOR;
use super::storage::{DevicePattern, Structure};
use super::triangles::BlockDiagonal;
use crate::base::choices::FactorPrecision;
use crate::base::error::{Error, Result};
use crate::base::measure::timed;
use crate::compute::{Bytes, SingularBlock};
use crate::matrix::Csr;
use crate::symbolic::FillPattern;

/// The vendor's block ILU on our filled pattern: csrilu02 and `SpSV` for b = 1, else bsrilu02 and
/// bsrsv2, each with the better of its policies.
pub(super) struct VendorIlu {
    block_size: usize,
    library: BlockIluVendor,
    scatter: CudaFunction,
    /// The last matrix.
    a: Option<Scalars>,
    chosen: bool,
}

impl VendorIlu {
    pub(super) fn new(
        d: &Device,
        handle: &Rc<Handle>,
        pattern: &FillPattern,
        block_size: usize,
    ) -> Result<Self> {
        let mut library = BlockIluVendor::new(handle, block_size, filled(pattern).view())?;
        library.analyse().map_err(error)?;
        Ok(Self {
            block_size,
            library,
            scatter: d.kernel(&VENDOR, block_size, "scatter_whole")?,
            a: None,
            chosen: false,
        })
    }

    /// Factors of `a`; the inner result tells of a singular block. `uncounted` grows by the seconds
    /// that the choice of policies takes.
    pub(super) fn factor(
        &mut self,
        d: &Device,
        a: &Csr,
        shift: f64,
        uncounted: &mut f64,
    ) -> Result<Result<(), SingularBlock>> {
        let values = self.values(d, a, shift)?;
        if !self.chosen {
            // the choice leaves analysed values behind; a numeric phase begins without them
            let (choice, seconds) = timed(|| {
                let done = self.library.choose(&values).and_then(|()| self.library.analyse());
                d.stream().synchronize().map_err(|e| failed("choice of policies", e)).map(|()| done)
            });
            *uncounted += seconds;
            if let Err(failure) = choice? {
                return singular(failure).map(Err);
            }
            self.chosen = true;
        }
        match self.library.factor(&values) {
            Ok(()) => Ok(Ok(())),
            Err(failure) => singular(failure).map(Err),
        }
    }

    /// Values of `a` in the filled pattern.
    fn values(&mut self, d: &Device, a: &Csr, shift: f64) -> Result<CudaSlice<f64>> {
        let a = Scalars::of(d, a, self.a.take())?;
        let a = &*self.a.insert(a);
        let pattern = self.library.pattern();
        let (row_ptr, col_ind) = pattern.on_device();
        let whole = PatternArg { row_ptr: address(row_ptr), col_ind: address(col_ind) };
        let blocks = d.zeros::<f64>(pattern.entries() * self.block_size * self.block_size)?;
        let rows = a.row_ptr.len() - 1;
        let (count, config) = (rows as u32, grid(rows.div_ceil(256), 256));
        launch!(
            d, &self.scatter, config;
            count, a.row_ptr, a.col_ind, a.val, shift, whole, blocks
        )
        .map_err(|e| failed("scatter", e))?;
        Ok(blocks)
    }

    /// Seconds of the library's last factorisation.
    pub(super) fn factor_seconds(&self) -> f64 {
        self.library.factor_seconds()
    }

    pub(super) fn apply(&self, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        self.library.apply(r, z)
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.library.bytes()
    }
}

fn error(failure: Failure) -> Error {
    match failure {
        Failure::ZeroPivot(row) => {
            Error::run(format!("cuSPARSE: no diagonal block in block row {row}"))
        }
        Failure::Library(e) => e,
    }
}

/// cuSPARSE tells the row alone.
fn singular(failure: Failure) -> Result<SingularBlock> {
    match failure {
        Failure::ZeroPivot(row) => Ok(SingularBlock { row, within: 0, pivot: 0.0, absent: false }),
        Failure::Library(e) => Err(e),
    }
}

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
pub(super) fn in_float64(precision: FactorPrecision) -> Result<()> {
    if precision == FactorPrecision::Float64 {
        return Ok(());
    }
    Err(Error::input("cuSPARSE solves in float64 with factors in float64 alone")
        .hint("leave `--factor-precision` at `float64` for it"))
}

/// Both triangles by cuSPARSE.
pub(super) fn solve(s: &System) -> Result<Box<dyn Solve>> {
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
