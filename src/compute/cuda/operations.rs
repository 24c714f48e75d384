//! The verbs of a backend on a GPU.

use crate::compute::{
    Breakdown, Bytes, Clock, Coef, DiluFactors, Executions, Factors, Platform, Products, Slot,
    Step, Storage, Vectors, no_execution,
};
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice};

use super::compressed::{Compressed, Factored};
use super::cusparse::{SpmvSell, StoredMatrix};
use super::execution::{REPLAYED, Recording};
use super::factors::BlockIlu;
use super::formats::Formatted;
use super::launch::address;
use super::sparse::Sparse;
use super::spmv::Stored;
use super::symbolic::{Place, block_rows};
use super::{Cuda, Matrix, fgbilu, in_kernel, sptrsv};
use crate::base::choices::{Execution, FactorPrecision, FgbiluStyle, Format, LevelRule};
use crate::base::error::{Error, Result};
use crate::base::measure::spans::span;
use crate::base::threads::Threads;
use crate::compute::Trisolve;
use crate::compute::krylov::{Persistent, Settings, Solver, System};
use crate::matrix::pattern::TooLarge;
use crate::matrix::{Bsr, Csr};
use crate::symbolic::{BoxFill, FillPattern, GridPattern, Schedule};

impl Cuda {
    /// Factors of a matrix; what fails is kept for [`Platform::check`](crate::compute::Platform::check).
    fn factored(&self, ilu: &mut BlockIlu, a: Factored, shift: f64) -> Result<(), Breakdown> {
        let mut uncounted = 0.0;
        let done = ilu.factor(self, a, shift, &mut uncounted);
        self.uncounted.set(self.uncounted.get() + uncounted);
        done.unwrap_or_else(|e| {
            self.failed(e);
            Ok(())
        })
    }

    /// `a` by rows or in blocks that the device makes.
    fn by_rows(&self, a: &Csr, format: Format) -> Result<Matrix> {
        let (d, block_size) = (&*self.device, a.block_size());
        let scalar = Compressed::copied(d, a)?;
        let blocks = if block_size > 1 && format != Format::Csr {
            Some(d.span("blocks", || block_rows(d, block_size, &scalar))?)
        } else {
            None
        };
        let format = format.stored_in(a, || blocks.as_ref().map_or(0, |rows| rows.entries));
        let blocks = blocks.filter(|_| format == Format::Bsr).map(|rows| (block_size, rows));
        let matrix = if self.vendor {
            let columns = a.cols();
            Matrix::Vendor(StoredMatrix::new(d, self.library()?, scalar, columns, blocks)?)
        } else {
            Matrix::Ours(match blocks {
                Some(blocks) => Stored::blocks(d, scalar, blocks)?,
                None => Stored::rows(d, a.row_ptr(), scalar)?,
            })
        };
        self.checked(a, matrix.scalar())?;
        Ok(matrix)
    }

    /// Looks for numbers that are not finite in a copy of `a`, which others may use then; or in `a`, where there is
    /// none.
    fn checked(&self, a: &Csr, there: Option<Compressed>) -> Result<()> {
        let Some(there) = there else { return span("check", || a.check_finite()) };
        span("check", || {
            let val = &*there.val;
            self.note("check", self.vectors.multi_dot(&self.device, [val], val, Slot(0), false));
            let mut square = [0.0];
            self.read_slots(Slot(0), &mut square);
            // squares of finite numbers may be too large
            if square[0].is_finite() { Ok(()) } else { a.check_finite() }
        })?;
        self.stored.borrow_mut().add(a, &there);
        Ok(())
    }
}

impl Matrix {
    /// Its scalar rows, where they are on the device.
    fn scalar(&self) -> Option<Compressed> {
        match self {
            Self::Ours(a) => a.scalar(),
            Self::Vendor(a) => Some(a.scalar().clone()),
            Self::Formatted(_) | Self::VendorSell(_) => None,
        }
    }
}

