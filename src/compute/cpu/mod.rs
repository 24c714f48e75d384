//! CPU backend: one thread (the papers' reference) or all cores.

mod adaptive;
pub mod bandwidth;
mod bdia;
pub(crate) mod block;
mod chunks;
mod columns;
mod condition;
mod constants;
mod crowding;
mod dilu;
mod entry;
mod finished;
mod groups;
mod ilu;
mod levels;
mod local;
mod multi;
pub(crate) mod multiversion;
mod narrow;
mod numbering;
mod order;
mod pace;
mod parts;
#[cfg(test)]
mod precision_tests;
pub mod product;
mod row_sums;
mod runs;
mod shared;
pub mod simd;
mod single;
pub mod sparse;
mod spmv;
mod stages;
pub mod stream;
mod trsv;
mod values;
mod vector;
mod vectors;

use std::cell::{Cell, RefCell};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::single::SingleVisitor;
use super::{
    Alone, Breakdown, Bytes, Clock, Coef, DiluFactors, Executions, Factors, Platform, Products,
    SLOTS, Slot, Storage, TriangleNorms,
};
use crate::base::choices::{FactorPrecision, FgbiluStyle, Format};
use crate::base::error::{Error, Result};
use crate::base::memory::Buffer;
use crate::base::threads::{Threads, within};
use crate::base::{cores, measure};
use crate::compute::Trisolve;
use crate::compute::distributed::launch;
use crate::compute::multivectors::Multivectors;
use crate::matrix::Csr;
use crate::symbolic::{FillPattern, GridPattern, Schedule};
pub(crate) use block::invert_block;
use crowding::Crowding;
use dilu::Dilu;
pub use ilu::BlockIlu;
use itertools::Itertools as _;
use pace::Pace;
pub use product::Product;
use single::SingleCpu;
pub use sparse::{dense, extracted};
use vectors::Host;

/// Computes on the host, on one thread or on a pool of its own.
pub struct Cpu {
    slots: RefCell<Vec<f64>>,
    pool: Option<Arc<rayon::ThreadPool>>,
    /// The cores of the pool's threads; none where they are not pinned.
    pinned: Vec<usize>,
    crowding: Crowding,
    /// What one thread of a pool made by itself.
    alone: Cell<Alone>,
    /// Scalars whose reading was begun, in tests of methods that go on meanwhile.
    #[cfg(test)]
    pub(crate) meanwhile: RefCell<Option<Vec<f64>>>,
}

/// A matrix stored for products.
pub type Matrix = Box<dyn Product>;

impl Cpu {
    /// One thread.
    pub fn sequential() -> Self {
        let slots = RefCell::new(vec![0.0; SLOTS]);
        Self {
            slots,
            pool: None,
            pinned: Vec::new(),
            crowding: Crowding::default(),
            alone: Cell::default(),
            #[cfg(test)]
            meanwhile: RefCell::default(),
        }
    }

    /// One thread, or a pool of several.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn of_threads(threads: usize) -> Result<Self> {
        if threads == 1 { Ok(Self::sequential()) } else { Self::parallel(Some(threads)) }
    }

    /// `threads` threads for a system of so many entries; for 0 as many as there are cores, or one where several are
    /// slower.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn suited(threads: usize, entries: usize) -> Result<Self> {
        match threads {
            0 if spares_threads(entries) => Ok(Self::sequential()),
            0 => Self::parallel(None),
            _ => Self::of_threads(threads),
        }
    }

    /// A pool of `threads` threads, or of as many as there are cores; each is pinned to a core
    /// when the pool has no more threads than cores, and the cores are those of this rank alone.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn parallel(threads: Option<usize>) -> Result<Self> {
        let threads = threads.unwrap_or_else(|| cores::in_order().len().max(1));
        let cores = pinned(threads);
        let crowding = Crowding::default();
        let watched = crowding.clone();
        let pinned = cores.iter().map(|core| core.id).collect();
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("cpu-mt-{i}"))
            .start_handler(move |i| {
                watched.watch_this_thread();
                if let Some(&core) = cores.get(i) {
                    core_affinity::set_for_current(core);
                }
            })
            .build()
            .map_err(|e| Error::run(format!("cannot start {threads} threads: {e}")))?;
        Ok(Self { pool: Some(Arc::new(pool)), pinned, crowding, ..Self::sequential() })
    }

    /// Another one with the same threads.
    fn beside(&self) -> Self {
        let (pool, pinned, crowding) =
            (self.pool.clone(), self.pinned.clone(), self.crowding.clone());
        Self { pool, pinned, crowding, ..Self::sequential() }
    }

    /// Runs `f(parallel)` on the pool, or here when there is none or `work` numbers are too few
    /// to be worth waking it.
    fn on<R: Send>(&self, work: usize, f: impl FnOnce(bool) -> R + Send) -> R {
        match &self.pool {
            Some(pool) if work >= WORTH_SHARING => within(pool, || f(true)),
            _ => f(false),
        }
    }

    /// Runs `f`, which uses all threads of where it runs, on the pool, or on a thread of its own.
    fn converting<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        static ONE: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
        let one = || rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
        match self.pool.as_deref().or_else(|| ONE.get_or_init(one).as_ref()) {
            Some(pool) => within(pool, f),
            None => f(),
        }
    }

    /// Runs `f` on the pool, if there is one.
    fn pooled<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => within(pool, f),
            None => f(),
        }
    }

    /// Runs `f(alone)`: on the pool, or on this thread where `pace` finds that faster beside other processes.
    /// Counts in the second case. Without a pace it is one thread's work: of few numbers this thread's, as their
    /// vectors are, or one of the pool, where products are.
    fn paced<R: Send>(
        &self,
        work: usize,
        pace: Option<&Pace>,
        count: fn(&mut Alone),
        f: impl FnOnce(bool) -> R + Send,
    ) -> R {
        let several = self.threads() > 1;
        let alone = pace.map_or(work < WORTH_SHARING, |pace| several && pace.alone());
        let start = measure::now();
        // the thread that calls has no core of its own: it goes where there is room
        let done = if alone { f(true) } else { self.pooled(|| f(false)) };
        let Some(pace) = pace.filter(|_| several) else { return done };
        if alone {
            let mut all = self.alone.get();
            count(&mut all);
            self.alone.set(all);
        }
        pace.took(measure::seconds_since(start), self.threads(), || self.crowding.seconds());
        done
    }

    fn value(&self, c: Coef) -> f64 {
        c.value(&self.slots.borrow())
    }

    fn set(&self, slot: Slot, value: f64) {
        self.slots.borrow_mut()[slot.0 as usize] = value;
    }
}

