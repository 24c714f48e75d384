//! Every operation of a backend against the sequential CPU, on random input of odd sizes: the self-test
//! of `doctor` and the parity tests.

mod executions;
mod factors;
mod formats;
mod grids;
mod operations;
mod patterns;
mod preconditioners;

use std::sync::Arc;

use clap::ValueEnum;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::backend::Backend;
use crate::backend::cpu::Cpu;
use crate::case::{Case, FactorPrecision, FgbiluStyle, Format, ReadAs, Side, Trisolve};
use crate::error::Result;
use crate::matrix::Csr;
use crate::problem;
use crate::symbolic::FillPattern;
use executions::Methods;
use operations::{basis_operations, iterations, products, scalars, simple};

/// One comparison.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was compared: operation, sizes.
    pub check: String,
    /// Largest difference relative to the largest entry; not a number when a value is missing.
    pub difference: f64,
    /// Largest difference allowed.
    pub limit: f64,
}

impl Finding {
    /// Whether the two agree.
    pub fn passed(&self) -> bool {
        self.difference <= self.limit
    }
}

/// Rounding differs by the order of sums alone.
const LIMIT: f64 = 1e-12;

/// The same for solves with factors of diagonally dominant matrices: nothing makes rounding grow, so
/// that differences relative to the largest entry are backward errors, too.
const SOLVE_LIMIT: f64 = 1e-13;

/// The same for factors stored in float32: where two backends' float64 differs in its last bit, one
/// number in some hundred millions is rounded the other way, by 6e-8 of itself. It is less than
/// arithmetic in float32 would make of any solve.
const SINGLE_LIMIT: f64 = 1e-8;

/// How much is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Every operation with many sizes: what a change of a kernel must pass.
    #[default]
    Full,
    /// Every operation with few and small sizes, for a look that takes seconds and for tools that
    /// slow every access down.
    Quick,
}

/// The sizes that an extent stands for.
struct Sizes {
    /// Lengths of vectors.
    vectors: &'static [usize],
    /// Lengths and numbers of basis vectors.
    bases: &'static [(usize, usize)],
    /// Unknowns per block: with kernels of their own on the CPU, odd, above 8 and above a warp.
    blocks: &'static [usize],
    /// Rows of the largest product.
    product_rows: usize,
    /// Fill levels.
    fills: &'static [usize],
    /// Block rows of random matrices that are factored, up to and above 8 unknowns per block.
    block_rows: [usize; 2],
    /// Matrix that is factored beside the random ones.
    grid: &'static str,
    /// Boxes of cells, with unknowns per cell and fill levels, of stencils.
    boxes: &'static [([usize; 3], usize, usize)],
    /// Boxes of points, with unknowns per point, for FGBILU.
    grids: &'static [([usize; 3], usize)],
    /// Block rows and block sizes of matrices with special patterns.
    patterns: &'static [(usize, usize)],
    /// Rows of a chain, for ways that do not launch a kernel per level.
    chain: usize,
    /// Block rows and block sizes of matrices whose factors are stored in float32.
    single: &'static [(usize, usize)],
    /// Boxes of stencils whose factors are.
    single_boxes: &'static [([usize; 3], usize, usize)],
    /// Block sizes with a singular block.
    singular: &'static [usize],
    /// Matrices of the formats for regular patterns, with their block sizes.
    reservoirs: &'static [(&'static str, usize)],
    /// Systems and methods for every execution.
    methods: &'static [Methods],
    /// Rows of matrices with rows of very different length.
    uneven: &'static [usize],
    /// Matrix of the solvers.
    system: &'static str,
    /// Systems for every preconditioner, with their block sizes and deflation vectors.
    systems: &'static [(&'static str, usize, &'static str)],
    /// Solvers with preconditioner, block size and fill level.
    solvers: &'static [(&'static str, &'static str, usize, usize)],
}

const BOTH: &[(&str, Side)] = &[("bicgstab", Side::Right), ("qmr", Side::Right)];
const EACH_SIDE: &[(&str, Side)] =
    &[("bicgstab", Side::Right), ("qmr", Side::Right), ("qmr", Side::Left)];

