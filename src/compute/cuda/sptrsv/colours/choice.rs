//! Solves by one or two colours in one launch or in a launch for each, whichever is faster.

use cudarc::driver::CudaSlice;

use crate::base::error::Result;
use crate::base::measure::timed;
use crate::compute::Bytes;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::numbers::Values;
use crate::compute::cuda::sptrsv::Solve;
use crate::compute::cuda::sptrsv::choice;
use crate::compute::cuda::storage::Structure;

/// Both until the first values are there, then the faster one. For factors that the L2 cache has room for, of
/// which neither is always that: in one launch there is less to begin and to end, in two no barrier.
pub(super) struct Either {
    variants: Vec<Box<dyn Solve>>,
}

impl Either {
    pub(super) fn new(variants: [Box<dyn Solve>; 2]) -> Self {
        Self { variants: variants.into() }
    }

    /// Keeps the faster variant.
    fn choose(&mut self, d: &Device, f: &Structure) -> Result<()> {
        let n = f.pattern.rows() * f.block_size;
        let (r, mut z) = (d.zeros::<f64>(n)?, d.zeros::<f64>(n)?);
        let mut best = None;
        for variant in self.variants.drain(..) {
            let seconds = choice::measured(d, &mut || variant.apply(d, &r, &mut z))?;
            if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
                best = Some((seconds, variant));
            }
        }
        self.variants.extend(best.map(|(_, variant)| variant));
        Ok(())
    }

    fn chosen(&self) -> &dyn Solve {
        &*self.variants[0]
    }
}

impl Solve for Either {
    fn set_values(&mut self, d: &Device, f: &Structure, v: Values) -> Result<f64> {
        for variant in &mut self.variants {
            variant.set_values(d, f, v.clone())?;
        }
        if self.variants.len() == 1 {
            return Ok(0.0);
        }
        let (chosen, seconds) = timed(|| self.choose(d, f));
        chosen.map(|()| seconds)
    }

    fn in_order(&self) -> bool {
        self.chosen().in_order()
    }

    fn bytes(&self) -> Option<Bytes> {
        self.chosen().bytes()
    }

    fn apply(&self, d: &Device, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) -> Result<()> {
        self.chosen().apply(d, r, z)
    }
}
