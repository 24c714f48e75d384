//! Every operation of a backend against the sequential CPU, on random input of odd sizes: the self-test
//! of `doctor` and the parity tests.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::backend::cpu::Cpu;
use crate::backend::{Backend, Coef, Slot};
use crate::case::{Case, Format, LevelRule, ReadAs, Trisolve};
use crate::error::Result;
use crate::matrix::Csr;
use crate::precond::{self, Phase, Phases, Setup};
use crate::problem;
use crate::solver::{self, Settings, Stop, System};
use crate::symbolic::{FillPattern, block_pattern, iluk};

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
    /// Unknowns per block: with kernels of their own on the CPU, larger, odd and above a warp.
    blocks: &'static [usize],
    /// Rows of the largest product.
    product_rows: usize,
    /// Fill levels.
    fills: &'static [usize],
    /// Block rows of random matrices that are factored, up to and above 8 unknowns per block.
    block_rows: [usize; 2],
    /// Matrix that is factored beside the random ones.
    grid: &'static str,
    /// Block sizes with a singular block.
    singular: &'static [usize],
    /// Matrix of the solvers.
    system: &'static str,
    /// Solvers with preconditioner, block size and fill level.
    solvers: &'static [(&'static str, &'static str, usize, usize)],
}

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
    singular: &[1, 2, 5, 8, 13, 33],
    system: "poisson3d:20",
    solvers: &[
        ("gmres", "bilu", 1, 0),
        ("gmres", "bilu", 4, 1),
        ("bicgstab", "bilu", 2, 1),
        ("cg", "bilu", 1, 0),
        ("cg", "jacobi", 4, 0),
        ("gmres", "none", 1, 0),
    ],
};

const QUICK: Sizes = Sizes {
    vectors: &[1, 33, 1001],
    bases: &[(5, 1), (333, 13), (65, 70)],
    blocks: &[1, 4, 7, 33],
    product_rows: 301,
    fills: &[0, 1],
    block_rows: [41, 5],
    grid: "poisson3d:5x4x3",
    singular: &[1, 4],
    system: "poisson3d:6",
    solvers: &[("gmres", "bilu", 4, 1), ("bicgstab", "bilu", 1, 0), ("cg", "jacobi", 4, 0)],
};

impl Extent {
    fn sizes(self) -> &'static Sizes {
        match self {
            Self::Full => &FULL,
            Self::Quick => &QUICK,
        }
    }
}

/// The first reason for which `k` cannot solve triangular systems in the way `trisolve`.
pub fn lacks<K: Backend>(k: &K, trisolve: Trisolve) -> Option<crate::Error> {
    k.ilu_analyse(&Arc::new(FillPattern::diagonal(3)), 1, trisolve).err()
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
    let mut bench = Bench {
        k,
        cpu: Cpu::sequential(),
        sizes: extent.sizes(),
        rng: ChaCha8Rng::seed_from_u64(seed),
        report,
    };
    bench.vectors()?;
    bench.products()?;
    bench.factors(trisolves)?;
    bench.singular(trisolves)?;
    bench.solvers(trisolves)?;
    k.check()
}

struct Bench<'a, K: Backend> {
    k: &'a K,
    cpu: Cpu,
    sizes: &'static Sizes,
    rng: ChaCha8Rng,
    report: &'a mut dyn FnMut(Finding),
}

/// `x` on a backend.
fn there<B: Backend>(k: &B, x: &[f64]) -> Result<B::Vector> {
    let mut v = k.vector(x.len())?;
    k.upload(x, &mut v);
    Ok(v)
}

fn here<B: Backend>(k: &B, v: &B::Vector, n: usize) -> Vec<f64> {
    let mut x = vec![f64::NAN; n];
    k.download(v, &mut x);
    x
}

/// Largest difference relative to the largest entry; not a number when `got` holds one.
fn difference(got: &[f64], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let scale = want.iter().fold(f64::MIN_POSITIVE, |m, v| m.max(v.abs()));
    let worst = got.iter().zip(want).map(|(g, w)| (g - w).abs());
    worst.fold(0.0, |m: f64, d| if d.is_nan() || m.is_nan() { f64::NAN } else { m.max(d) }) / scale
}

impl<K: Backend + 'static> Bench<'_, K> {
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

