//! CUDA backend: one GPU. Mirrors the CPU backend; see `kernels/` for the device code.

pub mod cubins;
mod device;
mod ilu;
mod launch;
pub mod nvrtc;
mod slices;
pub mod sources;
mod spmv;
mod trsv;
mod vector;

use std::cell::RefCell;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice, DriverError, PinnedHostSlice};

use super::{Backend, Bytes, Coef, SLOTS, SingularBlock, Slot};
use crate::case::{Format, Trisolve};
use crate::error::{Error, Result};
use crate::matrix::{Bsr, Csr};
use crate::symbolic::{FillPattern, Schedule};
use device::failed;
pub use device::{Device, OLDEST};
use ilu::Factorisation;
use launch::address;
pub use spmv::Matrix;
use trsv::Sliced;
use vector::Vectors;

/// Computes on the first GPU.
///
/// Operations are asynchronous. One that fails is remembered; from then on slots read as NaN, which
/// ends every method, and [`Backend::check`] tells what happened.
pub struct Cuda {
    device: Arc<Device>,
    vectors: Vectors,
    host: RefCell<PinnedHostSlice<f64>>,
    failure: RefCell<Option<Error>>,
}

impl Cuda {
    /// With our kernels.
    ///
    /// # Errors
    /// When there is no GPU, no driver or no run-time compiler.
    pub fn ours() -> Result<Self> {
        let device = Device::shared()?;
        // SAFETY: slots are written by a download before they are read
        let host = unsafe { device.stream().context().alloc_pinned_with_flags::<f64>(SLOTS, 0) }
            .map_err(|e| failed("cannot pin host memory", &e))?;
        let vectors = Vectors::new(&device)?;
        Ok(Self { device, vectors, host: RefCell::new(host), failure: RefCell::default() })
    }

    /// With the routines of cuSPARSE.
    pub fn vendor() -> Result<Self> {
        Err(Error::run("cuSPARSE is not wired up"))
    }

    /// The GPU.
    pub fn gpu(&self) -> &Device {
        &self.device
    }

    fn note(&self, what: &str, done: Result<(), DriverError>) {
        if let Err(e) = done {
            self.failure.borrow_mut().get_or_insert_with(|| failed(what, &e));
        }
    }
}

/// Factors on the GPU, and how they are solved with.
pub struct BlockIlu {
    factorisation: Factorisation,
    levels: [usize; 2],
    trisolve: Trisolve,
    solve: Sliced,
}

impl Backend for Cuda {
    type Vector = CudaSlice<f64>;
    type Matrix = Matrix;
    type BlockIlu = BlockIlu;
    type Mark = Option<CudaEvent>;

    fn device(&self) -> String {
        self.device.describe()
    }

    fn threads(&self) -> usize {
        1
    }

    fn memory_free(&self) -> usize {
        self.device.memory().map_or(0, |(free, _)| free)
    }

    fn copy_bandwidth(&self) -> f64 {
        self.device.copy_bandwidth()
    }

    fn check(&self) -> Result<()> {
        self.synchronise();
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }

    fn mark(&self) -> Option<CudaEvent> {
        let event = self.device.event();
        event.map_err(|e| self.note("cannot take the time", Err(e))).ok()
    }

    fn seconds(&self, from: &Option<CudaEvent>, to: &Option<CudaEvent>) -> f64 {
        let (Some(from), Some(to)) = (from, to) else { return f64::NAN };
        match from.elapsed_ms(to) {
            Ok(ms) => f64::from(ms) / 1e3,
            Err(e) => {
                self.note("cannot take the time", Err(e));
                f64::NAN
            }
        }
    }

    fn vector(&self, n: usize) -> Result<CudaSlice<f64>> {
        self.device.zeros(n)
    }

    fn upload(&self, from: &[f64], to: &mut CudaSlice<f64>) {
        self.note("upload", self.device.stream().memcpy_htod(from, to));
        self.synchronise();
    }

    fn download(&self, from: &CudaSlice<f64>, to: &mut [f64]) {
        self.note("download", self.device.stream().memcpy_dtoh(from, to));
        self.synchronise();
    }

    fn fill(&self, x: &mut CudaSlice<f64>, value: f64) {
        self.note("fill", self.vectors.fill(&self.device, x, value));
    }

    fn copy(&self, x: &CudaSlice<f64>, y: &mut CudaSlice<f64>) {
        self.note("copy", self.device.stream().memcpy_dtod(x, y));
    }

    fn axpby(&self, a: Coef, x: &CudaSlice<f64>, b: Coef, y: &mut CudaSlice<f64>) {
        self.note("axpby", self.vectors.axpby(&self.device, a, x, b, y));
    }

    fn scale(&self, a: Coef, x: &mut CudaSlice<f64>) {
        self.note("scale", self.vectors.scale(&self.device, a, x));
    }

    fn dot(&self, x: &CudaSlice<f64>, y: &CudaSlice<f64>, out: Slot) {
        self.note("dot", self.vectors.multi_dot(&self.device, [x], y, out, false));
    }

    fn norm(&self, x: &CudaSlice<f64>, out: Slot) {
        self.note("norm", self.vectors.multi_dot(&self.device, [x], x, out, true));
    }

