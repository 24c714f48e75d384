//! Vector operations and reductions (`kernels/vectors/operations.cu`).

use cudarc::driver::{CudaFunction, CudaSlice, DriverError};

use super::device::{Device, grid};
use super::launch::{
    Address, Basis, CoefArg, MOST, Meeting, Numbers, SlotList, StepsArg, address, launch,
};
use super::sources::VECTOR;
use crate::base::error::Result;
use crate::compute::scalar::MOST_STEPS;
use crate::compute::{Coef, SLOTS, Slot, Step};

/// Threads of a block; mirrors `vectors/operations.cu`.
const THREADS: u32 = 256;

/// Vectors that a warp of `dots` takes; mirrors `vectors/operations.cu`.
const VECTORS_PER_WARP: usize = 4;

/// Kernels of `vectors/operations.cu`, and the scalars they share.
pub(super) struct Vectors {
    fill: CudaFunction,
    axpby: CudaFunction,
    scale: CudaFunction,
    combine: CudaFunction,
    ratio: CudaFunction,
    scalars: CudaFunction,
    dot: Resident,
    dots: Resident,
    multi_axpy: Resident,
    pub(super) slots: CudaSlice<f64>,
    partials: CudaSlice<f64>,
    arrived: CudaSlice<u32>,
}

/// A reduction, and the thread blocks of it that are resident together: with more, the last would
/// run almost alone.
struct Resident {
    kernel: CudaFunction,
    blocks: usize,
}

type Done = Result<(), DriverError>;