const FULL: Sizes = Sizes {
    vectors: &[1, 2, 3, 31, 257, 1001, 70_003],
    bases: &[
        (5, 1),
        (1001, 3),
        (70_003, 5),
        (999, 13),
        (4097, 20),
        (333, 24),
        (77, 31),
        (129, 33),
        (65, 70),
    ],
    blocks: &[1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 25, 32, 40],
    product_rows: 3001,
    fills: &[0, 1, 3],
    block_rows: [211, 23],
    grid: "poisson3d:13x7x9",
    boxes: &[
        ([2, 3, 11], 1, 0),
        ([1, 1, 1], 1, 0),
        ([1009, 11, 3], 1, 0),
        ([2, 1, 37], 1, 0),
        ([3, 1, 40], 1, 1),
        ([67, 45, 1], 1, 2),
        ([31, 29, 37], 1, 0),
        ([43, 17, 19], 1, 1),
        ([19, 40, 23], 1, 2),
        ([23, 18, 21], 1, 3),
        ([90, 70, 2], 1, 0),
        ([11, 13, 17], 2, 0),
        ([14, 19, 11], 2, 1),
        ([13, 11, 12], 2, 3),
        ([37, 22, 13], 3, 0),
        ([19, 23, 10], 3, 1),
        ([9, 12, 11], 3, 2),
        ([12, 11, 10], 4, 0),
        ([33, 40, 1], 4, 0),
        ([11, 9, 13], 4, 1),
        ([2, 29, 3], 5, 0),
        ([7, 10, 9], 5, 1),
        ([8, 7, 9], 6, 0),
        ([10, 9, 8], 7, 0),
        ([9, 8, 7], 7, 1),
        ([13, 12, 11], 8, 0),
        ([8, 9, 10], 8, 2),
        ([6, 7, 8], 13, 0),
        ([5, 7, 6], 25, 0),
        ([5, 6, 7], 32, 1),
    ],
    grids: &[
        ([2, 3, 11], 1),
        ([13, 5, 9], 2),
        ([12, 9, 7], 4),
        ([11, 13, 5], 5),
        ([15, 15, 15], 6),
        ([6, 9, 8], 9),
        ([5, 7, 6], 16),
        ([5, 6, 4], 31),
        ([4, 5, 7], 32),
        ([4, 3, 5], 33),
    ],
    patterns: &[(1, 1), (2, 3), (1500, 1), (700, 3), (300, 5), (150, 8), (60, 32)],
    chain: 20_000,
    single: &[(700, 1), (300, 3), (60, 16)],
    single_boxes: &[
        ([31, 29, 37], 1, 0),
        ([23, 18, 21], 1, 3),
        ([9, 12, 11], 3, 2),
        ([13, 12, 11], 8, 0),
        ([5, 7, 6], 25, 0),
    ],
    singular: &[1, 2, 5, 8, 13, 33],
    reservoirs: &[
        ("reservoir:9x10x11,k=1,wells=4", 1),
        ("reservoir:13x9x12,k=2,wells=7", 2),
        ("reservoir:13x9x12,k=2,wells=7,bias=half", 2),
        ("reservoir:8x9x7,k=2,wells=0,bias=half", 2),
        ("reservoir:7x11x13,k=3,wells=6", 3),
        ("reservoir:30x17x19,k=4,wells=9", 4),
        ("reservoir:9x17x5,k=4,wells=9,bias=half", 4),
        ("reservoir:11x12x9,k=8,wells=5", 8),
        ("reservoir:11x5x9,k=8,wells=5,bias=half", 8),
        ("poisson3d:7x1x1", 1),
        ("poisson3d:4x1x6", 1),
        ("blockpoisson3d:9x8x11,b=25", 25),
    ],
    methods: &[
        ("poisson3d:1x1x1", 1, Format::Csr, "none", BOTH),
        ("poisson3d:1x1x1", 1, Format::Csr, "jacobi", BOTH),
        ("poisson3d:7x1x5", 1, Format::Csr, "jacobi", BOTH),
        ("blockpoisson3d:3x2x1,b=5", 5, Format::Bsr, "jacobi", BOTH),
        ("poisson3d:19x17x5", 1, Format::Csr, "none", EACH_SIDE),
        ("reservoir:9x10x11,k=1,wells=4,days=0.003", 1, Format::Csr, "jacobi", BOTH),
        ("reservoir:9x10x11,k=1,wells=4,days=0.003", 1, Format::Bdia, "jacobi", BOTH),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Csr, "jacobi", BOTH),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Bsr, "jacobi", EACH_SIDE),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Hyb, "jacobi", BOTH),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Dia, "jacobi", BOTH),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Bdia, "jacobi", EACH_SIDE),
        ("reservoir:7x11x13,k=3,wells=6,days=0.003", 3, Format::Bsr, "jacobi", BOTH),
        ("reservoir:7x11x13,k=3,wells=6,days=0.003", 3, Format::Bdia, "jacobi", BOTH),
        ("reservoir:30x17x19,k=4,wells=9,days=0.003", 4, Format::Bsr, "jacobi", BOTH),
        ("reservoir:30x17x19,k=4,wells=9,days=0.003", 4, Format::Bdia, "jacobi", BOTH),
        ("reservoir:11x12x9,k=8,wells=5,days=0.001", 8, Format::Bsr, "jacobi", BOTH),
        ("reservoir:11x12x9,k=8,wells=5,days=0.001", 8, Format::Bdia, "jacobi", BOTH),
    ],
    uneven: &[1, 33, 1001, 5000],
    system: "poisson3d:20",
    systems: &[
        ("bubbly:23x19x17,bubbles=3,radius=0.12", 1, "levelset-subdomain:2"),
        ("fem-p1:41x37", 1, "subdomain:5x3x1"),
        ("layered:13x12x16,layers=8,contrast=1e5", 1, "levelset"),
        ("poisson3d:19x18x17", 1, "subdomain:9"),
        ("blockpoisson3d:9x8x7,b=3,reaction=1", 3, "subdomain:2x3x1"),
        ("poisson3d:6x5x16", 8, "subdomain:2"),
    ],
    solvers: &[
        ("gmres", "bilu", 1, 0),
        ("gmres", "bilu", 4, 1),
        ("bicgstab", "bilu", 2, 1),
        ("cg", "bilu", 1, 0),
        ("cg", "jacobi", 4, 0),
        ("gmres", "none", 1, 0),
        ("correction", "bilu", 4, 1),
        ("correction", "fgbilu", 1, 0),
        ("gmres", "fgbilu", 4, 0),
        ("bicgstab", "fgbilu", 2, 0),
    ],
};