impl Platform for Cuda {
    fn device(&self) -> String {
        match self.library.get() {
            Some(library) if self.vendor => {
                format!("{}, cuSPARSE {}", self.device.describe(), library.version())
            }
            _ => {
                let device = self.device.described(&match self.sharers {
                    None => String::new(),
                    Some(1) => " each".to_owned(),
                    Some(ranks) => format!(" shared by {ranks}"),
                });
                if self.setup == Place::Device { format!("{device}, setup there") } else { device }
            }
        }
    }

    fn threads(&self) -> usize {
        1
    }

    fn memory_free(&self) -> usize {
        // what cannot be read is unknown, not zero
        let free = self.device.memory().map_or(usize::MAX, |memory| memory.free);
        free / self.sharers.unwrap_or(1)
    }

    fn copy_bandwidth(&self) -> f64 {
        self.device.copy_bandwidth()
    }

    fn cache_bytes(&self) -> Option<usize> {
        Some(self.device.l2_bytes())
    }

    fn handover_latency(&self) -> Option<f64> {
        Some(self.device.handover_latency()).filter(|s| s.is_finite())
    }

    fn check(&self) -> Result<()> {
        self.synchronise();
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }
}

impl Clock for Cuda {
    type Mark = Option<CudaEvent>;

    fn uncounted(&self) -> f64 {
        self.uncounted.get() + self.device.compile_seconds()
    }

    fn compile_seconds(&self) -> Option<f64> {
        Some(self.device.compile_seconds() - self.compiled_before)
    }

    fn trial_seconds(&self) -> Option<f64> {
        Some(self.uncounted.get())
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

    fn synchronise(&self) {
        self.note("device", self.device.stream().synchronize());
    }
}

impl Vectors for Cuda {
    type Vector = CudaSlice<f64>;

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
        self.note(
            "axpby",
            self.vectors.axpby(&self.device, self.coefficient(a), x, self.coefficient(b), y),
        );
    }

    fn scale(&self, a: Coef, x: &mut CudaSlice<f64>) {
        self.note("scale", self.vectors.scale(&self.device, self.coefficient(a), x));
    }

    fn dot(&self, x: &CudaSlice<f64>, y: &CudaSlice<f64>, out: Slot) {
        self.note("dot", self.vectors.multi_dot(&self.device, [x], y, out, false));
        self.written(out, 1);
    }

    fn norm(&self, x: &CudaSlice<f64>, out: Slot) {
        self.note("norm", self.vectors.multi_dot(&self.device, [x], x, out, true));
        self.written(out, 1);
    }

    fn multi_dot(&self, basis: &[CudaSlice<f64>], w: &CudaSlice<f64>, out: Slot) {
        self.note("multi_dot", self.vectors.multi_dot(&self.device, basis, w, out, false));
        self.written(out, basis.len());
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
        self.written(norm_out, 1);
    }

    fn combine(&self, basis: &[CudaSlice<f64>], coef: &[f64], x: &mut CudaSlice<f64>) {
        self.note("combine", self.vectors.combine(&self.device, basis, coef, x));
    }

    fn ratio(&self, out: Slot, num: &[Slot], den: &[Slot]) {
        if self.ratio_on_host(out, num, den) {
            return;
        }
        self.note("ratio", self.vectors.ratio(&self.device, out, num, den));
    }

    fn scalars(&self, steps: &[Step]) {
        if !self.scalars_on_host(steps) {
            self.note("scalars", self.vectors.scalars(&self.device, steps));
        }
    }

    fn read(&self, first: Slot, out: &mut [f64]) {
        if !self.read_on_host(first, out) {
            self.read_slots(first, out);
        }
    }

    fn reads_meanwhile(&self) -> bool {
        self.mode.fused()
    }

    fn begin_read(&self, first: Slot, count: usize) {
        self.begin_reading(first, count);
    }

    fn end_read(&self, _: Slot, out: &mut [f64]) {
        self.end_reading(out);
    }
}

impl Executions for Cuda {
    type Recording = Recording;
    type BlockIlu = BlockIlu;

    fn execute(&self, execution: Execution) -> Result<()> {
        if self.vendor && execution == Execution::Persistent {
            return Err(no_execution(execution, "a kernel cannot call cuSPARSE"));
        }
        self.mode.set(execution);
        Ok(())
    }