impl Vectors {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let kernel = |name: &str| device.kernel(&VECTOR, 1, name);
        let resident = |name: &str| -> Result<Resident> {
            let kernel = kernel(name)?;
            let blocks = device.resident(&kernel, THREADS, 0)? as usize;
            Ok(Resident { kernel, blocks })
        };
        let (dot, dots, multi_axpy) =
            (resident("dot")?, resident("dots")?, resident("multi_axpy")?);
        // `dots` may run with smaller thread blocks, of which more are resident
        let most = 8 * dot.blocks.max(dots.blocks).max(multi_axpy.blocks);
        Ok(Self {
            fill: kernel("fill")?,
            axpby: kernel("axpby")?,
            scale: kernel("scale")?,
            combine: kernel("combine")?,
            ratio: kernel("ratio")?,
            scalars: kernel("scalars")?,
            dot,
            dots,
            multi_axpy,
            slots: device.zeros(SLOTS)?,
            partials: device.zeros(most * MOST)?,
            arrived: device.zeros(1)?,
        })
    }

    fn slot(&self, slot: Slot) -> Address {
        address(&self.slots) + 8 * u64::from(slot.0)
    }

    fn meeting(&self) -> Meeting {
        Meeting { partials: address(&self.partials), arrived: address(&self.arrived) }
    }

    pub(super) fn fill(&self, d: &Device, x: &mut CudaSlice<f64>, value: f64) -> Done {
        let n = x.len();
        launch!(d, &self.fill, grid(thread_blocks(n, 1 << 20), THREADS); n, value, *x)
    }

    pub(super) fn axpby(
        &self,
        d: &Device,
        a: Coef,
        x: &CudaSlice<f64>,
        b: Coef,
        y: &mut CudaSlice<f64>,
    ) -> Done {
        let (n, a, b) = (y.len(), CoefArg::from(a), CoefArg::from(b));
        let config = grid(thread_blocks(n, 1 << 20), THREADS);
        launch!(d, &self.axpby, config; n, a, *x, b, *y, self.slots)
    }

    pub(super) fn scale(&self, d: &Device, a: Coef, x: &mut CudaSlice<f64>) -> Done {
        let (n, a) = (x.len(), CoefArg::from(a));
        launch!(d, &self.scale, grid(thread_blocks(n, 1 << 20), THREADS); n, a, *x, self.slots)
    }

    pub(super) fn ratio(&self, d: &Device, out: Slot, num: &[Slot], den: &[Slot]) -> Done {
        assert!(num.len() <= 8 && den.len() <= 8, "products of at most 8 slots");
        let (n_num, n_den, out) = (num.len() as u32, den.len() as u32, u32::from(out.0));
        let (num, den) = (SlotList::from(num), SlotList::from(den));
        launch!(d, &self.ratio, grid(1, 1); out, n_num, num, n_den, den, self.slots)
    }

    /// Steps of arithmetic with slots.
    pub(super) fn scalars(&self, d: &Device, steps: &[Step]) -> Done {
        assert!(steps.len() <= MOST_STEPS, "at most {MOST_STEPS} steps");
        let (count, steps) = (steps.len() as u32, StepsArg::from(steps));
        launch!(d, &self.scalars, grid(1, 1); count, steps, self.slots)
    }

    /// `out[j] = basis[j] . w`; the square roots when `root`.
    pub(super) fn multi_dot<'a>(
        &self,
        d: &Device,
        basis: impl IntoIterator<Item = &'a CudaSlice<f64>>,
        w: &CudaSlice<f64>,
        out: Slot,
        root: bool,
    ) -> Done {
        let all: Vec<Address> = basis.into_iter().map(address).collect();
        for (pass, part) in all.chunks(MOST).enumerate() {
            let (n, m, root) = (w.len(), part.len(), u32::from(root));
            let (Resident { kernel, blocks }, groups) = match m {
                1 => (&self.dot, 1),
                m => (&self.dots, m.div_ceil(VECTORS_PER_WARP)),
            };
            // as many warps as make whole sets of all vectors
            let threads = THREADS / 32 / groups as u32 * groups as u32 * 32;
            let most = blocks * (THREADS / threads) as usize;
            let config = grid(thread_blocks(n, most), threads);
            let (m, out) = (m as u32, self.slot(out.plus(pass * MOST)));
            launch!(d, kernel, config; n, m, basis_of(part), *w, out, root, self.meeting())?;
        }
        Ok(())
    }

    /// `w -= sum_j coef[j] basis[j]`, `norm_out = |w|`.
    pub(super) fn multi_axpy_norm(
        &self,
        d: &Device,
        basis: &[CudaSlice<f64>],
        coef: Slot,
        w: &mut CudaSlice<f64>,
        norm_out: Slot,
    ) -> Done {
        let passes = basis.len().div_ceil(MOST);
        for (pass, part) in basis.chunks(MOST).enumerate() {
            let (n, m) = (w.len(), part.len() as u32);
            let coef = self.slot(coef.plus(pass * MOST));
            let norm = if pass + 1 == passes { self.slot(norm_out) } else { 0 };
            let Resident { kernel, blocks } = &self.multi_axpy;
            let config = grid(thread_blocks(n, *blocks), THREADS);
            launch!(d, kernel, config; n, m, basis_of(&part.iter().map(address).collect::<Vec<_>>()), coef, *w, norm, self.meeting())?;
        }
        Ok(())
    }

    /// `x = sum_j coef[j] basis[j]`.
    pub(super) fn combine(
        &self,
        d: &Device,
        basis: &[CudaSlice<f64>],
        coef: &[f64],
        x: &mut CudaSlice<f64>,
    ) -> Done {
        if basis.is_empty() {
            return self.fill(d, x, 0.0);
        }
        let config = grid(thread_blocks(x.len(), 1 << 20), THREADS);
        for (pass, (part, c)) in basis.chunks(MOST).zip(coef.chunks(MOST)).enumerate() {
            let mut numbers = Numbers { v: [0.0; MOST] };
            numbers.v[..c.len()].copy_from_slice(c);
            let (n, m, add) = (x.len(), part.len() as u32, u32::from(pass > 0));
            launch!(d, &self.combine, config; n, m, basis_of(&part.iter().map(address).collect::<Vec<_>>()), numbers, add, *x)?;
        }
        Ok(())
    }
}

/// The last vector fills the places that are left.
pub(super) fn basis_of(part: &[Address]) -> Basis {
    let mut v = [part[part.len() - 1]; MOST];
    v[..part.len()].copy_from_slice(part);
    Basis { v }
}

/// Thread blocks for `n` entries, two a thread, `most` at most.
fn thread_blocks(n: usize, most: usize) -> usize {
    n.div_ceil(2 * THREADS as usize).clamp(1, most)
}
