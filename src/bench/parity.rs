//! Every operation of a backend against the sequential CPU, on random input of odd sizes: the self-test
//! of `doctor` and the parity tests.

mod algebra;
mod executions;
mod factors;
mod formats;
mod grids;
mod operations;
mod patterns;
mod preconditioners;
mod sizes;

use crate::compute::{Backend, FactorInfo};
use std::sync::Arc;

use clap::ValueEnum;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::base::error::Result;
use crate::case::{Case, FactorPrecision, FgbiluStyle, Format, ReadAs, Trisolve};
use crate::compute::cpu::Cpu;
use crate::compute::trisolve::Takes as Factors;
use crate::matrix::Csr;
use crate::methods::precond::Takes;
use crate::methods::{precond, solver};
use crate::problem;
use crate::symbolic::FillPattern;
use operations::{basis_operations, iterations, products, scalars, simple};
pub use sizes::Extent;
use sizes::Sizes;

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

/// Results differ only by the rounding of reordered sums.
const LIMIT: f64 = 1e-12;

/// The same for solves with factors of diagonally dominant matrices. Rounding errors do not grow, so that
/// differences relative to the largest entry are also backward errors.
const SOLVE_LIMIT: f64 = 1e-13;

/// The same for factors stored in float32: where two backends' float64 differs in its last bit, one
/// value in some hundred million is rounded in the other direction, by 6e-8 of itself. The limit is below the
/// error of any solve in float32 arithmetic.
const SINGLE_LIMIT: f64 = 1e-8;

/// The algorithm that `k` uses for `trisolve`.
///
/// # Errors
/// When `k` does not have it.
pub fn algorithm<K: Backend>(k: &K, trisolve: Trisolve) -> Result<Trisolve> {
    let ilu =
        k.ilu_analyse(&Arc::new(FillPattern::diagonal(3, 1)), trisolve, FactorPrecision::Float64)?;
    Ok(ilu.trisolve())
}

/// Compares `k` with the CPU; `trisolves` are the algorithms of triangular solves to compare, at least one.
/// `seed` decides the input. `report` receives every comparison as it is made.
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
    // the choice may fall on each of these, which a tool may have to leave out
    let mut choice = Trisolve::which(|about| about.automatic && about.takes != Factors::Axes);
    let all = choice.all(|algorithm| trisolves.contains(&algorithm));
    bench.executions(all || trisolves.contains(&Trisolve::AUTO))?;
    bench.algebra()?;
    bench.deflation()?;
    let (general, stencils) = (general(trisolves), of(trisolves, Factors::Stencils));
    bench.stencils(&stencils)?;
    bench.pencils(&of(trisolves, Factors::Axes))?;
    if trisolves.contains(&Trisolve::AUTO) || !stencils.is_empty() {
        let chosen = all || trisolves.contains(&Trisolve::AUTO);
        let mut styles = FgbiluStyle::value_variants().to_vec();
        styles.retain(|style| chosen || *style != FgbiluStyle::Auto);
        bench.grids(&styles)?;
        bench.no_pivots(&styles)?;
    }
    if all {
        bench.chosen()?;
    }
    if !general.is_empty() {
        bench.triangles(&general)?;
        bench.solvers(&general)?;
        bench.preconditioners(&general)?;
    }
    k.check()
}

/// Comparisons that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Products with matrices, in every format
    Products,
    /// Solvers in every execution
    Executions,
    /// Preconditioners, what sets them up, and deflation
    Preconditioners,
    /// Factorisations and triangular solves that march over boxes
    Stencils,
    /// Triangular solves by pencils of cells
    Pencils,
    /// Factorisations and triangular solves of any pattern
    Triangles,
}

/// As [`compare`], for one part. Only preconditioners and triangles use `trisolves`.
///
/// # Errors
/// When an operation fails altogether.
pub fn compare_part<K: Backend + 'static>(
    k: &K,
    part: Part,
    trisolves: &[Trisolve],
    extent: Extent,
    seed: u64,
    report: &mut dyn FnMut(Finding),
) -> Result<()> {
    let mut bench = Bench::new(k, extent, seed, report);
    let all: Vec<Trisolve> = Trisolve::which(|_| true).collect();
    match part {
        Part::Products => {
            bench.products()?;
            bench.formats()?;
        }
        Part::Executions => bench.executions(true)?,
        Part::Preconditioners => {
            bench.algebra()?;
            bench.deflation()?;
            bench.preconditioners(&general(trisolves))?;
        }
        Part::Stencils => bench.stencils(&of(&all, Factors::Stencils))?,
        Part::Pencils => bench.pencils(&of(&all, Factors::Axes))?,
        Part::Triangles => bench.triangles(&general(trisolves))?,
    }
    k.check()
}

/// The algorithms that accept any matrix.
fn general(trisolves: &[Trisolve]) -> Vec<Trisolve> {
    let of_boxes = |algorithm: &Trisolve| algorithm.is(|about| about.takes != Factors::Any);
    trisolves.iter().copied().filter(|algorithm| !of_boxes(algorithm)).collect()
}

/// The algorithms that accept these factors.
fn of(trisolves: &[Trisolve], factors: Factors) -> Vec<Trisolve> {
    let such = |algorithm: &Trisolve| algorithm.is(|about| about.takes == factors);
    trisolves.iter().copied().filter(such).collect()
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
        let made = Csr::new(n, n, row_ptr, col_ind, values);
        Arc::new(made.expect("valid by construction").in_blocks(b))
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
                    |k| products(k, &a, format, &x, &y),
                    |k| products(k, &a, format, &x, &y),
                )?;
            }
        }
        Ok(())
    }

    /// Iteration counts differ by one at most.
    fn solvers(&mut self, trisolves: &[Trisolve]) -> Result<()> {
        let a = problem::load(self.sizes.system, ReadAs::Expanded)?.matrix;
        let rhs = self.random(a.rows());
        let all = solver::compared().flat_map(|(solver, with)| {
            let count = with.len().min(self.sizes.compared);
            with[..count].iter().map(move |with| (solver, *with))
        });
        for (solver, (precond, b, fill)) in all {
            if precond::takes(precond) == Some(Takes::Grid) && !grids::offered(self.k)? {
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
            let host = Case { trisolve: Trisolve::AUTO, ..case.clone() };
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