/// The cores to which threads are pinned; none where they are fewer, or where several ranks may share them: a
/// launcher that binds ranks leaves each as many cores as it is to have threads.
fn pinned(threads: usize) -> Vec<core_affinity::CoreId> {
    let cores = cores::in_order();
    let own = launch::ranks() == 1 || cores.len() == threads;
    if own && threads <= cores.len() { cores } else { Vec::new() }
}

/// Numbers below which one thread is faster than several.
const WORTH_SHARING: usize = 1 << 15;

/// Entries of a matrix below which one thread solves faster than several (docs/notes/threads.md).
const WORTH_THREADS: usize = 1 << 18;

/// Whether there are several cores, and one thread is faster for a system of so many entries.
pub(crate) fn spares_threads(entries: usize) -> bool {
    entries < WORTH_THREADS && cores::in_order().len() > 1
}

impl Platform for Cpu {
    fn device(&self) -> String {
        let brand = crate::base::measure::cpu_name();
        match self.threads() {
            1 => format!("{brand}, 1 thread"),
            t => format!("{brand}, {t} threads"),
        }
    }

    fn threads(&self) -> usize {
        self.pool.as_deref().map_or(1, rayon::ThreadPool::current_num_threads)
    }

    fn placement(&self) -> Option<String> {
        (!self.pinned.is_empty()).then(|| self.pinned.iter().join(" "))
    }

    fn on_cores(&self) -> bool {
        true
    }

    fn memory_free(&self) -> usize {
        measure::memory_free()
    }

    fn copy_bandwidth(&self) -> f64 {
        bandwidth::copy_bandwidth(self.threads())
    }

    fn cache_bytes(&self) -> Option<usize> {
        bandwidth::bandwidth(self.threads()).cache_bytes
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn on_host<R: Send>(&self, work: impl FnOnce(Threads) -> R + Send) -> R {
        match &self.pool {
            Some(pool) => within(pool, || work(Threads::Pool)),
            None => work(Threads::One),
        }
    }
}

impl Clock for Cpu {
    type Mark = Instant;

    fn kept_waiting(&self) -> Option<f64> {
        self.crowding.seconds()
    }

    fn made_alone(&self) -> Alone {
        self.alone.get()
    }

    fn mark(&self) -> Instant {
        measure::now()
    }

    fn seconds(&self, from: &Instant, to: &Instant) -> f64 {
        to.duration_since(*from).as_secs_f64()
    }

    fn synchronise(&self) {}
}

impl Host for Cpu {
    type Number = f64;

    fn cpu(&self) -> &Cpu {
        self
    }
}

impl Executions for Cpu {
    type Recording = ();
    type BlockIlu = BlockIlu;

    fn in_single<V: SingleVisitor<Self>>(
        &self,
        a: &Matrix,
        visitor: V,
    ) -> Result<Option<V::Output>> {
        a.single().map(|_| visitor.visit(self, SingleCpu::of(self))).transpose()
    }

    fn multivectors(&self) -> Option<&dyn Multivectors<Self>> {
        Some(self)
    }
}

impl Products for Cpu {
    type Matrix = Matrix;

    fn format(&self, a: &Matrix) -> Format {
        a.format()
    }

    fn matrix_bytes(&self, a: &Matrix) -> Bytes {
        // x is read and y written
        Bytes { held: a.bytes(), moved: a.read() + 16 * a.rows() }
    }

