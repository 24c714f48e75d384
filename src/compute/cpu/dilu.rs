//! Factors `(D + L) D^-1 (D + U)` with the triangles of A itself on the CPU: row after row on one thread. On all cores
//! FGBILU goes by hyperplanes (Luo et al. 2015, Algorithms 2 and 3), DILU in the order of block ILU.

#![allow(
    unsafe_code,
    reason = "instruction sets chosen at run time, threads that write disjoint parts"
)]

mod sweeps;

use std::cmp::Ordering;
use std::sync::Arc;

use super::Cpu;
use super::block::{BlockSize, SINGULAR, with_block_size};
use super::multiversion::multiversion;
use super::order::Order;
use super::pace::Pace;
use super::shared::Shared;
use super::simd::Simd;
use crate::base::choices::MAX_BLOCK_SIZE;
use crate::base::memory::Buffer;
use crate::compute::{Breakdown, Bytes, DiluFactors, Eisenstat, SingularBlock};
use crate::matrix::Csr;
use crate::matrix::pattern::PatternView;
use crate::symbolic::{FillPattern, GridPattern, Schedule};

/// Strictly lower and upper blocks of A, and the inverted diagonal blocks d; blocks column-major. The
/// upper ones are in the opposite order of the pattern, as in [`super::BlockIlu`].
pub(super) struct Dilu {
    pattern: Arc<FillPattern>,
    lower: Buffer<f64>,
    diagonal: Buffer<f64>,
    upper: Buffer<f64>,
    /// Diagonal blocks of A for products; none for FGBILU.
    own: Buffer<f64>,
    /// Whether blocks are inverted with pivoting.
    pivoting: bool,
    /// One thread needs none.
    plan: Option<Plan>,
}

/// Order of the factorisation and of both sweeps, and who makes them.
struct Plan {
    forward: Order,
    backward: Order,
    solving: Pace,
    factoring: Arc<Pace>,
}

impl Dilu {
    /// FGBILU on a grid, with an order by hyperplanes when `parallel`.
    pub(super) fn on_grid(grid: &GridPattern, parallel: bool) -> Self {
        let pattern = &grid.factors;
        let plan = parallel.then(|| {
            let order =
                |planes: &Schedule, entries| Order::by_level(planes, entries, pattern.block_size());
            let planes = &grid.hyperplanes;
            let forward = order(planes, pattern.lower.entries());
            Plan::new(forward, order(&planes.reversed(), pattern.upper.entries()))
        });
        Self { pivoting: false, own: Buffer::zeros(0), ..Self::new(pattern, plan) }
    }

    /// DILU on the pattern of a matrix, with an order for all threads when `parallel`.
    pub(super) fn on(pattern: &Arc<FillPattern>, parallel: bool) -> Self {
        let orders = if parallel { Order::both(pattern).0 } else { None };
        Self::new(pattern, orders.map(|[forward, backward]| Plan::new(forward, backward)))
    }

    fn new(pattern: &Arc<FillPattern>, plan: Option<Plan>) -> Self {
        let bb = pattern.block_size() * pattern.block_size();
        let blocks = |count: usize| Buffer::zeros(count * bb);
        Self {
            lower: blocks(pattern.lower.entries()),
            diagonal: blocks(pattern.rows()),
            upper: blocks(pattern.upper.entries()),
            own: blocks(pattern.rows()),
            pivoting: true,
            pattern: Arc::clone(pattern),
            plan,
        }
    }

    /// Solves with, or multiplies by, the factors: `work(alone)`.
    fn sweeping(&self, k: &Cpu, work: impl FnOnce(bool) + Send) {
        let pace = self.plan.as_ref().map(|plan| &plan.solving);
        k.paced(self.pattern.numbers(), pace, |all| all.solves += 1, work);
    }
}

impl Plan {
    fn new(forward: Order, backward: Order) -> Self {
        Self { forward, backward, solving: Pace::default(), factoring: Arc::default() }
    }
}