    fn multi_dot(&self, basis: &[CudaSlice<f64>], w: &CudaSlice<f64>, out: Slot) {
        self.note("multi_dot", self.vectors.multi_dot(&self.device, basis, w, out, false));
    }

    fn multi_axpy_norm(
        &self,
        basis: &[CudaSlice<f64>],
        coef: Slot,
        w: &mut CudaSlice<f64>,
        norm_out: Slot,
    ) {
        let done = self.vectors.multi_axpy_norm(&self.device, basis, coef, w, norm_out);
        self.note("multi_axpy_norm", done);
    }

    fn combine(&self, basis: &[CudaSlice<f64>], coef: &[f64], x: &mut CudaSlice<f64>) {
        self.note("combine", self.vectors.combine(&self.device, basis, coef, x));
    }

    fn ratio(&self, out: Slot, num: &[Slot], den: &[Slot]) {
        self.note("ratio", self.vectors.ratio(&self.device, out, num, den));
    }

    fn read(&self, first: Slot, out: &mut [f64]) {
        let first = first.0 as usize;
        let from = self.vectors.slots.slice(first..first + out.len());
        let mut host = self.host.borrow_mut();
        let copied = host.as_mut_slice().and_then(|host| {
            self.device.stream().memcpy_dtoh(&from, &mut host[..out.len()])
        });
        self.note("read", copied);
        self.synchronise();
        match host.as_slice() {
            Ok(values) if self.failure.borrow().is_none() => {
                out.copy_from_slice(&values[..out.len()]);
            }
            _ => out.fill(f64::NAN),
        }
    }

    fn synchronise(&self) {
        self.note("device", self.device.stream().synchronize());
    }

    fn matrix(&self, a: &Arc<Csr>, block_size: usize, format: Format) -> Result<Matrix> {
        match format.stored(a, block_size) {
            Format::Bsr => Matrix::bsr(&self.device, &Bsr::from_csr(a, block_size)),
            _ => Matrix::csr(&self.device, a),
        }
    }

    fn format(&self, a: &Matrix) -> Format {
        a.format()
    }

    fn matrix_bytes(&self, a: &Matrix) -> Bytes {
        a.bytes()
    }

    fn spmv(&self, a: &Matrix, x: &CudaSlice<f64>, y: &mut CudaSlice<f64>) {
        self.note("spmv", a.product(&self.device, x, 0, y));
    }

    fn residual(&self, a: &Matrix, x: &CudaSlice<f64>, b: &CudaSlice<f64>, r: &mut CudaSlice<f64>) {
        self.note("residual", a.product(&self.device, x, address(b), r));
    }

    fn ilu_analyse(
        &self,
        pattern: &Arc<FillPattern>,
        block_size: usize,
        trisolve: Trisolve,
    ) -> Result<BlockIlu> {
        let trisolve = match trisolve {
            Trisolve::Auto => Trisolve::Syncfree,
            chosen => chosen,
        };
        let d = &self.device;
        let (lower, upper) = rayon::join(|| Schedule::lower(pattern), || Schedule::upper(pattern));
        let schedules = [lower, upper];
        let factorisation = Factorisation::new(d, pattern, &schedules[0], block_size)?;
        Ok(BlockIlu {
            levels: [schedules[0].levels(), schedules[1].levels()],
            solve: Sliced::new(d, &factorisation, &schedules, trisolve)?,
            factorisation,
            trisolve,
        })
    }

    fn ilu_factor(&self, ilu: &mut BlockIlu, a: &Csr, shift: f64) -> Result<(), SingularBlock> {
        let done = ilu.factor(&self.device, a, shift);
        done.unwrap_or_else(|e| {
            self.failure.borrow_mut().get_or_insert(e);
            Ok(())
        })
    }

    fn ilu_apply(&self, ilu: &BlockIlu, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) {
        self.note("triangular solve", ilu.solve.apply(&self.device, r, z));
    }

    fn ilu_pattern<'a>(&self, ilu: &'a BlockIlu) -> &'a FillPattern {
        &ilu.factorisation.pattern
    }

    fn ilu_block_size(&self, ilu: &BlockIlu) -> usize {
        ilu.factorisation.block_size
    }

    fn ilu_bytes(&self, ilu: &BlockIlu) -> Bytes {
        let (pattern, b) = (&ilu.factorisation.pattern, ilu.factorisation.block_size);
        let held = 8 * pattern.blocks() * b * b + pattern.bytes();
        Bytes { held, moved: held + 4 * 8 * pattern.rows() * b }
    }

    fn ilu_trisolve(&self, ilu: &BlockIlu) -> Trisolve {
        ilu.trisolve
    }

    fn ilu_levels(&self, ilu: &BlockIlu) -> [usize; 2] {
        ilu.levels
    }
}

impl BlockIlu {
    fn factor(&mut self, d: &Device, a: &Csr, shift: f64) -> Result<Result<(), SingularBlock>> {
        let shift = if shift == 0.0 { 0.0 } else { shift * a.largest_diagonal() };
        match self.factorisation.run(d, a, shift)? {
            Err(singular) => Ok(Err(singular)),
            Ok(values) => self.solve.set_values(d, &self.factorisation, values).map(Ok),
        }
    }
}