    fn factors(&mut self, trisolves: &[Trisolve]) -> Result<()> {
        for &b in self.sizes.blocks {
            for &fill in self.sizes.fills {
                let rows = self.sizes.block_rows[usize::from(b > 8)];
                let random = self.matrix(rows, b, 2, false);
                let grid = problem::load(self.sizes.grid, ReadAs::Expanded)?.matrix;
                let grid = crate::matrix::bsr::pad(&grid, b).map_or(grid, Arc::new);
                for (name, a) in [("random", random), ("grid", grid)] {
                    if name == "grid" && b > 8 {
                        continue;
                    }
                    let r = self.random(a.rows());
                    let pattern = pattern(&a, b, fill);
                    let want = solve_with(&self.cpu, &a, b, &pattern, Trisolve::Auto, &r)?;
                    for &way in trisolves {
                        let got = solve_with(self.k, &a, b, &pattern, way, &r)?;
                        let check = format!("block ILU({fill}) {way:?}, {name} matrix, b {b}");
                        self.found(check, &got, &want, LIMIT);
                    }
                }
            }
        }
        Ok(())
    }

    /// A singular block is found in the same row, at the same step.
    fn singular(&mut self, trisolves: &[Trisolve]) -> Result<()> {
        for &b in self.sizes.singular {
            let mut a = (*self.matrix(41, b, 2, false)).clone();
            let row = 17 * b;
            // the first row of block 17 becomes zero: so does the row of its diagonal block
            let range = a.row_ptr()[row] as usize..a.row_ptr()[row + 1] as usize;
            a.values_mut()[range].fill(0.0);
            let a = Arc::new(a);
            let pattern = pattern(&a, b, 0);
            let report = |e: Option<crate::backend::SingularBlock>| {
                e.map_or(vec![-1.0; 3], |e| {
                    vec![e.row as f64 + 1.0, e.within as f64 + 1.0, f64::from(u8::from(e.absent))]
                })
            };
            let way = trisolves[0];
            self.both(
                format!("singular block, b {b}"),
                |k| {
                    let mut ilu = k.ilu_analyse(&pattern, b, way)?;
                    Ok(report(k.ilu_factor(&mut ilu, &a, 0.0).err()))
                },
                |k| {
                    let mut ilu = k.ilu_analyse(&pattern, b, Trisolve::Auto)?;
                    Ok(report(k.ilu_factor(&mut ilu, &a, 0.0).err()))
                },
            )?;
        }
        Ok(())
    }