impl DiluFactors<Cpu> for Dilu {
    fn factor(&mut self, k: &Cpu, a: &Csr, shift: f64) -> Result<(), Breakdown> {
        let factoring = self.plan.as_ref().map(|plan| Arc::clone(&plan.factoring));
        let block_size = self.pattern.block_size();
        let done = k.paced(
            self.pattern.numbers(),
            factoring.as_deref(),
            |all| all.factorisations += 1,
            |alone| with_block_size!(block_size, factor_sized(self, a, shift, alone)),
        );
        Ok(done?)
    }

    fn apply(&self, k: &Cpu, r: &Buffer<f64>, z: &mut Buffer<f64>) {
        self.sweeping(k, |alone| sweeps::apply(self, r, z, alone));
    }

    fn eisenstat(&self) -> Option<&dyn Eisenstat<Cpu>> {
        (!self.own.is_empty()).then_some(self)
    }

    fn bytes(&self, _: &Cpu) -> Bytes {
        let values = self.lower.len() + self.diagonal.len() + self.upper.len();
        let read = 8 * values + self.pattern.bytes();
        // d is read by both sweeps; r read, z written and, between the sweeps, read and written again
        let vector = 8 * self.pattern.rows() * self.pattern.block_size();
        let moved = read + 8 * self.diagonal.len() + 4 * vector;
        Bytes { held: read + 8 * self.own.len(), moved }
    }
}

impl Eisenstat<Cpu> for Dilu {
    fn apply_then_multiply(
        &self,
        k: &Cpu,
        r: &Buffer<f64>,
        z: &mut Buffer<f64>,
        az: &mut Buffer<f64>,
    ) {
        self.sweeping(k, |alone| sweeps::apply_then_multiply(self, r, z, az, alone));
    }

    fn forward(&self, k: &Cpu, r: &Buffer<f64>, [y, dy]: [&mut Buffer<f64>; 2]) {
        self.sweeping(k, |alone| sweeps::forward_solve(self, r, [y, dy], alone));
    }

    fn through(
        &self,
        k: &Cpu,
        p: &Buffer<f64>,
        [t, at]: [&mut Buffer<f64>; 2],
        [y, dy]: [&mut Buffer<f64>; 2],
    ) {
        self.sweeping(k, |alone| sweeps::through(self, p, [t, at], [y, dy], alone));
    }
}

/// What all points of one factorisation share.
struct Job<'a> {
    a: &'a Csr,
    shift: f64,
    pattern: &'a FillPattern,
    lower_pattern: PatternView<'a>,
    upper_pattern: PatternView<'a>,
    lower: Shared<'a>,
    diagonal: Shared<'a>,
    upper: Shared<'a>,
    own: Option<Shared<'a>>,
    pivoting: bool,
}

fn factor_sized<K: BlockSize>(
    size: K,
    f: &mut Dilu,
    a: &Csr,
    shift: f64,
    alone: bool,
) -> Result<(), SingularBlock> {
    assert_eq!(a.rows(), f.pattern.rows() * size.b());
    let shift = if shift == 0.0 { 0.0 } else { shift * a.largest_diagonal() };
    let job = Job {
        a,
        shift,
        pattern: &f.pattern,
        lower_pattern: f.pattern.lower.view(),
        upper_pattern: f.pattern.upper.view(),
        lower: Shared::new(&mut f.lower),
        diagonal: Shared::new(&mut f.diagonal),
        upper: Shared::new(&mut f.upper),
        own: (!f.own.is_empty()).then(|| Shared::new(&mut f.own)),
        pivoting: f.pivoting,
    };
    let scratch = || vec![0.0; size.b() * size.b()];
    match f.plan.as_ref().filter(|_| !alone) {
        None => all_points(size, &job, &mut scratch()),
        Some(plan) => {
            plan.forward.try_rows(|_| scratch(), |product, i| point(size, &job, i, product))
        }
    }
}