    fn iterations_at_once(&self) -> usize {
        if self.mode.graph() { REPLAYED } else { 1 }
    }

    fn replay(&self, recording: &mut Recording, work: &mut dyn FnMut()) {
        if self.mode.graph() {
            self.replayed(recording, work).unwrap_or_else(|e| self.failed(e));
        } else {
            work();
        }
    }

    fn in_kernel(
        &self,
        method: &'static Persistent,
        settings: &Settings,
        system: &System<Self>,
    ) -> Result<Box<dyn Solver<Self>>> {
        in_kernel::make(self, method, settings, system)
    }
}

impl Products for Cuda {
    type Matrix = Matrix;

    fn format(&self, a: &Matrix) -> Format {
        let block_size = match a {
            Matrix::Ours(a) => a.block_size,
            Matrix::Formatted(a) => return a.format(),
            Matrix::VendorSell(_) => return Format::Sell,
            Matrix::Vendor(a) => a.product().pattern().block_size(),
        };
        if block_size == 1 { Format::Csr } else { Format::Bsr }
    }

    fn tuned(&self, a: &Matrix) -> Option<String> {
        match a {
            Matrix::Formatted(a) => a.tuned(),
            Matrix::Ours(_) | Matrix::Vendor(_) | Matrix::VendorSell(_) => None,
        }
    }

    fn matrix_bytes(&self, a: &Matrix) -> Bytes {
        match a {
            Matrix::Ours(a) => a.bytes(),
            Matrix::Formatted(a) => a.bytes(),
            Matrix::Vendor(a) => a.product().bytes(),
            Matrix::VendorSell(a) => a.bytes(),
        }
    }

    fn spmv(&self, a: &Matrix, x: &CudaSlice<f64>, y: &mut CudaSlice<f64>) {
        match a {
            Matrix::Ours(a) => self.note("spmv", a.product(&self.device, x, 0, y)),
            Matrix::Formatted(a) => self.note("spmv", a.product(&self.device, x, 0, y)),
            Matrix::Vendor(a) => {
                a.product().apply(1.0, x, 0.0, y).unwrap_or_else(|e| self.failed(e));
            }
            Matrix::VendorSell(a) => {
                a.apply(1.0, x, 0.0, y).unwrap_or_else(|e| self.failed(e));
            }
        }
    }

    fn residual(&self, a: &Matrix, x: &CudaSlice<f64>, b: &CudaSlice<f64>, r: &mut CudaSlice<f64>) {
        match a {
            Matrix::Ours(a) => self.note("residual", a.product(&self.device, x, address(b), r)),
            Matrix::Formatted(a) => {
                self.note("residual", a.product(&self.device, x, address(b), r));
            }
            Matrix::Vendor(a) => {
                self.copy(b, r);
                a.product().apply(-1.0, x, 1.0, r).unwrap_or_else(|e| self.failed(e));
            }
            Matrix::VendorSell(a) => {
                self.copy(b, r);
                a.apply(-1.0, x, 1.0, r).unwrap_or_else(|e| self.failed(e));
            }
        }
    }
}

impl Storage for Cuda {
    fn matrix(&self, a: &Arc<Csr>, format: Format) -> Result<Matrix> {
        let d = &self.device;
        let by_rows = matches!(format, Format::Auto | Format::Csr | Format::Bsr);
        if by_rows && (self.vendor || self.setup != Place::Host) {
            return self.by_rows(a, format);
        }
        let format = span("format", || format.stored(a));
        if !matches!(format, Format::Csr | Format::Bsr) {
            span("check", || a.check_finite())?;
            if self.vendor && format == Format::Sell {
                return SpmvSell::new(self.library()?, a).map(Box::new).map(Matrix::VendorSell);
            }
            if self.vendor {
                return Err(Error::input("the backend `cusparse` stores `csr`, `bsr` and `sell`")
                    .hint("run the other formats on `cpu`, `cpu-mt` and `cuda`"));
            }
            return Formatted::new(d, a, format).map(Box::new).map(Matrix::Formatted);
        }
        let matrix = if format == Format::Csr {
            Matrix::Ours(Stored::rows(d, a.row_ptr(), Compressed::copied(d, a)?)?)
        } else {
            Matrix::Ours(Stored::bsr(d, &span("blocks", || Bsr::from_csr(a)))?)
        };
        self.checked(a, matrix.scalar())?;
        Ok(matrix)
    }