    /// Iteration counts differ by one at most.
    fn solvers(&mut self, trisolves: &[Trisolve]) -> Result<()> {
        let a = problem::load(self.sizes.system, ReadAs::Expanded)?.matrix;
        let rhs = self.random(a.rows());
        for &(solver, precond, b, fill) in self.sizes.solvers {
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

/// Everything that turns vectors into vectors, with every kind of coefficient.
fn simple<B: Backend>(k: &B, x: &[f64], y: &[f64]) -> Result<Vec<f64>> {
    let n = x.len();
    let (x, mut y) = (there(k, x)?, there(k, y)?);
    let mut all = Vec::new();
    let mut z = k.vector(n)?;
    k.fill(&mut z, 0.5);
    all.extend(here(k, &z, n));
    k.copy(&x, &mut z);
    all.extend(here(k, &z, n));
    k.norm(&x, Slot(3));
    k.norm(&y, Slot(4));
    for (a, b) in [
        (Coef::ONE, Coef::Host(-0.25)),
        (Coef::Slot(Slot(3)), Coef::ZERO),
        (Coef::Ratio(Slot(3), Slot(4)), Coef::ONE),
        (Coef::ONE, Coef::Reciprocal(Slot(4))),
        (Coef::NegRatio(Slot(4), Slot(3)), Coef::Slot(Slot(3))),
        (Coef::ZERO, Coef::Host(0.5)),
    ] {
        k.axpby(a, &x, b, &mut y);
        all.extend(here(k, &y, n));
    }
    k.scale(Coef::Reciprocal(Slot(3)), &mut y);
    all.extend(here(k, &y, n));
    Ok(all)
}

fn scalars<B: Backend>(k: &B, x: &[f64], y: &[f64]) -> Result<Vec<f64>> {
    let (x, y) = (there(k, x)?, there(k, y)?);
    k.norm(&x, Slot(0));
    k.norm(&y, Slot(1));
    k.dot(&x, &x, Slot(2));
    k.dot(&y, &y, Slot(3));
    k.ratio(Slot(4), &[Slot(0), Slot(1)], &[Slot(2)]);
    k.ratio(Slot(5), &[Slot(3)], &[]);
    let mut s = vec![f64::NAN; 6];
    k.read(Slot(0), &mut s);
    // x . y may cancel: it is compared on the scale of the norms
    k.dot(&x, &y, Slot(7));
    let mut product = [f64::NAN];
    k.read(Slot(7), &mut product);
    s.push(product[0] / (s[0] * s[1]).max(f64::MIN_POSITIVE));
    Ok(s)
}

fn basis_operations<B: Backend>(k: &B, basis: &[Vec<f64>], w: &[f64]) -> Result<Vec<f64>> {
    let (n, m) = (w.len(), basis.len());
    let v = basis.iter().map(|v| there(k, v)).collect::<Result<Vec<_>>>()?;
    let mut w = there(k, w)?;
    k.multi_dot(&v, &w, Slot(8));
    let mut all = vec![f64::NAN; m + 1];
    k.read(Slot(8), &mut all[..m]);
    // coefficients of the size of one: projections are small numbers with large errors
    let coef: Vec<f64> = (0..m).map(|j| 1.0 / (1.0 + j as f64)).collect();
    k.combine(&v, &coef, &mut w);
    all.extend(here(k, &w, n));
    k.multi_axpy_norm(&v, Slot(8), &mut w, Slot(7));
    k.read(Slot(7), &mut all[m..=m]);
    all.extend(here(k, &w, n));
    Ok(all)
}

fn products<B: Backend>(
    k: &B,
    a: &Arc<Csr>,
    b: usize,
    format: Format,
    x: &[f64],
    rhs: &[f64],
) -> Result<Vec<f64>> {
    let n = x.len();
    let (mut matrix, x, rhs) = (k.matrix(a, b, format)?, there(k, x)?, there(k, rhs)?);
    let mut y = k.vector(n)?;
    k.fill(&mut y, f64::NAN);
    k.spmv(&matrix, &x, &mut y);
    let mut all = here(k, &y, n);
    k.fill(&mut y, f64::NAN);
    k.residual(&matrix, &x, &rhs, &mut y);
    all.extend(here(k, &y, n));
    // new values in the old places
    k.matrix_values(&mut matrix, &Arc::new(scaled(a)))?;
    k.spmv(&matrix, &x, &mut y);
    all.extend(here(k, &y, n));
    Ok(all)
}

/// Other values on the pattern of `a`: entries times 2, 3, 4 and 5 in turn, diagonals by 5.
fn scaled(a: &Csr) -> Csr {
    let mut scaled = a.clone();
    for i in 0..a.rows() {
        for at in a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize {
            let diagonal = a.col_ind()[at] as usize == i;
            scaled.values_mut()[at] *= if diagonal { 5.0 } else { 2.0 + (at % 4) as f64 };
        }
    }
    scaled
}

fn pattern(a: &Csr, b: usize, fill: usize) -> Arc<FillPattern> {
    let point = block_pattern(a, b);
    Arc::new(iluk(&point, fill, LevelRule::Min, usize::MAX).expect("small"))
}

/// Solves with factors made three times, the last time of other values, so that nothing may be left
/// over from the ones before.
fn solve_with<B: Backend>(
    k: &B,
    a: &Csr,
    b: usize,
    pattern: &Arc<FillPattern>,
    way: Trisolve,
    r: &[f64],
) -> Result<Vec<f64>> {
    let n = r.len();
    let mut ilu = k.ilu_analyse(pattern, b, way)?;
    let mut all = Vec::new();
    for a in [a, a, &scaled(a)] {
        if let Err(singular) = k.ilu_factor(&mut ilu, a, 0.0) {
            return Err(crate::Error::run(singular.to_string()));
        }
        let (mut from, mut to) = (there(k, r)?, k.vector(n)?);
        for _ in 0..2 {
            k.fill(&mut to, f64::NAN);
            k.ilu_apply(&ilu, &from, &mut to);
            all.extend(here(k, &to, n));
            std::mem::swap(&mut from, &mut to);
        }
    }
    Ok(all)
}

struct Silent;

impl Phases for Silent {
    fn begin(&mut self, _: Phase) {}
}

fn iterations<B: Backend + 'static>(
    k: &B,
    a: &Arc<Csr>,
    case: &Case,
    rhs: &[f64],
) -> Result<usize> {
    let unknown = |name: &str| crate::Error::run(format!("`{name}` is not registered"));
    let setup = precond::lookup::<B>(&case.precond).ok_or_else(|| unknown(&case.precond))?;
    let m = setup(Setup { k, a, case, phases: &mut Silent })
        .map_err(|e| crate::Error::run(format!("{e:?}")))?;
    let matrix = k.matrix(a, case.block_size, case.format)?;
    let (b, mut x) = (there(k, rhs)?, k.vector(a.rows())?);
    let settings = Settings {
        side: case.side,
        restart: case.restart,
        orthogonalisation: case.orthogonalisation,
        stop: Stop { rtol: 1e-8, max_iterations: 500, time_limit_s: None },
    };
    let build = solver::lookup::<B>(&case.solver).ok_or_else(|| unknown(&case.solver))?;
    let mut method = build(k, &settings, a.rows())?;
    let system = System { a: &matrix, m: &*m, b: &b };
    let outcome = method.solve(k, &system, &mut x, &mut ());
    k.check()?;
    Ok(outcome.iterations)
}