multiversion! { fn point[K: BlockSize](size: K, job: &Job, i: usize, product: &mut [f64]) -> Result<(), SingularBlock> = point_body }
multiversion! { fn all_points[K: BlockSize](size: K, job: &Job, product: &mut [f64]) -> Result<(), SingularBlock> = all_points_body }

#[inline(always)]
fn all_points_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    job: &Job,
    product: &mut [f64],
) -> Result<(), SingularBlock> {
    for i in 0..job.pattern.rows() {
        point_body(s, size, job, i, product)?;
    }
    Ok(())
}

/// Equation 1 at the point of row i (of DILU `d_i = a_ii - sum over j < i of a_ij d_j^-1 a_ji`), from A's values to
/// the inverse; `product` is a block of scratch.
#[inline(always)]
fn point_body<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    job: &Job,
    i: usize,
    product: &mut [f64],
) -> Result<(), SingularBlock> {
    let bb = size.b() * size.b();
    let (range, upper) = (job.lower_pattern.range(i), job.upper_pattern);
    // SAFETY: the blocks of row i are written by this call alone; those of the points it depends on
    // are finished: earlier in the loop, or in a task that was waited for.
    unsafe {
        let d = job.diagonal.write(i * bb..(i + 1) * bb);
        load(size, job, i, d);
        if let Some(own) = job.own {
            own.write(i * bb..(i + 1) * bb).copy_from_slice(d);
        }
        (0..size.b()).for_each(|r| d[r * size.b() + r] += job.shift);
        let mut scale = [0.0; MAX_BLOCK_SIZE];
        largest_of_rows(size, d, &mut scale);
        for e in range {
            let j = job.lower_pattern.col_ind[e] as usize;
            // a coupling that is stored in one direction only contributes nothing
            let Ok(back) = upper.row(j).binary_search(&(i as u32)) else { continue };
            let back = upper.entries() - 1 - (upper.range(j).start + back);
            let a = size.factor(s, job.lower.read(e * bb..(e + 1) * bb));
            size.gemm(s, a, job.diagonal.read(j * bb..(j + 1) * bb), product);
            let product = size.factor(s, product);
            size.gemm_sub(s, product, job.upper.read(back * bb..(back + 1) * bb), d);
        }
        let absent = job.pattern.lacks_diagonal(i);
        let inverted = if job.pivoting {
            if absent {
                // as in block ILU, whose pattern has no place for the updates
                d.fill(0.0);
                (0..size.b()).for_each(|r| d[r * size.b() + r] = job.shift);
            }
            size.invert(s, d)
        } else {
            gauss_jordan(s, size, d, &scale)
        };
        inverted.map_err(|(within, pivot)| SingularBlock { row: i, within, pivot, absent })
    }
}

/// Copies block row i of A to its lower, diagonal (`d`) and upper blocks.
///
/// # Safety
/// As in `point_body`.
#[inline(always)]
unsafe fn load<K: BlockSize>(size: K, job: &Job, i: usize, d: &mut [f64]) {
    let (b, bb) = (size.b(), size.b() * size.b());
    let (lower, upper) = (job.lower_pattern, job.upper_pattern);
    let (own, behind) = (lower.range(i), upper.range(i));
    let last = upper.entries().wrapping_sub(1); // unused when there is no entry
    d.fill(0.0);
    for r in 0..b {
        let (cols, values) = job.a.row(i * b + r);
        // columns increase, so the blocks come one after the other
        let (mut e, mut u) = (own.start, behind.start);
        for (&j, &v) in cols.iter().zip(values) {
            let (j, at) = (j as usize / b, (j as usize % b) * b + r);
            match j.cmp(&i) {
                Ordering::Equal => d[at] = v,
                Ordering::Less => {
                    while (lower.col_ind[e] as usize) < j {
                        e += 1;
                    }
                    // SAFETY: a place of row i
                    unsafe { job.lower.write(e * bb + at..e * bb + at + 1)[0] = v };
                }
                Ordering::Greater => {
                    while (upper.col_ind[u] as usize) < j {
                        u += 1;
                    }
                    let at = (last - u) * bb + at;
                    // SAFETY: a place of row i
                    unsafe { job.upper.write(at..at + 1)[0] = v };
                }
            }
        }
    }
}