const QUICK: Sizes = Sizes {
    vectors: &[1, 33, 1001],
    bases: &[(5, 1), (333, 13), (65, 70)],
    blocks: &[1, 2, 5, 13, 33],
    product_rows: 301,
    fills: &[0, 1],
    block_rows: [41, 5],
    grid: "poisson3d:5x4x3",
    boxes: &[
        ([9, 20, 9], 1, 0),
        ([7, 19, 5], 1, 2),
        ([5, 9, 7], 2, 1),
        ([4, 7, 6], 5, 0),
        ([3, 6, 6], 13, 0),
    ],
    grids: &[([7, 5, 3], 1), ([5, 4, 6], 6), ([3, 4, 2], 32)],
    patterns: &[(1, 1), (70, 1), (40, 5)],
    chain: 500,
    single: &[(70, 1), (40, 3)],
    single_boxes: &[([9, 20, 9], 1, 0), ([4, 7, 6], 5, 0)],
    singular: &[1, 5],
    reservoirs: &[
        ("reservoir:5x6x3,k=1,wells=3", 1),
        ("reservoir:7x6x8,k=2,wells=3", 2),
        ("reservoir:3x6x5,k=3,wells=2", 3),
        ("reservoir:7x6x8,k=4,wells=3,bias=half", 4),
    ],
    methods: &[
        ("poisson3d:1x1x1", 1, Format::Csr, "jacobi", BOTH),
        ("reservoir:5x6x3,k=1,wells=3,days=0.003", 1, Format::Csr, "jacobi", BOTH),
        ("reservoir:7x6x8,k=2,wells=3,days=0.003", 2, Format::Bdia, "jacobi", EACH_SIDE),
        ("reservoir:3x6x5,k=3,wells=2,days=0.003", 3, Format::Bsr, "jacobi", BOTH),
    ],
    uneven: &[150],
    system: "poisson3d:6",
    systems: &[
        ("bubbly:7x6x5,bubbles=1,radius=0.2", 1, "levelset-subdomain:2"),
        ("blockpoisson3d:4x3x3,b=3,reaction=1", 3, "subdomain:2"),
    ],
    solvers: &[
        ("gmres", "bilu", 2, 1),
        ("bicgstab", "bilu", 1, 0),
        ("cg", "jacobi", 2, 0),
        ("correction", "fgbilu", 1, 0),
    ],
};

