//! The vendor's baseline: factorisation and solves by cuSPARSE.

use std::rc::Rc;

use cudarc::driver::{CudaFunction, CudaSlice};

use super::{Algorithm, Description};
use crate::base::error::{Error, Result};
use crate::base::measure::timed;
use crate::compute::cuda::compressed::{Compressed, Factored};
use crate::compute::cuda::cusparse::{BlockIluVendor, FactorFailure, Handle, filled};
use crate::compute::cuda::device::{Device, grid};
use crate::compute::cuda::launch::launch;
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::sources::VENDOR;
use crate::compute::{Bytes, SingularBlock};
use crate::matrix::CsrPattern;
use crate::symbolic::FillPattern;

const ABOUT: Description = Description {
    name: "cusparse",
    summary: "csrilu02 or bsrilu02 of cuSPARSE, with its own triangular solves",
    takes: "the backend `cusparse` alone",
    source: None,
};

pub(super) static ALGORITHM: Algorithm =
    Algorithm { about: ABOUT, variants: |_| Vec::new(), new: |_| Ok(None) };

/// The vendor's block ILU on our filled pattern: csrilu02 and `SpSV` for b = 1, else bsrilu02 and
/// bsrsv2, each with the better of its policies.
pub(in crate::compute::cuda) struct VendorIlu {
    block_size: usize,
    library: BlockIluVendor,
    scatter: CudaFunction,
    /// The last matrix, where products had no copy of it, with its pattern.
    own: Option<(CsrPattern, Compressed)>,
    chosen: bool,
}

impl VendorIlu {
    pub(in crate::compute::cuda) fn new(
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
            own: None,
            chosen: false,
        })
    }

    /// Factors of `a`; the inner result tells of a singular block. `uncounted` grows by the seconds
    /// that the choice of policies takes.
    pub(in crate::compute::cuda) fn factor(
        &mut self,
        d: &Device,
        a: Factored,
        shift: f64,
        uncounted: &mut f64,
    ) -> Result<Result<(), SingularBlock>> {
        let there = a.there(d, &mut self.own)?;
        let values = self.values(d, &there, shift)?;
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
    fn values(&self, d: &Device, a: &Compressed, shift: f64) -> Result<CudaSlice<f64>> {
        let pattern = self.library.pattern();
        let whole = pattern.rows_there().argument();
        let blocks = d.zeros::<f64>(pattern.entries() * self.block_size * self.block_size)?;
        let (count, config) = (a.rows as u32, grid(a.rows.div_ceil(256), 256));
        let (rows, val) = (&*a.pattern, &*a.val);
        launch!(
            d, &self.scatter, config;
            count, rows.row_ptr, rows.col_ind, *val, shift, whole, blocks
        )
        .map_err(|e| failed("scatter", e))?;
        Ok(blocks)
    }

    /// Seconds of the library's last factorisation.
    pub(in crate::compute::cuda) fn factor_seconds(&self) -> f64 {
        self.library.factor_seconds()
    }

    pub(in crate::compute::cuda) fn apply(
        &self,
        r: &CudaSlice<f64>,
        z: &mut CudaSlice<f64>,
    ) -> Result<()> {
        self.library.apply(r, z)
    }

    pub(in crate::compute::cuda) fn bytes(&self) -> Bytes {
        self.library.bytes()
    }
}

fn error(failure: FactorFailure) -> Error {
    match failure {
        FactorFailure::ZeroPivot(row) => {
            Error::run(format!("cuSPARSE: no diagonal block in block row {row}"))
        }
        FactorFailure::Library(e) => e,
    }
}

/// cuSPARSE tells the row alone.
fn singular(failure: FactorFailure) -> Result<SingularBlock> {
    match failure {
        FactorFailure::ZeroPivot(row) => {
            Ok(SingularBlock { row, within: 0, pivot: 0.0, absent: false })
        }
        FactorFailure::Library(e) => Err(e),
    }
}
