//! Block ILU factors on the GPU: who makes them, and how they are solved with.

use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::Cuda;
use super::device::Device;
use super::ilu::Factorisation;
use super::numbers::Values;
use super::partitioned;
use super::solve::{self, Analysis, Solve, System};
use super::vendor::{self, VendorIlu};
use crate::backend::{Breakdown, Bytes};
use crate::case::{FactorPrecision, Trisolve};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::symbolic::FillPattern;

/// Factors on the GPU, and how they are solved with.
pub struct BlockIlu {
    pub(super) pattern: Arc<FillPattern>,
    pub(super) block_size: usize,
    pub(super) levels: [usize; 2],
    pub(super) trisolve: Trisolve,
    precision: FactorPrecision,
    by: By,
}

/// Who factorises and who solves.
enum By {
    Us(Box<Factorisation>, Box<dyn Solve>),
    Vendor(Box<VendorIlu>),
}

impl BlockIlu {
    pub(super) fn new(
        k: &Cuda,
        pattern: &Arc<FillPattern>,
        block_size: usize,
        trisolve: Trisolve,
        precision: FactorPrecision,
    ) -> Result<Self> {
        let d = &*k.device;
        if k.vendor && !matches!(trisolve, Trisolve::Auto | Trisolve::Cusparse) {
            return Err(Error::input("the backend `cusparse` solves by cuSPARSE alone")
                .hint("leave `--trisolve` at `auto` for it"));
        }
        let analysis = Analysis::new(pattern);
        let (trisolve, by) = if k.vendor {
            vendor::in_float64(precision)?;
            let ilu = VendorIlu::new(d, k.library()?, pattern, block_size)?;
            (Trisolve::Cusparse, By::Vendor(Box::new(ilu)))
        } else {
            let trisolve = match trisolve {
                Trisolve::Auto => best(d, &analysis, pattern, block_size),
                Trisolve::Partitioned if block_size > partitioned::LARGEST_BLOCK => {
                    Trisolve::Syncfree
                }
                chosen => chosen,
            };
            let f = Box::new(Factorisation::new(d, pattern, &analysis, block_size)?);
            let library = || k.library().map(Rc::clone);
            let (factorisation, analysis, library) = (&*f, &analysis, &library);
            let system = System { device: d, factorisation, analysis, precision, library };
            let solve = solve::make(trisolve, &system)?;
            (trisolve, By::Us(f, solve))
        };
        let levels = analysis.levels();
        Ok(Self { pattern: Arc::clone(pattern), block_size, levels, trisolve, precision, by })
    }

    /// Factors of `a`; the inner result tells why there are none. `uncounted` grows by the seconds
    /// spent on a choice.
    pub(super) fn factor(
        &mut self,
        d: &Device,
        a: &Csr,
        shift: f64,
        uncounted: &mut f64,
    ) -> Result<Result<(), Breakdown>> {
        match &mut self.by {
            By::Vendor(ilu) => Ok(ilu.factor(d, a, shift, uncounted)?.map_err(Breakdown::from)),
            By::Us(f, solve) => {
                let factors = match f.run(d, a, shift)? {
                    Ok(factors) => factors,
                    Err(singular) => return Ok(Err(singular.into())),
                };
                let values = match Values::new(d, f, factors, self.precision)? {
                    Ok(values) => values,
                    Err(range) => return Ok(Err(range)),
                };
                *uncounted += solve.set_values(d, f, values)?;
                Ok(Ok(()))
            }
        }
    }

    /// Seconds of the last factorisation on the device.
    pub(super) fn factor_seconds(&self) -> f64 {
        match &self.by {
            By::Us(f, _) => f.seconds(),
            By::Vendor(ilu) => ilu.factor_seconds(),
        }
    }

    /// `z = (L D U')^-1 r`.
    pub(super) fn apply(
        &self,
        d: &Device,
        r: &CudaSlice<f64>,
        z: &mut CudaSlice<f64>,
    ) -> Result<()> {
        match &self.by {
            By::Us(_, solve) => solve.apply(d, r, z),
            By::Vendor(ilu) => ilu.apply(r, z),
        }
    }

    /// Bytes of one application.
    pub(super) fn bytes(&self) -> Bytes {
        if let By::Vendor(ilu) = &self.by {
            return ilu.bytes();
        }
        let (pattern, b) = (&self.pattern, self.block_size);
        let held = self.precision.bytes() * pattern.blocks() * b * b + pattern.bytes();
        Bytes { held, moved: held + 4 * 8 * pattern.rows() * b }
    }
}

/// Levels above which a partition pays: few wide ones are done sooner by rows that wait through the
/// L2 cache.
const FEW_LEVELS: usize = 60;

/// The faster way of the solves, as measured on an H200 (`docs/triangular-solve.md`).
fn best(d: &Device, analysis: &Analysis, pattern: &FillPattern, block_size: usize) -> Trisolve {
    if analysis.stencils(d, pattern, block_size).is_ok() {
        return Trisolve::Wavefront;
    }
    let levels = analysis.levels().into_iter().max().unwrap_or(0);
    if block_size <= 8 && levels >= FEW_LEVELS { Trisolve::Partitioned } else { Trisolve::Syncfree }
}