impl Extent {
    fn sizes(self) -> &'static Sizes {
        match self {
            Self::Full => &FULL,
            Self::Quick => &QUICK,
        }
    }
}

/// The way that `trisolve` stands for on `k`.
///
/// # Errors
/// When `k` cannot solve triangular systems in this way.
pub fn way<K: Backend>(k: &K, trisolve: Trisolve) -> Result<Trisolve> {
    let ilu =
        k.ilu_analyse(&Arc::new(FillPattern::diagonal(3)), 1, trisolve, FactorPrecision::Float64)?;
    Ok(k.ilu_trisolve(&ilu))
}

/// Compares `k` with the CPU; `trisolves` are the ways of triangular solves to try, at least one.
/// `seed` decides the input. Every comparison is handed to `report` as it is made.
///
/// # Errors
/// When an operation fails altogether.
pub fn compare<K: Backend + 'static>(
    k: &K,
    trisolves: &[Trisolve],
    extent: Extent,
    seed: u64,
    report: &mut dyn FnMut(Finding),
) -> Result<()> {
    let mut bench = Bench::new(k, extent, seed, report);
    bench.vectors()?;
    bench.products()?;
    bench.formats()?;
    bench.executions()?;
    bench.deflation()?;
    // those that take any matrix
    let mut general = trisolves.to_vec();
    general.retain(|way| *way != Trisolve::Wavefront);
    if general.len() < trisolves.len() {
        bench.stencils()?;
    }
    // the choice may fall on each of these, which a tool may have to leave out
    let choice = [Trisolve::Wavefront, Trisolve::Partitioned, Trisolve::Syncfree];
    let all = choice.iter().all(|way| trisolves.contains(way));
    if trisolves.iter().any(|way| matches!(way, Trisolve::Auto | Trisolve::Wavefront)) {
        let chosen = all || trisolves.contains(&Trisolve::Auto);
        let mut styles = FgbiluStyle::value_variants().to_vec();
        styles.retain(|style| chosen || *style != FgbiluStyle::Auto);
        bench.grids(&styles)?;
        bench.no_pivots(&styles)?;
    }
    if all {
        bench.chosen()?;
    }
    if !general.is_empty() {
        bench.factors(&general)?;
        bench.patterns(&general)?;
        bench.empty_triangles(&general)?;
        bench.long_chain(&general)?;
        bench.single(&general)?;
        bench.singular(&general)?;
        bench.solvers(&general)?;
        bench.preconditioners(&general)?;
    }
    k.check()
}

/// Compares products alone, in every format; else as [`compare`].
///
/// # Errors
/// When an operation fails altogether.
pub fn compare_products<K: Backend + 'static>(
    k: &K,
    extent: Extent,
    seed: u64,
    report: &mut dyn FnMut(Finding),
) -> Result<()> {
    let mut bench = Bench::new(k, extent, seed, report);
    bench.products()?;
    bench.formats()?;
    k.check()
}

/// Compares every preconditioner and deflation alone; else as [`compare`].
///
/// # Errors
/// When an operation fails altogether.
pub fn compare_preconditioners<K: Backend + 'static>(
    k: &K,
    trisolves: &[Trisolve],
    extent: Extent,
    seed: u64,
    report: &mut dyn FnMut(Finding),
) -> Result<()> {
    let mut bench = Bench::new(k, extent, seed, report);
    let mut general = trisolves.to_vec();
    general.retain(|way| *way != Trisolve::Wavefront);
    bench.deflation()?;
    bench.preconditioners(&general)?;
    k.check()
}

struct Bench<'a, K: Backend> {
    k: &'a K,
    cpu: Cpu,
    sizes: &'static Sizes,
    rng: ChaCha8Rng,
    report: &'a mut dyn FnMut(Finding),
}

/// Largest difference relative to the largest entry; not a number when `got` holds one.
fn difference(got: &[f64], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let scale = want.iter().fold(f64::MIN_POSITIVE, |m, v| m.max(v.abs()));
    let worst = got.iter().zip(want).map(|(g, w)| (g - w).abs());
    worst.fold(0.0, |m: f64, d| if d.is_nan() || m.is_nan() { f64::NAN } else { m.max(d) }) / scale
}