    fn matrix_values(&self, matrix: &mut Matrix, a: &Arc<Csr>) -> Result<()> {
        let d = &self.device;
        if let Some(there) = matrix.scalar() {
            self.stored.borrow_mut().forget(&there.val);
        }
        match matrix {
            Matrix::Ours(m) => m.set_values(d, a)?,
            Matrix::Vendor(m) => m.set_values(d, a)?,
            Matrix::Formatted(m) => m.set_values(d, a)?,
            Matrix::VendorSell(m) => m.set_values(a)?,
        }
        self.checked(a, matrix.scalar())
    }
}

impl Factors for Cuda {
    fn ilu_pattern(
        &self,
        a: &Csr,
        fill: usize,
        rule: LevelRule,
        limit: usize,
    ) -> Result<Option<Result<Arc<FillPattern>, TooLarge>>> {
        let place = self.setup;
        if place != Place::Host
            && !self.mode.persistent()
            && let Some(told) = span("box", || BoxFill::of_matrix(Threads::Pool, a, fill, rule))
            && told.entries.iter().sum::<usize>() <= limit
        {
            return self.of_box(a, told).map(|pattern| Some(Ok(pattern)));
        }
        // without fill there is no level to update
        let by_rule = rule == LevelRule::Min || fill == 0;
        let there = by_rule && place.on_device(a.rows() / a.block_size());
        there.then(|| self.filled(a, fill, limit)).transpose()
    }

    fn ilu_analyse(
        &self,
        pattern: &Arc<FillPattern>,
        trisolve: Trisolve,
        precision: FactorPrecision,
    ) -> Result<BlockIlu> {
        BlockIlu::new(self, pattern, None, (trisolve, precision))
    }

    fn ilu_analyse_in_order(
        &self,
        pattern: &Arc<FillPattern>,
        sets: &Schedule,
        trisolve: Trisolve,
        precision: FactorPrecision,
    ) -> Result<BlockIlu> {
        BlockIlu::new(self, pattern, Some(sets), (trisolve, precision))
    }

    fn ilu_factor(&self, ilu: &mut BlockIlu, a: &Csr, shift: f64) -> Result<(), Breakdown> {
        let shift = if shift == 0.0 { 0.0 } else { shift * a.largest_diagonal() };
        let there = self.stored.borrow().find(a);
        self.factored(ilu, Factored::Host(a, there.as_ref()), shift)
    }

    fn ilu_factor_made(&self, ilu: &mut BlockIlu, a: &Sparse, shift: f64) -> Result<(), Breakdown> {
        if let Some(rows) = a.device()
            && shift == 0.0
            && ilu.takes_rows()
        {
            return self.factored(ilu, Factored::Device(rows), shift);
        }
        match self.host(a) {
            Ok(a) => self.ilu_factor(ilu, &a, shift),
            Err(e) => {
                self.failed(e);
                Ok(())
            }
        }
    }

    fn coloured_trisolve(&self) -> Trisolve {
        if self.vendor { Trisolve::AUTO } else { sptrsv::FEW_LEVELS }
    }

    fn ilu_inverse_diagonal(&self, ilu: &BlockIlu) -> Result<Vec<f64>> {
        ilu.inverse_diagonal(&self.device)
    }

    fn ilu_apply(&self, ilu: &BlockIlu, r: &CudaSlice<f64>, z: &mut CudaSlice<f64>) {
        ilu.apply(&self.device, r, z).unwrap_or_else(|e| self.failed(e));
    }

    fn fgbilu_analyse(
        &self,
        grid: &Arc<GridPattern>,
        style: FgbiluStyle,
    ) -> Result<Box<dyn DiluFactors<Self>>> {
        fgbilu::analyse(self, grid, style)
    }
}