/// Largest entry of each row, in absolute value.
#[inline(always)]
fn largest_of_rows<K: BlockSize>(size: K, block: &[f64], largest: &mut [f64; MAX_BLOCK_SIZE]) {
    for column in block[..size.b() * size.b()].chunks_exact(size.b()) {
        for (most, v) in largest.iter_mut().zip(column) {
            *most = most.max(v.abs());
        }
    }
}

/// Algorithm 5: replaces a column-major block by its inverse, in place and without pivoting. `scale`
/// holds what the pivot of each row is measured by.
///
/// Line 3 of the algorithm multiplies by the pivot what line 2 has divided by it; here the row is
/// divided last.
#[inline(always)]
fn gauss_jordan<K: BlockSize, S: Simd>(
    s: S,
    size: K,
    d: &mut [f64],
    scale: &[f64; MAX_BLOCK_SIZE],
) -> Result<(), (usize, f64)> {
    let b = size.b();
    let d = &mut d[..b * b];
    for r in 0..b {
        let pivot = d[r * b + r];
        // not a number is no pivot either
        if !(pivot.is_finite() && pivot.abs() > SINGULAR * scale[r]) {
            let part = pivot.abs() / scale[r];
            return Err((r, if part.is_finite() { part } else { 0.0 }));
        }
        let inverse = 1.0 / pivot;
        let (left, rest) = d.split_at_mut(r * b);
        let (own, right) = rest.split_at_mut(b);
        for v in &mut *own {
            *v *= -inverse;
        }
        own[r] = inverse;
        for column in left.chunks_exact_mut(b).chain(right.chunks_exact_mut(b)) {
            let factor = column[r];
            column[r] = 0.0;
            for (v, &m) in column.iter_mut().zip(&*own) {
                *v = s.madd(m, factor, *v);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::pattern::block_pattern;
    use crate::problem::samples::{matrix, pattern};

    #[test]
    fn one_thread_and_all_of_them_compute_the_same_bits() {
        let k = Cpu::parallel(Some(3)).unwrap();
        let a = matrix("blockpoisson3d:12,b=2");
        let (a, n) = (a.in_blocks(2), a.rows());
        let points = block_pattern(&a);
        let pattern = pattern(&a, 0);
        let grid = GridPattern::of(&points, (*pattern).clone()).unwrap();
        let r: Vec<f64> = (0..n).map(|i| ((i * 7919) % 1000) as f64 - 499.5).collect();
        for on_grid in [true, false] {
            let [alone, together] = [true, false].map(|alone| {
                k.pooled(|| {
                    let mut f =
                        if on_grid { Dilu::on_grid(&grid, true) } else { Dilu::on(&pattern, true) };
                    with_block_size!(2, factor_sized(&mut f, &a, 0.0, alone)).unwrap();
                    let mut all: Vec<Vec<f64>> = vec![vec![0.0; n]; if on_grid { 1 } else { 7 }];
                    match &mut all[..] {
                        [z] => sweeps::apply(&f, &r, z, alone),
                        [z, az, t, at, y, dy, other] => {
                            sweeps::apply(&f, &r, other, alone);
                            sweeps::apply_then_multiply(&f, &r, z, az, alone);
                            sweeps::through(&f, &r, [t, at], [y, dy], alone);
                            assert_eq!(z, other);
                        }
                        _ => unreachable!("one or seven"),
                    }
                    all.concat().iter().map(|v| v.to_bits()).collect::<Vec<_>>()
                })
            });
            assert!(alone == together && alone.iter().all(|z| *z != 0));
        }
    }
}