impl<'a, K: Backend + 'static> Bench<'a, K> {
    fn new(k: &'a K, extent: Extent, seed: u64, report: &'a mut dyn FnMut(Finding)) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self { k, cpu: Cpu::sequential(), sizes: extent.sizes(), rng, report }
    }

    fn random(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.rng.random_range(-1.0..1.0)).collect()
    }

    fn found(&mut self, check: String, got: &[f64], want: &[f64], limit: f64) {
        (self.report)(Finding { check, difference: difference(got, want), limit });
    }

    /// Runs `f` on both backends and compares what it returns.
    fn both(
        &mut self,
        check: String,
        on_k: impl FnOnce(&K) -> Result<Vec<f64>>,
        on_cpu: impl FnOnce(&Cpu) -> Result<Vec<f64>>,
    ) -> Result<()> {
        let (got, want) = (on_k(self.k)?, on_cpu(&self.cpu)?);
        self.found(check, &got, &want, LIMIT);
        Ok(())
    }

    fn vectors(&mut self) -> Result<()> {
        for &n in self.sizes.vectors {
            let (x, y) = (self.random(n), self.random(n));
            self.both(
                format!("vector operations, n {n}"),
                |k| simple(k, &x, &y),
                |k| simple(k, &x, &y),
            )?;
            self.both(
                format!("dot, norm, ratio, n {n}"),
                |k| scalars(k, &x, &y),
                |k| scalars(k, &x, &y),
            )?;
        }
        for &(n, m) in self.sizes.bases {
            let basis: Vec<Vec<f64>> = (0..m).map(|_| self.random(n)).collect();
            let w = self.random(n);
            self.both(
                format!("multi_dot, multi_axpy_norm, combine, n {n}, {m} vectors"),
                |k| basis_operations(k, &basis, &w),
                |k| basis_operations(k, &basis, &w),
            )?;
        }
        Ok(())
    }

    /// Random matrix of `rows` block rows with a full diagonal; one row is dense when `dense`.
    fn matrix(&mut self, rows: usize, b: usize, per_row: usize, dense: bool) -> Arc<Csr> {
        let n = rows * b;
        let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
        let dense_row = self.rng.random_range(0..n);
        for i in 0..n {
            let mut columns: Vec<u32> =
                (0..per_row).map(|_| self.rng.random_range(0..n as u32)).collect();
            if dense && i == dense_row {
                columns = (0..n as u32).collect();
            }
            columns.push(i as u32);
            columns.sort_unstable();
            columns.dedup();
            let weight = columns.len() as f64;
            for &j in &columns {
                let v: f64 = self.rng.random_range(-1.0..1.0);
                values.push(if j as usize == i { 2.0 * weight + v } else { v });
            }
            col_ind.extend(columns);
            row_ptr.push(col_ind.len() as u32);
        }
        Arc::new(Csr::new(n, n, row_ptr, col_ind, values).expect("valid by construction"))
    }

    fn products(&mut self) -> Result<()> {
        for &b in self.sizes.blocks {
            let most = self.sizes.product_rows / b;
            for (rows, per_row, dense) in [(1, 1, false), (37, 3, false), (most, 5, true)] {
                let a = self.matrix(rows, b, per_row, dense);
                let (x, y) = (self.random(a.rows()), self.random(a.rows()));
                let format = if b == 1 { Format::Csr } else { Format::Bsr };
                self.both(
                    format!("product, residual, b {b}, {rows} block rows"),
                    |k| products(k, &a, b, format, &x, &y),
                    |k| products(k, &a, b, format, &x, &y),
                )?;
            }
        }
        Ok(())
    }

    /// Iteration counts differ by one at most.
    fn solvers(&mut self, trisolves: &[Trisolve]) -> Result<()> {
        let a = problem::load(self.sizes.system, ReadAs::Expanded)?.matrix;
        let rhs = self.random(a.rows());
        for &(solver, precond, b, fill) in self.sizes.solvers {
            if precond == "fgbilu" && !grids::offered(self.k)? {
                continue;
            }
            let case = Case {
                solver: solver.into(),
                precond: precond.into(),
                block_size: b,
                fill,
                trisolve: trisolves[0],
                ..Case::default()
            };
            let host = Case { trisolve: Trisolve::Auto, ..case.clone() };
            let want = iterations(&self.cpu, &a, &host, &rhs)?;
            let got = iterations(self.k, &a, &case, &rhs)?;
            (self.report)(Finding {
                check: format!(
                    "{solver} with {precond}, b {b}, k {fill}: {got} iterations, {want} on the CPU"
                ),
                difference: (got as f64 - want as f64).abs(),
                limit: 1.0,
            });
        }
        Ok(())
    }
}