    fn spmv(&self, a: &Matrix, x: &Buffer<f64>, y: &mut Buffer<f64>) {
        self.on(a.stored(), |parallel| a.product(x, None, y, parallel));
    }

    fn residual(&self, a: &Matrix, x: &Buffer<f64>, b: &Buffer<f64>, r: &mut Buffer<f64>) {
        self.on(a.stored(), |parallel| a.product(x, Some(b), r, parallel));
    }

    fn subtract(&self, a: &Matrix, x: &Buffer<f64>, y: &mut Buffer<f64>, other: &mut Buffer<f64>) {
        if !self.on(a.stored(), |parallel| a.subtract(x, y, parallel)) {
            self.residual(a, x, y, other);
            std::mem::swap(y, other);
        }
    }

    fn subtract_moved(&self, a: &Matrix) -> usize {
        a.subtract_moved().unwrap_or_else(|| self.matrix_bytes(a).moved)
    }
}

impl Storage for Cpu {
    fn matrix(&self, a: &Arc<Csr>, format: Format) -> Result<Matrix> {
        self.converting(|| product::stored(a, format))
    }

    fn matrix_values(&self, matrix: &mut Matrix, a: &Arc<Csr>) -> Result<()> {
        self.converting(|| matrix.set_values(a));
        Ok(())
    }
}

impl Factors for Cpu {
    fn ilu_analyse(
        &self,
        pattern: &Arc<FillPattern>,
        trisolve: Trisolve,
        precision: FactorPrecision,
    ) -> Result<BlockIlu> {
        if trisolve != Trisolve::AUTO {
            return Err(Error::input("the CPU has one variant of triangular solves")
                .hint("leave `--trisolve` at `auto` for it"));
        }
        if precision == FactorPrecision::Adaptive && !adaptive::addressable(pattern) {
            return Err(Error::input("factors of more than 8 GiB have no `adaptive` precision")
                .hint("choose `--factor-precision float32`"));
        }
        Ok(self.on(pattern.numbers(), |parallel| BlockIlu::new(pattern, precision, parallel)))
    }

    fn ilu_analyse_in_order(
        &self,
        pattern: &Arc<FillPattern>,
        sets: &Schedule,
        trisolve: Trisolve,
        precision: FactorPrecision,
    ) -> Result<BlockIlu> {
        let mut ilu = self.ilu_analyse(pattern, trisolve, precision)?;
        ilu.renumber(&sets.rows);
        Ok(ilu)
    }

    fn ilu_factor(&self, ilu: &mut BlockIlu, a: &Csr, shift: f64) -> Result<(), Breakdown> {
        let factoring = ilu.plan.as_ref().map(|plan| Arc::clone(&plan.factoring));
        self.paced(
            ilu.pattern.numbers(),
            factoring.as_deref(),
            |all| all.factorisations += 1,
            |alone| ilu.factor(a, shift, alone),
        )
    }

    fn ilu_factor_made(
        &self,
        ilu: &mut BlockIlu,
        a: &Self::Sparse,
        shift: f64,
    ) -> Result<(), Breakdown> {
        self.ilu_factor(ilu, a, shift)
    }

    fn ilu_inverse_diagonal(&self, ilu: &BlockIlu) -> Result<Vec<f64>> {
        Ok(ilu.inverse_diagonal())
    }

    fn ilu_triangle_norms(
        &self,
        ilu: &BlockIlu,
        rows: &[f64],
        columns: &[f64],
    ) -> Option<TriangleNorms> {
        ilu.renumbered.is_none().then(|| condition::triangle_norms(ilu, rows, columns))
    }

    fn ilu_apply(&self, ilu: &BlockIlu, r: &Buffer<f64>, z: &mut Buffer<f64>) {
        let pace = ilu.plan.as_ref().map(|plan| &plan.solving);
        self.paced(
            ilu.pattern.numbers(),
            pace,
            |all| all.solves += 1,
            |alone| match &ilu.renumbered {
                Some(numbering) => {
                    numbering.around(r, z, alone, |r, z| trsv::apply(ilu, r, z, alone));
                }
                None => trsv::apply(ilu, r, z, alone),
            },
        );
    }

    fn dilu_analyse(&self, pattern: &Arc<FillPattern>) -> Option<Box<dyn DiluFactors<Self>>> {
        Some(Box::new(self.on(pattern.numbers(), |parallel| Dilu::on(pattern, parallel))))
    }

    fn fgbilu_analyse(
        &self,
        grid: &Arc<GridPattern>,
        style: FgbiluStyle,
    ) -> Result<Box<dyn DiluFactors<Self>>> {
        if style != FgbiluStyle::Auto {
            return Err(Error::input("the CPU has one execution of fgbilu")
                .hint("leave `--fgbilu-style` at `auto` for it"));
        }
        Ok(Box::new(self.on(grid.factors.numbers(), |parallel| Dilu::on_grid(grid, parallel))))
    }
}
